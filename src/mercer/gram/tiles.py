"""Kernel values in tiles that never leave a core's cache.

K[rows][:, columns] is cut into tiles of a few hundred rows by at most a thousand columns.  A tile is one BLAS product
(dense points) or one pass of sparse rows over a transposed slab of the column points (CSR points), then one
vectorised transform (`mercer.gram.transform`).  Either the values are written out (`fill`), or they are multiplied
with a few vectors and forgotten (`multiply`).  Threads share the rows; BLAS runs on one thread in each.

Squared distances come from |u|^2 + |v|^2 - 2 <u, v>, which loses digits when points are far from the origin compared
with their distances: dense points are centred first, and negative results count as zero.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import threads
from mercer.compiled import loop
from mercer.gram.transform import GAUSSIAN, LINEAR, RATIONAL_QUADRATIC, preparation, transform_row
from mercer.kernels.profile import Profile

Index = NDArray[np.intp] | slice | None

TILE_ROWS = 128
TILE_COLUMNS = 1024
SQUARE = 256
SLAB_BYTES = 1 << 20
# Sparse rows cost about three times as much for each stored number as dense ones do (measured on two cores).
DENSE_FROM_DENSITY = 0.3

_NO_INDEX = np.empty(0, dtype=np.intp)


@loop
def _put(values: Any, out: Any) -> None:
    """Copy `values` to `out`, both of one length; an assignment of slices would take seconds to compile."""
    for j in range(values.shape[0]):
        out[j] = values[j]


@loop
def _dense_products(U: Any, index: Any, start: Any, stop: Any, V: Any, points: Any, tile: Any) -> None:
    """Products of the points start..stop of U (through `index` unless empty) with V (m, d), into tile."""
    rows = stop - start
    if index.shape[0]:
        for r in range(rows):
            _put(U[index[start + r]], points[r])
        np.dot(points[:rows], V.T, tile[:rows])
    else:
        np.dot(U[start:stop], V.T, tile[:rows])


@loop
def _sparse_products(indptr: Any, indices: Any, values: Any, i: Any, slab: Any, row: Any) -> None:
    """Product of the sparse point i with every column of slab (d, m), into row (m,)."""
    row[:] = 0
    m = row.shape[0]
    for at in range(indptr[i], indptr[i + 1]):
        value = values[at]
        column = slab[indices[at]]
        for j in range(m):
            row[j] += value * column[j]


@loop
def _weighted_sum(row: Any, weights: Any) -> Any:
    """<row, weights> in the precision of the row."""
    total = row[0] * weights[0]
    for j in range(1, row.shape[0]):
        total += row[j] * weights[j]
    return total


@loop
def _dense_fill(
    U: Any, a: Any, index: Any, start: Any, stop: Any, V: Any, b: Any, code: Any, parameters: Any, out: Any
) -> None:
    """out[r] = k(U[index[r]], V) for r in start..stop; V (m, d), out (rows, m)."""
    m, d = V.shape
    points = np.empty((TILE_ROWS if index.shape[0] else 0, d), U.dtype)
    tile = np.empty((TILE_ROWS, min(m, TILE_COLUMNS)), U.dtype)
    for left in range(0, m, TILE_COLUMNS):
        right = min(m, left + TILE_COLUMNS)
        width = right - left
        part = tile.ravel()[: TILE_ROWS * width].reshape(TILE_ROWS, width)
        for first in range(start, stop, TILE_ROWS):
            last = min(stop, first + TILE_ROWS)
            _dense_products(U, index, first, last, V[left:right], points, part)
            for r in range(last - first):
                i = index[first + r] if index.shape[0] else first + r
                if code != LINEAR:
                    transform_row(code, parameters, part[r], a[i], b[left:right])
                _put(part[r], out[first + r, left:right])


@loop
def _dense_multiply(
    U: Any, a: Any, index: Any, start: Any, stop: Any, V: Any, b: Any, W: Any, code: Any, parameters: Any, out: Any
) -> None:
    """out[r] += k(U[index[r]], V) @ W for r in start..stop; W (m, k), out (rows, k) in float64."""
    m, d = V.shape
    k = W.shape[1]
    points = np.empty((TILE_ROWS if index.shape[0] else 0, d), U.dtype)
    tile = np.empty((TILE_ROWS, min(m, TILE_COLUMNS)), U.dtype)
    sums = np.empty((TILE_ROWS, k), U.dtype)
    for left in range(0, m, TILE_COLUMNS):
        right = min(m, left + TILE_COLUMNS)
        width = right - left
        part = tile.ravel()[: TILE_ROWS * width].reshape(TILE_ROWS, width)
        weights = np.ascontiguousarray(W[left:right])
        single = weights.ravel()
        for first in range(start, stop, TILE_ROWS):
            last = min(stop, first + TILE_ROWS)
            _dense_products(U, index, first, last, V[left:right], points, part)
            for r in range(last - first):
                i = index[first + r] if index.shape[0] else first + r
                if code != LINEAR:
                    transform_row(code, parameters, part[r], a[i], b[left:right])
                if k == 1:
                    out[first + r, 0] += _weighted_sum(part[r], single)
            if k > 1:
                np.dot(part[: last - first], weights, sums[: last - first])
                for r in range(last - first):
                    for c in range(k):
                        out[first + r, c] += sums[r, c]


@loop
def _dense_symmetric(U: Any, a: Any, first_block: Any, step: Any, code: Any, parameters: Any, out: Any) -> None:
    """Fill the square matrix k(U, U) by tiles on and above the diagonal, writing each on both sides.

    This call does the block rows first_block, first_block + step, ...
    """
    n = U.shape[0]
    buffer = np.empty(SQUARE * SQUARE, U.dtype)
    for top in range(first_block * SQUARE, n, step * SQUARE):
        bottom = min(n, top + SQUARE)
        for left in range(top, n, SQUARE):
            right = min(n, left + SQUARE)
            rows, width = bottom - top, right - left
            tile = buffer[: rows * width].reshape(rows, width)
            np.dot(U[top:bottom], U[left:right].T, tile)
            for r in range(rows):
                if code != LINEAR:
                    transform_row(code, parameters, tile[r], a[top + r], a[left:right])
                _put(tile[r], out[top + r, left:right])
            if left > top:
                _write_transposed(tile, out[left:right, top:bottom])


@loop
def _write_transposed(tile: Any, out: Any) -> None:
    """Write tile' to `out` in small squares, so that both sides stay in cache."""
    rows, columns = tile.shape
    for r0 in range(0, rows, 16):
        r1 = min(rows, r0 + 16)
        for c0 in range(0, columns, 16):
            for c in range(c0, min(columns, c0 + 16)):
                for r in range(r0, r1):
                    out[c, r] = tile[r, c]


