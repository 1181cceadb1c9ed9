"""One solve by an iteration: what methods share that go on until a gap is closed, a limit, or an interruption.

A method is a subclass of `Iteration`: its `run` iterates and says why it ended, its `solution` gives the present point
with a certificate.
"""

import time
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

from mercer.arrays import Array
from mercer.problems.certificate import Certificate
from mercer.solvers.contract import Acceptance, Start, require, step_limit
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.solution import Solution, Stopped


class Work:
    """What is asked of a solve, who listens, and what was spent on it."""

    name = ""

    def __init__(self, problem: Any, tol: float, monitor: Monitor) -> None:
        self.problem, self.tol, self.monitor = problem, tol, monitor
        self.began = self.reported = time.perf_counter()
        self.iterations = 0

    def halted(self) -> Stopped:
        """Why the monitor ended the solve."""
        return self.monitor.stopped or "interrupted"

    def certified(
        self, stopped: Stopped, certificate: Certificate, coefficients: Array, variables: Array, **details: Any
    ) -> Solution:
        """The solution at a point whose certificate is known."""
        return Solution.certified(
            certificate,
            coefficients,
            variables,
            solver=self.name,
            iterations=self.iterations,
            stopped=stopped,
            seconds=time.perf_counter() - self.began,
            history=tuple(self.monitor.history),
            details=details,
        )


class Iteration(Work, ABC):
    """One solve from a start."""

    def __init__(self, problem: Any, tol: float, start: Start, monitor: Monitor) -> None:
        super().__init__(problem, tol, monitor)
        self.start = start

    @cached_property
    def given(self) -> Start:
        """The start, or a checkpoint of the monitor."""
        return self.monitor.resume() if self.start is None else self.start

    @property
    def initial(self) -> Array | None:
        """Variables to start from; None for a cold start."""
        return self.given.variables if isinstance(self.given, Solution) else self.given

    @abstractmethod
    def run(self, limit: int) -> Stopped:
        """Iterations until convergence, the limit or an interruption."""

    @abstractmethod
    def solution(self, stopped: Stopped) -> Solution:
        """The present point with its certificate."""

    def facts(self) -> dict[str, Any]:
        """What a method has to tell of its work besides primal and dual value."""
        return {}

    def solve(self, max_iter: int) -> Solution:
        """Iterate to the end; `max_iter` -1 is no limit."""
        return self.solution(self.run(step_limit(max_iter)))

    def tell(self, primal: float, dual: float) -> bool:
        """Tell the monitor; whether to go on."""
        return self.monitor.watch(
            self.iterations, primal, dual, snapshot=lambda: self.solution("interrupted"), **self.facts()
        )


def solved(
    method: type[Iteration],
    problem: Any,
    acceptance: Acceptance,
    *,
    tol: float,
    start: Start = None,
    monitor: Monitor | None = None,
    max_iter: int = -1,
    **options: Any,
) -> Solution:
    """A solve by one method of (problem, tol, start, monitor) and options of its own, if it takes the problem."""
    require(acceptance, method.name, tol=tol)
    with listening(monitor) as listener:
        return method(problem, tol, start, listener, **options).solve(max_iter)
