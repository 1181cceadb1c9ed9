"""Kernels as plain dictionaries, for model files: names and numbers only, so that reading one cannot run code.

For instance 2.0 * Gaussian(1.5) is

    {"name": "Scaled", "arguments": {"factor": 2.0, "kernel": {"name": "Gaussian", "arguments": {"sigma": 1.5}}}}
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from mercer.errors import InvalidInput
from mercer.kernels.algebra import Exp, Product, Raised, Scaled, Sum
from mercer.kernels.base import Kernel
from mercer.kernels.compact import CompactGaussian, Taper, Wendland
from mercer.kernels.composition import Normalised, Restricted
from mercer.kernels.conditional import LocallyStationary, Log, Multiquadric, Power, ThinPlate
from mercer.kernels.custom import Precomputed
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
from mercer.kernels.stationary import Exponential, Gaussian, Laplacian, Matern, Periodic, RationalQuadratic
from mercer.kernels.strings import Spectrum

_DEPTH = 64  # deeper nesting is not a kernel anybody built, but an attempt to exhaust the stack

REGISTRY: dict[str, type[Kernel]] = {
    kind.__name__: kind
    for kind in (
        *(Gaussian, Exponential, Laplacian, Matern, RationalQuadratic, Periodic),
        *(Linear, Constant, Polynomial, Sigmoid, Cosine, NormalisedPolynomial, Bilinear),
        *(Taper, CompactGaussian, Wendland),
        *(Log, Power, ThinPlate, Multiquadric, LocallyStationary),
        *(ChiSquare, AdditiveChiSquare, ChiSquareDistance, HistogramIntersection),
        *(BSpline, Spline, ANOVA, Spectrum, Precomputed),
        *(Sum, Product, Scaled, Raised, Exp, Normalised, Restricted),
    )
}


def kernel_to_dict(kernel: Kernel) -> dict[str, Any]:
    """The kernel as a dictionary that JSON can hold."""
    kind = type(kernel)
    if REGISTRY.get(kind.__name__) is not kind:
        raise InvalidInput(
            f"{kernel!r} holds a Python function or a class of your own, which a file cannot carry without running "
            "code; give the kernel again when you load the model, or compute the matrix and use Precomputed"
        )
    arguments: dict[str, Any] = {}
    for field in fields(kernel):  # type: ignore[arg-type]
        value = getattr(kernel, field.name)
        arguments[field.name] = kernel_to_dict(value) if isinstance(value, Kernel) else _lists(value)
    return {"name": kind.__name__, "arguments": arguments}


def _lists(value: Any) -> Any:
    return [_lists(item) for item in value] if isinstance(value, tuple) else value


def kernel_from_dict(description: Mapping[str, Any]) -> Kernel:
    """The kernel a dictionary describes; names and arguments that are not known are refused."""
    return _build(description, 0)


def _build(description: Any, depth: int) -> Kernel:
    if not isinstance(description, Mapping) or set(description) != {"name", "arguments"}:
        raise InvalidInput(f"a kernel is described by 'name' and 'arguments', got {description!r:.200}")
    if depth > _DEPTH:
        raise InvalidInput(f"the kernel is nested more than {_DEPTH} deep; the file is damaged or not from mercer")
    name, arguments = description["name"], description["arguments"]
    kind = REGISTRY.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InvalidInput(f"kernel name {name!r:.80} is not known; this version knows {sorted(REGISTRY)}")
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    if not isinstance(arguments, Mapping) or not set(arguments) <= known:
        raise InvalidInput(f"{name} takes the arguments {sorted(known)}, got {arguments!r:.200}")
    values = {
        key: _build(value, depth + 1) if isinstance(value, Mapping) else value for key, value in arguments.items()
    }
    try:
        return kind(**values)
    except TypeError as error:
        raise InvalidInput(f"{name} cannot be built from {arguments!r:.200}: {error}") from None
