"""From a problem to its solution: which solver, and where it starts."""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.problems import Problem, rescale
from mercer.solvers import interior_point
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution


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
    shrinking: bool,
    memory: int | str | None,
    start: WarmStart | None,
    monitor: Monitor | None,
) -> Solution:
    """Solve one problem of the zoo."""
    first: Any = None if start is None else start.start(problem)
    return interior_point.solve(problem, tol=min(gap_tol or 1e-9, 1e-9), start=first, monitor=monitor)
