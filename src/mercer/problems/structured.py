"""Structured output: one weight vector for joint features of an input and a structure, and a maximum over structures.

    P(w) = 1/2 |w|^2 + sum_i C_i H_i(w) ,      H_i(w) = max over y of  Delta_i(y) - w.psi_i(y)              (margin)
                                               H_i(w) = max over y of  Delta_i(y) (1 - w.psi_i(y))           (slack)

with psi_i(y) = F(x_i, y_i) - F(x_i, y), the loss Delta_i(y) of y where y_i is right, and C_i = C times the weight of
example i (Taskar, Guestrin and Koller 2003; Tsochantaridis, Joachims, Hofmann and Altun 2005).  Slack rescaling is
margin rescaling with Delta_i(y) psi_i(y) in the place of psi_i(y), so that all that follows knows one form only:
planes

    H_i(w) = max over planes of  l - w.v ,

of which one is zero (y = y_i), so that H_i >= 0.  The dual has a distribution alpha_i over the planes of each example,

    D(alpha) = sum_i C_i sum_y alpha_iy l_iy - 1/2 |w|^2 ,   w = sum_i C_i sum_y alpha_iy v_iy ,   D <= min P .

Nobody can list the planes.  `Examples` finds the highest one at a given w, which is inference on the structures; where
that inference is a relaxation, it also has a bound on the maximum, and the primal value made of bounds stays one.
"""

import math
from abc import ABC, abstractmethod
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput
from mercer.problems.certificate import Certificate

Vector = NDArray[np.float64]
Index = NDArray[np.intp]
Rescaling = Literal["margin", "slack"]


class SparseVector(NamedTuple):
    """A vector by its entries: values (m,) at positions (m,), which may repeat and then add up."""

    positions: Index
    values: Vector

    def dot(self, w: Vector) -> float:
        """The product with a dense vector."""
        return float(w[self.positions] @ self.values)

    def add_to(self, w: Vector, factor: float = 1.0) -> None:
        """Add a multiple of this to a dense vector, w += factor * self."""
        np.add.at(w, self.positions, factor * self.values)

    def minus(self, other: "SparseVector") -> "SparseVector":
        """The difference."""
        positions = np.concatenate((self.positions, other.positions))
        return SparseVector(positions, np.concatenate((self.values, -other.values)))

    def merged(self) -> "SparseVector":
        """The same vector with rising positions and no zeros."""
        positions, where = np.unique(self.positions, return_inverse=True)
        values = np.bincount(where, weights=self.values, minlength=positions.size)
        kept = values != 0.0
        return SparseVector(positions[kept], values[kept])


class Plane(NamedTuple):
    """A plane l - w.v below H_i, and an upper bound on H_i(w) at the w it was found for."""

    v: SparseVector
    loss: float
    bound: float


class Sum(NamedTuple):
    """sum_i C_i v_i (size,) and sum_i C_i l_i of the highest planes at some w, and the bounds (n,) on H_i(w)."""

    v: Vector
    loss: float
    bounds: Vector


class Examples(ABC):
    """n inputs with their structures, whose highest planes at any w (size,) can be found."""

    n: int
    size: int

    @abstractmethod
    def plane(self, w: Vector, i: int, *, augmented: bool = True) -> Plane:
        """The highest plane of example i at w.

        Not `augmented`: that of the structure with the best score w.F alone, with -w.v as its bound.
        """

    def planes(self, w: Vector, costs: Vector) -> Sum:
        """The highest planes of all examples at w, weighted with their costs (n,)."""
        v, loss, bounds = np.zeros(self.size), 0.0, np.zeros(self.n)
        for i in range(self.n):
            found = self.plane(w, i)
            found.v.add_to(v, costs[i])
            loss += costs[i] * found.loss
            bounds[i] = found.bound
        return Sum(v, loss, bounds)


def example_costs(C: float, weights: ArrayLike | None, n: int) -> Vector:
    """C times the weight (n,) of each example, one by default."""
    if not (math.isfinite(C) and C > 0.0):
        raise InvalidInput(f"C must be a positive number, got {C}")
    costs = C * (np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64))
    if costs.shape != (n,) or not (np.isfinite(costs).all() and (costs >= 0.0).all()):
        raise InvalidInput(f"weights must be {n} numbers of at least zero, one for each example")
    return np.asarray(costs)


class StructuredProblem:
    """Examples, and the cost C_i (n,) of each."""

    def __init__(self, examples: Examples, C: float = 1.0, weights: Vector | None = None) -> None:
        self.examples, self.C = examples, float(C)
        self.n, self.size = examples.n, examples.size
        self._fingerprint: Vector | None = None
        self.costs = example_costs(self.C, weights, self.n)

    def planes(self, w: Vector) -> Sum:
        """The highest planes of all examples at w (size,)."""
        return self.examples.planes(w, self.costs)

    def primal(self, w: Vector, bounds: Vector) -> float:
        """P(w), or an upper bound where the bounds (n,) on H_i(w) are no more than that."""
        return 0.5 * float(w @ w) + float(self.costs @ np.maximum(bounds, 0.0))

    def dual(self, w: Vector, loss: float) -> float:
        """D where w = sum_i C_i sum_y alpha_iy v_iy and loss = sum_i C_i sum_y alpha_iy l_iy."""
        return loss - 0.5 * float(w @ w)

    def certificate(self, w: Vector, bounds: Vector, dual: float) -> Certificate:
        """Primal value at w (size,), and the dual value of any feasible point.

        A gap within the rounding of sums of this size counts as closed.
        """
        primal = self.primal(w, bounds)
        rounding = np.finfo(np.float64).eps * (self.n + w.size) ** 0.5 * max(abs(primal), abs(dual))
        return Certificate(primal, dual, max(primal - dual, 0.0), rounding=rounding)

    def fingerprint(self) -> Vector:
        """Numbers (3,) that differ for other data, loss or rescaling, whatever C and the weights: a look at one w."""
        if self._fingerprint is None:
            there = np.random.default_rng(0).standard_normal(self.size) / max(self.size, 1) ** 0.5
            found = self.examples.planes(there, np.ones(self.n))
            self._fingerprint = np.array([self.n, found.loss, float(found.v @ there)])
        return self._fingerprint

    def __repr__(self) -> str:
        return f"StructuredProblem(n={self.n}, size={self.size}, C={self.C:g})"
