"""What a mistake costs: value, slope, curvature, conjugate, and the dual box each loss gives.

A loss l(y, f) is convex in the prediction f.  Its conjugate in f is l*(y, u) = sup_f u f - l(y, f), so that

    l(y, f) + l*(y, u) >= u f          (Fenchel-Young; equality exactly when u is a slope of l at f)

and in min_f sum_i C_i l(y_i, f_i) + 1/2 ||f||^2 the coefficient of point i is s_i = -C_i u_i.  The set of u with finite
conjugate, times -C, is therefore the box of the signed dual variable.

Margin losses depend on z = y f with y in {-1, +1}; residual losses on r = f - y (Rifkin 2002, section 2.2; Hamers 2004,
section 2.1; Schoelkopf and Smola 2002, section 10.6.1).  Arrays broadcast; all results are float64.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, xlogy

from mercer.errors import InvalidInput

Array = NDArray[np.float64]


def _array(values: ArrayLike) -> Array:
    return np.asarray(values, dtype=np.float64)


def _times(C: Array, end: float) -> Array:
    """C times an end of a domain that may be infinite; 0 where C = 0."""
    with np.errstate(invalid="ignore"):
        return np.where(C > 0, C * end, 0.0)


class Loss(ABC):
    """Cost of predicting f where y is true."""

    smooth: ClassVar[bool] = False
    """Whether the slope is continuous."""
    classification: ClassVar[bool] = False
    """Whether y is a label -1 or +1."""

    @property
    def lipschitz(self) -> float:
        """Largest slope in absolute value; infinite where there is none."""
        return float("inf")

    @abstractmethod
    def value(self, y: ArrayLike, f: ArrayLike) -> Array:
        """l(y, f)."""

    @abstractmethod
    def slope(self, y: ArrayLike, f: ArrayLike) -> Array:
        """A subgradient of l(y, .) at f; the derivative where there is one, at a kink the one nearest zero."""

    @abstractmethod
    def curvature(self, y: ArrayLike, f: ArrayLike) -> Array:
        """Second derivative of l(y, .) at f; at a break of the slope that of the inner, flatter or curved, piece."""

    @abstractmethod
    def conjugate(self, y: ArrayLike, u: ArrayLike) -> Array:
        """l*(y, u), infinite outside the domain."""

    @abstractmethod
    def dual_box(self, y: ArrayLike, C: ArrayLike) -> tuple[Array, Array]:
        """Bounds (lower, upper) of the signed dual variable s = -C u."""


class MarginLoss(Loss):
    """A loss L(z) of the margin z = y f; L* is infinite for v > 0, because all these losses fall."""

    classification: ClassVar[bool] = True
    steepest: ClassVar[float] = 1.0
    """Largest fall -L'(z), the far end of the domain of L*."""

    @property
    def lipschitz(self) -> float:
        """Steepest fall."""
        return self.steepest

    def value(self, y: ArrayLike, f: ArrayLike) -> Array:
        """L(y f)."""
        return self._value(_array(y) * _array(f))

    def slope(self, y: ArrayLike, f: ArrayLike) -> Array:
        """Slope y L'(y f)."""
        y = _array(y)
        return y * self._slope(y * _array(f))

    def curvature(self, y: ArrayLike, f: ArrayLike) -> Array:
        """L''(y f)."""
        return self._curvature(_array(y) * _array(f))

    def conjugate(self, y: ArrayLike, u: ArrayLike) -> Array:
        """L*(y u)."""
        fall = -_array(y) * _array(u)
        inside = (fall >= 0.0) & (fall <= self.steepest)
        return np.where(inside, self._conjugate(np.clip(fall, 0.0, self.steepest)), np.inf)

    def dual_box(self, y: ArrayLike, C: ArrayLike) -> tuple[Array, Array]:
        """Between 0 and y C times the steepest fall."""
        y = _array(y)
        far = _times(_array(C), self.steepest)
        return np.where(y < 0, -far, 0.0), np.where(y > 0, far, 0.0)

    @abstractmethod
    def _value(self, z: Array) -> Array: ...

    @abstractmethod
    def _slope(self, z: Array) -> Array: ...

    @abstractmethod
    def _curvature(self, z: Array) -> Array: ...

    @abstractmethod
    def _conjugate(self, fall: Array) -> Array:
        """L*(-fall) for fall inside the domain."""


