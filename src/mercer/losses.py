"""What a mistake costs: value, slope, curvature, conjugate, and the dual box and ridge from which problems are built.

A loss l(y, f) is convex in the prediction f.  Its conjugate in f is l*(y, u) = sup_f u f - l(y, f), so that

    l(y, f) + l*(y, u) >= u f          (Fenchel-Young; equality exactly when u is a slope of l at f)

and in min_f sum_i C_i l(y_i, f_i) + 1/2 ||f||^2 the coefficient of point i is s_i = -C_i u_i.  The set of u with finite
conjugate, times -C, is therefore the box of the signed dual variable.

The losses of support vector machines are two `Side`s, one for f too low and one for f too high, each stated by its
conjugate, a quadratic on an interval.  Everything else about them follows from that, here and in `mercer.problems`.

Margin losses depend on z = y f with y in {-1, +1}; residual losses on r = f - y (Rifkin 2002, section 2.2; Hamers 2004,
section 2.1; Schoelkopf and Smola 2002, section 10.6.1).  Arrays broadcast; all results are float64.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, xlogy

from mercer.errors import InvalidInput
from mercer.parameters import Value

Array = NDArray[np.float64]

INFINITE = float("inf")


def _array(values: ArrayLike) -> Array:
    return np.asarray(values, dtype=np.float64)


def interval_conjugate(
    q: Array, lower: Array | float, upper: Array | float, ridge: Array | float | None
) -> tuple[Array, Array]:
    """The conjugate of ridge s^2 / 2 on an interval: max over lower <= s <= upper of q s - ridge s^2 / 2, and that s.

    Bounds may be infinite where the ridge is positive; None is no ridge at all.
    """
    if ridge is None:
        s = np.where(q > 0, upper, lower)
        return q * s, s
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = np.where(np.greater(ridge, 0), q / ridge, np.where(q > 0, np.inf, -np.inf))
    s = np.clip(inner, lower, upper)
    return q * s - 0.5 * ridge * s * s, s


class Side(NamedTuple):
    """One direction of a loss: mistakes of size q cost max over 0 <= t <= bound of (q - offset) t - ridge t^2 / 2.

    `bound` is the steepest slope, mistakes up to `offset` cost nothing, and the slope rises by 1/ridge for each unit of
    q, at once where the ridge is zero.  The conjugate of a side is offset t + ridge t^2 / 2 on 0 <= t <= bound, which
    for C times the cost is the same with the bound C times as large and the ridge divided by C.
    """

    bound: float
    offset: float = 0.0
    ridge: float = 0.0

    def cost_and_slope(self, q: Array) -> tuple[Array, Array]:
        """What mistakes of size q (...) cost, and the slope in q; at a kink the one nearest zero."""
        return interval_conjugate(q - self.offset, 0.0, self.bound, self.ridge or None)

    def curvature(self, q: Array) -> Array:
        """Second derivative in q, at a break that of the inner piece."""
        if not self.ridge:
            return np.zeros_like(q)
        excess = q - self.offset
        return np.where((excess > 0.0) & (excess <= self.ridge * self.bound), 1.0 / self.ridge, 0.0)

    def conjugate(self, t: Array) -> Array:
        """The conjugate at t (...), infinite outside 0 <= t <= bound."""
        return np.where((t >= 0.0) & (t <= self.bound), self.offset * t + 0.5 * self.ridge * t * t, np.inf)


class Loss(Value, ABC):
    """Cost of predicting f where y is true."""

    classification: ClassVar[bool] = False
    """Whether y is a label -1 or +1."""

    @property
    def lipschitz(self) -> float:
        """Largest slope in absolute value; infinite where there is none."""
        return INFINITE

    @property
    def sides(self) -> tuple[Side, Side]:
        """Cost of f below y and of f above y; margin losses have the first for y = +1 and the second for y = -1."""
        raise InvalidInput(
            f"{self!r} gives no quadratic program: its conjugate is not quadratic; use a hinge, epsilon-insensitive, "
            "Huber, quantile or expectile loss"
        )

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


def _box(falling: Array | float, rising: Array | float, C: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """(-C falling, C rising) in the shape of y and C, 0 where C = 0, whatever the ends."""
    C = _array(C)
    if C.shape != np.shape(y):
        C = np.broadcast_to(C, np.broadcast_shapes(C.shape, np.shape(y)))
    positive = C > 0
    with np.errstate(invalid="ignore"):
        return np.where(positive, -C * falling, 0.0), np.where(positive, C * rising, 0.0)


class MarginLoss(Loss):
    """A loss L(z) of the margin z = y f that falls: the cost of the mistake 1 - z, on one side only."""

    classification: ClassVar[bool] = True
    side: ClassVar[Side | None] = None
    """What a mistake 1 - z costs, where that is piecewise quadratic."""
    steepest: ClassVar[float] = 1.0
    """Largest fall -L'(z), the far end of the domain of L*."""

    @property
    def sides(self) -> tuple[Side, Side]:
        """The same for labels +1, where f may be too low, and -1, where it may be too high."""
        return super().sides if self.side is None else (self.side, self.side)

    @property
    def lipschitz(self) -> float:
        """Steepest fall."""
        return self.steepest if self.side is None else self.side.bound

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
        """L*(y u), infinite for y u > 0."""
        fall = -_array(y) * _array(u)
        inside = (fall >= 0.0) & (fall <= self.lipschitz)
        return np.where(inside, self._conjugate(np.clip(fall, 0.0, self.lipschitz)), np.inf)

    def dual_box(self, y: ArrayLike, C: ArrayLike) -> tuple[Array, Array]:
        """Between 0 and y C times the steepest fall."""
        y = _array(y)
        return _box(np.where(y < 0, self.lipschitz, 0.0), np.where(y > 0, self.lipschitz, 0.0), C, y)

    def _value(self, z: Array) -> Array:
        assert self.side is not None
        return self.side.cost_and_slope(1.0 - z)[0]

    def _slope(self, z: Array) -> Array:
        assert self.side is not None
        return -self.side.cost_and_slope(1.0 - z)[1]

    def _curvature(self, z: Array) -> Array:
        assert self.side is not None
        return self.side.curvature(1.0 - z)

    def _conjugate(self, fall: Array) -> Array:
        """L*(-fall) for fall inside the domain."""
        assert self.side is not None
        return self.side.conjugate(fall) - fall


