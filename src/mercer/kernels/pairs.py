"""The pairs (x, z) at which a kernel is evaluated: every x of X with every z of Z, or every x with itself.

A kernel states its value at a pair once, by what is here: inner products, distances, features one after the other.
Over all pairs that is its matrix (n, m), over each point with itself its diagonal (n,), in O(n).  Points are checked
when the first of these is asked for; kernels on objects take X and Z as they were given.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp

from mercer.kernels import distances
from mercer.kernels.checks import Matrix, Points, prepare_pair

Term = Literal["absolute", "smaller", "chi_square"]


class Pairs:
    """All pairs of a point of X with a point of Z, (n, m); Z = None stands for X."""

    def __init__(self, X: Any, Z: Any = None) -> None:
        self.X, self.Z = X, Z

    @cached_property
    def points(self) -> tuple[Points, Points | None]:
        """X (n, d), and Z (m, d) or None, as `checks.prepare` gives them."""
        return prepare_pair(self.X, self.Z)

    def of(self, X: Points, Z: Points | None) -> Self:
        """The same pairs of other points, which are not checked."""
        other = type(self)(X, Z)
        other.points = (X, Z)
        return other

    def mapped(self, function: Callable[[Points], Points]) -> Self:
        """The same pairs of h(x), for a map h of vectors."""
        X, Z = self.points
        return self.of(function(X), None if Z is None else function(Z))

    def features(self) -> Iterator[Self]:
        """The same pairs of points with one feature, for every feature in turn."""
        for x, z in distances.columns(*self.points):
            yield self.of(x, None if self.points[1] is None else z.T)

    @property
    def dimension(self) -> int:
        """Number of features d."""
        return int(self.points[0].shape[1])

    @property
    def sparse(self) -> bool:
        """Whether X or Z is."""
        return any(sp.issparse(points) for points in self.points)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the values, (n, m)."""
        X, Z = self.points
        return X.shape[0], (X if Z is None else Z).shape[0]

    def each(self, function: Callable[["Same"], Matrix]) -> tuple[Matrix, Matrix]:
        """A function (..., n) of single points at the x and at the z of every pair, in shapes that broadcast."""
        left = function(Same(self.X))
        right = left if self.Z is None else function(Same(self.Z))
        return left[..., :, None], right[..., None, :]

    def columns(self) -> Iterator[tuple[Matrix, Matrix]]:
        """Feature p of x and of z, in shapes that broadcast, for every p in turn."""
        return distances.columns(*self.points)

    def products(self) -> Matrix:
        """<x, z>."""
        return distances.product(*self.points)

    def squared_distances(self) -> Matrix:
        """|x - z|^2."""
        return distances.squared_distances(*self.points)

    def manhattan(self) -> Matrix:
        """sum_p |x_p - z_p|."""
        return distances.manhattan(*self.points)

    def merged(self, term: Term) -> Matrix:
        """sum_p h(x_p, z_p), best of sparse points, with the h of that name in `sparse_merge`."""
        return distances.merged(term, *self.points)


class Same(Pairs):
    """Every point of X with itself, (n,)."""

    def __init__(self, X: Any, Z: None = None) -> None:
        super().__init__(X)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the values, (n,)."""
        return (self.points[0].shape[0],)

    def each(self, function: Callable[["Same"], Matrix]) -> tuple[Matrix, Matrix]:
        """A function (..., n) of single points, twice."""
        values = function(self)
        return values, values

    def columns(self) -> Iterator[tuple[Matrix, Matrix]]:
        """Feature p, (n,), twice, for every p in turn."""
        return ((x[:, 0], x[:, 0]) for x, _ in super().columns())

    def products(self) -> Matrix:
        """|x|^2."""
        return distances.squared_norms(self.points[0])

    def squared_distances(self) -> Matrix:
        """Zeros."""
        return np.zeros(self.shape)

    def manhattan(self) -> Matrix:
        """Zeros."""
        return np.zeros(self.shape)

    def merged(self, term: Term) -> Matrix:
        """sum_p x_p for "smaller", else zeros."""
        return distances.row_sums(self.points[0]) if term == "smaller" else np.zeros(self.shape)
