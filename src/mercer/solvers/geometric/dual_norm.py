"""Largest margins in other norms: the distance of points to a hyperplane measured by the l_q norm.

The l_q distance of x to the hyperplane w'x + b = 0 is |w'x + b| / ||w||_p with 1/p + 1/q = 1, so that

    min ||w||_p     subject to     y_i (w'x_i + b) >= 1

has the largest smallest distance rho = 1 / ||w||_p (Mangasarian 1997; Smola et al. 2000, equations 1.20 to 1.22).  p=1
(l_inf distances, sparse w) and p = inf (l_1 distances) are linear programs for HiGHS, other p are convex and go to
sequential least squares.  For any points u and v of the hulls of the two classes rho <= ||u - v||_q / 2: the weights of
the constraints give such points, and the bound shows how far the margin is from the largest.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize, nnls

from mercer.arrays import Array
from mercer.errors import Infeasible, InvalidInput
from mercer.problems.statement import labels
from mercer.solvers.norm_programs import minimise as linear_program

ACTIVE = 1e-5  # of the margin: constraints this near to equality carry the hyperplane
STEPS = 500


class DualNormMargin(NamedTuple):
    """The hyperplane w'x + b = 0, its margin in the l_q norm, and a bound on all margins."""

    w: Array
    b: float
    margin: float
    bound: float


def dual_norm_margin(X: ArrayLike, y: ArrayLike, p: float = 2.0) -> DualNormMargin:
    """The hyperplane of largest l_q margin between points X (n, d) of labels y (n,) of +-1; p is the norm of w."""
    points = np.asarray(X, dtype=np.float64)
    if points.ndim != 2 or not np.isfinite(points).all():
        raise InvalidInput("X must be a matrix (n, d) of finite numbers")
    if not p >= 1.0:
        raise InvalidInput(f"p must be at least 1, got {p}")
    signs = labels(y, len(points))
    if np.abs(signs.sum()) == len(signs):
        raise InvalidInput("y must hold both classes: one alone has no margin")
    q = np.inf if p == 1.0 else 1.0 if np.isinf(p) else p / (p - 1.0)
    w, b, weights = _linear(points, signs, p) if p == 1.0 or np.isinf(p) else _smooth(points, signs, p)
    margin = float((signs * (points @ w + b)).min() / np.linalg.norm(w, p))
    return DualNormMargin(w, b, margin, _hull_distance(points, signs, weights, q) / 2.0)


def _linear(X: Array, y: Array, p: float) -> tuple[Array, float, Array]:
    """The linear programs; returns w, b and the weights of the points."""
    norm, rows, free = "l1" if p == 1.0 else "linf", -y[:, None] * X, np.full(1, -np.inf)
    found, _ = linear_program(norm, rows, -y[:, None], -np.ones(len(X)), np.zeros(1), free)
    if found is None:
        raise Infeasible("no hyperplane separates the classes: use LinearProgrammingSVC or SVC, which allow errors")
    return found.a, float(found.z[0]), found.multipliers


def _smooth(X: Array, y: Array, p: float) -> tuple[Array, float, Array]:
    """Convex programs, from the linear one of the same points."""
    d = X.shape[1]
    w, b, _ = _linear(X, y, 1.0)
    rows = y[:, None] * np.column_stack((X, np.ones(len(X))))
    scale = float(np.linalg.norm(w, p))

    def value(x: Array) -> float:
        return float(np.sum(np.abs(x[:d] / scale) ** p)) / p

    def slope(x: Array) -> Array:
        return np.append(np.sign(x[:d]) * np.abs(x[:d] / scale) ** (p - 1.0) / scale, 0.0)

    limit = {"type": "ineq", "fun": lambda x: rows @ x - 1.0, "jac": lambda x: rows}
    found = minimize(
        value, np.append(w, b), jac=slope, constraints=[limit], method="SLSQP",
        options={"maxiter": STEPS, "ftol": 1e-15},
    )  # fmt: skip
    w, b = found.x[:d], float(found.x[d])
    values = rows @ found.x
    active = np.flatnonzero(values <= values.min() * (1.0 + ACTIVE))
    # At the optimum the gradient of the norm is a combination of the rows of the active constraints.
    share, _ = nnls(rows[active].T, slope(found.x))
    weights = np.zeros(len(X))
    weights[active] = share
    return w, b, weights


def _hull_distance(X: Array, y: Array, weights: Array, q: float) -> float:
    """||u - v||_q of the points of the two hulls with these weights (n,), each class scaled to a sum of one."""
    ends = []
    for sign in (1.0, -1.0):
        own = np.where(y == sign, np.maximum(weights, 0.0), 0.0)
        own = own if own.sum() > 0.0 else np.where(y == sign, 1.0, 0.0)
        ends.append(own @ X / own.sum())
    return float(np.linalg.norm(ends[0] - ends[1], q))