@loop
def _sparse_slab(indptr: Any, indices: Any, values: Any, points: Any, left: Any, right: Any, slab: Any) -> None:
    """Scatter the sparse points[left:right] into the columns of slab (d, right - left), which must be zero."""
    for c in range(left, right):
        i = points[c]
        for at in range(indptr[i], indptr[i + 1]):
            slab[indices[at], c - left] = values[at]


@loop
def _clear_slab(indptr: Any, indices: Any, points: Any, left: Any, right: Any, slab: Any) -> None:
    """Undo `_sparse_slab` by touching only what it wrote."""
    for c in range(left, right):
        i = points[c]
        for at in range(indptr[i], indptr[i + 1]):
            slab[indices[at], c - left] = 0


@loop
def _sparse_fill(
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
    d: Any,
    width: Any,
    code: Any,
    parameters: Any,
    out: Any,
) -> None:
    """out[r, c] = k(x_rows[r], z_columns[c]) for r in start..stop; out (rows, columns)."""
    m = columns.shape[0]
    slab = np.zeros((d, width), values.dtype)
    row = np.empty(width, values.dtype)
    offsets = np.zeros(width, values.dtype)
    for left in range(0, m, width):
        right = min(m, left + width)
        _sparse_slab(zptr, zindices, zvalues, columns, left, right, slab)
        for c in range(left, right):
            offsets[c - left] = b[columns[c]]
        for r in range(start, stop):
            i = rows[r]
            _sparse_products(indptr, indices, values, i, slab, row)
            if code != LINEAR:
                transform_row(code, parameters, row, a[i], offsets)
            _put(row[: right - left], out[r, left:right])
        _clear_slab(zptr, zindices, columns, left, right, slab)


@loop
def _sparse_multiply(
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
    d: Any,
    width: Any,
    code: Any,
    parameters: Any,
    out: Any,
) -> None:
    """out[r] += k(x_rows[r], z_columns) @ W for r in start..stop; W (columns, k), out (rows, k) in float64."""
    m = columns.shape[0]
    k = W.shape[1]
    slab = np.zeros((d, width), values.dtype)
    row = np.empty(width, values.dtype)
    offsets = np.zeros(width, values.dtype)
    weights = np.zeros((k, width), values.dtype)
    for left in range(0, m, width):
        right = min(m, left + width)
        _sparse_slab(zptr, zindices, zvalues, columns, left, right, slab)
        weights[:] = 0
        for c in range(left, right):
            offsets[c - left] = b[columns[c]]
            for w in range(k):
                weights[w, c - left] = W[c, w]
        for r in range(start, stop):
            i = rows[r]
            _sparse_products(indptr, indices, values, i, slab, row)
            if code != LINEAR:
                transform_row(code, parameters, row, a[i], offsets)
            for w in range(k):
                out[r, w] += _weighted_sum(row, weights[w])
        _clear_slab(zptr, zindices, columns, left, right, slab)


