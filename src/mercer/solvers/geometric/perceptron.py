"""The perceptron in the space of a kernel: wrong points are added until none is wrong.

    f = sum_j c_j (k(x_j, .) + 1),       c_i <- c_i + y_i w_i     whenever   y_i f(x_i) <= margin,

visiting the points in turn until a whole epoch changes nothing (Rosenblatt 1958; Aizerman, Braverman and Rozonoer 1964;
Smola et al. 2000, table 1.1, where f = 0 must count as wrong).  The constant in the kernel is the bias.  From zero the
step size only scales f, so that it is one here.

Novikoff's theorem: where some f* has y_i f*(x_i) >= rho ||f*|| at all points, there are at most
(R^2 + 2 margin) / rho^2 updates of weight one, R^2 = max k(x, x) + 1.  It holds for every f* that separates, the one
that was found included, which makes the bound computable after the fact.
"""

from typing import Any, NamedTuple

import numpy as np

from mercer.arrays import Array, Index
from mercer.compiled import loop
from mercer.problems.program import GramLike
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.solution import Stopped

STRIP_VALUES = 1 << 20  # kernel values fetched at a time


class Separation(NamedTuple):
    """What the perceptron has come to: coefficients (n,), whose sum is the bias, and how it came there."""

    coefficients: Array
    updates: int
    epochs: int
    stopped: Stopped
    """"converged" where all points are right, by more than the margin."""


@loop
def visit(rows: Any, order: Any, y: Any, sizes: Any, margin: float, clock: int, c: Any, late: Any, g: Any) -> int:
    """Visit the points `order` (m,), whose rows of k + 1 are given (m, n); c, g (n,) change; the number of updates.

    late (n,) takes every change times the visits before it, from which the average over all visits follows.
    """
    updates = 0
    for i in range(order.size):
        j = order[i]
        if y[j] * g[j] <= margin:
            change = y[j] * sizes[j]
            c[j] += change
            late[j] += change * (clock + i)
            updates += 1
            for k in range(g.size):
                g[k] += change * rows[i, k]
    return updates


def solve(
    gram: GramLike,
    y: Array,
    *,
    sizes: Array | None = None,
    margin: float = 0.0,
    max_epochs: int = 1000,
    average: bool = False,
    random: np.random.Generator | None = None,
    monitor: Monitor | None = None,
) -> Separation:
    """Separate labels y (n,) of +-1; an epoch is a visit to all points, in a random order where `random` is given.

    sizes (n,) of the steps, one by default; average : the mean of f over all visits (Freund and Schapire 1999).
    """
    n, watch = y.size, listening(monitor)
    sizes = np.ones(n) if sizes is None else sizes
    c, late, g = np.zeros(n), np.zeros(n), np.zeros(n)
    total, epoch, stopped = 0, 0, "iterations"  # type: tuple[int, int, Stopped]
    while max_epochs < 0 or epoch < max_epochs:
        if not watch.go_on():
            stopped = watch.stopped or "interrupted"
            break
        order = np.arange(n) if random is None else random.permutation(n)
        updates = _epoch(gram, order, y, sizes, margin, epoch * n, c, late, g)
        epoch, total = epoch + 1, total + updates
        wrong = float(np.count_nonzero(y * g <= margin))
        if updates == 0:
            stopped = "converged"
            break
        if not watch.watch(epoch, wrong, np.nan, updates=total):
            stopped = watch.stopped or "interrupted"
            break
    visits = max(epoch * n, 1)
    return Separation(c - late / visits if average else c, total, epoch, stopped)


def _epoch(
    gram: GramLike, order: Index, y: Array, sizes: Array, margin: float, clock: int, c: Array, late: Array, g: Array
) -> int:
    height, updates = max(1, STRIP_VALUES // y.size), 0
    for begin in range(0, order.size, height):
        some = order[begin : begin + height]
        rows = np.ascontiguousarray(gram.block(some, None), dtype=np.float64) + 1.0
        updates += int(visit(rows, some, y, sizes, margin, clock + begin, c, late, g))
    return updates


def mistake_bound(gram: GramLike, y: Array, coefficients: Array, margin: float = 0.0) -> float:
    """Novikoff's bound on the updates, by the separation that f with these coefficients (n,) is; inf where it is none.

    For the average or any other separating f it is a bound as well.
    """
    g = np.asarray(gram.dot(coefficients), dtype=np.float64) + coefficients.sum()
    square = float(coefficients @ g)
    smallest = float((y * g).min())
    if smallest <= 0.0 or square <= 0.0:
        return np.inf
    radius = float(np.max(gram.diagonal())) + 1.0
    return (radius + 2.0 * margin) * square / smallest**2
