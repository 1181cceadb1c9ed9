"""Kernel values of sparse points, in time and memory that follow their stored entries and not their width.

A block of column points is laid out by feature (`mercer.gram.column_blocks`), and rows meet it a few at a time: their
products, then one vectorised transform, then either the values are written or multiplied with a few vectors.

Where only a few rows are asked for, laying out the columns would cost more than the products.  Each row is then spread
over a vector of all features, and every column point reads its entries there.
"""

from typing import Any

import numpy as np

from mercer.compiled import loop
from mercer.gram.column_blocks import clear, lay_out, padded, tile_products
from mercer.gram.tile_loops import put, weighted_sum, write_transposed
from mercer.gram.transform import LINEAR, transform_row

# So few rows are cheaper to spread out than the columns are to lay out.
FEW_ROWS = 4
# Tiles are written on both sides of the diagonal where points have at least so many entries that the half that is
# saved outweighs writing in columns (measured: 0.9 times the speed with 44 entries, 1.3 times with 60; where shared
# features are counted in bytes, 0.85 times with 100).
MIRRORED_FROM = 48
COUNTED_MIRRORED_FROM = 4 * MIRRORED_FROM


@loop
def fill(
    block: Any,
    left: Any,
    a: Any,
    rows: Any,
    start: Any,
    stop: Any,
    right: Any,
    b: Any,
    columns: Any,
    width: Any,
    code: Any,
    parameters: Any,
    out: Any,
) -> None:
    """out[r, c] = k(x_rows[r], z_columns[c]) for r in start..stop; out (rows, columns)."""
    m, height = columns.shape[0], block.tile.shape[0]
    for first in range(0, m, width):
        last = min(m, first + width)
        lay_out(right, b, columns, first, last, block)
        used = padded(last - first)
        for top in range(start, stop, height):
            bottom = min(stop, top + height)
            tile_products(left, rows, top, bottom, block, used)
            for r in range(top, bottom):
                row = block.tile[r - top, :used]
                if code != LINEAR:
                    transform_row(code, parameters, row, a[rows[r]], block.offsets[:used])
                put(row[: last - first], out[r, first:last])
        clear(right, columns, first, last, block)


@loop
def fill_symmetric(
    block: Any,
    points: Any,
    a: Any,
    rows: Any,
    first: Any,
    step: Any,
    width: Any,
    code: Any,
    parameters: Any,
    out: Any,
) -> None:
    """The square matrix of the points at `rows`: blocks of columns first, first + step, ..., rows from there on.

    Each tile is written on both sides of the diagonal.
    """
    n, height = rows.shape[0], block.tile.shape[0]
    for left in range(first * width, n, step * width):
        right = min(n, left + width)
        lay_out(points, a, rows, left, right, block)
        used = padded(right - left)
        for top in range(left, n, height):
            bottom = min(n, top + height)
            tile_products(points, rows, top, bottom, block, used)
            for r in range(top, bottom):
                row = block.tile[r - top, :used]
                if code != LINEAR:
                    transform_row(code, parameters, row, a[rows[r]], block.offsets[:used])
                put(row[: right - left], out[r, left:right])
            if bottom > right:
                write_transposed(block.tile[: bottom - top, : right - left], out[left:right, top:bottom])
        clear(points, rows, left, right, block)


@loop
def fill_few(
    left: Any,
    a: Any,
    rows: Any,
    right: Any,
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
    spread = np.zeros(features, left.values.dtype)
    row = np.empty(stop - start, left.values.dtype)
    offsets = np.empty(stop - start, left.values.dtype)
    for c in range(start, stop):
        offsets[c - start] = b[columns[c]]
    for r in range(rows.shape[0]):
        i = rows[r]
        for at in range(left.indptr[i], left.ends[i]):
            spread[left.indices[at]] = left.values[at]
        for c in range(start, stop):
            j = columns[c]
            total = offsets[c - start] - offsets[c - start]
            for at in range(right.indptr[j], right.ends[j]):
                total += right.values[at] * spread[right.indices[at]]
            row[c - start] = total
        if code != LINEAR:
            transform_row(code, parameters, row, a[i], offsets)
        put(row, out[r, start:stop])
        for at in range(left.indptr[i], left.ends[i]):
            spread[left.indices[at]] = 0


@loop
def multiply(
    block: Any,
    left: Any,
    a: Any,
    rows: Any,
    start: Any,
    stop: Any,
    right: Any,
    b: Any,
    columns: Any,
    W: Any,
    width: Any,
    code: Any,
    parameters: Any,
    out: Any,
) -> None:
    """out[r] += k(x_rows[r], z_columns) @ W for r in start..stop; W (columns, k), out (rows, k) in float64."""
    (m, k), height = W.shape, block.tile.shape[0]
    weights = np.zeros((k, padded(width)), left.values.dtype)
    for first in range(0, m, width):
        last = min(m, first + width)
        lay_out(right, b, columns, first, last, block)
        used = padded(last - first)
        weights[:] = 0
        for c in range(first, last):
            for w in range(k):
                weights[w, c - first] = W[c, w]
        for top in range(start, stop, height):
            bottom = min(stop, top + height)
            tile_products(left, rows, top, bottom, block, used)
            for r in range(top, bottom):
                row = block.tile[r - top, :used]
                transform_row(code, parameters, row, a[rows[r]], block.offsets[:used])
                for w in range(k):
                    out[r, w] += weighted_sum(row, weights[w])
        clear(right, columns, first, last, block)


@loop
def gather_weights(points: Any, columns: Any, W: Any, weights: Any) -> None:
    """Add sum_c z_columns[c] W[c], W (columns, k), to weights (features, k): vectors of a linear expansion."""
    for c in range(columns.shape[0]):
        i = columns[c]
        for at in range(points.indptr[i], points.ends[i]):
            value = points.values[at]
            for w in range(W.shape[1]):
                weights[points.indices[at], w] += value * W[c, w]


@loop
def apply_weights(points: Any, rows: Any, start: Any, stop: Any, weights: Any, out: Any) -> None:
    """out[r] += <x_rows[r], weights> for r in start..stop; weights (features, k), out (rows, k)."""
    for r in range(start, stop):
        i = rows[r]
        for at in range(points.indptr[i], points.ends[i]):
            value = points.values[at]
            for w in range(weights.shape[1]):
                out[r, w] += value * weights[points.indices[at], w]
