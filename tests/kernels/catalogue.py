"""One or more examples of every kernel, with points it takes: what the properties of all kernels are tested on."""

from typing import Any

import numpy as np

from mercer.kernels import (
    ANOVA,
    AdditiveChiSquare,
    Bilinear,
    BSpline,
    ChiSquare,
    ChiSquareDistance,
    CompactGaussian,
    Constant,
    Cosine,
    Exp,
    Exponential,
    Gaussian,
    HistogramIntersection,
    Kernel,
    Laplacian,
    Linear,
    LocallyStationary,
    Log,
    Matern,
    Multiquadric,
    Normalised,
    NormalisedPolynomial,
    Periodic,
    Polynomial,
    Power,
    RationalQuadratic,
    Restricted,
    Sigmoid,
    Spline,
    Taper,
    ThinPlate,
    Wendland,
)

D = 3

ON_VECTORS: list[Kernel] = [
    Gaussian(sigma=1.3),
    Gaussian(sigma=(0.7, 1.5, 2.0)),
    Exponential(sigma=0.8),
    Exponential(sigma=(0.8, 1.0, 3.0)),
    Laplacian(sigma=1.7),
    Matern(sigma=1.1, nu=0.5),
    Matern(sigma=1.1, nu=1.5),
    Matern(sigma=1.1, nu=2.5),
    Matern(sigma=1.1, nu=0.3),
    Matern(sigma=1.1, nu=1.0),
    Matern(sigma=0.9, nu=3.2),
    Matern(sigma=(0.9, 1.4, 0.6), nu=1.5),
    Matern(sigma=1.0, nu=80.0),
    RationalQuadratic(sigma=0.9, alpha=1.7),
    RationalQuadratic(sigma=(0.9, 1.0, 2.0), alpha=0.6),
    Periodic(period=1.9, sigma=1.2),
    Linear(),
    Constant(value=1.5),
    Polynomial(degree=3, offset=1.0, gamma=0.5),
    Polynomial(degree=2, offset=0.0),
    Sigmoid(gamma=0.4, offset=-0.2),
    Cosine(),
    NormalisedPolynomial(degree=2, offset=1.0),
    Bilinear(A=((2.0, 0.5, 0.0), (0.5, 1.0, 0.0), (0.0, 0.0, 0.3))),
    BSpline(n=0, sigma=1.5),
    BSpline(n=1, sigma=0.9),
    BSpline(n=2, sigma=0.6),
    ANOVA(kernel=Gaussian(sigma=0.8), degree=2),
    ANOVA(kernel=Polynomial(degree=2, offset=0.5), degree=3),
    Taper(theta=2.5, nu=2.2),
    Taper(theta=2.5),
    CompactGaussian(sigma=0.9),
    CompactGaussian(sigma=0.9, nu=2.5, theta=2.0),
    Wendland(theta=2.5, k=0),
    Wendland(theta=2.5, k=1),
    Wendland(theta=2.5, k=2),
    Wendland(theta=2.5, k=3, dimension=4),
    Log(sigma=0.7, beta=1.5),
    Power(beta=1.0),
    Power(beta=3.3),
    ThinPlate(sigma=1.3, k=1),
    ThinPlate(sigma=1.3, k=2),
    Multiquadric(sigma=0.8, u=-1),
    Multiquadric(sigma=0.8, u=-3),
    Multiquadric(sigma=0.8, u=1),
    Multiquadric(sigma=0.8, u=3),
    LocallyStationary(a=0.8, b=0.5),
    2.0 * Gaussian(sigma=0.9) + Linear(),
    Matern(sigma=2.0, nu=1.5) * Taper(theta=2.0, nu=2.3),
    Gaussian(sigma=(1.0, 2.0, 3.0)) * Polynomial(degree=2, offset=1.0) + 0.5,
    Gaussian(sigma=1.4) ** 3,
    Exp(0.2 * Linear()),
    Exp(Multiquadric(sigma=0.8, u=1)),
    Normalised(Polynomial(degree=2, offset=0.7, gamma=0.6)),
    Normalised(LocallyStationary(a=0.8, b=0.5) + Gaussian(sigma=(1.0, 2.0, 0.5))),
    Restricted(Gaussian(sigma=(0.5, 2.0)), columns=(2, 0)),
    Restricted(Linear(), columns=(1,)) * Exponential(sigma=2.0),
    (Multiquadric(sigma=1.0, u=1) + Gaussian()) * 3.0,
]

ON_HISTOGRAMS: list[Kernel] = [
    ChiSquare(sigma=0.7),
    AdditiveChiSquare(),
    ChiSquareDistance(),
    HistogramIntersection(),
    Spline(degree=1),
    Spline(degree=2, lower=-0.5),
    HistogramIntersection() * ChiSquare(sigma=2.0),
    Restricted(HistogramIntersection(), columns=(0, 2)),
    ANOVA(kernel=ChiSquare(sigma=0.5), degree=2),
    Exp(ChiSquareDistance()),
]

NUMERIC = ON_VECTORS + ON_HISTOGRAMS


def points(kernel: Kernel, n: int, seed: int, d: int = D) -> Any:
    """Random points (n, d) with about a third of zeros, without negative features where the kernel asks for that."""
    random = np.random.default_rng(seed)
    values = random.standard_normal((n, d)) * 1.2
    values[random.random((n, d)) < 0.3] = 0.0
    return np.abs(values) if kernel in ON_HISTOGRAMS else values
