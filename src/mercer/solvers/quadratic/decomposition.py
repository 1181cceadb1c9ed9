"""Decomposition: the exact solver of every support-vector problem whose equalities are group sums.

Working sets (`mercer.solvers.working_sets`) on the quadratic program in signed variables: a set is optimised by pair
steps (`mercer.solvers.quadratic.pair_steps`) until no group has a variable that may rise whose gradient is below that
of one that may fall by more than tol (`mercer.solvers.quadratic.violations`); where that takes long, all free variables
of the set move at once (`mercer.solvers.quadratic.faces`).

Values are computed in tiles and forgotten where that is cheaper than keeping them; the Gram operator decides.  Small
problems are one working set: rows are computed when they are first needed, or the whole matrix is formed.
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.gram import GramOperator, RowsOnDemand, stretches_of
from mercer.problems.base import PlainProgram, Problem
from mercer.problems.certificate import Certificate, Uncertainty
from mercer.problems.program import QuadraticProgram
from mercer.solvers.contract import Acceptance, require, starting_variables
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.quadratic.faces import Faces
from mercer.solvers.quadratic.pair_steps import minimise_pairs, minimise_pairs_on_points, minimise_singles
from mercer.solvers.quadratic.violations import free_gradients, survey, violators
from mercer.solvers.solution import Solution
from mercer.solvers.verification import inside, predicted, recomputed, sampled
from mercer.solvers.working_sets import LARGEST_WORKING_SET, WHOLE, WORKING_SET, Search

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Parts = tuple[Array, Array, Array, Array, Index]

NAME = "decomposition"
ACCEPTS = "boxes and fixed sums of groups of variables: all machines without basis functions"
SECTION = "Rifkin 2002, section 2.4; Schoelkopf and Smola 2002, section 10.4"
# With so many free points that no working set holds them, up to so many points are solved as a whole after all.
WHOLE_IF_CROWDED = 10_000
# Of so many points one must be free for that: of fewer, only some of the rows would ever be used.
CROWDED = 4
# After so many steps for each of all points it costs less to move all free variables of the whole matrix at once.
LONG = 200
# The share of the memory for kernel values that the matrix of a working set may take.
SHARE_OF_SET = 0.25


def accepts(problem: Any) -> Acceptance:
    """Problems whose equalities are sums over groups of variables, with the same points in every layer."""
    if not isinstance(problem, Problem | QuadraticProgram):
        return Acceptance(False, f"it solves quadratic programs, not {type(problem).__name__}")
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
    of_margin: tuple[float, float] | None = None,
) -> Solution:
    """Solve to a violation of at most `tol` (LIBSVM's eps), or to a relative gap of `gap_tol` when that is given.

    `max_iter` bounds the number of pair steps (-1: no bound).  `working_set` fixes the number of points worked on at a
    time.  `of_margin` is a tolerance in units of the margin, where that is below one, and the least that may come of
    it; it follows `tol` where that is met.  The solution's details hold f0 = K c at the training points, the violation,
    the number of rounds and of kernel values computed.
    """
    require(accepts(problem), NAME, tol=tol)
    whole = problem if isinstance(problem, Problem) else PlainProgram(problem)
    listener = listening(monitor)
    with listener, threads.one_blas_thread():
        strategy = GroupSums(whole, tol, starting_variables(whole.program(), start, monitor))
        tightened = None if of_margin is None else partial(strategy.tightened, *of_margin)
        search = Search(strategy, tol=tol, gap_tol=gap_tol, monitor=listener, seed=seed, tightened=tightened)
        return search.run(max_iter, working_set)


class GroupSums:
    """Variables s (layers, n) in boxes, whose sums over groups are fixed; F = K c (n,) with c the sum of a point's."""

    name = NAME
    finishes = True
    exact = False

    def __init__(self, problem: Problem, tol: float, start: Array | None, outputs: Array | None = None) -> None:
        """`outputs` (n,) are K c at the start, where they are known."""
        program = problem.program()
        self.problem, self.program, self.tol = problem, program, tol
        self.gram: Any = program.gram
        self.n = program.n
        self.largest_set = self._largest_set()
        self.faces = Faces(self._largest_face())
        shape = (program.size // self.n, self.n)
        self.lower, self.upper = program.lower.reshape(shape), program.upper.reshape(shape)
        self.linear, self.ridge = program.linear.reshape(shape), program.ridge.reshape(shape)
        assert program.groups is not None
        self.group = np.ascontiguousarray(program.groups, dtype=np.intp).reshape(shape)
        self.groups = program.d.size
        self.constant = program.constant
        self.diagonal = np.asarray(self.gram.diagonal(), dtype=np.float64) + self.constant
        self.G = np.empty(shape)
        self.extremes = np.empty((self.groups, 4))
        self.found: Index = np.empty(self.n, dtype=np.intp)
        self.count = 0
        self.matrix: Any = None
        self.kernel_values = 0
        self.violation = np.inf
        self.s = np.array(program.start() if start is None else start, dtype=np.float64).reshape(shape)
        self.F = np.zeros(self.n) if outputs is None else outputs.copy()
        c = self.coefficients()
        support = np.flatnonzero(c)
        if support.size and outputs is None:
            self._add(support, c[support])

    def _largest_set(self) -> int:
        """As many points as a working set may have for its matrix to take a part of the memory only."""
        if not isinstance(self.gram, GramOperator):
            return LARGEST_WORKING_SET
        room = SHARE_OF_SET * self.gram.plan().budget / self.gram.dtype.itemsize
        return int(min(LARGEST_WORKING_SET, max(WORKING_SET, np.sqrt(room))))

    def _largest_face(self) -> int:
        """As many free variables as the matrix of a face may have, which is in float64, in the same part."""
        if not isinstance(self.gram, GramOperator):
            return LARGEST_WORKING_SET
        room = SHARE_OF_SET * self.gram.plan().budget / np.dtype(np.float64).itemsize
        return int(min(LARGEST_WORKING_SET, np.sqrt(room)))

    def _add(self, points: Index, change: Array) -> None:
        """F += (K + constant)[:, points] change."""
        self.F += self.gram.columns_dot(points, change)
        if self.constant:
            self.F += self.constant * float(change.sum())
        self.kernel_values += self.n * points.size

    # Violations ------------------------------------------------------------------------------------------------

    def survey(self) -> None:
        """Gradients of all variables, and the points whose variables violate by more than half of tol."""
        survey(self.F, self.s, self._program(), self.G, self.extremes)
        slack = 0.5 * self.tol if self.groups else self.tol
        self.count, worst = violators(self.G, self.s, self._program(), self._levels(), slack, self.found)
        gaps = self.extremes[:, 2] - self.extremes[:, 0]
        self.violation = max(0.0, float(gaps.max())) if self.groups else worst

    def _levels(self) -> Array:
        """The guess of each group's multiplier: median gradient of its free variables, between the two extremes."""
        theta, scratch = np.zeros(self.groups), np.empty(self.s.size)
        for g in range(self.groups):
            count = free_gradients(self.G, self.s, self._program(), g, scratch)
            low, high = sorted((self.extremes[g, 0], self.extremes[g, 2]))
            middle = 0.5 * (low + high) if np.isfinite(low + high) else 0.0
            level = float(np.median(scratch[:count])) if count else middle
            theta[g] = level if low <= level <= high else middle
        return theta

    def violators(self) -> Index:
        """Points with a variable on the wrong side of its group's level."""
        return self.found[: self.count]

    def worst(self) -> Index:
        """The worst pair of each group."""
        at = self.extremes[:, [1, 3]].ravel().astype(np.intp)
        return at[at >= 0] % self.n

    def free(self, points: Index) -> NDArray[np.bool_]:
        """Which points have a variable strictly inside its bounds."""
        s = self.s[:, points]
        return np.asarray(((self.lower[:, points] < s) & (s < self.upper[:, points])).any(axis=0))

    def distances(self) -> tuple[float, ...]:
        """The violation alone."""
        return (self.violation,)

    def tightened(self, tol: float, least: float) -> float:
        """`tol` in units of the margin: c'Kc over the sum of the sizes of the variables, without any error."""
        size = float(np.abs(self.s).sum())
        margin = float(self.coefficients() @ self.F) / size if size > 0.0 else 1.0
        self.tol = max(least, tol * min(1.0, margin))
        return self.tol

    def objective(self) -> float:
        """Value of the program at the present variables."""
        value = 0.5 * float(self.coefficients() @ self.F) + float(np.vdot(self.linear, self.s))
        return value + 0.5 * float(np.vdot(self.ridge, self.s * self.s))

    # Steps -----------------------------------------------------------------------------------------------------

    def at_once(self) -> bool:
        """Few points, or rows computed when they are first needed."""
        return self.n <= WHOLE or self._rows_on_demand() is not None

    def goes_whole(self, short: bool, steps: float) -> bool:
        """Where the whole matrix is small enough to be formed, and a good part of it is used or sets take long."""
        free = int(np.count_nonzero(self.free(np.arange(self.n))))
        if not (self.n <= CROWDED * free if short else steps > LONG and free <= self.faces.most):
            return False
        if stretches_of(self.gram) is not None:
            return True
        room = self.gram.plan().budget if isinstance(self.gram, GramOperator) else np.inf
        return self.n <= WHOLE_IF_CROWDED and self.n**2 * self.gram.dtype.itemsize <= room

    def _rows_on_demand(self) -> RowsOnDemand | None:
        """The points behind the matrix, where rows are best computed from them one by one and no constant is added."""
        if self.groups == 0 or self.constant or not isinstance(self.gram, GramOperator):
            return None
        rows = self.gram.rows_on_demand()
        return rows if rows is not None and rows.suit(*rows.shape) else None

    def solve(self, W: Index | None, tol: float, most: int) -> tuple[int, float]:
        """Pair steps on the variables of W, and what they change at all points."""
        if W is None:
            return self._solve_all(tol, most)
        F, s = self.F[W], self.s[:, W]
        before = s.sum(axis=0)
        K = self._with_constant(self.gram.block(W, W))
        self.kernel_values += W.size * W.size
        self.faces.begin()
        outcome = self._minimise(K, self.diagonal[W], F, s, self._program(W), tol, most)
        change = s.sum(axis=0) - before
        self.s[:, W] = s
        moved = np.flatnonzero(change)
        if moved.size:
            self._add(W[moved], change[moved])
        return outcome

    def _solve_all(self, tol: float, most: int) -> tuple[int, float]:
        """Pair steps on all variables; rows come from the points when they are needed, or from the whole matrix."""
        rows = self._rows_on_demand()
        if rows is not None:
            before = self.s.any(axis=0)
            outcome = minimise_pairs_on_points(
                rows.columns(),
                (0, self.n, self.n),
                self.diagonal,
                self.F,
                self.s,
                self._program(),
                self.groups,
                tol,
                most,
            )
            self.kernel_values += self.n * int(np.count_nonzero(before | self.s.any(axis=0)))
            return outcome
        stored = stretches_of(self.gram)
        if stored is not None:
            return minimise_pairs(*stored, self.diagonal, self.F, self.s, self._program(), self.groups, tol, most)
        if self.matrix is None:
            self.matrix = self._with_constant(np.ascontiguousarray(self.gram.block(None, None)))
            self.kernel_values += self.n * self.n
        return self._minimise(self.matrix, self.diagonal, self.F, self.s, self._program(), tol, most)

    def _with_constant(self, K: NDArray[Any]) -> NDArray[Any]:
        """Kernel values with the constant of a penalised bias."""
        return K + K.dtype.type(self.constant) if self.constant else K

    def _program(self, W: Index | None = None) -> Parts:
        """Linear term, ridge, bounds and groups, each (layers, m), of the points W."""
        if W is None:
            return self.linear, self.ridge, self.lower, self.upper, self.group
        return self.linear[:, W], self.ridge[:, W], self.lower[:, W], self.upper[:, W], self.group[:, W]

    def _minimise(
        self, K: Any, diagonal: Array, F: Array, s: Array, program: Parts, tol: float, most: int
    ) -> tuple[int, float]:
        """Steps on variables s (layers, m) whose matrix is K (m, m), and the minimum over the free ones when due."""
        steps, faces = 0, self.faces
        while True:
            burst = int(min(faces.due_in(s, program), most - steps))
            done, violation = self._steps(K, diagonal, F, s, program, tol, burst)
            steps += done
            faces.spent += done
            if violation <= tol or steps >= most or done < burst:
                return steps, violation
            if faces.useful(violation):
                faces.minimise(K, F, s, program, self.groups, tol)

    def _steps(
        self, K: Any, diagonal: Array, F: Array, s: Array, program: Parts, tol: float, most: int
    ) -> tuple[int, float]:
        """Pair steps, or steps on single variables where no sums are fixed."""
        if self.groups == 0:
            return minimise_singles(K, diagonal, F, s, program, tol, most)
        m = s.shape[1]
        return minimise_pairs(K, (0, m, m), diagonal, F, s, program, self.groups, tol, most)

    # Certificates ----------------------------------------------------------------------------------------------

    def settle(self) -> bool:
        """Nothing: pair steps keep all sums."""
        return False

    def certificate(self, aim: float | None = None, uncertainty: Uncertainty | None = None) -> Certificate:
        """That of the problem."""
        return self.problem.certificate(self.s.ravel(), self._f0(), aim=aim, uncertainty=uncertainty)

    def predicted(self, steps: int, dtype: Any) -> Uncertainty:
        """What rounding lets one expect."""
        return predicted(self.coefficients(), self.diagonal, inside(self.program, self.s.ravel()), steps, dtype)

    def sampled(self, seed: int) -> Uncertainty:
        """What a random sample of F shows."""
        free = inside(self.program, self.s.ravel())
        return sampled(self.gram, self.coefficients(), self._f0(), self.diagonal - self.constant, free, seed)

    def recompute(self) -> None:
        """F = (K + constant) c in float64."""
        c = self.coefficients()
        self.matrix = None  # the products need its memory
        self.F = recomputed(self.gram, c) + self.constant * float(c.sum())
        self.kernel_values += self.n * int(np.count_nonzero(c))

    def use(self, gram: Any) -> None:
        """Go on with another operator for the same values."""
        self.gram, self.matrix = gram, None

    def coefficients(self) -> Array:
        """Coefficients c (n,): the sum of each point's variables."""
        return np.asarray(self.s.sum(axis=0))

    def variables(self) -> Array:
        """The signed variables (N,)."""
        return self.s.ravel().copy()

    def _f0(self) -> Array:
        """K c without the constant of a penalised bias."""
        return self.F - self.constant * float(self.s.sum()) if self.constant else self.F

    def expansion(self) -> Array:
        """K c (n,) at the training points."""
        return self._f0().copy()

    def facts(self) -> dict[str, Any]:
        """How often all free variables of a set were moved at once."""
        return {"faces": self.faces.count}
