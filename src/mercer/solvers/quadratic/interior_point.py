"""Dense primal-dual interior point method with predictor and corrector: the accuracy reference of all solvers.

For the quadratic program in signed variables, with p = s - lower > 0, t = upper - s > 0, multipliers z, w >= 0 of these
bounds and h of the equalities, the optimality conditions

    K~ s + linear + ridge s - A'h - z + w = 0,      A s = d,      p z = t w = mu

are followed by Newton steps to mu -> 0 (Schoelkopf and Smola 2002, section 10.3, with the signs corrected).
Eliminating dz and dw leaves (K~ + diag(ridge + z/p + w/t)) ds - A'dh = r and A ds = d - A s; the first goes through
`BarrierSystem`, the second through its small Schur complement.  A predictor step (mu = 0) measures how far mu may fall,
the corrector adds the second-order terms.  The multipliers h are the free parameters of the machine: bias, rho,
epsilon, coefficients of basis functions.

Variables whose multiplier has grown far beyond their distance to a bound are fixed there and leave the system; the gap
that decides convergence is always that of all variables, and when it does not close they come back.

Memory: four n x n matrices.  Time: one factorisation of order n (at most) in each of 10 to 30 iterations.  A matrix
given by a thin factor (n, p), as that of a low-rank approximation, takes n p numbers and n p^2 operations instead; see
`mercer.solvers.quadratic.thin_barrier`.
"""

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import dense, threads
from mercer.errors import BudgetTooSmall, NotConverged, NotPositiveDefinite
from mercer.problems.base import PlainProgram, Problem
from mercer.problems.certificate import Certificate, relative_gap
from mercer.problems.program import QuadraticProgram
from mercer.resources import available, parse, show
from mercer.solvers.contract import Acceptance, starting_variables
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.quadratic.convexity import convex_matrix
from mercer.solvers.quadratic.thin_barrier import matrix_of, system_on, thin_bytes, thin_rank
from mercer.solvers.quadratic.violations import largest_violation
from mercer.solvers.solution import Solution, Stopped
from mercer.solvers.verification import certified

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

NAME = "interior point"
ACCEPTS = "every convex program whose matrix fits in memory, basis functions included"
SECTION = "Schoelkopf and Smola 2002, section 10.3"
ITERATIONS = 100  # at most, where no bound is given
STEP = 0.995  # share of the way to the boundary that a step may go
MATRICES = 4  # n x n matrices held at once: the kernel, its factor, and two while variables leave the system
SHARE = 0.7  # of the free memory, when no budget is stated
BEYOND = 1e-4  # the path is followed until the gap is this far below the tolerance, or rounding stops it
REACH = 1e3  # start no farther inside the box than this many times the scale of a variable
# Distances to a bound, in units of the scale of a variable, at which variables are put on it where the gap allows.
SHARES = (1e-5, 1e-7, 1e-9)
FAR = (1e-3, 1e-4)
AT_BOUNDS = 1e-5  # relative gap up to which that may cost digits
PATIENCE = 6  # iterations without a smaller gap before the path counts as stalled


def memory_needed(n: int) -> int:
    """Bytes the solver takes for n points."""
    return MATRICES * 8 * n * n


def _needed(program: QuadraticProgram) -> int:
    """Bytes for this program: by its thin factor where it has one."""
    rank = thin_rank(program)
    return memory_needed(program.n) if rank is None else thin_bytes(program, rank)


def _budget(memory: int | str | None) -> int:
    return int(SHARE * available()) if memory is None else parse(memory)


def accepts(problem: Any, *, memory: int | str | None = None) -> Acceptance:
    """Whether the matrix fits in memory and is positive semidefinite where the constraints leave freedom."""
    if not isinstance(problem, Problem | QuadraticProgram):
        return Acceptance(False, f"interior point solves quadratic programs, not {type(problem).__name__}")
    return fits(problem if isinstance(problem, QuadraticProgram) else problem.program(), memory)


