"""The convex combination of least quadratic form: min beta'S beta over beta >= 0, sum beta = 1, S positive definite.

The minimiser u >= 0 of u'Su/2 - 1'u has S u >= 1 with equality on its support, so that beta = u / sum(u) meets the
optimality conditions (S beta)_j >= beta'S beta.  With S = L L' the first problem is least squares with u >= 0,

    min 1/2 |L'u - L^-1 1|^2    over u >= 0 ,

which the active sets of Lawson and Hanson (1974, chapter 23) end with exact zeros.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls

from mercer import dense

Array = NDArray[np.float64]


def convex_weights(S: ArrayLike) -> Array:
    """Weights beta (q,) for a positive definite S (q, q)."""
    matrix = np.asarray(S, dtype=np.float64)
    unit = float(np.mean(np.diagonal(matrix)))  # the answer does not depend on the unit of S
    lower = dense.cholesky(matrix / unit)
    u, _ = nnls(np.tril(lower).T, dense.solve_triangular(lower, np.ones(len(matrix))))
    return np.asarray(u / u.sum())
