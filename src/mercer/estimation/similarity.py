"""The kernel as a user names it, and the kernel that is computed.

`kernel` may be a Kernel object, one of scikit-learn's names with `gamma`, `degree` and `coef0`, "precomputed", or any
function of two sets of points.  gamma = "scale" is 1 / (d Var X) with the variance over all entries of X, each row
counted by its weight; "auto" is 1 / d.
"""

from numbers import Real
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.kernels import Kernel, Precomputed, as_kernel, median_sigma

Kind = Literal["features", "objects", "function", "precomputed"]

NAMES = {"linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "additive_chi2", "cosine", "precomputed"}


def kind_of(kernel: Any, X: Any) -> Kind:
    """What a kernel works on: rows of features, arbitrary objects, whole sets (a plain function), or a given matrix."""
    if isinstance(kernel, Precomputed):
        return "precomputed"
    if isinstance(kernel, Kernel):
        numbers = sp.issparse(X) or (np.ndim(X) == 2 and np.asarray(X).dtype.kind in "fiub")
        return "objects" if kernel.objects and not numbers else "features"
    if callable(kernel):
        return "function"
    return "precomputed" if kernel == "precomputed" else "features"


def is_linear(kernel: Kernel | None) -> bool:
    """Whether k(x, z) = <x, z>, so that a machine has a weight vector."""
    profile = None if kernel is None else kernel.profile
    return profile is not None and profile.name == "linear" and profile.scale is None


def variance(X: Any, weights: NDArray[np.float64] | None) -> float:
    """Variance of all entries of X (n, d), dense or CSR; a row counts with its weight."""
    if not sp.issparse(X) and (weights is None or weights.min() == weights.max()):
        return float(X.var())
    w = np.ones(X.shape[0]) if weights is None else weights
    total = float(np.sum(w)) * int(X.shape[1])
    if not sp.issparse(X):
        mean = float(np.sum(w @ X)) / total
        return float(np.sum(w @ (X - mean) ** 2)) / total
    of_entry = np.repeat(w, np.diff(X.indptr))
    mean = float(np.dot(of_entry, X.data)) / total
    return float(np.dot(of_entry, X.data**2)) / total - mean**2


def gamma_of(gamma: Any, X: Any, weights: NDArray[np.float64] | None) -> float:
    """The number behind gamma = "scale", "auto" or a number."""
    if isinstance(gamma, Real):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / int(X.shape[1])
    spread = variance(X, weights)
    if not np.isfinite(spread):
        raise InvalidInput(
            "The dual coefficients or intercepts are not finite, as the variance of X is not: X holds huge values; "
            "scale the features, for instance with StandardScaler"
        )
    return 1.0 / (int(X.shape[1]) * spread) if spread != 0.0 else 1.0


def resolve(kernel: Any, gamma: float, degree: int, coef0: float, X: Any) -> Kernel:
    """The Kernel object of a name or of a Kernel; widths given by the rule "median" are read off X (n, d)."""
    if not isinstance(kernel, Kernel):
        return as_kernel(kernel, gamma=gamma, degree=degree, coef0=coef0)
    resolved: Kernel = kernel
    for name, rule in kernel.placeholders.items():
        if rule != "median":
            raise InvalidInput(f'{name}={rule!r} is not a rule of this machine; give a number, or "median"')
        resolved = resolved.with_parameters(**{name: median_sigma(X)})
    return resolved


def evaluate(function: Any, X: Any, Z: Any, rows: int, columns: int) -> NDArray[np.float64]:
    """Values (rows, columns) of a plain function of two sets of points, checked for their shape."""
    values = function(X, Z)
    if sp.issparse(values):
        values = values.toarray()
    matrix = np.ascontiguousarray(values, dtype=np.float64)
    if matrix.shape != (rows, columns):
        raise InvalidInput(
            f"the kernel function returned an array of shape {matrix.shape} for {rows} and {columns} points; "
            "it must return one value for every pair"
        )
    return matrix
