"""LIBSVM's model file, read: a machine that predicts as svm-predict does.

For two classes the labels are put in order and the decision value turned with them, so that it is positive for
classes_[1].  For more, `classes_` keeps the order of the file, by which LIBSVM decides a tie of votes.  What a file
does not say is left open: the certificate is NaN, `stopped_` is "unknown", C and nu have their defaults, and `support_`
counts the support vectors.  Noise widths (probA of a regression) and density marks of LIBSVM are not used.
"""

import math
import os
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np
import scipy.sparse as sp

from mercer.data.allowance import Allowance
from mercer.data.dataset import settle
from mercer.data.files import block_size, line_blocks
from mercer.errors import InvalidInput, MercerError, ModelFileError
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.names import named_kernel
from mercer.machine.outcome import FitPlan
from mercer.models.container import refuse_irregular
from mercer.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from mercer.svm.base import SupportVectorMachine
from mercer.svm.classification import Classifier

MACHINES: dict[str, type[SupportVectorMachine]] = {
    "c_svc": SVC,
    "nu_svc": NuSVC,
    "one_class": OneClassSVM,
    "epsilon_svr": SVR,
    "nu_svr": NuSVR,
}
KERNELS = {
    "linear": "linear",
    "polynomial": "poly",
    "rbf": "rbf",
    "sigmoid": "sigmoid",
    "precomputed": "precomputed",
}
SINGLE = ("svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv")
LISTS = ("rho", "label", "probA", "probB", "nr_sv", "prob_density_marks")
MOST_FEATURES = (1 << 31) - 1
LARGEST_DEGREE = 1024
WORDS = 64  # bytes that a byte of text takes as lines and words
NUMBER = 24  # bytes that a word (coefficient, index, colon or value) takes in arrays and their copies

Head = dict[str, list[str]]
Numbers: TypeAlias = "array[Any]"  # as compact as an array of NumPy, and it grows


def read_libsvm(
    path: str | os.PathLike[str], *, n_features: int | None = None, limit: int | str | None = None
) -> SupportVectorMachine:
    """The machine in a model file of LIBSVM, which may be compressed (.gz, .xz, .bz2).

    n_features : number of features d, or of training points for a precomputed kernel; by default the largest index in
    the file, which is smaller than d when the last features of all support vectors are zero.
    limit : most bytes of memory to take, by default half of what is free.
    """
    try:
        allowance = Allowance(limit, Path(path))
        lines = _lines(Path(path), allowance)
        head = _head(lines)
        machine = _machine(head)
        dual, vectors = _vectors(lines, head, isinstance(machine, Classifier), n_features, allowance)
        _fill(machine, head, dual, vectors)
        return machine
    except UnicodeDecodeError:
        raise ModelFileError(f"{path}: it is not a text, as LIBSVM's model files are") from None
    except (MercerError, ValueError, ArithmeticError, MemoryError) as error:
        raise ModelFileError(f"{path}: {' '.join(str(error).split()).removeprefix(f'{path}: ')}") from None


def _lines(path: Path, allowance: Allowance) -> Iterator[str]:
    refuse_irregular(path)
    for block in line_blocks(path, allowance, block_size(allowance, WORDS)):
        allowance.take(WORDS * len(block))
        yield from block.decode("ascii").splitlines()
        allowance.give_back(WORDS * len(block))


def _fail(message: str) -> NoReturn:
    raise ModelFileError(message)


# The head ----------------------------------------------------------------------------------------------------------


def _head(lines: Iterator[str]) -> Head:
    """Words after each name, up to the line SV."""
    head: Head = {}
    for line in lines:
        name, *words = line.split() or [""]
        if name == "SV":
            break
        if name not in SINGLE and name not in LISTS:
            _fail(f"{name!r:.40} is not a line of LIBSVM's model file")
        if name in head:
            _fail(f"{name!r} is given twice")
        if not words or (name in SINGLE and len(words) != 1):
            _fail(f"{name!r} has {len(words)} values")
        head[name] = words
    else:
        _fail("it is not a model file of LIBSVM, or it is cut off: there is no line 'SV'")
    for name in ("svm_type", "kernel_type", "nr_class", "total_sv", "rho"):
        if name not in head:
            _fail(f"there is no line {name!r}")
    return head


def _number(word: str, name: str) -> float:
    """A finite number, written as C writes it."""
    try:
        value = math.nan if "_" in word else float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        _fail(f"{name} holds {word!r:.40}, which is not a finite number")
    return value


def _whole(word: str, name: str, least: int, most: int) -> int:
    value = _number(word, name)
    if value != int(value) or not least <= value <= most:
        _fail(f"{name} holds {word!r:.40}, not a whole number from {least} to {most}")
    return int(value)


