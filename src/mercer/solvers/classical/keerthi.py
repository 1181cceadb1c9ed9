"""SMO with two thresholds (Keerthi, Shevade, Bhattacharyya and Murthy 2001; for regression Shevade et al. 2000).

Platt's single threshold can call an optimal variable a violator, and the other way round.  Two need no guess:

    e_hi = min of rise_k over variables that may rise,   e_lo = max of fall_k over those that may fall,

kept over the free variables I_0, the last pair and whatever else was examined since.  Variable k violates when

    rise_k < e_lo - tol  and may rise, with the variable of e_lo for a partner,       or
    fall_k > e_hi + tol  and may fall, with the variable of e_hi for a partner,

so that no search for a partner is needed (Schoelkopf and Smola 2002, section 10.5.4, where the sign of the tolerance is
to be turned).  Passes over all variables alternate with work on I_0, in one of two ways:

    modification 1   examine the free variables one by one until e_lo <= e_hi + tol among them
    modification 2   step on the pair of e_lo and e_hi among them, again and again, until that holds

A pass over all variables that changes nothing has compared every one with the final thresholds: the violation is at
most tol.
"""

from typing import Any, Unpack

import numpy as np

from mercer.compiled import loop
from mercer.errors import InvalidInput
from mercer.problems.base import Problem
from mercer.solvers.classical import dual
from mercer.solvers.classical.dual import Given, Limits, Stated, descend
from mercer.solvers.classical.signed import NEVER
from mercer.solvers.classical.signed_dual import SignedDual
from mercer.solvers.classical.steps import (
    ENOUGH,
    NOTHING,
    SETTLED,
    Rows,
    State,
    falling_slope,
    free,
    rising_slope,
    step_pair,
)
from mercer.solvers.contract import Acceptance, require
from mercer.solvers.solution import Solution

NAME = "keerthi"
ACCEPTS = "boxes and fixed sums of groups of variables, at least one sum"
SECTION = "Keerthi et al. 2001; Schoelkopf and Smola 2002, section 10.5.4"

PRECISION = 1e-12  # a smaller relative change of a variable is no step


def accepts(problem: Any) -> Acceptance:
    """Problems with sums to keep: without one there is no threshold to bracket."""
    answer = dual.accepts(problem)
    if not answer:
        return answer
    program = problem.program() if isinstance(problem, Problem) else problem
    if program.groups is None or (program.groups < 0).any():
        return Acceptance(False, "a problem without a free bias has no threshold to bracket: use 'smo'")
    return answer


def solve(problem: Stated, *, modification: int = 2, **limits: Unpack[Limits]) -> Solution:
    """Solve to a violation e_lo - e_hi of at most `tol`, or to a relative gap of `gap_tol` where that is given.

    `modification` 1 or 2 as at the head of this file; `memory` is that of the row cache.
    """
    if modification not in (1, 2):
        raise InvalidInput(f"modification must be 1 or 2, got {modification!r}")
    require(accepts(problem), NAME)
    return descend(TwoThresholds, problem, pairs=modification == 2, **limits)


class TwoThresholds(SignedDual):
    """Passes over all variables, and work on the free ones between them."""

    name = NAME

    def __init__(self, given: Given, *, pairs: bool) -> None:
        super().__init__(given)
        self.pairs = pairs
        self.levels, self.holders = np.empty((self.groups, 2)), np.empty((self.groups, 2), dtype=np.intp)
        # Whether the pass is over all, where it is, and how many steps were made in it.
        self.sweep = np.zeros(3, dtype=np.int64)

    def loop(self, state: State, rows: Rows, tol: float, most: int) -> int:
        """Passes until one over all variables changes nothing."""
        return passes(self.signed, state, rows, self.levels, self.holders, self.sweep, self.pairs, tol, most, self.made)

    def advance(self, aim: float, most: int) -> int:
        """A slice of steps from fresh thresholds: the outputs may have been computed anew since the last one."""
        self.sweep[:] = 1, 0, 0
        self.levels[:] = NEVER, -NEVER
        self.holders[:] = -1
        return super().advance(aim, most)


