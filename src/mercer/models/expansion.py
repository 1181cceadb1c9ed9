"""The expansion of a machine in a model file: f(x) = sum_v c_v k(x, v) + b, for every kind of machine.

It is the kernel as fitted, the support vectors or landmarks v (their rows alone where the kernel matrix was given), the
coefficients, the intercepts, and the low-rank approximation it lives on.  Landmarks are stored like support vectors,
and predictions need nothing else; random Fourier features are stored as their frequencies.  Where support vectors are
copies of each other, the terms that predictions sum up are stored beside those that are shown.
"""

from typing import Any

import numpy as np

from mercer.errors import InvalidInput, ModelFileError
from mercer.kernels import Kernel, Precomputed
from mercer.lowrank.approximations import approximation_from_dict
from mercer.lowrank.fourier import FourierMap
from mercer.machine.base import KernelEstimator
from mercer.machine.prediction import Terms
from mercer.models.fields import Draft, Stored, decode_kernel, encode
from mercer.models.point_fields import count, decode_points, encode_points, refuse_misfit
from mercer.models.state import decode_state
from mercer.svm import OneClassSVM

MOST_FEATURES = 1 << 24  # random ones of an approximation
KINDS = ("features", "objects", "precomputed")


def encode_expansion(draft: Draft, machine: KernelEstimator) -> None:
    """Store what predictions and the public attributes need."""
    if machine._kind == "function":
        raise InvalidInput(
            "kernel is a Python function, which a model file cannot carry without running code; use one of mercer's "
            "kernels, compute the matrix and use kernel='precomputed', or pickle the machine"
        )
    if machine.basis is not None:
        raise InvalidInput(
            "basis is a Python function, which a model file cannot carry without running code; add its columns to X, "
            "or pickle the machine and load it only where you trust the file"
        )
    draft.facts["kind"] = machine._kind
    draft.facts["gamma"] = encode(float(machine._gamma), "gamma")
    draft.facts["shape_fit_"] = [int(size) for size in machine.shape_fit_]
    encode_kernel_and_points(draft, machine.kernel_, machine.support_vectors_)
    _encode_approximation(draft, machine)
    draft.tensor("support", machine.support_.astype(np.int64))
    draft.tensor("dual_coef", machine._dual_coef_)
    draft.tensor("intercept", machine._intercept_)
    draft.facts["counted"] = hasattr(machine, "_n_support")
    if draft.facts["counted"]:
        draft.tensor("n_support", machine._n_support.astype(np.int64))
    if machine._trained is not None:
        draft.tensor("merged_place", machine._trained.place.astype(np.int64))
        draft.tensor("merged_coef", machine._trained.dual)
        draft.tensor("merged_sizes", np.asarray(machine._trained.counts, dtype=np.int64))


def encode_kernel_and_points(draft: Draft, kernel: Kernel, points: Any) -> None:
    """Store a kernel and the points of an expansion; neither where the matrix was given."""
    given = isinstance(kernel, Precomputed)
    draft.facts["kernel"] = None if given else kernel.to_dict()
    encode_points(draft, None if given else points)


def decode_kernel_and_points(stored: Stored, kind: str, features: int | None) -> tuple[Kernel, Any]:
    """The kernel and the points it takes; Precomputed() and None where the matrix was given."""
    description = stored.fact("kernel")
    kernel = None if description is None else decode_kernel(description)
    points = decode_points(stored)
    if (kind == "precomputed") != (points is None) or (kernel is None) != (points is None):
        raise ModelFileError("its kernel, its points and their kind contradict each other")
    if kind == "features" and (features is None or not hasattr(points, "shape") or points.shape[1] != features):
        raise ModelFileError(f"its points do not have the {features} features of the machine")
    if kind == "objects" and (features is not None or hasattr(points, "shape")):
        raise ModelFileError("a kernel on objects has no features")
    refuse_misfit(kernel, points)
    return Precomputed() if kernel is None else kernel, points


