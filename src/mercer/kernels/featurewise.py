"""Kernels built feature by feature: B-splines, splines with infinitely many knots, and ANOVA.

They read one column at a time, so that sparse points are never made dense, at a cost of O(n m d).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mercer.errors import InvalidInput
from mercer.kernels.algebra import require_definite
from mercer.kernels.base import Kernel, prefixed
from mercer.kernels.distances import columns
from mercer.kernels.points import Matrix, Points, Width, real, whole, width


def b_spline(order: int, u: Matrix) -> Matrix:
    """The centred B-spline B_m(u), order m >= 0, with support |u| < (m + 1)/2 and B_m the m-fold smoothing of a box.

    B_m(u) = 1/m! sum_r (-1)^r C(m+1, r) (u + (m+1)/2 - r)_+^m, evaluated at -|u|: there the fewest terms are left,
    which keeps the symmetry exact and cures the cancellation (order 31: error 3e-12 in place of 1.7).
    """
    return _truncated_powers(order, order, u)


def b_spline_slope(order: int, u: Matrix) -> Matrix:
    """dB_m/du at -|u|, which is >= 0, order m >= 1."""
    return _truncated_powers(order, order - 1, u)


def _truncated_powers(order: int, power: int, u: Matrix) -> Matrix:
    start = 0.5 * (order + 1) - np.abs(u)
    result = np.zeros_like(start)
    for r in range(order // 2 + 1):
        base = np.maximum(start - r, 0.0)
        term = np.where(base > 0.0, 1.0, 0.0) if power == 0 else base**power
        result += (-1.0) ** r * math.comb(order + 1, r) * term
    return result / math.factorial(power)


@dataclass(frozen=True)
class BSpline(Kernel):
    """prod_p B_(2n+1)((x_p - z_p) / sigma): B-splines of odd order, the only ones sure to be positive definite.

    n = 0 is the hat max(0, 1 - |u|); B_(2n+1) vanishes for |u| >= n + 1, so the kernel vanishes when one feature
    differs by (n + 1) sigma (Hamers 2004, section 4.3.1).
    """

    n: int = 1
    sigma: Width = 1.0
    _traits: ClassVar[frozenset[str]] = frozenset({"stationary", "compact"})
    _widths: ClassVar[tuple[str, ...]] = ("sigma",)

    def __post_init__(self) -> None:
        self._set(n=whole(self.n, "n", 0), sigma=width(self.sigma, "sigma"))

    def support_in(self, dimension: int) -> float | None:
        """sqrt(d) (n + 1) sigma: the corner of the box outside of which the kernel is zero."""
        return None if self.placeholders else math.sqrt(dimension) * (self.n + 1) * float(self.sigma)

    def _evaluate(self, X: Points, Z: Points | None) -> Matrix:
        result = np.ones((X.shape[0], X.shape[0] if Z is None else Z.shape[0]))
        for x, z in columns(X, Z):
            result *= b_spline(2 * self.n + 1, (x - z) / float(self.sigma))
        return result

    def _diagonal(self, X: Points) -> Matrix:
        peak = b_spline(2 * self.n + 1, np.zeros(1))[0]
        return np.full(X.shape[0], peak ** X.shape[1])

    def _derivatives(self, X: Points, Z: Points | None) -> dict[str, Matrix]:
        sigma = float(self.sigma)
        value = np.ones((X.shape[0], X.shape[0] if Z is None else Z.shape[0]))
        slope = np.zeros_like(value)
        for x, z in columns(X, Z):
            u = (x - z) / sigma
            factor = b_spline(2 * self.n + 1, u)
            slope = slope * factor + value * b_spline_slope(2 * self.n + 1, u) * np.abs(u) / sigma
            value *= factor
        return {"sigma": slope}

    def _diagonal_derivatives(self, X: Points) -> dict[str, Matrix]:
        return {"sigma": np.zeros(X.shape[0])}


@dataclass(frozen=True)
class Spline(Kernel):
    """prod_p s(x_p - lower, z_p - lower): splines of that degree with a knot at every place from `lower` on.

        s(u, v) = sum_(r=0..q) (u v)^r + integral_0^min(u,v) (u - t)^q (v - t)^q dt,      u, v >= 0,

    with the integral sum_r C(q, r) / (2q - r + 1) min(u, v)^(2q-r+1) |u - v|^r (Vapnik 1998, section 11.7).  Features
    below `lower` are refused, because there the formula is not positive definite.
    """

    degree: int = 1
    lower: float = 0.0

    def __post_init__(self) -> None:
        self._set(degree=whole(self.degree, "degree", 1), lower=real(self.lower, "lower"))

    def _factor(self, x: Matrix, z: Matrix) -> Matrix:
        u, v = x - self.lower, z - self.lower
        if min(u.min(), v.min()) < 0.0:
            raise InvalidInput(
                f"a feature lies {-min(u.min(), v.min()):.3g} below lower={self.lower}; "
                "lower `lower`, or scale the features to [0, 1] first"
            )
        q = self.degree
        least, gap, inner = np.minimum(u, v), np.abs(u - v), u * v
        result = sum(inner**r for r in range(1, q + 1)) + 1.0
        for r in range(q + 1):
            result = result + math.comb(q, r) / (2 * q - r + 1) * least ** (2 * q - r + 1) * gap**r
        return np.asarray(result)

    def _evaluate(self, X: Points, Z: Points | None) -> Matrix:
        result = np.ones((X.shape[0], X.shape[0] if Z is None else Z.shape[0]))
        for x, z in columns(X, Z):
            result *= self._factor(x, z)
        return result

    def _diagonal(self, X: Points) -> Matrix:
        result = np.ones(X.shape[0])
        for x, _ in columns(X, None):
            result *= self._factor(x[:, 0], x[:, 0])
        return result


@dataclass(frozen=True)
class ANOVA(Kernel):
    """sum over all sets S of `degree` features of prod_(p in S) kernel(x_p, z_p): interactions of that order only.

    The sum of C(d, degree) products is the elementary symmetric polynomial of the d one-feature kernels and takes
    O(d degree) steps: e_s <- e_s + k_p e_(s-1) for p = 1..d.  Nothing cancels where the inner kernel is not negative.
    """

    kernel: Kernel
    degree: int = 2

    def __post_init__(self) -> None:
        require_definite(self.kernel, "kernel", "ANOVA")
        if self.kernel.objects:
            raise InvalidInput(f"{self.kernel!r} works on objects, which have no features; use a kernel on vectors")
        self._set(degree=whole(self.degree, "degree", 1))

    @property
    def stationary(self) -> bool:
        """As the inner kernel."""
        return self.kernel.stationary

    def _refuse_few(self, X: Points) -> None:
        if X.shape[1] < self.degree:
            raise InvalidInput(
                f"degree={self.degree} needs at least as many features, and the points have {X.shape[1]}; lower degree"
            )

    def _evaluate(self, X: Points, Z: Points | None) -> Matrix:
        self._refuse_few(X)
        return _symmetric(((self.kernel._matrix(x, z.T), {}) for x, z in columns(X, Z)), self.degree)[0]

    def _diagonal(self, X: Points) -> Matrix:
        self._refuse_few(X)
        inner = self.kernel
        return _symmetric(((inner._diagonal(inner._prepare(x)), {}) for x, _ in columns(X, None)), self.degree)[0]

    def _derivatives(self, X: Points, Z: Points | None) -> dict[str, Matrix]:
        self._refuse_few(X)
        parts = ((self.kernel._matrix(x, z.T), self.kernel._slopes_of(x, z.T)) for x, z in columns(X, Z))
        return prefixed("kernel", _symmetric(parts, self.degree)[1])

    def _diagonal_derivatives(self, X: Points) -> dict[str, Matrix]:
        self._refuse_few(X)
        inner = self.kernel
        prepared = (inner._prepare(x) for x, _ in columns(X, None))
        parts = ((inner._diagonal(x), inner._diagonal_derivatives(x)) for x in prepared)
        return prefixed("kernel", _symmetric(parts, self.degree)[1])


def _symmetric(parts: Iterable[tuple[Matrix, dict[str, Matrix]]], degree: int) -> tuple[Matrix, dict[str, Matrix]]:
    """Sum over all choices of `degree` values of their product, and its derivatives by each name; one value at a time.

    Each part is a value and its derivatives, all of one shape.
    """
    e: list[Matrix] = []
    slopes: dict[str, list[Matrix]] = {}
    for value, by_name in parts:
        if not e:
            e = [np.ones_like(value)] + [np.zeros_like(value) for _ in range(degree)]
            slopes = {name: [np.zeros_like(value) for _ in range(degree + 1)] for name in by_name}
        for s in range(degree, 0, -1):
            for name, de in slopes.items():
                de[s] += by_name[name] * e[s - 1] + value * de[s - 1]
            e[s] += value * e[s - 1]
    return e[degree], {name: de[degree] for name, de in slopes.items()}
