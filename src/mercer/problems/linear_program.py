"""Machines whose regulariser is a norm of the coefficients: linear programs.

    min over a, b of   ||a|| + sum_i C_i l(y_i, f_i),     f_i = sum_j a_j K_ij + b,     l hinge or epsilon-insensitive

With the l1 norm few coefficients are not zero; with the largest absolute value all are about equal (Mangasarian 1999;
Schoelkopf and Smola 2002, problem 10.1).  The coefficients are no multipliers here, as they are where the regulariser
is the norm of f: the dual has variables delta of its own,

    max  - sum_i C_i l*(y_i, -delta_i / C_i)     subject to   ||K' delta||_* <= 1,   sum_i delta_i = 0,

with the dual norm, the largest absolute value for l1 and the sum of absolute values for the largest.  For labels and
delta_i = y_i beta_i this is max sum beta, 0 <= beta <= C.  K is symmetric and need not be positive definite.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from mercer.arrays import Vector
from mercer.errors import InvalidInput
from mercer.losses import EpsilonInsensitive, Hinge, Loss
from mercer.problems.certificate import Certificate
from mercer.problems.program import GramLike, QuadraticProgram
from mercer.problems.statement import checked_size, labels, positive, vector, weighted

Norm = Literal["l1", "linf"]

NORMS: tuple[Norm, ...] = ("l1", "linf")
# The dual point is moved inside its constraint by what the rounding of K'delta may be, a few units in the last place
# of sums of n terms, so that its value is a bound.
INSIDE = 1e-12


class LinearProgram:
    """The problem at the head of this file, for a matrix (n, n), targets y (n,), costs C w_i and a free bias."""

    def __init__(
        self,
        gram: GramLike,
        y: ArrayLike,
        loss: Loss,
        C: float = 1.0,
        weights: ArrayLike | None = None,
        norm: Norm = "l1",
    ) -> None:
        if norm not in NORMS:
            raise InvalidInput(f"norm must be 'l1' or 'linf', got {norm!r}")
        if type(loss) not in (Hinge, EpsilonInsensitive):
            raise InvalidInput(f"{loss!r} gives no linear program: use Hinge or EpsilonInsensitive")
        n = checked_size(gram)
        self.gram, self.loss, self.norm, self.C = gram, loss, norm, positive("C", C)
        self.y = labels(y, n) if loss.classification else vector("y", y, n)
        self.costs = weighted(self.C, weights, n)
        self.lower, self.upper = loss.dual_box(self.y, self.costs)

    @property
    def n(self) -> int:
        """Number of points."""
        return self.y.size

    def size_of(self, a: Vector) -> float:
        """The norm of coefficients a (n,)."""
        return float(np.abs(a).sum() if self.norm == "l1" else np.abs(a).max(initial=0.0))

    def dual_size_of(self, v: Vector) -> float:
        """The dual norm of v (n,)."""
        return float(np.abs(v).max(initial=0.0) if self.norm == "l1" else np.abs(v).sum())

    def primal(self, a: Vector, bias: float, f0: Vector) -> float:
        """The objective at coefficients a (n,) with f0 = K a (n,)."""
        return self.size_of(a) + float(self.costs @ self.loss.value(self.y, f0 + bias))

    def dual(self, delta: Vector) -> float:
        """The dual objective at a feasible delta (n,)."""
        used = self.costs > 0
        conjugate = self.loss.conjugate(self.y[used], -delta[used] / self.costs[used])
        return -float(self.costs[used] @ conjugate)

    def feasible(self, delta: Vector, multiply: GramLike | None = None) -> Vector:
        """The nearest point of the box with sum zero, made smaller until it satisfies the constraint of the norm."""
        one, zero = np.zeros(self.n, dtype=np.intp), np.zeros(self.n)
        box = QuadraticProgram(self.gram, np.arange(self.n), self.lower, self.upper, zero, zero, one, np.zeros(1))
        delta = box.project(delta)
        size = self.dual_size_of(np.asarray((multiply or self.gram).dot(delta), dtype=np.float64))
        return delta / max(1.0, size * (1.0 + INSIDE * self.n))

    def certificate(self, a: Vector, bias: float, delta: Vector, f0: Vector | None = None) -> Certificate:
        """Values at coefficients a (n,), a bias and a feasible delta (n,)."""
        f0 = np.asarray(self.gram.dot(a), dtype=np.float64) if f0 is None else f0
        primal, dual = self.primal(a, bias, f0), self.dual(delta)
        return Certificate(primal, min(dual, primal), max(primal - dual, 0.0), bias)

    def best_constant(self) -> float:
        """The bias that costs least where f0 = 0."""
        values = np.unique(np.concatenate((self.y - getattr(self.loss, "epsilon", 0.0), self.y)))
        costs = [float(self.costs @ self.loss.value(self.y, np.full(self.n, value))) for value in values]
        return float(values[int(np.argmin(costs))])

    def __repr__(self) -> str:
        return f"LinearProgram({self.loss!r}, n={self.n}, C={self.C:g}, norm={self.norm!r})"
