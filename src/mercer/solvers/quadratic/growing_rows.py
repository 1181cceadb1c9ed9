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

from mercer.arrays import Index
from mercer.compiled import loop
from mercer.solvers.quadratic.pair_steps import pair_steps
from mercer.solvers.quadratic.rooms import BlockRows, Stretches

# Rows of one block, or these shares of all points and of the rows that are there: fewer use BLAS badly and pass over
# sparse points too often, more are those of points that would have come right by themselves.
BLOCK = 64
SHARE_OF_ALL, SHARE_OF_KNOWN = 1.0 / 32.0, 0.25
# The steps on the rows so far end at this share of the violation at all points.
AIM = 0.1


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
    known = int(place.max()) + 1
    chosen = np.empty(0, np.intp) if known else _some_of_each_side(program[2], program[3])
    excess, found = np.empty(n), np.empty(n, np.intp)
    steps, aim = 0, tol
    while True:
        if chosen.size:
            rows.fill(chosen, stretches, K, place)
        taken, _ = pair_steps(K, place, None, (0, n, n), diagonal, F, s, program, groups, aim, max_steps - steps)
        steps += taken
        violation, count = _candidates(F, s, program, place, excess, found)
        if violation <= tol or steps >= max_steps:
            return steps, violation
        known += chosen.size
        chosen = found[:count]
        most = max(BLOCK, int(SHARE_OF_ALL * n), int(SHARE_OF_KNOWN * known))
        if count > most:
            chosen = np.sort(chosen[np.argpartition(-excess[chosen], most)[:most]])
        if not (taken or chosen.size):
            return steps, violation  # rounding lets the steps go no further
        aim = max(tol, AIM * violation) if chosen.size else tol


def _some_of_each_side(lower: Any, upper: Any) -> Index:
    """Points to begin with where nothing is known: half a block of those of each sign, spread over them."""
    sides = np.flatnonzero((upper > 0.0).any(axis=0)), np.flatnonzero((lower < 0.0).any(axis=0))
    return np.unique(np.concatenate([side[:: -(-side.size // (BLOCK // 2))] for side in sides if side.size]))


@loop
def _candidates(F: Any, s: Any, program: Any, place: Any, excess: Any, found: Any) -> tuple[float, int]:
    """The violation at all points, and the number of points without a row that violate.

    They go to `found` (n,), and to `excess` (n,) by how much: the level is the middle of what the points whose rows are
    there leave open.
    """
    linear, ridge, lower, upper, _ = program
    layers, n = s.shape
    least, most = np.inf, -np.inf
    known_least, known_most = np.inf, -np.inf
    for k in range(n):
        for l in range(layers):
            G = F[k] + linear[l, k] + ridge[l, k] * s[l, k]
            if s[l, k] < upper[l, k]:
                least = min(least, G)
                known_least = min(known_least, G) if place[k] >= 0 else known_least
            if s[l, k] > lower[l, k]:
                most = max(most, G)
                known_most = max(known_most, G) if place[k] >= 0 else known_most
    level = 0.5 * (known_least + known_most)
    count = 0
    for k in range(n):
        if place[k] < 0:
            worst = 0.0
            for l in range(layers):
                G = F[k] + linear[l, k] + ridge[l, k] * s[l, k]
                if s[l, k] < upper[l, k]:
                    worst = max(worst, level - G)
                if s[l, k] > lower[l, k]:
                    worst = max(worst, G - level)
            excess[k] = worst
            if worst > 0.0:
                found[count] = k
                count += 1
    return max(0.0, most - least), count
