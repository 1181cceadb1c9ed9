"""Convex hulls of classes in the space of a kernel, and the vector between a point of each.

A point of the hull of a class is a combination sum_i u_i Phi(x_i) with weights that sum to one, and a bound on every
weight makes the hull smaller (the reduced hull).  In signed variables the difference of a point of each hull is
f0 = sum_j s_j k(x_j, .), where the variables of class +1 sum to d_1 > 0 and those of class -1 to d_2 = -d_1, and

    min 1/2 ||f0||^2                                       the shortest such vector

is the hard margin for whole hulls, nu-SVC for reduced ones, and one-class with the origin in the place of the second
class (Bennett and Bredensteiner 2000; Crisp and Burges 2000).  Squared slacks of cost C are a hard margin in a space
with one more dimension for each point, whose kernel has ridge_j = 1 / (2 C_j) on the diagonal: the solution of

    min 1/2 s'(K + R)s - y's,   sum s = 0        is        theta u,   theta = 2 / u'(K + R)u

for the shortest u between the hulls (Friess; Keerthi et al. 2000).
"""

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.arrays import Array
from mercer.losses import SquaredHinge
from mercer.problems.base import Problem
from mercer.problems.margins import HardMargin, NuClassification, OneClass
from mercer.problems.program import QuadraticProgram
from mercer.problems.risk import RegularisedRisk
from mercer.solvers.classical.row_cache import RowCache
from mercer.solvers.contract import Acceptance

REFRESH = 10_000  # steps after which the values are computed anew, free of the rounding of their updates


def accepts(problem: Any, method: str, *, reduced: bool = True) -> Acceptance:
    """Problems that are a shortest vector between hulls, `reduced` ones included."""
    if not isinstance(problem, Problem):
        return Acceptance(False, f"{method} takes support vector problems, not {type(problem).__name__}")
    if problem.basis is not None:
        return Acceptance(False, "basis functions are equality rows: use interior_point")
    if isinstance(problem, RegularisedRisk) and isinstance(problem.loss, SquaredHinge) and problem.bias == "free":
        if np.unique(problem.y[problem.box > 0]).size < 2:
            return Acceptance(False, "one class has one hull, and nothing to be near to: use decomposition")
        return Acceptance(True, "squared slacks are whole hulls in a larger space")
    if isinstance(problem, HardMargin):
        return Acceptance(True, "whole hulls")
    if isinstance(problem, NuClassification | OneClass) and reduced:
        return Acceptance(True, "reduced hulls")
    kinds = "the hard margin, and squared_hinge with a free bias" + (", nu-SVC and one-class" if reduced else "")
    return Acceptance(False, f"{method} finds a shortest vector between hulls: it takes {kinds}")


class Hulls:
    """The program of the shortest vector, the present point s (N,) of it, and its values g = K s (n,)."""

    def __init__(self, problem: Problem, start: Array | None) -> None:
        self.problem, own = problem, problem.program()
        self.squared = isinstance(problem, RegularisedRisk)
        self.program = _between_classes(problem) if self.squared else own
        assert self.program.groups is not None
        self.group = self.program.groups
        self.cache = RowCache(own.gram)
        self.diagonal = np.asarray(own.gram.diagonal(), dtype=np.float64) + self.program.ridge
        first = None if start is None else self._from_answer(start)
        self.s = self.program.start() if first is None else first
        self.steps = 0
        self.refresh()

    def _from_answer(self, start: Array) -> Array | None:
        size = 0.5 * float(np.abs(start).sum())
        if not self.squared:
            return start
        return self.program.project(start / size) if size > 0.0 else None

    def refresh(self) -> None:
        """Values computed anew."""
        self.g = np.asarray(self.program.gram.dot(self.s), dtype=np.float64)

    def gradient(self) -> Array:
        """(K + R) s (N,)."""
        return self.g + self.program.ridge * self.s

    @property
    def squared_length(self) -> float:
        """s'(K + R)s."""
        return float(self.s @ self.gradient())

    def answer(self) -> tuple[Array, Array]:
        """The variables of the stated problem, feasible, and their values K s (n,)."""
        if not self.squared:
            return self.program.project(self.s), self.g
        square = self.squared_length
        theta = 2.0 / square if square > 0.0 else 0.0
        return self.problem.program().project(theta * self.s), theta * self.g

    def exchange(self, i: int, j: int) -> float:
        """Move weight from j to i, while the vector gets shorter and bounds allow; what 1/2 s'(K + R)s falls by."""
        gradient, program = self.gradient(), self.program
        row_i = self.cache.row(i)
        curvature = float(self.diagonal[i] + self.diagonal[j] - 2.0 * row_i[j])
        slope = float(gradient[j] - gradient[i])
        room = min(float(program.upper[i] - self.s[i]), float(self.s[j] - program.lower[j]))
        t = room if curvature <= 0.0 else min(slope / curvature, room)
        if t <= 0.0:
            return 0.0
        # The variable that runs into its bound is put on it.
        emptied = t == float(self.s[j] - program.lower[j])
        filled = t == float(program.upper[i] - self.s[i])
        self.g += t * np.asarray(row_i, dtype=np.float64)
        self.g -= t * np.asarray(self.cache.row(j), dtype=np.float64)
        self.s[i] = program.upper[i] if filled else self.s[i] + t
        self.s[j] = program.lower[j] if emptied else self.s[j] - t
        self._count()
        return t * slope - 0.5 * t * t * max(curvature, 0.0)

    def towards(self, corner: Array, values: Array) -> float:
        """Move towards a feasible point `corner` (N,) with K corner = values (n,); what 1/2 ||.||^2 falls by."""
        change = corner - self.s
        moved = values - self.g + self.program.ridge * change
        curvature, slope = float(change @ moved), -float(change @ self.gradient())
        if slope <= 0.0:
            return 0.0
        t = 1.0 if curvature <= 0.0 else min(1.0, slope / curvature)
        self.s, self.g = self.s + t * change, self.g + t * (values - self.g)
        self._count()
        return t * slope - 0.5 * t * t * max(curvature, 0.0)

    def _count(self) -> None:
        self.steps += 1
        if self.steps % REFRESH == 0:
            self.refresh()


def _between_classes(problem: Problem) -> QuadraticProgram:
    """The shortest vector between the hulls of the classes, ridge included."""
    program = problem.program()
    used = problem.box > 0
    y = problem.y
    return replace(
        program,
        lower=np.where((y < 0) & used, -1.0, 0.0),
        upper=np.where((y > 0) & used, 1.0, 0.0),
        linear=np.zeros(program.size),
        groups=(y < 0).astype(np.intp),
        d=np.array([1.0, -1.0]),
    )
