"""The dual as the classical solvers share it: variables, outputs, thresholds, shrinking, and how a solve is run.

Signed variables s (layers, n) of `mercer.problems.program`, flat in the order v = layer * n + point, have the gradient

    G_v = F_point + linear_v + ridge_v s_v,       F = (K + constant) c,   c the sum of a point's variables.

F is a function cache: after a change of c it is updated from the differences alone, F += K[:, changed] (c_new - c_old),
never by adding a new sum and subtracting an old one, and it is computed afresh in float64 after `REFRESH` updates and
before an answer is given (Schoelkopf and Smola 2002, section 10.1.3).

Thresholds: in each group the smallest gradient of a variable that may rise and the largest of one that may fall.  The
point is optimal when no group has the second above the first, whatever the multiplier of the group is; their distance
is the violation (Keerthi and others 2001; section 10.5.4).  Pairs within a group keep every sum, so that problems with
several sums (nu machines) need nothing else.

Variables that are shrunk keep their value: their bounds close in on it, for every loop that reads `_program`, and the
outputs and rows of points without another variable are not kept up to date.  Before an answer is given all of them come
back and are looked at again.
"""

from typing import Any, NamedTuple

import numpy as np

from mercer import threads
from mercer.arrays import Array, Index, Mask
from mercer.problems.base import PlainProgram, Problem
from mercer.problems.certificate import Certificate, Uncertainty
from mercer.problems.program import QuadraticProgram
from mercer.solvers import contract
from mercer.solvers.classical.row_cache import RowCache
from mercer.solvers.contract import Start, require, starting_variables
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.quadratic import decomposition
from mercer.solvers.quadratic.decomposition import GroupSums, Parts
from mercer.solvers.quadratic.violations import survey
from mercer.solvers.solution import Solution
from mercer.solvers.working_sets import Search

REFRESH = 100_000  # updates of F by one coefficient between two computations in float64
DEEPER = 0.1  # where the violation is met and the gap is not, aim for this share of the violation
Stated = Problem | QuadraticProgram
GROUP_SUMS = "boxes and fixed sums of groups of variables"

accepts = decomposition.accepts  # what pairs within a group, or single variables without one, can solve


class Given(NamedTuple):
    """What a solve is given: `start` (N,) is feasible, None for a cold one; `memory` is that of the cache."""

    problem: Problem
    tol: float
    start: Array | None
    memory: int | str | None = None