def fits(program: QuadraticProgram, memory: int | str | None = None) -> Acceptance:
    """Whether the matrix of a program, or its thin factor, can be held and factorised."""
    need, have = _needed(program), _budget(memory)
    if need > have:
        reason = f"its matrix of n = {program.n} needs {show(need)}, the budget is {show(have)}: use decomposition"
        return Acceptance(False, reason)
    kernel = getattr(program.gram, "kernel", None)
    if kernel is None or getattr(kernel, "positive_definite", True):
        return Acceptance(True, f"a dense problem of {show(need)}")
    try:
        convex_matrix(program)
    except NotPositiveDefinite as error:
        return Acceptance(False, str(error))
    return Acceptance(True, f"{kernel!r} need not be positive definite, but this matrix is where it matters")


def solve(
    problem: Problem | QuadraticProgram,
    *,
    tol: float = 1e-8,
    gap_tol: float | None = None,
    start: Array | Solution | None = None,
    monitor: Monitor | None = None,
    max_iter: int = -1,
    eliminate: float | None = 1e10,
    memory: int | str | None = None,
    violation: float | None = None,
) -> Solution:
    """Solve to a relative duality gap of `tol`, or of `gap_tol` where that is given, in at most `max_iter` iterations.

    `eliminate`: a variable is fixed at its bound once (multiplier / distance to the bound), in units of the problem's
    own gradients and variables, passes this number; None never fixes any.
    `violation`: where the path ends many variables are at a small distance from their bounds, and all points support
    vectors.  They are put on them where that costs a hundredth of the tolerance, or where the optimality conditions are
    violated by at most this number afterwards and the gap stays within AT_BOUNDS.
    """
    began = time.perf_counter()
    task = PlainProgram(problem) if isinstance(problem, QuadraticProgram) else problem
    program, monitor = task.program(), listening(monitor)
    needed, budget = _needed(program), _budget(memory)
    if needed > budget:
        raise BudgetTooSmall(
            f"interior point needs {show(needed)} for n = {program.n} and may take "
            f"{show(budget)}: use the decomposition solver"
        )
    with threads.blas_threads(program.n):
        K = matrix_of(program, spare=budget - needed)
        most = ITERATIONS if max_iter < 0 else max_iter
        aim = tol if gap_tol is None else gap_tol
        return _follow(task, K, aim, start, monitor, most, eliminate, began, violation)


def _follow(
    task: Problem,
    K: Any,
    tol: float,
    start: Array | Solution | None,
    monitor: Monitor,
    max_iterations: int,
    eliminate: float | None,
    began: float,
    violation: float | None,
) -> Solution:
    program = task.program()
    first = starting_variables(program, start, monitor)
    for s in (np.clip(np.zeros(program.size), program.lower, program.upper), first):
        if s is None or not _meets_sums(program, s):
            continue
        if (given := certified(task, s)).converged(tol):
            return _solution(task, s, given, 0, "converged", began, monitor, {})
    with monitor:
        path = _Path(task, K, tol, first, monitor, violation=violation)
        stopped = path.run(max_iterations, eliminate)
        if stopped == "stalled" and path.eliminated:
            path = _Path(task, K, tol, first, monitor, path.iterations, violation)
            stopped = path.run(max_iterations, None)
    s, certificate = path.finish()
    if certificate.converged(tol):
        stopped = "converged"
    elif stopped in ("converged", "iterations", "stalled"):
        # A path that ended well may still end short of the tolerance once every sum is taken anew.
        stopped = "stalled" if stopped == "converged" else stopped
        warnings.warn(
            f"interior point stopped ({stopped}) at a relative gap of {certificate.relative_gap:.2g}, "
            f"{tol:.2g} was asked for",
            NotConverged,
            stacklevel=3,
        )
    details = {"factorisation": path.system.method, "eliminated": path.eliminated}
    return _solution(task, s, certificate, path.iterations, stopped, began, monitor, details)


def _solution(
    problem: Problem,
    s: Array,
    certificate: Certificate,
    iterations: int,
    stopped: Stopped,
    began: float,
    monitor: Monitor,
    details: dict[str, Any],
) -> Solution:
    return Solution.certified(
        certificate,
        problem.coefficients(s),
        s,
        solver=NAME,
        iterations=iterations,
        stopped=stopped,
        seconds=time.perf_counter() - began,
        history=tuple(monitor.history),
        details=details,
    )


