"""The best pair, or the best single variable, at every step: maximal violation, or largest gain.

With e_hi and e_lo as in `mercer.solvers.classical.signed`, the maximal violating pair (Keerthi et al. 2001; Schoelkopf
and Smola 2002, eq. 10.89) is the variable i of e_hi and the variable j of e_lo in the group where e_lo - e_hi is
largest.  It is the best of the four pairs of Rifkin 2002, section 2.4.1, in whose terms omega = y g is minus the slope.

Second order (Fan, Chen and Lin 2005): i the same, and j the one that promises the largest gain

    (fall_j - e_hi)^2 / (2 (K_ii + K_jj - 2 K_ij + ridges)),

before the box cuts it off.  Without groups the variable of largest gain slope^2 / (2 (K_kk + ridge)) moves alone
(problem 10.14).
"""

from typing import Any

import numpy as np

from mercer.compiled import loop
from mercer.solvers.classical.signed import NEVER, highest_fall, lowest_rise
from mercer.solvers.classical.steps import (
    ENOUGH,
    NOTHING,
    REDUCE,
    SETTLED,
    free,
    held,
    missing,
    rising_slope,
    step_alone,
    step_pair,
)
from mercer.solvers.quadratic.analytic_step import FLAT, TINY


@loop
def worst_pair(signed: Any, state: Any, groups: int) -> tuple[float, int, int]:
    """The largest e_lo - e_hi of a group, the variable that should rise and the one that should fall."""
    violation, i, j = -NEVER, -1, -1
    for g in range(groups):
        low, rises = lowest_rise(signed, state.F, state.rise, g)
        high, falls = highest_fall(signed, state.F, state.fall, g)
        if rises >= 0 and falls >= 0 and high - low > violation:
            violation, i, j = high - low, rises, falls
    return violation, i, j


@loop
def steepest_partner(signed: Any, state: Any, rows: Any, i: int) -> int:
    """The variable of largest gain against i, which rises; the row of its point is held."""
    point, group, left_ridge, diagonal = signed.point, signed.group, signed.left_ridge, rows.diagonal
    F, fall, row = state.F, state.fall, rows.rows[rows.slot_of[point[i]]]
    own = diagonal[point[i]] + signed.right_ridge[i]
    level = rising_slope(signed, state, i)
    best, at = 0.0, -1
    for k in range(fall.shape[0]):
        slope = F[point[k]] + fall[k] - level
        if slope > 0.0 and group[k] == group[i]:
            bends = own + diagonal[point[k]] + left_ridge[k]
            gain = slope * slope / max(bends - 2.0 * np.float64(row[point[k]]), FLAT * abs(bends), TINY)
            if gain > best:
                best, at = gain, k
    return at


@loop
def best_pairs(
    signed: Any, state: Any, rows: Any, groups: int, second: bool, tol: float, most: int, made: Any, between: Any
) -> int:
    """Steps on the best pair until the violation is at most tol; `made` (1,) counts them up to `most`.

    `between` (2,) counts those in a row between free variables, up to its second entry if that is positive: REDUCE.
    """
    while True:
        violation, i, j = worst_pair(signed, state, groups)
        if violation <= tol:
            return SETTLED
        if made[0] >= most:
            return ENOUGH
        if second:
            p = signed.point[i]
            if not held(rows, p):
                return missing(p)
            j = steepest_partner(signed, state, rows, i)
        both_free = free(state, i) and free(state, j)
        code = step_pair(signed, state, rows, i, j, 0.0)
        if code == NOTHING:
            return SETTLED
        if code < NOTHING:
            return code
        made[0] += 1
        between[0] = between[0] + 1 if both_free else 0
        if between[0] == between[1]:
            return REDUCE


@loop
def best_single(signed: Any, state: Any, rows: Any) -> tuple[float, int]:
    """The largest violation of a variable in no group, and the variable of largest gain."""
    point, left_ridge, right_ridge, diagonal = signed.point, signed.left_ridge, signed.right_ridge, rows.diagonal
    F, rise, fall = state.F, state.rise, state.fall
    violation, best, at = 0.0, 0.0, -1
    for k in range(rise.shape[0]):
        p = point[k]
        slope = max(-F[p] - rise[k], F[p] + fall[k])
        if slope > 0.0:
            violation = max(violation, slope)
            gain = slope * slope / max(diagonal[p] + min(left_ridge[k], right_ridge[k]), TINY)
            if gain > best:
                best, at = gain, k
    return violation, at


@loop
def best_singles(signed: Any, state: Any, rows: Any, tol: float, most: int, made: Any) -> int:
    """Steps on the best variable until no violation is above tol; `made` (1,) counts them up to `most`."""
    while True:
        violation, k = best_single(signed, state, rows)
        if violation <= tol:
            return SETTLED
        if made[0] >= most:
            return ENOUGH
        code = step_alone(signed, state, rows, k, 0.0)
        if code == NOTHING:
            return SETTLED
        if code < NOTHING:
            return code
        made[0] += 1
