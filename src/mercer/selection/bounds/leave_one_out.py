"""Which points can be leave-one-out errors of a binary machine, from one fit and without retraining.

Without free bias, leaving point i out lowers its own output towards the wrong side by no more than what the point
itself contributed.  A leave-one-out error can therefore only be a point with

    y_i f_i - alpha_i K_ii <= 0          support vector machine, f = sum_j y_j alpha_j k(x_j, .)
                                         (Jaakkola and Haussler 1999; Schoelkopf and Smola 2002, section 12.2),
    y_i f_i <= K_ii / (K_ii + r)         least squares, (K + r I) c = y: the same with y_i c_i for alpha_i
                                         (Rifkin 2002, section 3.3).

With a free bias that argument fails.  Joachims' xi-alpha bound counts the points with

    2 alpha_i R^2 + xi_i >= 1,           R^2 >= max_ij K_ij - min_ij K_ij, one number for all points,

and needs a free support vector in every one of the n smaller problems, because the bias is not determined without one.
The number of support vectors (Vapnik 1998) is the weakest of these bounds: other points change nothing.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput
from mercer.selection.bounds.result import Bound

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_NO_BIAS = "no free bias"
_FIXED = "C, and not C per point, stays the same when a point is left out"
OPTIMAL = "the machine is trained to its optimum"


def possible_errors(y: ArrayLike, f: ArrayLike, diagonal: ArrayLike, ridge: ArrayLike) -> Mask:
    """Points (n,) that may be leave-one-out errors of a least-squares machine: y f <= K/(K + r).

    y (n,) of +-1, f (n,) outputs at the training points, diagonal (n,) of the kernel matrix, ridge: r, or r/w_i (n,).
    """
    K, r = np.asarray(diagonal, dtype=np.float64), np.asarray(ridge, dtype=np.float64)
    threshold = np.divide(K, K + r, out=np.zeros(np.broadcast(K, r).shape), where=np.isfinite(r))
    return np.asarray(np.asarray(y) * np.asarray(f) <= threshold)


def least_squares(
    y: ArrayLike, f: ArrayLike, diagonal: ArrayLike, ridge: ArrayLike, *, free_bias: bool = False
) -> Bound:
    """Leave-one-out error rate of a least-squares classifier (Rifkin 2002, section 3.3)."""
    possible = possible_errors(y, f, diagonal, ridge)
    return _share(possible, (_NO_BIAS, free_bias), _FIXED, OPTIMAL)


def interval(f: ArrayLike, c: ArrayLike, diagonal: ArrayLike) -> tuple[Array, Array]:
    """Ends of the interval that holds each leave-one-out output: f and f - c K_ii, both (n, machines).

    c (n, machines) are the signed coefficients: of (K + r I) c = y, or y alpha of a support vector machine.
    """
    outputs = np.asarray(f, dtype=np.float64)
    return outputs, outputs - np.asarray(c, dtype=np.float64) * np.asarray(diagonal, dtype=np.float64)[:, None]


def jaakkola_haussler(
    y: ArrayLike, f: ArrayLike, alpha: ArrayLike, diagonal: ArrayLike, *, free_bias: bool = False
) -> Bound:
    """Leave-one-out error rate of a support vector machine: the share of points with y f - alpha K_ii <= 0.

    y, f, alpha (n,): labels, outputs and dual variables 0 <= alpha <= C; diagonal (n,) of the kernel matrix.
    """
    labels, outputs, a = _columns(y, f, alpha)
    possible = labels * outputs - a * np.asarray(diagonal, dtype=np.float64) <= 0
    return _share(possible, (_NO_BIAS, free_bias), _FIXED, OPTIMAL)


def xi_alpha(y: ArrayLike, f: ArrayLike, alpha: ArrayLike, C: ArrayLike, *, spread: float) -> Bound:
    """Leave-one-out error rate of a support vector machine with free bias: the share with 2 alpha R^2 + xi >= 1.

    spread: R^2, at least max_ij K_ij - min_ij K_ij over the training points (1 for a Gaussian kernel).
    """
    if not spread >= 0:
        raise InvalidInput(f"spread must not be negative; it is {spread!r}.")
    labels, outputs, a = _columns(y, f, alpha)
    slack = np.maximum(1.0 - labels * outputs, 0.0)
    # A support vector on the margin has slack zero up to the solver's tolerance only; it counts through alpha.
    possible = (a > 0) & (2.0 * a * spread + slack >= 1.0 - 1e-9)
    bound = np.broadcast_to(np.asarray(C, dtype=np.float64), a.shape)
    free = (a > 1e-9 * bound) & (a < (1 - 1e-9) * bound)
    return _share(
        possible,
        ("every machine trained without one point has a free support vector", not bool(np.any(free))),
        "spread is at least the largest minus the smallest kernel value",
        _FIXED,
        OPTIMAL,
    )


def support_vector_count(alpha: ArrayLike) -> Bound:
    """Leave-one-out error rate: the share of support vectors."""
    possible = np.asarray(alpha, dtype=np.float64) > 0
    return _share(possible, "the bias, where free, is determined", _FIXED, OPTIMAL)


def _columns(*arrays: ArrayLike) -> list[Array]:
    found = [np.asarray(array, dtype=np.float64) for array in arrays]
    if len({array.shape for array in found}) != 1 or found[0].ndim != 1:
        raise InvalidInput(f"labels, outputs and dual variables must match; shapes {[a.shape for a in found]}.")
    return found


def _share(possible: Mask, *assumptions: str | tuple[str, bool]) -> Bound:
    return Bound.under(float(np.mean(possible)), *assumptions, details={"possible": possible})
