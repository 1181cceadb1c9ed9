"""Osuna's decomposition: a working set of fixed size, and a scan for violators (Osuna, Freund and Girosi 1997).

The variables of the working set W are minimised over; then points are scanned in their order, from where the last scan
ended.  A normal round looks at `lookahead` variables and goes on past them until one violates or all were looked at; at
most `newlimit` violators enter W, in the place of variables that are at a bound and content.  It ends when a complete
scan finds none (Rifkin 2002, section 2.3.1).

Outputs are computed when a point is looked at.  Most support vectors are at their bound and stay there, so that

    f_i = sum over the others of s_j k_ij  +  sum over variables at a bound of s_j k_ij,

where the second sum is kept for every point and changes only when a variable reaches or leaves its bound.  Every
variable is looked at before an answer is given; the proof of convergence in the paper does not hold, but steps on the
pair that violates most would be taken by the engine where a scan got stuck.
"""

from typing import Any, Unpack

import numpy as np

from mercer.arrays import Array, Index, Mask
from mercer.errors import InvalidInput
from mercer.solvers.classical.dual import GROUP_SUMS, Given, Limits, Stated, accepts, descend
from mercer.solvers.classical.subset import PAIRS, SubsetDual
from mercer.solvers.solution import Solution

__all__ = ["ACCEPTS", "NAME", "SECTION", "accepts", "solve"]

NAME = "osuna"
ACCEPTS = GROUP_SUMS
SECTION = "Osuna, Freund and Girosi 1997; Rifkin 2002, section 2.3.1"
SIZE = 200
LOOKAHEAD = 500
NEWLIMIT = 100
AT_ONCE = 250  # variables looked at together: their outputs are one product
SETS = 20  # working sets between two questions to the monitor


def solve(
    problem: Stated,
    *,
    size: int = SIZE,
    lookahead: int = LOOKAHEAD,
    newlimit: int = NEWLIMIT,
    inner: str = PAIRS,
    **limits: Unpack[Limits],
) -> Solution:
    """Solve to a violation of at most `tol`, or to a relative gap of `gap_tol` where that is given.

    `size` variables make a working set; `lookahead` and `newlimit` as at the head of this file, `inner` as in
    `working_set`.
    """
    if not 2 <= newlimit < size:
        raise InvalidInput(f"newlimit must be at least 2 and below size = {size}, got {newlimit}")
    if lookahead < 1:
        raise InvalidInput(f"lookahead must be positive, got {lookahead}")
    return descend(Scanning, problem, size=size, lookahead=lookahead, newlimit=newlimit, inner=inner, **limits)


