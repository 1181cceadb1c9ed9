"""New kernels from old ones, by the rules that keep positive definiteness (Hamers 2004, section 4.2).

    a1 k1 + a2 k2 with a > 0,   k1 k2,   k^p with p = 1, 2, ...,   exp(k),   k / sqrt(diagonal diagonal'),
    k on some of the columns,   k(h(x), h(z)) for any map h

What these rules do not cover is refused with the reason: negative factors, differences, fractional powers, and any
power or product of a kernel that is not positive definite.  Conditionally positive definite kernels may be added and
scaled; exp(k) of one of order 1 is positive definite (Schoenberg).
"""

from abc import abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.kernels.base import Kernel, prefixed
from mercer.kernels.dot_product import Constant
from mercer.kernels.points import Matrix, Points, prepare, whole


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


def require_kernel(value: Any, name: str) -> None:
    """Refuse what is not a kernel."""
    if not isinstance(value, Kernel):
        raise InvalidInput(f"{name} must be a kernel, got {value!r}; give for instance Gaussian(sigma=1.0)")


def require_definite(kernel: Any, name: str, operation: str, order: int = 0) -> None:
    """Refuse a kernel that is neither positive definite nor conditionally so up to `order`, with the reason."""
    require_kernel(kernel, name)
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


class Composite(Kernel):
    """A kernel made of others: each part prepares the points for itself, so that parts may take objects."""

    @property
    def objects(self) -> bool:
        """Whether a part takes any Python objects."""
        return any(child.objects for child in self._children.values())

    def _prepare(self, X: Any) -> Points:
        return X if self.objects else prepare(X, "X")

    def _matrix(self, X: Any, Z: Any) -> Matrix:
        return self._evaluate(X, Z)

    def _slopes_of(self, X: Any, Z: Any) -> dict[str, Matrix]:
        return self._derivatives(X, Z)


class _Pair(Composite):
    """Two kernels, left and right."""

    left: Kernel
    right: Kernel

    @property
    def stationary(self) -> bool:
        """Whether both parts are."""
        return self.left.stationary and self.right.stationary

    @property
    def isotropic(self) -> bool:
        """Whether both parts are."""
        return self.left.isotropic and self.right.isotropic

    @property
    def dot_product(self) -> bool:
        """Whether both parts are."""
        return self.left.dot_product and self.right.dot_product

    def _diagonals(self, X: Points) -> tuple[Matrix, Matrix]:
        return self.left._diagonal(self.left._prepare(X)), self.right._diagonal(self.right._prepare(X))

    def _diagonal_slopes(self, X: Points) -> tuple[dict[str, Matrix], dict[str, Matrix]]:
        return (
            prefixed("left", self.left._diagonal_derivatives(self.left._prepare(X))),
            prefixed("right", self.right._diagonal_derivatives(self.right._prepare(X))),
        )


@dataclass(frozen=True)
class Sum(_Pair):
    """k1(x, z) + k2(x, z): similar in the one sense or in the other."""

    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        require_kernel(self.left, "left")
        require_kernel(self.right, "right")

    @property
    def conditional_order(self) -> int:
        """The larger order of the two; -1 when nothing is known of one of them."""
        orders = self.left.conditional_order, self.right.conditional_order
        return -1 if min(orders) < 0 else max(orders)

    @property
    def compact(self) -> bool:
        """Whether both parts are."""
        return self.left.compact and self.right.compact

    @property
    def support(self) -> float | None:
        """The larger support."""
        return _largest(self.left.support, self.right.support)

    def support_in(self, dimension: int) -> float | None:
        """The larger support."""
        return _largest(self.left.support_in(dimension), self.right.support_in(dimension))

    def of_distance(self, r: Any, dimension: int) -> Matrix:
        """The sum of both parts at distances r."""
        return self.left.of_distance(r, dimension) + self.right.of_distance(r, dimension)

    def _evaluate(self, X: Points, Z: Points | None) -> Matrix:
        return self.left._matrix(X, Z) + self.right._matrix(X, Z)

    def _diagonal(self, X: Points) -> Matrix:
        left, right = self._diagonals(X)
        return left + right

    def _derivatives(self, X: Points, Z: Points | None) -> dict[str, Matrix]:
        return prefixed("left", self.left._slopes_of(X, Z)) | prefixed("right", self.right._slopes_of(X, Z))

    def _diagonal_derivatives(self, X: Points) -> dict[str, Matrix]:
        left, right = self._diagonal_slopes(X)
        return left | right


