"""The scikit-learn edge: its kernel names and its gamma become kernels here, and nowhere else.

    "linear"        <x, z>
    "poly"          (gamma <x, z> + coef0)^degree
    "rbf"           exp(-gamma |x - z|^2)           sigma = 1 / sqrt(2 gamma)
    "sigmoid"       tanh(gamma <x, z> + coef0)
    "laplacian"     exp(-gamma |x - z|_1)           sigma = 1 / gamma
    "chi2"          exp(-gamma chi^2(x, z))         sigma = 1 / gamma
    "additive_chi2", "cosine", "precomputed"

gamma is a number, "scale" = 1 / (d * variance of all entries of X), "auto" = 1 / d, or None for the default of
scikit-learn's pairwise functions (1 / d, and 1 for chi2).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.errors import InvalidInput
from mercer.kernels.base import Kernel
from mercer.kernels.checks import nonnegative, prepare, real, whole
from mercer.kernels.custom import Custom, Precomputed
from mercer.kernels.dot_product import Constant, Cosine, Linear, Polynomial, Sigmoid
from mercer.kernels.histogram import ChiSquare, ChiSquareDistance
from mercer.kernels.stationary import Gaussian, Laplacian

_PLAIN: dict[str, Callable[[], Kernel]] = {
    "linear": Linear,
    "cosine": Cosine,
    "additive_chi2": ChiSquareDistance,
    "precomputed": Precomputed,
}
_WITH_GAMMA = ("poly", "polynomial", "rbf", "sigmoid", "laplacian", "chi2")


def as_kernel(
    kernel: Any, *, gamma: float | str | None = "scale", degree: int = 3, coef0: float = 0.0, X: Any = None
) -> Kernel:
    """The kernel a scikit-learn user means by a name, a callable k(X, Z) -> (n, m), or a Kernel (returned as it is).

    X, the training points (n, d), is needed where gamma depends on them.
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise InvalidInput(f"kernel is the class {kernel.__name__}; give an instance: {kernel.__name__}()")
    if callable(kernel):
        return Custom(kernel, matrix=True)
    if not isinstance(kernel, str) or kernel not in (*_PLAIN, *_WITH_GAMMA):
        raise _unknown(kernel)
    fixed = kernel in _PLAIN or (kernel == "chi2" and gamma is None)
    return named_kernel(kernel, 1.0 if fixed else gamma_value(gamma, X), degree, coef0)


def gamma_value(gamma: Any, X: Any) -> float:
    """The value of gamma as a number, computed from X (n, d) as scikit-learn does."""
    if not isinstance(gamma, str) and gamma is not None:
        return nonnegative(gamma, "gamma", "the kernel would grow with the distance")
    if gamma not in ("scale", "auto", None):
        raise InvalidInput(f'gamma={gamma!r} is not known; give a number, "scale" or "auto"')
    if X is None:
        raise InvalidInput(f"gamma={gamma!r} is computed from the data; give X, or gamma as a number")
    points = prepare(X, "X")
    if gamma != "scale":
        return 1.0 / float(points.shape[1])
    if sp.issparse(points):
        variance = float(points.multiply(points).mean() - points.mean() ** 2)
    else:
        variance = float(np.var(points))
    return 1.0 / (points.shape[1] * variance) if variance != 0.0 else 1.0


def named_kernel(name: str, gamma: float, degree: int, coef0: float) -> Kernel:
    """The kernel of that name for a number gamma; with gamma = 0 all that have one are constant."""
    if name in _PLAIN:
        return _PLAIN[name]()
    if name == "rbf" and gamma > 0.0:
        return Gaussian(sigma=math.sqrt(0.5 / gamma))
    if name not in _WITH_GAMMA:
        raise _unknown(name)
    offset = real(coef0, "coef0")
    if name in ("poly", "polynomial"):
        power = whole(degree, "degree", 0)
        if gamma > 0.0 and power > 0:
            return Polynomial(degree=power, offset=nonnegative(coef0, "coef0", "the kernel is indefinite"), gamma=gamma)
        return Constant(offset**power)
    if name == "sigmoid":
        return Sigmoid(gamma=gamma, offset=offset) if gamma > 0.0 else Constant(float(np.tanh(offset)))
    if gamma == 0.0:
        return Constant(1.0)
    return Laplacian(sigma=1.0 / gamma) if name == "laplacian" else ChiSquare(sigma=1.0 / gamma)


def _unknown(kernel: Any) -> InvalidInput:
    """What to say of a name that no kernel has."""
    names = sorted((*_PLAIN, *_WITH_GAMMA))
    return InvalidInput(f"kernel={kernel!r} is not known; give a Kernel, a callable or one of {names}")
