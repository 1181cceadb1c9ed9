"""Working sets over pairs: the dual of ranked pairs itself, with one variable for each pair, for any kernel.

    max  sum_p alpha_p - 1/2 c'K c [ - sum_p alpha_p^2 / 4 C_p ],   0 <= alpha_p <= C_p  [<= inf for the squared hinge],
    c_i = sum of alpha over the pairs that i wins  -  sum over those that it loses,

without an equality: a difference of two values has no bias (Herbrich, Graepel and Obermayer 2000, (2.22) to (2.25)
without their constraint).  A strategy of the one engine (`mercer.solvers.working_sets`): a working set is a set of
points, its variables are those of the pairs between them, and one pair after the other is optimised exactly,

    alpha_ij <- clip(alpha_ij + (1 - f_i + f_j) / (K_ii + K_jj - 2 K_ij)).

The variables are held, eight bytes for each of n^2: where the matrix fits they do.  What this has over Newton's method
are the variables themselves: those strictly inside their bounds belong to the pairs that define the boundaries.
A start is a set of coefficients c: the slopes of the losses at f = K c are feasible variables.
"""

from typing import Any

import numpy as np

from mercer import threads
from mercer.arrays import Array, Index, Mask
from mercer.problems.certificate import Certificate, Uncertainty
from mercer.problems.ranking import RankedPairs
from mercer.resources import available, show
from mercer.solvers.contract import Acceptance, Start, require, starting_coefficients, variables_of
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.ordinal.newton import width_of
from mercer.solvers.ordinal.pair_steps import begin, minimise, survey
from mercer.solvers.point_blocks import GREED, PointBlocks
from mercer.solvers.solution import Solution
from mercer.solvers.verification import predicted
from mercer.solvers.working_sets import Search

NAME = "pair working sets"
SHARE = 0.5  # of the free memory that variables and matrix may take
BYTES = 16  # for each pair of points
LARGEST_SET = 1024


def accepts(problem: Any) -> Acceptance:
    """Orders from pairs whose variables can be held."""
    if not isinstance(problem, RankedPairs):
        return Acceptance(False, f"{type(problem).__name__} is not an order from pairs")
    need, have = BYTES * problem.n**2, int(SHARE * available())
    if need > have:
        reason = f"the variables of {problem.n}^2 pairs need {show(need)} of {show(have)}: use solver='newton'"
        return Acceptance(False, reason)
    return Acceptance(True, f"pairs of {problem.n} points")


def solve(
    problem: RankedPairs,
    *,
    tol: float = 1e-3,
    start: Start = None,
    monitor: Monitor | None = None,
    max_iter: int = -1,
    working_set: int | None = None,
    seed: int = 0,
) -> Solution:
    """Solve to a relative gap of `tol`; `max_iter` bounds the number of steps on a pair (-1: no bound).

    `start`: coefficients (n,) or an earlier solution, of this or of Newton's method.  `working_set` fixes the number of
    points worked on at a time.
    """
    require(accepts(problem), NAME, tol=tol)
    listener = listening(monitor)
    with listener, threads.one_blas_thread():
        given = listener.resume() if start is None else start
        strategy = PairVariables(problem, variables_of(given, listener), width_of(given))
        search = Search(strategy, tol=None, gap_tol=tol, monitor=listener, seed=seed)
        return search.run(max_iter, working_set)