@dataclass(frozen=True)
class Product(_Pair):
    """k1(x, z) k2(x, z): similar in the one sense and in the other (Schur's product theorem)."""

    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        require_definite(self.left, "left", "a product")
        require_definite(self.right, "right", "a product")

    @property
    def compact(self) -> bool:
        """Whether one part is."""
        return self.left.compact or self.right.compact

    @property
    def support(self) -> float | None:
        """The smaller support."""
        return _smallest(self.left.support, self.right.support)

    def support_in(self, dimension: int) -> float | None:
        """The smaller support."""
        return _smallest(self.left.support_in(dimension), self.right.support_in(dimension))

    def of_distance(self, r: Any, dimension: int) -> Matrix:
        """The product of both parts at distances r."""
        return self.left.of_distance(r, dimension) * self.right.of_distance(r, dimension)

    def _evaluate(self, X: Points, Z: Points | None) -> Matrix:
        return self.left._matrix(X, Z) * self.right._matrix(X, Z)

    def _diagonal(self, X: Points) -> Matrix:
        left, right = self._diagonals(X)
        return left * right

    def _derivatives(self, X: Points, Z: Points | None) -> dict[str, Matrix]:
        left, right = self.left._matrix(X, Z), self.right._matrix(X, Z)
        by_left = {name: slope * right for name, slope in self.left._slopes_of(X, Z).items()}
        by_right = {name: slope * left for name, slope in self.right._slopes_of(X, Z).items()}
        return prefixed("left", by_left) | prefixed("right", by_right)

    def _diagonal_derivatives(self, X: Points) -> dict[str, Matrix]:
        left, right = self._diagonals(X)
        by_left, by_right = self._diagonal_slopes(X)
        return {name: slope * right for name, slope in by_left.items()} | {
            name: slope * left for name, slope in by_right.items()
        }


def _largest(left: float | None, right: float | None) -> float | None:
    return None if left is None or right is None else max(left, right)


def _smallest(left: float | None, right: float | None) -> float | None:
    known = [value for value in (left, right) if value is not None]
    return min(known) if known else None


class Single(Composite):
    """One kernel seen through a function: everything that does not change is asked of the inner kernel."""

    kernel: Kernel

    @property
    def stationary(self) -> bool:
        """As the inner kernel."""
        return self.kernel.stationary

    @property
    def isotropic(self) -> bool:
        """As the inner kernel."""
        return self.kernel.isotropic

    @property
    def dot_product(self) -> bool:
        """As the inner kernel."""
        return self.kernel.dot_product

    @property
    def compact(self) -> bool:
        """As the inner kernel."""
        return self.kernel.compact

    @property
    def support(self) -> float | None:
        """As the inner kernel."""
        return self.kernel.support

    def support_in(self, dimension: int) -> float | None:
        """As the inner kernel."""
        return self.kernel.support_in(dimension)

    @property
    def conditional_order(self) -> int:
        """As the inner kernel."""
        return self.kernel.conditional_order

    def _prepare(self, X: Any) -> Points:
        return self.kernel._prepare(X)


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

    def _evaluate(self, X: Points, Z: Points | None) -> Matrix:
        return self._function(self.kernel._matrix(X, Z))

    def _diagonal(self, X: Points) -> Matrix:
        return self._function(self.kernel._diagonal(X))

    def _chain(self, values: Matrix, inner: dict[str, Matrix]) -> dict[str, Matrix]:
        slope = self._slope(values)
        return self._own(values) | prefixed("kernel", {name: slope * by for name, by in inner.items()})

    def _derivatives(self, X: Points, Z: Points | None) -> dict[str, Matrix]:
        return self._chain(self.kernel._matrix(X, Z), self.kernel._slopes_of(X, Z))

    def _diagonal_derivatives(self, X: Points) -> dict[str, Matrix]:
        return self._chain(self.kernel._diagonal(X), self.kernel._diagonal_derivatives(X))


@dataclass(frozen=True)
class Scaled(_Elementwise):
    """factor * k(x, z), factor > 0."""

    factor: float
    kernel: Kernel

    def __post_init__(self) -> None:
        require_kernel(self.kernel, "kernel")
        if not isinstance(self.factor, Real) or not np.isfinite(float(self.factor)):
            raise InvalidInput(f"factor must be a finite number, got {self.factor!r}; give a number above zero")
        if float(self.factor) <= 0.0:
            raise NotPositiveDefinite(
                f"factor must be above zero, got {self.factor}: a negative multiple of a kernel has a negative "
                "diagonal and is not positive definite; give a number above zero"
            )
        self._set(factor=float(self.factor))

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

    def __post_init__(self) -> None:
        require_definite(self.kernel, "kernel", "a power")
        if isinstance(self.exponent, Real) and float(self.exponent) != int(float(self.exponent)):
            raise NotPositiveDefinite(
                f"exponent={self.exponent} is fractional, and fractional powers of a positive definite kernel need not "
                "be positive definite; give a whole number of at least 1"
            )
        self._set(exponent=whole(self.exponent, "exponent", 1))

    def _function(self, values: Matrix) -> Matrix:
        return np.asarray(values**self.exponent)

    def _slope(self, values: Matrix) -> Matrix:
        return np.asarray(self.exponent * values ** (self.exponent - 1))


@dataclass(frozen=True)
class Exp(_Elementwise):
    """exp(k(x, z)): positive definite for k positive definite or conditionally so of order 1."""

    kernel: Kernel

    def __post_init__(self) -> None:
        require_definite(self.kernel, "kernel", "exp", order=1)

    @property
    def conditional_order(self) -> int:
        """0."""
        return 0

    @property
    def compact(self) -> bool:
        """False: far apart it is 1."""
        return False

    @property
    def support(self) -> float | None:
        """None."""
        return None

    def support_in(self, dimension: int) -> float | None:
        """None."""
        return None

    def _function(self, values: Matrix) -> Matrix:
        return np.asarray(np.exp(values))

    def _slope(self, values: Matrix) -> Matrix:
        return np.asarray(np.exp(values))
