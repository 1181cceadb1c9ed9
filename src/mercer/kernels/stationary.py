"""Kernels of the difference x - z with unbounded support: Gaussian, exponential, Laplacian, Matern and others.

Most are functions of the scaled squared distance

    q = sum_p (x_p - z_p)^2 / sigma_p^2

with one width sigma or one for each feature, in the convention that makes the Gaussian exp(-q / 2): gamma of other
packages is 1 / (2 sigma^2), and the Gaussian exp(-r^2 / s^2) of Hamers (2004) has s = sqrt(2) sigma.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.kernels.base import Kernel, Radial
from mercer.kernels.bessel import log_bessel_k, log_matern
from mercer.kernels.checks import Matrix, Width, Widths, positive, width, widths
from mercer.kernels.distances import scaled
from mercer.kernels.pairs import Pairs
from mercer.kernels.profile import Profile


class _LengthScaled(Radial):
    """k = g(q) with q the squared distance in units of sigma; a subclass gives g and dg/dq.

    From dq/dsigma_p = -2 (x_p - z_p)^2 / sigma_p^3, and for one common width dq/dsigma = -2 q / sigma.
    """

    sigma: Widths
    _checks = {"sigma": widths}

    @abstractmethod
    def _shape(self, q: Matrix) -> Matrix:
        """g(q)."""

    @abstractmethod
    def _shape_slope(self, q: Matrix) -> Matrix:
        """dg/dq; where it is infinite (q = 0 for rough kernels) any finite number, for it is multiplied by zero."""

    def _shape_parameters(self, q: Matrix) -> dict[str, Matrix]:
        """Derivatives of g by parameters other than sigma."""
        return {}

    @property
    def traits(self) -> frozenset[str]:
        """Stationary, and isotropic where one width serves all features."""
        return self._traits - {"isotropic"} if isinstance(self.sigma, tuple) else self._traits

    def _of(self, q: Matrix, dimension: int) -> Matrix:
        if isinstance(self.sigma, tuple):
            raise InvalidInput("a kernel with one width per feature is not a function of the distance alone")
        return self._shape(q / float(self.sigma) ** 2)

    def _scaled_distances(self, pairs: Pairs) -> Matrix:
        if not isinstance(self.sigma, tuple):
            q = pairs.squared_distances()
            q /= float(self.sigma) ** 2
            return q
        if len(self.sigma) != pairs.dimension:
            raise InvalidInput(
                f"sigma holds {len(self.sigma)} widths and the points have {pairs.dimension} features; give one width "
                "per feature, or a single number"
            )
        scale = 1.0 / np.asarray(self.sigma, dtype=np.float64)
        return pairs.mapped(lambda X: scaled(X, scale)).squared_distances()

    def _values(self, pairs: Pairs) -> Matrix:
        return self._shape(self._scaled_distances(pairs))

    def _slopes(self, pairs: Pairs) -> dict[str, Matrix]:
        q = self._scaled_distances(pairs)
        slope = self._shape_slope(q)
        if isinstance(self.sigma, tuple):
            squares = (np.square(x - z) for x, z in pairs.columns())
            by_width = np.stack([slope * (-2.0 / sigma**3) * square for sigma, square in zip(self.sigma, squares)])
        else:
            by_width = slope * q * (-2.0 / float(self.sigma))
        return {"sigma": by_width} | self._shape_parameters(q)

    def _width_and_scale(self) -> tuple[float, NDArray[np.float64] | None]:
        """What a profile is made of: one width, or several that scale the features, which leaves 1."""
        return (1.0, 1.0 / np.asarray(self.sigma)) if isinstance(self.sigma, tuple) else (float(self.sigma), None)


@dataclass(frozen=True)
class Gaussian(_LengthScaled):
    """exp(-q / 2), that is exp(-|x - z|^2 / (2 sigma^2)): strictly positive definite in every dimension.

    sigma: one width, one per feature, or the rule by which a machine chooses it ("loo", "median").
    """

    sigma: Widths = 1.0

    def __post_init__(self) -> None:
        if type(self.sigma) is not float or not 0.0 < self.sigma < math.inf:  # one plain width needs no second look
            super().__post_init__()

    @classmethod
    def from_gamma(cls, gamma: float) -> "Gaussian":
        """The Gaussian written exp(-gamma |x - z|^2)."""
        return cls(sigma=math.sqrt(0.5 / positive(gamma, "gamma")))

    @property
    def gamma(self) -> float:
        """1 / (2 sigma^2), for a kernel with one width."""
        if isinstance(self.sigma, float):
            return 0.5 / self.sigma**2
        raise InvalidInput(f"gamma is defined for one numeric width, not for sigma={self.sigma!r}")

    def _profile(self) -> Profile:
        sigma, scale = self._width_and_scale()
        return Profile("squared_distance", "gaussian", (0.5 / sigma**2,), scale)

    def _shape(self, q: Matrix) -> Matrix:
        values = -0.5 * q
        return np.asarray(np.exp(values, out=values))

    def _shape_slope(self, q: Matrix) -> Matrix:
        return np.asarray(-0.5 * np.exp(-0.5 * q))


@dataclass(frozen=True)
class Exponential(_LengthScaled):
    """exp(-sqrt(q)), that is exp(-|x - z| / sigma); the Matern kernel of smoothness 1/2."""

    sigma: Widths = 1.0

    def _profile(self) -> Profile:
        sigma, scale = self._width_and_scale()
        return Profile("squared_distance", "exponential", (1.0 / sigma,), scale)

    def _shape(self, q: Matrix) -> Matrix:
        return np.asarray(np.exp(-np.sqrt(q)))

    def _shape_slope(self, q: Matrix) -> Matrix:
        root = np.sqrt(q)
        return -0.5 * np.exp(-root) / np.where(root > 0.0, root, 1.0)


@dataclass(frozen=True)
class Matern(_LengthScaled):
    """Matern kernel of smoothness nu: 2^(1-nu) / Gamma(nu) t^nu K_nu(t), t = sqrt(2 nu q), and 1 at q = 0.

    nu = 1/2 is the exponential kernel, 3/2 and 5/2 have closed forms, nu -> infinity is the Gaussian of the same
    sigma; the width of Hamers (2004) is sqrt(2) times this one.  Bessel's K_nu overflows where the kernel itself is
    harmless, so general nu is evaluated in logarithms.  nu is a choice of smoothness: derivatives are by sigma only.
    """

    sigma: Widths = 1.0
    nu: float = 1.5

    _checks = {"sigma": widths, "nu": positive}

    def _profile(self) -> Profile | None:
        name = {0.5: "exponential", 1.5: "matern32", 2.5: "matern52"}.get(self.nu)  # those with a closed form
        sigma, scale = self._width_and_scale()
        return None if name is None else Profile("squared_distance", name, (1.0 / sigma,), scale)

    def _shape(self, q: Matrix) -> Matrix:
        t = np.sqrt(2.0 * self.nu * q)
        if self.nu == 0.5:
            return np.asarray(np.exp(-t))
        if self.nu == 1.5:
            return (1.0 + t) * np.exp(-t)
        if self.nu == 2.5:
            return (1.0 + t + t * t / 3.0) * np.exp(-t)
        return np.asarray(np.exp(log_matern(self.nu, t)))

    def _shape_slope(self, q: Matrix) -> Matrix:
        # d(t^nu K_nu)/dt = -t^nu K_(nu-1) and dt/dq = nu / t; for nu > 1 that is a Matern function again.
        t = np.sqrt(2.0 * self.nu * q)
        if self.nu == 1.5:
            return np.asarray(-1.5 * np.exp(-t))
        if self.nu == 2.5:
            return -(5.0 / 6.0) * (1.0 + t) * np.exp(-t)
        if self.nu > 1.0:
            return -0.5 * self.nu / (self.nu - 1.0) * np.exp(log_matern(self.nu - 1.0, t))
        safe = np.where(t > 0.0, t, 1.0)
        constant = math.log(self.nu) + (1.0 - self.nu) * math.log(2.0) - math.lgamma(self.nu)
        return np.asarray(-np.exp(constant + (self.nu - 1.0) * np.log(safe) + log_bessel_k(1.0 - self.nu, safe)))


@dataclass(frozen=True)
class RationalQuadratic(_LengthScaled):
    """(1 + q / (2 alpha))^(-alpha): a mixture of Gaussians of many widths; alpha -> infinity is the Gaussian."""

    sigma: Widths = 1.0
    alpha: float = 1.0

    _checks = {"sigma": widths, "alpha": positive}

    def _profile(self) -> Profile:
        sigma, scale = self._width_and_scale()
        return Profile("squared_distance", "rational_quadratic", (self.alpha, sigma), scale)

    def _shape(self, q: Matrix) -> Matrix:
        return np.asarray(np.exp(-self.alpha * np.log1p(q / (2.0 * self.alpha))))

    def _shape_slope(self, q: Matrix) -> Matrix:
        return np.asarray(-0.5 * np.exp(-(self.alpha + 1.0) * np.log1p(q / (2.0 * self.alpha))))

    def _shape_parameters(self, q: Matrix) -> dict[str, Matrix]:
        u = q / (2.0 * self.alpha)
        logarithm = np.log1p(u)
        return {"alpha": np.exp(-self.alpha * logarithm) * (u / (1.0 + u) - logarithm)}


@dataclass(frozen=True)
class Laplacian(Kernel):
    """exp(-sum_p |x_p - z_p| / sigma), the L1 distance; scikit-learn's gamma is 1 / sigma."""

    sigma: Width = 1.0
    _traits = frozenset({"stationary"})
    _checks = {"sigma": width}

    def _values(self, pairs: Pairs) -> Matrix:
        return np.asarray(np.exp(-pairs.manhattan() / float(self.sigma)))

    def _slopes(self, pairs: Pairs) -> dict[str, Matrix]:
        distance = pairs.manhattan() / float(self.sigma)
        return {"sigma": np.exp(-distance) * distance / float(self.sigma)}


