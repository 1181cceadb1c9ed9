"""Sums over features of a function of two sparse rows, by walking their sorted column numbers side by side.

    out_ij = sum_p h(x_ip, z_jp),   h(0, 0) = 0,   in O(nonzeros of x_i + nonzeros of z_j) for each pair

with h(x, z) = |x - z|, min(x, z) or (x - z)^2 / (x + z), chosen by a code.
"""

import numpy as np
from numpy.typing import NDArray

from mercer.compiled import exact_loop

ABSOLUTE, SMALLER, CHI_SQUARE = range(3)
CODES = {"absolute": ABSOLUTE, "smaller": SMALLER, "chi_square": CHI_SQUARE}

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@exact_loop
def _term(code: int, x: float, z: float) -> float:
    if code == ABSOLUTE:
        return abs(x - z)
    if code == SMALLER:
        return min(x, z)
    return (x - z) ** 2 / (x + z) if x + z > 0.0 else 0.0


@exact_loop
def fill(
    code: int,
    x_start: Integers,
    x_column: Integers,
    x_value: Floats,
    z_start: Integers,
    z_column: Integers,
    z_value: Floats,
    out: Floats,
) -> None:
    """Fill out (n, m) from CSR rows: row pointers, sorted column numbers and values of X, then of Z."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            a, b = x_start[i], z_start[j]
            total = 0.0
            while a < x_start[i + 1] and b < z_start[j + 1]:
                if x_column[a] == z_column[b]:
                    total += _term(code, x_value[a], z_value[b])
                    a += 1
                    b += 1
                elif x_column[a] < z_column[b]:
                    total += _term(code, x_value[a], 0.0)
                    a += 1
                else:
                    total += _term(code, 0.0, z_value[b])
                    b += 1
            for rest in range(a, x_start[i + 1]):
                total += _term(code, x_value[rest], 0.0)
            for rest in range(b, z_start[j + 1]):
                total += _term(code, 0.0, z_value[rest])
            out[i, j] = total
