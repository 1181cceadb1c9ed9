"""Cutting planes with one slack for orders from pairs: the losses are replaced by the largest of a few planes.

The loss of all pairs is a convex function L of the latent values f.  At every f_t it has the tangent h_t - c_t'f, with
-c_t a slope of L at f_t, which one sweep over the sorted points gives without forming a pair; the tangents lie below L,
and so does their maximum, with the plane zero among them.  The function that is best under the planes
(`mercer.solvers.ordinal.planes`) gives a lower bound of the optimum, and its tangent is the next plane (Joachims 2006,
whose one slack variable is the maximum).  The gap is the best primal value minus the best bound.  An iteration costs a
product with K, O(n d) for a linear kernel, and O(n log n).
"""

from typing import Any, Unpack

import numpy as np

from mercer.arrays import Vector
from mercer.problems.certificate import Certificate, converged
from mercer.problems.normed_pairs import NormedPairs
from mercer.problems.ranking import RankedPairs
from mercer.solvers.contract import Acceptance, Limits, Start, starting_coefficients
from mercer.solvers.iteration import Iteration, solved
from mercer.solvers.monitor import Monitor
from mercer.solvers.ordinal.planes import NormPlanes, Planes, QuadraticPlanes
from mercer.solvers.solution import Solution, Stopped
from mercer.solvers.verification import exact_product

NAME = "one slack"
MASTER = 0.01  # the program of the planes is solved to this share of the tolerance
PATIENCE = 100  # planes that do not lower the gap by a hundredth


def accepts(problem: Any) -> Acceptance:
    """Orders from pairs, with the norm of the function or of the coefficients."""
    if isinstance(problem, RankedPairs | NormedPairs):
        return Acceptance(True, "the losses of all pairs have a tangent in one sweep")
    return Acceptance(False, f"{type(problem).__name__} is not an order from pairs")


def solve(problem: RankedPairs | NormedPairs, *, tol: float = 1e-3, **limits: Unpack[Limits]) -> Solution:
    """Solve to a relative gap of `tol`; `max_iter` bounds the number of planes made (-1: no bound).

    `start`: coefficients (n,) or an earlier solution, whose tangent is the first plane.
    """
    return solved(CuttingPlanes, problem, accepts(problem), tol=tol, **limits)


class CuttingPlanes(Iteration):
    """The state of one solve: the present point, the planes, the best point and the best bound found so far."""

    name = NAME

    def __init__(self, problem: RankedPairs | NormedPairs, tol: float, start: Start, monitor: Monitor) -> None:
        super().__init__(problem, tol, start, monitor)
        n = problem.n
        self.normed = isinstance(problem, NormedPairs)
        self.planes: Planes = NormPlanes(problem) if isinstance(problem, NormedPairs) else QuadraticPlanes(n)
        self.c = np.zeros(n) if self.initial is None else starting_coefficients(self.initial, (n,))
        self.f = self._times(self.c)
        self.best = (self.c, self.f)
        self.primal, self.dual = np.inf, 0.0

    def _times(self, v: Vector) -> Vector:
        """K v, with every value in float64."""
        return exact_product(self.problem.gram, v) if v.any() else np.zeros(self.problem.n)

    def run(self, limit: int) -> Stopped:
        """Planes until convergence, a limit or an interruption."""
        waited, lowest = 0, np.inf
        while True:
            loss, slope = self.problem.tangent(self.f)
            self._take(loss)
            if converged(self.primal, self.dual, self.tol):
                return "converged"
            gap = self.primal - self.dual
            waited, lowest = (0, gap) if gap < 0.99 * lowest else (waited + 1, lowest)
            if waited > PATIENCE:
                return "stalled"
            if self.iterations >= limit:
                return "iterations"
            if not self.tell(self.primal, self.dual):
                return self.halted()
            self.planes.add(-slope, self._times(-slope), loss - float(slope @ self.f))
            self.iterations += 1
            self.c, f, bound = self.planes.best(MASTER * self.tol)
            self.f = self._times(self.c) if self.normed else f
            self.dual = max(self.dual, bound)

    def _take(self, loss: float) -> None:
        """Keep the present point if it is the best."""
        size = self.problem.size(self.c) if isinstance(self.problem, NormedPairs) else 0.5 * float(self.c @ self.f)
        if size + loss < self.primal:
            self.primal, self.best = size + loss, (self.c, self.f)

    def facts(self) -> dict[str, Any]:
        """The number of planes that are held."""
        return {"planes": len(self.planes)}

    def solution(self, stopped: Stopped) -> Solution:
        """The best point with its certificate."""
        c, f = self.best
        certificate = Certificate(self.primal, min(self.dual, self.primal), max(self.primal - self.dual, 0.0))
        return self.certified(stopped, certificate, c.copy(), c.copy(), f=f.copy(), **self.facts())
