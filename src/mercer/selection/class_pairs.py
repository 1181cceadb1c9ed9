"""Cross-validation of more than two classes over all C at once: a machine for each pair of them.

One task for each pair: its matrix is cut once and serves all folds.  Then one task for each fold collects the votes of
all pairs on the held-out points.
"""

import time
from typing import Any

import numpy as np

from mercer import threads
from mercer.compiled import loop
from mercer.resources import row_blocks
from mercer.selection.cross_validation import Array, Classes, Index, Judge, Matrix, Outcome, Path, Settings
from mercer.selection.folds import Layout
from mercer.selection.similarities import Values

STRIP = 1 << 22  # kernel values computed between two polls, beside the matrix they go to
# Kernel values and votes of held-out points that one task holds at a time.
HELD_OUT_VALUES = 1 << 21


@loop
def _count_votes(products: Any, biases: Any, first: Any, second: Any, predicted: Any) -> None:
    """Class with most wins for every held-out point and cost; a tie goes to the class that comes first.

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
        self.coefficients = [self.blank(f) for f in range(layout.folds)]
        self.biases = np.zeros((layout.folds, len(self.first), self.costs))

    def blank(self, fold: int) -> list[Matrix]:
        """Coefficients of the machines of a fold before they are trained, class by class."""
        return [np.zeros((len(points), self.k - 1, self.costs), np.float32) for points in self.training[fold]]

    @staticmethod
    def matrix_bytes(classes: Classes) -> int:
        """Bytes of the kernel values of the largest pair."""
        return 4 * int(np.sort(np.bincount(classes.codes, minlength=classes.count))[-2:].sum()) ** 2

    @staticmethod
    def coefficient_bytes(classes: Classes, folds: int, costs: int) -> int:
        """Bytes of the coefficients of all machines of so many folds."""
        return 4 * folds * len(classes.codes) * (classes.count - 1) * costs

    def train(self, pair: int) -> None:
        """The paths of one pair in all folds, on one matrix."""
        i, j = int(self.first[pair]), int(self.second[pair])
        points = np.sort(np.concatenate([self.of_class[i], self.of_class[j]]))
        K = self._matrix(points)
        if K is None:
            return
        borders = np.searchsorted(self.fold[points], np.arange(self.layout.folds + 1))
        for f in range(self.layout.folds):
            if not self.settings.go_on():
                return
            held = slice(int(borders[f]), int(borders[f + 1]))
            where = np.concatenate([points[: held.start], points[held.stop :]])
            own = self.classes.codes[where]
            if self.lacking(f, pair, own):
                continue
            path = Path(K, held, self.classes.stated(where, i), self.settings)
            if not path.advance(self.costs):
                return
            self.store(f, pair, own, path.coefficients, path.biases)

    def lacking(self, fold: int, pair: int, own: Index) -> bool:
        """Whether a class of the pair has no point among `own`; the machine is then a constant."""
        there = (own == self.first[pair]).any(), (own == self.second[pair]).any()
        if not all(there):
            self.biases[fold, pair] = float(there[0]) - float(there[1])
        return not all(there)

    def store(self, fold: int, pair: int, own: Index, coefficients: Array, biases: Array) -> None:
        """Keep the machines (c, m), (c,) of a pair in a fold, trained on points of the classes `own` (m,)."""
        i, j = int(self.first[pair]), int(self.second[pair])
        rows = coefficients.T.astype(np.float32)
        self.coefficients[fold][i][:, j - 1] = rows[own == i]
        self.coefficients[fold][j][:, i] = rows[own == j]
        self.biases[fold, pair] = biases

    def _matrix(self, points: Index) -> Matrix | None:
        """Kernel values between all points (m,), the lower half computed and mirrored; None when stopped on the way."""
        m = len(points)
        if m * m <= STRIP:
            return self.values.block(points, points)
        K = np.empty((m, m), np.float32)
        for strip in row_blocks(m, m, STRIP):
            if not self.settings.go_on():
                return None
            a, b = strip.start, strip.stop
            K[a:b, a:b] = self.values.block(points[a:b], points[a:b])
            if a:
                K[a:b, :a] = self.values.block(points[a:b], points[:a])
                K[:a, a:b] = K[a:b, :a].T
        return K

    def validate(self, fold: int) -> tuple[Array, Array]:
        """Scores and numbers of support vectors (c,) of one fold, some held-out points at a time."""
        held = self.layout.rows(fold)
        support = np.zeros(self.costs)
        used, weights = [], []
        for c in self.coefficients[fold]:
            support += c.any(axis=1).sum(axis=0)
            used.append(np.flatnonzero(c.any(axis=(1, 2))))
            weights.append(c[used[-1]].reshape(len(used[-1]), (self.k - 1) * self.costs))
        predicted = np.empty((held.stop - held.start, self.costs), np.intp)
        each = max(len(index) for index in used) + self.k * (self.k - 1) * self.costs
        for here in row_blocks(len(predicted), each, HELD_OUT_VALUES):
            rows = slice(held.start + here.start, held.start + here.stop)
            count = rows.stop - rows.start
            products = np.zeros((self.k, count, self.k - 1, self.costs), np.float32)
            for i in range(self.k):
                if used[i].size:
                    block = self.values.block(rows, self.training[fold][i][used[i]])
                    np.dot(block, weights[i], out=products[i].reshape(count, -1))
            _count_votes(products, self.biases[fold], self.first, self.second, predicted[here])
        judge = Judge(self.classes, held, self.settings.score)
        return np.array([judge(predicted[:, c]) for c in range(self.costs)]), support

    def run(self, most: int | None = None) -> list[Outcome]:
        """All folds, with the matrices of at most so many pairs at a time."""
        began = time.perf_counter()
        # Large pairs first, so that no thread is left with one at the end; results do not depend on the order.
        sizes = [len(self.of_class[i]) + len(self.of_class[j]) for i, j in zip(self.first, self.second)]
        with threads.one_blas_thread():
            threads.run(self.train, [(int(p),) for p in np.argsort(sizes)[::-1]], most)
            if not self.settings.go_on():
                nothing = np.full(self.costs, np.nan)
                return [Outcome(nothing, nothing, 0.0, False)] * self.layout.folds
            found = threads.run(self.validate, [(f,) for f in range(self.layout.folds)])
        seconds = (time.perf_counter() - began) / self.layout.folds
        return [Outcome(scores, support, seconds, True) for scores, support in found]
