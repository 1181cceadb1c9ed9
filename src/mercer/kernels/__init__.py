"""Kernels: similarities of two points, their algebra, and what to know about their matrices."""

from typing import TYPE_CHECKING

from mercer.loading import on_first_use

if TYPE_CHECKING:
    from mercer.kernels.algebra import Exp, Product, Raised, Scaled, Sum
    from mercer.kernels.base import DotProduct, Kernel, Radial
    from mercer.kernels.compact import CompactGaussian, Taper, Wendland
    from mercer.kernels.composition import Mapped, Normalised, Restricted, polarised
    from mercer.kernels.conditional import LocallyStationary, Log, Multiquadric, Power, ThinPlate
    from mercer.kernels.custom import Custom, Precomputed, Separable
    from mercer.kernels.diagnostics import (
        Diagnostics,
        empirical_map,
        kappa,
        kernel_diagnostics,
        median_sigma,
        polynomial_basis,
        rkhs_norm,
    )
    from mercer.kernels.dot_product import (
        Bilinear,
        Constant,
        Cosine,
        Linear,
        NormalisedPolynomial,
        Polynomial,
        Sigmoid,
    )
    from mercer.kernels.featurewise import ANOVA, BSpline, Spline
    from mercer.kernels.histogram import AdditiveChiSquare, ChiSquare, ChiSquareDistance, HistogramIntersection
    from mercer.kernels.names import as_kernel, gamma_value
    from mercer.kernels.profile import Profile
    from mercer.kernels.serialisation import kernel_from_dict
    from mercer.kernels.stationary import Exponential, Gaussian, Laplacian, Matern, Periodic, RationalQuadratic
    from mercer.kernels.strings import Spectrum

__all__ = [
    "ANOVA", "AdditiveChiSquare", "BSpline", "Bilinear", "ChiSquare", "ChiSquareDistance", "CompactGaussian",
    "Constant", "Cosine", "Custom", "Diagnostics", "DotProduct", "Exp", "Exponential", "Gaussian",
    "HistogramIntersection", "Kernel", "Laplacian", "Linear", "LocallyStationary", "Log", "Mapped", "Matern",
    "Multiquadric", "Normalised", "NormalisedPolynomial", "Periodic", "Polynomial", "Power", "Precomputed", "Product",
    "Profile", "Radial", "Raised", "RationalQuadratic", "Restricted", "Scaled", "Separable", "Sigmoid", "Spectrum",
    "Spline", "Sum", "Taper", "ThinPlate", "Wendland", "as_kernel", "empirical_map", "gamma_value", "kappa",
    "kernel_diagnostics", "kernel_from_dict", "median_sigma", "polarised", "polynomial_basis", "rkhs_norm",
]  # fmt: skip

__getattr__ = on_first_use(
    {
        "mercer.kernels.algebra": "Exp Product Raised Scaled Sum",
        "mercer.kernels.base": "DotProduct Kernel Radial",
        "mercer.kernels.compact": "CompactGaussian Taper Wendland",
        "mercer.kernels.composition": "Mapped Normalised Restricted polarised",
        "mercer.kernels.conditional": "LocallyStationary Log Multiquadric Power ThinPlate",
        "mercer.kernels.custom": "Custom Precomputed Separable",
        "mercer.kernels.diagnostics": (
            "Diagnostics empirical_map kappa kernel_diagnostics median_sigma polynomial_basis rkhs_norm"
        ),
        "mercer.kernels.dot_product": "Bilinear Constant Cosine Linear NormalisedPolynomial Polynomial Sigmoid",
        "mercer.kernels.featurewise": "ANOVA BSpline Spline",
        "mercer.kernels.histogram": "AdditiveChiSquare ChiSquare ChiSquareDistance HistogramIntersection",
        "mercer.kernels.names": "as_kernel gamma_value",
        "mercer.kernels.profile": "Profile",
        "mercer.kernels.serialisation": "kernel_from_dict",
        "mercer.kernels.stationary": "Exponential Gaussian Laplacian Matern Periodic RationalQuadratic",
        "mercer.kernels.strings": "Spectrum",
    }
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
