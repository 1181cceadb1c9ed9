"""Decomposition: the exact solver of every support-vector problem whose equalities are group sums.

    repeat   choose a working set W of points, form K_WW, optimise the variables on W with all others fixed
             (`mercer.solvers.pair_steps`), update F += K[:, W] (change on W)
    until    no group has a variable that may rise whose gradient is below that of one that may fall by more than tol

(Osuna, Freund and Girosi 1997; Rifkin 2002, section 2.4; Schoelkopf and Smola 2002, section 10.4.)  The cost of a
round is |changed| n kernel values, so what counts is how often a support vector must change before it is right.
Taking the worst violators, as the literature does, wastes rounds: they are neighbours of one another, and once a few
have moved the rest are satisfied.  Here the set is a *random sample* of all violators, together with the worst pair
(which proves convergence) and the still free points of the last set; far fewer values are needed: 1.2 to 2.3 times the
floor n x (number of support vectors) on a9a, ijcnn1 and covtype, whose support vectors are mostly bounded.

Values are computed in tiles and forgotten where that is cheaper than keeping them; the Gram operator decides.  Small
problems are one working set: rows are computed when they are first needed, or the whole matrix is formed.
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.errors import InvalidInput
from mercer.problems.base import PlainProgram, Problem
from mercer.problems.certificate import Certificate
from mercer.problems.program import QuadraticProgram
from mercer.solvers.contract import Acceptance, starting_variables
from mercer.solvers.monitor import SILENT, Monitor, listening
from mercer.solvers.pair_steps import minimise_pairs, minimise_pairs_on_points, minimise_singles, on_demand
from mercer.solvers.solution import Record, Solution, Stopped
from mercer.solvers.working_set import free_gradients, survey, violators

Array = NDArray[np.float64]
Index = NDArray[np.intp]

NAME = "decomposition"
# Up to so many points the whole matrix is formed and the working set is everything.
WHOLE = 1400
WORKING_SET = 1024
LARGEST_WORKING_SET = 4096
# A working set is solved to this share of the present violation: further digits are undone by the next set.
INNER = 0.1
STEPS_PER_POINT = 20
# With so many free points that no working set holds them, up to so many points are solved as a whole after all.
WHOLE_IF_CROWDED = 10_000
# So many rounds that lower neither the violation by a twentieth nor the objective by this share (for kernel values of
# so many bytes) are blamed on rounding.
PATIENCE = 50
PROGRESS = {4: 1e-9, 8: 1e-13}
SECONDS_BETWEEN_REPORTS = 0.2


def accepts(problem: Problem | QuadraticProgram) -> Acceptance:
    """Problems whose equalities are sums over groups of variables, with the same points in every layer."""
    program = problem.program() if isinstance(problem, Problem) else problem
    if program.groups is None:
        return Acceptance(False, "general equality rows need the interior point solver")
    layers, rest = divmod(program.size, program.n)
    if rest or not np.array_equal(program.point, np.tile(np.arange(program.n), layers)):
        return Acceptance(False, "every point must carry the same number of variables")
    return Acceptance(True, "box constraints and group sums")


def solve(
    problem: Problem | QuadraticProgram,
    *,
    tol: float = 1e-3,
    gap_tol: float | None = None,
    start: Array | Solution | None = None,
    monitor: Monitor | None = None,
    max_iter: int = -1,
    working_set: int | None = None,
    seed: int = 0,
) -> Solution:
    """Solve to a violation of at most `tol` (LIBSVM's eps), or to a relative gap of `gap_tol` when that is given.

    `max_iter` bounds the number of pair steps (-1: no bound).  `working_set` fixes the number of points worked on at a
    time.  The solution's details hold f0 = K c at the training points, the violation, the number of rounds and of
    kernel values computed.
    """
    if not tol > 0:
        raise InvalidInput(f"tol must be positive, got {tol}")
    answer = accepts(problem)
    if not answer:
        raise InvalidInput(f"decomposition cannot take this problem: {answer.reason}")
    whole = problem if isinstance(problem, Problem) else PlainProgram(problem)
    listener = listening(monitor)
    with listener, threads.one_blas_thread():
        search = Search(whole, tol, gap_tol, starting_variables(whole.program(), start, monitor), listener, seed)
        return search.run(max_iter, working_set)


class Search:
    """The state of one solve: variables (layers, n), F = K c (n,) and what has been spent."""

    def __init__(
        self, problem: Problem, tol: float, gap_tol: float | None, start: Array | None, monitor: Monitor, seed: int
    ) -> None:
        program = problem.program()
        self.problem, self.program, self.monitor = problem, program, monitor
        self.gram: Any = program.gram
        self.tol, self.gap_tol = tol, gap_tol
        self.n = program.n
        shape = (program.size // self.n, self.n)
        self.lower, self.upper = program.lower.reshape(shape), program.upper.reshape(shape)
        self.linear, self.ridge = program.linear.reshape(shape), program.ridge.reshape(shape)
        assert program.groups is not None
        self.group = np.ascontiguousarray(program.groups, dtype=np.intp).reshape(shape)
        self.groups = program.d.size
        self.constant = program.constant
        self.diagonal = np.asarray(self.gram.diagonal(), dtype=np.float64) + self.constant
        self.random = np.random.default_rng(seed)
        self.began = self.reported = time.perf_counter()
        self.history: list[Record] = []
        self.steps = self.rounds = self.values = 0
        self.violation = np.inf
        s = program.start() if start is None else start
        self.s = np.array(s, dtype=np.float64).reshape(shape)
        self.F = np.zeros(self.n)
        c = self.s.sum(axis=0)
        support = np.flatnonzero(c)
        if support.size:
            self._update(support, c[support])

    def _update(self, points: Index, change: Array) -> None:
        """F += (K + constant)[:, points] change."""
        self.F += self.gram.columns_dot(points, change)
        if self.constant:
            self.F += self.constant * float(change.sum())
        self.values += self.n * points.size

    def run(self, max_iter: int, working_set: int | None) -> Solution:
        """Rounds until convergence, a limit or an interruption."""
        limit = max_iter if max_iter >= 0 else int(np.iinfo(np.int64).max)
        tiles = self._tiles()
        if working_set is None and tiles is not None and on_demand(tiles, self.n):
            stopped = self._solve_whole(limit, tiles)
        elif (working_set or (self.n if self.n <= WHOLE else WORKING_SET)) >= self.n:
            stopped = self._solve_whole(limit, None)
        else:
            stopped = self._rounds(limit, working_set or WORKING_SET, working_set)
        solution = self.solution(stopped)
        if self.monitor.attended and self.monitor.stopped is None:
            last = solution.history[-1]
            self.monitor.watch(last.iteration, last.primal, last.dual, snapshot=lambda: solution, **last.facts)
        return solution

    def _tiles(self) -> Any:
        """The fused tiles behind the matrix, where values are computed from points and no constant is added."""
        if self.groups == 0 or self.constant or getattr(self.gram, "matrix", None) is not None:
            return None
        return getattr(getattr(self.gram, "entries", None), "tiles", None)

    def _solve_whole(self, limit: int, tiles: Any) -> Stopped:
        """All points at once, in slices between which the monitor is asked; rows come from `tiles`, or a matrix."""
        K, UT = None, None
        if tiles is None:
            K = np.ascontiguousarray(self.gram.block(None, None))
            if self.constant:
                K = K + K.dtype.type(self.constant)
            self.values += self.n * self.n
        else:
            UT = np.ascontiguousarray(tiles.left.U.T)
        slice_steps = 10_000_000 if self.monitor is SILENT else max(1000, 20_000_000 // self.n)
        while True:
            most = int(min(slice_steps, limit - self.steps))
            if UT is None:
                done, self.violation = self._minimise(K, self.diagonal, self.F, self.s, None, self.tol, most)
            else:
                done, self.violation = self._minimise_on_points(UT, tiles, most)
            self.steps += done
            self.rounds += 1
            if self._converged():
                return "converged"
            if self.steps >= limit:
                return "iterations"
            if done < most:
                return "stalled"
            if not self._report():
                return self.monitor.stopped or "interrupted"

    def _minimise_on_points(self, UT: Any, tiles: Any, most: int) -> tuple[int, float]:
        """Steps on all variables with rows computed on demand."""
        n = self.n
        before = self.s.any(axis=0)
        outcome = minimise_pairs_on_points(
            UT, tiles.left.a, tiles.code, tiles.parameters, 0, n, n, self.diagonal, self.F, self.s, self.linear,
            self.ridge, self.lower, self.upper, self.group, self.groups, self.tol, most,
        )  # fmt: skip
        self.values += n * int(np.count_nonzero(before | self.s.any(axis=0)))
        return outcome

    def _minimise(
        self, K: Any, diagonal: Array, F: Array, s: Array, W: Index | None, tol: float, most: int
    ) -> tuple[int, float]:
        """Steps on the variables of W (None: all points), whose matrix is K."""
        linear, ridge, lower, upper, group = self.linear, self.ridge, self.lower, self.upper, self.group
        if W is not None:
            linear, ridge = linear[:, W], ridge[:, W]
            lower, upper, group = lower[:, W], upper[:, W], group[:, W]
        if self.groups == 0:
            return minimise_singles(K, diagonal, F, s, linear, ridge, lower, upper, tol, most)
        n = s.shape[1]
        return minimise_pairs(K, 0, n, n, diagonal, F, s, linear, ridge, lower, upper, group, self.groups, tol, most)

    def _rounds(self, limit: int, size: int, fixed: int | None) -> Stopped:
        """One working set after another."""
        G = np.empty_like(self.s)
        extremes = np.empty((self.groups, 4))
        theta = np.zeros(self.groups)
        found = np.empty(self.n, dtype=np.intp)
        scratch = np.empty(self.s.size)
        last: Index = np.empty(0, dtype=np.intp)
        best, lowest, waited = np.inf, np.inf, 0
        progress = PROGRESS[np.dtype(self.gram.dtype).itemsize]
        while True:
            survey(self.F, self.linear, self.ridge, self.lower, self.upper, self.s, self.group, G, extremes)
            self._levels(G, extremes, theta, scratch)
            if self.groups:
                self.violation = max(0.0, float((extremes[:, 2] - extremes[:, 0]).max()))
                slack = 0.5 * self.tol
            else:
                slack = self.tol
            count, worst = violators(G, self.lower, self.upper, self.s, self.group, theta, slack, found)
            if not self.groups:
                self.violation = worst
            if self._converged():
                return "converged"
            objective = self._objective()
            if self.violation < 0.95 * best or not objective >= lowest - progress * abs(objective):
                waited = 0
            best, lowest = min(best, self.violation), min(lowest, objective)
            waited += 1
            if waited > PATIENCE:
                return "stalled"
            if self.steps >= limit:
                return "iterations"
            if not self._report():
                return self.monitor.stopped or "interrupted"
            W, crowded = self._choose(found[:count], extremes, last, size)
            self._solve_set(W, limit)
            last = W
            if crowded and fixed is None:
                if size >= LARGEST_WORKING_SET // 2 and self._fits_whole():
                    return self._solve_whole(limit, None)
                size = min(LARGEST_WORKING_SET, self.n, size + size // 2)

    def _fits_whole(self) -> bool:
        """Whether the whole matrix is small enough to be formed."""
        return self.n <= WHOLE_IF_CROWDED and self.n**2 * self.gram.dtype.itemsize <= self.gram.plan().budget

    def _objective(self) -> float:
        """Value of the program at the present variables."""
        value = 0.5 * float(self.s.sum(axis=0) @ self.F) + float(np.vdot(self.linear, self.s))
        return value + 0.5 * float(np.vdot(self.ridge, self.s * self.s))

    def _levels(self, G: Array, extremes: Array, theta: Array, scratch: Array) -> None:
        """The guess of each group's multiplier: median gradient of its free variables, between the two extremes."""
        for g in range(self.groups):
            count = free_gradients(G, self.lower, self.upper, self.s, self.group, g, scratch)
            low, high = sorted((extremes[g, 0], extremes[g, 2]))
            middle = 0.5 * (low + high) if np.isfinite(low + high) else 0.0
            level = float(np.median(scratch[:count])) if count else middle
            theta[g] = level if low <= level <= high else middle

    def _choose(self, found: Index, extremes: Array, last: Index, size: int) -> tuple[Index, bool]:
        """Working set: free points of the last one, the worst pair of each group, and a sample of the violators.

        Also says whether the free points had to be cut to half of the set, which then is too small.
        """
        chosen = np.zeros(self.n, dtype=bool)
        s = self.s[:, last]
        free = last[((self.lower[:, last] < s) & (s < self.upper[:, last])).any(axis=0)]
        crowded = free.size > size // 2
        if crowded:
            free = self.random.choice(free, size // 2, replace=False, shuffle=False)
        chosen[free] = True
        for g in range(self.groups):
            for at in (int(extremes[g, 1]), int(extremes[g, 3])):
                if at >= 0:
                    chosen[at % self.n] = True
        room = size - int(np.count_nonzero(chosen))
        if found.size > room:
            found = self.random.choice(found, max(room, 1), replace=False, shuffle=False)
        chosen[found] = True
        return np.flatnonzero(chosen), crowded

    def _solve_set(self, W: Index, limit: int) -> None:
        """Optimise the variables on W and carry the change to all points."""
        K = self.gram.block(W, W)
        if self.constant:
            K = K + K.dtype.type(self.constant)
        F, s = self.F[W], self.s[:, W]
        before = s.sum(axis=0)
        inner = max(0.5 * self.tol, INNER * self.violation)
        most = int(min(STEPS_PER_POINT * W.size, limit - self.steps))
        done, _ = self._minimise(K, self.diagonal[W], F, s, W, inner, most)
        self.steps += done
        self.rounds += 1
        self.values += W.size * W.size
        change = s.sum(axis=0) - before
        self.s[:, W] = s
        moved = np.flatnonzero(change)
        if moved.size:
            self._update(W[moved], change[moved])

    def _converged(self) -> bool:
        if self.gap_tol is None:
            return self.violation <= self.tol
        certificate = self.problem.certificate(self.s.ravel(), self._f0())
        return certificate.converged(self.gap_tol)

    def _f0(self) -> Array:
        """K c without the constant of a penalised bias."""
        return self.F - self.constant * float(self.s.sum()) if self.constant else self.F

    def _report(self) -> bool:
        """Tell the monitor, at most a few times a second unless it is attended; whether to go on."""
        now = time.perf_counter()
        if not self.monitor.attended and (self.monitor is SILENT or now - self.reported < SECONDS_BETWEEN_REPORTS):
            return self.monitor.go_on()
        self.reported = now
        record = self._record(self.problem.certificate(self.s.ravel(), self._f0()))
        self.history.append(record)
        return self.monitor.watch(
            record.iteration,
            record.primal,
            record.dual,
            snapshot=lambda: self.solution("interrupted"),
            **record.facts,
        )

    def _record(self, certificate: Certificate) -> Record:
        """The present point as a line of the history."""
        facts = {"violation": self.violation, "support": int(np.count_nonzero(self.s.any(axis=0)))}
        seconds = time.perf_counter() - self.began
        return Record(self.steps, seconds, certificate.primal, certificate.dual, certificate.gap, facts)

    def solution(self, stopped: Stopped) -> Solution:
        """The present point with its certificate."""
        variables = self.s.ravel().copy()
        f0 = self._f0().copy()
        certificate = self.problem.certificate(variables, f0)
        return Solution.certified(
            certificate,
            self.problem.coefficients(variables),
            variables,
            solver=NAME,
            iterations=self.steps,
            stopped=stopped,
            seconds=time.perf_counter() - self.began,
            history=(*self.history, self._record(certificate)),
            details={"f0": f0, "violation": self.violation, "rounds": self.rounds, "kernel_values": self.values},
        )
