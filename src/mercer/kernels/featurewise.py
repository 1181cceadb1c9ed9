"""Kernels built feature by feature: B-splines, splines with infinitely many knots, and ANOVA.

They read one column at a time, so that sparse points are never made dense, at a cost of O(n m d).
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from mercer.errors import InvalidInput
from mercer.kernels.algebra import definite_kernel
from mercer.kernels.base import Kernel
from mercer.kernels.checks import Matrix, Width, real, whole, width
from mercer.kernels.pairs import Pairs
from mercer.parameters import prefixed


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
    _traits = frozenset({"stationary", "compact"})
    _checks = {"n": partial(whole, least=0), "sigma": width}

    def _support(self, dimension: int | None) -> float | None:
        # the corner of the box outside of which the kernel is zero
        return None if dimension is None else math.sqrt(dimension) * (self.n + 1) * float(self.sigma)

    def _values(self, pairs: Pairs) -> Matrix:
        result = np.ones(pairs.shape)
        for x, z in pairs.columns():
            result *= b_spline(2 * self.n + 1, (x - z) / float(self.sigma))
        return result

    def _slopes(self, pairs: Pairs) -> dict[str, Matrix]:
        sigma = float(self.sigma)
        value, slope = np.ones(pairs.shape), np.zeros(pairs.shape)
        for x, z in pairs.columns():
            u = (x - z) / sigma
            factor = b_spline(2 * self.n + 1, u)
            slope = slope * factor + value * b_spline_slope(2 * self.n + 1, u) * np.abs(u) / sigma
            value *= factor
        return {"sigma": slope}


@dataclass(frozen=True)
class Spline(Kernel):
    """prod_p s(x_p - lower, z_p - lower): splines of that degree with a knot at every place from `lower` on.

        s(u, v) = sum_(r=0..q) (u v)^r + integral_0^min(u,v) (u - t)^q (v - t)^q dt,      u, v >= 0,

    with the integral sum_r C(q, r) / (2q - r + 1) min(u, v)^(2q-r+1) |u - v|^r (Vapnik 1998, section 11.7).  Features
    below `lower` are refused, because there the formula is not positive definite.
    """

    degree: int = 1
    lower: float = 0.0
    _checks = {"degree": partial(whole, least=1), "lower": real}

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

    def _values(self, pairs: Pairs) -> Matrix:
        result = np.ones(pairs.shape)
        for x, z in pairs.columns():
            result *= self._factor(x, z)
        return result


@dataclass(frozen=True)
class ANOVA(Kernel):
    """sum over all sets S of `degree` features of prod_(p in S) kernel(x_p, z_p): interactions of that order only.

    The sum of C(d, degree) products is the elementary symmetric polynomial of the d one-feature kernels and takes
    O(d degree) steps: e_s <- e_s + k_p e_(s-1) for p = 1..d.  Nothing cancels where the inner kernel is not negative.
    """

    kernel: Kernel
    degree: int = 2
    _checks = {"kernel": partial(definite_kernel, operation="ANOVA"), "degree": partial(whole, least=1)}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kernel.objects:
            raise InvalidInput(f"{self.kernel!r} works on objects, which have no features; use a kernel on vectors")

    @property
    def traits(self) -> frozenset[str]:
        """Stationary where the inner kernel is."""
        return self.kernel.traits & {"stationary"}

    def _features(self, pairs: Pairs) -> Iterator[Pairs]:
        """The pairs, feature by feature, where there are enough of them."""
        if pairs.dimension < self.degree:
            raise InvalidInput(
                f"degree={self.degree} needs at least as many features, and the points have {pairs.dimension}; lower "
                "degree"
            )
        return pairs.features()

    def _values(self, pairs: Pairs) -> Matrix:
        return _symmetric(((self.kernel._values(one), {}) for one in self._features(pairs)), self.degree)[0]

    def _slopes(self, pairs: Pairs) -> dict[str, Matrix]:
        parts = ((self.kernel._values(one), self.kernel._slopes(one)) for one in self._features(pairs))
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
