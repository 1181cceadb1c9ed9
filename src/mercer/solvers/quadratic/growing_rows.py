"""Pair steps on the rows of a few points, to which those of the worst violators are added until there are none.

A small machine of many features has most of its time in kernel values, and needs the rows of the points that ever take
part in a step: a tenth of all in an easy pair of classes.  One row at a time is a product of a matrix with a vector; a
block of rows is one of two matrices, ten times faster, but somebody has to say which.  So pair steps run on the points
whose rows are there, keep F = K s of *all* points up to date, and when they are done the points that violate the
conditions most have their rows computed next.  The end is that of pair steps on the whole matrix: no violation above
the tolerance at any point.
"""

from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.gram import GramOperator
from mercer.solvers.quadratic.pair_steps import pair_steps

# Rows of one block: fewer use BLAS badly, more are those of points that would have come right by themselves.
BLOCK = 64
# The steps on the rows so far end at this share of the violation at all points.
AIM = 0.1

Index = NDArray[np.intp]


class GrowingRows:
    """Points in an order in which those of each problem are two stretches, and room for the rows of one, per thread.

    `largest` is the number of points of the largest problem.  The room is used again by the next one: memory that the
    system has to clear first costs more than the values in it.  A problem that is taken up again finds its rows there.
    """

    def __init__(self, gram: GramOperator, largest: int) -> None:
        self.gram, self.dtype = gram, gram.dtype
        self._largest, self._own = largest, local()

    def room(self, stretches: tuple[int, int, int], n: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Room (n, n) for the rows of a problem, and which of them (n,) are there."""
        own = self._own
        if not hasattr(own, "values"):
            own.values, own.stretches = np.empty(self._largest**2, self.dtype), None
        if own.stretches != stretches:
            own.stretches, own.known = stretches, np.zeros(n, np.bool_)
        return own.values[: n * n].reshape(n, n), own.known

    def fill(self, chosen: Index, stretches: tuple[int, int, int], K: NDArray[Any]) -> None:
        """The rows of the local points `chosen`, into those of K (n, n)."""
        first, middle, second = stretches
        where = np.where(chosen < middle, first + chosen, second - middle + chosen)
        values = np.empty((len(chosen), K.shape[1]), K.dtype)
        self.gram.block(where, slice(first, first + middle), values[:, :middle])
        self.gram.block(where, slice(second, second + K.shape[1] - middle), values[:, middle:])
        K[chosen] = values


def minimise_on_growing_rows(
    rows: GrowingRows,
    stretches: tuple[int, int, int],
    diagonal: Any,
    F: Any,
    s: Any,
    program: Any,
    groups: int,
    tol: float,
    max_steps: int,
) -> tuple[int, float]:
    """As `minimise_pairs`, for one variable a point in one group; F (n,) and s (1, n) change in place."""
    n = s.shape[1]
    K, known = rows.room(stretches, n)
    linear, ridge, lower, upper = (part[0] for part in program[:4])
    chosen = np.empty(0, np.intp) if known.any() else _some_of_each_side(lower, upper)
    steps, aim = 0, tol
    while True:
        if chosen.size:
            rows.fill(chosen, stretches, K)
            known[chosen] = True
        taken, _ = pair_steps(K, known, None, (0, n, n), diagonal, F, s, program, groups, aim, max_steps - steps)
        steps += taken
        G = F + linear + ridge * s[0]
        rise, fall = np.where(s[0] < upper, G, np.inf), np.where(s[0] > lower, G, -np.inf)
        violation = max(0.0, float(fall.max() - rise.min()))
        if violation <= tol or steps >= max_steps:
            return steps, violation
        theta = 0.5 * (fall[known].max() + rise[known].min())
        chosen = _worst(np.where(known, 0.0, np.maximum(theta - rise, fall - theta)))
        if not (taken or chosen.size):
            return steps, violation  # rounding lets the steps go no further
        aim = max(tol, AIM * violation) if chosen.size else tol


def _some_of_each_side(lower: Any, upper: Any) -> Index:
    """Points to begin with where nothing is known: half a block of each class, spread over it."""
    sides = np.flatnonzero(lower == 0.0), np.flatnonzero(upper == 0.0)
    return np.concatenate([side[:: -(-side.size // (BLOCK // 2))] for side in sides])


def _worst(violations: Any) -> Index:
    """The points of the largest positive violations, in their order."""
    chosen = np.flatnonzero(violations > 0.0)
    if chosen.size > BLOCK:
        chosen = chosen[np.argpartition(-violations[chosen], BLOCK)[:BLOCK]]
    return np.sort(chosen)
