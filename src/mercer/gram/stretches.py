"""One or two contiguous stretches of a matrix that lies in memory, as an operator that copies nothing.

Points that are ordered by fold are, without one of the folds, two stretches of the rows and columns of one matrix; so
are the points of a pair of classes in a matrix ordered by class.  `stretches` = (first, middle, second): `middle`
points from row `first` on, the others from row `second` on.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.compiled import loop

CHUNK = 2048
Stretches = tuple[int, int, int]


class StoredStretches:
    """The values between n points of the symmetric matrix `matrix`."""

    def __init__(self, matrix: NDArray[Any], stretches: Stretches, n: int) -> None:
        self.matrix, self.stretches = matrix, stretches
        self.shape = (n, n)
        self.dtype = matrix.dtype

    def diagonal(self) -> NDArray[Any]:
        """The diagonal (n,)."""
        first, middle, second = self.stretches
        whole = np.diagonal(self.matrix)
        return np.concatenate((whole[first : first + middle], whole[second : second + self.shape[0] - middle]))

    def dense(self) -> NDArray[Any]:
        """The matrix (n, n), copied."""
        everything = np.arange(self.shape[0])
        return self.block(everything, everything)

    def dot(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """K v (n,), summed in float64."""
        support = np.flatnonzero(v)
        return self.columns_dot(support, v[support])

    def block(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[Any]:
        """K[rows][:, columns]."""
        out = np.empty((len(rows), len(columns)), self.dtype)
        _cut(self.matrix, self.stretches, rows, columns, out)
        return out

    def columns_dot(self, columns: NDArray[np.intp], v: NDArray[np.float64]) -> NDArray[np.float64]:
        """K[:, columns] v (n,), summed in float64."""
        out = np.zeros(self.shape[0])
        _add_rows(self.matrix, self.stretches, columns, v, out)
        return out


def stretches_of(gram: Any) -> tuple[NDArray[Any], Stretches] | None:
    """The matrix and the stretches behind an operator of this kind, for loops that read it in place; else None."""
    return (gram.matrix, gram.stretches) if isinstance(gram, StoredStretches) else None


@loop
def _cut(K: Any, stretches: Any, rows: Any, columns: Any, out: Any) -> None:
    """The values between the points `rows` and `columns`."""
    first, middle, second = stretches
    for a in range(rows.shape[0]):
        row = K[first + rows[a] if rows[a] < middle else second + rows[a] - middle]
        for b in range(columns.shape[0]):
            k = columns[b]
            out[a, b] = row[first + k] if k < middle else row[second + k - middle]


@loop
def _add_rows(K: Any, stretches: Any, points: Any, change: Any, F: Any) -> None:
    """F += K[:, points] change, a chunk of F at a time."""
    first, middle, second = stretches
    n = F.shape[0]
    for begin, end, shift in ((0, middle, first), (middle, n, second - middle)):
        for left in range(begin, end, CHUNK):
            right = min(end, left + CHUNK)
            part = F[left:right]
            for at in range(points.shape[0]):
                k = points[at]
                row = K[first + k if k < middle else second + k - middle]
                line = row[left + shift : right + shift]
                amount = change[at]
                for j in range(right - left):
                    part[j] += amount * np.float64(line[j])