@dataclass(frozen=True)
class Hinge(MarginLoss):
    """(1 - z)_+; L*(v) = v on [-1, 0].  The loss of the support vector machine."""

    side: ClassVar[Side] = Side(1.0)


@dataclass(frozen=True)
class SquaredHinge(MarginLoss):
    """(1 - z)_+^2; L*(v) = v + v^2/4 for v <= 0.  Half of it is the AdaTron loss."""

    side: ClassVar[Side] = Side(INFINITE, 0.0, 0.5)


@dataclass(frozen=True)
class Perceptron(MarginLoss):
    """(-z)_+; L*(v) = 0 on [-1, 0].  No margin: only wrong signs cost."""

    side: ClassVar[Side] = Side(1.0, 1.0)


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """log(1 + exp(-z)); L*(-t) = t log t + (1 - t) log(1 - t) on [0, 1]."""

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

    steepest: ClassVar[float] = INFINITE

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
    """A loss of the residual r = f - y, given by its two sides: l*(y, u) = u y + conjugate of a side at |u|."""

    @property
    @abstractmethod
    def sides(self) -> tuple[Side, Side]:
        """Cost of f below y (r < 0), and of f above y (r > 0)."""

    @property
    def lipschitz(self) -> float:
        """Steeper of the two sides."""
        return max(side.bound for side in self.sides)

    def value(self, y: ArrayLike, f: ArrayLike) -> Array:
        """L(f - y)."""
        r = _array(f) - _array(y)
        low, high = self.sides
        return low.cost_and_slope(-r)[0] + high.cost_and_slope(r)[0]

    def slope(self, y: ArrayLike, f: ArrayLike) -> Array:
        """L'(f - y)."""
        r = _array(f) - _array(y)
        low, high = self.sides
        return high.cost_and_slope(r)[1] - low.cost_and_slope(-r)[1]

    def curvature(self, y: ArrayLike, f: ArrayLike) -> Array:
        """L''(f - y)."""
        r = _array(f) - _array(y)
        low, high = self.sides
        if low.offset == high.offset == 0.0:  # the sides meet at zero, where that of r < 0 is taken
            r = np.where(r == 0.0, -np.finfo(np.float64).tiny, r)
        return low.curvature(-r) + high.curvature(r)

    def conjugate(self, y: ArrayLike, u: ArrayLike) -> Array:
        """Conjugate u y + L*(u)."""
        u = _array(u)
        low, high = self.sides
        return u * _array(y) + np.where(u < 0.0, low.conjugate(np.maximum(-u, 0.0)), high.conjugate(np.maximum(u, 0.0)))

    def dual_box(self, y: ArrayLike, C: ArrayLike) -> tuple[Array, Array]:
        """-C times the domain of the slope."""
        low, high = self.sides
        return _box(high.bound, low.bound, C, y)


