"""Loops over a row or a tile of kernel values that dense and sparse tiles share."""

from typing import Any

from mercer.compiled import loop

SQUARE = 16


@loop
def put(values: Any, out: Any) -> None:
    """Copy `values` to `out`, both of one length; an assignment of slices would take seconds to compile."""
    for j in range(values.shape[0]):
        out[j] = values[j]


@loop
def weighted_sum(row: Any, weights: Any) -> Any:
    """<row, weights> in the precision of the row."""
    total = row[0] * weights[0]
    for j in range(1, row.shape[0]):
        total += row[j] * weights[j]
    return total


@loop
def write_transposed(tile: Any, out: Any) -> None:
    """Write tile' to `out` in small squares, so that both sides stay in cache."""
    rows, columns = tile.shape
    for r0 in range(0, rows, SQUARE):
        r1 = min(rows, r0 + SQUARE)
        for c0 in range(0, columns, SQUARE):
            for c in range(c0, min(columns, c0 + SQUARE)):
                for r in range(r0, r1):
                    out[c, r] = tile[r, c]
