"""Decomposition for the machines with one problem for all classes: one working set of points at a time.

State: variables a (n, k), coefficients c (n, k) and the outputs F (n, k) at all points.  The working sets are those of
`mercer.solvers.working_sets`; a set is optimised one point after the other and each exactly
(`mercer.solvers.multiclass.steps`), until the relative duality gap of all points is small enough.

The dual has one block of variables for each point, and nothing that couples the blocks but the kernel.  The classical
method for Crammer and Singer's steps on the worst point of all and updates all outputs after each step (Crammer and
Singer 2001; Fukumizu's slides); for Weston-Watkins' and Lee-Lin-Wahba's no decomposition was known when they were
published (Rifkin 2002, section 4.2.1).  Here a step costs |W| and the outputs of all points follow in one matrix
product.

A free bias b asks for sum_i c_im = 0.  It is found by the proximal point method: with b pulled towards b_t by
1/(2 rho) |b - b_t|^2 the problem is the one without bias for the kernel K + rho and the outputs shifted by b_t, and
b = b_t + rho sum_i c_i; then b_t becomes b.  Before the certificate is drawn, the sums are made exactly zero
(`mercer.solvers.multiclass.class_balance`).
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.arrays import Array, Index, Mask
from mercer.errors import InvalidInput
from mercer.gram import Gram, GramOperator
from mercer.kernels import Precomputed
from mercer.problems.certificate import Certificate, Uncertainty
from mercer.problems.multiclass import CRAMMER_SINGER, LEE_LIN_WAHBA, BredensteinerBennett, MulticlassProblem
from mercer.solvers.contract import Acceptance, Start, require, variables_of
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.multiclass.class_balance import balanced
from mercer.solvers.multiclass.steps import gather, minimise_points, survey
from mercer.solvers.point_blocks import GREED, PointBlocks
from mercer.solvers.solution import Solution
from mercer.solvers.verification import coarse, exact_product, predicted
from mercer.solvers.working_sets import LARGEST_WORKING_SET, WHOLE, Search

# Lee-Lin-Wahba's steps are many, most points are free, and larger sets cost each step more than they save in rounds.
LARGEST_OF_LEE_LIN_WAHBA = 1536
TINY = 1e-12


def accepts(problem: Any) -> Acceptance:
    """Every problem of `mercer.problems.multiclass` with a kernel matrix."""
    if isinstance(problem, MulticlassProblem | BredensteinerBennett):
        return Acceptance(True, "one block of variables for each point")
    return Acceptance(False, f"{type(problem).__name__} is not a large-margin machine with one problem for all classes")


def solve(
    problem: MulticlassProblem | BredensteinerBennett,
    *,
    tol: float = 1e-3,
    start: Start = None,
    monitor: Monitor | None = None,
    max_iter: int = -1,
    working_set: int | None = None,
    threshold: Literal["sort", "fixed point"] = "sort",
    greed: float = GREED,
    seed: int = 0,
) -> Solution:
    """Solve to a relative gap of `tol`.

    `start`: variables a (n, k) or an earlier solution.  `max_iter` bounds the number of steps on a point (-1: no
    bound), `working_set` fixes the number of points worked on at a time.  `threshold` is how a step of Crammer-Singer
    projects on a simplex: "sort" in O(k log k), or "fixed point", a contraction.  `greed` = 1 steps on the worst point
    of the working set; a smaller number on all points within that factor of the worst before violations are looked at
    again: the look costs k values for each point, a step only as many as there are classes that change, two or three.
    Values of a Bredensteiner-Bennett problem, which is solved as Weston-Watkins', are those of its own objective.
    """
    if not 0.0 < greed <= 1.0:
        raise InvalidInput(f"greed must lie in (0, 1], got {greed}")
    if threshold not in ("sort", "fixed point"):
        raise InvalidInput(f'threshold must be "sort" or "fixed point", got {threshold!r}')
    require(accepts(problem), "decomposition", tol=tol)
    listener = listening(monitor)
    with listener, threads.one_blas_thread():
        variables = variables_of(start, listener)
        strategy = AllClasses(problem.equivalent, tol, variables, threshold == "fixed point", greed)
        search = Search(strategy, tol=None, gap_tol=tol, monitor=listener, seed=seed)
        return search.run(max_iter, working_set).scaled(problem.scale)


def _centred(gram: Any) -> tuple[Any, Array]:
    """The matrix of the points moved so that their mean in feature space is zero, and K's mean row (n,).

    A free bias takes up the shift: for sums of zero the outputs differ by the mean row times c alone.  Points far from
    the origin, which are all alike to the steps, converge only then.
    """
    if coarse(gram):
        K = exact_product(gram, np.eye(gram.shape[0]))
    else:
        K = np.array(gram.block(None, None), dtype=np.float64)
    mean = K.mean(axis=0)
    K -= mean[:, None]
    K -= mean[None]
    K += mean.mean()
    return Gram(Precomputed(), 0.5 * (K + K.T)), mean


class AllClasses(PointBlocks):
    """Variables a (n, k), coefficients c (n, k), bias b (k,) and the outputs F = (K + constant) c + b (n, k)."""

    def __init__(
        self, problem: MulticlassProblem, tol: float, start: Array | None, fixed_point: bool, greed: float
    ) -> None:
        self.problem, self.name, self.tol = problem, problem.name, tol
        self.fixed_point, self.greed = fixed_point, greed
        self.k = problem.k
        self.largest_set = LARGEST_OF_LEE_LIN_WAHBA if problem.code == LEE_LIN_WAHBA else LARGEST_WORKING_SET
        self.has_bias = problem.bias == "free"
        mean: Array | None = None
        gram: Any = problem.gram
        if self.has_bias and problem.n <= WHOLE:
            gram, mean = _centred(gram)
        self.mean = mean
        super().__init__(problem.n, gram)
        diagonal = np.asarray(gram.diagonal(), dtype=np.float64)
        size = float(diagonal.mean())
        self.constant = size if self.has_bias and size > 0 else 1.0 if self.has_bias else problem.constant
        self.diagonal = np.maximum(diagonal + self.constant, TINY * max(size, 1e-300))
        self.a = problem.feasible(np.zeros((self.n, self.k)) if start is None else start)
        self.b = np.zeros(self.k)
        self.recompute()

    def use(self, gram: Any) -> None:
        """Go on with another operator for the same values."""
        super().use(gram)
        held = gram.held_values() if isinstance(gram, GramOperator) else None
        self.held: NDArray[Any] | None = held if isinstance(held, np.ndarray) else None

    # Outputs ---------------------------------------------------------------------------------------------------

    def recompute(self) -> None:
        """Coefficients and outputs from the variables, in float64 whatever precision the steps have."""
        self.c = self.problem.coefficients(self.a)
        self.F = np.tile(self.b, (self.n, 1))
        points = np.flatnonzero(self.c.any(axis=1))
        if points.size:
            part = np.ascontiguousarray(self.c[points])
            self.F += self.exact_columns(points, part)
            self.F += self.constant * part.sum(axis=0)

    def _add(self, points: Index, change: Array) -> None:
        """F += (K + constant)[:, points] change[points]; change is (n, k)."""
        if points.size:
            part = np.ascontiguousarray(change[points])
            self.F += self.gram.columns_dot(points, part)
            self.F += self.constant * part.sum(axis=0)
            self.kernel_values += self.n * points.size

    def _block(self, W: Index) -> NDArray[Any]:
        """K[W][:, W]."""
        if self.held is None:
            return np.asarray(self.gram.block(W, W))
        K = np.empty((W.size, W.size), dtype=self.held.dtype)
        threads.run(gather, [(self.held, W, first, last, K) for first, last in threads.split(W.size)])
        return K

    # Violations ------------------------------------------------------------------------------------------------

    def survey(self) -> None:
        """Violations of all points, primal value and gap; the bias follows once the points have settled that far."""
        self._look()
        settled = self.has_bias and self.violation <= np.abs(self.pull).max()
        if settled and not self.certificate().converged(self.tol):
            self.b += self.pull
            self.F += self.pull
            self._look()

    def _look(self) -> None:
        """Violations, primal value and gap at the present bias."""
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
        self.pull = self.constant * self.sums if self.has_bias else np.zeros(self.k)
        # Of the proximal problem the gap holds at once; what the sums still miss is counted on top.
        missing = float(self.sums @ (self.b + self.pull)) if self.has_bias else 0.0
        self.primal = 0.5 * (product - missing) + loss
        self.gap = gap + abs(missing)

    def free(self, points: Index) -> Mask:
        """Which points have a variable strictly inside its bounds."""
        a = self.a[points]
        return np.asarray(((a > 0) & (a < self.problem.box[points][:, None])).any(axis=1))

    # Steps -----------------------------------------------------------------------------------------------------

    def solve(self, W: Index | None, tol: float, most: int) -> tuple[int, float]:
        """Optimise the variables of W and carry the change to all points."""
        if W is None:
            return self._solve_all(tol, most)
        K = self._block(W)
        a = self.a[W]
        self.kernel_values += W.size * W.size
        G = self._own_outputs(self.F[W], self.problem.y[W], K.dtype)  # which the change of F replaces in full precision
        outcome = self._minimise(K, G, a, W, tol, most)
        moved = W[(a != self.a[W]).any(axis=1)]
        self.a[W] = a
        before = self.c
        self.c = self.problem.coefficients(self.a)
        self._add(moved, self.c - before)
        return outcome

    def _solve_all(self, tol: float, most: int) -> tuple[int, float]:
        """The same with all points in the set, whose matrix is formed once."""
        y = self.problem.y
        G = self._own_outputs(self.F, y)
        outcome = self._minimise(self.whole_matrix(), G, self.a, slice(None), tol, most)
        self.F = np.ascontiguousarray(G.T)
        if self.problem.code == CRAMMER_SINGER:
            self.F[np.arange(self.n), y] += self.problem.margin
        self.c = self.problem.coefficients(self.a)
        return outcome

    def _minimise(self, K: Any, G: NDArray[Any], a: Array, W: Any, tol: float, most: int) -> tuple[int, float]:
        """Steps on the points at W."""
        p = self.problem
        return minimise_points(
            K, self.constant, self.diagonal[W], G, a, p.y[W], p.box[W], p.code, p.margin, self.greed,
            self.fixed_point, tol, most,
        )  # fmt: skip

    def _own_outputs(self, F: Array, y: Index, dtype: Any = np.float64) -> NDArray[Any]:
        """Outputs (k, m) in the form of the steps: Crammer-Singer's have the margin subtracted at the own class."""
        G = np.ascontiguousarray(F.T, dtype=dtype)
        if self.problem.code == CRAMMER_SINGER:
            G[y, np.arange(y.size)] -= self.problem.margin
        return G

    # Certificates ----------------------------------------------------------------------------------------------

    def settle(self) -> bool:
        """With a free bias make the sums zero, keeping the outputs' bias where it is."""
        if not self.has_bias or not self.c.sum(axis=0).any():
            return False
        self._look()
        before = self.c
        self.a = balanced(self.problem, self.a, self.F)
        self.c = self.problem.coefficients(self.a)
        change = self.c - before
        self.b += self.pull
        self.F += self.pull  # which the change of the sums takes away again
        self._add(np.flatnonzero(change.any(axis=1)), change)
        self._look()
        return True

    def certificate(self, aim: float | None = None, uncertainty: Uncertainty | None = None) -> Certificate:
        """Primal value and gap of the last survey; with `uncertainty` the certificate of the problem itself."""
        if uncertainty is None:
            return Certificate(self.primal, self.primal - self.gap, self.gap, self.b)
        shift = self._shift()
        return self.problem.certificate(self.a, self.expansion(), self.b - shift, uncertainty=uncertainty)

    def predicted(self, steps: int, dtype: Any) -> Uncertainty:
        """What rounding lets one expect."""
        return predicted(self.c, self.diagonal - self.constant, np.ones(self.n, dtype=bool), steps, dtype)

    def variables(self) -> Array:
        """The variables a (n, k)."""
        return self.a.copy()

    def _shift(self) -> Array:
        """What centring the points has taken from the outputs (k,)."""
        return np.zeros(self.k) if self.mean is None else self.mean @ self.c

    def expansion(self) -> Array:
        """K c (n, k) at the training points."""
        return np.asarray(self.F - self.b - self.constant * self.c.sum(axis=0) + self._shift())
