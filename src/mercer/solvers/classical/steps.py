"""One step of sequential minimal optimisation in compiled code, on rows of the kernel matrix that are held.

Two variables of a group, or one in no group, move to the exact minimum along their line (`signed.best_move`), and the
outputs F = K~c of all points follow from the differences (Platt 1999; Schoelkopf and Smola 2002, section 10.5).  The
loops over steps compute no kernel values: where a row is not held they end with `missing(point)`, the caller fetches
it, and they go on where they were.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.arrays import Array, Index
from mercer.compiled import loop
from mercer.solvers.classical.signed import NEVER, apply_move, best_move, offsets

# What a loop ends with, besides a missing row: nothing is left to do, or as many steps were made as were asked for.
SETTLED, ENOUGH = 0, 1
# A loop over pairs also ends where so many steps in a row were between free variables as were asked for.
REDUCE = 2
# What an attempt at a step ends with, besides a missing row.
NOTHING, STEPPED = 0, 1


class State(NamedTuple):
    """What the steps change: variables u (M,), outputs F (n,), offsets of slopes (M,); `gained` (1,) by all steps."""

    u: Array
    F: Array
    rise: Array
    fall: Array
    gained: Array


class Rows(NamedTuple):
    """The arrays of a `RowCache` of whole rows, and the diagonal (n,) of K~."""

    rows: NDArray[Any]
    slot_of: Index
    used: NDArray[np.int64]
    clock: NDArray[np.int64]
    diagonal: Array


@loop
def missing(point: int) -> int:
    """The code for a row that is not held; `missing` of it is the point again."""
    return -2 - point


@loop
def held(rows: Any, point: int) -> bool:
    """Whether a row is held; if so it counts as used now."""
    slot = rows.slot_of[point]
    if slot < 0:
        return False
    rows.clock[0] += 1
    rows.used[slot] = rows.clock[0]
    return True


@loop
def free(state: Any, k: int) -> bool:
    """Whether a variable is neither at a bound nor at its kink."""
    return bool(state.rise[k] == state.fall[k])


@loop
def threshold(signed: Any, state: Any, k: int) -> float:
    """The threshold at which variable k is optimal; the middle of them at a kink, the nearest at a bound."""
    F, rise, fall = state.F[signed.point[k]], state.rise[k], state.fall[k]
    if rise == NEVER:
        return float(F + fall)
    return float(F + rise if fall == -NEVER else F + 0.5 * (rise + fall))


@loop
def rising_slope(signed: Any, state: Any, k: int) -> float:
    """Slope of the objective where variable k rises; NEVER where it may not."""
    return float(state.F[signed.point[k]] + state.rise[k])


@loop
def falling_slope(signed: Any, state: Any, k: int) -> float:
    """Minus the slope of the objective where variable k falls; -NEVER where it may not."""
    return float(state.F[signed.point[k]] + state.fall[k])


@loop
def step_pair(signed: Any, state: Any, rows: Any, i: int, j: int, least: float) -> int:
    """Move u_i and u_j of one group against each other; NOTHING where that changes them too little.

    Too little is `least`, relative to the values before and after and to itself (Platt's test of progress); to reach a
    bound is enough however close it was.
    """
    slope = rising_slope(signed, state, i) - falling_slope(signed, state, j)
    if slope >= 0.0:
        i, j = j, i
        slope = rising_slope(signed, state, i) - falling_slope(signed, state, j)
    if i == j or slope >= 0.0:
        return NOTHING
    p, q = signed.point[i], signed.point[j]
    if not held(rows, p):
        return missing(p)
    shared = np.float64(rows.rows[rows.slot_of[p], q])
    moved, gained = best_move(signed, state.u, i, j, slope, rows.diagonal[p] + rows.diagonal[q], shared)
    room = min(signed.upper[i] - state.u[i], state.u[j] - signed.lower[j])
    if moved < room and not moved > least * (least + abs(state.u[i]) + abs(state.u[i] + moved)):
        return NOTHING
    if not held(rows, q):
        return missing(q)
    up, down = apply_move(signed, state.u, i, j, moved)
    first, second = rows.rows[rows.slot_of[p]], rows.rows[rows.slot_of[q]]
    for k in range(state.F.shape[0]):
        state.F[k] += up * np.float64(first[k]) + down * np.float64(second[k])
    offsets(signed, state.u, state.rise, state.fall, i)
    offsets(signed, state.u, state.rise, state.fall, j)
    state.gained[0] += gained
    return STEPPED


@loop
def step_alone(signed: Any, state: Any, rows: Any, k: int, least: float) -> int:
    """Move u_k, which is in no group, to its best value; NOTHING where that changes it too little, as above."""
    p, u = signed.point[k], state.u
    slope, fall = rising_slope(signed, state, k), -falling_slope(signed, state, k)
    rises = slope < 0.0
    if not rises and fall >= 0.0:
        return NOTHING
    i, j = (k, -1) if rises else (-1, k)
    moved, gained = best_move(signed, u, i, j, slope if rises else fall, rows.diagonal[p], 0.0)
    room = signed.upper[k] - u[k] if rises else u[k] - signed.lower[k]
    if moved < room and not moved > least * (least + abs(u[k]) + abs(u[k] + moved if rises else u[k] - moved)):
        return NOTHING
    if not held(rows, p):
        return missing(p)
    up, down = apply_move(signed, u, i, j, moved)
    row = rows.rows[rows.slot_of[p]]
    for m in range(state.F.shape[0]):
        state.F[m] += (up + down) * np.float64(row[m])
    offsets(signed, u, state.rise, state.fall, k)
    state.gained[0] += gained
    return STEPPED
