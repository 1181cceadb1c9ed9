"""Products of sparse points, in time and memory that follow their stored entries and not their width.

Features are numbered anew, the most frequent first; those that no column point holds contribute to no product and are
left out (`Numbering`).  A block of column points is then laid out by feature, in two ways:

    slab     features that more than `OFTEN` of the column points hold: dense, (often, width), so that a row of it is
             added in vector instructions
    lists    all others: for each feature the points of the block that hold it, with their values

and the products of a row point with the block cost, for each of its entries, one row of the slab or one walk along a
list: work is done only where two points meet in a feature.  With 60 words a document out of 2^20 hashed ones that is
a few additions for each pair, whatever the width.

Where only a few rows are asked for, laying out the columns would cost more than the products.  Each row is then spread
over a vector of all features, and every column point reads its entries there.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.compiled import loop
from mercer.gram.tile_loops import put, weighted_sum, write_transposed
from mercer.gram.transform import LINEAR, transform_row

# A walk along a list costs about as much for each of its values as sixteen values of the slab (measured in float32).
OFTEN = 1.0 / 16.0
# So few rows are cheaper to spread out than the columns are to lay out.
FEW_ROWS = 4
# A tile of so many rows is written on both sides of the diagonal, where points have at least so many entries that the
# half that is saved outweighs writing in columns (measured: 0.7 times the speed with 14 entries, 1.6 times with 160).
MIRRORED_ROWS = 32
MIRRORED_FROM = 32
# A table over all features is kept where they are at most this many for each stored entry.
TABLE = 4


class Rows(NamedTuple):
    """CSR points with their features numbered anew: `indptr` (n + 1,), `indices` and `values` (entries,)."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[Any]


