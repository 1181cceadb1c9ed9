"""Sums over the rows of A = k(U, V) that exist only a tile at a time: the compiled loops of an engine's sweeps.

U (n, d) and V (m, d) are prepared points with half squared norms a (n,) and b (m,); `code` and `parameters` choose the
function of their products.  A tile is made in the working precision, widened to float64 in a core's cache and
multiplied twice; all sums run in float64.
"""

from typing import Any

import numpy as np

from mercer.compiled import loop
from mercer.gram.transform import LINEAR, transform_row


@loop
def wide_tile(U: Any, a: Any, V: Any, b: Any, code: Any, parameters: Any, tile: Any, wide: Any) -> None:
    """wide[r] = k(U[r], V) in float64, made in `tile` in the working precision; U (rows, d), V (m, d)."""
    np.dot(U, V.T, tile)
    for r in range(U.shape[0]):
        if code != LINEAR:
            transform_row(code, parameters, tile[r], a[r], b)
        for j in range(V.shape[0]):
            wide[r, j] = tile[r, j]


@loop
def add_residuals_of_one(
    U: Any, a: Any, V: Any, b: Any, code: Any, parameters: Any, w: Any, y: Any, v: Any, tile: Any, out: Any, totals: Any
) -> None:
    """Add A' diag(v) (y - A w) and A'v to the columns of out (m, 2), sums of v, ve and ve^2 to totals (3,).

    A = k(U, V), as many rows at a time as `tile` has; w (m,), y (rows,).
    """
    m = V.shape[0]
    rows = tile.shape[0]
    first_sum = np.zeros(m)
    second_sum = np.zeros(m)
    for first in range(0, U.shape[0], rows):
        last = min(U.shape[0], first + rows)
        np.dot(U[first:last], V.T, tile[: last - first])
        for r in range(last - first):
            row = tile[r]
            if code != LINEAR:
                transform_row(code, parameters, row, a[first + r], b)
            value = 0.0
            for j in range(m):
                value += np.float64(row[j]) * w[j]
            weight = v[first + r]
            error = y[first + r] - value
            for j in range(m):
                first_sum[j] += weight * error * np.float64(row[j])
                second_sum[j] += weight * np.float64(row[j])
            totals[0] += weight
            totals[1] += weight * error
            totals[2] += weight * error * error
    for j in range(m):
        out[j, 0] += first_sum[j]
        out[j, 1] += second_sum[j]


@loop
def add_product_of_one(
    U: Any, a: Any, V: Any, b: Any, code: Any, parameters: Any, w: Any, v: Any, tile: Any, out: Any
) -> None:
    """Add A' diag(v) A w to out (m,); A = k(U, V), as many rows at a time as `tile` has."""
    m = V.shape[0]
    rows = tile.shape[0]
    for first in range(0, U.shape[0], rows):
        last = min(U.shape[0], first + rows)
        np.dot(U[first:last], V.T, tile[: last - first])
        for r in range(last - first):
            row = tile[r]
            if code != LINEAR:
                transform_row(code, parameters, row, a[first + r], b)
            value = 0.0
            for j in range(m):
                value += np.float64(row[j]) * w[j]
            value *= v[first + r]
            for j in range(m):
                out[j] += value * np.float64(row[j])


@loop
def add_residuals(
    U: Any, a: Any, V: Any, b: Any, code: Any, parameters: Any, W: Any, Y: Any, v: Any, tile: Any, out: Any, totals: Any
) -> None:
    """Add A' diag(v) [Y - A W, 1] to out (m, k + 1), sums of v, of ve and of ve^2 to totals (1 + 2 k,).

    A = k(U, V), as many rows at a time as `tile` has; W (m, k), Y (rows, k).
    """
    m, k = W.shape
    rows = tile.shape[0]
    wide = np.empty((rows, m))
    values = np.empty((rows, k))
    errors = np.empty((rows, k + 1))
    part = np.empty((m, k + 1))
    for first in range(0, U.shape[0], rows):
        last = min(U.shape[0], first + rows)
        count = last - first
        wide_tile(U[first:last], a[first:last], V, b, code, parameters, tile[:count], wide[:count])
        np.dot(wide[:count], W, values[:count])
        for r in range(count):
            weight = v[first + r]
            totals[0] += weight
            for c in range(k):
                error = Y[first + r, c] - values[r, c]
                errors[r, c] = weight * error
                totals[1 + c] += weight * error
                totals[1 + k + c] += weight * error * error
            errors[r, k] = weight
        np.dot(wide[:count].T, errors[:count], part)
        for j in range(m):
            for c in range(k + 1):
                out[j, c] += part[j, c]


@loop
def add_products(
    U: Any, a: Any, V: Any, b: Any, code: Any, parameters: Any, W: Any, v: Any, tile: Any, out: Any
) -> None:
    """Add A' diag(v) A W to out (m, k); A = k(U, V), as many rows at a time as `tile` has."""
    m, k = W.shape
    rows = tile.shape[0]
    wide = np.empty((rows, m))
    values = np.empty((rows, k))
    part = np.empty((m, k))
    for first in range(0, U.shape[0], rows):
        last = min(U.shape[0], first + rows)
        count = last - first
        wide_tile(U[first:last], a[first:last], V, b, code, parameters, tile[:count], wide[:count])
        np.dot(wide[:count], W, values[:count])
        for r in range(count):
            for c in range(k):
                values[r, c] *= v[first + r]
        np.dot(wide[:count].T, values[:count], part)
        for j in range(m):
            for c in range(k):
                out[j, c] += part[j, c]
