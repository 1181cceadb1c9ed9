"""A path of C where no kernel matrix can be held: the decomposition solver on streamed values, warm from C to C.

The same outcomes as `mercer.selection.cross_validation`, one fold and one machine after the other; the threads share
the tiles of each product instead of the folds or the pairs.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.losses import Loss
from mercer.problems import Problem, RegularisedRisk, rescale
from mercer.selection.class_pairs import Pairs
from mercer.selection.cross_validation import Classes, Matrix, Outcome, Settings, Targets, validated
from mercer.selection.folds import Layout
from mercer.solvers.monitor import Asking
from mercer.solvers.quadratic import decomposition
from mercer.solvers.solution import Solution

Array = NDArray[np.float64]
Index = NDArray[np.intp]


def solutions(
    X: Any, kernel: Kernel, where: Index, stated: tuple[Loss, Array, Array], settings: Settings, memory: int
) -> Iterator[Solution]:
    """The machine of a loss, targets and weights on the points `where` for every C in turn, until it is stopped.

    Every solution is the start of the next.
    """
    loss, y, weights = stated
    gram = Gram(kernel, X[where], memory=memory, precision="float32", access="rows")
    before: Problem | None = None
    variables: Array | None = None
    for C in settings.costs:
        if not settings.go_on():
            return
        problem = RegularisedRisk(gram, y, loss, float(C), weights)
        start = None if before is None or variables is None else rescale(variables, before, problem)
        solution = decomposition.solve(problem, tol=settings.tol, start=start, monitor=Asking(settings.go_on))
        if solution.stopped == "interrupted":
            return
        before, variables = problem, np.asarray(solution.variables)
        yield solution


def streamed_fold(
    X: Any, kernel: Kernel, layout: Layout, fold: int, kind: Classes | Targets, settings: Settings, memory: int
) -> Outcome:
    """Two classes or real targets: one fold for all C on points X (n, d) in working order."""
    held = layout.rows(fold)

    def machines(where: Index) -> Iterator[tuple[Array, int]]:
        for solution in solutions(X, kernel, where, kind.stated(where), settings, memory):
            used = np.flatnonzero(solution.coefficients)
            cross = Gram(kernel, X[held], X[where[used]], memory=memory, precision="float32")
            yield np.asarray(cross.dot(solution.coefficients[used])) + float(solution.bias), len(used)

    return validated(machines, layout, fold, kind, settings)


class StreamedPairs(Pairs):
    """All pairs of k > 2 classes, fold by fold, without the matrix of a pair."""

    def __init__(
        self, X: Any, kernel: Kernel, layout: Layout, classes: Classes, settings: Settings, memory: int
    ) -> None:
        self.X, self.kernel, self.memory = X, kernel, memory
        gram = Gram(kernel, X, storage="streamed", precision="float32", memory=memory)
        super().__init__(gram, layout, classes, settings)

    def blank(self, fold: int) -> list[Matrix]:
        """Nothing yet: only the fold at work has its coefficients."""
        return []

    def train_fold(self, fold: int) -> bool:
        """All pairs of one fold; False where the search was stopped meanwhile."""
        codes = self.classes.codes
        outside = self.layout.outside(fold)
        for pair, (i, j) in enumerate(zip(self.first.tolist(), self.second.tolist())):
            where = outside[(codes[outside] == i) | (codes[outside] == j)]
            own = codes[where]
            if self.lacking(fold, pair, own):
                continue
            stated = self.classes.stated(where, i)
            found = list(solutions(self.X, self.kernel, where, stated, self.settings, self.memory))
            if len(found) < self.costs:
                return False
            coefficients = np.stack([solution.coefficients for solution in found])
            self.store(fold, pair, own, coefficients, np.array([float(solution.bias) for solution in found]))
        return True

    def run(self, most: int | None = None) -> list[Outcome]:
        """All folds and pairs, one after the other."""
        outcomes = []
        for fold in range(self.layout.folds):
            began = time.perf_counter()
            self.coefficients[fold] = super().blank(fold)
            if self.train_fold(fold):
                scores, support = self.validate(fold)
                outcomes.append(Outcome(scores, support, time.perf_counter() - began, True))
            else:
                nothing = np.full(self.costs, np.nan)
                outcomes.append(Outcome(nothing, nothing, 0.0, False))
            self.coefficients[fold] = []
        return outcomes
