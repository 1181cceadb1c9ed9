"""Decomposition for the machines with one problem for all classes: one working set of points at a time.

State: variables a (n, k), coefficients c (n, k) and the outputs F (n, k) at all points.

    repeat   survey all points: violation of each, primal value, gap
             choose a working set W: points that violate, and the still free ones of the last set
             optimise the variables of W, one point after the other and each exactly (`mercer.solvers.multiclass_steps`)
             F += K[:, W] (change of c on W)
    until    the relative duality gap is small enough

The classical method steps on the worst point of all and updates all outputs after each step (Crammer and Singer 2001);
here a step costs |W| and the outputs of all points follow in one matrix product.

A free bias b asks for sum_i c_im = 0.  It is found by the proximal point method: with b pulled towards b_t by
1/(2 rho) |b - b_t|^2 the problem is the one without bias for the kernel K + rho and the outputs shifted by b_t, and
b = b_t + rho sum_i c_i; then b_t becomes b.  Before the certificate is drawn, the sums are made exactly zero
(`mercer.solvers.class_balance`).
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.gram.dense import DenseGram
from mercer.kernels import Precomputed
from mercer.problems.multiclass import CRAMMER_SINGER, LEE_LIN_WAHBA, MulticlassCertificate, MulticlassProblem
from mercer.solvers.class_balance import balanced
from mercer.solvers.contract import Acceptance
from mercer.solvers.monitor import SILENT, Monitor, listening
from mercer.solvers.multiclass_steps import gather, minimise_points, survey
from mercer.solvers.solution import Solution, Stopped

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# Up to so many points the working set is everything.
WHOLE = 1400
WORKING_SET = 1024
LARGEST_WORKING_SET = 4096
# Lee-Lin-Wahba's steps are many, most points are free, and larger sets make each step dearer than they save rounds.
LARGEST_OF_LEE_LIN_WAHBA = 1536
# A working set is solved to this share of the present violation: further digits are undone by the next set.
INNER = 0.1
STEPS_PER_POINT = 20
# Points within this factor of the worst are stepped on before violations are looked at again.
GREED = 0.5
# So many rounds that lower neither violation nor gap by a twentieth nor raise the dual by this share (for kernel values
# of so many bytes) are blamed on rounding.
PATIENCE = 60
PROGRESS = {4: 1e-9, 8: 1e-13}
SECONDS_BETWEEN_REPORTS = 0.2
TINY = 1e-12


def accepts(problem: Any) -> Acceptance:
    """Every problem of `mercer.problems.multiclass` with a kernel matrix."""
    if not isinstance(problem, MulticlassProblem):
        return Acceptance(False, f"{type(problem).__name__} is not a machine with one problem for all classes")
    return Acceptance(True, "one block of variables for each point")


def solve(
    problem: MulticlassProblem,
    *,
    name: str,
    tol: float,
    start: Array | Solution | None,
    monitor: Monitor | None,
    max_iter: int,
    working_set: int | None,
    fixed_point: bool = False,
    greed: float = GREED,
    seed: int = 0,
) -> Solution:
    """Solve to a relative gap of `tol`; `max_iter` bounds the number of steps on a point (-1: no bound)."""
    if not tol > 0:
        raise InvalidInput(f"tol must be positive, got {tol}")
    if not 0.0 < greed <= 1.0:
        raise InvalidInput(f"greed must lie in (0, 1], got {greed}")
    listener = listening(monitor)
    with listener, threads.one_blas_thread():
        start = listener.resume() if start is None else start
        variables = start.variables if isinstance(start, Solution) else start
        search = Search(problem, name, tol, variables, listener, fixed_point, greed, seed)
        return search.run(max_iter, working_set)


def _centred(gram: Any) -> tuple[Any, Array]:
    """The matrix of the points moved so that their mean in feature space is zero, and K's mean row (n,).

    A free bias takes up the shift: for sums of zero the outputs differ by the mean row times c alone.  Points far from
    the origin, which are all alike to the steps, converge only then.
    """
    K = np.array(gram.block(None, None), dtype=np.float64)
    mean = K.mean(axis=0)
    K -= mean[:, None]
    K -= mean[None]
    K += mean.mean()
    return Gram(Precomputed(), 0.5 * (K + K.T)), mean


class Search:
    """The state of one solve."""

    def __init__(
        self,
        problem: MulticlassProblem,
        name: str,
        tol: float,
        start: Array | None,
        monitor: Monitor,
        fixed_point: bool,
        greed: float,
        seed: int,
    ) -> None:
        self.problem, self.name, self.tol, self.monitor = problem, name, tol, monitor
        self.gram: Any
        self.mean: Array | None
        self.free = problem.bias == "free"
        self.gram, self.mean = _centred(problem.gram) if self.free and problem.n <= WHOLE else (problem.gram, None)
        self.fixed_point, self.greed = fixed_point, greed
        self.n, self.k = problem.n, problem.k
        diagonal = np.asarray(self.gram.diagonal(), dtype=np.float64)
        size = float(diagonal.mean())
        self.constant = size if self.free and size > 0 else 1.0 if self.free else problem.constant
        self.diagonal = np.maximum(diagonal + self.constant, TINY * max(size, 1e-300))
        self.random = np.random.default_rng(seed)
        self.began = self.reported = time.perf_counter()
        self.steps = self.rounds = self.values = 0
        self.a = problem.feasible(np.zeros((self.n, self.k)) if start is None else start)
        self.b = np.zeros(self.k)
        self.psi = np.empty(self.n)
        self.primal = self.gap = self.violation = np.inf
        self.exact = True  # whether F was just computed from c
        self.held: NDArray[Any] | None = self.gram.matrix if isinstance(self.gram, DenseGram) else None
        self.whole: Any = None
        self._compute_outputs()

    # Outputs ---------------------------------------------------------------------------------------------------

    def _compute_outputs(self) -> None:
        """c, its sums and F from the variables."""
        self.c = self.problem.coefficients(self.a)
        self.F = np.tile(self.b, (self.n, 1))
        self._add(np.flatnonzero(self.c.any(axis=1)), self.c)
        self.exact = True

    def _add(self, points: Index, change: Array) -> None:
        """F += (K + constant)[:, points] change[points]; change is (n, k)."""
        if points.size:
            part = np.ascontiguousarray(change[points])
            self.F += self.gram.columns_dot(points, part)
            self.F += self.constant * part.sum(axis=0)
            self.values += self.n * points.size
            self.exact = False

    def _block(self, W: Index) -> NDArray[Any]:
        """K[W][:, W]."""
        if self.held is None:
            return np.asarray(self.gram.block(W, W))
        K = np.empty((W.size, W.size), dtype=self.held.dtype)
        threads.run(gather, [(self.held, W, first, last, K) for first, last in threads.split(W.size)])
        return K

    def _survey(self) -> None:
        """Violations of all points, primal value and gap."""
        p = self.problem
        parts = threads.run(
            survey,
            [
                (p.code, p.margin, self.F, self.a, p.y, p.box, first, last, self.psi)
                for first, last in threads.split(self.n, None if self.n * self.k > 20_000 else 1)
            ],
        )
        loss, gap, product = (float(sum(values)) for values in zip(*parts))
        self.violation = float(self.psi.max())
        self.sums = self.c.sum(axis=0)
        self.pull = self.constant * self.sums if self.free else np.zeros(self.k)
        # Of the proximal problem the gap holds at once; what the sums still miss is counted on top.
        missing = float(self.sums @ (self.b + self.pull)) if self.free else 0.0
        self.primal = 0.5 * (product - missing) + loss
        self.gap = gap + abs(missing)

    def _small(self, gap: float, share: float = 1.0) -> bool:
        """Whether gap <= share tol (|P| + |D|) / 2."""
        return gap <= 0.5 * share * self.tol * (abs(self.primal) + abs(self.primal - gap))

    # Rounds ----------------------------------------------------------------------------------------------------

    def run(self, max_iter: int, working_set: int | None) -> Solution:
        """Rounds until convergence, a limit or an interruption."""
        limit = max_iter if max_iter >= 0 else int(np.iinfo(np.int64).max)
        stopped = self._rounds(limit, working_set or (self.n if self.n <= WHOLE else WORKING_SET), working_set)
        return self.solution(stopped)

    def _rounds(self, limit: int, size: int, fixed: int | None) -> Stopped:
        last: Index = np.empty(0, dtype=np.intp)
        best, highest, waited = np.array([np.inf, np.inf]), -np.inf, 0
        progress = PROGRESS[np.dtype(self.gram.dtype).itemsize]
        largest = LARGEST_OF_LEE_LIN_WAHBA if self.problem.code == LEE_LIN_WAHBA else LARGEST_WORKING_SET
        while True:
            self._survey()
            if self._converged():
                return "converged"
            if self.free and self.violation <= np.abs(self.pull).max():
                self.b += self.pull
                self.F += self.pull
                self._survey()
            now, dual = np.array([self.violation, self.gap]), self.primal - self.gap
            risen = not dual <= highest + progress * abs(dual)
            waited = 0 if risen or (now < 0.95 * best).any() else waited + 1
            best, highest = np.minimum(best, now), max(highest, dual)
            if waited > PATIENCE or self.violation == 0.0:
                return "stalled"
            if self.steps >= limit:
                return "iterations"
            if not self._report():
                return self.monitor.stopped or "interrupted"
            if size >= self.n:
                self._solve_whole(limit)
                continue
            last, crowded = self._choose(last, size)
            self._solve_set(last, limit)
            if crowded and fixed is None:
                size = min(largest, self.n, size + size // 2)

    def _converged(self) -> bool:
        """Whether the gap is closed for outputs computed afresh and, with a free bias, for sums of zero."""
        if not self._small(self.gap):
            return False
        if self.free and self.sums.any():
            self._balance()
        if not self.exact and self.gram.dtype != np.float64:
            self._compute_outputs()
            self._survey()
        return self._small(self.gap)

    def _balance(self) -> None:
        """Make the sums zero, keeping the outputs' bias where it is."""
        before = self.c
        self.a = balanced(self.problem, self.a, self.F)
        self.c = self.problem.coefficients(self.a)
        change = self.c - before
        self.b += self.pull
        self.F += self.pull  # which the change of the sums takes away again
        self._add(np.flatnonzero(change.any(axis=1)), change)
        self._survey()

    def _choose(self, last: Index, size: int) -> tuple[Index, bool]:
        """Working set: free points of the last one, the worst, and a sample of all that violate.

        Also says whether the free points had to be cut to half of the set, which then is too small.
        """
        chosen = np.zeros(self.n, dtype=bool)
        a = self.a[last]
        free = last[((a > 0) & (a < self.problem.box[last][:, None])).any(axis=1)]
        crowded = free.size > size // 2
        if crowded:
            free = self.random.choice(free, size // 2, replace=False, shuffle=False)
        chosen[free] = True
        chosen[np.argpartition(self.psi, -min(32, self.n))[-min(32, self.n) :]] = True
        room = size - int(np.count_nonzero(chosen))
        found = np.flatnonzero(self.psi > INNER * INNER * self.violation)
        if found.size > room:
            found = self.random.choice(found, max(room, 1), replace=False, shuffle=False)
        chosen[found] = True
        return np.flatnonzero(chosen), crowded

    def _minimise(self, K: Any, G: NDArray[Any], a: Array, W: Any, most: int) -> None:
        """Steps on the points at W."""
        p = self.problem
        done, _ = minimise_points(
            K, self.constant, self.diagonal[W], G, a, p.y[W], p.box[W], p.code, p.margin, self.greed,
            self.fixed_point, INNER * self.violation, most,
        )  # fmt: skip
        self.steps += done
        self.rounds += 1

    def _own_outputs(self, F: Array, y: Index, dtype: Any = np.float64) -> NDArray[Any]:
        """Outputs (k, m) in the form of the steps: Crammer-Singer's have the margin subtracted at the own class."""
        G = np.ascontiguousarray(F.T, dtype=dtype)
        if self.problem.code == CRAMMER_SINGER:
            G[y, np.arange(y.size)] -= self.problem.margin
        return G

    def _solve_set(self, W: Index, limit: int) -> None:
        """Optimise the variables of W and carry the change to all points."""
        K = self._block(W)
        a = self.a[W]
        self.values += W.size * W.size
        G = self._own_outputs(self.F[W], self.problem.y[W], K.dtype)  # which the change of F replaces in full precision
        self._minimise(K, G, a, W, int(min(STEPS_PER_POINT * W.size, limit - self.steps)))
        moved = W[(a != self.a[W]).any(axis=1)]
        self.a[W] = a
        before = self.c
        self.c = self.problem.coefficients(self.a)
        self._add(moved, self.c - before)

    def _solve_whole(self, limit: int) -> None:
        """The same with all points in the set, whose matrix is formed once."""
        if self.whole is None:
            self.whole = np.ascontiguousarray(self.gram.block(None, None))
            self.values += self.n * self.n
        y = self.problem.y
        G = self._own_outputs(self.F, y)
        self._minimise(self.whole, G, self.a, slice(None), int(min(STEPS_PER_POINT * self.n, limit - self.steps)))
        self.F = np.ascontiguousarray(G.T)
        if self.problem.code == CRAMMER_SINGER:
            self.F[np.arange(self.n), y] += self.problem.margin
        self.c = self.problem.coefficients(self.a)
        self.exact = False

    # What comes out --------------------------------------------------------------------------------------------

    def _report(self) -> bool:
        """Tell the monitor, at most a few times a second unless it is attended; whether to go on."""
        now = time.perf_counter()
        if not self.monitor.attended and (self.monitor is SILENT or now - self.reported < SECONDS_BETWEEN_REPORTS):
            return self.monitor.go_on()
        self.reported = now
        return self.monitor.watch(
            self.steps,
            self.primal,
            self.primal - self.gap,
            snapshot=lambda: self.solution("interrupted"),
            violation=self.violation,
            support=int(np.count_nonzero(self.c.any(axis=1))),
        )

    def solution(self, stopped: Stopped) -> Solution:
        """The present point with its certificate; with a free bias its sums are made zero first."""
        if self.free and self.sums.any():
            self._balance()
        shift = np.zeros(self.k) if self.mean is None else self.mean @ self.c
        f0 = self.F - self.b - self.constant * self.c.sum(axis=0) + shift
        certificate: MulticlassCertificate = self.problem.certificate(self.a, f0, self.b - shift)
        return Solution(
            self.c.copy(),
            certificate.bias,
            self.a.copy(),
            certificate.primal,
            certificate.dual,
            certificate.gap,
            self.steps,
            stopped,
            time.perf_counter() - self.began,
            self.name,
            history=tuple(self.monitor.history),
            details={"f0": f0, "violation": self.violation, "rounds": self.rounds, "kernel_values": self.values},
        )