class Numbering:
    """The features that occur in a CSR matrix X (n, d), the most frequent first.

    `size` is how many there are and `often` how many of these more than the share OFTEN of the points hold.
    """

    def __init__(self, X: Any) -> None:
        n, d = X.shape
        self._table: NDArray[np.int32] | None = None
        if d <= TABLE * X.nnz:
            counts = np.bincount(X.indices, minlength=d)
            used = np.flatnonzero(counts)
            counts = counts[used]
        else:
            used, counts = np.unique(X.indices, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        place = np.empty(len(used), dtype=np.int32)
        place[order] = np.arange(len(used), dtype=np.int32)
        self.size = len(used)
        self.often = int(np.count_nonzero(counts > OFTEN * n))
        self._used, self._place = used, place
        if d <= TABLE * X.nnz:
            self._table = np.full(d, -1, dtype=np.int32)
            self._table[used] = place

    def rows(self, X: Any, values: NDArray[Any]) -> Rows:
        """The rows of CSR points X (p, d), with these values (entries,) for its own, on the features that are kept."""
        indptr = X.indptr.astype(np.int64)
        indices = self._numbers(X.indices)
        known = indices >= 0
        if known.all():
            return Rows(indptr, indices, values)
        before = np.concatenate([[0], np.cumsum(known)])
        return Rows(before[indptr], indices[known], values[known])

    def _numbers(self, features: NDArray[Any]) -> NDArray[np.int32]:
        """New numbers of features by their old ones, -1 for those that are left out."""
        if self._table is not None:
            return np.asarray(self._table[features], dtype=np.int32)
        if not self.size:
            return np.full(len(features), -1, dtype=np.int32)
        at = np.minimum(np.searchsorted(self._used, features), self.size - 1)
        return np.asarray(np.where(self._used[at] == features, self._place[at], -1), dtype=np.int32)


@loop
def entries_of_block(indptr: Any, points: Any, left: Any, right: Any) -> Any:
    """Stored entries of the points[left:right]."""
    total = 0
    for c in range(left, right):
        total += indptr[points[c] + 1] - indptr[points[c]]
    return total


@loop
def most_entries(indptr: Any, points: Any, width: Any) -> Any:
    """The most stored entries of a block of `width` points."""
    most = 0
    for left in range(0, points.shape[0], width):
        most = max(most, entries_of_block(indptr, points, left, min(points.shape[0], left + width)))
    return most


@loop
def lay_out(
    indptr: Any,
    indices: Any,
    values: Any,
    points: Any,
    left: Any,
    right: Any,
    slab: Any,
    place: Any,
    holders: Any,
    held: Any,
) -> None:
    """Lay out the points[left:right] by feature.

    Feature p below `often` goes to slab[p] (often, width).  Another one has its list at place[p - often, 0] up to
    place[p - often, 1] of `holders`, positions within the block, and of `held`, values.  Slab and place must be zero.
    """
    often = slab.shape[0]
    for c in range(left, right):
        i = points[c]
        for at in range(indptr[i], indptr[i + 1]):
            p = indices[at]
            if p < often:
                slab[p, c - left] = values[at]
            else:
                place[p - often, 1] += 1
    # Lists begin at 1, so that a zero marks a feature that has none yet.
    free = 1
    for c in range(left, right):
        i = points[c]
        for at in range(indptr[i], indptr[i + 1]):
            p = indices[at] - often
            if p >= 0:
                if place[p, 0] == 0:
                    place[p, 0] = free
                    free += place[p, 1]
                    place[p, 1] = place[p, 0]
                holders[place[p, 1]] = c - left
                held[place[p, 1]] = values[at]
                place[p, 1] += 1


@loop
def clear(indptr: Any, indices: Any, points: Any, left: Any, right: Any, slab: Any, place: Any) -> None:
    """Undo `lay_out` by touching only what it wrote."""
    often = slab.shape[0]
    for c in range(left, right):
        i = points[c]
        for at in range(indptr[i], indptr[i + 1]):
            p = indices[at]
            if p < often:
                slab[p, c - left] = 0
            else:
                place[p - often, 0] = 0
                place[p - often, 1] = 0


@loop
def block_products(
    indptr: Any, indices: Any, values: Any, i: Any, slab: Any, place: Any, holders: Any, held: Any, row: Any
) -> None:
    """Products of the sparse point i with every point of the block that is laid out, into row (width,)."""
    often, m = slab.shape
    row[:] = 0
    for at in range(indptr[i], indptr[i + 1]):
        value = values[at]
        p = indices[at]
        if p < often:
            column = slab[p]
            for j in range(m):
                row[j] += value * column[j]
        else:
            for k in range(place[p - often, 0], place[p - often, 1]):
                row[holders[k]] += value * held[k]


@loop
def fill(
    indptr: Any,
    indices: Any,
    values: Any,
    a: Any,
    rows: Any,
    start: Any,
    stop: Any,
    zptr: Any,
    zindices: Any,
    zvalues: Any,
    b: Any,
    columns: Any,
    features: Any,
    often: Any,
    width: Any,
    code: Any,
    parameters: Any,
    out: Any,
) -> None:
    """out[r, c] = k(x_rows[r], z_columns[c]) for r in start..stop; out (rows, columns)."""
    m = columns.shape[0]
    slab = np.zeros((often, width), values.dtype)
    place = np.zeros((features - often, 2), np.uint32)
    most = most_entries(zptr, columns, width)
    holders, held = np.empty(most + 1, np.uint16), np.empty(most + 1, values.dtype)
    row = np.empty(width, values.dtype)
    offsets = np.zeros(width, values.dtype)
    for left in range(0, m, width):
        right = min(m, left + width)
        lay_out(zptr, zindices, zvalues, columns, left, right, slab, place, holders, held)
        for c in range(left, right):
            offsets[c - left] = b[columns[c]]
        for r in range(start, stop):
            i = rows[r]
            block_products(indptr, indices, values, i, slab, place, holders, held, row)
            if code != LINEAR:
                transform_row(code, parameters, row, a[i], offsets)
            put(row[: right - left], out[r, left:right])
        clear(zptr, zindices, columns, left, right, slab, place)


@loop
def fill_symmetric(
    indptr: Any,
    indices: Any,
    values: Any,
    a: Any,
    points: Any,
    first: Any,
    step: Any,
    features: Any,
    often: Any,
    width: Any,
    code: Any,
    parameters: Any,
    out: Any,
) -> None:
    """The square matrix of `points` with themselves: blocks of columns first, first + step, ..., rows from there on.

    Each tile is written on both sides of the diagonal.
    """
    n = points.shape[0]
    slab = np.zeros((often, width), values.dtype)
    place = np.zeros((features - often, 2), np.uint32)
    most = most_entries(indptr, points, width)
    holders, held = np.empty(most + 1, np.uint16), np.empty(most + 1, values.dtype)
    tile = np.empty((MIRRORED_ROWS, width), values.dtype)
    offsets = np.zeros(width, values.dtype)
    for left in range(first * width, n, step * width):
        right = min(n, left + width)
        lay_out(indptr, indices, values, points, left, right, slab, place, holders, held)
        for c in range(left, right):
            offsets[c - left] = a[points[c]]
        for top in range(left, n, MIRRORED_ROWS):
            bottom = min(n, top + MIRRORED_ROWS)
            for r in range(top, bottom):
                row = tile[r - top]
                block_products(indptr, indices, values, points[r], slab, place, holders, held, row)
                if code != LINEAR:
                    transform_row(code, parameters, row, a[points[r]], offsets)
                put(row[: right - left], out[r, left:right])
            if bottom > right:
                write_transposed(tile[: bottom - top, : right - left], out[left:right, top:bottom])
        clear(indptr, indices, points, left, right, slab, place)


@loop
def fill_few(
    indptr: Any,
    indices: Any,
    values: Any,
    a: Any,
    rows: Any,
    zptr: Any,
    zindices: Any,
    zvalues: Any,
    b: Any,
    columns: Any,
    start: Any,
    stop: Any,
    features: Any,
    code: Any,
    parameters: Any,
    out: Any,
) -> None:
    """out[r, c] = k(x_rows[r], z_columns[c]) for c in start..stop and all of a few rows; out (rows, columns)."""
    spread = np.zeros(features, values.dtype)
    row = np.empty(stop - start, values.dtype)
    offsets = np.empty(stop - start, values.dtype)
    for c in range(start, stop):
        offsets[c - start] = b[columns[c]]
    for r in range(rows.shape[0]):
        i = rows[r]
        for at in range(indptr[i], indptr[i + 1]):
            spread[indices[at]] = values[at]
        for c in range(start, stop):
            j = columns[c]
            total = offsets[c - start] - offsets[c - start]
            for at in range(zptr[j], zptr[j + 1]):
                total += zvalues[at] * spread[zindices[at]]
            row[c - start] = total
        if code != LINEAR:
            transform_row(code, parameters, row, a[i], offsets)
        put(row, out[r, start:stop])
        for at in range(indptr[i], indptr[i + 1]):
            spread[indices[at]] = 0


@loop
def multiply(
    indptr: Any,
    indices: Any,
    values: Any,
    a: Any,
    rows: Any,
    start: Any,
    stop: Any,
    zptr: Any,
    zindices: Any,
    zvalues: Any,
    b: Any,
    columns: Any,
    W: Any,
    features: Any,
    often: Any,
    width: Any,
    code: Any,
    parameters: Any,
    out: Any,
) -> None:
    """out[r] += k(x_rows[r], z_columns) @ W for r in start..stop; W (columns, k), out (rows, k) in float64."""
    m = columns.shape[0]
    k = W.shape[1]
    slab = np.zeros((often, width), values.dtype)
    place = np.zeros((features - often, 2), np.uint32)
    most = most_entries(zptr, columns, width)
    holders, held = np.empty(most + 1, np.uint16), np.empty(most + 1, values.dtype)
    row = np.empty(width, values.dtype)
    offsets = np.zeros(width, values.dtype)
    weights = np.zeros((k, width), values.dtype)
    for left in range(0, m, width):
        right = min(m, left + width)
        lay_out(zptr, zindices, zvalues, columns, left, right, slab, place, holders, held)
        weights[:] = 0
        for c in range(left, right):
            offsets[c - left] = b[columns[c]]
            for w in range(k):
                weights[w, c - left] = W[c, w]
        for r in range(start, stop):
            i = rows[r]
            block_products(indptr, indices, values, i, slab, place, holders, held, row)
            transform_row(code, parameters, row, a[i], offsets)
            for w in range(k):
                out[r, w] += weighted_sum(row, weights[w])
        clear(zptr, zindices, columns, left, right, slab, place)


@loop
def gather_weights(indptr: Any, indices: Any, values: Any, points: Any, W: Any, weights: Any) -> None:
    """Add sum_c z_points[c] W[c], the weight vectors of a linear expansion W (points, k), to weights (features, k)."""
    for c in range(points.shape[0]):
        i = points[c]
        for at in range(indptr[i], indptr[i + 1]):
            value = values[at]
            for w in range(W.shape[1]):
                weights[indices[at], w] += value * W[c, w]


@loop
def apply_weights(
    indptr: Any, indices: Any, values: Any, rows: Any, start: Any, stop: Any, weights: Any, out: Any
) -> None:
    """out[r] += <x_rows[r], weights> for r in start..stop; weights (features, k), out (rows, k)."""
    for r in range(start, stop):
        i = rows[r]
        for at in range(indptr[i], indptr[i + 1]):
            value = values[at]
            for w in range(weights.shape[1]):
                out[r, w] += value * weights[indices[at], w]