class Scanning(SubsetDual):
    """Rounds of Osuna's decomposition; F is up to date at the points just looked at, and everywhere between rounds."""

    name = NAME

    def __init__(self, given: Given, *, size: int, lookahead: int, newlimit: int, inner: str = PAIRS) -> None:
        super().__init__(given, inner=inner)
        self.size, self.lookahead, self.newlimit = size, lookahead, newlimit
        self.next = 0
        self.examined = self.bound_changes = 0
        self.W: Index = np.empty(0, dtype=np.intp)
        self._split()

    def facts(self) -> dict[str, Any]:
        """Also how many variables were looked at, and how often one reached or left a bound."""
        return {**super().facts(), "examined": self.examined, "bound_changes": self.bound_changes}

    # Outputs of two sums ---------------------------------------------------------------------------------------

    def _split(self) -> None:
        """Both sums from F: that of the variables at their bounds is what is left of it."""
        self.bounded = self._bounded()
        points, c = self._others()
        self.B = self.F - (self.cache.dot(points, c) if points.size else 0.0)

    def _bounded(self) -> Array:
        """Coefficients (n,) of the variables at a bound."""
        at = (self.s <= self.lower) | (self.s >= self.upper)
        return np.asarray(np.where(at, self.s, 0.0).sum(axis=0))

    def _others(self) -> tuple[Index, Array]:
        """Points with a variable strictly inside its bounds, and the coefficients of those variables."""
        c = self.coefficients() - self.bounded
        points = np.flatnonzero(((self.s > self.lower) & (self.s < self.upper)).any(axis=0))
        return points, c[points]

    def look(self, points: Index) -> None:
        """F at these points, from the kept sum and the variables inside their bounds."""
        free, c = self._others()
        self.F[points] = self.B[points]
        if free.size:
            self._hold(free)
            self.F[points] += c @ self.cache.block(free, points).astype(np.float64, copy=False)

    def _hold(self, free: Index) -> None:
        """Rows of variables inside their bounds are asked for again and again."""
        if free.size <= self.cache.slots:
            self.cache.provide(free)

    def carry(self, points: Index, change: Array) -> None:
        """The kept sum changes where a variable has reached or left its bound; F at these points."""
        now = self._bounded()
        moved = np.flatnonzero(now != self.bounded)
        if moved.size:
            self.B += self.cache.dot(moved, now[moved] - self.bounded[moved])
            self.bound_changes += moved.size
            self.updates += moved.size
        self.bounded = now
        self.look(np.unique(points))

    def recompute(self) -> None:
        """F in float64, and the kept sum with it."""
        super().recompute()
        self._split()

    # Rounds ----------------------------------------------------------------------------------------------------

    def advance(self, aim: float, most: int) -> int:
        """Working sets until a complete scan finds no violator."""
        done = 0
        if not self.W.size:
            self.W = self._first()
        for _ in range(SETS):
            made = self.optimise(self.W, aim, most - done) if self.W.size else 0
            done += made
            found = self.scan(aim)
            if not found.size or done >= most:
                break
            self.W = np.concatenate((self._kept(found), found))
        self.look(np.arange(self.n))
        if not done:  # the scan's level saw no violator: the pair at the thresholds goes first
            self.W = self._first()
        return done

    def _first(self) -> Index:
        """The pairs at the thresholds, or the variable of largest gradient, and the first variables in order."""
        if self.groups:
            worst = self.extremes[:, [1, 3]].ravel().astype(np.intp)
        else:
            worst = np.flatnonzero(self._wrong(np.arange(self.N), 0.0))[:1]
        return np.unique(np.concatenate((worst[worst >= 0], np.arange(min(self.size - 4, self.N)))))

    def scan(self, aim: float) -> Index:
        """Violators, in the order of the scan: no more than newlimit."""
        found: list[int] = []
        looked = 0
        while looked < self.N and len(found) < self.newlimit and not (looked >= self.lookahead and found):
            count = min(AT_ONCE, self.N - looked)
            some = (self.next + np.arange(count)) % self.N
            self.look(np.unique(self.point(some)))
            wrong = some[self._wrong(some, aim)]
            room = self.newlimit - len(found)
            found += wrong[:room].tolist()
            # A set that is full ends the scan at its last member.
            step = count if wrong.size <= room else int(np.flatnonzero(some == wrong[room - 1])[0]) + 1
            looked += step
            self.next = (self.next + step) % self.N
        self.examined += looked
        fresh = np.array(found, dtype=np.intp)
        return fresh[~np.isin(fresh, self.W)] if fresh.size else fresh

    def _levels_of_set(self) -> Array:
        """The multiplier of each group, midway between the thresholds of the working set (0 without groups)."""
        levels = np.zeros(max(1, self.groups))
        G, rise, fall = self.gradient(self.W), self.may_rise()[self.W], self.may_fall()[self.W]
        for g in range(self.groups):
            own = self.group.ravel()[self.W] == g
            low = float(np.min(G[own & rise], initial=np.inf))
            high = float(np.max(G[own & fall], initial=-np.inf))
            ends = [end for end in (low, high) if np.isfinite(end)]
            levels[g] = float(np.mean(ends)) if ends else 0.0
        return levels

    def _wrong(self, variables: Index, aim: float) -> Mask:
        """Which of these variables violate by more than `aim` at the level of the working set."""
        level = self._levels_of_set()[self.group.ravel()[variables]] if self.groups else 0.0
        excess = self.gradient(variables) - level
        rise, fall = self.may_rise()[variables], self.may_fall()[variables]
        return np.asarray(((excess < -aim) & rise) | ((excess > aim) & fall))

    def _kept(self, found: Index) -> Index:
        """Members of the working set that stay: those inside their bounds first, then the nearest to the level."""
        room = self.size - found.size
        if self.W.size <= room:
            return self.W
        level = self._levels_of_set()[self.group.ravel()[self.W]] if self.groups else 0.0
        inside = self.may_rise()[self.W] & self.may_fall()[self.W]
        distance = np.where(inside, -1.0, np.abs(self.gradient(self.W) - level))
        return self.W[np.argsort(distance, kind="stable")[:room]]