@dataclass(frozen=True)
class Hinge(MarginLoss):
    """(1 - z)_+; L*(v) = v on [-1, 0].  The loss of the support vector machine."""

    def _value(self, z: Array) -> Array:
        return np.maximum(1.0 - z, 0.0)

    def _slope(self, z: Array) -> Array:
        return np.where(z < 1.0, -1.0, 0.0)

    def _curvature(self, z: Array) -> Array:
        return np.zeros_like(z)

    def _conjugate(self, fall: Array) -> Array:
        return -fall


@dataclass(frozen=True)
class SquaredHinge(MarginLoss):
    """(1 - z)_+^2; L*(v) = v + v^2/4 for v <= 0.  Half of it is the AdaTron loss."""

    smooth: ClassVar[bool] = True
    steepest: ClassVar[float] = float("inf")

    def _value(self, z: Array) -> Array:
        return np.maximum(1.0 - z, 0.0) ** 2

    def _slope(self, z: Array) -> Array:
        return -2.0 * np.maximum(1.0 - z, 0.0)

    def _curvature(self, z: Array) -> Array:
        return np.where(z < 1.0, 2.0, 0.0)

    def _conjugate(self, fall: Array) -> Array:
        return -fall + 0.25 * fall * fall


@dataclass(frozen=True)
class Perceptron(MarginLoss):
    """(-z)_+; L*(v) = 0 on [-1, 0].  No margin: only wrong signs cost."""

    def _value(self, z: Array) -> Array:
        return np.maximum(-z, 0.0)

    def _slope(self, z: Array) -> Array:
        return np.where(z < 0.0, -1.0, 0.0)

    def _curvature(self, z: Array) -> Array:
        return np.zeros_like(z)

    def _conjugate(self, fall: Array) -> Array:
        return np.zeros_like(fall)


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """log(1 + exp(-z)); L*(-t) = t log t + (1 - t) log(1 - t) on [0, 1]."""

    smooth: ClassVar[bool] = True

    def _value(self, z: Array) -> Array:
        return np.logaddexp(0.0, -z)

    def _slope(self, z: Array) -> Array:
        return -np.asarray(expit(-z), dtype=np.float64)

    def _curvature(self, z: Array) -> Array:
        return np.asarray(expit(z) * expit(-z), dtype=np.float64)

    def _conjugate(self, fall: Array) -> Array:
        return np.asarray(xlogy(fall, fall) + xlogy(1.0 - fall, 1.0 - fall), dtype=np.float64)


@dataclass(frozen=True)
class Exponential(MarginLoss):
    """exp(-z); L*(-t) = t log t - t for t >= 0.  The loss of AdaBoost."""

    smooth: ClassVar[bool] = True
    steepest: ClassVar[float] = float("inf")

    def _value(self, z: Array) -> Array:
        return np.exp(-z)

    def _slope(self, z: Array) -> Array:
        return -np.exp(-z)

    def _curvature(self, z: Array) -> Array:
        return np.exp(-z)

    def _conjugate(self, fall: Array) -> Array:
        return np.asarray(xlogy(fall, fall) - fall, dtype=np.float64)


@dataclass(frozen=True)
class ZeroOne(Loss):
    """1 where y f <= 0, else 0.  For evaluation only: minimising it is NP-complete."""

    classification: ClassVar[bool] = True

    def value(self, y: ArrayLike, f: ArrayLike) -> Array:
        """Whether the sign is wrong; a prediction of 0 counts as wrong."""
        return (_array(y) * _array(f) <= 0.0).astype(np.float64)

    def slope(self, y: ArrayLike, f: ArrayLike) -> Array:
        """There is none."""
        raise InvalidInput("the zero-one loss is for evaluation only: train with Hinge, Logistic or SquaredHinge")

    def curvature(self, y: ArrayLike, f: ArrayLike) -> Array:
        """There is none."""
        return self.slope(y, f)

    def conjugate(self, y: ArrayLike, u: ArrayLike) -> Array:
        """There is none."""
        return self.slope(y, u)

    def dual_box(self, y: ArrayLike, C: ArrayLike) -> tuple[Array, Array]:
        """There is none."""
        return self.slope(y, C), self.slope(y, C)


