"""Cross-validation of support vector machines over all C at once, on shared kernel values.

For one kernel (one width) the work is cut into tasks that threads take side by side:

    two classes, regression     one task for each fold: the path of C on all folds but one, a stretch of the one matrix
    k > 2 classes               one task for each pair of classes: its matrix is cut once and serves all folds; then one
                                task for each fold collects the votes of all pairs on the held-out points

Held-out decision values of all C are one matrix product.  A path that has clearly turned (see `Turned`) stops early:
its larger C are worse and take longest.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.compiled import loop
from mercer.selection.folds import Layout
from mercer.selection.scoring import Score
from mercer.selection.similarities import Values
from mercer.solvers.cost_path import cost_path

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Matrix = NDArray[np.float32]
GoOn = Callable[[], bool]

UNLIMITED = 1 << 40
# A path has turned when two prices in a row are worse than the best one by so many standard errors.
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
    """k classes: codes (n,) of the points in working order, weights (n,) of their price."""

    codes: Index
    count: int
    weights: Array

    def problem(self, where: Index, positive: int) -> tuple[Array, Array, Array]:
        """Linear term and box (1, m) of "class `positive` against the others" on the points `where`."""
        y = np.where(self.codes[where] == positive, 1.0, -1.0)
        w = self.weights[where] * y
        return -y[None], np.minimum(w, 0.0)[None], np.maximum(w, 0.0)[None]


@dataclass(frozen=True)
class Targets:
    """Real targets y (n,) in working order with a tube of half width epsilon."""

    y: Array
    weights: Array
    epsilon: float

    def problem(self, where: Index) -> tuple[Array, Array, Array]:
        """Linear terms and box (2, m): both sides of the tube."""
        y, w = self.y[where], self.weights[where]
        zero = np.zeros_like(w)
        return np.stack([self.epsilon - y, -self.epsilon - y]), np.stack([zero, -w]), np.stack([w, zero])


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

    def __init__(self, K: Matrix, held: slice, problem: tuple[Array, Array, Array], settings: Settings) -> None:
        self.K, self.settings = K, settings
        linear, lower, upper = problem
        layers, n = linear.shape
        self.stretch = (0, held.start, held.stop)
        self.problem: Any = tuple(np.ascontiguousarray(a) for a in (linear, lower, upper))
        self.state, self.F = np.zeros((layers, n)), np.zeros(n)
        count = len(settings.costs)
        self.coefficients, self.biases = np.zeros((count, n)), np.zeros(count)
        self.facts = np.zeros((count, 2))
        self.reached = 0
        self.ended = False

    def advance(self, to: int) -> None:
        """Solve for the prices up to number `to`."""
        costs, begin = self.settings.costs, self.reached
        if self.ended:
            self.coefficients[begin:to], self.biases[begin:to] = self.coefficients[begin - 1], self.biases[begin - 1]
        elif to > begin:
            first, middle, second = self.stretch
            linear, lower, upper = self.problem
            end = cost_path(
                self.K,
                first,
                middle,
                second,
                linear,
                lower,
                upper,
                costs[begin:to],
                self.settings.tol,
                UNLIMITED,
                self.state,
                self.F,
                float(costs[begin - 1]) if begin else 0.0,
                self.coefficients[begin:to],
                self.biases[begin:to],
                self.facts[begin:to],
            )
            self.ended = bool(np.isfinite(end))
        self.reached = to

    def held_out(self, block: Matrix, at: slice) -> Array:
        """Decision values (held out, prices `at`), from the kernel values of the held-out points with all points."""
        c = self.coefficients[at].T.astype(np.float32)
        _, middle, second = self.stretch
        values = block[:, :middle] @ c[:middle] + block[:, second:] @ c[middle:]
        return np.asarray(values, dtype=np.float64) + self.biases[at]


class Turned:
    """Whether a path is clearly past its best: two prices in a row whose loss on the held-out points exceeds that of
    the best price so far by three standard errors of the paired differences.
    """

    def __init__(self) -> None:
        self.best: Array | None = None
        self.worse = 0

    def __call__(self, losses: Array) -> bool:
        """Take note of the losses (held out,) at the next price."""
        if self.best is None or losses.mean() <= self.best.mean():
            self.best, self.worse = losses, 0
            return False
        difference = losses - self.best
        error = float(difference.std()) / np.sqrt(len(difference))
        self.worse = self.worse + 1 if float(difference.mean()) > CLEARLY * error else 0
        return self.worse >= 2


def one_fold(K: Matrix, layout: Layout, fold: int, kind: Classes | Targets, settings: Settings) -> Outcome:
    """Two classes or real targets: the path on all folds but one, and its scores."""
    began = time.perf_counter()
    held, where = layout.rows(fold), layout.outside(fold)
    scores, support = np.full(len(settings.costs), np.nan), np.full(len(settings.costs), np.nan)
    truth: Any = kind.codes[held] if isinstance(kind, Classes) else kind.y[held]
    if isinstance(kind, Classes) and len(np.unique(kind.codes[where])) < 2:
        only = np.full(len(truth), kind.codes[where[0]] if len(where) else 0)
        return Outcome(np.full_like(scores, settings.score(truth, only)), np.zeros_like(support), 0.0, True)
    problem = kind.problem(where, 0) if isinstance(kind, Classes) else kind.problem(where)
    path, turned = Path(K, held, problem, settings), Turned()
    for c in range(len(settings.costs)):
        if not settings.go_on():
            return Outcome(scores, support, time.perf_counter() - began, False)
        path.advance(c + 1)
        values = path.held_out(K[held], slice(c, c + 1))[:, 0]
        predicted = np.where(values > 0.0, 0, 1) if isinstance(kind, Classes) else values
        scores[c] = settings.score(truth, predicted)
        support[c] = np.count_nonzero(path.coefficients[c])
        losses = (predicted != truth).astype(np.float64) if isinstance(kind, Classes) else (predicted - truth) ** 2
        if settings.early and turned(losses):
            break
    return Outcome(scores, support, time.perf_counter() - began, True)


# Pairs of classes ----------------------------------------------------------------------------------------------------


@loop
def _count_votes(products: Any, biases: Any, first: Any, second: Any, predicted: Any) -> None:
    """Class with most wins for every held-out point and price; a tie goes to the class that comes first.

    products (k, n, k - 1, c): what the machines' vectors of class i add to the pair of i with each other class.
    """
    k, n, _, costs = products.shape
    votes = np.zeros((k, costs), np.int32)
    for x in range(n):
        votes[:] = 0
        for p in range(first.shape[0]):
            i, j = first[p], second[p]
            for c in range(costs):
                value = products[i, x, j - 1, c] + products[j, x, i, c] + biases[p, c]
                votes[i if value > 0.0 else j, c] += 1
        for c in range(costs):
            best = 0
            for i in range(1, k):
                if votes[i, c] > votes[best, c]:
                    best = i
            predicted[x, c] = best


class Pairs:
    """All pairs of k > 2 classes for one kernel."""

    def __init__(self, values: Values, layout: Layout, classes: Classes, settings: Settings) -> None:
        self.values, self.layout, self.classes, self.settings = values, layout, classes, settings
        self.k, self.costs = classes.count, len(settings.costs)
        self.first, self.second = (a.astype(np.intp) for a in np.triu_indices(self.k, 1))
        fold = np.repeat(np.arange(layout.folds), np.diff(layout.borders))
        of_class = [np.flatnonzero(classes.codes == c) for c in range(self.k)]
        self.training = [[points[fold[points] != f] for points in of_class] for f in range(layout.folds)]
        self.fold, self.of_class = fold, of_class
        # coefficients[f][i] (points of class i outside fold f, k - 1 rivals, c), in LIBSVM's layout of rivals
        self.coefficients = [
            [np.zeros((len(points), self.k - 1, self.costs), np.float32) for points in of_fold]
            for of_fold in self.training
        ]
        self.biases = np.zeros((layout.folds, len(self.first), self.costs))

    def train(self, pair: int) -> None:
        """The paths of one pair in all folds, on one matrix."""
        i, j = int(self.first[pair]), int(self.second[pair])
        points = np.sort(np.concatenate([self.of_class[i], self.of_class[j]]))
        K = self.values.block(points, points)
        borders = np.searchsorted(self.fold[points], np.arange(self.layout.folds + 1))
        for f in range(self.layout.folds):
            if not self.settings.go_on():
                return
            held = slice(int(borders[f]), int(borders[f + 1]))
            where = np.concatenate([points[: held.start], points[held.stop :]])
            own = self.classes.codes[where]
            there = (own == i).any(), (own == j).any()
            if not all(there):
                self.biases[f, pair] = float(there[0]) - float(there[1])
                continue
            path = Path(K, held, self.classes.problem(where, i), self.settings)
            path.advance(self.costs)
            coefficients = path.coefficients.T.astype(np.float32)
            self.coefficients[f][i][:, j - 1] = coefficients[own == i]
            self.coefficients[f][j][:, i] = coefficients[own == j]
            self.biases[f, pair] = path.biases

    def validate(self, fold: int) -> tuple[Array, Array]:
        """Scores and numbers of support vectors (c,) of one fold."""
        held = self.layout.rows(fold)
        count = held.stop - held.start
        products = np.zeros((self.k, count, self.k - 1, self.costs), np.float32)
        support = np.zeros(self.costs)
        for i in range(self.k):
            c = self.coefficients[fold][i]
            support += c.any(axis=1).sum(axis=0)
            used = np.flatnonzero(c.any(axis=(1, 2)))
            if used.size:
                block = self.values.block(held, self.training[fold][i][used])
                np.dot(block, c[used].reshape(len(used), -1), out=products[i].reshape(count, -1))
        predicted = np.empty((count, self.costs), np.intp)
        _count_votes(products, self.biases[fold], self.first, self.second, predicted)
        truth = self.classes.codes[held]
        return np.array([self.settings.score(truth, predicted[:, c]) for c in range(self.costs)]), support

    def run(self) -> list[Outcome]:
        """All folds."""
        began = time.perf_counter()
        # Large pairs first, so that no thread is left with one at the end; results do not depend on the order.
        sizes = [len(self.of_class[i]) + len(self.of_class[j]) for i, j in zip(self.first, self.second)]
        with threads.one_blas_thread():
            threads.run(self.train, [(int(p),) for p in np.argsort(sizes)[::-1]])
            if not self.settings.go_on():
                nothing = np.full(self.costs, np.nan)
                return [Outcome(nothing, nothing, 0.0, False)] * self.layout.folds
            found = threads.run(self.validate, [(f,) for f in range(self.layout.folds)])
        seconds = (time.perf_counter() - began) / self.layout.folds
        return [Outcome(scores, support, seconds, True) for scores, support in found]
