"""Products with a symmetric kernel matrix that use each tile twice: K_IJ for the rows I, and K_IJ' for the rows J.

Only tiles on and right of the diagonal are computed, which is half of the work.  Sums over one tile (for CSR points,
over 256 rows) run in the working precision, all others in float64.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.compiled import loop
from mercer.gram.column_blocks import clear, lay_out, padded, tile_products
from mercer.gram.tile_loops import weighted_sum
from mercer.gram.tiles import Tiles
from mercer.gram.transform import LINEAR, transform_row

# Rows and columns of a tile that serves both sides; near the best of those measured, none of which won everywhere.
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


@loop
def _flush(sums: Any, left: Any, right: Any, out: Any) -> None:
    """Add sums (k, width) to rows left..right of `out` and set them to zero."""
    for w in range(sums.shape[0]):
        for c in range(right - left):
            out[left + c, w] += sums[w, c]
    sums[:] = 0


@loop
def _sparse_symmetric_multiply(
    block: Any,
    points: Any,
    a: Any,
    index: Any,
    first: Any,
    step: Any,
    width: Any,
    W: Any,
    code: Any,
    parameters: Any,
    out: Any,
) -> None:
    """The same for CSR points: blocks of columns first, first + step, ..., with all rows from there on."""
    (n, k), height = W.shape, block.tile.shape[0]
    above = np.zeros((k, padded(width)), points.values.dtype)
    sums = np.zeros((k, padded(width)), points.values.dtype)
    for left in range(first * width, n, step * width):
        right = min(n, left + width)
        lay_out(points, a, index, left, right, block)
        used = padded(right - left)
        above[:] = 0
        for c in range(left, right):
            for w in range(k):
                above[w, c - left] = W[c, w]
        for top in range(left, n, height):
            bottom = min(n, top + height)
            tile_products(points, index, top, bottom, block, used)
            for r in range(top, bottom):
                row = block.tile[r - top, :used]
                transform_row(code, parameters, row, a[r], block.offsets[:used])
                for w in range(k):
                    out[r, w] += weighted_sum(row, above[w])
                if r >= right:
                    for w in range(k):
                        weight = W[r, w]
                        for j in range(used):
                            sums[w, j] += weight * row[j]
            if (top - left) % (8 * height) == 7 * height:
                _flush(sums, left, right, out)
        _flush(sums, left, right, out)
        clear(points, index, left, right, block)


def multiply(tiles: Tiles, W: NDArray[Any], out: NDArray[np.float64], workers: int) -> None:
    """Add K W to `out` (n, k) for the symmetric K of `tiles`; each thread adds to sums of its own, added in order."""
    left, n = tiles.left, tiles.left.n
    if left.sparse and tiles.code == LINEAR:
        tiles.multiply(None, None, W, out)
        return
    sums = [np.zeros(out.shape) for _ in range(workers)]
    with threads.one_blas_thread():
        if left.sparse:
            # Several blocks for each thread, since the first ones meet the most rows.
            width = tiles.block_width(max(16, n // (8 * workers)))
            points = np.arange(n, dtype=np.intp)
            tiles.run_sparse(
                _sparse_symmetric_multiply,
                points,
                width,
                [
                    (left.rows, left.a, points, p, workers, width, W, tiles.code, tiles.parameters, sums[p])
                    for p in range(workers)
                ],
            )
        else:
            threads.run(
                _symmetric_multiply,
                [(left.U, left.a, p, workers, W, tiles.code, tiles.parameters, sums[p]) for p in range(workers)],
            )
    for part in sums:
        out += part