class ClassicalDual(GroupSums):
    """One solve: a subclass says in `advance` how variables are chosen and moved."""

    finishes = False
    name: str

    def __init__(self, given: Given) -> None:
        program, self.memory = given.problem.program(), given.memory
        self.cache = self.new_cache(program.gram, program.constant)
        self.counted = self.updates = 0
        self.shrunk: Mask | None = None
        self.kept: Certificate | None = None
        self.value = self.fallen = 0.0
        super().__init__(given.problem, given.tol, given.start)
        self.flat = self.s.reshape(-1)
        self.N = self.flat.size
        self.active: Index = np.arange(self.n)

    def new_cache(self, gram: Any, constant: float) -> Any:
        """An empty cache of kernel values: of rows, unless a method has one of its own."""
        return RowCache(gram, constant, self.memory)

    def advance(self, aim: float, most: int) -> int:
        """At most about `most` steps towards a violation of at most `aim`; how many were made, 0 where none helps."""
        raise NotImplementedError

    def facts(self) -> dict[str, Any]:
        """What a solver has to tell besides: counts of its cache."""
        report = self.cache.report()
        return {"cache_hits": report.hits, "cache_misses": report.misses, "cache_rate": report.rate}

    # The engine's questions ------------------------------------------------------------------------------------

    def at_once(self) -> bool:
        """The classical solvers choose for themselves."""
        return True

    def solve(self, W: Index | None, tol: float, most: int) -> tuple[int, float]:
        """One round of the method."""
        aim = 0.5 * self.tol if self.violation > self.tol else DEEPER * self.violation
        done = self.advance(aim, most)
        if self.updates >= REFRESH:
            self.recompute()
        self._count()
        return done, self.violation

    def survey(self) -> None:
        """Gradients and thresholds; where those left after shrinking are content, of all variables."""
        super().survey()
        if self.shrunk is not None and self.violation <= self.tol:
            self.unshrink()
            super().survey()

    def thresholds(self) -> float:
        """Gradients and thresholds alone, between two sets of one round; the violation."""
        survey(self.F, self.s, self._program(), self.G, self.extremes)
        if self.groups:
            return float(np.max(self.extremes[:, 2] - self.extremes[:, 0]))
        G = self.G.ravel()
        low, high = np.min(G[self.may_rise()], initial=0.0), np.max(G[self.may_fall()], initial=0.0)
        return float(max(-low, high))

    def settle(self) -> bool:
        """Bring shrunk variables back; whether there were any."""
        if self.shrunk is None:
            return False
        self.unshrink()
        return True

    def certificate(self, aim: float | None = None, uncertainty: Uncertainty | None = None) -> Certificate:
        """That of the problem; while variables are shrunk the last one, whose bounds still hold, for reports."""
        if self.shrunk is not None and uncertainty is None and self.kept is not None:
            return self.kept
        self.settle()
        return super().certificate(aim, uncertainty)

    def recompute(self) -> None:
        """F in float64 at all points."""
        super().recompute()
        self.updates = 0

    def use(self, gram: Any) -> None:
        """Go on with another operator for the same values."""
        self.unshrink()
        super().use(gram)
        self._count()
        self.cache, self.counted = self.new_cache(gram, self.constant), 0

    def _count(self) -> None:
        """Take over the kernel values that the cache has computed."""
        self.kernel_values += self.cache.evaluations - self.counted
        self.counted = self.cache.evaluations

    # Variables and outputs -------------------------------------------------------------------------------------

    def point(self, variables: Index) -> Index:
        """The points that variables sit on."""
        return variables % self.n

    def may_rise(self) -> Mask:
        """Which variables (N,) are below their upper bound."""
        return np.asarray(self.s < self._program()[3]).ravel()

    def may_fall(self) -> Mask:
        """Which variables (N,) are above their lower bound."""
        return np.asarray(self.s > self._program()[2]).ravel()

    def gradient(self, variables: Index | None = None) -> Array:
        """G (N,), or at some variables, from the present F."""
        v = np.arange(self.N) if variables is None else variables
        linear, ridge = self.linear.ravel()[v], self.ridge.ravel()[v]
        return np.asarray(self.F[self.point(v)] + linear + ridge * self.flat[v])

    def move(self, variables: Index, values: Array) -> None:
        """Give variables new values, update F, and the objective by what it falls: change'(G before + G after) / 2."""
        change, before = values - self.flat[variables], self.gradient(variables)
        self.flat[variables] = values
        self.carry(self.point(variables), change)
        self.fallen += 0.5 * float(change @ (before + self.gradient(variables)))

    def objective(self) -> float:
        """Value of the program; while variables are shrunk, from the value before that and what was gained since."""
        return super().objective() if self.shrunk is None else self.value + self.fallen

    def carry(self, points: Index, change: Array) -> None:
        """F += K[:, points] change, for coefficients that have changed by `change`."""
        total = np.bincount(points, weights=change, minlength=self.n).astype(np.float64, copy=False)
        moved = np.flatnonzero(total)
        if moved.size:
            self._add(moved, total[moved])

    def _add(self, points: Index, change: Array) -> None:
        """F += (K + constant)[:, points] change at the points that are kept up to date."""
        added = self.cache.dot(points, change)
        if self.cache.columns is not None:
            self.F[self.active] += added
        else:
            self.F += added
        self.updates += points.size
        self._count()

    # Shrinking -------------------------------------------------------------------------------------------------

    def settled(self) -> Mask:
        """Which variables (N,) are at a bound and do not violate by half of tol."""
        G, group = self.G.ravel(), self.group.ravel()
        levels = self._levels(self.G, self.s, self._program()) if self.groups else np.zeros(0)
        excess = G - (levels[group] if self.groups else 0.0)
        slack = 0.5 * self.tol
        low, high = self.flat <= self.lower.ravel(), self.flat >= self.upper.ravel()
        return np.asarray((low & (excess > slack)) | (high & (excess < -slack)))

    def shrink(self, variables: Mask) -> None:
        """Leave these variables (N,) out until `unshrink`, those left out before included."""
        if self.kept is None:
            self.kept = super().certificate()
            self.value, self.fallen = super().objective(), 0.0
        out = variables if self.shrunk is None else variables | self.shrunk
        self.shrunk = out
        self.closed = (
            np.where(out.reshape(self.s.shape), self.s, self.lower),
            np.where(out.reshape(self.s.shape), self.s, self.upper),
        )
        active = np.flatnonzero(~out.reshape(self.s.shape).all(axis=0))
        if active.size and active.size < self.active.size:
            self.active = active
            self.cache.restrict(active)

    def unshrink(self) -> None:
        """All variables take part again, with outputs computed in float64."""
        if self.shrunk is None:
            return
        self.shrunk = self.kept = None
        self.active = np.arange(self.n)
        self.cache.restore()
        self.recompute()

    def _program(self, W: Index | None = None) -> Parts:
        """Linear term, ridge, bounds and groups; shrunk variables have no room to move."""
        linear, ridge, lower, upper, group = super()._program(W)
        if self.shrunk is None:
            return linear, ridge, lower, upper, group
        low, high = self.closed
        return linear, ridge, low if W is None else low[:, W], high if W is None else high[:, W], group


class Limits(contract.Limits, total=False):
    """What `solve` of every classical solver takes besides its own parameters, with the defaults of `descend`."""

    tol: float
    gap_tol: float | None
    memory: int | str | None


def descend(
    method: type[ClassicalDual],
    problem: Stated,
    *,
    tol: float = 1e-3,
    gap_tol: float | None = None,
    start: Start = None,
    monitor: Monitor | None = None,
    max_iter: int = -1,
    memory: int | str | None = None,
    seed: int = 0,
    **options: Any,
) -> Solution:
    """Run a method to a violation of at most `tol`, or to a relative gap of `gap_tol` where that is given."""
    require(accepts(problem), method.name, tol=tol)
    whole = problem if isinstance(problem, Problem) else PlainProgram(problem)
    listener = listening(monitor)
    with listener, threads.one_blas_thread():
        given = Given(whole, tol, starting_variables(whole.program(), start, monitor), memory)
        dual = method(given, **options)
        return Search(dual, tol=tol, gap_tol=gap_tol, monitor=listener, seed=seed).run(max_iter)
