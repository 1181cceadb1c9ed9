"""Least-squares machines in a model file: all points with their coefficients, targets and weights.

The targets travel along so that leave-one-out can be computed after loading, as after fitting; where it was computed
before, so does it, which is all that is left of a given kernel matrix.  The path of C and the surface of parameters
that were tried do not.  A machine on landmarks is stored as these, without the points it was trained on; its targets
travel where its leave-one-out does.
"""

import numpy as np

from mercer.errors import InvalidInput, ModelFileError
from mercer.least_squares import LSSVC, LSSVR
from mercer.least_squares.choosing import Task
from mercer.least_squares.machine import BIASES, LeastSquaresMachine
from mercer.models.approximation import decode_approximation, encode_approximation
from mercer.models.fields import Draft, Stored, decode_kernel, decode_labels, encode, encode_labels
from mercer.models.points import count, decode_points, encode_points, refuse_misfit
from mercer.selection.leave_one_out import LeaveOneOut

KINDS = ("features", "objects", "precomputed")


def encode_machine(draft: Draft, machine: LeastSquaresMachine) -> None:
    """Store what predictions, leave-one-out and the public attributes need."""
    if machine.basis is not None:
        raise InvalidInput(
            "basis is a Python function, which a model file cannot carry without running code; add its columns to X, "
            "or pickle the machine and load it only where you trust the file"
        )
    draft.facts["kind"] = machine._kind
    draft.facts["kernel"] = machine.kernel_.to_dict()
    draft.facts["C_"] = encode(float(machine.C_), "C_")
    draft.facts["solver_"] = machine.solver_
    draft.facts["trained_on"] = int(machine._trained_on)
    encode_points(draft, machine.X_fit_)
    draft.tensor("coefficients", machine._coefficients)
    draft.tensor("intercepts", machine._intercepts)
    encode_approximation(draft, machine)
    if machine.approximation_ is None or machine._loo is not None:
        draft.tensor("targets", machine._task.Y)
        if machine._task.weights is not None:
            draft.tensor("weights", machine._task.weights)
    if hasattr(machine, "support_"):
        draft.tensor("support", machine.support_.astype(np.int64))
    if isinstance(machine, LSSVC):
        encode_labels(draft, "classes", machine.classes_)
        draft.tensor("class_weight", machine.class_weight_)
    else:
        draft.facts["single"] = bool(machine._single)
    _encode_leave_one_out(draft, machine._loo)


def _encode_leave_one_out(draft: Draft, found: LeaveOneOut | None) -> None:
    draft.facts["leave-one-out"] = None
    if found is not None:
        draft.facts["leave-one-out"] = {name: encode(float(getattr(found, name)), name) for name in ("gcv", "degrees")}
        for name in ("residuals", "coefficients", "border", "inverse_diagonal", "weights"):
            draft.tensor(f"loo.{name}", getattr(found, name))


def decode_machine(stored: Stored, machine: LeastSquaresMachine, features: int | None) -> None:
    """Set the fitted state of a machine that has its parameters; `features` is n_features_in_ or None."""
    kernel, points = decode_kernel(stored.fact("kernel")), decode_points(stored)
    machine._kind = stored.text("kind", KINDS)  # type: ignore[assignment]
    coefficients = stored.tensor("coefficients", np.float64, (None, None))
    n, k = coefficients.shape
    decode_approximation(stored, machine, kernel, features)
    if (machine._kind == "precomputed" or machine.feature_map_ is not None) != (points is None):
        raise ModelFileError("its points and their kind contradict each other")
    if points is not None and count(points) != n:
        raise ModelFileError(f"it has {count(points)} points and {n} coefficients")
    if machine.feature_map_ is not None and machine.feature_map_.dimension != n:
        raise ModelFileError(f"it has {machine.feature_map_.dimension} features and {n} weights")
    if machine._kind == "features" and points is not None and (features is None or points.shape[1] != features):
        raise ModelFileError(f"its points do not have the {features} features of the machine")
    refuse_misfit(None if points is None else kernel, points)
    _decode_origin(stored, machine, features, n, points is not None)
    machine.X_fit_, machine.kernel_, machine._matrix, machine._points = points, kernel, None, None
    if machine.approximation_ is not None:
        machine.support_vectors_ = points
    machine._coefficients, machine._intercepts = coefficients, stored.tensor("intercepts", np.float64, (k,))
    machine._basis_coefficients = np.empty((0, k))
    machine.C_, machine.solver_ = stored.number("C_"), stored.text("solver_")
    machine.loo_surface_, machine.path_ = (), None
    trained_on = n if machine.approximation_ is None else machine._trained_on
    _decode_task(stored, machine, trained_on if stored.has("targets") else 0, k)
    _decode_outputs(stored, machine, k)
    machine._publish()


