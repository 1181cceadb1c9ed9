"""LIBSVM's model file, written: text that svm-predict and all that builds on LIBSVM read.

    svm_type c_svc | nu_svc | one_class | epsilon_svr | nu_svr        kernel_type linear | polynomial | rbf | sigmoid
    degree, gamma, coef0        k(x, z) = (gamma <x, z> + coef0)^degree, exp(-gamma |x - z|^2), tanh(...)
    nr_class k, total_sv, rho   rho = -b of each machine: k(k-1)/2 pairs in the order of `label`, one for regression
    label, nr_sv                the classes, and how many support vectors each has
    probA, probB                Platt's sigmoids
    SV                          then a line for each vector: k - 1 coefficients, index:value with indices from 1

Numbers have 17 digits, so that nothing is lost.  Least-squares machines with one output are written as c_svc and
epsilon_svr: what a file holds is the expansion, not how it was found.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.data.files import replacing
from mercer.errors import InvalidInput
from mercer.kernels import Kernel
from mercer.least_squares import LSSVC, LSSVR
from mercer.models.libsvm_reading import MACHINES
from mercer.models.model import Model
from mercer.svm import SVC, SVR, NuSVC
from mercer.tuned.estimators import TunedMachine

Array = NDArray[np.float64]

SVM_TYPES: dict[type, str] = {kind: name for name, kind in MACHINES.items()}
SVM_TYPES |= {LSSVC: SVM_TYPES[SVC], LSSVR: SVM_TYPES[SVR]}
KERNEL_TYPES = {"linear": "linear", "polynomial": "polynomial", "gaussian": "rbf", "sigmoid": "sigmoid"}
LARGEST_LABEL = (1 << 31) - 1


@dataclass(frozen=True)
class Expansion:
    """What a file holds: coefficients (rows, n_SV), rho, the labels with their counts, and the vectors by class.

    `vectors` are an array or CSR matrix (n_SV, d), or the rows (n_SV,) of a given kernel matrix.
    """

    vectors: Any
    dual: Array
    rho: Array
    labels: list[int] | None = None
    counts: list[int] | None = None
    probA: Array | None = None
    probB: Array | None = None


def write_libsvm(machine: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted machine as a model file of LIBSVM; a name that ends in .gz, .xz or .bz2 compresses it.

    Labels must be whole numbers, and the kernel linear, polynomial, Gaussian with one width, sigmoid or precomputed.
    """
    if isinstance(machine, Model):
        if machine.standardise is not None:
            raise InvalidInput(
                "LIBSVM's model file has no place for the standardisation of this model; write model.machine and "
                "standardise the points before they go to LIBSVM, or export to ONNX"
            )
        machine = machine.machine
    if isinstance(machine, TunedMachine):
        machine = machine.best_estimator_
    kind = SVM_TYPES.get(type(machine))
    if kind is None:
        names = ", ".join(known.__name__ for known in SVM_TYPES)
        raise InvalidInput(f"{type(machine).__name__} has no form in LIBSVM's model file; it holds one of {names}")
    check_is_fitted(machine)
    if machine.approximation_ is not None:
        raise InvalidInput("a machine on landmarks has no form in LIBSVM's model file: export to ONNX, or use save")
    if machine.basis is not None:
        raise InvalidInput("LIBSVM's model file has no place for basis functions: pickle the machine instead")
    kernel = _kernel_lines(machine)
    found = _least_squares(machine) if isinstance(machine, (LSSVC, LSSVR)) else _support_vector(machine)
    with replacing(Path(path)) as stream:
        stream.write("\n".join([f"svm_type {kind}", *kernel, *_head(found), "SV", ""]).encode())
        for line in _vectors(found):
            stream.write(line.encode())


def _kernel_lines(machine: Any) -> list[str]:
    """The kernel and its parameters."""
    if machine._kind == "precomputed":
        return ["kernel_type precomputed"]
    kernel: Kernel = machine.kernel_
    profile = kernel.profile
    if profile is None or profile.name not in KERNEL_TYPES or profile.scale is not None:
        raise InvalidInput(
            f"LIBSVM has no kernel like {kernel!r:.100}; it knows linear, polynomial, Gaussian with one width, sigmoid "
            "and precomputed ones"
        )
    lines, p = [f"kernel_type {KERNEL_TYPES[profile.name]}"], profile.parameters
    if profile.name == "polynomial":
        lines.append(f"degree {int(p[2])}")
    if profile.name != "linear":
        lines.append(f"gamma {p[0]:.17g}")
    if profile.name in ("polynomial", "sigmoid"):
        lines.append(f"coef0 {p[1]:.17g}")
    return lines


