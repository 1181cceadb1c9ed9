"""Kernel values in tiles that never leave a core's cache.

K[rows][:, columns] is cut into tiles of a few hundred rows by at most a thousand columns.  A tile is one BLAS product
(dense points) or one pass of sparse rows over column points laid out by feature (CSR points, see
`mercer.gram.compressed`), then one vectorised transform (`mercer.gram.transform`).  Either the values are written out
(`fill`), or they are multiplied with a few vectors and forgotten (`multiply`).  Threads share the rows; BLAS runs on
one thread in each.

Squared distances come from |u|^2 + |v|^2 - 2 <u, v>, which loses digits when points are far from the origin compared
with their distances: dense points are centred first, and negative results count as zero.
"""

import math
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import threads
from mercer.compiled import loop
from mercer.gram import compressed
from mercer.gram.column_blocks import OFTEN, OFTEN_COUNTED, Rooms, lanes_of
from mercer.gram.numbering import Numbering, Rows, balanced
from mercer.gram.tile_loops import put, weighted_sum, write_transposed
from mercer.gram.transform import (
    CODES,
    EXPONENTIAL,
    GAUSSIAN,
    LINEAR,
    LOG2_E,
    MATERN32,
    MATERN52,
    RATIONAL_QUADRATIC,
    transform_row,
)
from mercer.kernels.profile import Profile

Index = NDArray[np.intp] | slice | None

TILE_ROWS = 128
TILE_COLUMNS = 1024
SQUARE = 256
SLAB_BYTES = 1 << 20
# Weight vectors of sparse points that are held at a time, and the operations of one kernel value beside its sums.
WEIGHT_BYTES = 1 << 23
VALUE_OPERATIONS = 16
# Entries' time that every sparse row takes beside its entries, for its transform, when rows are shared out to threads.
ROW_ENTRIES = 16
# Multiplications that are worth handing to another thread, of sparse rows.
LEAST_WORK = 2_000_000
# Sparse rows cost up to twice as much for each stored number as dense ones do (measured on two cores).
DENSE_FROM_DENSITY = 0.5

_NO_INDEX = np.empty(0, dtype=np.intp)


@loop
def _dense_products(U: Any, index: Any, start: Any, stop: Any, V: Any, points: Any, tile: Any) -> None:
    """Products of the points start..stop of U (through `index` unless empty) with V (m, d), into tile."""
    rows = stop - start
    if index.shape[0]:
        for r in range(rows):
            put(U[index[start + r]], points[r])
        np.dot(points[:rows], V.T, tile[:rows])
    else:
        np.dot(U[start:stop], V.T, tile[:rows])


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
                put(part[r], out[first + r, left:right])


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
                    out[first + r, 0] += weighted_sum(part[r], single)
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
                put(tile[r], out[top + r, left:right])
            if left > top:
                write_transposed(tile, out[left:right, top:bottom])


def preparation(profile: Profile) -> tuple[int, float, NDArray[np.float64]]:
    """Code of g, the factor every feature is multiplied by, and the parameters g still needs."""
    code = CODES[profile.name]
    p = profile.parameters
    if code == GAUSSIAN:
        return code, math.sqrt(2.0 * p[0] * LOG2_E), np.zeros(0)
    if code == EXPONENTIAL:
        return code, p[0], np.zeros(0)
    if code == MATERN32:
        return code, math.sqrt(3.0) * p[0], np.zeros(0)
    if code == MATERN52:
        return code, math.sqrt(5.0) * p[0], np.zeros(0)
    if code == RATIONAL_QUADRATIC:
        alpha, sigma = p
        return code, 1.0 / (sigma * math.sqrt(2.0 * alpha)), np.array([alpha])
    return code, 1.0, np.array(p, dtype=np.float64)


class Points:
    """Data points prepared for one profile: scaled, centred, in the working precision, with half squared norms.

    Dense points keep `U` (n, d); sparse points keep their `rows`, on the features of a `numbering`, and their squared
    `norms` (n,) on all features; `counted` says that the entries of each row are all one number, and `work` (n + 1,)
    how many entries' time the rows before each one take.  `a` (n,) is |u|^2 / 2, or zero for dot products.
    """

    def __init__(
        self,
        X: Any,
        factor: Any,
        shift: NDArray[np.float64] | None,
        distances: bool,
        dtype: Any,
        numbering: Numbering | None = None,
    ) -> None:
        self.n, self.d = X.shape
        self.sparse = numbering is not None
        if numbering is not None:
            rows, self.norms = numbering.rows(X, factor, dtype)
            self.rows: Rows = rows
            self.counted = not np.isnan(rows.levels).any()
            self.work = rows.indptr + ROW_ENTRIES * np.arange(self.n + 1)
            self.U = np.empty((0, self.d), dtype)
        else:
            self.U = _scaled(X, factor, shift, dtype)
            self.norms = _squared_norms(self.U) if distances else np.zeros(0)
        self.a = (0.5 * self.norms if distances else np.zeros(self.n)).astype(dtype)


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


