"""Leave-one-out criteria with their derivatives by the kernel matrix and by C.

Write M = A + r I for the scaled system (see `mercer.selection.bordered`), G for the leading block of its bordered
inverse, a = G Z, and e_i = a_i / (D_i G_ii) for the leave-one-out residuals.  Since dG = -G dM G, bordered or not, a
criterion J = sum_i g_i(e_i) changes by

    dJ = tr(S dM),    S = G diag(beta) G - 1/2 (p a' + a p'),
    beta_i = g_i'(e_i) a_i / (D_i G_ii^2),    p = G (g'(e) / (D G_ii)),

summed over outputs.  One matrix S (n, n), two n^3 of work, serves every kernel parameter by an elementwise product
with the derivative of the kernel matrix; and the derivative by log C is -r tr S.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import blas, cho_solve
from scipy.special import expit

from mercer import unlocked
from mercer.selection.bordered import Array, Bordered, bordered, cholesky, eliminate
from mercer.selection.leave_one_out import LeaveOneOut, summarise

CriterionName = Literal["loo", "smooth", "gcv"]


class Criterion(Protocol):
    """A function of the leave-one-out: its value, and its slopes by e (m, k) given that G stays in e alone."""

    def value(self, errors: Array, targets: Array, weights: Array) -> float:
        """The criterion at residuals (m, k) for targets (m, k) and weights (m,)."""
        ...

    def slope(self, errors: Array, targets: Array, weights: Array) -> Array:
        """Its derivative by the residuals (m, k)."""
        ...


class SquaredError:
    """Weighted mean of the squared leave-one-out residuals, summed over outputs."""

    def value(self, errors: Array, targets: Array, weights: Array) -> float:
        """Sum w e^2 / sum w."""
        return float(weights @ np.sum(errors**2, axis=1) / np.sum(weights))

    def slope(self, errors: Array, targets: Array, weights: Array) -> Array:
        """2 w e / sum w."""
        return 2.0 * (weights / np.sum(weights))[:, None] * errors


class SmoothError:
    """A smooth stand-in for the leave-one-out error rate of targets +-1: mean of 1 / (1 + exp(steepness y f)).

    y f = 1 - y e is the leave-one-out margin; several columns count as so many binary machines.
    """

    def __init__(self, steepness: float = 4.0) -> None:
        self.steepness = steepness

    def value(self, errors: Array, targets: Array, weights: Array) -> float:
        """Weighted mean of the logistic step."""
        steps = expit(-self.steepness * (1.0 - targets * errors))
        return float(weights @ np.sum(steps, axis=1) / np.sum(weights))

    def slope(self, errors: Array, targets: Array, weights: Array) -> Array:
        """Its derivative."""
        steps = expit(-self.steepness * (1.0 - targets * errors))
        return np.asarray(self.steepness * (weights / np.sum(weights))[:, None] * steps * (1.0 - steps) * targets)


@dataclass(frozen=True)
class Evaluation:
    """A criterion at one point: its value, the leave-one-out behind it, and its derivatives.

    by_matrix (n, n): dJ = sum of by_matrix times dK, symmetric; by_log_C: dJ / d log C.
    """

    value: float
    leave_one_out: LeaveOneOut
    by_matrix: Array
    by_log_C: float


def evaluate(
    K: ArrayLike,
    Y: ArrayLike,
    C: float,
    *,
    criterion: CriterionName = "loo",
    weights: ArrayLike | None = None,
    border: ArrayLike | None = None,
    constant: float = 0.0,
) -> Evaluation:
    """The criterion of kernel matrix K (n, n), targets Y (n,) or (n, k) and C, with its derivatives: 2 n^3 operations.

    criterion "loo": mean squared leave-one-out residual; "smooth": smoothed leave-one-out error rate for targets
    +-1; "gcv": generalised cross-validation.  Points of weight zero do not count.
    """
    system = bordered(K, Y, weights=weights, border=border, constant=constant)
    ridge, q = 1.0 / C, system.border.shape[1]
    columns = system.columns
    factor = cholesky(system.matrix, ridge)
    solved = cho_solve((factor, True), columns, check_finite=False)
    unlocked.invert_factored(factor)
    G = factor
    point = summarise(system, columns, ridge, solved, np.diagonal(G).copy())
    a, _, U = eliminate(solved, columns, q)
    if q:
        G -= U @ U.T
    if criterion == "gcv":
        value, S = point.gcv, _gcv_slope(system, G, a)
    else:
        loss: Criterion = SquaredError() if criterion == "loo" else SmoothError()
        value, S = _loss_slope(system, G, a, loss)
    by_log_C = -ridge * float(np.trace(S))
    if weights is not None:
        S *= system.scale[:, None]
        S *= system.scale
    if system.unused.size:
        whole = np.zeros((len(system.all_targets),) * 2)
        whole[np.ix_(system.used, system.used)] = S
        S = whole
    return Evaluation(value, point, S, by_log_C)


def _loss_slope(system: Bordered, G: Array, a: Array, loss: Criterion) -> tuple[float, Array]:
    """J and S for a criterion of the leave-one-out residuals."""
    D, diagonal = system.scale, np.diagonal(G)
    errors = a / (D * diagonal)[:, None]
    targets, weights = system.all_targets[system.used], D**2
    slope = loss.slope(errors, targets, weights)
    p = G @ (slope / (D * diagonal)[:, None])
    S = _congruence(G, np.sum(slope * a, axis=1) / (D * diagonal**2))
    S -= 0.5 * (p @ a.T + a @ p.T)
    return loss.value(errors, targets, weights), S


def _gcv_slope(system: Bordered, G: Array, a: Array) -> Array:
    """S for J = |a|^2 m^2 / (sum w (tr G)^2), with d|a|^2 = -2 (G a)'dM a and d tr G = -tr(G dM G)."""
    m, total, trace = len(G), float(np.sum(system.scale**2)), float(np.trace(G))
    size = float(np.sum(a**2))
    p = G @ a
    S = _congruence(G, np.full(m, 2.0 * size * m**2 / (total * trace**3)))
    S -= (p @ a.T + a @ p.T) * (m**2 / (total * trace**2))
    return S


def _congruence(G: Array, beta: Array) -> Array:
    """G diag(beta) G (n, n), by one symmetric product for each sign of beta: n^3 operations in all."""
    total: Array | None = None
    for sign in (1.0, -1.0):
        chosen = np.flatnonzero(sign * beta > 0)
        if chosen.size:
            part = np.asfortranarray(G[:, chosen] * np.sqrt(sign * beta[chosen]))
            product = blas.dsyrk(sign, part, lower=1)
            total = product if total is None else total + product
    if total is None:
        return np.zeros_like(G)
    unlocked.mirror(total)
    return total
