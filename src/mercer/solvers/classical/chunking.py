"""Chunking, the oldest method: train on a chunk, keep its support vectors, add violators (Vapnik 1982).

    chunk = some variables;   repeat   solve the whole program on the chunk, all other variables being zero
                                       drop the variables that are zero, add some that violate
                              until    no variable violates

Training on the support vectors alone gives the solution of all points, so the last chunk proves the optimum.  The old
solution is feasible for the new chunk: the minimum never rises from chunk to chunk, and falls strictly as long as a
pair that violates joins, which the pair at the thresholds always does.  Hence it ends in whatever order violators are
added.  The matrix of the chunk is as large as the number of support vectors squared (Schoelkopf and Smola 2002,
section 10.4.1; Rifkin 2002, section 2.3, on the method of portraits).
"""

from typing import Any, Unpack

import numpy as np

from mercer.arrays import Array, Index
from mercer.errors import BudgetTooSmall, InvalidInput
from mercer.problems.program import QuadraticProgram
from mercer.resources import available, parse, show
from mercer.solvers.classical.dual import GROUP_SUMS, Given, Limits, Stated, accepts, descend
from mercer.solvers.classical.selection import violation_scores
from mercer.solvers.classical.subset import PAIRS, SubsetDual
from mercer.solvers.solution import Solution

__all__ = ["ACCEPTS", "NAME", "SECTION", "accepts", "solve"]

NAME = "chunking"
ACCEPTS = GROUP_SUMS + "; the matrix of the support vectors must fit in memory"
SECTION = "Rifkin 2002, section 2.3; Schoelkopf and Smola 2002, section 10.4.1"
SIZE = 500
ORDERS = ("worst", "given")
SHARE = 0.7  # of the free memory, where no budget is stated


def solve(
    problem: Stated,
    *,
    size: int = SIZE,
    order: str = "worst",
    inner: str = PAIRS,
    **limits: Unpack[Limits],
) -> Solution:
    """Solve to a violation of at most `tol`, or to a relative gap of `gap_tol` where that is given.

    At most `size` violators join a chunk, the "worst" first or in the order they are "given"; `inner` minimises over
    a chunk: "pairs", or the name of a registered solver.
    """
    return descend(Chunks, problem, size=size, order=order, inner=inner, **limits)


class Chunks(SubsetDual):
    """Rounds of chunking; `minima` are the values of the program after each chunk."""

    name = NAME

    def __init__(self, given: Given, *, size: int, order: str, inner: str = PAIRS) -> None:
        if size < 2:
            raise InvalidInput(f"size must be at least 2, got {size}")
        if order not in ORDERS:
            raise InvalidInput(f"order must be 'worst' or 'given', got {order!r}")
        if given.start is None:
            given = given._replace(start=few(given.problem.program()))
        super().__init__(given, inner=inner)
        self.size, self.order = size, order
        self.minima: list[float] = []
        self.largest = 0

    def facts(self) -> dict[str, Any]:
        """Also the minimum of each chunk, and the number of variables in the largest."""
        return {**super().facts(), "minima": tuple(self.minima), "largest_chunk": self.largest}

    def advance(self, aim: float, most: int) -> int:
        """One chunk."""
        V = self.chunk()
        self._afford(V.size)
        done = self.optimise(V, aim, most)
        self.largest = max(self.largest, V.size)
        self.minima.append(self.objective())
        return done

    def chunk(self) -> Index:
        """All variables that are not zero, the pairs at the thresholds, and violators."""
        chosen = self.flat != 0.0
        pairs = self.extremes[:, [1, 3]].ravel().astype(np.intp)
        chosen[pairs[pairs >= 0]] = True
        violators = np.flatnonzero(self._scores() > 0)
        violators = violators[~chosen[violators]]
        if self.order == "worst":
            violators = violators[np.argsort(-self._scores()[violators], kind="stable")]
        chosen[violators[: self.size]] = True
        return np.flatnonzero(chosen)

    def _scores(self) -> Array:
        """How far each variable (N,) is on the wrong side of its group's level."""
        group = self.group.ravel()
        levels = self.extremes[:, [0, 2]].mean(axis=1) if self.groups else np.zeros(1)
        excess = self.G.ravel() - np.where(np.isfinite(levels), levels, 0.0)[group]
        _, _, lower, upper, _ = (part.ravel() for part in self._program())
        return violation_scores(excess, upper - self.flat, self.flat - lower, "gradient")

    def _afford(self, size: int) -> None:
        """Refuse a chunk whose matrix does not fit."""
        need = size * size * self.cache.dtype.itemsize
        have = int(SHARE * available()) if self.memory is None else parse(self.memory)
        if need > have:
            raise BudgetTooSmall(
                f"a chunk of {size} variables needs {show(need)}, the budget is {show(have)}: "
                "raise memory, or use solver='working_set'"
            )


def few(program: QuadraticProgram) -> Array:
    """A feasible point (N,) with as few non-zeros as can be: the first variables of each group at their bounds."""
    s, groups = np.zeros(program.size), program.groups
    assert groups is not None
    for k, target in enumerate(program.d.tolist()):
        own = np.flatnonzero(groups == k)
        bound = (program.upper if target > 0 else program.lower)[own]
        before = np.concatenate(([0.0], np.cumsum(bound)[:-1]))
        left = target - before
        s[own] = np.clip(left, 0.0, bound) if target > 0 else np.clip(left, bound, 0.0)
    return program.project(s)
