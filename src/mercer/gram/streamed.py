"""No values kept: every product, row and block is computed in tiles that are forgotten at once.

A product with the symmetric matrix uses each tile twice, K_IJ for the rows I and K_IJ' for the rows J, so that only
the tiles on and above the diagonal are computed: half of the work (Hamers 2004, section 3.5, rows on demand).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.compiled import loop
from mercer.gram import cost
from mercer.gram.entries import Entries, FusedEntries
from mercer.gram.operator import GramOperator
from mercer.gram.points import Index, length
from mercer.gram.transform import LINEAR, transform_row

# Rows and columns of a tile that serves both sides; measured best on 256 KiB to 2 MiB second-level caches.
ROWS = 128
COLUMNS = 512


@loop
def _both_sides_of_vector(tile: Any, w: Any, top: Any, left: Any, inner: Any, sums: Any, out: Any) -> None:
    """Add tile w[left:] to rows top.. of `out`, and tile[:, inner:]' w[top:] to its rows left + inner..; one vector."""
    rows, columns = tile.shape
    above = w[left : left + columns]
    sums[:columns] = 0
    for r in range(rows):
        weight = w[top + r]
        line = tile[r]
        total = line[0] * above[0]
        for j in range(1, columns):
            total += line[j] * above[j]
        for j in range(columns):
            sums[j] += weight * line[j]
        out[top + r, 0] += total
    for j in range(inner, columns):
        out[left + j, 0] += sums[j]


@loop
def _both_sides_of_vectors(tile: Any, W: Any, top: Any, left: Any, inner: Any, buffer: Any, out: Any) -> None:
    """The same for W (n, k): two BLAS products with the tile."""
    rows, columns = tile.shape
    k = W.shape[1]
    across = buffer[: rows * k].reshape(rows, k)
    np.dot(tile, W[left : left + columns], across)
    for r in range(rows):
        for c in range(k):
            out[top + r, c] += across[r, c]
    down = buffer[: columns * k].reshape(columns, k)
    np.dot(tile.T, W[top : top + rows], down)
    for j in range(inner, columns):
        for c in range(k):
            out[left + j, c] += down[j, c]


@loop
def _symmetric_multiply(U: Any, a: Any, first: Any, step: Any, W: Any, code: Any, parameters: Any, out: Any) -> None:
    """Add to `out` (n, k) the share of K W from the block rows first, first + step, ..., right of the diagonal."""
    n = U.shape[0]
    k = W.shape[1]
    single = W.ravel()
    buffer = np.empty(ROWS * COLUMNS, U.dtype)
    sums = np.empty(max(ROWS, COLUMNS) * k, U.dtype)
    for top in range(first * ROWS, n, step * ROWS):
        bottom = min(n, top + ROWS)
        for left in range(top, n, COLUMNS):
            right = min(n, left + COLUMNS)
            tile = buffer[: (bottom - top) * (right - left)].reshape(bottom - top, right - left)
            np.dot(U[top:bottom], U[left:right].T, tile)
            if code != LINEAR:
                for r in range(bottom - top):
                    transform_row(code, parameters, tile[r], a[top + r], a[left:right])
            inner = bottom - top if left == top else 0
            if k == 1:
                _both_sides_of_vector(tile, single, top, left, inner, sums, out)
            else:
                _both_sides_of_vectors(tile, W, top, left, inner, sums, out)


class StreamedGram(GramOperator):
    """K computed in tiles for every request; memory does not grow with the number of values."""

    storage = "streamed"

    def __init__(self, entries: Entries, plan: cost.Plan) -> None:
        super().__init__(entries, plan)
        entries.limit(plan)

    def _fill(self, rows: Index, columns: Index, out: NDArray[Any]) -> None:
        self.entries.fill(rows, columns, out)

    def _multiply(self, rows: Index, columns: Index, V: NDArray[Any], out: NDArray[Any]) -> None:
        n = self.shape[0]
        whole = self.symmetric and length(rows) == n and isinstance(columns, slice) and length(columns) == n
        if whole and n > ROWS and isinstance(self.entries, FusedEntries) and not self.entries.tiles.left.sparse:
            self._multiply_both_sides(self.entries, V, out)
        else:
            self.entries.multiply(rows, columns, V, out)

    def _multiply_both_sides(self, entries: FusedEntries, V: NDArray[Any], out: NDArray[np.float64]) -> None:
        """K V from the tiles above the diagonal; each thread adds to sums of its own, which are added in order."""
        tiles, n = entries.tiles, self.shape[0]
        workers = min(threads.count(), -(-n // ROWS))
        spare = self._plan.budget - self._plan.bytes
        together = spare // (8 * workers * (n + COLUMNS))
        if together < 1:
            entries.multiply(slice(0, n), slice(0, n), V, out)
            return
        for start in range(0, V.shape[1], together):
            W = np.ascontiguousarray(V[:, start : start + together])
            sums = [np.zeros(W.shape) for _ in range(workers)]
            with threads.one_blas_thread():
                threads.run(
                    _symmetric_multiply,
                    [
                        (tiles.left.U, tiles.left.a, p, workers, W, tiles.code, tiles.parameters, sums[p])
                        for p in range(workers)
                    ],
                )
            for part in sums:
                out[:, start : start + together] += part
