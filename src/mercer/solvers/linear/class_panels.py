"""A symmetric matrix over points in the order of their classes, times machines that use some classes each.

Of the product of K (n, n) with p_a for machine a only the rows and columns of a's classes are wanted.  K is kept in
panels: some hundred columns of one class, all n rows, contiguous.  Eight rows of a panel are read from memory once and
stay in the nearest cache while they are multiplied with every machine that uses both classes, so that a pass costs
about what reading K costs, whatever the machines.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.arrays import Array, Index
from mercer.compiled import loop

Single = NDArray[np.float32]

WIDTH = 512  # columns of a panel at most: eight rows of it and the sums of some machines fit into the nearest cache


@dataclass(frozen=True)
class Panels:
    """K in panels: `values` one after the other, `lefts` (t + 1,) where each begins, `owners` (t,) the class of each.

    `borders` (k + 1,) are where classes begin, `machines` those that use classes c and d, from `pointers`[c k + d] on;
    `shares` are the panels of each thread.
    """

    values: Single
    lefts: Index
    owners: Index
    borders: Index
    pointers: Index
    machines: Index
    shares: list[tuple[int, int]]

    @classmethod
    def pack(cls, K: NDArray[Any], borders: Index, code: NDArray[Any], constant: float, scale: Single) -> "Panels":
        """Panels of scale_i (K_ij + constant) scale_j in float32, for the machines of a code (k, F)."""
        sizes, used = np.diff(borders), code != 0
        parts = -(-sizes // WIDTH)
        owners = np.repeat(np.arange(len(sizes)), parts)
        within = np.arange(len(owners)) - np.repeat(np.cumsum(parts) - parts, parts)
        lefts = np.append(borders[owners] + sizes[owners] * within // parts[owners], borders[-1])
        both = [np.flatnonzero(mine & other) for mine in used for other in used]
        pointers = np.concatenate([[0], np.cumsum([len(b) for b in both])])
        values = np.empty(K.size, dtype=np.float32)
        shares = threads.split(len(owners))
        arguments = (K, lefts.astype(np.intp), np.float32(constant), scale, values)
        threads.run(_pack, [(*arguments, first, last) for first, last in shares])
        # A panel costs as much as its class has machines in common with the others.
        common = (used.astype(np.float64) @ used.T) @ sizes
        return cls(
            values,
            lefts.astype(np.intp),
            owners.astype(np.intp),
            borders.astype(np.intp),
            pointers.astype(np.intp),
            np.concatenate(both).astype(np.intp),
            _balanced(np.diff(lefts) * common[owners]),
        )

    def product(self, p: Single, ridge: np.float32, out: Single) -> None:
        """Write (K + ridge) p on the points of every machine's classes, p (F, n) being zero elsewhere."""
        arguments = (self.values, self.lefts, self.owners, self.borders, self.pointers, self.machines, p, ridge, out)
        threads.run(_multiply, [(*arguments, first, last) for first, last in self.shares])


def _balanced(cost: Array) -> list[tuple[int, int]]:
    """Neighbouring panels for each thread, of about the same cost."""
    workers = threads.count()
    ends = np.searchsorted(np.cumsum(cost), np.linspace(0.0, cost.sum(), workers + 1)[1:-1])
    borders = [0, *(np.asarray(ends) + 1).tolist(), len(cost)]
    return [(a, b) for a, b in pairwise(borders) if b > a]


@loop
def _add_products(T: Any, p: Any, start: int, machines: Any, out: Any, left: int) -> None:
    """Add p_a[start : start + r] T to out_a[left : left + w] for each of the machines a; T (r, w), p and out (F, ...).

    Eight rows of T stay in the nearest cache while they serve all machines.
    """
    rows, width = T.shape
    i = 0
    while i + 8 <= rows:
        r0, r1, r2, r3 = T[i], T[i + 1], T[i + 2], T[i + 3]
        r4, r5, r6, r7 = T[i + 4], T[i + 5], T[i + 6], T[i + 7]
        for a in machines:
            own = p[a, start + i : start + i + 8]
            p0, p1, p2, p3, p4, p5, p6, p7 = own[0], own[1], own[2], own[3], own[4], own[5], own[6], own[7]
            to = out[a, left : left + width]
            for j in range(width):
                to[j] += (p0 * r0[j] + p1 * r1[j] + p2 * r2[j] + p3 * r3[j]) + (
                    p4 * r4[j] + p5 * r5[j] + p6 * r6[j] + p7 * r7[j]
                )
        i += 8
    while i < rows:
        row = T[i]
        for a in machines:
            factor = p[a, start + i]
            to = out[a, left : left + width]
            for j in range(width):
                to[j] += factor * row[j]
        i += 1


@loop
def _pack(K: Any, lefts: Any, constant: Any, scale: Any, values: Any, first: int, last: int) -> None:
    n = len(K)
    for panel in range(first, last):
        left = lefts[panel]
        width = lefts[panel + 1] - left
        tile = values[left * n : (left + width) * n].reshape(n, width)
        across = scale[left : left + width]
        for i in range(n):
            row = K[i, left : left + width]
            to = tile[i]
            for j in range(width):
                to[j] = (row[j] + constant) * scale[i] * across[j]


@loop
def _multiply(
    values: Any, lefts: Any, owners: Any, borders: Any, pointers: Any, machines: Any, p: Any, ridge: Any, out: Any,
    first: int, last: int,
) -> None:  # fmt: skip
    k = len(borders) - 1
    n = p.shape[1]
    for panel in range(first, last):
        left = lefts[panel]
        width = lefts[panel + 1] - left
        tile = values[left * n : (left + width) * n].reshape(n, width)
        for a in range(len(p)):
            to = out[a, left : left + width]
            own = p[a, left : left + width]
            for j in range(width):
                to[j] = ridge * own[j]
        for c in range(k):
            begin, end = pointers[c * k + owners[panel]], pointers[c * k + owners[panel] + 1]
            _add_products(tile[borders[c] : borders[c + 1]], p, borders[c], machines[begin:end], out, left)
