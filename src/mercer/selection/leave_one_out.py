"""Exact leave-one-out of least-squares machines from the fit itself.

Let G be the leading block of the inverse of the (bordered) system matrix and c the coefficients.  The machine trained
without point i, everything else and the ridge r = 1/C unchanged, misses its target by

    y_i - f^(-i)(x_i) = c_i / G_ii

(Rifkin 2002, section 3.3, with the hat matrix H = K G in the place of G that the printed formula has; the ridge, not
lambda, is what stays fixed).  The same number divides every output, because G does not depend on the targets.  With
free bias, weights or a semiparametric basis the identity is the same; only G changes, see
`mercer.solvers.linear.bordered`.

Generalised cross-validation replaces every 1 - H_ii = r G_ii by their mean (Craven and Wahba 1979).

Of the inverse only its diagonal is needed: with A + r I = L L' it is the column sums of squares of L^-1, n^3/3
operations after the n^3/3 of the factor, half of what the whole inverse would take.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer import dense
from mercer.errors import InvalidInput
from mercer.selection.reductions import Factored
from mercer.solvers.linear.bordered import Array, Bordered, border_share, bordered, check_ridge, cholesky, eliminate


@dataclass(frozen=True)
class LeaveOneOut:
    """Leave-one-out of one machine.

    residuals (n, k): y_i - f^(-i)(x_i); coefficients c (n, k); border b (q, k): the bias and basis coefficients;
    inverse_diagonal (n,): G_ii, zero where the weight is zero; targets (n, k); weights (n,); gcv: the generalised
    cross-validation estimate of the mean squared error; degrees: tr H, the degrees of freedom of the fit.
    """

    residuals: Array
    coefficients: Array
    border: Array
    inverse_diagonal: Array
    targets: Array
    weights: Array
    gcv: float
    degrees: float

    @cached_property
    def predictions(self) -> Array:
        """f^(-i)(x_i) (n, k)."""
        return self.targets - self.residuals

    @property
    def mean_squared_error(self) -> float:
        """Weighted mean over points of the squared residual, summed over outputs (PRESS over n)."""
        return float(self.weights @ np.sum(self.residuals**2, axis=1) / np.sum(self.weights))

    def error_rate(self) -> float:
        """Weighted fraction of points whose class is missed, for targets of +-1 (one column, or one per class)."""
        return error_rate(self.predictions, self.targets, self.weights)


def error_rate(predictions: Array, targets: Array, weights: Array) -> float:
    """Weighted fraction of wrong classes: by sign for one column, by the largest of several.

    An output of 0 is the negative class and equal outputs are the first of their classes, as in `LSSVC.predict`.
    """
    if targets.shape[1] == 1:
        wrong = (predictions[:, 0] > 0) != (targets[:, 0] > 0)
    else:
        wrong = np.argmax(predictions, axis=1) != np.argmax(targets, axis=1)
    return float(weights @ wrong / np.sum(weights))


def leave_one_out(
    K: ArrayLike,
    Y: ArrayLike,
    ridge: float,
    *,
    weights: ArrayLike | None = None,
    border: ArrayLike | None = None,
    constant: float = 0.0,
    projected: bool = False,
    overwrite: bool = False,
) -> LeaveOneOut:
    """Leave-one-out of the machine with kernel matrix K (n, n), targets Y (n,) or (n, k) and ridge r = 1/C.

    border (n, q): the functions outside the penalty, a column of ones for a free bias; constant: added to every
    kernel value, 1 for a penalised bias; weights (n,): the ridge of point i is r / w_i; projected: K is positive
    definite only on vectors orthogonal to the border; overwrite: the memory of K is reused.  Costs 2/3 n^3 operations.
    """
    check_ridge(ridge)
    system = bordered(K, Y, weights=weights, border=border, constant=constant, projected=projected, overwrite=overwrite)
    columns = system.columns
    factor = cholesky(system.matrix, ridge)
    solved = dense.solve(factor, columns)
    return summarise(system, ridge, solved, dense.inverse_diagonal(factor))


def summarise(system: Bordered, ridge: float, solved: Array, diagonal: Array) -> LeaveOneOut:
    """Leave-one-out from S = (A + r I)^-1 [B, Z] (m, q + k) and the diagonal of (A + r I)^-1 (m,)."""
    q, scale, n = system.border.shape[1], system.scale, len(system.all_targets)
    U = border_share(solved[:, :q], system.border)
    a, b = eliminate(solved, system.border)
    if system.moved is not None:
        b = b - system.moved @ a
    G = diagonal - np.einsum("ij,ij->i", U, U)
    m, trace = len(G), float(np.sum(G))
    k = system.targets.shape[1]
    coefficients, inverse, weights = np.zeros((n, k)), np.zeros(n), np.zeros(n)
    coefficients[system.used] = scale[:, None] * a
    inverse[system.used] = scale**2 * G
    weights[system.used] = scale**2
    residuals = np.empty((n, k))
    residuals[system.used] = a / (scale * G)[:, None]
    if system.unused.size:
        outside = system.across @ coefficients[system.used] + system.outside @ b
        residuals[system.unused] = system.all_targets[system.unused] - outside
    return LeaveOneOut(
        residuals=residuals,
        coefficients=coefficients,
        border=b,
        inverse_diagonal=inverse,
        targets=system.all_targets,
        weights=weights,
        gcv=float(np.sum(a**2)) / float(np.sum(scale**2)) / (trace / m) ** 2 if trace > 0 else np.inf,
        degrees=m - ridge * trace,
    )


def linear_leave_one_out(
    X: ArrayLike, Y: ArrayLike, ridge: float, *, weights: ArrayLike | None = None, border: ArrayLike | None = None
) -> LeaveOneOut:
    """Leave-one-out of the linear machine f(x) = w'x through d x d systems: O(n d^2), for d below n and r > 0."""
    if not ridge > 0:
        raise InvalidInput(f"ridge must be positive for the d x d form; it is {ridge!r}.")
    features, system = linear_system(X, Y, weights=weights, border=border)
    solved, diagonal = next(Factored(features).resolve(system.columns, [ridge]))
    return summarise(system, ridge, solved, diagonal)


def linear_system(
    X: ArrayLike, Y: ArrayLike, *, weights: ArrayLike | None = None, border: ArrayLike | None = None
) -> tuple[Array, Bordered]:
    """F = D X (m, d) with F F' in the place of A, and the rest of the system (its `matrix` is empty)."""
    points = np.asarray(X, dtype=np.float64)
    targets = np.asarray(Y, dtype=np.float64)
    targets = targets[:, None] if targets.ndim == 1 else targets
    n = len(points)
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    P = np.empty((n, 0)) if border is None else np.asarray(border, dtype=np.float64).reshape(n, -1)
    used: NDArray[np.intp] = np.flatnonzero(w > 0)
    unused: NDArray[np.intp] = np.flatnonzero(w == 0)
    scale = np.sqrt(w[used])
    system = Bordered(
        matrix=np.empty((0, 0)),
        targets=scale[:, None] * targets[used],
        border=scale[:, None] * P[used],
        scale=scale,
        used=used,
        unused=unused,
        across=points[unused] @ points[used].T,
        outside=P[unused],
        all_targets=targets,
    )
    return scale[:, None] * points[used], system