class Points:
    """Data points prepared for one profile: scaled, centred, in the working precision, with half squared norms.

    Dense points keep `U` (n, d); sparse points keep CSR arrays.  `a` (n,) is |u|^2 / 2, or zero for dot products.
    """

    def __init__(self, X: Any, factor: Any, shift: NDArray[np.float64] | None, distances: bool, dtype: Any) -> None:
        self.n, self.d = X.shape
        self.sparse = sp.issparse(X)
        if self.sparse:
            X = X.tocsr()
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
            values = X.data * (factor if np.ndim(factor) == 0 else factor[X.indices])
            self.values = values.astype(dtype, copy=False)
            self.indices = X.indices
            self.indptr = X.indptr
            self.U = np.empty((0, self.d), dtype)
            squares = sp.csr_array((self.values.astype(np.float64) ** 2, self.indices, self.indptr), shape=X.shape)
            norms = np.asarray(squares.sum(axis=1)).ravel()
        else:
            self.U = _scaled(X, factor, shift, dtype)
            norms = np.einsum("ij,ij->i", self.U, self.U, dtype=np.float64) if distances else np.zeros(0)
        self.a = (0.5 * norms if distances else np.zeros(self.n)).astype(dtype)


def _scaled(X: Any, factor: Any, shift: NDArray[np.float64] | None, dtype: Any) -> NDArray[Any]:
    """(X - shift) factor in `dtype`, computed in float64 a few rows at a time so that no second copy is made."""
    if shift is None and np.ndim(factor) == 0 and factor == 1.0:
        return np.ascontiguousarray(X, dtype=dtype)
    U = np.empty(X.shape, dtype)
    step = max(1, (1 << 16) // max(1, X.shape[1]))
    for start in range(0, len(U), step):
        part = X[start : start + step].astype(np.float64)
        if shift is not None:
            part -= shift
        U[start : start + step] = part * factor
    return U


def worth_densifying(X: Any) -> bool:
    """Whether CSR points are cheaper to multiply as dense ones."""
    n, d = X.shape
    return bool(d <= 16 or X.nnz > DENSE_FROM_DENSITY * n * d)


class Tiles:
    """Kernel values between X (n, d) and Z (m, d; X itself when None), tile by tile, in float32 or float64."""

    def __init__(self, profile: Profile, X: Any, Z: Any = None, dtype: Any = np.float32) -> None:
        self.profile = profile
        self.dtype = np.dtype(dtype)
        self.code, factor, self.parameters = preparation(profile)
        distances = GAUSSIAN <= self.code <= RATIONAL_QUADRATIC
        self.distances = distances
        weights: Any = factor if profile.scale is None else factor * np.asarray(profile.scale)
        if sp.issparse(X) and worth_densifying(X):
            X = X.toarray()
        if Z is not None and sp.issparse(Z) != sp.issparse(X):
            Z = Z.toarray() if sp.issparse(Z) else sp.csr_array(Z)
        shift = None
        if distances and not sp.issparse(X):
            shift = X.mean(axis=0, dtype=np.float64) if X.shape[0] else None
        self._weights, self._shift = weights, shift
        self.left = Points(X, weights, shift, distances, self.dtype)
        self.right = self.left if Z is None else Points(Z, weights, shift, distances, self.dtype)
        self.shape = (self.left.n, self.right.n)

    def against(self, X: Any) -> "Tiles":
        """The same column points and preparation with other row points X (p, d)."""
        other = object.__new__(Tiles)
        other.__dict__.update(self.__dict__)
        if sp.issparse(X) != self.right.sparse:
            X = X.toarray() if sp.issparse(X) else sp.csr_array(X)
        other.left = Points(X, self._weights, self._shift, self.distances, self.dtype)
        other.shape = (other.left.n, self.right.n)
        return other

    def diagonal(self) -> NDArray[Any]:
        """k(x_i, x_i) for the row points, shape (n,)."""
        left = self.left
        if self.code >= GAUSSIAN:
            return np.ones(left.n, self.dtype)
        if left.sparse:
            squares = sp.csr_array((left.values**2, left.indices, left.indptr), shape=(left.n, left.d))
            values = np.asarray(squares.sum(axis=1)).ravel()
        else:
            values = np.einsum("ij,ij->i", left.U, left.U)
        if self.code != LINEAR:
            transform_row(self.code, self.parameters, values, 0.0, np.zeros_like(values))
        return values.astype(self.dtype)

    def fill(self, rows: Index = None, columns: Index = None, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """K[rows][:, columns], written to `out` when given."""
        left, right = self.left, self.right
        row_index, count = _positions(rows, left.n)
        _, width = _positions(columns, right.n)
        if out is None:
            out = np.empty((count, width), self.dtype)
        if count == 0 or width == 0:
            return out
        with threads.one_blas_thread():
            if left.sparse:
                self._fill_sparse(rows, columns, count, width, out)
            elif rows is columns and left is right and count > SQUARE:
                self._fill_symmetric(rows, count, out)
            else:
                V, b = _columns(right, columns)
                threads.run(
                    _dense_fill,
                    [
                        (left.U, left.a, row_index, start, stop, V, b, self.code, self.parameters, out)
                        for start, stop in _split(rows, count, width * (left.d + 20))
                    ],
                )
        return out

    def _fill_symmetric(self, index: Index, count: int, out: NDArray[Any]) -> None:
        """K[index][:, index] from its tiles on and above the diagonal."""
        U, a = _columns(self.left, index)
        parts = min(threads.count(), -(-count // SQUARE)) if count > 2 * SQUARE else 1
        threads.run(_dense_symmetric, [(U, a, p, parts, self.code, self.parameters, out) for p in range(parts)])

    def _fill_sparse(self, rows: Index, columns: Index, count: int, width: int, out: NDArray[Any]) -> None:
        left, right = self.left, self.right
        row_points, column_points = _explicit(rows, left.n), _explicit(columns, right.n)
        threads.run(
            _sparse_fill,
            [
                (left.indptr, left.indices, left.values, left.a, row_points, start, stop, right.indptr, right.indices,
                 right.values, right.a, column_points, left.d, self._slab_width(width), self.code, self.parameters, out)
                for start, stop in threads.split(count)
            ],
        )  # fmt: skip

    def multiply(self, rows: Index, columns: Index, W: NDArray[Any], out: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add K[rows][:, columns] @ W to `out`, W (m,) or (m, k); sums over a tile run in the working precision."""
        left, right = self.left, self.right
        row_index, count = _positions(rows, left.n)
        _, width = _positions(columns, right.n)
        if count == 0 or width == 0:
            return out
        weights = np.ascontiguousarray(W.reshape(width, -1), dtype=self.dtype)
        sums = out.reshape(count, -1)
        with threads.one_blas_thread():
            if left.sparse:
                row_points, column_points = _explicit(rows, left.n), _explicit(columns, right.n)
                threads.run(
                    _sparse_multiply,
                    [
                        (left.indptr, left.indices, left.values, left.a, row_points, start, stop, right.indptr,
                         right.indices, right.values, right.a, column_points, weights, left.d,
                         self._slab_width(width), self.code, self.parameters, sums)
                        for start, stop in threads.split(count)
                    ],
                )  # fmt: skip
            else:
                V, b = _columns(right, columns)
                threads.run(
                    _dense_multiply,
                    [
                        (left.U, left.a, row_index, start, stop, V, b, weights, self.code, self.parameters, sums)
                        for start, stop in _split(rows, count, width * (left.d + 20))
                    ],
                )
        return out

    def _slab_width(self, columns: int) -> int:
        """Columns in a slab of about a core's cache, a multiple of 16."""
        fitting = SLAB_BYTES // (self.dtype.itemsize * max(1, self.left.d))
        return int(min(max(16, fitting // 16 * 16), TILE_COLUMNS, -(-columns // 16) * 16))


def _positions(index: Index, n: int) -> tuple[NDArray[np.intp], int]:
    """The index array the loops gather through (empty: points lie in order) and the number of points."""
    if index is None:
        return _NO_INDEX, n
    if isinstance(index, slice):
        start, stop, step = index.indices(n)
        if step == 1 and start == 0:
            return _NO_INDEX, max(0, stop)
        index = np.arange(start, stop, step, dtype=np.intp)
    return np.ascontiguousarray(index, dtype=np.intp), len(index)


def _explicit(index: Index, n: int) -> NDArray[np.intp]:
    """Positions as an array."""
    if index is None or isinstance(index, slice):
        return np.arange(n, dtype=np.intp)[index if index is not None else slice(None)]
    return np.ascontiguousarray(index, dtype=np.intp)


def _columns(right: Points, columns: Index) -> tuple[NDArray[Any], NDArray[Any]]:
    """The column points and their half norms, contiguous."""
    if columns is None:
        return right.U, right.a
    return np.ascontiguousarray(right.U[columns]), np.ascontiguousarray(right.a[columns])


def _split(rows: Index, count: int, work_per_row: int) -> list[tuple[int, int]]:
    """Row ranges for the threads; work too small for the cost of handing it over stays in the caller."""
    if count * work_per_row < 400_000:
        return [(0, count)]
    return threads.split(count, step=16)


__all__ = ["Points", "Tiles", "worth_densifying"]
