"""Capacity of linear functions on given points: shattering, fat shattering and covers, by trying everything.

The bounds of `margin` take dimensions from theorems.  Here the same numbers are found for a handful of points, so that
the theorems can be checked and small classes of functions measured.

*Shattering.*  Affine functions shatter x_1 .. x_n if for all 2^n labellings some (w, b) has y_i (<w, x_i> + b) >= 1.

*Fat shattering.*  {x -> <w, x>: ||w|| <= 1} shatters the points at width rho if for some b and all labellings some w
has y_i (<w, x_i> - b_i) >= rho.  The class is convex and symmetric, so that b = 0 will do: the w of y and minus the w
of -y have a mean that needs no b.  The largest margin of a labelling is the distance of 0 from the hull of the y_i x_i,

    width = min over y of min over the simplex of || sum_i lambda_i y_i phi(x_i) || ,

which needs the kernel matrix alone and is zero where the points are dependent (the signs of sum_i c_i phi(x_i) = 0 are
a labelling that has no margin); n <= (R/width)^2 for points in a ball of radius R around 0.

*Covers.*  N(eps, F, X) is the least number of balls max_x |f(x) - f'(x)| <= eps, with centres in F, that hold F.
"""

from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog

from mercer import dense
from mercer.errors import InvalidInput
from mercer.selection.bounds.result import check_positive
from mercer.selection.bounds.span import Array, _simplex, _symmetric

MOST_POINTS = 14  # 2^n labellings are tried
DEPENDENT = 1e-12  # share of the largest eigenvalue below which the smallest is zero


def shatters(X: ArrayLike) -> bool:
    """Whether affine functions realise every labelling of the points X (n, d)."""
    points = np.asarray(X, dtype=np.float64)
    if points.ndim != 2:
        raise InvalidInput(f"X must be a matrix (points, features); its shape is {points.shape}.")
    bordered = np.column_stack([points, np.ones(len(points))])
    free = [(None, None)] * bordered.shape[1]
    zero, one = np.zeros(bordered.shape[1]), np.ones(len(points))
    for y in _labellings(len(points)):
        if linprog(zero, A_ub=-y[:, None] * bordered, b_ub=-one, bounds=free, method="highs").status != 0:
            return False
    return True


def shattered_width(K: ArrayLike) -> float:
    """The largest rho at which functions of unit norm shatter the points of the kernel matrix K (n, n)."""
    matrix = _symmetric(K)
    n, least = len(matrix), np.inf
    spectrum = dense.eigenvalues(matrix)
    if spectrum[0] <= DEPENDENT * spectrum[-1]:
        return 0.0
    for y in _labellings(n):
        signed = y[:, None] * matrix * y
        weights = np.ones(1) if n == 1 else _simplex(signed, np.zeros(n), np.zeros(n), np.ones(n), 1.0)
        weights = np.maximum(weights, 0.0) / np.sum(np.maximum(weights, 0.0))
        least = min(least, float(weights @ signed @ weights))
    return float(np.sqrt(least))


def cover(values: ArrayLike, eps: float) -> NDArray[np.intp]:
    """Centres of balls of radius eps that hold all functions, given by values (functions, points); chosen greedily.

    Centres are more than eps apart: their number lies between N(eps) and N(eps/2).
    """
    check_positive(eps=eps)
    functions = np.asarray(values, dtype=np.float64)
    if functions.ndim != 2 or not functions.size:
        raise InvalidInput(f"values must be a matrix (functions, points); its shape is {functions.shape}.")
    centres: list[int] = []
    distance = np.full(len(functions), np.inf)
    while np.max(distance) > eps:
        centres.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.max(np.abs(functions - functions[centres[-1]]), axis=1))
    return np.array(centres, dtype=np.intp)


def _labellings(n: int) -> list[Array]:
    """Labellings (n,) of +-1, one of each pair y and -y."""
    if not 1 <= n <= MOST_POINTS:
        raise InvalidInput(f"from 1 to {MOST_POINTS} points can be tried in every labelling; there are {n}.")
    return [np.array((1.0, *rest)) for rest in product((1.0, -1.0), repeat=n - 1)]
