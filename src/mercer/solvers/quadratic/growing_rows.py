"""Pair steps on the rows of a few points, to which those of the worst violators are added until there are none.

A small machine of many features has most of its time in kernel values, and needs the rows of the points that ever take
part in a step: a tenth of all in an easy pair of classes.  One row at a time is a product of a matrix with a vector; a
block of rows is one of two matrices, ten times faster, but somebody has to say which.  So pair steps run on the points
whose rows are there, keep F = K s of *all* points up to date, and when they are done the points that violate the
conditions most have their rows computed next.  The end is that of pair steps on the whole matrix: no violation above
the tolerance at any point.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.solvers.quadratic.pair_steps import pair_steps
from mercer.solvers.quadratic.rooms import BlockRows, Stretches

# Rows of one block, or these shares of all points and of the rows that are there: fewer use BLAS badly and pass over
# sparse points too often, more are those of points that would have come right by themselves.
BLOCK = 64
SHARE_OF_ALL, SHARE_OF_KNOWN = 1.0 / 32.0, 0.25
# The steps on the rows so far end at this share of the violation at all points.
AIM = 0.1

Index = NDArray[np.intp]


def minimise_on_growing_rows(
    rows: BlockRows,
    stretches: Stretches,
    diagonal: Any,
    F: Any,
    s: Any,
    program: Any,
    groups: int,
    tol: float,
    max_steps: int,
) -> tuple[int, float]:
    """As `minimise_pairs`, for variables in one group; F (n,) and s (layers, n) change in place."""
    n = s.shape[1]
    K, place = rows.rooms.of(stretches, n)
    known = place >= 0
    linear, ridge, lower, upper, _ = program
    chosen = np.empty(0, np.intp) if known.any() else _some_of_each_side(lower, upper)
    steps, aim = 0, tol
    while True:
        if chosen.size:
            rows.fill(chosen, stretches, K, place)
            known[chosen] = True
        taken, _ = pair_steps(K, place, None, (0, n, n), diagonal, F, s, program, groups, aim, max_steps - steps)
        steps += taken
        G = F + linear + ridge * s
        rise = np.where(s < upper, G, np.inf).min(axis=0)
        fall = np.where(s > lower, G, -np.inf).max(axis=0)
        violation = max(0.0, float(fall.max() - rise.min()))
        if violation <= tol or steps >= max_steps:
            return steps, violation
        theta = 0.5 * (fall[known].max() + rise[known].min())
        most = max(BLOCK, int(SHARE_OF_ALL * n), int(SHARE_OF_KNOWN * np.count_nonzero(known)))
        chosen = _worst(np.where(known, 0.0, np.maximum(theta - rise, fall - theta)), most)
        if not (taken or chosen.size):
            return steps, violation  # rounding lets the steps go no further
        aim = max(tol, AIM * violation) if chosen.size else tol


def _some_of_each_side(lower: Any, upper: Any) -> Index:
    """Points to begin with where nothing is known: half a block of those of each sign, spread over them."""
    sides = np.flatnonzero((upper > 0.0).any(axis=0)), np.flatnonzero((lower < 0.0).any(axis=0))
    return np.unique(np.concatenate([side[:: -(-side.size // (BLOCK // 2))] for side in sides if side.size]))


def _worst(violations: Any, most: int) -> Index:
    """The points of the largest positive violations, at most so many, in their order."""
    chosen = np.flatnonzero(violations > 0.0)
    if chosen.size > most:
        chosen = chosen[np.argpartition(-violations[chosen], most)[:most]]
    return np.sort(chosen)
