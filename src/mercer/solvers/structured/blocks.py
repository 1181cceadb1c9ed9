"""The dual point of block-coordinate Frank-Wolfe, one block for each example: any model.

Block i is the mean plane of its distribution alpha_i: v_i (size,), kept sparse, and l_i.  A step moves it towards the
highest plane (v, l) at w = sum_i C_i v_i, by the share gamma that makes the dual largest:

    g_i = C_i ((l - w.v) - (l_i - w.v_i)) >= 0 ,     gamma = min(1, g_i / |C_i (v - v_i)|^2) .

g_i is the part of the duality gap that belongs to example i, so that their sum at one w is the gap itself.
"""

import numpy as np

from mercer.problems.structured import Index, SparseVector, StructuredProblem, Vector
from mercer.solvers.structured.search import Reader

EMPTY = SparseVector(np.empty(0, dtype=np.intp), np.empty(0))


class Blocks:
    """Blocks of any problem, with planes from one inference after the other."""

    def __init__(self, problem: StructuredProblem) -> None:
        self.problem = problem
        self.v = [EMPTY] * problem.n
        self.loss = np.zeros(problem.n)
        self.w = np.zeros(problem.size)

    def sweep(self, order: Index, gaps: Vector) -> None:
        """A step for each example of `order`; `gaps` (n,) take what each had left before its step."""
        for i in order:
            gaps[i] = self._step(int(i))

    def _step(self, i: int) -> float:
        cost = self.problem.costs[i]
        found, own = self.problem.examples.plane(self.w, i), self.v[i]
        gap = cost * ((found.loss - found.v.dot(self.w)) - (self.loss[i] - own.dot(self.w)))
        move = found.v.minus(own).merged()
        square = cost * cost * float(move.values @ move.values)
        if not gap > 0.0 or cost == 0.0:
            return 0.0
        share = 1.0 if square <= gap else gap / square
        scaled = SparseVector(move.positions, share * move.values)
        scaled.add_to(self.w, cost)
        positions = np.concatenate((own.positions, scaled.positions))
        self.v[i] = SparseVector(positions, np.concatenate((own.values, scaled.values))).merged()
        self.loss[i] += share * (found.loss - self.loss[i])
        return float(gap)

    def point(self) -> tuple[Vector, float]:
        """w, made anew from the blocks, and sum_i C_i l_i."""
        self.w[:] = 0.0
        for v, cost in zip(self.v, self.problem.costs):
            v.add_to(self.w, cost)
        return self.w, float(self.problem.costs @ self.loss)

    def state(self) -> Vector:
        """Losses, and the entries of every block."""
        counts = np.array([len(v.values) for v in self.v], dtype=np.float64)
        entries = [part for v in self.v for part in (v.positions, v.values)]
        return np.concatenate((self.loss, counts, *entries))

    def resume(self, state: Vector) -> None:
        """Take up what `state` has given."""
        reader = Reader(state)
        self.loss = reader.take(self.problem.n)
        counts = reader.take(self.problem.n).astype(np.intp)
        self.v = [SparseVector(reader.take(count).astype(np.intp), reader.take(count)) for count in counts]
        reader.close()
