"""Product-form Cholesky factorisation of a diagonal and a thin factor: D + F F' = L_1 ... L_p E L_p' ... L_1'.

Column by column, with p = (L_1 ... L_k-1)^-1 f_k, the sum D + p p' of a diagonal and a column is L_k E L_k', where
L_k is unit lower triangular with entries p_i beta_j below the diagonal:

    t_j = t_j-1 + p_j^2 / d_j,     e_j = d_j t_j / t_j-1,     beta_j = p_j / (d_j t_j),      t_0 = 1

(Goldfarb and Scheinberg 2004, Fine and Scheinberg 2001; the recurrence is that of Gill, Golub, Murray and Saunders
1974).  Products with the inverse of L_k are running sums.  2 n p numbers, n p^2 operations, and, unlike the Woodbury
formula, as stable as Cholesky's own method however far the entries of D are apart.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.compiled import exact_loop

Array = NDArray[np.float64]


@exact_loop
def factorise(P: Any, B: Any, e: Any) -> None:
    """Turn columns f_k, the rows of P (p, n), into those of the factors; e (n,) from D into E, B (p, n) is filled."""
    p, n = P.shape
    for k in range(p):
        for l in range(k):
            total = 0.0
            for i in range(n):
                value = P[k, i] - P[l, i] * total
                P[k, i] = value
                total += B[l, i] * value
        t = 1.0
        for i in range(n):
            value = P[k, i]
            after = t + value * value / e[i]
            B[k, i] = value / (e[i] * after)
            e[i] *= after / t
            t = after


@exact_loop
def apply_inverse(P: Any, B: Any, e: Any, x: Any) -> None:
    """Solve with the factors; x (n,) is the right-hand side and becomes the solution."""
    p, n = P.shape
    for k in range(p):
        total = 0.0
        for i in range(n):
            x[i] -= P[k, i] * total
            total += B[k, i] * x[i]
    for i in range(n):
        x[i] /= e[i]
    for k in range(p - 1, -1, -1):
        total = 0.0
        for i in range(n - 1, -1, -1):
            x[i] -= B[k, i] * total
            total += P[k, i] * x[i]


class ProductForm:
    """The factors of diag(delta) + F F', F (n, p) given in blocks of rows."""

    def __init__(self, blocks: Iterable[tuple[slice, Array]], delta: Array, rank: int) -> None:
        self.P = np.empty((rank, delta.size))
        for part, block in blocks:
            self.P[:, part] = block.T
        self.B, self.e = np.empty_like(self.P), delta.copy()
        factorise(self.P, self.B, self.e)

    def solve(self, R: Array) -> Array:
        """(D + F F')^-1 R for R (n, k)."""
        X = np.array(R.T, dtype=np.float64, order="C")
        for x in X:
            apply_inverse(self.P, self.B, self.e, x)
        return np.ascontiguousarray(X.T)