class PairVariables(PointBlocks):
    """Variables alpha (n, n), coefficients c (n,) and values f = K c (n,)."""

    name = NAME
    largest_set = LARGEST_SET

    def __init__(self, problem: RankedPairs, start: Array | None, width: float) -> None:
        super().__init__(problem.n, problem.gram)
        self.problem = problem
        self.squared = problem.loss == "squared_hinge"
        self.order = np.column_stack((problem.queries, problem.ranks))
        self.w = np.ascontiguousarray(problem.w)
        self.diagonal = np.asarray(self.gram.diagonal(), dtype=np.float64)
        self.alpha = np.zeros((self.n, self.n))
        self.inside = np.empty(self.n, dtype=np.bool_)
        if start is not None:
            self.c = starting_coefficients(start, (self.n,))
            begin(self._values(), self.order, self.w, problem.C, self.squared, width, self.alpha)
        self.recompute()

    def _values(self) -> Array:
        """K c (n,) in float64."""
        points = np.flatnonzero(self.c)
        return self.exact_columns(points, self.c[points]) if points.size else np.zeros(self.n)

    def recompute(self) -> None:
        """Coefficients and values from the variables, in float64."""
        self.c = self.alpha.sum(axis=1) - self.alpha.sum(axis=0)
        self.f = self._values()

    # Violations ------------------------------------------------------------------------------------------------

    def _look(self, error: Array) -> tuple[float, float, float]:
        p = self.problem
        return survey(self.f, self.order, self.w, p.C, self.squared, self.alpha, error, self.psi, self.inside)

    def survey(self) -> None:
        """Violations of all pairs, primal value and gap."""
        loss, self.gap, _ = self._look(np.zeros(self.n))
        self.violation = float(self.psi.max())
        self.primal = 0.5 * float(self.c @ self.f) + loss

    def free(self, points: Index) -> Mask:
        """Which points have a variable strictly inside its bounds."""
        return np.asarray(self.inside[points])

    # Steps -----------------------------------------------------------------------------------------------------

    def solve(self, W: Index | None, tol: float, most: int) -> tuple[int, float]:
        """Optimise the pairs between the points of W and carry the change to all values."""
        if W is None:
            outcome = self._minimise(self.whole_matrix(), self.f, slice(None), self.alpha, tol, most)
            self.c = self.alpha.sum(axis=1) - self.alpha.sum(axis=0)
            return outcome
        K, alpha = np.asarray(self.gram.block(W, W)), self.alpha[np.ix_(W, W)]
        before = alpha.sum(axis=1) - alpha.sum(axis=0)
        outcome = self._minimise(K, self.f[W], W, alpha, tol, most)
        change = alpha.sum(axis=1) - alpha.sum(axis=0) - before
        self.alpha[np.ix_(W, W)] = alpha
        moved = np.flatnonzero(change)
        if moved.size:
            self.c[W] += change
            self.f += self.gram.columns_dot(W[moved], change[moved])
        self.kernel_values += W.size * W.size + self.n * moved.size
        return outcome

    def _minimise(self, K: Any, f: Array, W: Any, alpha: Array, tol: float, most: int) -> tuple[int, float]:
        p = self.problem
        order = np.ascontiguousarray(self.order[W])
        return minimise(K, f, order, self.w[W], p.C, self.squared, alpha, GREED, tol, most)

    # Certificates ----------------------------------------------------------------------------------------------

    def certificate(self, aim: float | None = None, uncertainty: Uncertainty | None = None) -> Certificate:
        """Primal value and gap of the last survey; with `uncertainty` what holds whatever the values are off by."""
        if uncertainty is None:
            return Certificate(self.primal, self.primal - self.gap, self.gap)
        loss, gap, widest = self._look(uncertainty.values)
        primal = 0.5 * float(self.c @ self.f) + loss
        return Certificate(primal, primal - gap, gap).widened(widest, uncertainty.energy)

    def predicted(self, steps: int, dtype: Any) -> Uncertainty:
        """What rounding lets one expect."""
        return predicted(self.c, self.diagonal, np.ones(self.n, dtype=np.bool_), steps, dtype)

    def variables(self) -> Array:
        """The coefficients again: n^2 variables are not kept."""
        return self.c.copy()

    def expansion(self) -> Array:
        """The values f (n,)."""
        return self.f.copy()

    def facts(self) -> dict[str, Any]:
        """The values f (n,), and the pairs (m, 2), higher rank first, with variables strictly inside their bounds."""
        inside = self.alpha > 0.0
        if not self.squared:
            inside &= self.alpha < self.problem.C * np.outer(self.w, self.w)
        return {"f": self.f.copy(), "free_pairs": np.argwhere(inside)}
