"""Conditionally positive definite kernels, the inverse multiquadric, and a locally stationary kernel.

A kernel here carries the sign that makes it conditionally positive definite of the order it states: c'Kc >= 0 for
every c with sum_i c_i p(x_i) = 0 for all polynomials p of degree below the order.  Order 1 needs a bias in the model,
order 2 a bias and a linear term.  A matrix of order m on R^d may have up to C(m - 1 + d, d) negative eigenvalues.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.kernels.base import Kernel, Radial
from mercer.kernels.checks import Matrix, Width, nonnegative, positive, real, whole, width
from mercer.kernels.pairs import Pairs, Same


def _log(r: Matrix) -> Matrix:
    """The logarithm log r, and 0 at r = 0, where it stands beside a factor that is zero."""
    return np.asarray(np.log(np.where(r > 0.0, r, 1.0)))


def _odd(value: Any, name: str) -> int:
    """An odd whole number, of either sign."""
    number = real(value, name)
    if number % 2.0 != 1.0:
        raise InvalidInput(f"{name} must be an odd whole number, got {value!r}; give -1 (inverse), 1 or 3")
    return int(number)


@dataclass(frozen=True)
class Log(Radial):
    """-log(1 + (r/sigma)^beta), 0 < beta <= 2: conditionally positive definite of order 1."""

    sigma: Width = 1.0
    beta: float = 2.0
    _order = 1
    _checks = {"sigma": width, "beta": positive}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beta > 2.0:
            raise NotPositiveDefinite(
                f"beta={self.beta}: -log(1 + r^beta) is conditionally positive definite for 0 < beta <= 2 only; lower "
                "beta"
            )

    def _of(self, q: Matrix, dimension: int) -> Matrix:
        return np.asarray(-np.log1p((np.sqrt(q) / float(self.sigma)) ** self.beta))

    def _slopes_of(self, q: Matrix, dimension: int) -> dict[str, Matrix]:
        rho = np.sqrt(q) / float(self.sigma)
        power = rho**self.beta
        share = power / (1.0 + power)
        return {"sigma": share * self.beta / float(self.sigma), "beta": -share * _log(rho)}


@dataclass(frozen=True)
class Power(Radial):
    """(-1)^ceil(beta/2) r^beta for beta > 0 not an even number: conditional order ceil(beta/2); -r for beta = 1."""

    beta: float = 1.0
    _checks = {"beta": positive}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beta % 2.0 == 0.0:
            raise NotPositiveDefinite(
                f"beta={self.beta} is even, and then r^beta is a polynomial, definite in no useful sense; "
                "take a beta beside it, or ThinPlate"
            )

    @property
    def conditional_order(self) -> int:
        """The order ceil(beta / 2)."""
        return math.ceil(0.5 * self.beta)

    def _of(self, q: Matrix, dimension: int) -> Matrix:
        return np.asarray((-1.0) ** self.conditional_order * q ** (0.5 * self.beta))

    def _slopes_of(self, q: Matrix, dimension: int) -> dict[str, Matrix]:
        return {"beta": self._of(q, dimension) * 0.5 * _log(q)}


@dataclass(frozen=True)
class ThinPlate(Radial):
    """(-1)^(k+1) rho^(2k) log(rho), rho = r/sigma, k = 1, 2, ...: conditional order k + 1; 0 at r = 0.

    k = 1 is the thin plate spline r^2 log r.  sigma only sets the unit of length: it adds to the kernel a polynomial in
    r^2 that the side conditions remove, and a factor.
    """

    sigma: Width = 1.0
    k: int = 1
    _checks = {"sigma": width, "k": partial(whole, least=1)}

    @property
    def conditional_order(self) -> int:
        """The order k + 1."""
        return self.k + 1

    def _of(self, q: Matrix, dimension: int) -> Matrix:
        u = q / float(self.sigma) ** 2
        return np.asarray((-1.0) ** (self.k + 1) * 0.5 * u**self.k * _log(u))

    def _slopes_of(self, q: Matrix, dimension: int) -> dict[str, Matrix]:
        u = q / float(self.sigma) ** 2
        slope = (-1.0) ** (self.k + 1) * 0.5 * u**self.k * (self.k * _log(u) + 1.0)
        return {"sigma": -2.0 / float(self.sigma) * slope}


@dataclass(frozen=True)
class Multiquadric(Radial):
    """(sigma^2 + r^2)^(u/2) for odd u, with the sign (-1)^ceil(u/2) where u > 0.

    u < 0 is the inverse multiquadric, positive definite in every dimension.  u > 0 is conditionally positive definite
    of order ceil(u/2): u = 1, -sqrt(sigma^2 + r^2), needs a bias; u = 3 and above need polynomials besides.
    """

    sigma: Width = 1.0
    u: int = -1
    _checks = {"sigma": width, "u": _odd}

    @property
    def conditional_order(self) -> int:
        """0 for u < 0, else ceil(u / 2)."""
        return max(0, (self.u + 1) // 2)

    def _of(self, q: Matrix, dimension: int) -> Matrix:
        return np.asarray((-1.0) ** self.conditional_order * (float(self.sigma) ** 2 + q) ** (0.5 * self.u))

    def _slopes_of(self, q: Matrix, dimension: int) -> dict[str, Matrix]:
        sigma = float(self.sigma)
        slope = self.u * sigma * (sigma**2 + q) ** (0.5 * self.u - 1.0)
        return {"sigma": (-1.0) ** self.conditional_order * slope}


@dataclass(frozen=True)
class LocallyStationary(Kernel):
    """exp(-a |(x + z)/2|^2 - b |x - z|^2): a stationary kernel under an envelope of the place (Hamers 2004, 4.4).

    From |x + z|^2 = 2|x|^2 + 2|z|^2 - |x - z|^2 it is exp(-a|x|^2/2) exp(-a|z|^2/2) exp(-(b - a/4)|x - z|^2), positive
    definite if and only if b >= a/4.
    """

    a: float = 1.0
    b: float = 1.0
    _traits = frozenset({"locally stationary"})
    _checks = {"a": partial(nonnegative, reason="the envelope would grow without bound"), "b": positive}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.b < 0.25 * self.a:
            raise NotPositiveDefinite(
                f"b={self.b} is below a/4={0.25 * self.a}, and then the kernel is not positive definite; raise b or "
                "lower a"
            )

    def _parts(self, pairs: Pairs) -> tuple[Matrix, Matrix, Matrix]:
        """|(x + z)/2|^2, |x - z|^2 and the value."""
        distance = pairs.squared_distances()
        left, right = pairs.each(Same.products)
        middle = 0.5 * left + 0.5 * right - 0.25 * distance
        return middle, distance, np.exp(-self.a * middle - self.b * distance)

    def _values(self, pairs: Pairs) -> Matrix:
        return self._parts(pairs)[2]

    def _slopes(self, pairs: Pairs) -> dict[str, Matrix]:
        middle, distance, value = self._parts(pairs)
        return {"a": -middle * value, "b": -distance * value}
