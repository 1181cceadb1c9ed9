"""What least-squares machines keep beside their expansion: targets, weights and leave-one-out.

The targets travel along so that leave-one-out can be computed after loading, as after fitting; where it was computed
before, so does it, which is all that is left of a given kernel matrix.  The path of C and the surface of parameters
that were tried do not.  A machine on landmarks is stored without the points it was trained on; its targets travel where
its leave-one-out does.
"""

import numpy as np

from mercer.errors import ModelFileError
from mercer.least_squares.choosing import LeastSquaresTask
from mercer.least_squares.machine import LeastSquaresMachine
from mercer.models.fields import Draft, Stored, encode
from mercer.selection.leave_one_out import LeaveOneOut


def encode_training(draft: Draft, machine: LeastSquaresMachine) -> None:
    """Store targets, weights and the leave-one-out that was computed."""
    task, found = machine._task, machine._loo
    if machine.approximation_ is None or found is not None:
        draft.tensor("targets", task.Y)
        if task.weights is not None:
            draft.tensor("weights", task.weights)
    draft.facts["leave-one-out"] = None
    if found is not None:
        draft.facts["leave-one-out"] = {name: encode(float(getattr(found, name)), name) for name in ("gcv", "degrees")}
        for name in ("residuals", "coefficients", "border", "inverse_diagonal", "weights"):
            draft.tensor(f"loo.{name}", getattr(found, name))


def decode_training(stored: Stored, machine: LeastSquaresMachine) -> None:
    """Set what leave-one-out is computed from, and leave-one-out where it was stored."""
    k, points = machine._dual_coef_.shape
    n = points if machine.approximation_ is None else machine.shape_fit_[0]
    n = n if stored.has("targets") else 0
    weights = stored.tensor("weights", np.float64, (n,)) if stored.has("weights") else None
    if weights is not None and n and weights.min() < 0.0:
        raise ModelFileError("it has negative weights")
    if not machine.C_ > 0.0:
        raise ModelFileError(f"its C is {machine.C_}")
    border = np.ones((n, 1 if machine._bias == "free" else 0))
    targets = stored.tensor("targets", np.float64, (n, k)) if stored.has("targets") else np.empty((0, k))
    machine._task = LeastSquaresTask(
        targets, weights, border, 1.0 if machine._bias == "penalised" else 0.0, machine._resources()
    )
    machine._matrix, machine._loo, machine.loo_surface_, machine.path_ = None, None, (), None
    machine.basis_coef_ = machine._shaped(machine._basis_coefficients)
    if stored.fact("leave-one-out") is None:
        return
    facts = stored.part("leave-one-out")
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
