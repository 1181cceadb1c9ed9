"""Working sets of a fixed size with any inner solver (Schoelkopf and Smola 2002, algorithm 10.2).

    repeat   choose a few variables V that violate the optimality conditions, balanced so that they can move
             solve the program of V with all others fixed, by any solver
             carry the change to the outputs of all points
    until    the violation, or the gap, is small enough

The whole objective falls as much as that of the subset, and strictly as long as a pair that violates is in V, which
the pair at the thresholds of its worst group always is.  Fewer than 100 variables at a time are usual.
"""

from typing import Any, Unpack

import numpy as np

from mercer.errors import InvalidInput
from mercer.solvers.classical.dual import GROUP_SUMS, Given, Limits, Stated, accepts, descend
from mercer.solvers.classical.element_cache import ElementCache
from mercer.solvers.classical.selection import balanced, checked_score
from mercer.solvers.classical.shrinking import StickyFlags
from mercer.solvers.classical.subset import PAIRS, SubsetDual
from mercer.solvers.solution import Solution

__all__ = ["ACCEPTS", "NAME", "SECTION", "accepts", "solve"]

NAME = "working_set"
ACCEPTS = GROUP_SUMS
SECTION = "Schoelkopf and Smola 2002, section 10.4.2, algorithm 10.2"
SIZE = 50
CACHES = ("rows", "elements")


def solve(
    problem: Stated,
    *,
    size: int = SIZE,
    score: str = "gap",
    inner: str = PAIRS,
    sticky: int = 0,
    cache: str = "rows",
    **limits: Unpack[Limits],
) -> Solution:
    """Solve to a violation of at most `tol`, or to a relative gap of `gap_tol` where that is given.

    `size` variables are worked on at a time, chosen by `score` ("gap", "gradient" or "multiplier") and minimised over
    by `inner`: "pairs", or the name of a registered solver.  A variable that reaches a bound is left alone for the next
    `sticky` rounds.  `max_iter` bounds the number of inner steps, `memory` the bytes of kernel values that are kept,
    whole rows or, with `cache="elements"`, one by one.
    """
    if cache not in CACHES:
        raise InvalidInput(f"cache must be one of {', '.join(CACHES)}, got {cache!r}")
    if size < 2:
        raise InvalidInput(f"size must be at least 2, got {size}")
    return descend(
        FixedSize, problem, size=size, score=checked_score(score), inner=inner, sticky=sticky, cache=cache, **limits
    )


class FixedSize(SubsetDual):
    """The rounds of algorithm 10.2."""

    name = NAME

    def __init__(
        self, given: Given, *, size: int, score: str, sticky: int, cache: str = "rows", inner: str = PAIRS
    ) -> None:
        self.elements = cache == "elements"
        super().__init__(given, inner=inner)
        self.size, self.score = size, score
        self.flags = StickyFlags(self.N, sticky)

    def new_cache(self, gram: Any, constant: float) -> Any:
        """Single values or rows, as asked for."""
        return ElementCache(gram, constant, self.memory) if self.elements else super().new_cache(gram, constant)

    def advance(self, aim: float, most: int) -> int:
        """One working set."""
        V = balanced(self, self.size, self.score, ~self.flags.stuck)
        if not V.size:
            return 0
        done = self.optimise(V, aim, most)
        at_bound = np.zeros(self.N, dtype=np.bool_)
        at_bound[V] = (self.flat[V] <= self.lower.ravel()[V]) | (self.flat[V] >= self.upper.ravel()[V])
        self.flags.round(at_bound)
        return done
