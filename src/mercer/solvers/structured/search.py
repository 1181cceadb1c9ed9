"""What the solvers of structured problems share: the best bounds so far, the monitor, and the solution they end with.

The primal value at any w is made of loss-augmented inference on all examples; a dual value comes from the planes a
solver holds.  Both need not be of the same iterate: the best w and the best dual value are kept (`Bounds`), and their
difference is the certificate.

`variables` of a solution hold all that a solver needs to go on: first a fingerprint of the data, then its own state.
"""

import time
from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.errors import InvalidInput
from mercer.problems.certificate import Certificate
from mercer.problems.structured import StructuredProblem, Vector
from mercer.solvers import contract, iteration
from mercer.solvers.contract import Acceptance, Start
from mercer.solvers.iteration import Iteration
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Record, Solution, Stopped

SAME = 1e-9  # relative difference of fingerprints that rounding explains
PATIENCE = 50  # measurements in which the gap does not fall by the share below
PROGRESS = 1e-3


def accepts(problem: Any) -> Acceptance:
    """Structured problems of any model."""
    if isinstance(problem, StructuredProblem):
        return Acceptance(True, "a structured problem")
    return Acceptance(False, f"{type(problem).__name__} is not a structured problem")


class Search(Iteration):
    """One solve: what is known of the optimum, and what was spent on it."""

    problem: StructuredProblem

    def __init__(self, problem: StructuredProblem, tol: float, start: Start, monitor: Monitor) -> None:
        super().__init__(problem, tol, start, monitor)
        self.w = np.zeros(problem.size)  # of the best primal value so far
        self.bounds = np.full(problem.n, np.inf)  # on H_i at that w
        self.primal, self.dual = np.inf, 0.0  # alpha_i all on the zero plane is feasible
        self.waited = 0
        self.lowest = np.inf  # gap from which progress is counted
        self.history: list[Record] = []

    # What is known -------------------------------------------------------------------------------------------------

    def learn_primal(self, w: Vector, bounds: Vector) -> float:
        """Take in P(w) from bounds (n,) on H_i(w)."""
        primal = self.problem.primal(w, bounds)
        if primal < self.primal:
            self.primal, self.w, self.bounds = primal, w.copy(), bounds
        return primal

    def learn_dual(self, w: Vector, loss: float) -> float:
        """Take in the dual value of a feasible point."""
        dual = self.problem.dual(w, loss)
        self.dual = max(self.dual, dual)
        return dual

    def certificate(self) -> Certificate:
        """The best of both."""
        if not np.isfinite(self.primal):
            return Certificate(np.inf, self.dual, np.inf)
        return self.problem.certificate(self.w, self.bounds, self.dual)

    def converged(self) -> bool:
        """Whether the gap is closed to the tolerance."""
        return self.certificate().converged(self.tol)

    def stuck(self) -> bool:
        """Whether the gap no longer falls, as where inference is not exact; to be asked once for each measurement."""
        gap = self.primal - self.dual
        if gap < (1.0 - PROGRESS) * self.lowest:
            self.lowest, self.waited = gap, 0
            return False
        self.waited += 1
        return self.waited > PATIENCE

    # What is told --------------------------------------------------------------------------------------------------

    def ended(self, limit: int) -> Stopped | None:
        """Why a measured point is the last one, None where the solve goes on; to be asked once for each measurement."""
        if self.converged():
            return "converged"
        if self.stuck():
            return "stalled"
        if self.iterations >= limit:
            return "iterations"
        return None if self.report() else self.halted()

    def report(self) -> bool:
        """Tell the monitor, a few times a second or, with callbacks, always, and when it ends; whether to go on."""
        if not self.monitor.due(self.reported) and self.monitor.go_on():
            return True
        self.reported = time.perf_counter()
        self.history.append(self._record())
        return self.tell(self.primal, self.dual)

    def _record(self) -> Record:
        found, seconds = self.certificate(), time.perf_counter() - self.began
        return Record(self.iterations, seconds, found.primal, found.dual, found.gap, self.facts())

    def solution(self, stopped: Stopped) -> Solution:
        """The best point with its certificate."""
        variables = np.concatenate((self.problem.fingerprint(), self.state()))
        found = self.certified(stopped, self.certificate(), self.w.copy(), variables, **self.facts())
        return replace(found, history=(*self.history, self._record()))

    def solve(self, max_iter: int) -> Solution:
        """Take up the start, iterate to the end, and tell monitors with callbacks of it."""
        self._begin()
        solution = super().solve(max_iter)
        if self.monitor.has_callbacks and self.monitor.stopped is None:
            last = solution.history[-1]
            self.monitor.watch(last.iteration, last.primal, last.dual, snapshot=lambda: solution, **last.facts)
        return solution

    # Where a solve goes on -----------------------------------------------------------------------------------------

    @abstractmethod
    def state(self) -> Vector:
        """All that `resume` needs, as one vector."""

    @abstractmethod
    def resume(self, state: Vector) -> None:
        """Go on from what `state` has given; a ValueError where it does not fit."""

    def _begin(self) -> None:
        """Take up an earlier solution of this solver, or a checkpoint of the monitor; nothing where there is none."""
        start = self.given
        if start is None:
            return
        if isinstance(start, Solution) and start.solver != self.name:
            raise InvalidInput(f"start is a solution of {start.solver!r}, from which {self.name!r} cannot go on")
        values = np.asarray(start.variables if isinstance(start, Solution) else start, dtype=np.float64)
        if values.ndim != 1 or not np.isfinite(values).all():
            raise InvalidInput("start holds no finite state of a structured solve")
        if not _same_data(self.problem, values):
            raise InvalidInput("start was reached on other data, or for another loss or rescaling; begin without it")
        try:
            self.resume(values[len(self.problem.fingerprint()) :])
        except (ValueError, IndexError) as error:
            raise InvalidInput(f"start does not fit this problem: {error}") from None


class Limits(contract.Limits, total=False):
    """What `solve` of the solvers of structured problems takes besides its own parameters: defaults of `solved`."""

    tol: float


def solved(method: type[Search], problem: StructuredProblem, *, tol: float = 1e-2, **options: Any) -> Solution:
    """A solve by one method to a relative gap of `tol`."""
    return iteration.solved(method, problem, accepts(problem), tol=tol, **options)


def _same_data(problem: StructuredProblem, variables: Vector) -> bool:
    """Whether variables begin with the fingerprint of this problem."""
    known = problem.fingerprint()
    return len(variables) >= len(known) and np.allclose(variables[: len(known)], known, rtol=SAME, atol=0.0)


def continues(problem: StructuredProblem, solution: Solution, name: str) -> bool:
    """Whether a solution is one of the solver `name` on the same data."""
    return solution.solver == name and _same_data(problem, solution.variables)


class Reader:
    """Takes a flat vector apart in the order in which it was put together."""

    def __init__(self, values: Vector) -> None:
        self.values, self.at = values, 0

    def take(self, *shape: int) -> Vector:
        """The next numbers, in this shape."""
        count = int(np.prod(shape, dtype=np.int64))
        if count < 0 or self.at + count > len(self.values):
            raise ValueError("its state is cut off")
        self.at += count
        return self.values[self.at - count : self.at].reshape(shape).copy()

    def number(self) -> int:
        """The next number, which is a count."""
        return int(self.take(1)[0])

    def close(self) -> None:
        """Refuse what is left over."""
        if self.at != len(self.values):
            raise ValueError("its state is too long")
