"""Support vector machines in a model file: their expansion over support vectors, labels and sigmoids."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.errors import ModelFileError
from mercer.models.approximation import decode_approximation, encode_approximation
from mercer.models.fields import Draft, Stored, decode_kernel, decode_labels, encode, encode_labels
from mercer.models.points import count, decode_points, encode_points, refuse_misfit
from mercer.svm import OneClassSVM
from mercer.svm.base import SupportVectorMachine
from mercer.svm.classifier import Classifier

KINDS = ("features", "objects", "precomputed")


def encode_machine(draft: Draft, machine: SupportVectorMachine) -> None:
    """Store what predictions and the public attributes need."""
    given = machine._kind == "precomputed"
    draft.facts["kind"] = machine._kind
    draft.facts["kernel"] = None if machine._kernel is None else machine._kernel.to_dict()
    draft.facts["gamma"] = encode(float(machine._gamma), "gamma")
    draft.facts["shape_fit_"] = [int(size) for size in machine.shape_fit_]
    encode_approximation(draft, machine)
    encode_points(draft, None if given else machine.support_vectors_)
    draft.tensor("support", machine.support_.astype(np.int64))
    draft.tensor("n_support", machine._n_support.astype(np.int64))
    draft.tensor("dual_coef", machine._dual_coef_)
    draft.tensor("intercept", machine._intercept_)
    if isinstance(machine, Classifier):
        encode_labels(draft, "classes", machine.classes_)
        draft.tensor("class_weight", machine.class_weight_)
        draft.tensor("probA", machine._probA)
        draft.tensor("probB", machine._probB)


def decode_machine(stored: Stored, machine: SupportVectorMachine, features: int | None) -> None:
    """Set the fitted state of a machine that has its parameters; `features` is n_features_in_ or None."""
    kind: Any = stored.text("kind", KINDS)
    description = stored.fact("kernel")
    kernel = None if description is None else decode_kernel(description)
    shape = stored.counts("shape_fit_", (1, 2))
    points = decode_points(stored)
    if (kind == "precomputed") != (points is None) or (kernel is None) != (points is None):
        raise ModelFileError("its kernel, its points and their kind contradict each other")
    if kind == "features" and (features is None or not hasattr(points, "shape") or points.shape[1] != features):
        raise ModelFileError(f"its points do not have the {features} features of the machine")
    if kind == "precomputed" and features != shape[0]:
        raise ModelFileError(f"a kernel matrix of {shape[0]} points does not have {features} columns")
    refuse_misfit(kernel, points)
    machine._kind, machine._kernel, machine._gamma = kind, kernel, stored.number("gamma")
    machine.shape_fit_ = shape
    machine._points = machine._previous = None
    decode_approximation(stored, machine, kernel, features)
    free = points is None or machine.approximation_ is not None
    machine.support_ = stored.index("support", None if free else count(points), shape[0])
    if machine.approximation_ is not None and len(machine.support_) not in (0, count(points)):
        raise ModelFileError(f"{len(machine.support_)} of its {count(points)} landmarks are points of its data")
    machine.support_vectors_ = np.empty((0, 0)) if points is None else points
    _decode_expansion(stored, machine)
    machine.dual_coef_, machine.intercept_ = machine._public(machine._dual_coef_, machine._intercept_)
    if sp.issparse(points):
        make = sp.csr_array if isinstance(points, sp.sparray) else sp.csr_matrix
        machine.dual_coef_ = make(machine.dual_coef_)
    if isinstance(machine, OneClassSVM):
        machine.offset_ = -machine._intercept_


def _decode_expansion(stored: Stored, machine: SupportVectorMachine) -> None:
    """Coefficients, intercepts and labels in shapes that fit each other."""
    groups = rows = machines = 1
    if isinstance(machine, Classifier):
        machine.classes_ = decode_labels(stored, "classes")
        groups = len(machine.classes_)
        if groups < 2:
            raise ModelFileError(f"it has {groups} classes")
        if machine._paired and machine.approximation_ is None:
            rows, machines = groups - 1, groups * (groups - 1) // 2
        else:
            rows = machines = 1 if groups == 2 else groups * (groups - 1) // 2 if machine._paired else groups
        machine.class_weight_ = stored.tensor("class_weight", np.float64, (groups,))
        fitted = stored.has("probA") and stored.tensors["probA"].size > 0
        machine._probA, machine._probB = (
            stored.tensor(name, np.float64, (machines if fitted else 0,)) for name in ("probA", "probB")
        )
    size = len(machine.support_)
    if machine.approximation_ is not None:
        groups, size = 1, machine.support_vectors_.shape[0]
        size = machine.feature_map_.dimension if machine.feature_map_ is not None else size
    counts = stored.index("n_support", groups, size + 1)
    if counts.sum() != size:
        raise ModelFileError(f"its classes have {counts.sum()} support vectors together, and there are {size}")
    machine._n_support = counts.astype(np.int32)
    machine._dual_coef_ = stored.tensor("dual_coef", np.float64, (rows, size))
    machine._intercept_ = stored.tensor("intercept", np.float64, (machines,))
