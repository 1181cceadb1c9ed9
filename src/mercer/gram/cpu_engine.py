"""The engines of the processor: fused tiles for kernels with a profile, calls of the kernel for all others.

A kernel with a profile is a compiled function of products or distances, and runs in tiles that stay in a core's cache
(`mercer.gram.tiles`).  Kernels without one, and kernels on objects, are evaluated through their own call
k(X[rows], Z[columns]) on blocks small enough for the budget.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import threads
from mercer.errors import InvalidInput
from mercer.gram import cost, sweep_loops, symmetric
from mercer.gram.engine import Array, Body, Engine
from mercer.gram.points import Index, Points, features, length, pieces, size, take
from mercer.gram.rows import RowsOnDemand
from mercer.gram.tiles import Tiles, worth_densifying

# Numbers of the points that are copied at a time where values are computed again in float64.
EXACT_VALUES = 1 << 18
# Values of a tile of whole rows that stays in a core's cache.
TILE_VALUES = 1 << 18


def engine_of(kernel: Any, X: Points, Z: Points | None, dtype: Any) -> Engine:
    """Values of a kernel on checked points, by the fastest way the kernel allows."""
    fused = getattr(kernel, "profile", None) is not None and not isinstance(X, list)
    kind = FusedEngine if fused else CalledEngine
    return kind(kernel, X, X if Z is None else Z, dtype)


class _PointEngine(Engine):
    """What both kinds share: all values come from points in memory."""

    def against(self, X: Points) -> Self:
        """The same columns, as they are prepared, with the rows of other points X."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, X=X, shape=(size(X), self.shape[1]))
        return other

    def multiply_exactly(self, rows: Index, columns: Index, V: NDArray[Any], out: Array) -> None:
        """Add K[rows][:, columns] V to `out` in float64, from copies of a few points at a time."""
        left = 0
        for some_columns in pieces(columns, _points_copied(self.Z)):
            width, top = length(some_columns), 0
            fixed = engine_of(self.kernel, take(self.Z, some_columns), None, np.float64)
            for some_rows in pieces(rows, _points_copied(self.X)):
                height = length(some_rows)
                values = fixed.against(take(self.X, some_rows))
                values.multiply(slice(0, height), slice(0, width), V[left : left + width], out[top : top + height])
                top += height
            left += width

    def sweep(self, W: Array, body: Body, sums: Array, totals: Array) -> None:
        """Add K'R to `sums` and the totals of the body to `totals`, a tile of rows at a time."""
        tile = self._tile(1)
        wide = np.empty(tile.shape)
        for first in range(0, self.shape[0], len(tile)):
            rows = slice(first, min(self.shape[0], first + len(tile)))
            K = wide[: rows.stop - first]
            self._fill_wide(rows, tile[: len(K)], K)
            R, counted = body(K @ W, rows)
            sums += K.T @ R
            totals += counted

    def _fill_wide(self, rows: slice, tile: NDArray[Any], out: Array) -> None:
        """Whole rows in float64, made in `tile` in the working precision."""
        self.fill(rows, slice(0, self.shape[1]), tile)
        out[:] = tile

    def _tile(self, copies: int) -> NDArray[Any]:
        """Room for some whole rows in a core's cache; `copies` of its size are held beside it in float64."""
        m = self.shape[1]
        return np.empty((max(16, min(128, TILE_VALUES // copies // m)), m), self.dtype)

    def diagonal(self) -> NDArray[Any]:
        """k(x_i, x_i), shape (n,)."""
        return np.asarray(self.kernel.diagonal(self.X)).astype(self.dtype, copy=False)

    def in_double(self) -> Engine:
        """The same values computed in float64."""
        return engine_of(self.kernel, self.X, None if self.symmetric else self.Z, np.float64)

    def with_kernel(self, kernel: Any) -> Engine:
        """Values of another kernel on the same points."""
        return engine_of(kernel, self.X, None if self.symmetric else self.Z, self.dtype)

    def subset(self, index: NDArray[np.intp]) -> Engine:
        """Values among the points at `index`."""
        return engine_of(self.kernel, take(self.X, index), None, self.dtype)


class FusedEngine(_PointEngine):
    """Values of a kernel with a profile, computed in tiles that stay in cache.

    In float32 a Gaussian value has a relative error below 4e-6 + 3e-7 (|x - c|^2 + |z - c|^2) / (2 sigma^2), c the mean
    of the points: the error of the power, and the rounding of the squared distance.  Functions of the distance itself
    (exponential) lose more where points nearly coincide: sqrt(2e-7) |x - c| / sigma absolute, in float64 sqrt(4e-16).
    """

    fused = True

    _tiles: Tiles | None = None
    _columns: "FusedEngine | None" = None  # the engine whose columns are prepared already

    @property
    def tiles(self) -> Tiles:
        """The prepared points; made at first use, when the plan has been accepted."""
        if self._tiles is None and self._columns is not None:
            self._tiles = self._columns.tiles.against(self.X)
        elif self._tiles is None:
            self._tiles = Tiles(self.kernel.profile, self.X, None if self.symmetric else self.Z, self.dtype)
        return self._tiles

    @property
    def compressed(self) -> bool:
        """Whether points are multiplied in sparse form: where one side is CSR and both together are sparse enough."""
        if self._columns is not None:
            return self._columns.compressed
        if not (sp.issparse(self.X) or sp.issparse(self.Z)):
            return False
        return not worth_densifying(self.X, None if self.symmetric else self.Z)

    def against(self, X: Points) -> Self:
        """The same columns, as they are prepared, with the rows of other points X."""
        other = super().against(X)
        other._tiles, other._columns = None, self
        return other

    def prepare(self) -> None:
        """Scale, centre and narrow the points."""
        _ = self.tiles

    def release(self) -> None:
        """Forget the prepared points."""
        self._tiles = None

    def rows_on_demand(self) -> RowsOnDemand | None:
        """The prepared points; where they are sparse, dense copies of few of them."""
        if not self.symmetric:
            return None
        return RowsOnDemand.of(self.kernel, self.X, self.dtype) if self.compressed else RowsOnDemand(self.tiles, self.X)

    def fill(self, rows: Index, columns: Index, out: NDArray[Any]) -> None:
        """Write K[rows][:, columns] to `out`."""
        self.tiles.fill(_all_as_none(rows, self.shape[0]), _all_as_none(columns, self.shape[1]), out)

    def multiply(self, rows: Index, columns: Index, V: NDArray[Any], out: Array) -> None:
        """Add K[rows][:, columns] V to `out`; scattered column points, where dense, are copied a few at a time."""
        tiles, some_rows = self.tiles, _all_as_none(rows, self.shape[0])
        if isinstance(columns, slice) or tiles.sparse:
            tiles.multiply(some_rows, _all_as_none(columns, self.shape[1]), V, out)
            return
        start = 0
        for part in pieces(columns, max(1, cost.COPIED_VALUES // features(self.X))):
            tiles.multiply(some_rows, part, V[start : start + length(part)], out)
            start += length(part)

    def multiply_whole(self, V: NDArray[Any], out: Array, spare: int) -> None:
        """K V from the tiles right of the diagonal, as many vectors at a time as `spare` bytes have room for."""
        n = self.shape[0]
        workers = min(threads.count(), -(-n // symmetric.ROWS))
        together = spare // (8 * workers * (n + symmetric.COLUMNS))
        if together < 1 or n <= symmetric.ROWS or not self.symmetric:
            super().multiply_whole(V, out, spare)
        elif together >= V.shape[1]:
            symmetric.multiply(self.tiles, V, out, workers)
        else:
            for start in range(0, V.shape[1], together):
                here = slice(start, start + together)
                symmetric.multiply(self.tiles, np.ascontiguousarray(V[:, here]), out[:, here], workers)

    def diagonal(self) -> NDArray[Any]:
        """k(x_i, x_i), shape (n,): one for every function of the distance that has a profile."""
        distances = self.kernel.profile.base == "squared_distance"
        return np.ones(self.shape[0], self.dtype) if distances else super().diagonal()

    def _fill_wide(self, rows: slice, tile: NDArray[Any], out: Array) -> None:
        if self.tiles.sparse:
            super()._fill_wide(rows, tile, out)
        else:
            U, a, V, b, code, parameters = self._prepared()
            sweep_loops.wide_tile(U[rows], a[rows], V, b, code, parameters, tile, out)

    def sweep_normal(self, v: Array, W: Array, sums: Array) -> None:
        """Add K' diag(v) K W (m, k) to `sums`."""
        if self.tiles.sparse:
            super().sweep_normal(v, W, sums)
        elif W.shape[1] == 1:
            sweep_loops.add_product_of_one(*self._prepared(), W.reshape(-1), v, self._tile(1), sums.reshape(-1))
        else:
            sweep_loops.add_products(*self._prepared(), W, v, self._tile(2), sums)

    def sweep_residuals(self, Y: Array, v: Array, W: Array, sums: Array, totals: Array) -> None:
        """Add K' diag(v) [E, 1] (m, k + 1) to `sums` and sum v, v'E, v'E^2 (1 + 2 k,) to `totals`, E = Y - K W."""
        if self.tiles.sparse:
            super().sweep_residuals(Y, v, W, sums, totals)
        elif W.shape[1] == 1:
            y = np.ascontiguousarray(Y).reshape(-1)
            sweep_loops.add_residuals_of_one(*self._prepared(), W.reshape(-1), y, v, self._tile(1), sums, totals)
        else:
            sweep_loops.add_residuals(*self._prepared(), W, Y, v, self._tile(2), sums, totals)

    def _prepared(self) -> tuple[Any, Any, Any, Any, int, Array]:
        """Dense rows and their half norms, those of the columns, and the function of products."""
        tiles = self.tiles
        return tiles.left.U, tiles.left.a, tiles.right.U, tiles.right.a, tiles.code, tiles.parameters

    def task(self, budget: int, access: cost.Access = "products", nonzeros: int | None = None) -> cost.MatrixTask:
        """Sizes of a fused kernel; CSR points that the tiles turn dense count as dense."""
        compressed, stored = self.compressed, None
        if compressed:
            stored = _entries_of(self.X) + (0 if self.symmetric else _entries_of(self.Z))
        return replace(
            super().task(budget, access, nonzeros),
            fused=True,
            entries=stored,
            linear=self.kernel.profile.name == "linear",
            workers=threads.count(),
            transient=_transient_bytes(self.X, self.Z, compressed),
        )


class CalledEngine(_PointEngine):
    """Values of any kernel, by calling it on blocks of points.

    A block has at most `block` values, so that the call's own temporaries stay within the budget; the operator that
    owns the engine sets it from its plan.
    """

    block = cost.CALLED_VALUES

    def limit(self, plan: cost.Plan) -> None:
        """Call the kernel on blocks of the size the plan allows."""
        self.block = plan.block[0] * plan.block[1]

    def _blocks(self, rows: Index, columns: Index) -> tuple[int, int]:
        """Rows and columns of one call: near square, so that few points are handed over for many values."""
        side = max(1, int(self.block**0.5))
        width = min(length(columns), max(side, self.block // max(1, length(rows))))
        return max(1, self.block // max(1, width)), width

    def _values(self, rows: Index, columns: Index) -> NDArray[Any]:
        """One call of the kernel, its shape checked; a square block on the diagonal is one set of points."""
        others = None if self.symmetric and rows is columns else take(self.Z, columns)
        values = np.asarray(self.kernel(take(self.X, rows), others))
        expected = (length(rows), length(columns))
        if values.shape != expected:
            raise InvalidInput(
                f"kernel returned shape {values.shape} for points that need {expected}; correct the callable"
            )
        return values

    def _whole(self, rows: Index, columns: Index) -> bool:
        """Whether the whole of a symmetric matrix is asked for."""
        return self.symmetric and _all_as_none(rows, self.shape[0]) is _all_as_none(columns, self.shape[0]) is None

    def _upper_blocks(self) -> Iterator[tuple[slice, slice, NDArray[Any]]]:
        """Square blocks on and above the diagonal: rows, columns (the same object on the diagonal) and values."""
        parts = pieces(slice(0, self.shape[0]), max(1, int(self.block**0.5)))
        for i, here in enumerate(parts):
            for there in parts[i:]:
                values = self._values(here, there).astype(self.dtype, copy=False)
                yield cast(slice, here), cast(slice, there), values

    def fill(self, rows: Index, columns: Index, out: NDArray[Any]) -> None:
        """Write K[rows][:, columns] to `out`, block by block."""
        if self._whole(rows, columns):
            for here, there, values in self._upper_blocks():
                out[here, there] = values
                out[there, here] = values.T
            return
        height, width = self._blocks(rows, columns)
        top = 0
        for some_rows in pieces(rows, height):
            left = 0
            for some_columns in pieces(columns, width):
                values = self._values(some_rows, some_columns)
                out[top : top + values.shape[0], left : left + values.shape[1]] = values
                left += values.shape[1]
            top += length(some_rows)

    def multiply(self, rows: Index, columns: Index, V: NDArray[Any], out: Array) -> None:
        """Add K[rows][:, columns] V to `out`, block by block."""
        if self._whole(rows, columns):
            for here, there, values in self._upper_blocks():
                out[here] += values @ V[there]
                if here is not there:
                    out[there] += values.T @ V[here]
            return
        height, width = self._blocks(rows, columns)
        top = 0
        for some_rows in pieces(rows, height):
            left = 0
            for some_columns in pieces(columns, width):
                values = self._values(some_rows, some_columns).astype(self.dtype, copy=False)
                out[top : top + values.shape[0]] += values @ V[left : left + values.shape[1]]
                left += values.shape[1]
            top += length(some_rows)


def _points_copied(X: Points) -> int:
    """Points that are copied at a time in float64: as many as have EXACT_VALUES numbers, stored ones where CSR."""
    stored = X.nnz / size(X) if sp.issparse(X) else features(X)
    return max(1, int(EXACT_VALUES // max(1.0, stored)))


def _transient_bytes(X: Points, Z: Points, compressed: bool) -> int:
    """Bytes needed only while points are prepared: strips; for CSR sorted features and squares, or a dense copy."""
    if compressed:
        return 48 * max(_entries_of(P) for P in (X, Z))
    strips = 3 * 8 * min(1 << 16, max(_numbers(P) for P in (X, Z)))
    return strips + max(P.dtype.itemsize * _numbers(P) if sp.issparse(P) else 0 for P in (X, Z))


def _numbers(Z: Points) -> int:
    """Numbers of points as a dense array."""
    return size(Z) * features(Z)


def _entries_of(Z: Points) -> int:
    """Stored numbers of CSR or dense points."""
    return int(Z.nnz) if sp.issparse(Z) else _numbers(Z)


def _all_as_none(index: Index, n: int) -> Any:
    """None in place of a slice over everything, which tiles take as leave to use symmetry."""
    if isinstance(index, slice) and index.start == 0 and index.stop == n and (index.step or 1) == 1:
        return None
    return index