def decode_expansion(stored: Stored, machine: KernelEstimator, features: int | None) -> None:
    """Set the fitted state of a machine that has its parameters; `features` is n_features_in_ or None."""
    kind: Any = stored.text("kind", KINDS)
    kernel, points = decode_kernel_and_points(stored, kind, features)
    shape = stored.counts("shape_fit_", (1, 2))
    if kind == "precomputed" and features != shape[0]:
        raise ModelFileError(f"a kernel matrix of {shape[0]} points does not have {features} columns")
    machine._kind, machine._gamma, machine.kernel_ = kind, stored.number("gamma"), kernel
    machine.shape_fit_, machine._points = shape, None
    machine.support_vectors_ = np.empty((0, 0)) if points is None else points
    _decode_approximation(stored, machine, kernel, features)
    dual = stored.tensor("dual_coef", np.float64, (None, None))
    intercept = stored.tensor("intercept", np.float64, (None,))
    decode_state(stored, machine, {"features": features or 0, "outputs": len(intercept)})
    _decode_support(stored, machine, points, dual.shape[1])
    found = (len(dual), len(intercept))
    if found != machine._expansion_shape(len(intercept)):
        raise ModelFileError(
            f"its coefficients and intercepts, of the shapes {dual.shape} and {found[1]}, do not fit it"
        )
    machine._show(dual, intercept)
    _decode_terms(stored, machine, len(dual))
    if isinstance(machine, OneClassSVM):
        machine.offset_ = -intercept


def _decode_support(stored: Stored, machine: KernelEstimator, points: Any, size: int) -> None:
    """Which of the training points carry the `size` coefficients, and how many of each class."""
    machine.support_ = stored.index("support", None, machine.shape_fit_[0])
    if machine.feature_map_ is not None and count(points) == 0:
        expected = machine.feature_map_.dimension
    else:
        expected = len(machine.support_) if points is None else count(points)
    chosen = len(machine.support_)
    if size != expected or not (chosen == size or (machine.approximation_ is not None and chosen == 0)):
        raise ModelFileError(f"it has {size} coefficients on {expected} points, of which {chosen} are numbered")
    if stored.flag("counted"):
        landmarks = machine.approximation_ is not None or not hasattr(machine, "classes_")
        counts = stored.index("n_support", 1 if landmarks else len(machine.classes_), size + 1)
        if counts.sum() != size:
            raise ModelFileError(f"its classes have {counts.sum()} support vectors together, and there are {size}")
        machine._n_support = counts.astype(np.int32)


def _decode_terms(stored: Stored, machine: KernelEstimator, rows: int) -> None:
    """The terms of predictions, `rows` coefficients each, where they are not those shown."""
    if "merged_place" not in stored.tensors:
        return
    place = stored.index("merged_place", None, len(machine.support_))
    dual = stored.tensor("merged_coef", np.float64, (rows, len(place)))
    classes = len(machine._n_support) if hasattr(machine, "_n_support") else 1
    counts = stored.index("merged_sizes", classes, len(place) + 1)
    if counts.sum() != len(place):
        raise ModelFileError(f"its classes have {counts.sum()} distinct support vectors, and there are {len(place)}")
    machine._trained = Terms.at(place, machine.support_vectors_, dual, counts)


# The low-rank approximation ---------------------------------------------------------------------------------------


def _encode_approximation(draft: Draft, machine: Any) -> None:
    """Store which approximation was used and why, and the frequencies of a Fourier map."""
    draft.facts["approximation"] = None
    draft.facts["approximation reason"] = machine.approximation_reason_
    if machine.approximation_ is None:
        return
    draft.facts["approximation"] = machine.approximation_.to_dict()
    draft.facts["fourier"] = None
    if isinstance(machine.feature_map_, FourierMap):
        found = machine.feature_map_
        draft.facts["fourier"] = {"variance": encode(float(found.variance), "variance"), "method": found.method}
        draft.tensor("frequencies", found.frequencies)


def _decode_approximation(stored: Stored, machine: Any, kernel: Kernel | None, features: int | None) -> None:
    """Set `approximation_`, its reason, and `feature_map_` where predictions go through it (else None)."""
    machine.approximation_ = machine.feature_map_ = None
    machine.approximation_reason_ = stored.text("approximation reason")
    if stored.fact("approximation") is None:
        return
    machine.approximation_ = approximation_from_dict(stored.fact("approximation"))
    if machine._kind != "features" or kernel is None:
        raise ModelFileError("an approximation needs points with features")
    if stored.fact("fourier") is not None:
        facts = stored.part("fourier")
        frequencies = stored.tensor("frequencies", np.float64, (features, None))
        variance = facts.number("variance")
        if not 0.0 < variance < np.inf or not 0 < frequencies.shape[1] <= MOST_FEATURES:
            raise ModelFileError("its Fourier features have no frequencies or no variance")
        machine.feature_map_ = FourierMap(kernel, frequencies, variance, method=facts.text("method"))