def _numbers(head: Head, name: str, count: int) -> Any:
    if name not in head or len(head[name]) != count:
        _fail(f"{name!r} has {len(head.get(name, []))} values where {count} are needed")
    return np.array([_number(word, name) for word in head[name]])


def _machine(head: Head) -> SupportVectorMachine:
    """A machine with the kernel of the file, not yet fitted."""
    kind, kernel = head["svm_type"][0], head["kernel_type"][0]
    if kind not in MACHINES:
        _fail(f"svm_type {kind!r:.40} is not one of {', '.join(MACHINES)}")
    if kernel not in KERNELS:
        _fail(f"kernel_type {kernel!r:.40} is not one of {', '.join(KERNELS)}")
    needed = {"polynomial": ("degree", "gamma", "coef0"), "rbf": ("gamma",), "sigmoid": ("gamma", "coef0")}
    for name in needed.get(kernel, ()):
        if name not in head:
            _fail(f"a {kernel} kernel needs the line {name!r}")
    machine: Any = MACHINES[kind](kernel=KERNELS[kernel], gamma="auto")
    if kernel not in ("linear", "precomputed"):
        machine.gamma = _number(head["gamma"][0], "gamma")
    if kernel == "polynomial":
        machine.degree = _whole(head["degree"][0], "degree", 0, LARGEST_DEGREE)
    if kernel in ("polynomial", "sigmoid"):
        machine.coef0 = _number(head["coef0"][0], "coef0")
    if isinstance(machine, Classifier):
        machine.probability = "probA" in head
    machine._validate_params()
    return machine  # type: ignore[no-any-return]  # of the class that the head of the file names


# The vectors -------------------------------------------------------------------------------------------------------


def _vectors(
    lines: Iterator[str], head: Head, classes: bool, n_features: int | None, allowance: Allowance
) -> tuple[Any, Any]:
    """Coefficients (rows, n_SV) and support vectors (n_SV, d), or the rows (n_SV,) of a given matrix with their number.

    Nothing is allocated by what the head announces: it must agree with the lines that are there.
    """
    rows = _whole(head["nr_class"][0], "nr_class", 2, MOST_FEATURES) - 1 if classes else 1
    coefficients, columns, values, starts = array("d"), array("q"), array("d"), array("q", [0])
    for line in lines:
        words = line.replace(":", " : ").split()
        if not words:
            continue
        pairs = words[rows:]
        if len(words) < rows or len(pairs) % 3 or any(colon != ":" for colon in pairs[1::3]):
            _fail(f"support vector {len(starts)} is not {rows} coefficients and pairs index:value")
        allowance.take(NUMBER * (len(words) + 1))
        coefficients.extend(_number(word, "a coefficient") for word in words[:rows])
        columns.extend(_whole(word, "an index", 0, MOST_FEATURES) for word in pairs[::3])
        values.extend(_number(word, "a value") for word in pairs[2::3])
        starts.append(len(columns))
    size = len(starts) - 1
    total = _whole(head["total_sv"][0], "total_sv", 0, 1 << 53)
    if size != total:
        _fail(f"it is cut off or changed: {size} support vectors where total_sv says {total}")
    dual = np.ascontiguousarray(np.array(coefficients, dtype=np.float64).reshape(size, rows).T)
    if head["kernel_type"][0] == "precomputed":
        return dual, _serial(columns, values, size, n_features)
    return dual, _matrix(columns, values, starts, n_features)


def _matrix(columns: Numbers, values: Numbers, starts: Numbers, n_features: int | None) -> Any:
    """Support vectors, dense or CSR by their density."""
    index = np.array(columns, dtype=np.int64)
    if index.size and index.min() < 1:
        _fail("an index is 0, and features are counted from 1")
    inside = np.ones(len(index), dtype=bool)
    first = np.array(starts[:-1])
    inside[first[first < len(index)]] = False
    if (np.diff(index, prepend=0)[inside] <= 0).any():
        _fail("the indices of a support vector do not grow")
    found = int(index.max()) if index.size else 1
    d = found if n_features is None else n_features
    if d < found:
        raise InvalidInput(f"n_features={n_features} is less than the largest index {found}")
    shape = (len(starts) - 1, d)
    return settle(sp.csr_matrix((np.array(values), index - 1, np.array(starts)), shape=shape), None)


