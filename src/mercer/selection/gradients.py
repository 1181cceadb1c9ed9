"""Leave-one-out criteria with their derivatives by the kernel matrix and by C.

Write M = A + r I for the scaled system (see `mercer.solvers.linear.bordered`), G for the leading block of its bordered
inverse, a = G Z, and e_i = a_i / (D_i G_ii) for the leave-one-out residuals.  Since dG = -G dM G, bordered or not, a
criterion J = sum_i g_i(e_i) changes by

    dJ = tr(S dM),    S = G diag(beta) G - 1/2 (p a' + a p'),
    beta_i = g_i'(e_i) a_i / (D_i G_ii^2),    p = G (g'(e) / (D G_ii)),

summed over outputs.  One matrix S (n, n), two n^3 of work, serves every kernel parameter by an elementwise product
with the derivative of the kernel matrix; and the derivative by log C is -r tr S.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from mercer import dense, threads
from mercer.selection.leave_one_out import LeaveOneOut, summarise
from mercer.solvers.linear.bordered import Array, Bordered, border_share, bordered, cholesky, eliminate

CriterionName = Literal["loo", "smooth", "gcv"]
Criterion = Callable[[Array, Array, Array], tuple[float, Array]]

STEEPNESS = 4.0  # of the step that stands for an error


def squared_error(errors: Array, targets: Array, weights: Array) -> tuple[float, Array]:
    """Weighted mean of the squared leave-one-out residuals (m, k), summed over outputs; and its slope by them."""
    total = np.sum(weights)
    return float(weights @ np.sum(errors**2, axis=1) / total), 2.0 * (weights / total)[:, None] * errors


def smooth_error(errors: Array, targets: Array, weights: Array) -> tuple[float, Array]:
    """A smooth stand-in for the leave-one-out error rate of targets +-1, mean of 1 / (1 + exp(s y f)); and its slope.

    y f = 1 - y e is the leave-one-out margin, s the steepness; several columns count as so many binary machines.
    """
    total = np.sum(weights)
    steps = expit(-STEEPNESS * (1.0 - targets * errors))
    slope = STEEPNESS * (weights / total)[:, None] * steps * (1.0 - steps) * targets
    return float(weights @ np.sum(steps, axis=1) / total), np.asarray(slope)


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
    poll: dense.Poll | None = None,
) -> Evaluation:
    """The criterion of kernel matrix K (n, n), targets Y (n,) or (n, k) and C, with its derivatives: 2 n^3 operations.

    criterion "loo": mean squared leave-one-out residual; "smooth": smoothed leave-one-out error rate for targets
    +-1; "gcv": generalised cross-validation.  Points of weight zero do not count.  `poll` is called on the way.
    """
    system = bordered(K, Y, weights=weights, border=border, constant=constant)
    ridge, q = 1.0 / C, system.border.shape[1]
    columns = system.columns
    factor = cholesky(system.matrix, ridge, poll)
    solved = dense.solve(factor, columns)
    threads.apart(lambda: dense.invert_factored(factor), poll)
    G = factor
    point = summarise(system, ridge, solved, np.diagonal(G).copy())
    a, _ = eliminate(solved, system.border)
    if q:
        U = border_share(solved[:, :q], system.border)
        G -= U @ U.T
    if criterion == "gcv":
        value, S = point.gcv, _gcv_slope(system, G, a)
    else:
        value, S = _loss_slope(system, G, a, squared_error if criterion == "loo" else smooth_error)
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
    value, slope = loss(errors, system.all_targets[system.used], D**2)
    p = G @ (slope / (D * diagonal)[:, None])
    S = _congruence(G, np.sum(slope * a, axis=1) / (D * diagonal**2))
    S -= 0.5 * (p @ a.T + a @ p.T)
    return value, S


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
    total = np.zeros_like(G, order="F")
    for sign in (1.0, -1.0):
        chosen = np.flatnonzero(sign * beta > 0)
        if chosen.size:
            dense.add_outer(total, np.asfortranarray(G[:, chosen] * np.sqrt(sign * beta[chosen])), sign)
    dense.mirror(total)
    return total
