"""From a problem to its solution: which solver, and where it starts."""

import warnings
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NotConverged
from mercer.problems import Problem, rescale
from mercer.solvers import decomposition, interior_point
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution

INTERIOR_GAP = 1e-9
INTERIOR_ITERATIONS = 100


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
    """Solve one problem of the zoo, by decomposition unless the interior point method is asked for."""
    first: Any = None if start is None else start.start(problem)
    if solver != "interior_point":
        return decomposition.solve(problem, tol=tol, gap_tol=gap_tol, start=first, monitor=monitor, max_iter=max_iter)
    # It converges in the gap, and ten more digits cost it a few iterations.
    target = INTERIOR_GAP if gap_tol is None else gap_tol
    most = INTERIOR_ITERATIONS if max_iter < 0 else max_iter
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)  # said once, for all machines, by the estimator
        return interior_point.solve(
            problem, tol=target, start=first, monitor=monitor, max_iterations=most, memory=memory
        )
