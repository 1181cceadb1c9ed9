"""From a problem to its solution: which solver, and where it starts.

By decomposition for the kernel matrix itself.  Where a low-rank factor (n, p) stands for it, by the interior point
method while its n p^2 operations in each iteration are a matter of seconds, whatever C; beyond that by dual coordinate
descent, which takes n p operations in each of its passes and needs more of them the larger C is.
"""

import warnings
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NotConverged
from mercer.gram.lowrank import LowRankGram
from mercer.problems import Problem, rescale
from mercer.solvers import decomposition, interior_point, linear_dual
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution

INTERIOR_GAP = 1e-9
INTERIOR_ITERATIONS = 100
DIRECT = 3e10  # n p^2 up to which the interior point method takes about a minute on one core


@dataclass(frozen=True)
class WarmStart:
    """The variables (N,) of a solved problem, and the problem without its matrix."""

    problem: Problem
    variables: NDArray[np.float64]

    @classmethod
    def of(cls, problem: Problem, solution: Solution) -> "WarmStart":
        """What a later fit needs of this one."""
        light = copy(problem)
        light._program = replace(problem.program(), gram=None)  # type: ignore[arg-type]
        light.gram = None  # type: ignore[assignment]
        return cls(light, np.asarray(solution.variables))

    def start(self, problem: Problem) -> NDArray[np.float64] | None:
        """A feasible start for `problem`, None when it is of another size or kind."""
        same = type(problem) is type(self.problem) and problem.program().size == self.variables.size
        return rescale(self.variables, self.problem, problem) if same else None


def solve(
    problem: Problem,
    *,
    solver: str,
    tol: float,
    gap_tol: float | None,
    max_iter: int,
    memory: int | str | None,
    start: WarmStart | None,
    monitor: Monitor | None,
) -> Solution:
    """Solve one problem of the zoo by the solver asked for; "auto" looks at the matrix."""
    first: Any = None if start is None else start.start(problem)
    automatic = solver == "auto" and isinstance(problem.gram, LowRankGram)
    if automatic:
        solver = _low_rank_solver(problem, memory)
    if solver == "linear_dual":
        return linear_dual.solve(problem, tol=tol, gap_tol=gap_tol, start=first, monitor=monitor, max_iter=max_iter)
    if solver != "interior_point":
        return decomposition.solve(problem, tol=tol, gap_tol=gap_tol, start=first, monitor=monitor, max_iter=max_iter)
    # It converges in the gap, and ten more digits cost it a few iterations.
    target = INTERIOR_GAP if gap_tol is None else gap_tol
    most = INTERIOR_ITERATIONS if max_iter < 0 else max_iter
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)  # said once, for all machines, by the estimator
        found = interior_point.solve(
            problem, tol=target, start=first, monitor=monitor, max_iterations=most, memory=memory
        )
    if automatic and found.stopped == "stalled":
        return linear_dual.solve(
            problem, tol=tol, gap_tol=gap_tol, start=found.variables, monitor=monitor, max_iter=max_iter
        )
    return found


def _low_rank_solver(problem: Problem, memory: int | str | None) -> str:
    """The interior point method where it is quick and fits, else coordinate descent."""
    n, p = problem.gram.left.shape  # type: ignore[attr-defined]
    quick = float(n) * p * p <= DIRECT
    return "interior_point" if quick and interior_point.accepts(problem, memory=memory) else "linear_dual"