def _serial(columns: Numbers, values: Numbers, size: int, n_features: int | None) -> Any:
    """Rows of a given matrix, counted from 0, and the number of all rows."""
    numbers = np.array(values)
    if len(columns) != size or any(columns) or (numbers % 1.0 != 0.0).any() or (numbers < 1.0).any():
        _fail("support vectors of a precomputed kernel must be 0:number, the number of a training point")
    found = int(numbers.max()) if size else 1
    if found > MOST_FEATURES or (n_features is not None and n_features < found):
        raise InvalidInput(f"training point {found} is out of range; n_features={n_features}")
    return numbers.astype(np.intp) - 1, found if n_features is None else n_features


# The machine -------------------------------------------------------------------------------------------------------


def _fill(machine: Any, head: Head, dual: Any, vectors: Any) -> None:
    """Set the fitted state."""
    size = dual.shape[1]
    machine._previous = machine._points = None
    machine.approximation_ = machine.feature_map_ = None
    machine.approximation_reason_ = "exact: no approximation was asked for"
    machine._gamma = float(machine.gamma) if not isinstance(machine.gamma, str) else 0.0
    if machine.kernel == "precomputed":
        machine._kind, machine.kernel_ = "precomputed", Precomputed()
        machine.support_, n = vectors
        machine.shape_fit_, machine.support_vectors_, machine.n_features_in_ = (n, n), np.empty((0, 0)), n
    else:
        machine._kind, machine.kernel_ = "features", _kernel(machine)
        machine.support_, machine.support_vectors_ = np.arange(size), vectors
        machine.shape_fit_, machine.n_features_in_ = vectors.shape, vectors.shape[1]
    if isinstance(machine, Classifier):
        intercept = _classes(machine, head, size)
    else:
        machine._n_support = np.array([size], dtype=np.int32)
        intercept = -_numbers(head, "rho", 1)
    machine._dual_coef_, machine._intercept_ = dual, intercept + 0.0
    if isinstance(machine, Classifier) and len(machine.classes_) == 2 and machine.classes_[0] > machine.classes_[1]:
        _turn(machine)
    machine._show(machine._dual_coef_, machine._intercept_)
    if isinstance(machine, OneClassSVM):
        machine.offset_ = -machine._intercept_
    machine.objective_ = machine.dual_objective_ = machine.gap_ = math.nan
    machine.stopped_, machine.fit_status_, machine.history_ = "unknown", 0, ()
    machine.solver_ = "unknown: the machine was read from a file of LIBSVM"
    reason = machine.approximation_reason_
    machine.plan_ = FitPlan.of(machine.solver_, len(intercept), reason, machine._resources(), None)
    machine.n_iter_ = np.zeros(len(intercept), np.int32) if isinstance(machine, Classifier) else 0


def _kernel(machine: SupportVectorMachine) -> Kernel:
    return named_kernel(machine.kernel, machine._gamma, machine.degree, machine.coef0)


def _classes(machine: Classifier, head: Head, size: int) -> Any:
    """Labels, their support vectors and sigmoids; returns the intercepts."""
    k = _whole(head["nr_class"][0], "nr_class", 2, MOST_FEATURES)
    pairs = k * (k - 1) // 2
    labels = _numbers(head, "label", k)
    counts = _numbers(head, "nr_sv", k)
    if (labels % 1.0 != 0.0).any() or (np.abs(labels) > MOST_FEATURES + 1).any() or len(set(labels.tolist())) != k:
        _fail("'label' must hold different whole numbers")
    if (counts % 1.0 != 0.0).any() or counts.min() < 0.0 or counts.sum() != size:
        _fail(f"'nr_sv' must add up to the {size} support vectors")
    machine.classes_ = labels.astype(np.int64)
    machine._n_support = counts.astype(np.int32)
    machine.class_weight_ = np.ones(k)
    fitted = pairs if machine.probability else 0
    machine._probA, machine._probB = (
        _numbers(head, name, fitted) if fitted else np.empty(0) for name in ("probA", "probB")
    )
    return -_numbers(head, "rho", pairs)


def _turn(machine: Classifier) -> None:
    """Put two labels in order: f becomes -f, and so A f + B keeps A and turns B."""
    order = np.r_[machine._n_support[0] : machine._n_support.sum(), 0 : machine._n_support[0]]
    machine.classes_, machine._n_support = machine.classes_[::-1].copy(), machine._n_support[::-1].copy()
    machine._dual_coef_ = np.ascontiguousarray(-machine._dual_coef_[:, order])
    machine._intercept_ = -machine._intercept_ + 0.0
    machine._probB = -machine._probB
    machine.support_ = np.ascontiguousarray(machine.support_[order])
    if machine._kind == "features":
        machine.support_vectors_ = machine.support_vectors_[order]
