"""The inner algorithm of SvmFu: a chunk, and within it a reduced set of free variables (Rifkin 2002, section 2.4.1).

The best of the four pairs moves, which is the maximal violating pair.  After 100 steps in a row between free variables,
those alone are worked on, with outputs and kernel values of their own, until no pair of them violates; then the outputs
of the rest of the chunk follow and the count starts again.  (As printed, figure 2-5 never resets the count, and
compares g_i - g_j where y_i g_i - y_j g_j is meant.)
"""

import numpy as np

from mercer.arrays import Array
from mercer.solvers.classical.best_pairs import best_pairs
from mercer.solvers.classical.chunk_cache import ChunkCache
from mercer.solvers.classical.signed import Signed, all_offsets
from mercer.solvers.classical.steps import REDUCE, Rows, State, missing

INSIDE = 100  # steps in a row between free variables before the set is reduced


class Chunk:
    """m variables, the k-th at place k of the cache; steps change `state`, and `made` (1,) counts them."""

    def __init__(self, signed: Signed, state: State, cache: ChunkCache, diagonal: Array, groups: int) -> None:
        self.signed, self.state, self.cache, self.diagonal, self.groups = signed, state, cache, diagonal, groups
        self.made, self.between = np.zeros(1, dtype=np.int64), np.array([0, INSIDE])

    def solve(self, tol: float, most: int) -> None:
        """Steps on the whole chunk, and on its free variables alone when only they move."""
        cache, m = self.cache, self.state.u.size
        stamps, clock = np.zeros(m, dtype=np.int64), np.zeros(1, dtype=np.int64)
        while True:
            where = np.where(cache.known[:m], np.arange(m), -1)
            rows = Rows(cache.square, where, stamps, clock, self.diagonal)
            code = best_pairs(self.signed, self.state, rows, self.groups, False, tol, most, self.made, self.between)
            if code == REDUCE:
                self.solve_reduced(tol, most)
                self.between[0] = 0
            elif code >= 0:
                return
            else:
                cache.fill_row(missing(code))

    def solve_reduced(self, tol: float, most: int) -> None:
        """Steps on the free variables whose rows are known, and what they change at the rest of the chunk."""
        state = self.state
        R = np.flatnonzero((state.rise == state.fall) & self.cache.known[: state.u.size])
        square, before = self.cache.square[np.ix_(R, R)], state.u[R]
        small = State(before.copy(), state.F[R], state.rise[R], state.fall[R], state.gained)
        stamps, clock = np.zeros(R.size, dtype=np.int64), np.zeros(1, dtype=np.int64)
        rows = Rows(square, np.arange(R.size), stamps, clock, self.diagonal[R])
        best_pairs(self.signed.part(R), small, rows, self.groups, False, tol, most, self.made, np.array([0, -1]))
        state.u[R], state.F[R] = small.u, small.F
        rest = np.setdiff1d(np.arange(state.F.size), R)
        state.F[rest] += (small.u - before) @ self.cache.square[np.ix_(R, rest)].astype(np.float64)
        all_offsets(self.signed, state.u, state.rise, state.fall)
