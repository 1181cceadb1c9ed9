"""Sums over the pairs of a ranked sample without forming them, in O(n log n).

For latent values f and ranks r, the sums run over pairs (i, j) of one query with r_i > r_j and

    z_ij = 1 - f_i + f_j    in    (0, width],     or above the width.

Points of a query are visited in the order of f; those whose z with the present point has come above the lower limit
enter a Fenwick tree over the ranks, those above the upper limit leave it, and a prefix of the tree is the sum over
lower (or higher) ranks (Joachims 2006; Lee and Lin 2014).  Both directions decide by the same floating-point test,
f_j > f_i - c: another order of the operations would count a pair in one of them only.
"""

import numpy as np

from mercer.arrays import Index, Vector
from mercer.compiled import exact_loop


@exact_loop
def _clear(tree: Vector) -> None:
    for k in range(tree.shape[0]):
        tree[k, 0] = tree[k, 1] = 0.0


@exact_loop
def _add(tree: Vector, place: int, count: float, total: float) -> None:
    """Add to the sums of one rank."""
    k = place + 1
    while k < tree.shape[0]:
        tree[k, 0] += count
        tree[k, 1] += total
        k += k & -k


@exact_loop
def _before(tree: Vector, place: int) -> tuple[float, float]:
    """Sums over the ranks below `place`."""
    count, total = 0.0, 0.0
    k = place
    while k > 0:
        count += tree[k, 0]
        total += tree[k, 1]
        k -= k & -k
    return count, total


@exact_loop
def sweep(f: Vector, ranks: Index, w: Vector, v: Vector, starts: Index, near: float, far: float, out: Vector) -> None:
    """Sums for every point over its pairs with  f_i - near < f_j <= f_i - far;  far = -inf is no upper limit.

    All arrays are in the order of (query, f); `starts` (queries + 1,) are the beginnings of the queries and `ranks`
    count from 0 within each.  out (n, 4): the weights of the partners of lower rank, the sum of their w v, and the same
    for the partners of higher rank.
    """
    most = 0
    for i in range(ranks.shape[0]):
        most = max(most, ranks[i])
    tree = np.zeros((most + 2, 2))
    for q in range(starts.shape[0] - 1):
        first, last = starts[q], starts[q + 1]
        size = 0
        for i in range(first, last):
            size = max(size, ranks[i] + 1)
        part = tree[: size + 1]
        _clear(part)
        enter, leave = last - 1, last - 1
        for i in range(last - 1, first - 1, -1):
            while enter >= first and f[enter] > f[i] - near:
                _add(part, ranks[enter], w[enter], w[enter] * v[enter])
                enter -= 1
            while leave > enter and f[leave] > f[i] - far:
                _add(part, ranks[leave], -w[leave], -w[leave] * v[leave])
                leave -= 1
            out[i, 0], out[i, 1] = _before(part, ranks[i])
        _clear(part)
        enter, leave = first, first
        for j in range(first, last):
            while enter < last and f[j] > f[enter] - near:
                _add(part, size - 1 - ranks[enter], w[enter], w[enter] * v[enter])
                enter += 1
            while leave < enter and f[j] > f[leave] - far:
                _add(part, size - 1 - ranks[leave], -w[leave], -w[leave] * v[leave])
                leave += 1
            out[j, 2], out[j, 3] = _before(part, size - 1 - ranks[j])
