"""SMO for r equalities takes r + 1 variables at a time (Schoelkopf and Smola 2002, section 10.5.6 and problem 10.14).

    minimise  1/2 s'K~s + linear's + 1/2 sum ridge s^2,     lower <= s <= upper,   A s = d,   A (r, N)

With two variables and two general rows nothing can move.  The steepest feasible direction of unit length in the sum of
absolute values,

    maximise  -G'e    subject to   A e = 0,  ||e||_1 = 1,  e_k >= 0 at a lower bound,  e_k <= 0 at an upper one,

is a linear program whose basic solutions have at most r + 1 entries: the maximal violating (r + 1)-tuple.  For r = 1 it
is the maximal violating pair, with half of its violation for a value v; without equalities the steepest variable.  The
multipliers h of A e = 0 make v the largest violation of an optimality condition,

    G_k - (A'h)_k >= -v  where s_k may rise,     G_k - (A'h)_k <= v  where it may fall,

and s moves along e to the exact minimum or to the first bound.  Semiparametric machines, whose basis functions each add
a row, are solved by this without a factorisation; a linear program for every step is what it costs.
"""

import time
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import linprog

from mercer import dense, threads
from mercer.arrays import Array
from mercer.problems.base import PlainProgram, Problem
from mercer.problems.certificate import SCALED_FROM, Certificate
from mercer.problems.program import QuadraticProgram
from mercer.solvers.contract import Acceptance, Start, require, starting_variables, step_limit
from mercer.solvers.iteration import Work
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.quadratic.analytic_step import pair_length
from mercer.solvers.solution import Record, Solution, Stopped
from mercer.solvers.verification import inside, predicted, recomputed

NAME = "tuples"
ACCEPTS = "boxes and general equality rows, as basis functions give them"
SECTION = "Schoelkopf and Smola 2002, problem 10.14"

REFRESH = 1000  # steps between two computations of the outputs in float64


def accepts(problem: Any) -> Acceptance:
    """Programs whose equalities are not sums over groups."""
    if not isinstance(problem, Problem | QuadraticProgram):
        return Acceptance(False, f"it solves quadratic programs, not {type(problem).__name__}")
    program = problem.program() if isinstance(problem, Problem) else problem
    if program.groups is not None:
        return Acceptance(False, "its equalities are sums over groups, for which pairs are enough: use 'smo'")
    return Acceptance(True, f"{program.d.size} equality rows")


def solve(
    problem: Problem | QuadraticProgram,
    *,
    tol: float = 1e-3,
    gap_tol: float | None = None,
    start: Start = None,
    monitor: Monitor | None = None,
    max_iter: int = -1,
) -> Solution:
    """Solve to a violation 2 v of at most `tol`, or to a relative gap of `gap_tol` where that is given."""
    require(accepts(problem), NAME, tol=tol)
    whole = problem if isinstance(problem, Problem) else PlainProgram(problem)
    with listening(monitor) as listener, threads.one_blas_thread():
        first = starting_variables(whole.program(), start, monitor)
        return Tuples(whole, tol, first, listener).run(gap_tol, max_iter)


