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
from mercer.gram import GramOperator, RowsOnDemand, streamed, stretches_of
from mercer.problems.base import PlainProgram, Problem
from mercer.problems.certificate import Certificate, Uncertainty
from mercer.problems.program import QuadraticProgram
from mercer.solvers.contract import Acceptance, require, starting_variables
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.quadratic.faces import Faces
from mercer.solvers.quadratic.growing_rows import minimise_on_growing_rows
from mercer.solvers.quadratic.pair_steps import minimise_pairs, minimise_pairs_on_points, minimise_singles
from mercer.solvers.quadratic.pair_steps_together import Crew
from mercer.solvers.quadratic.rooms import BlockRows
from mercer.solvers.quadratic.shrinking import FEWEST, MOST, WORTH, Active, can_shrink, may_move, part_of
from mercer.solvers.quadratic.violations import FEW, counterparts, free_gradients, survey, violators
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
WHOLE_IF_CROWDED = 16_000
# Of so many points one must be free for that: of fewer, only some of the rows would ever be used.
CROWDED = 4
# After so many steps for each of all points it costs less to move all free variables of the whole matrix at once.
LONG = 200
# Rows of expensive kernels are kept while the points they belong to are found; after so many steps a point, all are.
GROWN = 20
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
        start_at = starting_variables(whole.program(), start, monitor)
        strategy = GroupSums(whole, tol, start_at, shrinks=gap_tol is None)
        tightened = None if of_margin is None else partial(strategy.tightened, *of_margin)
        search = Search(strategy, tol=tol, gap_tol=gap_tol, monitor=listener, seed=seed, tightened=tightened)
        return search.run(max_iter, working_set)


