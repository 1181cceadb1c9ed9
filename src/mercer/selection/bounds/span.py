"""Leave-one-out of support vector machines by geometry: the span of support vectors, and radius against margin.

The span of support vector p is its distance, in feature space, from what the free support vectors can put in its place
(Vapnik and Chapelle 2000):

    S_p^2 = min || phi_p - sum_(i free, i != p) lambda_i phi_i ||^2,       sum_i lambda_i = 1 (with a free bias),
    0 <= alpha_i + y_i y_p alpha_p lambda_i <= C.

*Bound.*  A free support vector that is misclassified when left out has alpha_p S_p max(D, 1/sqrt(C)) >= 1, with D the
diameter of the smallest ball that holds all points; bounded support vectors all count.  Each S_p is a quadratic
program; an inexact but feasible answer only makes S_p larger, so the bound stays one.

*Estimate.*  Where leaving p out moves no other point between "no support vector", "free" and "bounded", exactly

    y_p f^(-p)(x_p) = y_p f(x_p) - alpha_p S_p^2

with S_p the distance without the last row of conditions: 1/(M^-1)_pp for free and K_pp - v'M^-1 v for bounded p, M the
(bordered) kernel matrix of the free support vectors.  This is the free-support-vector formula; it is no bound.

*Radius and margin.*  With all points at or beyond the margin, Sum alpha = ||w||^2 and S_p <= D give

    free bias:  errors <= 4 R^2 ||w||^2,  R the radius of the smallest ball that holds the points;
    no bias:    errors <= R^2 ||w||^2,    R^2 = max_i K_ii, a ball around the origin.

The squared hinge is the same machine on K + I/(2C), with no slack left; the hinge with slack is not, see `xi_alpha`.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer import dense
from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import Precomputed
from mercer.problems.program import QuadraticProgram
from mercer.selection.bounds.result import Bound
from mercer.solvers.quadratic import interior_point

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Bias = Literal["free", "none"]

# A dual variable this share of C from an end counts as at that end.
EDGE = 1e-6


@dataclass(frozen=True)
class Ball:
    """The smallest ball that holds the points: radius, and weights (n,) of the points in its centre."""

    radius: float
    weights: Array


def enclosing_ball(K: ArrayLike) -> Ball:
    """Smallest ball around phi(x_1) ... phi(x_n), from their kernel matrix K (n, n).

    Its dual is max sum_i b_i K_ii - b'K b, b >= 0, sum b = 1.  The radius is measured from the centre that is found, so
    that it is never too small.
    """
    matrix = _symmetric(K)
    n, diagonal = len(matrix), np.diagonal(matrix)
    weights = np.full(n, 1.0 / n) if n <= 2 else _simplex(matrix, -0.5 * diagonal, np.zeros(n), np.ones(n), 1.0)
    weights = np.maximum(weights, 0.0) / np.sum(np.maximum(weights, 0.0))
    values = matrix @ weights
    squared = float(np.max(diagonal - 2.0 * values)) + float(weights @ values)
    return Ball(float(np.sqrt(max(squared, 0.0))), weights)


def span_bound(K: ArrayLike, y: ArrayLike, alpha: ArrayLike, C: ArrayLike, *, bias: Bias = "free") -> Bound:
    """Leave-one-out error rate of a support vector machine by the spans of its support vectors.

    K (n, n) kernel matrix, y (n,) of +-1, alpha (n,) dual variables in [0, C].
    """
    machine = _Machine(K, y, alpha, C, bias)
    spans = np.full(machine.n, np.nan)
    for p in np.flatnonzero(machine.free):
        spans[p] = machine.span(int(p))
    reach = 2.0 * enclosing_ball(machine.K).radius if bias == "free" else float(np.sqrt(np.max(np.diagonal(machine.K))))
    with np.errstate(divide="ignore"):
        width = np.maximum(reach, 1.0 / np.sqrt(machine.C))
    possible = machine.bounded | (machine.free & (machine.alpha * spans * width >= 1.0 - 1e-9))
    return Bound.under(
        float(np.mean(possible)),
        "C stays the same when a point is left out",
        "the bias of every smaller machine is determined by free support vectors with room to move",
        ("the machine has free support vectors", bias == "free" and not bool(np.any(machine.free))),
        details={"spans": spans, "possible": possible, "width": width, "spans_by": "quadratic program"},
    )


def span_estimate(
    K: ArrayLike, y: ArrayLike, f: ArrayLike, alpha: ArrayLike, C: ArrayLike, *, bias: Bias = "free"
) -> Bound:
    """Leave-one-out error rate if no other point changes its kind: the share with y f <= alpha S^2.

    details["margins"] (n,) are the y_p f^(-p)(x_p) this assumption gives.
    """
    machine = _Machine(K, y, alpha, C, bias)
    spans = machine.spans_of_free()
    margins = machine.y * np.asarray(f, dtype=np.float64) - machine.alpha * spans**2
    needs = ("no point changes between no, free and bounded support vector when another is left out",)
    details = {"spans": spans, "margins": margins, "possible": margins <= 0, "spans_by": "free support vectors"}
    return Bound(float(np.mean(margins <= 0)), needs, details=details)


def radius_margin(
    K: ArrayLike, y: ArrayLike, f: ArrayLike, alpha: ArrayLike, *, bias: Bias = "free", ridge: float = 0.0
) -> Bound:
    """Leave-one-out error rate of a machine without slack: 4 R^2 ||w||^2 / n, or R^2 ||w||^2 / n without bias.

    ridge: what is added to the diagonal of K, 1/(2C) for the squared hinge; f (n,) are outputs of that matrix.
    """
    machine = _Machine(K, y, alpha, np.inf, bias, ridge)
    coefficients = machine.y * machine.alpha
    norm = float(coefficients @ machine.K @ coefficients)
    margins = machine.y * np.asarray(f, dtype=np.float64)
    if bias == "free":
        radius, factor = enclosing_ball(machine.K).radius, 4.0
    else:
        radius, factor = float(np.sqrt(np.max(np.diagonal(machine.K)))), 1.0
    return Bound.under(
        factor * radius**2 * norm / machine.n,
        ("every point lies at or beyond the margin, y f >= 1", bool(np.any(margins < 1.0 - 1e-3))),
        "the machine is trained to its optimum",
        details={"radius": radius, "margin": 1.0 / np.sqrt(norm) if norm > 0 else np.inf, "norm": norm},
    )


class _Machine:
    """A trained machine: which of its points are free and bounded support vectors, and their spans."""

    def __init__(
        self, K: ArrayLike, y: ArrayLike, alpha: ArrayLike, C: ArrayLike, bias: Bias, ridge: float = 0.0
    ) -> None:
        if bias not in ("free", "none"):
            raise InvalidInput(f"bias must be 'free' or 'none'; it is {bias!r}.")
        self.K = _symmetric(K)
        self.n, self.bias = len(self.K), bias
        if ridge:
            self.K = self.K + ridge * np.eye(self.n)
        self.y = np.asarray(y, dtype=np.float64)
        self.alpha = np.asarray(alpha, dtype=np.float64)
        if self.y.shape != (self.n,) or self.alpha.shape != (self.n,):
            raise InvalidInput(f"y and alpha must have {self.n} entries; shapes {self.y.shape}, {self.alpha.shape}.")
        self.C = np.broadcast_to(np.asarray(C, dtype=np.float64), (self.n,))
        scale = np.where(np.isfinite(self.C), self.C, max(float(np.max(self.alpha)), 1e-300))
        self.bounded: Mask = np.isfinite(self.C) & (self.alpha >= (1.0 - EDGE) * scale)
        self.free: Mask = (self.alpha > EDGE * scale) & ~self.bounded

    def span(self, p: int) -> float:
        """S_p of a free support vector under all conditions; infinite where nothing can take its place."""
        others = np.flatnonzero(self.free & (np.arange(self.n) != p))
        sign = self.y[others] * self.y[p]
        ends = np.stack([-self.alpha[others], self.C[others] - self.alpha[others]]) / (self.alpha[p] * sign)
        lower, upper = np.min(ends, axis=0), np.max(ends, axis=0)
        if self.bias == "none":
            found = _simplex(self.K[np.ix_(others, others)], -self.K[others, p], lower, upper, None)
        elif not others.size or lower.sum() > 1.0 or upper.sum() < 1.0:
            return np.inf
        else:
            found = _simplex(self.K[np.ix_(others, others)], -self.K[others, p], lower, upper, 1.0)
        return self._distance(p, others, found)

    def _distance(self, p: int, others: NDArray[np.intp], weights: Array) -> float:
        inner = float(weights @ self.K[np.ix_(others, others)] @ weights)
        squared = float(self.K[p, p]) - 2.0 * float(self.K[p, others] @ weights) + inner
        return float(np.sqrt(max(squared, 0.0)))

    def spans_of_free(self) -> Array:
        """Distances (n,) of all support vectors from the hull of the other free ones, 0 for other points."""
        free, rest = np.flatnonzero(self.free), np.flatnonzero(self.bounded)
        extra = 1 if self.bias == "free" else 0
        M = np.zeros((free.size + extra, free.size + extra))
        M[: free.size, : free.size] = self.K[np.ix_(free, free)]
        M[free.size :, : free.size] = M[: free.size, free.size :] = 1.0
        across = np.ones((free.size + extra, rest.size))
        across[: free.size] = self.K[np.ix_(free, rest)]
        squared = np.zeros(self.n)
        if not free.size:
            squared[rest] = np.inf if extra else np.diagonal(self.K)[rest]
            return np.sqrt(squared)
        inverse = dense.pseudo_inverse(M)
        with np.errstate(divide="ignore"):
            squared[free] = 1.0 / np.diagonal(inverse)[: free.size]
        squared[rest] = np.diagonal(self.K)[rest] - np.einsum("ij,ik,kj->j", across, inverse, across)
        return np.sqrt(np.maximum(squared, 0.0))


def _simplex(K: Array, linear: Array, lower: Array, upper: Array, total: float | None) -> Array:
    """Minimise 1/2 x'Kx + linear'x between bounds, with the sum fixed where a total is given."""
    n = len(linear)
    if n == 0:
        return np.zeros(0)
    d = np.array([] if total is None else [total])
    gram = Gram(Precomputed(), np.ascontiguousarray(K))
    program = QuadraticProgram(gram, np.arange(n), lower, upper, linear, np.zeros(n), np.full(n, d.size - 1), d)
    return np.clip(interior_point.solve(program, tol=1e-8).variables, lower, upper)


def _symmetric(K: ArrayLike) -> Array:
    matrix = np.asarray(K, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidInput(f"K must be a square matrix; its shape is {matrix.shape}.")
    return matrix