@dataclass(frozen=True)
class Periodic(Kernel):
    """exp(-2 / sigma^2 sum_p sin^2(pi (x_p - z_p) / period)): repeats in every feature with the same period.

    The sum over features makes it a product of kernels on the circle, positive definite in every dimension; the form
    with sin^2(pi |x - z| / period) is not, for more than one feature.
    """

    period: float = 1.0
    sigma: Width = 1.0
    _traits = frozenset({"stationary"})
    _checks = {"period": positive, "sigma": width}

    def _values(self, pairs: Pairs) -> Matrix:
        total = sum(np.square(np.sin(np.pi / self.period * (x - z))) for x, z in pairs.columns())
        return np.asarray(np.exp(-2.0 / float(self.sigma) ** 2 * total))

    def _slopes(self, pairs: Pairs) -> dict[str, Matrix]:
        sigma = float(self.sigma)
        total = np.zeros(pairs.shape)
        turning = np.zeros(pairs.shape)  # sum_p (x_p - z_p) sin(2 phase_p), from the derivative of sin^2
        for x, z in pairs.columns():
            phase = np.pi / self.period * (x - z)
            total += np.square(np.sin(phase))
            turning += (x - z) * np.sin(2.0 * phase)
        value = np.exp(-2.0 / sigma**2 * total)
        return {
            "period": value * (2.0 * np.pi / (sigma * self.period) ** 2) * turning,
            "sigma": value * (4.0 / sigma**3) * total,
        }
