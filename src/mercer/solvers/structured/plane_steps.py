"""Pair steps on the planes of many examples, each with a simplex of its own.

    max over alpha of  sum_i C_i sum_p alpha_ip l_ip - 1/2 |w|^2 ,    w = sum_i C_i sum_p alpha_ip v_ip

w is at hand and planes are sparse, so that the height l - w.v of a plane costs its entries.  A step moves weight of one
example from its lowest plane that carries any to its highest, by

    min(alpha_low, (h_high - h_low) / (C_i |v_high - v_low|^2)) .

Every example has the plane zero besides those that are held; it carries what the others leave of the simplex.  What the
dual of these planes may still gain is at most  sum_i C_i (max_p h_ip - sum_p alpha_ip h_ip).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.compiled import loop
from mercer.problems.structured import Index, Plane, Vector
from mercer.solvers.structured.search import Reader

STEPS = 20  # of one example in a row
ZERO = -1  # stands for the plane zero
ENOUGH = 1e-3  # share of what an example had to gain that may be left


@loop
def _height(l: Any, starts: Any, positions: Any, values: Any, w: Any, p: int) -> Any:
    """The height l - w.v of plane p; that of the plane zero is zero."""
    if p == ZERO:
        return 0.0
    total = l[p]
    for at in range(starts[p], starts[p + 1]):
        total -= values[at] * w[positions[at]]
    return total


@loop
def _distance(starts: Any, positions: Any, values: Any, p: int, q: int) -> float:
    """|v_p - v_q|^2 of vectors with rising positions; ZERO stands for zero."""
    a, a_end = (starts[p], starts[p + 1]) if p != ZERO else (0, 0)
    b, b_end = (starts[q], starts[q + 1]) if q != ZERO else (0, 0)
    total = 0.0
    while a < a_end or b < b_end:
        if b >= b_end or (a < a_end and positions[a] < positions[b]):
            total += values[a] ** 2
            a += 1
        elif a >= a_end or positions[b] < positions[a]:
            total += values[b] ** 2
            b += 1
        else:
            total += (values[a] - values[b]) ** 2
            a += 1
            b += 1
    return total


@loop
def _add(starts: Any, positions: Any, values: Any, p: int, factor: float, w: Any) -> None:
    """Add factor v_p to w."""
    if p != ZERO:
        for at in range(starts[p], starts[p + 1]):
            w[positions[at]] += factor * values[at]


@loop
def _solve_example(planes: Any, l: Any, first: int, last: int, alpha: Any, rest: float, cost: float, w: Any) -> Any:
    """Steps on planes first..last; the weight of the plane zero, `rest`, and what was to be gained at the beginning."""
    starts, positions, values = planes
    begun = 0.0
    for step in range(STEPS):
        high, low, highest, mean = ZERO, ZERO, 0.0, 0.0
        lowest = 0.0 if rest > 0.0 else np.inf
        for p in range(first, last):
            h = _height(l, starts, positions, values, w, p)
            mean += alpha[p] * h
            if h > highest:
                high, highest = p, h
            if alpha[p] > 0.0 and h < lowest:
                low, lowest = p, h
        gain = cost * (highest - mean)
        if step == 0:
            begun = gain
        if high == low or not highest > lowest or gain <= ENOUGH * begun:
            break
        carried = rest if low == ZERO else alpha[low]
        square = cost * _distance(starts, positions, values, high, low)
        moved = carried if square * carried <= highest - lowest else (highest - lowest) / square
        if high == ZERO:
            rest += moved
        else:
            alpha[high] += moved
        if low == ZERO:
            rest = 0.0 if moved == carried else rest - moved
        else:
            alpha[low] = 0.0 if moved == carried else alpha[low] - moved
        _add(starts, positions, values, high, cost * moved, w)
        _add(starts, positions, values, low, -cost * moved, w)
    return rest, begun


@loop
def _solve_examples(planes: Any, l: Any, ends: Any, alpha: Any, rest: Any, costs: Any, w: Any) -> float:
    """Steps on every example in turn; the sum of what each had to gain."""
    total = 0.0
    for i in range(len(costs)):
        if ends[i + 1] > ends[i]:
            rest[i], gain = _solve_example(planes, l, ends[i], ends[i + 1], alpha, rest[i], costs[i], w)
            total += gain
    return total


class Planes:
    """m planes of n examples, in the order of the examples: `owners` (m,), V (m, size), l (m,) and weights (m,)."""

    def __init__(self, costs: Vector, size: int) -> None:
        self.costs, self.w = costs, np.zeros(size)
        self.V = sp.csr_matrix((0, size))
        self.owners, self.idle = np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
        self.l, self.alpha, self.rest = np.empty(0), np.empty(0), np.ones(len(costs))

    def __len__(self) -> int:
        return len(self.owners)

    def heights(self) -> Vector:
        """The largest height (n,) of the planes of each example at w, at least zero."""
        found = np.zeros(len(self.costs))
        np.maximum.at(found, self.owners, self.l - self.V @ self.w)
        return found

    def add(self, owners: Sequence[int], planes: Sequence[Plane]) -> None:
        """Planes of these examples, without weight."""
        merged = [plane.v.merged() for plane in planes]
        starts = np.cumsum([0, *(len(v.values) for v in merged)])
        positions = np.concatenate([v.positions for v in merged])
        values = np.concatenate([v.values for v in merged])
        new = sp.csr_matrix((values, positions, starts), shape=(len(planes), len(self.w)))
        self.V = sp.vstack((self.V, new), format="csr")
        self.owners = np.concatenate((self.owners, np.asarray(owners, dtype=np.intp)))
        self.l = np.concatenate((self.l, [plane.loss for plane in planes]))
        self.alpha = np.concatenate((self.alpha, np.zeros(len(planes))))
        self.idle = np.concatenate((self.idle, np.zeros(len(planes), dtype=np.intp)))
        self._keep(np.argsort(self.owners, kind="stable"))

    def _keep(self, order: Index) -> None:
        """These planes only, in this order."""
        self.V, self.owners, self.idle = self.V[order], self.owners[order], self.idle[order]
        self.l, self.alpha = self.l[order], self.alpha[order]

    def drop(self, most: int) -> None:
        """Leave out the planes that carried no weight for `most` rounds."""
        self.idle = np.where(self.alpha > 0.0, 0, self.idle + 1)
        if (self.idle >= most).any():
            self._keep(np.flatnonzero(self.idle < most))

    def sweep(self) -> float:
        """Pair steps on all examples; what they had to gain."""
        ends = np.searchsorted(self.owners, np.arange(len(self.costs) + 1))
        V = (self.V.indptr.astype(np.int64), self.V.indices.astype(np.int64), self.V.data)
        return float(_solve_examples(V, self.l, ends, self.alpha, self.rest, self.costs, self.w))

    def point(self) -> tuple[Vector, float]:
        """Make w anew from weights that lie in their simplex, and give it with sum_i C_i sum_p alpha_ip l_ip."""
        n = len(self.costs)
        self.alpha /= np.maximum(np.bincount(self.owners, self.alpha, n), 1.0)[self.owners]
        self.rest = np.maximum(1.0 - np.bincount(self.owners, self.alpha, n), 0.0)
        weights = self.costs[self.owners] * self.alpha
        self.w = np.asarray(self.V.T @ weights)
        return self.w, float(weights @ self.l)

    def state(self) -> Vector:
        """Owners, losses, weights and entries of all planes."""
        V = self.V
        sizes = [len(self), V.nnz]
        return np.concatenate((sizes, self.owners, self.l, self.alpha, V.indptr, V.indices, V.data))

    def resume(self, state: Vector) -> None:
        """Take up what `state` has given."""
        reader = Reader(state)
        m, entries = reader.number(), reader.number()
        self.owners, self.l, self.alpha = reader.take(m).astype(np.intp), reader.take(m), reader.take(m)
        starts, positions = reader.take(m + 1).astype(np.intp), reader.take(entries).astype(np.intp)
        self.V = sp.csr_matrix((reader.take(entries), positions, starts), shape=(m, len(self.w)))
        self.idle = np.zeros(m, dtype=np.intp)
        reader.close()
