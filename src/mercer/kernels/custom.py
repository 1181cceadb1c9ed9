"""Kernels that come from outside: a matrix given beforehand, and any Python function on any objects."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.errors import InvalidInput
from mercer.kernels.base import Kernel
from mercer.kernels.checks import Matrix, Points, positive
from mercer.kernels.pairs import Pairs, Same


def name_of(function: Any) -> str:
    """The name under which the source knows a function, for printing."""
    return str(getattr(function, "__qualname__", None) or repr(function))


def callable_on(value: Any, name: str, points: str) -> Any:
    """A function of these points."""
    if not callable(value):
        raise InvalidInput(f"{name} must be callable {points}, got {value!r}")
    return value


@dataclass(frozen=True)
class Precomputed(Kernel):
    """The matrix is given in place of the points: for training K (n, n), for prediction K (m, n) of new by old points.

    Calling the kernel on such a matrix checks it and gives it back.
    """

    def _values(self, pairs: Pairs) -> Matrix:
        if pairs.Z is not None:
            raise InvalidInput(
                "a precomputed kernel takes one matrix, that of the points of X by the training points; leave Z out"
            )
        matrix = pairs.points[0]
        if not isinstance(pairs, Same):
            return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix)
        if matrix.shape[0] != matrix.shape[1]:
            raise InvalidInput(
                f"X of shape {matrix.shape} has no diagonal of k(x, x); give the square matrix of the points"
            )
        return np.array(matrix.diagonal())


@dataclass(frozen=True)
class Custom(Kernel):
    """Any Python function as a kernel, on any objects: strings, graphs, records, rows of a matrix.

    function: k(x, z) -> number for two points; with matrix=True, k(X, Z) -> (n, m) for two sets of points, as
        scikit-learn's callable kernels.  It must be symmetric: for one set of points only half is evaluated.
    definite: whether the function is positive definite; say False where it is not, so that solvers that need it refuse.
    """

    function: Callable[[Any, Any], Any]
    matrix: bool = False
    definite: bool = True
    _traits = frozenset({"objects"})
    _checks = {"function": partial(callable_on, points="as k(x, z)")}

    def __repr__(self) -> str:
        """The expression that builds it where the name of the function is known."""
        return f"Custom(function={name_of(self.function)}, matrix={self.matrix}, definite={self.definite})"

    @property
    def conditional_order(self) -> int:
        """0 when declared positive definite, else -1."""
        return 0 if self.definite else -1

    def _values(self, pairs: Pairs) -> Matrix:
        X, Z = _points(pairs.X), None if pairs.Z is None else _points(pairs.Z)
        return self._diagonal(X) if isinstance(pairs, Same) else self._matrix(X, Z)

    def _matrix(self, X: Points, Z: Points | None) -> Matrix:
        if self.matrix:
            return self._checked(self.function(X, X if Z is None else Z), (_size(X), _size(X if Z is None else Z)))
        left = _items(X)
        right = left if Z is None else _items(Z)
        values = np.empty((len(left), len(right)))
        for i, x in enumerate(left):
            for j in range(0 if Z is not None else i, len(right)):
                values[i, j] = self.function(x, right[j])
                if Z is None:
                    values[j, i] = values[i, j]
        return self._checked(values, values.shape)

    def _diagonal(self, X: Points) -> Matrix:
        n = _size(X)
        if not self.matrix:
            return self._checked(np.array([float(self.function(x, x)) for x in _items(X)]), (n,))
        # Square pieces of 16 points: 16 values for each one needed, but a sixteenth of the calls.
        pieces = [X[start : start + 16] for start in range(0, n, 16)]
        return np.concatenate([np.diagonal(self._matrix(piece, None)) for piece in pieces])

    def _checked(self, values: Any, shape: tuple[int, ...]) -> Matrix:
        result = np.asarray(values.toarray() if sp.issparse(values) else values, dtype=np.float64)
        if result.shape != shape:
            raise InvalidInput(
                f"function {name_of(self.function)} gave shape {result.shape} for points that need {shape}; "
                "use matrix=True for a function of two sets of points, matrix=False for one of two points"
            )
        if not np.isfinite(result).all():
            raise InvalidInput(
                f"function {name_of(self.function)} gave NaN or infinite values; check it on your points"
            )
        return result


@dataclass(frozen=True)
class Separable(Kernel):
    """scale * g(x) g(z) for any function g of a set of points to numbers (n,): a matrix of rank one.

    A product a(x) b(z) of two functions is symmetric and positive definite only when b = c a with c > 0, which is this
    form (Hamers 2004, section 4.5); (K + ridge I) is then solved in O(n).
    """

    function: Callable[[Any], Any]
    scale: float = 1.0
    _checks = {"function": partial(callable_on, points="on a set of points"), "scale": positive}
    _traits = frozenset({"objects"})

    def __repr__(self) -> str:
        """The expression that builds it where the name of the function is known."""
        return f"Separable(function={name_of(self.function)}, scale={self.scale!r})"

    def feature(self, X: Any) -> Matrix:
        """g(x_i), (n,): the one feature, before scaling."""
        values = np.asarray(self.function(X), dtype=np.float64)
        if values.shape != (_size(X),) or not np.isfinite(values).all():
            raise InvalidInput(
                f"function {name_of(self.function)} must give one finite number per point, (n,), got {values.shape}"
            )
        return values

    def _product(self, pairs: Pairs) -> Matrix:
        """g(x) g(z)."""
        left, right = pairs.each(lambda same: self.feature(same.X))
        return left * right

    def _values(self, pairs: Pairs) -> Matrix:
        return self.scale * self._product(pairs)

    def _slopes(self, pairs: Pairs) -> dict[str, Matrix]:
        return {"scale": self._product(pairs)}


def _points(X: Any) -> Points:
    """Any points, in a form that can be counted and taken apart."""
    points = sp.csr_array(X) if sp.issparse(X) else X
    if not hasattr(points, "__len__") and not hasattr(points, "shape"):
        points = list(points)
    if _size(points) == 0:
        raise InvalidInput("X is empty; at least one point is needed")
    return points


def _size(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _items(X: Any) -> list[Any]:
    """The points one by one; rows of a sparse matrix stay sparse, (1, d)."""
    return [X[[i]] for i in range(X.shape[0])] if sp.issparse(X) else list(X)