class ResidualLoss(Loss):
    """A loss of the residual r = f - y; l*(y, u) = u y + L*(u)."""

    def domain(self) -> tuple[float, float]:
        """Smallest and largest slope (u_low, u_high)."""
        return -self.lipschitz, self.lipschitz

    def value(self, y: ArrayLike, f: ArrayLike) -> Array:
        """L(f - y)."""
        return self._value(_array(f) - _array(y))

    def slope(self, y: ArrayLike, f: ArrayLike) -> Array:
        """L'(f - y)."""
        return self._slope(_array(f) - _array(y))

    def curvature(self, y: ArrayLike, f: ArrayLike) -> Array:
        """L''(f - y)."""
        return self._curvature(_array(f) - _array(y))

    def conjugate(self, y: ArrayLike, u: ArrayLike) -> Array:
        """Conjugate u y + L*(u)."""
        u = _array(u)
        low, high = self.domain()
        return np.where((u >= low) & (u <= high), u * _array(y) + self._conjugate(u), np.inf)

    def dual_box(self, y: ArrayLike, C: ArrayLike) -> tuple[Array, Array]:
        """-C times the domain of the slope."""
        low, high = self.domain()
        C = np.broadcast_to(_array(C), np.broadcast_shapes(np.shape(C), np.shape(y)))
        return _times(C, -high), _times(C, -low)

    @abstractmethod
    def _value(self, r: Array) -> Array: ...

    @abstractmethod
    def _slope(self, r: Array) -> Array: ...

    @abstractmethod
    def _curvature(self, r: Array) -> Array: ...

    @abstractmethod
    def _conjugate(self, u: Array) -> Array:
        """L*(u) for u inside the domain."""


@dataclass(frozen=True)
class Square(ResidualLoss):
    """r^2; L*(u) = u^2/4.  mercer's least-squares machines minimise C/2 times its sum."""

    smooth: ClassVar[bool] = True

    def _value(self, r: Array) -> Array:
        return r * r

    def _slope(self, r: Array) -> Array:
        return 2.0 * r

    def _curvature(self, r: Array) -> Array:
        return np.full_like(r, 2.0)

    def _conjugate(self, u: Array) -> Array:
        return 0.25 * u * u


@dataclass(frozen=True)
class EpsilonInsensitive(ResidualLoss):
    """(|r| - epsilon)_+; L*(u) = epsilon |u| on [-1, 1]."""

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        _require(self.epsilon >= 0, "epsilon must not be negative")

    @property
    def lipschitz(self) -> float:
        """Largest slope."""
        return 1.0

    def _value(self, r: Array) -> Array:
        return np.maximum(np.abs(r) - self.epsilon, 0.0)

    def _slope(self, r: Array) -> Array:
        return np.where(np.abs(r) > self.epsilon, np.sign(r), 0.0)

    def _curvature(self, r: Array) -> Array:
        return np.zeros_like(r)

    def _conjugate(self, u: Array) -> Array:
        return self.epsilon * np.abs(u)


@dataclass(frozen=True)
class Absolute(EpsilonInsensitive):
    """|r|: no tube."""

    epsilon: float = 0.0

    def __post_init__(self) -> None:
        _require(self.epsilon == 0, "the absolute loss has no tube: use EpsilonInsensitive")


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(ResidualLoss):
    """(|r| - epsilon)_+^2; L*(u) = epsilon |u| + u^2/4."""

    smooth: ClassVar[bool] = True
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        _require(self.epsilon >= 0, "epsilon must not be negative")

    def _value(self, r: Array) -> Array:
        return np.maximum(np.abs(r) - self.epsilon, 0.0) ** 2

    def _slope(self, r: Array) -> Array:
        return 2.0 * np.sign(r) * np.maximum(np.abs(r) - self.epsilon, 0.0)

    def _curvature(self, r: Array) -> Array:
        return np.where(np.abs(r) > self.epsilon, 2.0, 0.0)

    def _conjugate(self, u: Array) -> Array:
        return self.epsilon * np.abs(u) + 0.25 * u * u


