"""SVMLight: the steepest feasible direction with few non-zeros, and shrinking (Joachims 1999; Rifkin 2002, 2.3.3).

Of all directions d with q entries from {-1, 0, 1} that keep the sums and leave no bound, the one with the largest
decrease -G'd is found by sorting: q/2 variables of smallest gradient that may rise and q/2 of largest gradient that may
fall, in pairs while the first is below the second.  The variables of its non-zeros are minimised over.

A variable that was at a bound and content at `looks` looks in a row is shrunk.  When those left are optimal, all come
back with outputs computed afresh, and the search goes on where one of them violates; without this final check the
answer may be off, as its certificate then says.
"""

from typing import Any, Unpack

import numpy as np

from mercer.arrays import Array, Index
from mercer.errors import InvalidInput
from mercer.solvers.classical.dual import GROUP_SUMS, ClassicalDual, Given, Limits, Stated, accepts, descend
from mercer.solvers.classical.selection import balanced, largest
from mercer.solvers.classical.shrinking import LookCounts
from mercer.solvers.classical.subset import SubsetDual
from mercer.solvers.solution import Solution

__all__ = ["ACCEPTS", "NAME", "SECTION", "accepts", "solve"]

NAME = "svmlight"
ACCEPTS = GROUP_SUMS
SECTION = "Joachims 1999; Rifkin 2002, section 2.3.3"
SIZE = 10
LOOKS = 10
SETS = 10  # working sets between two looks: a variable is shrunk after a hundred, as in SVMLight


def solve(
    problem: Stated,
    *,
    size: int = SIZE,
    looks: int = LOOKS,
    shrinking: bool = True,
    final_check: bool = True,
    **limits: Unpack[Limits],
) -> Solution:
    """Solve to a violation of at most `tol`, or to a relative gap of `gap_tol` where that is given.

    `size` (even, from 2 on) variables are worked on at a time; `looks` as at the head of this file.  Without
    `final_check` the violation of shrunk variables is told in details["violation_of_all"] and not acted upon.
    """
    return descend(
        SteepestDirection, problem, size=size, looks=looks if shrinking else None, final_check=final_check, **limits
    )


class SteepestDirection(SubsetDual):
    """Rounds of SVMLight."""

    name = NAME

    def __init__(self, given: Given, *, size: int, looks: int | None, final_check: bool) -> None:
        if size < 2 or size % 2:
            raise InvalidInput(f"size must be even and at least 2, got {size}")
        super().__init__(given)
        self.size, self.final_check = size, final_check
        self.counts = None if looks is None else LookCounts(self.N, looks)
        self.accepted: float | None = None  # the violation left when variables came back unchecked
        self.violation_of_all = np.inf

    def survey(self) -> None:
        """As for all; without a final check the violation stays that of the variables that were not shrunk."""
        shrunk = self.shrunk is not None
        if shrunk and not self.final_check:
            super(ClassicalDual, self).survey()
            if self.violation <= self.tol:
                self.accepted = self.violation
                self.unshrink()
        super().survey()
        if shrunk and self.shrunk is None and self.counts is not None:
            self.counts.forget()
        self.violation_of_all = self.violation
        if self.accepted is not None:
            self.violation = self.accepted

    def facts(self) -> dict[str, Any]:
        """Also the violation of all variables, and how many rows the cache held."""
        return {**super().facts(), "violation_of_all": self.violation_of_all}

    def advance(self, aim: float, most: int) -> int:
        """Shrink, and minimise over the variables of steepest directions, one after the other."""
        if self.counts is not None:
            out = self.counts.look(self.settled(), self.shrunk)
            if out.any():
                self.shrink(out)
                self.thresholds()
        done = 0
        for _ in range(SETS):
            V = self.choose()
            made = self.optimise(V, aim, most - done) if V.size else 0
            done += made
            if not made or done >= most or self.thresholds() <= aim:
                break
        return done

    def choose(self) -> Index:
        """The variables to work on."""
        return steepest(self, self.size)


def steepest(dual: ClassicalDual, size: int) -> Index:
    """Non-zeros of the steepest feasible direction in the group that violates most; without sums, largest gradients."""
    if dual.groups == 0:
        return balanced(dual, size, "gradient")
    G, g = dual.G.ravel(), int(np.argmax(dual.extremes[:, 2] - dual.extremes[:, 0]))
    own = dual.group.ravel() == g
    rising, falling = largest(-G, own & dual.may_rise(), size), largest(G, own & dual.may_fall(), size)
    return _pairs(G, rising, falling, size // 2)


def _pairs(G: Array, rising: Index, falling: Index, most: int) -> Index:
    """The first variables of both orders in pairs of positive slope; a variable that is in one pair is in no other."""
    chosen: list[int] = []
    a = b = 0
    while len(chosen) < 2 * most:
        while a < rising.size and rising[a] in chosen:
            a += 1
        while b < falling.size and falling[b] in chosen:
            b += 1
        if a == rising.size or b == falling.size or G[rising[a]] >= G[falling[b]]:
            break
        chosen += [int(rising[a]), int(falling[b])]
    return np.array(chosen, dtype=np.intp)
