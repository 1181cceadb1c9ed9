"""Kernels seen through something: normalised, on some of the columns, after a map; and rule 7, with its limits."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.kernels.algebra import Single, any_kernel, definite_kernel
from mercer.kernels.base import Kernel
from mercer.kernels.checks import Matrix, Points, column_numbers, whole
from mercer.kernels.custom import callable_on, name_of
from mercer.kernels.distances import take_columns
from mercer.kernels.dot_product import Bilinear
from mercer.kernels.pairs import Pairs, Same
from mercer.parameters import prefixed


@dataclass(frozen=True)
class Normalised(Single):
    """k(x, z) / sqrt(k(x, x) k(z, z)): the cosine in feature space; points with k(x, x) = 0 have similarity 0."""

    kernel: Kernel
    _checks = {"kernel": partial(definite_kernel, operation="normalising")}

    @property
    def traits(self) -> frozenset[str]:
        """As the inner kernel, but no function of the inner product: it depends on the norms as well."""
        return super().traits - {"dot_product"}

    def of_distance(self, r: Any, dimension: int) -> Matrix:
        """The inner kernel at distances r over its value at zero."""
        values = self.kernel.of_distance(r, dimension)
        return values / self.kernel.of_distance(np.zeros(1), dimension)

    def _root(self, same: Same) -> Matrix:
        """1 / sqrt(k(x, x)), and 0 where that is infinite."""
        diagonal = self.kernel._values(same)
        return np.where(diagonal > 0.0, 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)), 0.0)

    def _values(self, pairs: Pairs) -> Matrix:
        values = self.kernel._values(pairs)
        if isinstance(pairs, Same):
            return np.where(values > 0.0, 1.0, 0.0)
        left, right = pairs.each(self._root)
        result = values * left * right
        return result if pairs.Z is not None else 0.5 * (result + result.T)

    def _slopes(self, pairs: Pairs) -> dict[str, Matrix]:
        inner = self.kernel._slopes(pairs)
        if isinstance(pairs, Same):
            return prefixed("kernel", {name: np.zeros_like(slope) for name, slope in inner.items()})
        value = self._values(pairs)
        left, right = pairs.each(self._root)
        result = {}
        for name in inner:
            rows, others = pairs.each(partial(self._logarithmic, name=name))
            result[name] = inner[name] * left * right - value * (rows + others)
        return prefixed("kernel", result)

    def _logarithmic(self, same: Same, name: str) -> Matrix:
        """Half the derivative of log k(x, x) by a parameter."""
        return self.kernel._slopes(same)[name] * (0.5 * np.square(self._root(same)))


@dataclass(frozen=True)
class Restricted(Single):
    """k on some of the columns only, in the order given: one kernel for each source of data, then combine them.

    It is not isotropic and has no support radius, because points far apart in the other columns may be equal here.
    """

    kernel: Kernel
    columns: tuple[int, ...]
    _checks = {"kernel": any_kernel, "columns": column_numbers}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kernel.objects:
            raise InvalidInput(f"{self.kernel!r} works on objects, which have no columns; restrict a kernel on vectors")

    @property
    def traits(self) -> frozenset[str]:
        """Stationary where the inner kernel is."""
        return self.kernel.traits & {"stationary"}

    def _support(self, dimension: int | None) -> None:
        return None

    def _chosen(self, X: Points) -> Points:
        if max(self.columns) >= X.shape[1]:
            raise InvalidInput(
                f"columns names column {max(self.columns)} and the points have {X.shape[1]} features, "
                f"numbered from 0 to {X.shape[1] - 1}"
            )
        return take_columns(X, self.columns)

    def _values(self, pairs: Pairs) -> Matrix:
        return self.kernel._values(pairs.mapped(self._chosen))

    def _slopes(self, pairs: Pairs) -> dict[str, Matrix]:
        return prefixed("kernel", self.kernel._slopes(pairs.mapped(self._chosen)))


@dataclass(frozen=True)
class Mapped(Single):
    """k(h(x), h(z)) for any map h of a set of points to a set of points (sequence of objects in, matrix out).

    A positive definite k stays so, and so does order 1; polynomials of higher order are not kept by h, so a kernel of
    conditional order 2 or more is refused.
    """

    kernel: Kernel
    function: Callable[[Any], Any]
    _checks = {
        "kernel": partial(definite_kernel, operation="composition with a map", order=1),
        "function": partial(callable_on, points="on a set of points"),
    }

    def __repr__(self) -> str:
        """The expression that builds it where the name of the function is known."""
        return f"Mapped(kernel={self.kernel!r}, function={name_of(self.function)})"

    @property
    def traits(self) -> frozenset[str]:
        """Objects: h takes the points as they are given."""
        return frozenset({"objects"})

    def _support(self, dimension: int | None) -> None:
        return None

    def _images(self, pairs: Pairs) -> Pairs:
        return type(pairs)(self.function(pairs.X), None if pairs.Z is None else self.function(pairs.Z))

    def _values(self, pairs: Pairs) -> Matrix:
        return self.kernel._values(self._images(pairs))

    def _slopes(self, pairs: Pairs) -> dict[str, Matrix]:
        return prefixed("kernel", self.kernel._slopes(self._images(pairs)))


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
