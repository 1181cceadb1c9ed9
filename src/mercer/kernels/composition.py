"""Kernels seen through something: normalised, on some of the columns, after a map; and rule 7, with its limits."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.kernels.algebra import Composite, Single, require_definite, require_kernel
from mercer.kernels.base import Kernel, prefixed
from mercer.kernels.custom import name_of
from mercer.kernels.distances import take_columns
from mercer.kernels.dot_product import Bilinear
from mercer.kernels.points import Matrix, Points, column_numbers, prepare, prepare_pair, whole


@dataclass(frozen=True)
class Normalised(Single):
    """k(x, z) / sqrt(k(x, x) k(z, z)): the cosine in feature space; points with k(x, x) = 0 have similarity 0."""

    kernel: Kernel

    def __post_init__(self) -> None:
        require_definite(self.kernel, "kernel", "normalising")

    @property
    def dot_product(self) -> bool:
        """False: it depends on the norms as well."""
        return False

    def of_distance(self, r: Any, dimension: int) -> Matrix:
        """The inner kernel at distances r over its value at zero."""
        values = self.kernel.of_distance(r, dimension)
        return values / self.kernel.of_distance(np.zeros(1), dimension)

    def _root(self, X: Any) -> Matrix:
        """1 / sqrt(k(x, x)), and 0 where that is infinite."""
        diagonal = self.kernel._diagonal(self.kernel._prepare(X))
        return np.where(diagonal > 0.0, 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)), 0.0)

    def _evaluate(self, X: Points, Z: Points | None) -> Matrix:
        values = self.kernel._matrix(X, Z)
        left = self._root(X)
        right = left if Z is None else self._root(Z)
        result = values * left[:, None] * right[None, :]
        return result if Z is not None else 0.5 * (result + result.T)

    def _diagonal(self, X: Points) -> Matrix:
        return np.where(self.kernel._diagonal(X) > 0.0, 1.0, 0.0)

    def _derivatives(self, X: Points, Z: Points | None) -> dict[str, Matrix]:
        value = self._evaluate(X, Z)
        inner = self.kernel._slopes_of(X, Z)
        left = self._root(X)
        right = left if Z is None else self._root(Z)
        rows = self._logarithmic(X)
        others = rows if Z is None else self._logarithmic(Z)
        result = {
            name: inner[name] * left[:, None] * right[None, :]
            - value * (rows[name][..., :, None] + others[name][..., None, :])
            for name in inner
        }
        return prefixed("kernel", result)

    def _logarithmic(self, X: Points) -> dict[str, Matrix]:
        """Half the derivative of log k(x, x) by each parameter."""
        prepared = self.kernel._prepare(X)
        scale = 0.5 * np.square(self._root(X))
        return {name: slope * scale for name, slope in self.kernel._diagonal_derivatives(prepared).items()}

    def _diagonal_derivatives(self, X: Points) -> dict[str, Matrix]:
        inner = self.kernel._diagonal_derivatives(X)
        return prefixed("kernel", {name: np.zeros_like(slope) for name, slope in inner.items()})


@dataclass(frozen=True)
class Restricted(Composite):
    """k on some of the columns only, in the order given: one kernel for each source of data, then combine them.

    It is not isotropic and has no support radius, because points far apart in the other columns may be equal here.
    """

    kernel: Kernel
    columns: tuple[int, ...]

    def __post_init__(self) -> None:
        require_kernel(self.kernel, "kernel")
        if self.kernel.objects:
            raise InvalidInput(f"{self.kernel!r} works on objects, which have no columns; restrict a kernel on vectors")
        self._set(columns=column_numbers(self.columns, "columns"))

    @property
    def stationary(self) -> bool:
        """As the inner kernel."""
        return self.kernel.stationary

    @property
    def conditional_order(self) -> int:
        """As the inner kernel: polynomials of some columns are polynomials of all."""
        return self.kernel.conditional_order

    def _chosen(self, X: Points | None) -> Points | None:
        if X is None:
            return None
        if max(self.columns) >= X.shape[1]:
            raise InvalidInput(
                f"columns names column {max(self.columns)} and the points have {X.shape[1]} features, "
                f"numbered from 0 to {X.shape[1] - 1}"
            )
        return take_columns(X, self.columns)

    def _prepare(self, X: Any) -> Points:
        return self._chosen(prepare(X, "X"))

    def _evaluate(self, X: Points, Z: Points | None) -> Matrix:
        left, right = prepare_pair(X, Z)
        return self.kernel._matrix(self._chosen(left), self._chosen(right))

    def _diagonal(self, X: Points) -> Matrix:
        return self.kernel._diagonal(self.kernel._prepare(X))

    def _derivatives(self, X: Points, Z: Points | None) -> dict[str, Matrix]:
        left, right = prepare_pair(X, Z)
        return prefixed("kernel", self.kernel._slopes_of(self._chosen(left), self._chosen(right)))

    def _diagonal_derivatives(self, X: Points) -> dict[str, Matrix]:
        return prefixed("kernel", self.kernel._diagonal_derivatives(self.kernel._prepare(X)))


@dataclass(frozen=True)
class Mapped(Composite):
    """k(h(x), h(z)) for any map h of a set of points to a set of points (sequence of objects in, matrix out).

    A positive definite k stays so, and so does order 1; polynomials of higher order are not kept by h, so a kernel of
    conditional order 2 or more is refused.
    """

    kernel: Kernel
    function: Callable[[Any], Any]

    def __post_init__(self) -> None:
        require_definite(self.kernel, "kernel", "composition with a map", order=1)
        if not callable(self.function):
            raise InvalidInput(f"function must be callable on a set of points, got {self.function!r}")

    def __repr__(self) -> str:
        """The expression that builds it where the name of the function is known."""
        return f"Mapped(kernel={self.kernel!r}, function={name_of(self.function)})"

    @property
    def conditional_order(self) -> int:
        """As the inner kernel, 0 or 1."""
        return self.kernel.conditional_order

    @property
    def objects(self) -> bool:
        """True: h takes the points as they are given."""
        return True

    def _prepare(self, X: Any) -> Points:
        return self.kernel._prepare(self.function(X))

    def _image(self, Z: Any) -> Any:
        return None if Z is None else self.function(Z)

    def _evaluate(self, X: Points, Z: Points | None) -> Matrix:
        return self.kernel._matrix(self.function(X), self._image(Z))

    def _diagonal(self, X: Points) -> Matrix:
        return self.kernel._diagonal(X)

    def _derivatives(self, X: Points, Z: Points | None) -> dict[str, Matrix]:
        return prefixed("kernel", self.kernel._slopes_of(self.function(X), self._image(Z)))

    def _diagonal_derivatives(self, X: Points) -> dict[str, Matrix]:
        return prefixed("kernel", self.kernel._diagonal_derivatives(X))


def polarised(function: Callable[[Any], float], dimension: int) -> Bilinear:
    """The kernel (l(x + z) - l(x - z)) / 4 of a function l of one point, where that is a kernel.

    Rule 7 of Hamers (2004, section 4.2) allows every l >= 0 with its minimum at 0.  That is not true: l(x) = x^4 gives
    2 x z (x^2 + z^2), whose matrix on the points 1, 2 is [[4, 20], [20, 64]], of determinant -144.  It does hold for
    quadratic forms l(x) = x'Ax with A positive semidefinite, where the result is x'Az.  So A is read off l, l is
    compared with it at random points of `dimension` features, and any other l is refused.
    """
    unit = np.eye(whole(dimension, "dimension", 1))
    A = np.array([[0.25 * (function(p + q) - function(p - q)) for q in unit] for p in unit], dtype=np.float64)
    A = 0.5 * (A + A.T)
    trials = np.random.default_rng(0).standard_normal((16, dimension)) * np.geomspace(0.1, 10.0, 16)[:, None]
    values = np.array([function(x) for x in trials], dtype=np.float64)
    size = np.abs(values).max() + np.abs(A).max()
    if not np.allclose(values, np.einsum("ij,jk,ik->i", trials, A, trials), rtol=1e-9, atol=1e-9 * size):
        raise NotPositiveDefinite(
            "(l(x + z) - l(x - z)) / 4 is a kernel for quadratic l; this l is not quadratic, and in general the result "
            "is not positive definite (l(x) = x^4 on the points 1 and 2 has determinant -144); "
            "use Bilinear(A), or Custom(function, definite=False) on your own account"
        )
    return Bilinear(A)  # type: ignore[arg-type]  # any matrix is taken and stored as tuples
