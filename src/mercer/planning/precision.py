"""In which precision kernel values are kept: by the error they cause in f, before anything is computed.

Values in float32 are off by eps/2, so that f at a point is off by about eps C sqrt(n) k(x, x), with C the largest
coefficient.  Up to `EXACT` points float64 costs next to nothing.  One large machine goes on from values that are
computed again in float64, which costs less than float64 throughout as long as the first search sees its margins; a
small one of many is solved in one go, and goes on from float64 values where its errors turn out to matter.
"""

import math

import numpy as np

EXACT = 2048  # so many points have their kernel matrix in float64 unless told otherwise
SINGLE = 0.5 * float(np.finfo(np.float32).eps)
BLURRED = 0.03  # errors of f, of a margin of one, beyond which float64 from the start was as fast (n = 4000, C = 1e4)
DISTURBED = 10.0  # shares of the tolerance, beyond which most machines of many have to go on from float64 values


def precision_for(
    n: int, *, largest: float, diagonal: float, tol: float, of_many: int | None = None, computed: bool = True
) -> str:
    """The precision, "float32" or "float64", for n points whose k(x, x) is about `diagonal`.

    largest : about the largest coefficient, C times a weight.
    of_many : points of one of several small machines that use parts of the matrix; None for one machine.
    computed : whether values are computed from points; given ones are as they are.
    """
    if n <= EXACT:
        return "float64"
    if not computed:
        return "float32"
    noise = SINGLE * largest * diagonal
    if of_many is None:
        return "float64" if noise * math.sqrt(n) > BLURRED else "float32"
    return "float64" if noise * math.sqrt(of_many) > DISTURBED * tol else "float32"
