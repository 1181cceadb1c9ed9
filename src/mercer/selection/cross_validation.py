"""Cross-validation of support vector machines over all C at once, on shared kernel values.

For one kernel (one width) the work is cut into tasks that threads take side by side:

    two classes, regression     one task for each fold: the path of C on all folds but one, a stretch of the one matrix
    k > 2 classes               one task for each pair of classes, see `mercer.selection.class_pairs`

Held-out decision values of all C are one matrix product.  A path that has clearly turned (see `Turned`) stops early:
its larger C are worse and take longest.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.gram import StoredStretches
from mercer.losses import EpsilonInsensitive, Hinge, Loss
from mercer.problems.statement import Costs
from mercer.problems.statement import stated as program_of
from mercer.selection.folds import Layout
from mercer.selection.scoring import Score
from mercer.solvers.monitor import Asking
from mercer.solvers.quadratic.cost_path import cost_path, next_cost
from mercer.solvers.working_sets import WHOLE

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Matrix = NDArray[np.float32]
GoOn = Callable[[], bool]

UNLIMITED = 1 << 40
# A path has turned when two costs in a row are worse than the best one by so many standard errors.
CLEARLY = 3.0


@dataclass(frozen=True)
class Outcome:
    """One fold for all C: scores (c,), support vectors (c,), seconds; NaN where the path stopped before."""

    scores: Array
    support: Array
    seconds: float
    complete: bool


@dataclass(frozen=True)
class Classes:
    """k classes: codes (n,) of the points in working order, weights (n,) of their cost, and of their score."""

    codes: Index
    count: int
    weights: Array
    counted: Array | None = None

    @property
    def truth(self) -> Index:
        """What is to be predicted, (n,)."""
        return self.codes

    @property
    def groups(self) -> Index | None:
        """Groups (n,) that a score has to know of; None: there are none."""
        return None

    @staticmethod
    def losses(truth: Any, predicted: Any) -> Array:
        """Errors (n,)."""
        return np.asarray(predicted != truth, dtype=np.float64)

    def stated(self, where: Index, positive: int = 0) -> tuple[Loss, Array, Array]:
        """Loss, labels and weights (m,) of "class `positive` against the others" on the points `where`."""
        return Hinge(), np.where(self.codes[where] == positive, 1.0, -1.0), self.weights[where]

    @staticmethod
    def decided(values: Array) -> Index:
        """Classes (n,) of the decision values of class 0 against class 1."""
        return np.where(values > 0.0, 0, 1)

    def certain(self, code: int, n: int) -> NDArray[Any]:
        """What is predicted for n points where one class alone was seen."""
        return np.full(n, code)


@dataclass(frozen=True)
class Targets:
    """Real targets y (n,) in working order with a tube of half width epsilon."""

    y: Array
    weights: Array
    epsilon: float
    counted: Array | None = None

    @property
    def truth(self) -> Array:
        """What is to be predicted, (n,)."""
        return self.y

    @property
    def groups(self) -> Index | None:
        """There are none."""
        return None

    @staticmethod
    def losses(truth: Any, predicted: Any) -> Array:
        """Squared errors (n,)."""
        return np.asarray((predicted - truth) ** 2, dtype=np.float64)

    def stated(self, where: Index) -> tuple[Loss, Array, Array]:
        """Loss, targets and weights (m,) on the points `where`."""
        return EpsilonInsensitive(self.epsilon), self.y[where], self.weights[where]

    @staticmethod
    def decided(values: Array) -> Array:
        """The values (n,) themselves."""
        return values


@dataclass(frozen=True)
class Judge:
    """The held-out points of one fold: what is true of them and how much each counts."""

    kind: Classes | Targets
    held: slice
    score: Score

    @property
    def truth(self) -> NDArray[Any]:
        """Classes or targets (held out,)."""
        return self.kind.truth[self.held]

    @property
    def weights(self) -> Array | None:
        """Weights (held out,) of the score; None: all count alike."""
        return None if self.kind.counted is None else self.kind.counted[self.held]

    @property
    def within(self) -> dict[str, Index]:
        """The groups (held out,) that are compared inside, where there are any."""
        return {} if self.kind.groups is None else {"groups": self.kind.groups[self.held]}

    def __call__(self, predicted: NDArray[Any]) -> float:
        """The score of predictions (held out,)."""
        return self.score(self.truth, predicted, self.weights, **self.within)

    def losses(self, predicted: NDArray[Any]) -> Array:
        """Weighted losses (held out,), whose mean says whether a path of C has turned."""
        losses = self.kind.losses(self.truth, predicted, **self.within)
        return losses if self.weights is None else losses * (self.weights / self.weights.mean())


@dataclass(frozen=True)
class Settings:
    """How far to solve, how to score, whether paths may stop early, and who may stop the search."""

    costs: Array
    tol: float
    score: Score
    early: bool
    go_on: GoOn


class Path:
    """The machines of one training set along C: coefficients (c, m), biases (c,)."""

    def __init__(self, K: Matrix, held: slice, stated: tuple[Loss, Array, Array], settings: Settings) -> None:
        self.K, self.settings = K, settings
        loss, y, weights = stated
        n = y.size
        self.stretch = (0, held.start, held.stop)
        self.unit = program_of(StoredStretches(K, self.stretch, n), loss, y, Costs(weights, weights))
        self.state, self.F = np.zeros((self.unit.size // n, n)), np.zeros(n)
        count = len(settings.costs)
        self.coefficients, self.biases = np.zeros((count, n)), np.zeros(count)
        self.reached = 0
        self.ended = False

    def advance(self, to: int) -> bool:
        """Solve for the costs up to number `to`; False when the search was stopped on the way."""
        if self.state.shape[1] <= WHOLE and self.reached < to and not self.ended:
            self._solve_at_once(to)
        while self.reached < to and not self.ended:
            if not self._next_cost():
                return False
        begin = self.reached
        if begin < to:  # behind the end of the path the solution stays as it is
            self.coefficients[begin:to], self.biases[begin:to] = self.coefficients[begin - 1], self.biases[begin - 1]
            self.reached = to
        return True

    def _solve_at_once(self, to: int) -> None:
        """The costs up to number `to` in one compiled call."""
        at, shape = slice(self.reached, to), self.state.shape
        parts = (self.unit.linear, self.unit.lower, self.unit.upper)
        linear, lower, upper = (np.ascontiguousarray(part).reshape(shape) for part in parts)
        end = cost_path(
            self.K, self.stretch, linear, lower, upper, self.settings.costs[at], self.settings.tol, UNLIMITED,
            self.state, self.F, self._cost_before(), self.coefficients[at], self.biases[at], np.empty((to, 2)),
        )  # fmt: skip
        self.reached, self.ended = to, bool(np.isfinite(end))

    def _next_cost(self) -> bool:
        """Solve for one more cost; False when the search was stopped on the way."""
        c, settings = self.reached, self.settings
        asking, C = Asking(settings.go_on), float(settings.costs[c])
        found = next_cost(self.unit, self.state, self.F, self._cost_before(), C, settings.tol, asking)
        self.coefficients[c], self.biases[c] = found.coefficients, found.bias
        self.reached, self.ended = c + 1, found.ended
        return found.complete

    def _cost_before(self) -> float:
        return float(self.settings.costs[self.reached - 1]) if self.reached else 0.0

    def held_out(self, block: Matrix, at: slice) -> Array:
        """Decision values (held out, costs `at`), from the kernel values of the held-out points with all points."""
        c = self.coefficients[at].T.astype(np.float32)
        _, middle, second = self.stretch
        values = block[:, :middle] @ c[:middle] + block[:, second:] @ c[middle:]
        return np.asarray(values, dtype=np.float64) + self.biases[at]


class Turned:
    """Whether a path is clearly past its best: two costs in a row whose loss on the held-out points exceeds that of
    the best cost so far by three standard errors of the paired differences.
    """

    def __init__(self) -> None:
        self.best: Array | None = None
        self.worse = 0

    def __call__(self, losses: Array) -> bool:
        """Take note of the losses (held out,) at the next cost."""
        if self.best is None or losses.mean() <= self.best.mean():
            self.best, self.worse = losses, 0
            return False
        difference = losses - self.best
        error = float(difference.std()) / np.sqrt(len(difference))
        self.worse = self.worse + 1 if float(difference.mean()) > CLEARLY * error else 0
        return self.worse >= 2


def one_fold(K: Matrix, layout: Layout, fold: int, kind: Classes | Targets, settings: Settings) -> Outcome:
    """Two classes or real targets: the path on all folds but one, and its scores."""
    held = layout.rows(fold)

    def machines(where: Index) -> Iterator[tuple[Array, int]]:
        path = Path(K, held, kind.stated(where), settings)
        for c in range(len(settings.costs)):
            if not settings.go_on() or not path.advance(c + 1):
                return
            yield path.held_out(K[held], slice(c, c + 1))[:, 0], int(np.count_nonzero(path.coefficients[c]))

    return validated(machines, layout, fold, kind, settings)


def validated(
    machines: Callable[[Index], Iterator[tuple[Array, int]]],
    layout: Layout,
    fold: int,
    kind: Classes | Targets,
    settings: Settings,
) -> Outcome:
    """The scores of machines trained outside a fold.

    `machines` takes the training points and gives, for every C in turn until the search is stopped, the decision
    values of the held-out points and the number of support vectors.
    """
    began = time.perf_counter()
    where = layout.outside(fold)
    judge, turned = Judge(kind, layout.rows(fold), settings.score), Turned()
    scores, support = np.full(len(settings.costs), np.nan), np.full(len(settings.costs), np.nan)
    if isinstance(kind, Classes) and len(np.unique(kind.codes[where])) < 2:
        only = kind.certain(int(kind.codes[where[0]]) if len(where) else 0, len(judge.truth))
        return Outcome(np.full_like(scores, judge(only)), np.zeros_like(support), 0.0, True)
    reached, stopped = 0, False
    for values, vectors in machines(where):
        predicted = kind.decided(values)
        scores[reached], support[reached] = judge(predicted), vectors
        reached += 1
        stopped = settings.early and turned(judge.losses(predicted))
        if stopped:
            break
    complete = stopped or reached == len(settings.costs)
    return Outcome(scores, support, time.perf_counter() - began, complete)
