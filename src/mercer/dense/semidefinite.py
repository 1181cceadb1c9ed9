"""Cholesky factors of semidefinite matrices, the largest remaining diagonal entry first.

At each step the point j with the largest remaining diagonal d_j is taken,

    v = (K_j - V'V_j) / sqrt(d_j),      d <- d - v^2,

so that K ~ V'V, and the trace of the remainder bounds its norm (Fine and Scheinberg 2001; Schoelkopf and Smola 2002,
section 10.2.2).  `pivoted_cholesky` factorises a matrix that is there; `PartialCholesky` asks for one row of the matrix
at a time, and lets its user take other points than the largest.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.arrays import Array, Index
from mercer.dense.positive import lead
from mercer.dense.routines import Matrix, call


def pivoted_cholesky(A: Matrix, tol: float) -> tuple[Matrix, Index]:
    """L (r, r), lower triangular, and the chosen rows (r,) with A[chosen][:, chosen] = L L', A (n, n) symmetric.

    Stops where no remaining diagonal entry is above `tol`; a row left out depends on the chosen ones to that measure.
    """
    work, order = np.array(A, order="F"), np.zeros(len(A), np.int32)
    rank, room = ctypes.c_int(0), np.empty(2 * len(A), work.dtype)
    call("pstrf", work.dtype, b"L", len(A), work, lead(A), order, rank, tol, room)
    r = max(0, rank.value)
    return np.tril(work[:r, :r]), (order[:r] - 1).astype(np.intp)


class PartialCholesky:
    """K ~ V'V with V (t, n) after t steps; `left` (n,) is the diagonal of K - V'V and `chosen` the points taken.

    diagonal (n,): that of K; row: writes a row of K into an array (n,), given its number; most: rows of V to make room
    for; dtype: of V.
    """

    def __init__(self, diagonal: Array, row: Callable[[int, Any], None], most: int, dtype: Any = np.float64) -> None:
        self.left: Array = np.array(diagonal, dtype=np.float64)
        self.chosen: list[int] = []
        self._row = row
        self._rows = np.empty((most, len(self.left)), dtype)

    @property
    def V(self) -> NDArray[Any]:
        """The factor so far, (t, n)."""
        return self._rows[: len(self.chosen)]

    def grow(self, j: int, column: NDArray[Any] | None = None) -> NDArray[Any]:
        """Take the point j, whose column (n,) of K - V'V may be known already; the new row of V."""
        V = self.V
        v: NDArray[Any] = self._rows[len(V)]
        if column is None:
            self._row(j, v)
            v -= V[:, j] @ V
            column = v
        np.divide(column, np.sqrt(self.left[j]), out=v)
        self.chosen.append(j)
        self.left -= v.astype(np.float64, copy=False) ** 2
        self.left[j] = 0.0
        # Chosen points have no residual; rounding must not make one up.
        np.maximum(self.left, 0.0, out=self.left)
        return v

    def grow_largest(self, most: int, enough: float, least: float) -> None:
        """Take the largest until there are `most`, the trace left is at most `enough`, or none is above `least`."""
        while len(self.chosen) < most:
            j = int(np.argmax(self.left))
            if self.left.sum() <= enough or self.left[j] <= least:
                return
            self.grow(j)
