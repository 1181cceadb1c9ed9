"""Random Fourier features: a stationary kernel as a mean over random cosines.

By Bochner's theorem k(x, z) = g(x - z) with g(0) = v is v times the mean of cos(w'(x - z)) over the frequencies w of
its spectral density, so that with D draws

    phi(x) = sqrt(v / D) [cos(w_1'x), sin(w_1'x), ..., cos(w_D'x), sin(w_D'x)]

has <phi(x), phi(z)> = v/D sum_j cos(w_j'(x - z)): unbiased, exact at x = z, with an error of about v / sqrt(D)
(Rahimi and Recht 2007).  The densities, in units where sigma = 1:

    Gaussian               standard normal
    Laplacian (sum |x_p|)  independent Cauchy coordinates
    Matern(nu)             multivariate t with 2 nu degrees of freedom; Exponential is nu = 1/2
    RationalQuadratic(a)   a normal vector times sqrt(gamma(a) / a): the kernel is such a mixture of Gaussians

A density that depends on |w| alone can take its directions from random rotations instead, d at a time, and its lengths
from independent draws: orthogonal random features, unbiased as well and with less variance (Yu and others 2016).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import dense
from mercer.errors import InvalidInput
from mercer.kernels import Exponential, Gaussian, Kernel, Laplacian, Matern, RationalQuadratic, Scaled
from mercer.lowrank.feature_map import FeatureMap

Array = NDArray[np.float64]


class FourierMap(FeatureMap):
    """phi for frequencies `frequencies` (d, D) and variance v = k(x, x): p = 2 D features."""

    def __init__(self, kernel: Kernel, frequencies: Array, variance: float, *, method: str = "random Fourier") -> None:
        self.kernel, self.frequencies, self.variance, self.method = kernel, frequencies, variance, method

    @property
    def dimension(self) -> int:
        """Number of features 2 D."""
        return 2 * int(self.frequencies.shape[1])

    @property
    def width(self) -> int:
        """Number of features 2 D."""
        return self.dimension

    def _block(self, X: Any) -> Array:
        d, D = self.frequencies.shape
        if X.shape[1] != d:
            raise InvalidInput(f"X has {X.shape[1]} features, the frequencies have {d}")
        angles = np.asarray(X @ self.frequencies, dtype=np.float64)
        Z = np.empty((X.shape[0], 2 * D))
        np.cos(angles, out=Z[:, :D])
        np.sin(angles, out=Z[:, D:])
        Z *= np.sqrt(self.variance / D)
        return Z

    def __repr__(self) -> str:
        return f"FourierMap({self.kernel!r}, {self.dimension} features, {self.method})"


def fourier_map(
    kernel: Kernel, d: int, m: int, seed: int | np.random.Generator | None = None, *, orthogonal: bool = False
) -> FourierMap:
    """About m features (m made even) of a stationary kernel on points with d features."""
    variance, inner = 1.0, kernel
    while isinstance(inner, Scaled):
        variance, inner = variance * float(inner.factor), inner.kernel
    count = max(1, (m + 1) // 2)
    random = np.random.default_rng(seed)
    draws = _frequencies(inner, count, d, random, kernel)
    if orthogonal:
        if isinstance(inner, Laplacian):
            raise InvalidInput("orthogonal features need a kernel of the Euclidean distance; use RandomFourier")
        draws = _rotated(draws, random)
    sigma = np.asarray(inner.parameters["sigma"], dtype=np.float64)
    if sigma.ndim and sigma.size != d:
        raise InvalidInput(f"sigma holds {sigma.size} widths and the points have {d} features")
    method = "orthogonal Fourier" if orthogonal else "random Fourier"
    return FourierMap(kernel, np.ascontiguousarray((draws / sigma).T), variance, method=method)


def _frequencies(kernel: Kernel, count: int, d: int, random: np.random.Generator, given: Kernel) -> Array:
    """Draws (count, d) from the spectral density for sigma = 1."""
    if isinstance(kernel, Laplacian):
        return random.standard_cauchy((count, d))
    normal = random.standard_normal((count, d))
    if isinstance(kernel, Gaussian):
        return normal
    if isinstance(kernel, Exponential | Matern):
        freedom = 2.0 * (kernel.nu if isinstance(kernel, Matern) else 0.5)
        return normal * np.sqrt(freedom / random.chisquare(freedom, (count, 1)))
    if isinstance(kernel, RationalQuadratic):
        return normal * np.sqrt(random.gamma(kernel.alpha, 1.0 / kernel.alpha, (count, 1)))
    raise InvalidInput(
        f"{given!r} has no known spectral density; random Fourier features are for Gaussian, Laplacian, Exponential, "
        "Matern and RationalQuadratic kernels: use Nystrom, which takes every positive definite kernel"
    )


def _rotated(draws: Array, random: np.random.Generator) -> Array:
    """The lengths of the draws (D, d) on directions that are orthogonal in blocks of d."""
    count, d = draws.shape
    lengths = np.linalg.norm(draws, axis=1)
    directions = np.empty_like(draws)
    for start in range(0, count, d):
        Q, R = dense.qr(random.standard_normal((d, d)))
        Q *= np.sign(np.diagonal(R))  # uniform over all rotations
        stop = min(count, start + d)
        directions[start:stop] = Q.T[: stop - start]
    return np.asarray(lengths[:, None] * directions)