def _decode_origin(
    stored: Stored, machine: LeastSquaresMachine, features: int | None, n: int, has_points: bool
) -> None:
    """How many points the machine was trained on, and which of them are left."""
    machine._trained_on = stored.count("trained_on")
    if machine._kind == "precomputed" and features != machine._trained_on:
        raise ModelFileError(f"a kernel matrix of {machine._trained_on} points does not have {features} columns")
    if machine.approximation_ is not None:
        machine.support_ = stored.index("support", None, machine._trained_on)
        if len(machine.support_) not in (0, n):
            raise ModelFileError(f"{len(machine.support_)} of its {n} landmarks are points of its data")
    elif stored.has("support"):
        machine.support_ = stored.index("support", n, 1 << 62 if has_points else machine._trained_on)
    elif machine._trained_on != n:
        raise ModelFileError(f"it was trained on {machine._trained_on} points and has {n} coefficients")


def _decode_task(stored: Stored, machine: LeastSquaresMachine, n: int, k: int) -> None:
    """Targets, weights and leave-one-out."""
    weights = stored.tensor("weights", np.float64, (n,)) if stored.has("weights") else None
    if weights is not None and n and weights.min() < 0.0:
        raise ModelFileError("it has negative weights")
    if not machine.C_ > 0.0:
        raise ModelFileError(f"its C is {machine.C_}")
    bias = machine.bias if isinstance(machine.bias, str) else BIASES[bool(machine.bias)]
    border = np.ones((n, 1 if bias == "free" else 0))
    targets = stored.tensor("targets", np.float64, (n, k)) if stored.has("targets") else np.empty((0, k))
    machine._task = Task(targets, weights, border, 1.0 if bias == "penalised" else 0.0, machine.memory)
    machine._targets, machine._weights = targets, weights
    machine._loo = None
    if stored.fact("leave-one-out") is None:
        return
    facts = Stored(stored.section("leave-one-out"), {})
    machine._loo = LeaveOneOut(
        residuals=stored.tensor("loo.residuals", np.float64, (n, k), finite=False),
        coefficients=stored.tensor("loo.coefficients", np.float64, (n, k)),
        border=stored.tensor("loo.border", np.float64, (border.shape[1], k)),
        inverse_diagonal=stored.tensor("loo.inverse_diagonal", np.float64, (n,)),
        targets=targets,
        weights=stored.tensor("loo.weights", np.float64, (n,)),
        gcv=facts.number("gcv"),
        degrees=facts.number("degrees"),
    )


def _decode_outputs(stored: Stored, machine: LeastSquaresMachine, k: int) -> None:
    """Labels of a classifier, or whether a regression has a single output."""
    if isinstance(machine, LSSVR):
        machine._single = stored.flag("single")
        if machine._single and k != 1:
            raise ModelFileError(f"a single output has {k} columns of coefficients")
    elif isinstance(machine, LSSVC):
        machine.classes_ = decode_labels(stored, "classes")
        classes = len(machine.classes_)
        if classes < 2 or k != (1 if classes == 2 else classes):
            raise ModelFileError(f"{classes} classes do not have {k} columns of coefficients")
        machine.class_weight_ = stored.tensor("class_weight", np.float64, (classes,))
