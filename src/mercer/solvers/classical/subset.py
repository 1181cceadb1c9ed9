"""The program on a few variables with all others fixed, and any solver for it.

With V the variables of the working set and R the rest, the part of the program that depends on s_V is

    min 1/2 s_V' K_VV s_V + (linear_V + K_VR s_R)' s_V + 1/2 sum ridge s_V^2,     sums over groups as they are, box,

where K_VR s_R = F_V - K_VV s_V comes from the outputs that are kept (Schoelkopf and Smola 2002, equation 10.57, with
the labels corrected; Rifkin 2002, section 2.3.1).  What it falls by, the whole program falls by.
"""

import warnings
from typing import Any

import numpy as np

from mercer.arrays import Array, Index
from mercer.errors import NotConverged
from mercer.gram import Gram
from mercer.kernels import Precomputed
from mercer.problems.program import QuadraticProgram
from mercer.solvers import catalogue
from mercer.solvers.classical.dual import ClassicalDual, Given
from mercer.solvers.quadratic.pair_steps import minimise_pairs, minimise_singles

PAIRS = "pairs"  # the inner solver that is compiled and has nothing to set up
INNER_GAP = 1e-12  # relative gap asked of any other inner solver
NEAR = 1e-6  # of the width of its box: what an interior point leaves of the way to a bound


class SubsetDual(ClassicalDual):
    """A classical dual whose rounds optimise a few variables at a time; `inner` is "pairs" or a solver's name."""

    def __init__(self, given: Given, *, inner: str = PAIRS) -> None:
        if inner != PAIRS:
            catalogue.by_name(inner)
        self.inner = inner
        super().__init__(given)

    def optimise(self, V: Index, aim: float, most: int) -> int:
        """Minimise over the variables V until their violation is at most `aim`; how many steps that took."""
        points = self.point(V)
        K = self.cache.block(points, points)
        parts = tuple(part.reshape(-1)[V] for part in self._program())
        steps, values = self.minimise(V, K, parts, aim, most)
        if steps:
            self.move(V, values)
        return steps

    def minimise(self, V: Index, K: Any, parts: Any, aim: float, most: int) -> tuple[int, Array]:
        """Steps made and new values (q,) of the variables V, whose matrix is K (q, q) and whose program is `parts`."""
        return self._by_pairs(V, K, parts, aim, most) if self.inner == PAIRS else self._by_solver(V, K, parts, most)

    def _by_pairs(self, V: Index, K: Any, parts: Any, aim: float, most: int) -> tuple[int, Array]:
        """Pair steps, or single ones where no sum is fixed."""
        points, q = self.point(V), V.size
        own = tuple(part[None] for part in parts)
        s, F = self.flat[V][None].copy(), self.F[points]
        K = np.ascontiguousarray(K)
        if self.groups == 0:
            steps, _ = minimise_singles(K, self.diagonal[points], F, s, own, aim, most)
        else:
            steps, _ = minimise_pairs(K, (0, q, q), self.diagonal[points], F, s, own, self.groups, aim, most)
        return steps, s[0]

    def _by_solver(self, V: Index, K: Any, parts: Any, most: int) -> tuple[int, Array]:
        """Any registered solver, on the small program; its answer counts where it lowers the objective."""
        _, ridge, lower, upper, group = parts
        K = np.asarray(K, dtype=np.float64)
        K = 0.5 * (K + K.T)
        s = self.flat[V].copy()
        coupled = self.gradient(V) - ridge * s - K @ s
        present, local = np.unique(group, return_inverse=True)
        own = present[present >= 0]
        groups = np.asarray(local - (present.size - own.size), dtype=np.intp)
        d = np.array([s[group == g].sum() for g in own])
        gram = Gram(Precomputed(), K)
        program = QuadraticProgram(gram, np.arange(V.size), lower, upper, coupled, ridge, groups, d)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)  # what counts is how far the whole program falls
            found = catalogue.require(self.inner, program).solve(program, tol=INNER_GAP, start=s)
        values = on_bounds(program, np.asarray(found.variables))
        before, after = program.objective(s), program.objective(values)
        return (max(1, min(found.iterations, most)), values) if after < before else (0, s)


def on_bounds(program: QuadraticProgram, s: Array) -> Array:
    """Variables that have all but reached a bound are put on it; the sums stay."""
    width = np.where(np.isfinite(program.upper - program.lower), program.upper - program.lower, np.abs(s))
    reach = NEAR * width
    near = np.where(s - program.lower <= reach, program.lower, s)
    return program.project(np.where(program.upper - s <= reach, program.upper, near))
