"""Cross-validation of kernel logistic regression over all C at once, for any number of classes.

Outside a fold the machines of a row of rising C are one path (`mercer.selection.newton_path`).  Held-out points are
judged by their probabilities, so that the search looks for the best of these; scores of labels take the most probable
class.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.gram import Gram, GramOperator, take
from mercer.kernels import Kernel, Precomputed
from mercer.problems.multinomial import MultinomialLogistic, softmax
from mercer.selection.cross_validation import Classes, Outcome, Settings, validated
from mercer.selection.folds import Layout
from mercer.selection.newton_path import along, values_at
from mercer.selection.scoring import CERTAIN
from mercer.solvers.multiclass import multinomial

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class Distributions(Classes):
    """k classes whose probabilities are predicted; `labels` says that the score wants the most probable class."""

    labels: bool = False

    def losses(self, truth: Any, predicted: Any) -> Array:  # type: ignore[override]  # needs to know what is predicted
        """Errors (n,), or minus the logarithms of the probabilities of the true classes."""
        if self.labels:
            return super().losses(truth, predicted)
        return np.asarray(-np.log(np.maximum(predicted[np.arange(len(truth)), truth], CERTAIN)))

    def decided(self, values: Array) -> Any:  # type: ignore[override]  # for the same reason
        """Classes (n,) or probabilities (n, k) of the outputs (n, k)."""
        return np.argmax(values, axis=1) if self.labels else softmax(values)

    def certain(self, code: int, n: int) -> NDArray[Any]:
        """Classes (n,), or probabilities (n, k) that are one for the class that was seen."""
        return np.asarray(self.decided(np.tile(np.where(np.arange(self.count) == code, 0.0, -np.inf), (n, 1))))


def stored_fold(K: Any, layout: Layout, fold: int, kind: Distributions, settings: Settings) -> Outcome:
    """The path outside a fold on a stored kernel matrix K (n, n)."""
    held = layout.rows(fold)

    def machines(where: Index) -> Iterator[tuple[Array, int]]:
        own = np.asarray(K[np.ix_(where, where)], dtype=np.float64)
        gram = Gram(Precomputed(), 0.5 * (own + own.T))  # values in float32 are symmetric but for their rounding
        rows = K[held][:, where]
        return _along(gram, kind, where, settings, lambda c: np.asarray(rows @ c))

    return validated(machines, layout, fold, kind, settings)


def streamed_fold(
    X: Any, kernel: Kernel, layout: Layout, fold: int, kind: Distributions, settings: Settings, memory: int
) -> Outcome:
    """The same where the matrix does not fit: its values are computed again for every product."""
    held = take(X, layout.rows(fold))

    def machines(where: Index) -> Iterator[tuple[Array, int]]:
        points = take(X, where)
        at_held = values_at(held, kernel, points, memory // 2)
        return _along(Gram(kernel, points, memory=memory // 2), kind, where, settings, at_held)

    return validated(machines, layout, fold, kind, settings)


def _along(
    gram: GramOperator, kind: Distributions, where: Index, settings: Settings, at_held: Callable[[Array], Array]
) -> Iterator[tuple[Array, int]]:
    """Outputs (held out, k) for every C in turn; `at_held` takes coefficients (m, k)."""
    present, codes = np.unique(kind.codes[where], return_inverse=True)
    weights = kind.weights[where]

    def problem(C: float) -> MultinomialLogistic:
        return MultinomialLogistic(gram, codes, C, weights, "free", k=len(present))

    for found in along(problem, multinomial.solve, settings):
        outputs = at_held(found.coefficients) + np.asarray(found.bias)
        values = np.full((len(outputs), kind.count), -np.inf)  # of a class that only the fold has
        values[:, present] = outputs
        yield values, len(where)
