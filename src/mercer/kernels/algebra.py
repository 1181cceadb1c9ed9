"""New kernels from old ones, by the rules that keep positive definiteness (Hamers 2004, section 4.2).

    a1 k1 + a2 k2 with a > 0,   k1 k2,   k^p with p = 1, 2, ...,   exp(k),   k / sqrt(diagonal diagonal'),
    k on some of the columns,   k(h(x), h(z)) for any map h

What these rules do not cover is refused with the reason: negative factors, differences, fractional powers, and any
power or product of a kernel that is not positive definite.  Conditionally positive definite kernels may be added and
scaled; exp(k) of one of order 1 is positive definite (Schoenberg).
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.kernels.base import Kernel
from mercer.kernels.checks import Matrix, whole
from mercer.kernels.dot_product import Constant
from mercer.kernels.pairs import Pairs
from mercer.parameters import prefixed


def add(left: Any, right: Any) -> Any:
    """The sum left + right, one of which may be a number c >= 0."""
    if isinstance(left, Kernel) and isinstance(right, Kernel):
        return Sum(left, right)
    number, kernel = (left, right) if isinstance(left, Real) else (right, left)
    if not isinstance(number, Real):
        return NotImplemented
    if float(number) == 0.0:  # so that sum([k1, k2]) is k1 + k2
        return kernel
    return Sum(Constant(float(number)), kernel) if number is left else Sum(kernel, Constant(float(number)))


def multiply(left: Any, right: Any) -> Any:
    """The product left * right, one of which may be a number c > 0."""
    if isinstance(left, Kernel) and isinstance(right, Kernel):
        return Product(left, right)
    if isinstance(left, Real):
        return Scaled(float(left), right)
    if isinstance(right, Real):
        return Scaled(float(right), left)
    return NotImplemented


def divide(kernel: Kernel, divisor: Any) -> Any:
    """The quotient kernel / divisor for a number above zero."""
    if not isinstance(divisor, Real):
        return NotImplemented
    if float(divisor) == 0.0:
        raise InvalidInput("a kernel cannot be divided by zero; give a number above zero")
    return Scaled(1.0 / float(divisor), kernel)


def any_kernel(value: Any, name: str) -> Kernel:
    """A kernel."""
    if not isinstance(value, Kernel):
        raise InvalidInput(f"{name} must be a kernel, got {value!r}; give for instance Gaussian(sigma=1.0)")
    return value


def definite_kernel(value: Any, name: str, *, operation: str, order: int = 0) -> Kernel:
    """A kernel that is positive definite, or conditionally so up to `order`; others are refused with the reason."""
    kernel = any_kernel(value, name)
    if not 0 <= kernel.conditional_order <= order:
        kind = (
            "is not positive definite"
            if kernel.conditional_order < 0
            else f"is only conditionally positive definite, of order {kernel.conditional_order}"
        )
        raise NotPositiveDefinite(
            f"{operation} needs a positive definite kernel, and {kernel!r} {kind}: the result could be indefinite; "
            "choose a positive definite part, or wrap the whole in Custom(function, definite=False)"
        )
    return kernel


def _factor(value: Any, name: str) -> float:
    """A number above zero."""
    if not isinstance(value, Real) or not np.isfinite(float(value)):
        raise InvalidInput(f"{name} must be a finite number, got {value!r}; give a number above zero")
    if float(value) <= 0.0:
        raise NotPositiveDefinite(
            f"{name} must be above zero, got {value}: a negative multiple of a kernel has a negative diagonal and is "
            "not positive definite; give a number above zero"
        )
    return float(value)


def _exponent(value: Any, name: str) -> int:
    """A whole number of at least 1."""
    if isinstance(value, Real) and float(value) != int(float(value)):
        raise NotPositiveDefinite(
            f"{name}={value} is fractional, and fractional powers of a positive definite kernel need not be positive "
            "definite; give a whole number of at least 1"
        )
    return whole(value, name, 1)


KEPT = frozenset({"stationary", "isotropic", "dot_product", "compact", "objects"})
"""Traits that a kernel hands on to those made of it."""


class _Pair(Kernel):
    """Two kernels, left and right."""

    left: Kernel
    right: Kernel

    @property
    def traits(self) -> frozenset[str]:
        """What both parts are, and objects where one of them takes any Python objects."""
        left, right = self.left.traits, self.right.traits
        return ((left & right) | ((left | right) & {"objects"})) & KEPT


@dataclass(frozen=True)
class Sum(_Pair):
    """k1(x, z) + k2(x, z): similar in the one sense or in the other."""

    left: Kernel
    right: Kernel
    _checks = {"left": any_kernel, "right": any_kernel}

    @property
    def conditional_order(self) -> int:
        """The larger order of the two; -1 when nothing is known of one of them."""
        orders = self.left.conditional_order, self.right.conditional_order
        return -1 if min(orders) < 0 else max(orders)

    def _support(self, dimension: int | None) -> float | None:
        left, right = _support_of(self.left, dimension), _support_of(self.right, dimension)
        return None if left is None or right is None else max(left, right)

    def of_distance(self, r: Any, dimension: int) -> Matrix:
        """The sum of both parts at distances r."""
        return self.left.of_distance(r, dimension) + self.right.of_distance(r, dimension)

    def _values(self, pairs: Pairs) -> Matrix:
        return self.left._values(pairs) + self.right._values(pairs)

    def _slopes(self, pairs: Pairs) -> dict[str, Matrix]:
        return prefixed("left", self.left._slopes(pairs)) | prefixed("right", self.right._slopes(pairs))


@dataclass(frozen=True)
class Product(_Pair):
    """k1(x, z) k2(x, z): similar in the one sense and in the other (Schur's product theorem)."""

    left: Kernel
    right: Kernel
    _checks = dict.fromkeys(("left", "right"), partial(definite_kernel, operation="a product"))

    @property
    def traits(self) -> frozenset[str]:
        """As of a sum, and compact where one part is."""
        return super().traits | ((self.left.traits | self.right.traits) & {"compact"})

    def _support(self, dimension: int | None) -> float | None:
        supports = (_support_of(self.left, dimension), _support_of(self.right, dimension))
        return min((support for support in supports if support is not None), default=None)

    def of_distance(self, r: Any, dimension: int) -> Matrix:
        """The product of both parts at distances r."""
        return self.left.of_distance(r, dimension) * self.right.of_distance(r, dimension)

    def _values(self, pairs: Pairs) -> Matrix:
        return self.left._values(pairs) * self.right._values(pairs)

    def _slopes(self, pairs: Pairs) -> dict[str, Matrix]:
        left, right = self.left._values(pairs), self.right._values(pairs)
        by_left = {name: slope * right for name, slope in self.left._slopes(pairs).items()}
        by_right = {name: slope * left for name, slope in self.right._slopes(pairs).items()}
        return prefixed("left", by_left) | prefixed("right", by_right)


def _support_of(kernel: Kernel, dimension: int | None) -> float | None:
    """The support for points with `dimension` features, or that free of the dimension."""
    return kernel.support if dimension is None else kernel.support_in(dimension)


class Single(Kernel):
    """One kernel seen through a function: everything that does not change is asked of the inner kernel."""

    kernel: Kernel

    @property
    def traits(self) -> frozenset[str]:
        """As the inner kernel."""
        return self.kernel.traits & KEPT

    @property
    def conditional_order(self) -> int:
        """As the inner kernel."""
        return self.kernel.conditional_order

    def _support(self, dimension: int | None) -> float | None:
        return _support_of(self.kernel, dimension)


class _Elementwise(Single):
    """f(k(x, z)) for a function f of one number: a subclass gives f and its derivative."""

    @abstractmethod
    def _function(self, values: Matrix) -> Matrix:
        """f, elementwise."""

    @abstractmethod
    def _slope(self, values: Matrix) -> Matrix:
        """Derivative of f, elementwise."""

    def _own(self, values: Matrix) -> dict[str, Matrix]:
        """Derivatives by the parameters of f itself."""
        return {}

    def of_distance(self, r: Any, dimension: int) -> Matrix:
        """The function f of the inner kernel at distances r."""
        return self._function(self.kernel.of_distance(r, dimension))

    def _values(self, pairs: Pairs) -> Matrix:
        return self._function(self.kernel._values(pairs))

    def _slopes(self, pairs: Pairs) -> dict[str, Matrix]:
        values = self.kernel._values(pairs)
        slope = self._slope(values)
        inner = {name: slope * by for name, by in self.kernel._slopes(pairs).items()}
        return self._own(values) | prefixed("kernel", inner)


@dataclass(frozen=True)
class Scaled(_Elementwise):
    """factor * k(x, z), factor > 0."""

    factor: float
    kernel: Kernel
    _checks = {"factor": _factor, "kernel": any_kernel}

    def _function(self, values: Matrix) -> Matrix:
        return self.factor * values

    def _slope(self, values: Matrix) -> Matrix:
        return np.full((1,) * values.ndim, self.factor)

    def _own(self, values: Matrix) -> dict[str, Matrix]:
        return {"factor": values}


@dataclass(frozen=True)
class Raised(_Elementwise):
    """k(x, z)^exponent for a whole exponent of at least 1.

    A fractional power is refused: k(x, z) = <x, z> has negative values, and even where k >= 0 the square root need
    not be positive definite (the matrix [[1, .5, 0], [.5, .5, .5], [0, .5, 1]] is, its elementwise root is not).
    """

    kernel: Kernel
    exponent: int = 2
    _checks = {"kernel": partial(definite_kernel, operation="a power"), "exponent": _exponent}

    def _function(self, values: Matrix) -> Matrix:
        return np.asarray(values**self.exponent)

    def _slope(self, values: Matrix) -> Matrix:
        return np.asarray(self.exponent * values ** (self.exponent - 1))


@dataclass(frozen=True)
class Exp(_Elementwise):
    """exp(k(x, z)): positive definite for k positive definite or conditionally so of order 1."""

    kernel: Kernel
    _checks = {"kernel": partial(definite_kernel, operation="exp", order=1)}

    @property
    def conditional_order(self) -> int:
        """0."""
        return 0

    @property
    def traits(self) -> frozenset[str]:
        """As the inner kernel, but not compact: far apart it is 1."""
        return super().traits - {"compact"}

    def _support(self, dimension: int | None) -> None:
        return None

    def _function(self, values: Matrix) -> Matrix:
        return np.asarray(np.exp(values))

    def _slope(self, values: Matrix) -> Matrix:
        return np.asarray(np.exp(values))
