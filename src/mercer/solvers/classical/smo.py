"""Sequential minimal optimisation (Platt 1999; Schoelkopf and Smola 2002, section 10.5.5; Rifkin 2002, section 2.3.2).

Two nested choices make a pair.  First: passes over all variables alternate with passes over the free ones alone, until
those change nothing; a variable is examined when it violates the optimality conditions at the present threshold,

    rise_k < theta - tol/2   and may rise,     or     fall_k > theta + tol/2   and may fall.

Second: the free variable whose error differs most, then the best of all, then the free ones and at last all others
from a random start, until a step is made that changes the pair by more than numerical precision.

theta = -b is imputed by the pair, from whichever of the two is free.  A single point is an unreliable witness (Keerthi
et al. 2001): where a pass over all variables changes nothing, the two thresholds e_hi and e_lo of the whole set decide,
and the passes go on from their middle where e_lo > e_hi + tol.

Printed algorithms 10.3 and 10.4 need these corrections, all made here: a variable may rise while it is below its own
bound (not below 1); the regression step has the opposite sign and is clipped to the box at the end; the second choice
in regression compares the two edges of the tube (rise and fall), since the errors of free variables on opposite edges
differ by its width at the optimum; the precision of a step is not the tube's width.

Problems without a bias have no sum to keep and move one variable at a time (problem 10.14); nu machines and one-class
machines take their pairs from within a sum (section 10.5.6).
"""

from typing import Any, Literal, Unpack

import numpy as np

from mercer.compiled import loop
from mercer.errors import InvalidInput
from mercer.solvers.classical.best_pairs import best_pairs, best_singles, worst_pair
from mercer.solvers.classical.dual import GROUP_SUMS, Given, Limits, Stated, accepts, descend
from mercer.solvers.classical.signed import NEVER, highest_fall, lowest_rise
from mercer.solvers.classical.signed_dual import SignedDual, one_of
from mercer.solvers.classical.steps import (
    ENOUGH,
    NOTHING,
    SETTLED,
    Rows,
    State,
    falling_slope,
    free,
    rising_slope,
    step_alone,
    step_pair,
    threshold,
)
from mercer.solvers.solution import Solution

__all__ = ["ACCEPTS", "NAME", "SECTION", "accepts", "solve"]

Selection = Literal["platt", "maximal_pair", "second_order"]

NAME = "smo"
ACCEPTS = GROUP_SUMS
SECTION = "Platt 1999; Schoelkopf and Smola 2002, section 10.5; Rifkin 2002, section 2.3.2"
SELECTIONS = ("platt", "maximal_pair", "second_order")

PRECISION = 1e-12  # a smaller relative change of a variable is no step


def solve(
    problem: Stated,
    *,
    seed: int = 0,
    selection: Selection = "platt",
    full_pass_below: float = 0.0,
    precision: float = PRECISION,
    **limits: Unpack[Limits],
) -> Solution:
    """Solve to a violation e_lo - e_hi of at most `tol`, or to a relative gap of `gap_tol` where that is given.

    `selection`: Platt's two loops, the maximal violating pair, or the pair of largest gain to second order.
    `full_pass_below`: a pass over the free variables that changes less than this share of them is followed by one over
    all; 0 waits until it changes none, 0.1 is Platt's advice for noisy data.  `memory` is that of the row cache.
    """
    one_of("selection", selection, SELECTIONS)
    if not 0.0 <= full_pass_below <= 1.0:
        raise InvalidInput(f"full_pass_below must lie between 0 and 1, got {full_pass_below}")
    if not 0.0 < precision < 1.0:
        raise InvalidInput(f"precision must lie between 0 and 1, got {precision}")
    options: dict[str, Any] = {"second": selection == "second_order"}
    if selection == "platt":
        options = {"random": seed, "share": full_pass_below, "precision": precision}
    return descend(Platt if selection == "platt" else BestPairs, problem, **options, **limits)


class BestPairs(SignedDual):
    """The best pair, or single variable, of all at every step."""

    name = NAME

    def __init__(self, given: Given, *, second: bool) -> None:
        super().__init__(given)
        self.second, self.between = second, np.array([0, -1])

    def loop(self, state: State, rows: Rows, tol: float, most: int) -> int:
        """Best pairs, or best variables where no sum is kept."""
        if self.groups == 0:
            return best_singles(self.signed, state, rows, tol, most, self.made)
        return best_pairs(self.signed, state, rows, self.groups, self.second, tol, most, self.made, self.between)