class _Path:
    """The central path: `active` variables move by Newton steps, all others are fixed at their value in `s`."""

    def __init__(
        self,
        problem: Problem,
        K: Any,
        tol: float,
        first: Array | None,
        monitor: Monitor,
        iterations: int = 0,
        violation: float | None = None,
    ) -> None:
        self.problem, self.program, self.K, self.tol, self.monitor = problem, problem.program(), K, tol, monitor
        self.iterations, self.eliminated = iterations, 0
        self.violation = violation
        self.A, self.h = self.program.equalities, np.zeros(self.program.d.size)
        self.s, moving = _without_room(self.program)
        self._scales(moving)
        self._restrict(np.flatnonzero(moving))
        self._begin(first)
        self.best: tuple[float, Array, Array] = (np.inf, self.s.copy(), self.h.copy())

    def _scales(self, moving: Mask) -> None:
        """Size of a gradient, and of a variable that can balance it."""
        program, count = self.program, max(int(moving.sum()), 1)
        diagonal = (np.asarray(self.K.diagonal())[program.point] + program.ridge)[moving]
        typical = max(float(diagonal.mean()) if diagonal.size else 1.0, 1e-300)
        demanded = float(np.abs(program.d).sum()) / count
        self.gradient_scale = max(float(np.abs(program.linear[moving]).max(initial=0.0)), typical * demanded, 1e-300)
        self.variable_scale = self.gradient_scale / typical

    def _restrict(self, active: NDArray[np.intp]) -> None:
        """Make `active` the moving variables."""
        program = self.program
        self.active, point = active, program.point[active]
        self.lower, self.upper, self.ridge = program.lower[active], program.upper[active], program.ridge[active]
        self.has_low, self.has_high = np.isfinite(self.lower), np.isfinite(self.upper)
        self.rows = self.A[:, active]
        points, place = np.unique(point, return_inverse=True)
        whole = points.size == program.n
        self.system = system_on(self.K, None if whole else points, place.astype(np.intp))

    def _begin(self, first: Array | None) -> None:
        """Start inside the box, no farther from zero than the problem's scale, with all products p z, t w equal."""
        low, high = self.lower, self.upper
        inward = np.minimum(
            np.where(self.has_low & self.has_high, 0.5 * (high - low), np.inf), REACH * self.variable_scale
        )
        zero = np.zeros(self.active.size) if first is None else first[self.active]
        s = np.clip(zero, np.where(self.has_low, low + inward, -np.inf), np.where(self.has_high, high - inward, np.inf))
        self.p, self.t = np.where(self.has_low, s - low, 1.0), np.where(self.has_high, high - s, 1.0)
        self.s[self.active] = s
        there = self.program.gradient(self.s, self.K @ self.program.coefficients(self.s))[self.active]
        size = max(self.gradient_scale, float(np.abs(there).mean())) if s.size else 0.0
        mu = size * float(np.minimum(self.p, self.t).mean()) if s.size else 0.0
        self.z, self.w = np.where(self.has_low, mu / self.p, 0.0), np.where(self.has_high, mu / self.t, 0.0)

    def run(self, max_iterations: int, eliminate: float | None) -> Stopped:
        """Follow the path; says why it ended."""
        since_best = 0
        for _ in range(max_iterations):
            g, primal, gap = self._measure()
            relative = relative_gap(primal, primal - gap, gap)
            # Until primal and dual have the same sign the relative gap is 2 or more and tells nothing.
            since_best = 0 if relative < self.best[0] or relative > 1.0 else since_best + 1
            if relative < self.best[0]:
                self.best = (relative, self.s.copy(), self.h.copy())
            if not self.monitor.watch(self.iterations, primal, primal - gap, snapshot=self._snapshot, mu=self.mu()):
                return self.monitor.stopped or "interrupted"
            met = self.best[0] <= self.tol
            if relative <= BEYOND * self.tol or (met and since_best >= 2):
                return "converged"
            if since_best >= PATIENCE or self.active.size == 0:
                return "stalled"
            if eliminate is not None:
                self._eliminate(eliminate)
            if not self._step(g):
                return "converged" if met else "stalled"
            self.iterations += 1
        return "converged" if self.best[0] <= self.tol else "iterations"

    def mu(self) -> float:
        """Mean of the products p z and t w."""
        count = int(self.has_low.sum() + self.has_high.sum())
        return (float(self.p @ self.z) + float(self.t @ self.w)) / max(count, 1)

    def _measure(self) -> tuple[Array, float, float]:
        """(K~ s, primal, gap) over all variables; an unmet equality counts as gap."""
        c = self.program.coefficients(self.s)
        g = self.K @ c
        h = self.h if self.program.groups is None else self.program.best_multipliers(g)
        primal, gap = self.program.evaluate(self.s, g, h, c)
        miss = float(np.abs(h) @ np.abs(self.A @ self.s - self.program.d)) if h.size else 0.0
        return g, primal, gap + miss

    def _step(self, g: Array) -> bool:
        """One predictor-corrector step; False when nothing moves any more."""
        program, on = self.program, self.active
        lack = program.d - self.A @ self.s
        pull = g[program.point[on]] + program.linear[on] + self.ridge * self.s[on]
        self.dual_residual = -(pull - self.h @ self.rows - self.z + self.w)
        with np.errstate(all="ignore"):
            self.system.factor(self.ridge + self.z / self.p + self.w / self.t)
        half = self.system.solve(np.ascontiguousarray(self.rows.T)) if self.h.size else None
        mu = self.mu()
        ds, _, dz, dw = self._direction(half, lack, 0.0, None)
        reach = self._reach(ds, dz, dw)
        ahead = float(((self.p + reach * self.has_low * ds) * (self.z + reach * dz)).sum())
        ahead += float(((self.t - reach * self.has_high * ds) * (self.w + reach * dw)).sum())
        ahead /= max(int(self.has_low.sum() + self.has_high.sum()), 1)
        target = mu * min(1.0, max(ahead / mu, 0.0)) ** 3 if mu > 0 else 0.0
        ds, dh, dz, dw = self._direction(half, lack, target, (ds, dz, dw))
        if not (np.isfinite(ds).all() and np.isfinite(dh).all()):
            return False
        reach = min(1.0, STEP * self._reach(ds, dz, dw, limit=np.inf))
        self._move(reach * ds, reach * dh, reach * dz, reach * dw)
        return reach > 1e-10

    def _direction(
        self, half: Array | None, lack: Array, mu: float, second: tuple[Array, Array, Array] | None
    ) -> tuple[Array, Array, Array, Array]:
        """Newton direction towards p z = t w = mu, with second-order terms of an earlier direction."""
        toward_low = np.where(self.has_low, mu / self.p, 0.0) - self.z
        toward_high = np.where(self.has_high, mu / self.t, 0.0) - self.w
        if second is not None:
            ds, dz, dw = second
            toward_low = toward_low - self.has_low * ds * dz / self.p
            toward_high = toward_high + self.has_high * ds * dw / self.t
        x = self.system.solve((self.dual_residual + toward_low - toward_high)[:, None])[:, 0]
        dh: Array = np.zeros_like(self.h)
        if half is not None:
            schur = self.rows @ half
            if not np.isfinite(schur).all():  # rounding has eaten the system: nothing moves any more
                return x, np.full_like(self.h, np.nan), self.z, self.w
            # Dependent equalities make this small matrix singular: the least-norm solution serves.
            fit = dense.least_squares(0.5 * (schur + schur.T), lack - self.rows @ x, 1e-13)
            dh = np.asarray(fit, dtype=np.float64)
            x = x + half @ dh
        return x, dh, toward_low - self.z / self.p * x, toward_high + self.w / self.t * x

    def _reach(self, ds: Array, dz: Array, dw: Array, limit: float = 1.0) -> float:
        """Largest step that keeps p, t, z, w from turning negative."""
        steps = [limit]
        for value, change in (
            (self.p, self.has_low * ds),
            (self.t, self.has_high * -ds),
            (self.z, dz),
            (self.w, dw),
        ):
            falling = change < 0
            if falling.any():
                steps.append(float((-value[falling] / change[falling]).min()))
        return min(steps)

    def _move(self, ds: Array, dh: Array, dz: Array, dw: Array) -> None:
        width = self.upper - self.lower
        both = self.has_low & self.has_high
        p, t = self.p + self.has_low * ds, self.t - self.has_high * ds
        # The shorter distance is the accurate one; the other follows from the width of the box.
        near_low = p <= t
        self.p = np.where(both & ~near_low, width - t, p)
        self.t = np.where(both & near_low, width - p, t)
        from_low = self.has_low & (near_low | ~self.has_high)
        base = np.where(from_low, self.lower, np.where(self.has_high, self.upper, self.s[self.active] + ds))
        self.s[self.active] = base + np.where(from_low, self.p, np.where(self.has_high, -self.t, 0.0))
        self.h, self.z, self.w = self.h + dh, self.z + dz, self.w + dw

    def _eliminate(self, threshold: float) -> None:
        """Fix the variables whose multiplier has outgrown their distance to the bound."""
        limit = threshold * self.gradient_scale / self.variable_scale
        low = self.has_low & (self.z > limit * self.p)
        high = self.has_high & (self.w > limit * self.t)
        gone = low | high
        # Rebuilding the system costs a copy of the matrix: wait until a tenth of it can go.
        if gone.sum() < max(1, self.active.size // 10) or gone.all():
            return
        self.s[self.active[low]], self.s[self.active[high]] = self.lower[low], self.upper[high]
        self.eliminated += int(gone.sum())
        stay = ~gone
        self.p, self.t, self.z, self.w = self.p[stay], self.t[stay], self.z[stay], self.w[stay]
        self._restrict(self.active[stay])

    def _snapshot(self) -> Solution:
        s, certificate = self.finish()
        began = time.perf_counter() - self.monitor.seconds
        return _solution(self.problem, s, certificate, self.iterations, "interrupted", began, self.monitor, {})

    def finish(self) -> tuple[Array, Certificate]:
        """The best iterate with its certificate; variables at rounding distance from a bound are put on it."""
        _, s, h = self.best
        s = _feasible(self.program, s)
        answers = [(s, certified(self.problem, s, h))]
        for share in SHARES if self.violation is None else FAR + SHARES:
            snapped = _feasible(self.program, _snap(self.program, s, share * self.variable_scale))
            certificate = certified(self.problem, snapped, h)
            answers.append((snapped, certificate))
            free_of_charge = max(answers[0][1].gap, 1e-2 * self.tol * abs(certificate.primal))
            if certificate.gap <= free_of_charge or self._meets_tolerance(snapped, certificate):
                return snapped, certificate
        return min(answers, key=lambda answer: answer[1].gap)

    def _meets_tolerance(self, s: Array, certificate: Certificate) -> bool:
        """Whether variables s (N,) are as good as the tolerance of the optimality conditions asks for."""
        if self.violation is None or not certificate.converged(AT_BOUNDS):
            return False
        return largest_violation(self.program, s, self.K @ self.program.coefficients(s)) <= self.violation


def _meets_sums(program: QuadraticProgram, s: Array) -> bool:
    """Whether the equalities hold at s (N,) to rounding."""
    return bool(program.violation(s)[1] <= 1e-12 * (1.0 + float(np.abs(s).sum())))


def _feasible(program: QuadraticProgram, s: Array) -> Array:
    """The point s (N,), projected where a path that ended early has not met the equalities: the dual needs them."""
    return s if _meets_sums(program, s) else program.project(s)


def _without_room(program: QuadraticProgram) -> tuple[Array, Mask]:
    """Variables (N,) at the only value they can have, 0 elsewhere, and which of them can move.

    Fixed are boxes of width zero and groups whose sum can be reached in one corner only.
    """
    moving = program.upper > program.lower
    s = np.where(moving, 0.0, program.lower)
    for k in range(program.d.size if program.groups is not None else 0):
        own, total = program.groups == k, float(program.d[k])
        for corner in (program.lower, program.upper):
            reach = float(corner[own].sum())
            if np.isfinite(reach) and abs(reach - total) <= 1e-12 * max(abs(reach), abs(total)):
                s[own], moving[own] = corner[own], False
    return s, moving


def _snap(program: QuadraticProgram, s: Array, distance: float) -> Array:
    """Put variables closer than `distance` to a bound on it; those left inside take up the change in the equalities."""
    width = np.where(np.isfinite(program.upper - program.lower), program.upper - program.lower, np.inf)
    close = np.minimum(distance, 1e-3 * width)
    out = np.where(s - program.lower <= close, program.lower, np.where(program.upper - s <= close, program.upper, s))
    if program.d.size == 0:
        return out
    A = program.equalities
    room = np.minimum(np.minimum(out - program.lower, program.upper - out), distance * 1e9)
    for _ in range(2):
        weighted = A * room
        out = out + weighted.T @ dense.least_squares(weighted @ A.T, program.d - A @ out, 1e-13)
    return np.clip(out, program.lower, program.upper)