class Tuples(Work):
    """One solve: variables s (N,), outputs F = K~c (n,), and the multipliers h (r,) of the last linear program."""

    name = NAME
    problem: Problem

    def __init__(self, problem: Problem, tol: float, start: Array | None, monitor: Monitor) -> None:
        super().__init__(problem, tol, monitor)
        self.program = problem.program()
        self.A = self.program.equalities
        self.diagonal = np.asarray(self.program.gram.diagonal(), dtype=np.float64) + self.program.constant
        self.s = self.program.start() if start is None else start
        self.h = np.zeros(self.program.d.size)
        self.violation, self.aim = np.inf, SCALED_FROM
        self.kernel_values = 0
        self.history: list[Record] = []
        self.refresh()

    def refresh(self) -> None:
        """F in float64, and the equalities met exactly again."""
        self.s = self.program.project(self.s)
        c = self.program.coefficients(self.s)
        self.F = recomputed(self.program.gram, c) + self.program.constant * float(c.sum())
        self.kernel_values += self.F.size * int(np.count_nonzero(c))
        self.exact = True

    def run(self, gap_tol: float | None, max_iter: int) -> Solution:
        """Steps until the violation, or the gap, is small enough at outputs computed in float64."""
        limit = step_limit(max_iter)
        self.aim = SCALED_FROM if gap_tol is None else gap_tol
        while True:
            direction = self.steepest()
            enough = self.violation <= self.tol if gap_tol is None else self.certificate(gap_tol).converged(gap_tol)
            stopped: Stopped | None = "converged" if enough else None
            if stopped is None and (not direction.any() or self.violation == 0.0):
                stopped = "stalled"
            if stopped is not None and self.exact:
                return self.solution(stopped)
            if self.iterations >= limit:
                return self.solution("iterations")
            if not self.report():
                return self.solution(self.halted())
            if stopped is None:
                self.step(direction)
            if stopped is not None or self.iterations % REFRESH == 0:
                self.refresh()

    def gradient(self) -> Array:
        """G (N,)."""
        program = self.program
        return np.asarray(self.F[program.point] + program.linear + program.ridge * self.s)

    def steepest(self) -> Array:
        """The steepest direction e (N,), at most r + 1 entries of it not zero; sets the violation and h."""
        program, G = self.program, self.gradient()
        rises, falls = np.flatnonzero(self.s < program.upper), np.flatnonzero(self.s > program.lower)
        cost = np.concatenate((G[rises], -G[falls]))
        rows = np.vstack((np.hstack((self.A[:, rises], -self.A[:, falls])), np.ones(cost.size)))
        right = np.append(np.zeros(self.A.shape[0]), 1.0)
        found = linprog(cost, A_eq=rows, b_eq=right, bounds=(0.0, None), method="highs-ds")
        e = np.zeros(program.size)
        if found.x is None or found.fun >= 0.0:  # no feasible direction at all, or none that goes down
            self.violation = 0.0
            return e
        np.add.at(e, rises, found.x[: rises.size])
        np.subtract.at(e, falls, found.x[rises.size :])
        self.violation, self.h = -2.0 * float(found.fun), np.asarray(found.eqlin.marginals[:-1])
        return self._along_the_rows(e)

    def _along_the_rows(self, e: Array) -> Array:
        """The direction with A e = 0 to the last digit, on its own entries."""
        W = np.flatnonzero(e)
        e[W] -= dense.least_squares(self.A[:, W], self.A[:, W] @ e[W])
        return e

    def step(self, e: Array) -> None:
        """Move along e to the minimum or to the first bound."""
        program = self.program
        W = np.flatnonzero(e)
        points, change = np.unique(program.point[W]), program.coefficients(e)
        K = np.asarray(program.gram.block(points, None), dtype=np.float64) + program.constant
        self.kernel_values += K.size
        output = change[points] @ K
        slope = float(self.gradient()[W] @ e[W])
        bends = float(np.abs(change[points]) @ (np.abs(K[:, points]) @ np.abs(change[points])))
        bends += float(program.ridge[W] @ e[W] ** 2)
        curvature = float(change @ output) + float(program.ridge[W] @ e[W] ** 2)
        with np.errstate(divide="ignore"):
            room = np.where(e[W] > 0, program.upper[W] - self.s[W], self.s[W] - program.lower[W]) / np.abs(e[W])
        length = pair_length(-slope, bends, 0.5 * (bends - curvature), float(room.min()), np.inf)
        moved = self.s[W] + length * e[W]
        reached = room <= length
        self.s[W] = np.where(reached, np.where(e[W] > 0, program.upper[W], program.lower[W]), moved)
        self.F += length * output
        self.iterations += 1
        self.exact = False

    # What comes out --------------------------------------------------------------------------------------------

    def certificate(self, aim: float | None = None) -> Certificate:
        """That of the problem, with the multipliers of the linear program for a proposal."""
        c = self.program.coefficients(self.s)
        f0 = self.program.plain_values(self.F, c)
        doubt = predicted(c, self.diagonal, inside(self.program, self.s), 0 if self.exact else REFRESH)
        return self.problem.certificate(self.s, f0, self.h, aim=aim, uncertainty=doubt)

    def report(self) -> bool:
        """Tell the monitor, at most a few times a second unless it has callbacks; whether to go on."""
        if not self.monitor.due(self.reported):
            return self.monitor.go_on()
        self.reported = time.perf_counter()
        found = self.certificate()
        facts = {"violation": self.violation}
        seconds = self.reported - self.began
        self.history.append(Record(self.iterations, seconds, found.primal, found.dual, found.gap, facts))
        return self.monitor.watch(
            self.iterations, found.primal, found.dual, snapshot=lambda: self.solution("interrupted"), **facts
        )

    def solution(self, stopped: Stopped) -> Solution:
        """The present point with its certificate."""
        if not self.exact:
            self.refresh()
        c = self.program.coefficients(self.s)
        facts = {"violation": self.violation, "kernel_values": self.kernel_values}
        f0 = self.program.plain_values(self.F, c)
        found = self.certified(stopped, self.certificate(self.aim), c, self.s.copy(), f0=f0, **facts)
        return replace(found, history=tuple(self.history))
