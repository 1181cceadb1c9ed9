"""Sparse points on the features that occur, numbered anew: what the loops over sparse rows read.

Features get numbers by how often column points hold them, the most frequent first; those that none holds contribute to
no product and are left out.  Each row then lists its entries in three stretches:

    indptr[i] .. heads[i]    features that many column points hold, which stand in the slab of a block of columns
    heads[i] .. ends[i]      all others, which stand in its lists (see `mercer.gram.column_blocks`)
    ends[i] .. indptr[i+1]   features left out

Rows whose entries are all one number, their level (0 and 1, or those divided by the length of the row), need no
multiplications: the product of two of them is the number of features they share, times their levels.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.compiled import loop

# A table over all features is kept where they are at most this many for each stored entry.
TABLE = 4
# Entries whose features are counted at a time: NumPy counts in a copy of 64-bit indices.
COUNTED = 1 << 18
# Fewer entries than this are not worth handing to another thread.
FEW_ENTRIES = 1 << 15
# Squares that are summed in turn: sums of thousands in turn lose digits that distances of copies of a point need.
SUMMED_IN_TURN = 64


class Rows(NamedTuple):
    """CSR points with their features numbered anew.

    `indptr` (n + 1,), `heads` and `ends` (n,) are places in `indices` and `values` (entries,); `levels` (n,) is the one
    number that all entries of a row are, NaN where they differ.
    """

    indptr: NDArray[np.int64]
    heads: NDArray[np.int64]
    ends: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[Any]
    levels: NDArray[Any]


class Numbering:
    """The features that occur in a CSR matrix X (n, d), the most frequent first.

    `size` is how many there are and `often` how many of these more than the given share of the points hold.
    """

    def __init__(self, X: Any, share: float) -> None:
        n, d = X.shape
        self._table: NDArray[np.int32] | None = None
        if d <= TABLE * X.nnz:
            counts = np.zeros(d, dtype=np.int64)
            for first in range(0, X.nnz, COUNTED):
                counts += np.bincount(X.indices[first : first + COUNTED], minlength=d)
            used = np.flatnonzero(counts)
            counts = counts[used]
        else:
            used, counts = np.unique(X.indices, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        place = np.empty(len(used), dtype=np.int32)
        place[order] = np.arange(len(used), dtype=np.int32)
        self.size = len(used)
        self.often = int(np.count_nonzero(counts > share * n))
        self._used, self._place = used, place
        if d <= TABLE * X.nnz:
            self._table = np.full(d, -1, dtype=np.int32)
            self._table[used] = place

    def rows(self, X: Any, factor: Any, dtype: Any) -> tuple[Rows, NDArray[np.float64]]:
        """The rows of CSR points X (p, d) times a factor, (d,) or one for all, and their squared norms (p,)."""
        indptr = X.indptr.astype(np.int64)
        indices = self._numbers(X.indices)
        values = np.empty(len(indices), dtype)
        heads, ends = np.empty((2, X.shape[0]), dtype=np.int64)
        levels, norms = np.empty(X.shape[0], dtype), np.empty(X.shape[0])
        entries, common = (X.data, float(factor)) if np.ndim(factor) == 0 else (X.data * factor[X.indices], 1.0)
        threads.run(
            arrange,
            [
                (indptr, indices, entries, common, self.often, values, heads, ends, levels, norms, start, stop)
                for start, stop in balanced(indptr, FEW_ENTRIES)
            ],
        )
        return Rows(indptr, heads, ends, indices, values, levels), norms

    def _numbers(self, features: NDArray[Any]) -> NDArray[np.int32]:
        """New numbers of features by their old ones, -1 for those that are left out."""
        if self._table is not None:
            return np.take(self._table, features)
        if not self.size:
            return np.full(len(features), -1, dtype=np.int32)
        at = np.minimum(np.searchsorted(self._used, features), self.size - 1)
        return np.asarray(np.where(self._used[at] == features, self._place[at], -1), dtype=np.int32)


def balanced(work: NDArray[Any], least: int) -> list[tuple[int, int]]:
    """Ranges of rows for the threads, of near equal work and of no less than `least`, save for a single one.

    work[i] is that of all rows before i, and its last number that of all.
    """
    total = int(work[-1])
    parts = min(threads.count(), max(1, total // max(1, least)), len(work) - 1)
    inner = np.searchsorted(work, [total * p // parts for p in range(1, parts)])
    borders = [0, *(int(b) for b in inner), len(work) - 1]
    return [(a, b) for a, b in pairwise(borders) if b > a]


@loop
def arrange(
    indptr: Any,
    indices: Any,
    entries: Any,
    factor: Any,
    often: Any,
    values: Any,
    heads: Any,
    ends: Any,
    levels: Any,
    norms: Any,
    start: Any,
    stop: Any,
) -> None:
    """Scale and sort the entries of the rows start..stop into their three stretches; note levels and norms."""
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        alike = True
        norms[i] = 0.0
        for begin in range(first, last, SUMMED_IN_TURN):
            part = 0.0
            for at in range(begin, min(last, begin + SUMMED_IN_TURN)):
                values[at] = entries[at] * factor
                part += np.float64(values[at]) * np.float64(values[at])
                alike &= values[at] == values[first]
            norms[i] += part
        levels[i] = 1.0
        if last > first:
            levels[i] = values[first] if alike and values[first] != 0 else np.nan
        # Three stretches in one pass: what is before `head` belongs to the slab, what is from `end` on is left out.
        head, at, end = first, first, last
        while at < end:
            p, value = indices[at], values[at]
            if p < 0:
                end -= 1
                indices[at], values[at] = indices[end], values[end]
                indices[end], values[end] = p, value
            else:
                if p < often:
                    indices[at], values[at] = indices[head], values[head]
                    indices[head], values[head] = p, value
                    head += 1
                at += 1
        heads[i], ends[i] = head, end