class GroupSums:
    """Variables s (layers, n) in boxes, whose sums over groups are fixed; F = K c (n,) with c the sum of a point's."""

    name = NAME
    finishes = True
    exact = False

    def __init__(
        self,
        problem: Problem,
        tol: float,
        start: Array | None,
        outputs: Array | None = None,
        *,
        shrinks: bool = False,
    ) -> None:
        """`outputs` (n,) are K c at the start, where they are known; `shrinks`: points may be left out of rounds."""
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
        self.found = self.extreme = self.others = np.empty(0, dtype=np.intp)
        self.sides = np.zeros((self.groups, 2), dtype=np.intp)
        self.focus: Active | None = None
        self.shrinks = shrinks and can_shrink(self.gram, self.n)
        self.regrets, self.focus_value = 0, np.inf
        self.crew = Crew()
        self.matrix: Any = None
        self.place: Any = None
        self.blocks: BlockRows | None = None
        self.grown, self.outgrown = 0, False
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
        """F += (K + constant)[:, points] change, at the active points."""
        if self.focus is None:
            self.F += self.gram.columns_dot(points, change) + self.constant * float(change.sum())
            self.kernel_values += self.n * points.size
        else:
            rows = self.focus.points
            self.F[rows] += self.focus.product(points, change) + self.constant * float(change.sum())
            self.kernel_values += rows.size * points.size

    # Points left out -------------------------------------------------------------------------------------------

    def _shrink(self, G: Array, s: Array, program: Parts, points: Index | None) -> None:
        """Leave out the points, of those surveyed, that can be in no violating pair, where they are many."""
        if not self.shrinks or self.violation <= self.tol:
            return
        m = s.shape[1]
        chosen = np.empty(m, np.intp)
        chosen = chosen[: may_move(G, s, program, self.extremes, self.violation, chosen)]
        if m < FEWEST or chosen.size > WORTH * m or not chosen.size:
            return
        self.focus_value = self.objective()
        self.focus = Active(self.gram, chosen if points is None else points[chosen], self._program(), self.focus)

    def _complete(self) -> None:
        """Bring the outputs of points that were left out up to date."""
        if self.focus is not None:
            self.kernel_values += self.focus.complete(self.F, self.constant)

    def _all_again(self) -> None:
        """All points are active again."""
        self._complete()
        self.focus = None

    # Violations ------------------------------------------------------------------------------------------------

    def survey(self) -> None:
        """Gradients of all active variables, and the points whose variables violate by more than half of tol."""
        self._survey()
        if self.focus is not None and self.violation <= self.tol:
            self._all_again()
            self._survey()
            self.regrets += self.violation > self.tol
            self.shrinks = self.shrinks and self.regrets < MOST

    def _survey(self) -> None:
        points, program = None, self._program()
        F, s, G = self.F, self.s, self.G
        if self.focus is not None:
            points, program = self.focus.points, self.focus.program
            F, s, G = F[points], np.take(s, points, axis=1), np.empty((len(s), points.size))
        survey(F, s, program, G, self.extremes)
        slack = 0.5 * self.tol if self.groups else self.tol
        levels = self._levels(G, s, program)
        found = np.empty(s.shape[1], np.intp)
        count, worst = violators(G, s, program, levels, slack, found, self.sides)
        gaps = self.extremes[:, 2] - self.extremes[:, 0]
        self.violation = max(0.0, float(gaps.max())) if self.groups else worst
        at = self.extremes[:, [1, 3]].ravel().astype(np.intp)
        self.extreme, self.found = at[at >= 0] % s.shape[1], found[:count]
        self.others = found[:0]
        if (self.sides.min(axis=1) < FEW * self.sides.max(axis=1)).any():
            others = np.empty(s.shape[1], np.intp)
            self.others = others[: counterparts(G, s, program, levels, self.sides, others)]
        if points is not None:
            self.extreme, self.found, self.others = points[self.extreme], points[self.found], points[self.others]
        self._shrink(G, s, program, points)

    def _levels(self, G: Array, s: Array, program: Parts) -> Array:
        """The guess of each group's multiplier: median gradient of its free variables, between the two extremes."""
        theta, scratch = np.zeros(self.groups), np.empty(s.size)
        for g in range(self.groups):
            count = free_gradients(G, s, program, g, scratch)
            low, high = sorted((self.extremes[g, 0], self.extremes[g, 2]))
            middle = 0.5 * (low + high) if np.isfinite(low + high) else 0.0
            level = float(np.median(scratch[:count])) if count else middle
            theta[g] = level if low <= level <= high else middle
        return theta

    def violators(self) -> Index:
        """Points with a variable on the wrong side of its group's level."""
        return self.found

    def counterparts(self) -> Index:
        """Where nearly all violators of a group are on one side of its level: its free points on the other."""
        return self.others

    def worst(self) -> Index:
        """The worst pair of each group."""
        return self.extreme

    def free(self, points: Index) -> NDArray[np.bool_]:
        """Which points have a variable strictly inside its bounds."""
        lower, s, upper = (np.take(part, points, axis=1) for part in (self.lower, self.s, self.upper))
        return np.asarray(((lower < s) & (s < upper)).any(axis=0))

    def distances(self) -> tuple[float, ...]:
        """The violation alone."""
        return (self.violation,)

    def tightened(self, tol: float, least: float) -> float:
        """`tol` in units of the margin: c'Kc over the sum of the sizes of the variables, without any error."""
        self._complete()
        size = float(np.abs(self.s).sum())
        margin = float(self.coefficients() @ self.F) / size if size > 0.0 else 1.0
        self.tol = max(least, tol * min(1.0, margin))
        return self.tol

    def objective(self) -> float:
        """Value of the program at the present variables."""
        if self.focus is not None:
            return self.focus_value
        value = 0.5 * float(self.coefficients() @ self.F) + float(np.vdot(self.linear, self.s))
        return value + 0.5 * float(np.vdot(self.ridge, self.s * self.s))

    # Steps -----------------------------------------------------------------------------------------------------

    def at_once(self) -> bool:
        """Few points, or rows computed when they are first needed."""
        return self.n <= WHOLE or self._rows_on_demand() is not None or self._keeps_rows()

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

    def _keeps_rows(self) -> bool:
        """Whether the rows in use are worth keeping, and there is room for all of them."""
        if self.groups != 1 or self.constant or not isinstance(self.gram, GramOperator) or self.n <= WHOLE:
            return False
        fits = self.n <= WHOLE_IF_CROWDED and self.n**2 * self.gram.dtype.itemsize <= self.gram.plan().budget
        return fits and self.gram.worth_keeping()

    def solve(self, W: Index | None, tol: float, most: int) -> tuple[int, float]:
        """Pair steps on the variables of W, and what they change at all points."""
        if W is None:
            return self._solve_all(tol, most)
        F, s = self.F[W], np.take(self.s, W, axis=1)
        first, before = s.copy(), s.sum(axis=0)
        K = self._with_constant(self.gram.block(W, W))
        self.kernel_values += W.size * W.size
        self.faces.begin()
        outcome = self._minimise(K, self.diagonal[W], F, s, self._program(W), tol, most)
        change = s.sum(axis=0) - before
        self.s[:, W] = s
        moved = np.flatnonzero(change)
        if moved.size:
            outputs = self.F[W]
            self._add(W[moved], change[moved])
            if self.focus is not None:
                # K is symmetric: c'Kc / 2 grows by that much.
                self.focus_value += 0.5 * float(change @ (outputs + self.F[W]))
        if self.focus is not None:
            rise = s - first
            self.focus_value += float(np.vdot(rise, self.linear[:, W] + 0.5 * self.ridge[:, W] * (s + first)))
        return outcome

    def _solve_all(self, tol: float, most: int) -> tuple[int, float]:
        """Pair steps on all variables; rows come from the points when they are needed, or from the whole matrix."""
        self._all_again()
        rows = self._rows_on_demand()
        if rows is not None:
            before = self.s.any(axis=0)
            if self.matrix is None:
                self.matrix, self.place = np.empty((self.n, self.n), rows.dtype), np.full(self.n, -1, np.intp)
            outcome = minimise_pairs_on_points(
                rows.columns(),
                self.matrix,
                self.place,
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
        done = 0
        if not self.outgrown and self._keeps_rows():
            done, violation = self._solve_on_blocks(tol, most)
            if not self.outgrown:
                return done, violation
            self.blocks = None
        if self.matrix is None:
            self.matrix = self._with_constant(self._whole())
            self.kernel_values += self.n * self.n
        rest, diagonal = (self.F, self.s, self._program(), tol, most - done), self.diagonal
        more, violation = self._minimise(self.matrix, diagonal, *rest)
        return done + more, violation

    def _whole(self) -> NDArray[Any]:
        """The whole matrix: where it is held, that array itself."""
        held = self.gram.held_values() if isinstance(self.gram, GramOperator) else None
        if isinstance(held, np.ndarray) and held.flags.c_contiguous:
            return np.asarray(held)
        return np.ascontiguousarray(self.gram.block(None, None))

    def _solve_on_blocks(self, tol: float, most: int) -> tuple[int, float]:
        """Pair steps on rows that are kept once they are computed; `outgrown` where that takes long."""
        if self.blocks is None:
            self.blocks = BlockRows(streamed(self.gram), self.n)
        whole = (0, self.n, self.n)
        place = self.blocks.rooms.of(whole, self.n)[1]
        before, left = place.max(), GROWN * self.n - self.grown
        rest = self.diagonal, self.F, self.s, self._program(), self.groups, tol, min(most, left)
        done, violation = minimise_on_growing_rows(self.blocks, whole, *rest)
        self.grown += done
        self.kernel_values += self.n * int(place.max() - before)
        self.outgrown = violation > tol and done == left
        return done, violation

    def _with_constant(self, K: NDArray[Any]) -> NDArray[Any]:
        """Kernel values with the constant of a penalised bias."""
        return K + K.dtype.type(self.constant) if self.constant else K

    def _program(self, W: Index | None = None) -> Parts:
        """Linear term, ridge, bounds and groups, each (layers, m), of the points W."""
        if W is None:
            return self.linear, self.ridge, self.lower, self.upper, self.group
        return part_of((self.linear, self.ridge, self.lower, self.upper, self.group), W)

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
        return self.crew.minimise(K, diagonal, F, s, program, self.groups, tol, most)

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
        self._complete()
        free = inside(self.program, self.s.ravel())
        return sampled(self.gram, self.coefficients(), self._f0(), self.diagonal - self.constant, free, seed)

    def recompute(self) -> None:
        """F = (K + constant) c in float64."""
        c = self.coefficients()
        self.focus = self.matrix = self.blocks = None  # the products need their memory
        self.F = recomputed(self.gram, c) + self.constant * float(c.sum())
        self.kernel_values += self.n * int(np.count_nonzero(c))

    def use(self, gram: Any) -> None:
        """Go on with another operator for the same values."""
        self._all_again()
        self.gram, self.matrix, self.blocks = gram, None, None

    def coefficients(self) -> Array:
        """Coefficients c (n,): the sum of each point's variables."""
        return np.asarray(self.s.sum(axis=0))

    def variables(self) -> Array:
        """The signed variables (N,)."""
        return self.s.ravel().copy()

    def _f0(self) -> Array:
        """K c without the constant of a penalised bias, at all points.

        Nothing changes by it: somebody who asks at a time of his own must not change what comes out in the end.
        """
        F = self.F
        if self.focus is not None:
            F = F.copy()
            self.focus.add_missed(F, self.constant)
        return F - self.constant * float(self.s.sum()) if self.constant else F

    def expansion(self) -> Array:
        """K c (n,) at the training points."""
        return self._f0().copy()

    def facts(self) -> dict[str, Any]:
        """How often all free variables of a set were moved at once."""
        return {"faces": self.faces.count}