@dataclass(frozen=True)
class Square(ResidualLoss):
    """r^2; L*(u) = u^2/4.  mercer's least-squares machines minimise C/2 times its sum."""

    @property
    def sides(self) -> tuple[Side, Side]:
        """No bound, ridge 1/2."""
        return (Side(INFINITE, 0.0, 0.5),) * 2


@dataclass(frozen=True)
class EpsilonInsensitive(ResidualLoss):
    """(|r| - epsilon)_+; L*(u) = epsilon |u| on [-1, 1]."""

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        _require(0 <= self.epsilon < INFINITE, "epsilon must be non-negative and finite")

    @property
    def sides(self) -> tuple[Side, Side]:
        """Bound 1 beyond epsilon."""
        return (Side(1.0, self.epsilon),) * 2


@dataclass(frozen=True)
class Absolute(EpsilonInsensitive):
    """|r|: no tube."""

    epsilon: float = 0.0

    def __post_init__(self) -> None:
        _require(self.epsilon == 0, "the absolute loss has no tube: use EpsilonInsensitive")


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(EpsilonInsensitive):
    """(|r| - epsilon)_+^2; L*(u) = epsilon |u| + u^2/4."""

    @property
    def sides(self) -> tuple[Side, Side]:
        """No bound, ridge 1/2 beyond epsilon."""
        return (Side(INFINITE, self.epsilon, 0.5),) * 2


@dataclass(frozen=True)
class Huber(ResidualLoss):
    """Quadratic up to the threshold t, straight beyond; two scalings are in use.

    "slope" (Schoelkopf and Smola 2002, eq. 10.138; the slope is at most 1):
        r^2/(2 t) for |r| <= t,  |r| - t/2 beyond;       L*(u) = t u^2/2 on [-1, 1]
    "curvature" (Hamers 2004, section 2.1; the second derivative is 1 near zero): t times that,
        r^2/2 for |r| <= t,  t |r| - t^2/2 beyond;       L*(u) = u^2/2 on [-t, t]

    With a tube, |r| is what exceeds `epsilon`.
    """

    threshold: float = 1.0
    scaling: Literal["slope", "curvature"] = "slope"
    epsilon: float = 0.0

    def __post_init__(self) -> None:
        _require(0 < self.threshold < INFINITE, "threshold must be positive and finite")
        _require(self.scaling in ("slope", "curvature"), "scaling must be 'slope' or 'curvature'")
        _require(0 <= self.epsilon < INFINITE, "epsilon must be non-negative and finite")

    @property
    def sides(self) -> tuple[Side, Side]:
        """Slope up to 1 or to the threshold, reached at the threshold."""
        steepest = 1.0 if self.scaling == "slope" else self.threshold
        return (Side(steepest, self.epsilon, self.threshold / steepest),) * 2


@dataclass(frozen=True)
class Quantile(ResidualLoss):
    """Pinball loss: tau (y - f)_+ + (1 - tau) (f - y)_+; L* = 0 on [-tau, 1 - tau].  Minimised by the tau-quantile."""

    tau: float = 0.5

    def __post_init__(self) -> None:
        _require(0 < self.tau < 1, "tau must lie strictly between 0 and 1")

    @property
    def sides(self) -> tuple[Side, Side]:
        """Slopes tau and 1 - tau."""
        return Side(self.tau), Side(1.0 - self.tau)


@dataclass(frozen=True)
class Expectile(Quantile):
    """Asymmetric square: tau (y - f)_+^2 + (1 - tau) (f - y)_+^2; L*(u) = u^2/(4 w), w the weight of that side.

    Minimised by the tau-expectile (Newey and Powell 1987).
    """

    @property
    def sides(self) -> tuple[Side, Side]:
        """Ridges 1/(2 tau) and 1/(2 (1 - tau))."""
        return Side(INFINITE, 0.0, 0.5 / self.tau), Side(INFINITE, 0.0, 0.5 / (1.0 - self.tau))


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise InvalidInput(message)