@loop
def passes(
    signed: Any, state: Any, rows: Any, levels: Any, holders: Any, sweep: Any, pairs: bool, tol: float, most: int,
    made: Any,
) -> int:  # fmt: skip
    """Alternate passes until one over all variables changes nothing; `levels`, `holders` (groups, 2): hi and lo."""
    while True:
        while sweep[1] < state.u.shape[0]:
            k = sweep[1]
            if sweep[0] or free(state, k):
                if made[0] >= most:
                    return ENOUGH
                code = examine(signed, state, rows, levels, holders, k, tol)
                if code < NOTHING:
                    return code
                made[0] += code
                sweep[2] += code
                if not sweep[0] and agree(levels, tol):
                    break
            sweep[1] += 1
        changed, everything = sweep[2], sweep[0]
        if everything and changed == 0:
            return SETTLED
        if everything and pairs:
            code = work_on_free(signed, state, rows, levels, holders, tol, most, made)
            if code != SETTLED:
                return code
        sweep[1] = sweep[2] = 0
        sweep[0] = 1 if pairs or (not everything and (changed == 0 or agree(levels, tol))) else 0


@loop
def agree(levels: Any, tol: float) -> bool:
    """Whether e_lo <= e_hi + tol in every group."""
    for g in range(levels.shape[0]):  # noqa: SIM110  # compiled: a generator is not
        if levels[g, 1] - levels[g, 0] > tol:
            return False
    return True


@loop
def work_on_free(
    signed: Any, state: Any, rows: Any, levels: Any, holders: Any, tol: float, most: int, made: Any
) -> int:
    """Steps on the pair of e_lo and e_hi of each group until they agree or move no more."""
    for g in range(levels.shape[0]):
        while levels[g, 1] - levels[g, 0] > tol:
            if made[0] >= most:
                return ENOUGH
            i, j = holders[g, 0], holders[g, 1]
            code = step_pair(signed, state, rows, i, j, PRECISION)
            if code < NOTHING:
                return code
            if code == NOTHING:
                break
            made[0] += 1
            renew(signed, state, levels, holders, i, j)
    return SETTLED


@loop
def examine(signed: Any, state: Any, rows: Any, levels: Any, holders: Any, k: int, tol: float) -> int:
    """Compare variable k with the thresholds, which take it in, and step against the holder of the one it violates."""
    g = signed.group[k]
    take_in(signed, state, levels, holders, k)
    wants_up = levels[g, 1] - rising_slope(signed, state, k) if holders[g, 1] >= 0 else -NEVER
    wants_down = falling_slope(signed, state, k) - levels[g, 0] if holders[g, 0] >= 0 else -NEVER
    if max(wants_up, wants_down) <= tol:
        return NOTHING
    other = holders[g, 1] if wants_up >= wants_down else holders[g, 0]
    code = step_pair(signed, state, rows, k, other, PRECISION)
    if code > NOTHING:
        renew(signed, state, levels, holders, k, other)
    return code


@loop
def take_in(signed: Any, state: Any, levels: Any, holders: Any, k: int) -> None:
    """Let variable k lower e_hi or raise e_lo of its group."""
    g = signed.group[k]
    rise, fall = rising_slope(signed, state, k), falling_slope(signed, state, k)
    if rise < levels[g, 0]:
        levels[g, 0], holders[g, 0] = rise, k
    if fall > levels[g, 1]:
        levels[g, 1], holders[g, 1] = fall, k


@loop
def renew(signed: Any, state: Any, levels: Any, holders: Any, i: int, j: int) -> None:
    """Thresholds of all groups over the free variables and the pair that has moved.

    A step changes the outputs of all points, and with them what was kept for groups other than its own.
    """
    for g in range(levels.shape[0]):
        levels[g, 0], levels[g, 1] = NEVER, -NEVER
        holders[g, 0] = holders[g, 1] = -1
    point, group, F, rise, fall = signed.point, signed.group, state.F, state.rise, state.fall
    for k in range(rise.shape[0]):
        if rise[k] == fall[k] or k in (i, j):
            g, up, down = group[k], F[point[k]] + rise[k], F[point[k]] + fall[k]
            if up < levels[g, 0]:
                levels[g, 0], holders[g, 0] = up, k
            if down > levels[g, 1]:
                levels[g, 1], holders[g, 1] = down, k
