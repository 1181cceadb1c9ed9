"""Kernels that are exactly zero beyond a distance, so that the matrix is sparse.

Positive definiteness on R^d ties the shape to the dimension: max(0, 1 - r/theta)^nu needs nu >= (d + 1) / 2, and
Wendland's polynomials are built for a largest d.  The condition is checked against the data at every evaluation,
because the failure is silent otherwise: with nu = 1 on five features the matrix has clearly negative eigenvalues.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.kernels.base import Radial
from mercer.kernels.checks import Matrix, Width, positive, whole, width

_COMPACT = frozenset({"stationary", "isotropic", "compact"})
_CUT = 3.0 * math.sqrt(2.0)  # Hamers cuts exp(-r^2/s^2) at 3 s, and s = sqrt(2) sigma


def _exponent(nu: float | None, dimension: int) -> float:
    """The exponent for points with that many features, refused where the taper is not positive definite."""
    if nu is None:
        return float(dimension if dimension % 2 else dimension + 1)
    if nu < 0.5 * (dimension + 1):
        raise NotPositiveDefinite(
            f"nu={nu} is too small for points with {dimension} features: max(0, 1 - r/theta)^nu is positive definite "
            f"only for nu >= (d + 1) / 2 = {0.5 * (dimension + 1)}; raise nu, or leave it at None"
        )
    return nu


def _optional(value: Any, name: str) -> float | None:
    return None if value is None else positive(value, name)


def _taper(r: Matrix, theta: float, nu: float) -> dict[str, Matrix]:
    """max(0, 1 - r/theta)^nu and its derivatives by theta and nu."""
    inside = np.maximum(0.0, 1.0 - r / theta)
    value = inside**nu
    # nu = 1 at the rim: 0^0 would count the outside; the derivative there is zero.
    slope = np.where(inside > 0.0, nu * np.where(inside > 0.0, inside, 1.0) ** (nu - 1.0), 0.0)
    return {
        "value": value,
        "theta": slope * r / theta**2,
        "nu": value * np.log(np.where(inside > 0.0, inside, 1.0)),
    }


@dataclass(frozen=True)
class Taper(Radial):
    """max(0, 1 - r/theta)^nu, r = |x - z|: multiply another kernel by it to cut that off at theta.

    nu: at least (d + 1) / 2; None takes d for odd d and d + 1 for even d.
    """

    theta: Width = 1.0
    nu: float | None = None
    _traits = _COMPACT
    _checks = {"theta": width, "nu": _optional}

    def _support(self, dimension: int | None) -> float:
        return float(self.theta)

    def _of(self, q: Matrix, dimension: int) -> Matrix:
        return _taper(np.sqrt(q), float(self.theta), _exponent(self.nu, dimension))["value"]

    def _slopes_of(self, q: Matrix, dimension: int) -> dict[str, Matrix]:
        parts = _taper(np.sqrt(q), float(self.theta), _exponent(self.nu, dimension))
        return {"theta": parts["theta"]} | ({} if self.nu is None else {"nu": parts["nu"]})


@dataclass(frozen=True)
class CompactGaussian(Radial):
    """max(0, 1 - r/theta)^nu exp(-r^2 / (2 sigma^2)): the Gaussian made sparse (Hamers 2004, section 4.3).

    theta: where it is cut; None takes 3 sqrt(2) sigma, where the Gaussian is down to e^-9.
    nu: as in `Taper`.  It grows with the number of features, and then narrows the kernel more than the cut does.
    """

    sigma: Width = 1.0
    nu: float | None = None
    theta: float | None = None
    _traits = _COMPACT
    _checks = {"sigma": width, "nu": _optional, "theta": _optional}

    def _support(self, dimension: int | None = None) -> float:
        return _CUT * float(self.sigma) if self.theta is None else self.theta

    def _of(self, q: Matrix, dimension: int) -> Matrix:
        taper = _taper(np.sqrt(q), self._support(), _exponent(self.nu, dimension))["value"]
        return np.asarray(taper * np.exp(-0.5 * q / float(self.sigma) ** 2))

    def _slopes_of(self, q: Matrix, dimension: int) -> dict[str, Matrix]:
        sigma = float(self.sigma)
        taper = _taper(np.sqrt(q), self._support(), _exponent(self.nu, dimension))
        gaussian = np.exp(-0.5 * q / sigma**2)
        by_sigma = taper["value"] * gaussian * q / sigma**3
        result = {"sigma": by_sigma + _CUT * taper["theta"] * gaussian if self.theta is None else by_sigma}
        if self.nu is not None:
            result["nu"] = taper["nu"] * gaussian
        if self.theta is not None:
            result["theta"] = taper["theta"] * gaussian
        return result


@dataclass(frozen=True)
class Wendland(Radial):
    """Wendland's piecewise polynomial of least degree, 2k times differentiable, positive definite up to `dimension`.

    With rho = r/theta, l = floor(dimension/2) + k + 1 and (.)_+ the positive part,

        k = 0   (1 - rho)_+^l
        k = 1   (1 - rho)_+^(l+1) ((l+1) rho + 1)
        k = 2   (1 - rho)_+^(l+2) ((l^2+4l+3) rho^2 + (3l+6) rho + 3) / 3
        k = 3   (1 - rho)_+^(l+3) ((l^3+9l^2+23l+15) rho^3 + (6l^2+36l+45) rho^2 + (15l+45) rho + 15) / 15

    Points with more features than `dimension` are refused (Wendland 1995).
    """

    theta: Width = 1.0
    k: int = 1
    dimension: int = 3
    _traits = _COMPACT
    _checks = {"theta": width, "k": partial(whole, least=0), "dimension": partial(whole, least=1)}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k > 3:
            raise InvalidInput(f"k={self.k} is not provided; give the smoothness k as 0, 1, 2 or 3")

    def _support(self, dimension: int | None) -> float:
        return float(self.theta)

    def _polynomial(self) -> tuple[int, np.polynomial.Polynomial]:
        """The exponent of (1 - rho)_+ and the factor beside it."""
        l = self.dimension // 2 + self.k + 1
        coefficients = (
            [1.0],
            [1.0, l + 1.0],
            [1.0, l + 2.0, (l * l + 4 * l + 3) / 3.0],
            [1.0, l + 3.0, (6 * l * l + 36 * l + 45) / 15.0, (l**3 + 9 * l * l + 23 * l + 15) / 15.0],
        )[self.k]
        return l + self.k, np.polynomial.Polynomial(coefficients)

    def _scaled(self, q: Matrix, dimension: int) -> Matrix:
        if dimension > self.dimension:
            raise NotPositiveDefinite(
                f"Wendland's kernel with dimension={self.dimension} is positive definite up to that many features, and "
                f"the points have {dimension}; set dimension={dimension}"
            )
        return np.asarray(np.sqrt(q) / float(self.theta))

    def _of(self, q: Matrix, dimension: int) -> Matrix:
        rho = self._scaled(q, dimension)
        power, factor = self._polynomial()
        return np.asarray(np.maximum(0.0, 1.0 - rho) ** power * factor(rho))

    def _slopes_of(self, q: Matrix, dimension: int) -> dict[str, Matrix]:
        rho = self._scaled(q, dimension)
        power, factor = self._polynomial()
        inside = np.maximum(0.0, 1.0 - rho)
        rim = np.where(inside > 0.0, inside ** (power - 1), 0.0)
        slope = rim * (inside * factor.deriv()(rho) - power * factor(rho))
        return {"theta": -slope * rho / float(self.theta)}
