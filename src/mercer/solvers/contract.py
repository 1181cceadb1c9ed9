"""What every solver module offers, and what they all need at their beginning.

accepts(problem) -> Acceptance                               yes, or no with the reason
solve(problem, *, tol, start=None, monitor=None, ...) -> Solution
"""

from typing import Any, NamedTuple, Protocol, TypedDict

import numpy as np

from mercer.arrays import Array
from mercer.errors import InvalidInput
from mercer.problems.program import QuadraticProgram
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.solution import Solution

Start = Solution | Array | None
"""Variables, or an earlier solution; None for those of a checkpoint of the monitor, or a cold start."""


class Acceptance(NamedTuple):
    """A solver's answer to a problem; true in a condition when it takes it."""

    ok: bool
    reason: str

    def __bool__(self) -> bool:
        return self.ok


def require(acceptance: Acceptance, solver: str = "", *, tol: float = 1.0) -> None:
    """Raise with the reason, and the solver's name where it is given, where a solver does not take problem or `tol`."""
    if not tol > 0:
        raise InvalidInput(f"tol must be positive, got {tol}")
    if not acceptance:
        raise InvalidInput(f"{solver} cannot take this problem: {acceptance.reason}" if solver else acceptance.reason)


class Limits(TypedDict, total=False):
    """What `solve` of every iteration takes besides the accuracy and its own parameters."""

    start: Start
    monitor: Monitor | None
    max_iter: int


class Solver(Protocol):
    """A module that solves problems."""

    def accepts(self, problem: Any) -> Acceptance:
        """Whether the solver can take the problem, and why or why not."""

    def solve(
        self,
        problem: Any,
        *,
        tol: float = ...,
        start: Any = None,
        monitor: Monitor | None = None,
    ) -> Solution:
        """Reach a relative gap of `tol`."""


def variables_of(start: Start, monitor: Monitor) -> Array | None:
    """Variables to start from: those given or of an earlier solution, else those of a checkpoint of the monitor."""
    start = monitor.resume() if start is None else start
    return start.variables if isinstance(start, Solution) else start


def starting_coefficients(start: Array, shape: tuple[int, ...]) -> Array:
    """A copy of coefficients to start from, which must be finite and of this shape."""
    c = np.array(start, dtype=np.float64)
    if c.shape != shape or not np.isfinite(c).all():
        raise InvalidInput(f"start must hold finite coefficients of shape {shape}, got an array of shape {c.shape}")
    return c


def step_limit(max_iter: int) -> int:
    """The bound on the number of steps; -1 is none."""
    return max_iter if max_iter >= 0 else int(np.iinfo(np.int64).max)


def starting_variables(program: QuadraticProgram, start: Start, monitor: Monitor | None = None) -> Array | None:
    """Feasible signed variables (N,) to start from, or None for a cold start.

    `start` may be variables or an earlier Solution; without it, a checkpoint of the monitor is taken up.
    """
    given = variables_of(start, listening(monitor))
    if given is None:
        return None
    s = np.array(given, dtype=np.float64)
    if s.shape != (program.size,):
        raise InvalidInput(f"start has shape {s.shape}, this problem has {program.size} variables")
    if not np.isfinite(s).all():
        raise InvalidInput("start contains NaN or infinite values")
    return program.project(s)
