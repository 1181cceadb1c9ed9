"""How well landmarks stand for all points: the residual trace and the quadratic Renyi entropy.

The residual diagonal d_i = k(x_i, x_i) - k_i' B^-1 k_i, k_i = k(S, x_i), takes one factorisation of B = k(S, S) and one
triangular solve for each row.  B is factored with pivoting, and a landmark that depends on the others to rounding is
left out of it, which does not change K~.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import dense
from mercer.gram import Gram, Points, size, take
from mercer.kernels.base import Kernel
from mercer.resources import row_blocks

Array = NDArray[np.float64]

# A pivot this much smaller than the largest diagonal entry is rounding.
DEPENDENT = 1e-12
# Multiplications of an exact measurement that nobody will notice beside the choice itself.
WORK = 2e10
# A sample of rows estimates the trace to a few per cent.
LEAST_ROWS = 1000
# From here on the factorisation of B alone would outlast most choices.
MOST_LANDMARKS = 4096


def quadratic_entropy(kernel: Kernel, points: Points, memory: int | float | str | None = None) -> float:
    """-log( (1/m^2) sum_ij k(s_i, s_j) ) for the m points.

    With a Gaussian of width sigma this is, up to the constant (d/2) log(2 pi sigma^2), the Renyi entropy -log of the
    integral of the squared Parzen density of bandwidth sigma / sqrt(2) (Hamers 2004, section 5.4).  NaN where the sum
    is negative, which only kernels that are not positive definite can have.
    """
    m = size(points)
    total = float(np.sum(Gram(kernel, points, memory=memory).dot(np.ones(m))))
    if total <= 0:
        return math.inf if total == 0 else math.nan
    return -math.log(total / m**2)


def residual_diagonal(kernel: Kernel, X: Points, points: Points, memory: int | float | str | None = None) -> Array:
    """(K - K~)_ii for every row of X, (n,), in n m^2 + m^3 / 3 operations; the kernel must be positive definite."""
    B = Gram(kernel, points, memory=memory, storage="streamed").dense()
    factor, chosen = dense.pivoted_cholesky(B, DEPENDENT * float(np.max(np.diagonal(B), initial=0.0)))
    S = take(points, chosen)
    left = np.asarray(kernel.diagonal(X), dtype=np.float64).copy()
    for rows in row_blocks(size(X), len(chosen)):
        A = Gram(kernel, S, take(X, rows), memory=memory, storage="streamed").dense()
        left[rows] -= _squared_norms(dense.solve_triangular(factor, A))
    return np.maximum(left, 0.0)


def _squared_norms(columns: Array) -> Array:
    """Squared norms of the columns."""
    return np.asarray(np.einsum("ij,ij->j", columns, columns))


def measured(
    kernel: Kernel,
    X: Points,
    points: Points,
    weights: Array,
    rng: np.random.Generator,
    rows: bool | int | None,
    memory: int | float | str | None,
) -> tuple[float, int]:
    """sum_i w_i (K - K~)_ii and on how many rows it was measured.

    rows: how many random rows to measure on; True all, False none, None as many as are cheap.
    """
    n, m = size(X), size(points)
    if rows is False or not kernel.positive_definite or (rows is None and m > MOST_LANDMARKS):
        return math.nan, 0
    wanted = max(LEAST_ROWS, int(WORK / m**2)) if rows is None else n if rows is True else int(rows)
    if wanted >= n:
        return float(weights @ residual_diagonal(kernel, X, points, memory)), n
    chosen = np.sort(rng.choice(n, wanted, replace=False))
    left = residual_diagonal(kernel, take(X, chosen), points, memory)
    return float(weights[chosen] @ left) * n / wanted, wanted


def said_of_measure(kernel: Kernel, rows: int, n: int) -> dict[str, Any]:
    """Why the residual trace is not exact, for the details."""
    if rows == n:
        return {}
    if rows:
        return {"measure": f"residual trace estimated from {rows} of {n} rows; measure=True makes it exact"}
    if not kernel.positive_definite:
        return {"measure": "residual trace not measured: the kernel is not positive definite"}
    return {"measure": "residual trace not measured; measure=True or a number of rows asks for it"}
