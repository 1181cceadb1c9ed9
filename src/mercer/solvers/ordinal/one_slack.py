"""Cutting planes with one slack for orders from pairs: the losses are replaced by the largest of a few planes.

The loss of all pairs is a convex function L of the latent values f.  At every f_t it has the tangent h_t - c_t'f, with
-c_t a slope of L at f_t, which one sweep over the sorted points gives without forming a pair; the tangents lie below L,
and so does their maximum, with the plane zero among them.  The function that is best under the planes
(`mercer.solvers.ordinal.planes`) gives a lower bound of the optimum, and its tangent is the next plane (Joachims 2006,
whose one slack variable is the maximum).  The gap is the best primal value minus the best bound.  An iteration costs a
product with K, O(n d) for a linear kernel, and O(n log n).
"""

import time
from typing import Any

import numpy as np

from mercer.arrays import Vector
from mercer.problems.certificate import converged
from mercer.problems.normed_pairs import NormedPairs
from mercer.problems.ranking import RankedPairs
from mercer.solvers.contract import Acceptance, require, starting_coefficients, step_limit, variables_of
from mercer.solvers.monitor import Monitor, listening
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


def solve(
    problem: RankedPairs | NormedPairs,
    *,
    tol: float = 1e-3,
    start: Vector | Solution | None = None,
    monitor: Monitor | None = None,
    max_iter: int = -1,
) -> Solution:
    """Solve to a relative gap of `tol`; `max_iter` bounds the number of planes made (-1: no bound).

    `start`: coefficients (n,) or an earlier solution, whose tangent is the first plane.
    """
    require(accepts(problem), NAME, tol=tol)
    listener = listening(monitor)
    with listener:
        return CuttingPlanes(problem, tol, variables_of(start, listener), listener).run(max_iter)


class CuttingPlanes:
    """The state of one solve: the present point, the planes, the best point and the best bound found so far."""

    def __init__(self, problem: RankedPairs | NormedPairs, tol: float, start: Vector | None, monitor: Monitor) -> None:
        self.problem, self.tol, self.monitor = problem, tol, monitor
        n = problem.n
        self.began = time.perf_counter()
        self.normed = isinstance(problem, NormedPairs)
        self.planes: Planes = NormPlanes(problem) if isinstance(problem, NormedPairs) else QuadraticPlanes(n)
        self.made = 0
        self.c = np.zeros(n) if start is None else starting_coefficients(start, (n,))
        self.f = self._times(self.c)
        self.best = (self.c, self.f)
        self.primal, self.dual = np.inf, 0.0

    def _times(self, v: Vector) -> Vector:
        """K v, with every value in float64."""
        return exact_product(self.problem.gram, v) if v.any() else np.zeros(self.problem.n)

    def run(self, max_iter: int) -> Solution:
        """Planes until convergence, a limit or an interruption."""
        limit = step_limit(max_iter)
        waited, lowest = 0, np.inf
        while True:
            loss, slope = self.problem.tangent(self.f)
            self._take(loss)
            if converged(self.primal, self.dual, self.tol):
                return self.solution("converged")
            gap = self.primal - self.dual
            waited, lowest = (0, gap) if gap < 0.99 * lowest else (waited + 1, lowest)
            if waited > PATIENCE:
                return self.solution("stalled")
            if self.made >= limit:
                return self.solution("iterations")
            if not self.monitor.watch(
                self.made,
                self.primal,
                self.dual,
                snapshot=lambda: self.solution("interrupted"),
                planes=len(self.planes),
            ):
                return self.solution(self.monitor.stopped or "interrupted")
            self.planes.add(-slope, self._times(-slope), loss - float(slope @ self.f))
            self.made += 1
            self.c, f, bound = self.planes.best(MASTER * self.tol)
            self.f = self._times(self.c) if self.normed else f
            self.dual = max(self.dual, bound)

    def _take(self, loss: float) -> None:
        """Keep the present point if it is the best."""
        size = self.problem.size(self.c) if isinstance(self.problem, NormedPairs) else 0.5 * float(self.c @ self.f)
        if size + loss < self.primal:
            self.primal, self.best = size + loss, (self.c, self.f)

    def solution(self, stopped: Stopped) -> Solution:
        """The best point with its certificate."""
        c, f = self.best
        return Solution(
            c.copy(),
            0.0,
            c.copy(),
            self.primal,
            min(self.dual, self.primal),
            max(self.primal - self.dual, 0.0),
            self.made,
            stopped,
            time.perf_counter() - self.began,
            NAME,
            history=tuple(self.monitor.history),
            details={"planes": len(self.planes), "f": f.copy()},
        )
