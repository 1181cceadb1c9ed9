"""Blocks and products of a matrix that lies in memory or in a mapped file, without large temporaries.

Reading is all that such a matrix costs, so scattered rows and columns are read where they lie, on all threads: a copy
would be written and read again, and one thread has a fraction of the bandwidth.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.compiled import loop
from mercer.gram.cost import COPIED_VALUES
from mercer.gram.points import Index, length, pieces

MOST_RUNS = 16
# Values of a block below which it is read by one thread.
ONE_THREAD = 1 << 16


def gather(matrix: NDArray[Any], rows: Index, columns: Index, out: NDArray[Any]) -> None:
    """Write matrix[rows][:, columns] to `out`, a few rows at a time."""
    if isinstance(columns, slice):
        if isinstance(rows, slice):
            out[...] = matrix[rows, columns]
            return
        for r, i in enumerate(rows):
            out[r] = matrix[i, columns]
        return
    down, across = runs(rows), runs(columns)
    if 0 < len(down) * len(across) <= MOST_RUNS:
        for top, some_rows in down:
            for left, some_columns in across:
                out[top : top + length(some_rows), left : left + length(some_columns)] = matrix[some_rows, some_columns]
        return
    source, chosen = _readable(matrix), _numbers(rows)
    parts = threads.split(len(chosen)) if out.size > ONE_THREAD else [(0, len(chosen))]
    threads.run(lambda a, b: _gather(source, chosen[a:b], columns, out[a:b]), parts)


def _numbers(index: Index) -> NDArray[np.intp]:
    """An index as an array of numbers."""
    return np.arange(index.start, index.stop, index.step or 1) if isinstance(index, slice) else index


def _readable(matrix: NDArray[Any]) -> NDArray[Any]:
    """The matrix as compiled loops take it: one kind of array, whatever holds it."""
    view = np.asarray(matrix).view()
    view.flags.writeable = False
    return view


@loop
def _gather(matrix: Any, rows: Any, columns: Any, out: Any) -> None:
    """Write matrix[rows][:, columns] to `out`."""
    for i in range(rows.shape[0]):
        row, own = matrix[rows[i]], out[i]
        for j in range(columns.shape[0]):
            own[j] = row[columns[j]]


def runs(index: Index) -> list[tuple[int, slice]]:
    """An index as its few runs of consecutive points, each with the place where it begins; empty where it has many."""
    if isinstance(index, slice):
        return [(0, index)]
    breaks = np.flatnonzero(np.diff(index) != 1) + 1
    if len(index) == 0 or len(breaks) >= MOST_RUNS:
        return []
    borders = [0, *breaks.tolist(), len(index)]
    return [(a, slice(int(index[a]), int(index[a]) + b - a)) for a, b in pairwise(borders)]


def multiply(
    matrix: NDArray[Any], rows: Index, columns: Index, V: NDArray[Any], out: NDArray[np.float64], symmetric: bool
) -> None:
    """Add matrix[rows][:, columns] V to `out` (len(rows), k); sums run in the matrix's precision over 8192 columns."""
    if isinstance(columns, slice):
        _multiply_range(matrix, rows, columns, V, out)
    elif symmetric and _is_all(rows, matrix.shape[0]):
        _multiply_rows_transposed(matrix, columns, V, out)
    else:
        step = max(1, COPIED_VALUES // max(1, len(columns)))
        start = 0
        for part in pieces(rows, step):
            tile = np.empty((length(part), len(columns)), dtype=matrix.dtype)
            gather(matrix, part, columns, tile)
            out[start : start + len(tile)] += _times(tile, V)
            start += len(tile)


def _multiply_range(
    matrix: NDArray[Any], rows: Index, columns: slice, V: NDArray[Any], out: NDArray[np.float64]
) -> None:
    """The product for consecutive columns; scattered rows are copied a few at a time."""
    # Sums over no more columns than this keep float32 rounding below 1e-6; in float64 BLAS takes all at once.
    width = 8192 if matrix.dtype == np.float32 else max(1, matrix.shape[1])
    height = matrix.shape[0] if isinstance(rows, slice) else max(1, COPIED_VALUES // width)
    start = 0
    for part in pieces(rows, height):
        count, left = length(part), 0
        for piece in pieces(columns, width):
            across = length(piece)
            out[start : start + count] += _times(matrix[part, piece], V[left : left + across])
            left += across
        start += count


def _multiply_rows_transposed(
    matrix: NDArray[Any], columns: NDArray[np.intp], V: NDArray[Any], out: NDArray[np.float64]
) -> None:
    """Columns of a symmetric matrix are its rows: add sum_j K[j]' V[j]."""
    if V.shape[1] == 1:
        source, weights = _readable(matrix), np.ascontiguousarray(V[:, 0], dtype=np.float64)
        few = len(columns) * matrix.shape[1] <= ONE_THREAD
        parts = [(0, matrix.shape[1])] if few else threads.split(matrix.shape[1])
        sums = np.zeros(matrix.shape[1])
        threads.run(lambda a, b: _add_rows(source, columns, weights, a, sums[a:b]), parts)
        out[:, 0] += sums
        return
    step = max(1, COPIED_VALUES // matrix.shape[1])
    for start in range(0, len(columns), step):
        part = matrix[columns[start : start + step]]
        out += _times(part.T, V[start : start + step])


@loop
def _add_rows(matrix: Any, rows: Any, weights: Any, first: int, out: Any) -> None:
    """Add sum_j weights_j matrix[rows_j, first:] to out (m,), in float64; two rows at a time."""
    m, count = out.shape[0], rows.shape[0]
    for j in range(0, count - 1, 2):
        row, other = matrix[rows[j]][first : first + m], matrix[rows[j + 1]][first : first + m]
        a, b = weights[j], weights[j + 1]
        for k in range(m):
            out[k] += a * np.float64(row[k]) + b * np.float64(other[k])
    if count % 2 == 1:
        row, a = matrix[rows[count - 1]][first : first + m], weights[count - 1]
        for k in range(m):
            out[k] += a * np.float64(row[k])


def _times(A: NDArray[Any], V: NDArray[Any]) -> NDArray[Any]:
    """A V; one vector goes through the matrix-vector routine, which reads A once at full speed."""
    product: NDArray[Any] = A @ V[:, 0] if V.shape[1] == 1 else A @ V
    return product.reshape(A.shape[0], V.shape[1])


def _is_all(index: Index, n: int) -> bool:
    """Whether an index selects everything in order."""
    return isinstance(index, slice) and index.start == 0 and index.stop == n and (index.step or 1) == 1