class Platt(SignedDual):
    """Passes over all and over the free variables."""

    name = NAME

    def __init__(self, given: Given, *, random: int, share: float, precision: float) -> None:
        super().__init__(given)
        self.share, self.precision = share, precision
        self.theta = np.zeros(self.groups)
        # Whether the pass is over all, where it is, steps and variables in it, and the state of the random numbers.
        self.sweep = np.array([1, 0, 0, 0, random + 1], dtype=np.int64)

    def loop(self, state: State, rows: Rows, tol: float, most: int) -> int:
        """Passes until one over all variables changes nothing and the two thresholds agree."""
        while True:
            code = passes(
                self.signed, state, rows, self.theta, self.sweep, 0.5 * tol, self.share, self.precision, most, self.made
            )
            if code != SETTLED or not self.groups or worst_pair(self.signed, state, self.groups)[0] <= tol:
                return code
            before = self.theta.copy()
            middle_of_thresholds(self.signed, state, self.theta)
            if np.array_equal(before, self.theta):
                return SETTLED


@loop
def middle_of_thresholds(signed: Any, state: Any, theta: Any) -> None:
    """Theta = (e_hi + e_lo) / 2 of each group in which both are there."""
    for g in range(theta.shape[0]):
        low, rises = lowest_rise(signed, state.F, state.rise, g)
        high, falls = highest_fall(signed, state.F, state.fall, g)
        if rises >= 0 and falls >= 0:
            theta[g] = 0.5 * (low + high)


@loop
def passes(
    signed: Any, state: Any, rows: Any, theta: Any, sweep: Any, tol: float, share: float, precision: float, most: int,
    made: Any,
) -> int:  # fmt: skip
    """Alternate passes from where `sweep` stands, until one over all variables changes nothing."""
    while True:
        while sweep[1] < state.u.shape[0]:
            k = sweep[1]
            if sweep[0] or free(state, k):
                if made[0] >= most:
                    return ENOUGH
                code = examine(signed, state, rows, theta, sweep, k, tol, precision)
                if code < NOTHING:
                    return code
                made[0] += code
                sweep[2] += code
                sweep[3] += 1
            sweep[1] += 1
        changed, examined, everything = sweep[2], sweep[3], sweep[0]
        sweep[1] = sweep[2] = sweep[3] = 0
        if everything:
            sweep[0] = 0
            if changed == 0:
                sweep[0] = 1
                return SETTLED
        elif changed == 0 or changed < share * examined:
            sweep[0] = 1


@loop
def examine(signed: Any, state: Any, rows: Any, theta: Any, sweep: Any, k: int, tol: float, precision: float) -> int:
    """Step on variable k and the best partner that can be found, where k violates by more than tol."""
    g = signed.group[k]
    level = theta[g] if g >= 0 else 0.0
    wants_up, wants_down = level - rising_slope(signed, state, k), falling_slope(signed, state, k) - level
    if max(wants_up, wants_down) <= tol:
        return NOTHING
    if g < 0:
        return step_alone(signed, state, rows, k, precision)
    upwards = wants_up > wants_down
    for only_free in (True, False):
        j = farthest(signed, state, k, upwards, only_free)
        code = try_pair(signed, state, rows, theta, k, j, precision)
        if code != NOTHING:
            return code
    if j < 0 or not opposed(signed, state, k, j, upwards):
        return NOTHING  # the threshold was wrong: even the farthest of all is no partner
    M = state.u.shape[0]
    # One number for both rounds, and the same when the loop comes back with a row that was missing.
    first = (sweep[4] * 1103515245 + 12345) % 2147483648
    for only_free in (True, False):
        for m in range(M):
            j = (first + m) % M
            if signed.group[j] == g and free(state, j) == only_free:
                code = try_pair(signed, state, rows, theta, k, j, precision)
                if code != NOTHING:
                    if code > NOTHING:
                        sweep[4] = first
                    return code
    sweep[4] = first
    return NOTHING


@loop
def farthest(signed: Any, state: Any, k: int, upwards: bool, only_free: bool) -> int:
    """The partner of k in its group whose slope differs most in the direction k wants to go; -1 where none is."""
    point, group, F, rise, fall = signed.point, signed.group, state.F, state.rise, state.fall
    best, at = -NEVER, -1
    for j in range(rise.shape[0]):
        value = F[point[j]] + fall[j] if upwards else -F[point[j]] - rise[j]
        if value > best and (not only_free or rise[j] == fall[j]) and group[j] == group[k] and j != k:
            best, at = value, j
    return at


@loop
def opposed(signed: Any, state: Any, k: int, j: int, upwards: bool) -> bool:
    """Whether the objective falls when k goes up, or down, and j the other way."""
    i, m = (k, j) if upwards else (j, k)
    return rising_slope(signed, state, i) < falling_slope(signed, state, m)


@loop
def try_pair(signed: Any, state: Any, rows: Any, theta: Any, i: int, j: int, precision: float) -> int:
    """A step on i and j; where it is made, the threshold of their group is that of the free ones of the two."""
    if j < 0:
        return NOTHING
    code = step_pair(signed, state, rows, i, j, precision)
    if code > NOTHING:
        one, other = threshold(signed, state, i), threshold(signed, state, j)
        if free(state, i) == free(state, j):
            theta[signed.group[i]] = 0.5 * (one + other)
        else:
            theta[signed.group[i]] = one if free(state, i) else other
    return code
