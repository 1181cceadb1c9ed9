"""The kernel: a similarity k(x, z) of two points, as a small immutable value.

A kernel is symmetric, and *positive definite* when every matrix K_ij = k(x_i, x_j) is positive semidefinite.  It is
*conditionally* positive definite of order m when c'Kc >= 0 for every c orthogonal to the polynomials of degree below
m on the points; such a kernel needs those polynomials (for m = 1 a bias) in the model.  Kernels are frozen
dataclasses: they compare by value, print as the expression that builds them, and combine by algebra,

    k = 2.0 * Gaussian(sigma=1.5) + Linear() ** 2

Three families cover most of them: functions of the distance (`Radial`), functions of the inner product
(`DotProduct`), and sums or products over features.
"""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.kernels.checks import Matrix, value_type, width, widths
from mercer.kernels.pairs import Pairs, Same
from mercer.kernels.profile import Profile
from mercer.parameters import Value, prefixed


class Kernel(Value, ABC):
    """A symmetric function k(x, z); call it on points X (n, d) and Z (m, d) to get the matrix (n, m)."""

    __array_ufunc__ = None  # so that numpy.float64(2) * k reaches __rmul__

    _traits: ClassVar[frozenset[str]] = frozenset()
    _order: ClassVar[int] = 0

    # What it is ------------------------------------------------------------------------------------------------

    @property
    def traits(self) -> frozenset[str]:
        """Those of stationary, isotropic, locally stationary, dot_product, compact and objects that hold."""
        return self._traits

    @property
    def stationary(self) -> bool:
        """Whether k(x, z) depends on x - z only."""
        return "stationary" in self.traits

    @property
    def isotropic(self) -> bool:
        """Whether k(x, z) depends on the Euclidean distance |x - z| only."""
        return "isotropic" in self.traits

    @property
    def dot_product(self) -> bool:
        """Whether k(x, z) depends on the inner product <x, z> only."""
        return "dot_product" in self.traits

    @property
    def compact(self) -> bool:
        """Whether k(x, z) is exactly zero for points far enough apart."""
        return "compact" in self.traits

    @property
    def objects(self) -> bool:
        """Whether the points may be any Python objects, in place of rows of a matrix."""
        return "objects" in self.traits

    @property
    def stationarity(self) -> str:
        """The smallest of the nested classes: isotropic, stationary, locally stationary, nonstationary."""
        names = ("isotropic", "stationary", "locally stationary")
        return next((name for name in names if name in self.traits), "nonstationary")

    @property
    def support(self) -> float | None:
        """Euclidean distance from which on the kernel is zero; None where there is none free of the dimension."""
        return None if self._open_widths else self._support(None)

    def support_in(self, dimension: int) -> float | None:
        """Euclidean distance from which on the kernel is zero for points with `dimension` features, or None."""
        return None if self._open_widths else self._support(dimension)

    def _support(self, dimension: int | None) -> float | None:
        return None

    @property
    def conditional_order(self) -> int:
        """0: positive definite; m >= 1: conditionally positive definite of order m; -1: in general neither."""
        return self._order

    @property
    def positive_definite(self) -> bool:
        """Whether every matrix of the kernel is positive semidefinite."""
        return self.conditional_order == 0

    @cached_property
    def profile(self) -> Profile | None:
        """The kernel as an elementwise function of one product or distance, where it is one of the fused kinds."""
        return None if self._open_widths else self._profile()

    def _profile(self) -> Profile | None:
        return None

    # Its parameters --------------------------------------------------------------------------------------------

    @cached_property
    def _children(self) -> dict[str, "Kernel"]:
        """Kernels this one is made of, by field name."""
        return {name: value for name, value in self.get_params(deep=False).items() if isinstance(value, Kernel)}

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters by name; those of a part carry its name first: `left__sigma`."""
        result: dict[str, Any] = {}
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, Kernel):
                result.update(prefixed(name, value.parameters))
            elif not callable(value):
                result[name] = value
        return result

    @cached_property
    def placeholders(self) -> dict[str, str]:
        """Widths still to be chosen by a machine, with the rule: {"sigma": "loo"}."""
        result = self._open_widths
        for name, child in self._children.items():
            result.update(prefixed(name, child.placeholders))
        return result

    @property
    def _open_widths(self) -> dict[str, str]:
        """Own fields that hold the name of a rule."""
        found = {}
        for name, check in self._checks.items():
            if check in (width, widths) and isinstance(value := getattr(self, name), str):
                found[name] = value
        return found

    def to_dict(self) -> dict[str, Any]:
        """Names and numbers that rebuild the kernel, ready for JSON; `kernel_from_dict` reads them."""
        from mercer.kernels.serialisation import kernel_to_dict

        return kernel_to_dict(self)

    # Its values ------------------------------------------------------------------------------------------------

    def __call__(self, X: Any, Z: Any = None) -> NDArray[Any]:
        """The matrix K_ij = k(x_i, z_j), (n, m); Z = None stands for X."""
        self._refuse_placeholders()
        return self._values(Pairs(X, Z)).astype(value_type(X, Z), copy=False)

    def diagonal(self, X: Any) -> NDArray[Any]:
        """k(x_i, x_i), (n,), in O(n)."""
        self._refuse_placeholders()
        return self._values(Same(X)).astype(value_type(X, None), copy=False)

    def derivatives(self, X: Any, Z: Any = None) -> dict[str, NDArray[Any]]:
        """Derivatives of the matrix by every continuous parameter, (n, m) each; (d, n, m) for one per feature."""
        kind = value_type(X, Z)
        return {name: value.astype(kind, copy=False) for name, value in self._slopes_at(Pairs(X, Z)).items()}

    def diagonal_derivatives(self, X: Any) -> dict[str, NDArray[Any]]:
        """Derivatives d k(x_i, x_i) / d parameter by name, each (n,); (d, n) for one per feature."""
        return self._slopes_at(Same(X))

    def _slopes_at(self, pairs: Pairs) -> dict[str, Matrix]:
        self._refuse_placeholders()
        _ = self.objects or pairs.points  # a kernel without parameters refuses what is no point, too
        return self._slopes(pairs)

    def of_distance(self, r: Any, dimension: int) -> Matrix:
        """The kernel as a function of the distances r >= 0 (any shape) between points with `dimension` features."""
        raise InvalidInput(f"{type(self).__name__} is not a function of the distance alone; evaluate it on points")

    def _refuse_placeholders(self) -> None:
        for name, rule in self.placeholders.items():
            raise InvalidInput(
                f"{name}={rule!r} is a rule by which a machine chooses the width; fit a machine with this kernel, or "
                f"set a number with with_parameters({name}=...), for instance that of median_sigma(X)"
            )

    @abstractmethod
    def _values(self, pairs: Pairs) -> Matrix:
        """The kernel at the pairs, in float64."""

    def _slopes(self, pairs: Pairs) -> dict[str, Matrix]:
        """Derivatives by the continuous parameters at the pairs, one leading axis more for one per feature."""
        return {}

    # Algebra ---------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        """The sum k1 + k2, or k + c with a constant c >= 0."""
        from mercer.kernels import algebra

        return algebra.add(self, other)

    def __radd__(self, other: Any) -> Any:
        from mercer.kernels import algebra

        return algebra.add(other, self)

    def __mul__(self, other: Any) -> Any:
        """The product k1 * k2, or k * c with a number c > 0."""
        from mercer.kernels import algebra

        return algebra.multiply(self, other)

    def __rmul__(self, other: Any) -> Any:
        from mercer.kernels import algebra

        return algebra.multiply(other, self)

    def __truediv__(self, other: Any) -> Any:
        """The kernel k / c with a number c > 0."""
        from mercer.kernels import algebra

        return algebra.divide(self, other)

    def __pow__(self, exponent: Any) -> "Kernel":
        """The power k ** p with a whole number p >= 1."""
        from mercer.kernels import algebra

        return algebra.Raised(self, exponent)

    def __sub__(self, other: Any) -> "Kernel":
        """Refused: k1 - k2 need not be positive definite, even where both are."""
        raise NotPositiveDefinite(
            "a difference of kernels need not be positive definite (k - 2k is not, for any k but zero); "
            "add kernels, or wrap the difference in Custom(function, definite=False)"
        )

    def __rsub__(self, other: Any) -> "Kernel":
        return self.__sub__(other)

    def __neg__(self) -> "Kernel":
        """Refused: -k is not positive definite."""
        raise NotPositiveDefinite(
            "the negative of a kernel is not positive definite: its matrices have a negative diagonal; "
            "kernels scale by numbers above zero only"
        )


class Radial(Kernel):
    """k(x, z) = g(|x - z|^2): a subclass gives g and its derivatives by the parameters."""

    _traits = frozenset({"stationary", "isotropic"})

    @abstractmethod
    def _of(self, q: Matrix, dimension: int) -> Matrix:
        """The kernel at squared distances q."""

    def _slopes_of(self, q: Matrix, dimension: int) -> dict[str, Matrix]:
        """Derivatives by the parameters at squared distances q."""
        return {}

    def of_distance(self, r: Any, dimension: int) -> Matrix:
        """The kernel as a function of the distances r >= 0 (any shape) between points with `dimension` features."""
        self._refuse_placeholders()
        return self._of(np.square(np.asarray(r, dtype=np.float64)), dimension)

    def _values(self, pairs: Pairs) -> Matrix:
        return self._of(pairs.squared_distances(), pairs.dimension)

    def _slopes(self, pairs: Pairs) -> dict[str, Matrix]:
        return self._slopes_of(pairs.squared_distances(), pairs.dimension)


class DotProduct(Kernel):
    """k(x, z) = g(<x, z>): a subclass gives g and its derivatives by the parameters."""

    _traits = frozenset({"dot_product"})

    @abstractmethod
    def _of(self, t: Matrix) -> Matrix:
        """The kernel at inner products t."""

    def _slopes_of(self, t: Matrix) -> dict[str, Matrix]:
        """Derivatives by the parameters at inner products t."""
        return {}

    def _values(self, pairs: Pairs) -> Matrix:
        return self._of(pairs.products())

    def _slopes(self, pairs: Pairs) -> dict[str, Matrix]:
        return self._slopes_of(pairs.products())