def _squared_norms(U: NDArray[Any]) -> NDArray[np.float64]:
    """|u_i|^2 (n,) of dense points, summed pairwise in float64: sums taken in turn lose digits as points grow wide."""
    norms = np.empty(len(U))
    step = max(1, (1 << 16) // max(1, U.shape[1]))
    for start in range(0, len(U), step):
        norms[start : start + step] = np.square(U[start : start + step], dtype=np.float64).sum(axis=1)
    return norms


def worth_densifying(X: Any, Z: Any = None) -> bool:
    """Whether CSR points X (n, d), with Z (m, d) where one is given, are cheaper to multiply as dense ones."""
    both = [P for P in (X, Z) if P is not None]
    count, d = sum(P.shape[0] for P in both), X.shape[1]
    stored = sum(P.nnz if sp.issparse(P) else P.shape[0] * d for P in both)
    return bool(d <= 16 or stored > DENSE_FROM_DENSITY * count * d)


def _all_alike(X: Any, weights: Any) -> bool:
    """Whether all entries of CSR points will be one number, as far as can be seen at a glance."""
    return bool(np.ndim(weights) == 0 and (X.nnz == 0 or X.data.min() == X.data.max()))


def _canonical(X: Any) -> Any:
    """CSR form with sorted indices, each there once; X itself is left as it is."""
    X = X if sp.issparse(X) and X.format == "csr" else sp.csr_array(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


class Tiles:
    """Kernel values between X (n, d) and Z (m, d; X itself when None), tile by tile, in float32 or float64.

    Where one of the two is CSR, both are taken in the form that is cheaper for them together, unless `dense` asks for
    dense points whatever that costs.
    """

    def __init__(
        self, profile: Profile, X: Any, Z: Any = None, dtype: Any = np.float32, *, dense: bool = False
    ) -> None:
        self.profile = profile
        self.dtype = np.dtype(dtype)
        self.code, factor, self.parameters = preparation(profile)
        distances = GAUSSIAN <= self.code <= RATIONAL_QUADRATIC
        self.distances = distances
        weights: Any = factor if profile.scale is None else factor * np.asarray(profile.scale)
        self.sparse = not dense and (sp.issparse(X) or sp.issparse(Z)) and not worth_densifying(X, Z)
        if self.sparse or sp.issparse(X) or sp.issparse(Z):
            X, Z = self._in_form(X), None if Z is None else self._in_form(Z)
        shift = None
        if distances and not self.sparse:
            shift = X.mean(axis=0, dtype=np.float64) if X.shape[0] else None
        self._numbering = None
        self._rooms: dict[bool, Rooms] = {}
        if self.sparse:
            fixed = X if Z is None else Z
            self._numbering = Numbering(fixed, OFTEN_COUNTED if _all_alike(fixed, weights) else OFTEN)
        self._prepare = partial(
            Points, factor=weights, shift=shift, distances=distances, dtype=self.dtype, numbering=self._numbering
        )
        self.left = self._prepare(X)
        self.right = self.left if Z is None else self._prepare(Z)
        self.shape = (self.left.n, self.right.n)

    def _in_form(self, X: Any) -> Any:
        """Points as a dense matrix or as CSR, whichever these tiles work on."""
        if self.sparse:
            return _canonical(X)
        return X.toarray() if sp.issparse(X) else X

    def against(self, X: Any) -> "Tiles":
        """The same column points and preparation with other row points X (p, d)."""
        other = object.__new__(Tiles)
        other.__dict__.update(self.__dict__)
        other.left = self._prepare(self._in_form(X))
        other.shape = (other.left.n, self.right.n)
        return other

    def diagonal(self) -> NDArray[Any]:
        """k(x_i, x_i) for the row points, shape (n,)."""
        left = self.left
        if self.code >= GAUSSIAN:
            return np.ones(left.n, self.dtype)
        values = left.norms.copy() if left.sparse else np.einsum("ij,ij->i", left.U, left.U)
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
        """K[rows][:, columns] of CSR points: by blocks of columns, of the upper half alone where it is symmetric."""
        left, right = self.left, self.right
        row_points, column_points = _explicit(rows, left.n), _explicit(columns, right.n)
        if count <= compressed.FEW_ROWS:
            threads.run(
                compressed.fill_few,
                [
                    (left.rows, left.a, row_points, right.rows, right.a, column_points, start, stop, self.features[0],
                     self.code, self.parameters, out)
                    for start, stop in threads.split(width, step=TILE_COLUMNS)
                ],
            )  # fmt: skip
        elif rows is columns and left is right and self._mirrored:
            parts = len(self._shares(rows, row_points, width))
            block = self.block_width(count if parts == 1 else -(-count // (4 * parts)))
            self.run_sparse(
                compressed.fill_symmetric,
                row_points,
                block,
                [
                    (left.rows, left.a, row_points, part, parts, block, self.code, self.parameters, out)
                    for part in range(parts)
                ],
            )
        else:
            block = self.block_width(width)
            self.run_sparse(
                compressed.fill,
                column_points,
                block,
                [
                    (left.rows, left.a, row_points, start, stop, right.rows, right.a, column_points, block, self.code,
                     self.parameters, out)
                    for start, stop in self._shares(rows, row_points, width)
                ],
            )  # fmt: skip

    @property
    def _mirrored(self) -> bool:
        """Whether a square of CSR points is written from the tiles of one half."""
        least = compressed.COUNTED_MIRRORED_FROM if self.counted else compressed.MIRRORED_FROM
        return bool(len(self.left.rows.indices) >= least * self.left.n)

    def _shares(self, rows: Index, row_points: NDArray[np.intp], columns: int) -> list[tuple[int, int]]:
        """Ranges of the rows of CSR points for the threads, of equal work."""
        work = self.left.work
        if rows is not None:
            work = np.concatenate([[0], np.cumsum(work[row_points + 1] - work[row_points])])
        return balanced(work, LEAST_WORK // columns)

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
                self._multiply_sparse(rows, _explicit(columns, right.n), weights, sums)
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

    def _multiply_sparse(
        self, index: Index, columns: NDArray[np.intp], weights: NDArray[Any], sums: NDArray[np.float64]
    ) -> None:
        """The same for CSR points; of the linear kernel through weight vectors, where kernel values are not fewer."""
        left, right = self.left, self.right
        rows, features = _explicit(index, left.n), self.features[0]
        ranges = self._shares(index, rows, len(columns))
        entries = len(rows) * len(left.rows.indices) / left.n + len(columns) * len(right.rows.indices) / right.n
        outputs = weights.shape[1]
        if self.code == LINEAR and entries * outputs <= float(len(rows)) * len(columns) * (outputs + VALUE_OPERATIONS):
            together = max(1, WEIGHT_BYTES // (8 * max(1, features)))
            for first in range(0, weights.shape[1], together):
                some = weights[:, first : first + together]
                expansion = np.zeros((features, some.shape[1]))
                compressed.gather_weights(right.rows, columns, some, expansion)
                threads.run(
                    compressed.apply_weights,
                    [
                        (left.rows, rows, start, stop, expansion, sums[:, first : first + together])
                        for start, stop in ranges
                    ],
                )
            return
        width = self.block_width(len(columns))
        self.run_sparse(
            compressed.multiply,
            columns,
            width,
            [
                (left.rows, left.a, rows, start, stop, right.rows, right.a, columns, weights, width, self.code,
                 self.parameters, sums)
                for start, stop in ranges
            ],
        )  # fmt: skip

    @property
    def features(self) -> tuple[int, int]:
        """Features in use of CSR points, and how many of them stand in the slab."""
        numbering = self._numbering
        assert numbering is not None
        return numbering.size, numbering.often

    @property
    def counted(self) -> bool:
        """Whether products of CSR points are numbers of shared features, times the levels of both points."""
        return self.left.counted and self.right.counted

    @property
    def _widest(self) -> int:
        """The most points in a block of CSR columns: those of a slab of about a core's cache."""
        itemsize = 1 if self.counted else self.dtype.itemsize
        lanes = lanes_of(self.counted, self.dtype.itemsize)
        fitting = SLAB_BYTES // (itemsize * max(1, self.features[1]))
        return int(min(max(lanes, fitting // lanes * lanes), TILE_COLUMNS))

    def block_width(self, columns: int) -> int:
        """Points in a block of so many CSR columns: all of them, or a share of near equal blocks."""
        blocks = max(1, -(-columns // self._widest))
        return min(self._widest, -(-columns // (16 * blocks)) * 16)

    def run_sparse(self, function: Any, columns: NDArray[np.intp], width: int, tasks: list[Any]) -> None:
        """Call function(room, *task) side by side, each with a room for blocks of `width` of the CSR columns."""
        rooms = self._rooms.get(self.counted)
        if rooms is None:
            rooms = Rooms(self._widest, *self.features, self.counted, self.dtype)
            self._rooms[self.counted] = rooms
        rooms.run(function, self.right.rows, columns, width, tasks)


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


__all__ = ["Points", "Tiles", "preparation", "worth_densifying"]