def _support_vector(machine: Any) -> Expansion:
    vectors = machine.support_ if machine._kind == "precomputed" else machine.support_vectors_
    dual, rho = machine._dual_coef_, -machine._intercept_
    if not isinstance(machine, (SVC, NuSVC)):
        return Expansion(vectors, dual, rho)
    if len(machine.classes_) > 2 and not machine._paired:
        raise InvalidInput("LIBSVM has one machine for each pair of classes; train with multiclass='ovo' to write it")
    sigmoids = (machine._probA, machine._probB) if machine._probA.size else (None, None)
    return Expansion(vectors, dual, rho, _labels(machine.classes_), machine._n_support.tolist(), *sigmoids)


def _least_squares(machine: Any) -> Expansion:
    """One output; for two classes its positive side, classes_[1], comes first, as in LIBSVM."""
    c = machine._dual_coef_.T
    if c.shape[1] != 1:
        raise InvalidInput(
            f"LIBSVM's model file has no place for the {c.shape[1]} outputs of this machine, each against all others; "
            "export to ONNX, or train one machine for each output"
        )
    vectors = machine.support_ if machine._kind == "precomputed" else machine.support_vectors_
    rho = -machine._intercept_
    if isinstance(machine, LSSVR):
        return Expansion(vectors, c.T, rho)
    order = np.argsort(-machine._task.Y[:, 0], kind="stable")
    first = int(np.count_nonzero(machine._task.Y[:, 0] > 0.0))
    return Expansion(vectors[order], c[order].T, rho, _labels(machine.classes_[::-1]), [first, len(c) - first])


def _labels(classes: NDArray[Any]) -> list[int]:
    if classes.dtype.kind not in "iufb" or (classes.astype(np.float64) % 1.0 != 0.0).any():
        raise InvalidInput(f"LIBSVM's labels are whole numbers; train on codes in place of {classes[:3].tolist()}...")
    labels = [int(label) for label in classes]
    if max(map(abs, labels)) > LARGEST_LABEL:
        raise InvalidInput(f"LIBSVM's labels reach up to {LARGEST_LABEL}; train on smaller ones")
    return labels


def _head(found: Expansion) -> list[str]:
    """The lines between the kernel and the vectors."""
    lines = [
        f"nr_class {2 if found.labels is None else len(found.labels)}",
        f"total_sv {found.dual.shape[1]}",
        f"rho {_numbers(found.rho)}",
    ]
    if found.labels is not None:
        lines.append(f"label {' '.join(map(str, found.labels))}")
    if found.probA is not None and found.probB is not None:
        lines += [f"probA {_numbers(found.probA)}", f"probB {_numbers(found.probB)}"]
    if found.counts is not None:
        lines.append(f"nr_sv {' '.join(map(str, found.counts))}")
    return lines


def _numbers(values: Any) -> str:
    return " ".join(f"{value + 0.0:.17g}" for value in np.asarray(values).tolist())


def _vectors(found: Expansion) -> Iterator[str]:
    """A line for each support vector."""
    vectors = found.vectors
    if not sp.issparse(vectors) and not isinstance(vectors, np.ndarray):
        raise InvalidInput("LIBSVM's model file holds vectors of numbers, and this machine was trained on objects")
    for row, coefficients in enumerate(found.dual.T):
        if vectors.ndim == 1:  # numbers of rows, counted from 1, stand at index 0
            pairs = f"0:{int(vectors[row]) + 1}"
        elif sp.issparse(vectors):
            part = slice(vectors.indptr[row], vectors.indptr[row + 1])
            pairs = _pairs(vectors.indices[part], vectors.data[part])
        else:
            columns = np.flatnonzero(vectors[row])
            pairs = _pairs(columns, vectors[row, columns])
        yield f"{_numbers(coefficients)} {pairs} \n"


def _pairs(columns: NDArray[Any], values: Array) -> str:
    return " ".join(f"{j + 1}:{value:.17g}" for j, value in zip(columns.tolist(), values.tolist()))
