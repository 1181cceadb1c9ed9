"""Problems that see the points only through one latent function f: ranks, orders, preferences.

    P(f) = 1/2 ||f||^2 + L(f(x_1), ..., f(x_n)),      L convex, the least over thresholds where there are any.

With f = K c, slope g of L at f and c^ = -g, the point c^ is feasible for the dual, and

    P(c) - D(c^) = 1/2 (c - c^)'K (c - c^) + r(f)   >= 0,

where r = 0 for a differentiable L.  A hinge (z)_+ is approached by the hinge with a quadratic piece of width h,

    l_h(z) = 0 (z <= 0),  z^2 / 2h (z <= h),  z - h/2 (z > h),       l_h'(z) in [0, 1],

whose slope is dual feasible for the hinge itself; then r is the sum of z (1 - z/h) over the terms on the quadratic
piece, at most h/4 each (Chapelle 2007 takes l_h for the loss itself).  The squared hinge z^2 is the quadratic piece of
width infinity and curvature 2.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.arrays import Index, Vector
from mercer.errors import InvalidInput
from mercer.problems.program import GramLike

HingeName = Literal["hinge", "squared_hinge"]


@dataclass(frozen=True, eq=False)
class LatentPoint:
    """The losses at latent values f (n,): `loss` is L, `smooth` its differentiable stand-in, `slope` (n,) that of it.

    `remainder` is r above; `curvature` gives products of the second derivative of `smooth` with vectors (n,).
    """

    loss: float
    smooth: float
    slope: Vector
    remainder: float
    curvature: Callable[[Vector], Vector]
    thresholds: Vector = field(default_factory=lambda: np.empty(0))


class LatentProblem(ABC):
    """n points with a kernel matrix; `widths`: whether the losses have a quadratic piece whose width must vanish."""

    widths = False

    def __init__(self, gram: GramLike) -> None:
        self.gram, self.n = gram, int(gram.shape[0])

    @abstractmethod
    def at(self, f: Vector, width: float) -> LatentPoint:
        """The losses at latent values f (n,), hinges with a quadratic piece of this width."""

    @abstractmethod
    def value(self, f: Vector, width: float) -> float:
        """`at(f, width).smooth` alone."""


@dataclass(frozen=True)
class Piece:
    """l_h or the squared hinge as a function of z: quadratic on (0, width], linear above."""

    width: float
    curvature: float

    @classmethod
    def of(cls, loss: HingeName, width: float) -> "Piece":
        """The hinge with a quadratic piece of this width, or the squared hinge."""
        return cls(np.inf, 2.0) if loss == "squared_hinge" else cls(width, 1.0 / width)

    def value(self, z: Vector) -> Vector:
        """l(z)."""
        inside = 0.5 * self.curvature * np.clip(z, 0.0, self.width) ** 2
        return inside if np.isinf(self.width) else np.asarray(inside + np.maximum(z - self.width, 0.0))

    def slope(self, z: Vector) -> Vector:
        """l'(z)."""
        return np.asarray(self.curvature * np.clip(z, 0.0, self.width))

    def bent(self, z: Vector) -> Vector:
        """l''(z), from the right at 0."""
        return np.where((z > 0.0) & (z <= self.width), self.curvature, 0.0)

    def remainder(self, z: Vector) -> Vector:
        """Z (1 - z/h) on the quadratic piece; nothing for the squared hinge."""
        if np.isinf(self.width):
            return np.zeros_like(z)
        return np.where((z > 0.0) & (z <= self.width), z * (1.0 - z / self.width), 0.0)


def checked_codes(codes: ArrayLike, n: int) -> Index:
    """Ranks (n,) as numbers from 0 on."""
    found = np.asarray(codes)
    if found.shape != (n,) or found.dtype.kind not in "iu" or (n and found.min() < 0):
        raise InvalidInput(f"ranks must be {n} whole numbers from 0 on, got an array of shape {found.shape}")
    return found.astype(np.intp)


def checked_weights(C: float, weights: ArrayLike | None, n: int) -> Vector:
    """Weights (n,) of the points, all one by default, after a check of C."""
    if not 0.0 < C < np.inf:
        raise InvalidInput(f"C must be a positive number, got {C}")
    if weights is None:
        return np.ones(n)
    found: Any = np.asarray(weights, dtype=np.float64)
    if found.shape != (n,) or not np.isfinite(found).all() or (n and found.min() < 0.0):
        raise InvalidInput(f"weights must be {n} finite numbers, none negative")
    return np.asarray(found)


def refuse_missing_ranks(counts: NDArray[Any]) -> None:
    """A threshold beside a rank without points, of weights `counts` (q,), would not be determined."""
    if len(counts) < 2 or counts.min() <= 0.0:
        raise InvalidInput(
            "every rank from 0 to the highest needs a point of positive weight, and there must be two at least: number "
            "the ranks that occur without holes"
        )
