"""One run of an iterative method: its iterates go in, the best certified point comes out.

A method hands in dual-feasible points s with the value of something it promises to lower (its merit).  At a few of them
the certificate is computed,

    min over iterates of P  >=  optimum  >=  max over iterates of D

(Schoelkopf and Smola 2002, equation 10.21), and the run ends at a relative gap of `tol`, at a limit, when the monitor
says so, when nothing moves any more ("stalled"), or when the merit rises instead of falling ("diverged").
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.arrays import Array
from mercer.problems.base import Problem
from mercer.problems.certificate import SCALED_FROM, Bounds
from mercer.solvers import contract
from mercer.solvers.contract import Acceptance, Start, starting_variables
from mercer.solvers.iteration import Work
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.solution import Solution, Stopped
from mercer.solvers.verification import certified

# A certificate costs a product with the matrix, about as much as an iteration: it is looked at whenever their number
# has grown by this factor, which bounds both the share of looks and the iterations made in vain.
SPACING = 1.15
RISES = 3  # looks in a row at which the merit has risen before the run counts as diverging
ROUNDING = 1e-12  # a rise below this share of the merit is none
# Looks without a better bound before the run counts as stalled, and the share of the gap that counts as better.
PATIENCE = 40
PROGRESS = 1e-3
BISECTIONS = 60  # of an interval of step lengths: to the last digit


class Limits(contract.Limits, total=False):
    """What `solve` of these methods takes besides `tol` and its own parameters, with the defaults of `Run`."""

    gap_tol: float | None


def bounded_or_smooth(problem: Any, method: str, otherwise: str) -> Acceptance:
    """Programs whose variables are bounded or have a ridge, and whose equalities are sums."""
    if not isinstance(problem, Problem):
        return Acceptance(False, f"{method} takes support vector problems, not {type(problem).__name__}")
    program = problem.program()
    if program.groups is None:
        return Acceptance(False, "basis functions are equality rows: use interior_point")
    if not np.isfinite(np.where(program.ridge > 0.0, 0.0, program.upper - program.lower)).all():
        return Acceptance(False, f"the loss is infinite beyond the margin{otherwise}")
    return Acceptance(True, "bounded dual variables")


def around_zero(slope: Callable[[float], float], high: float, share: float) -> tuple[float, float]:
    """Ends of an interval around the zero in (0, high) of a rising slope, of length at most `share` of the upper."""
    low = 0.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) <= 0.0 else (low, middle)
        if high - low <= share * high:
            break
    return low, high


class Run(Work):
    """The state of one run: best point, bounds, and why it ended.

    It ends at a relative duality gap of `gap_tol`, or of `tol` where that is None; `given` is a feasible start (N,).
    """

    def __init__(
        self,
        problem: Problem,
        name: str,
        *,
        tol: float,
        gap_tol: float | None = None,
        start: Start = None,
        monitor: Monitor | None = None,
        max_iter: int = -1,
    ) -> None:
        super().__init__(problem, tol if gap_tol is None else gap_tol, listening(monitor))
        self.program, self.name, self.max_iter = problem.program(), name, max_iter
        self.given = starting_variables(self.program, start, monitor)
        self.stopped: Stopped | None = None
        self.bounds = Bounds()
        self.best: tuple[float, Array] = (np.inf, self.program.start())
        self._next, self._rises, self._idle, self._merit, self._gap = 0, 0, 0, np.inf, np.inf

    def start(self) -> Array:
        """Variables (N,) to begin from: those given, or the program's own."""
        return self.program.start() if self.given is None else self.given

    def goes_on(self) -> bool:
        """Whether another iteration is to be made; counts it."""
        if self.stopped is None and not self.monitor.go_on():
            self.stopped = self.halted()
        if self.stopped is None and 0 <= self.max_iter <= self.iterations:
            self.stopped = "iterations"
        self.iterations += self.stopped is None
        return self.stopped is None

    @property
    def due(self) -> bool:
        """Whether the present iterate is to be looked at."""
        last = self.iterations == self.max_iter
        return last or self.iterations >= self._next or self.monitor.due(self.reported)

    def look(self, s: Array, f0: Array | None = None, *, merit: float | None = None, **facts: Any) -> bool:
        """Certify the feasible point s (N,), f0 = K c (n,) where it is known; whether to go on."""
        self._next = max(self.iterations + 1, int(SPACING * self.iterations))
        found = self.problem.certificate(s, f0, aim=SCALED_FROM)
        self.bounds.update(found.primal, found.dual)
        if found.gap < self.best[0]:
            self.best = found.gap, s.copy()
        self.reported = time.perf_counter()
        going = self.monitor.watch(self.iterations, found.primal, found.dual, snapshot=self.snapshot, **facts)
        if found.converged(self.tol):
            self.stopped = "converged"
        elif not going:
            self.stopped = self.halted()
        elif merit is not None and self._diverging(merit):
            self.stopped = "diverged"
        elif self._stalled():
            self.stopped = "stalled"
        return self.stopped is None

    def _diverging(self, merit: float) -> bool:
        """Whether what the method promises to lower is not a number any more, or has risen at several looks."""
        rose = merit > self._merit + ROUNDING * abs(self._merit)
        self._rises = self._rises + 1 if rose else 0
        self._merit = merit
        return not np.isfinite(merit) or self._rises >= RISES

    def _stalled(self) -> bool:
        better = self.best[0] < (1.0 - PROGRESS) * self._gap
        self._gap, self._idle = (self.best[0], 0) if better else (self._gap, self._idle + 1)
        return self._idle >= PATIENCE

    def snapshot(self) -> Solution:
        """The best point so far."""
        return self.solution(stopped="interrupted")

    def solution(self, *, stopped: Stopped | None = None, **details: Any) -> Solution:
        """The best point, its certificate computed anew in float64."""
        s = self.best[1]
        certificate = certified(self.problem, s)
        stopped = stopped or self.stopped or "stalled"
        if certificate.converged(self.tol):
            stopped = "converged"
        elif stopped == "converged":
            stopped = "stalled"  # the values of the last look were less exact than the gap that was asked for
        return self.certified(stopped, certificate, self.problem.coefficients(s), s, **details)