@dataclass(frozen=True)
class Huber(ResidualLoss):
    """Quadratic up to the threshold t, straight beyond; two scalings are in use.

    "slope" (Schoelkopf and Smola 2002, eq. 10.138; the slope is at most 1, as HuberRegression has it):
        r^2/(2 t) for |r| <= t,  |r| - t/2 beyond;       L*(u) = t u^2/2 on [-1, 1]
    "curvature" (Hamers 2004, section 2.1; the second derivative is 1 near zero): t times that,
        r^2/2 for |r| <= t,  t |r| - t^2/2 beyond;       L*(u) = u^2/2 on [-t, t]
    """

    smooth: ClassVar[bool] = True
    threshold: float = 1.0
    scaling: Literal["slope", "curvature"] = "slope"

    def __post_init__(self) -> None:
        _require(self.threshold > 0, "threshold must be positive")
        _require(self.scaling in ("slope", "curvature"), "scaling must be 'slope' or 'curvature'")

    @property
    def lipschitz(self) -> float:
        """Largest slope: 1 or the threshold."""
        return 1.0 if self.scaling == "slope" else self.threshold

    def _value(self, r: Array) -> Array:
        size, t = np.abs(r), self.threshold
        return self.lipschitz * np.where(size <= t, 0.5 * r * r / t, size - 0.5 * t)

    def _slope(self, r: Array) -> Array:
        return self.lipschitz * np.clip(r / self.threshold, -1.0, 1.0)

    def _curvature(self, r: Array) -> Array:
        return np.where(np.abs(r) <= self.threshold, self.lipschitz / self.threshold, 0.0)

    def _conjugate(self, u: Array) -> Array:
        return 0.5 * u * u * (self.threshold / self.lipschitz)


@dataclass(frozen=True)
class Quantile(ResidualLoss):
    """Pinball loss: tau (y - f)_+ + (1 - tau) (f - y)_+; L* = 0 on [-tau, 1 - tau].  Minimised by the tau-quantile."""

    tau: float = 0.5

    def __post_init__(self) -> None:
        _require(0 < self.tau < 1, "tau must lie strictly between 0 and 1")

    @property
    def lipschitz(self) -> float:
        """Steeper of the two sides."""
        return max(self.tau, 1.0 - self.tau)

    def domain(self) -> tuple[float, float]:
        """(-tau, 1 - tau)."""
        return -self.tau, 1.0 - self.tau

    def _value(self, r: Array) -> Array:
        return np.maximum(-self.tau * r, (1.0 - self.tau) * r)

    def _slope(self, r: Array) -> Array:
        return np.where(r > 0, 1.0 - self.tau, np.where(r < 0, -self.tau, 0.0))

    def _curvature(self, r: Array) -> Array:
        return np.zeros_like(r)

    def _conjugate(self, u: Array) -> Array:
        return np.zeros_like(u)


@dataclass(frozen=True)
class Expectile(ResidualLoss):
    """Asymmetric square: tau (y - f)_+^2 + (1 - tau) (f - y)_+^2; L*(u) = u^2/(4 w), w the weight of that side."""

    smooth: ClassVar[bool] = True
    tau: float = 0.5

    def __post_init__(self) -> None:
        _require(0 < self.tau < 1, "tau must lie strictly between 0 and 1")

    def _side(self, r: Array) -> Array:
        return np.where(r > 0, 1.0 - self.tau, self.tau)

    def _value(self, r: Array) -> Array:
        return self._side(r) * r * r

    def _slope(self, r: Array) -> Array:
        return 2.0 * self._side(r) * r

    def _curvature(self, r: Array) -> Array:
        return 2.0 * self._side(r)

    def _conjugate(self, u: Array) -> Array:
        return 0.25 * u * u / self._side(u)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise InvalidInput(message)
