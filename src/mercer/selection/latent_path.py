"""Cross-validation of machines of one latent function over all C at once: ranks by thresholds, orders by pairs.

Outside a fold the machines of a row of rising C are one path (`mercer.selection.newton_path`).  All folds read
stretches of one stored kernel matrix; where that does not fit, and for a linear kernel, whose products need the points
alone, every fold has an operator of its own.

How a problem is stated and what it predicts is the machine's own affair, behind `Learner`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.gram import Gram, GramOperator, StoredStretches, take
from mercer.kernels import Kernel
from mercer.problems.latent import LatentProblem
from mercer.selection.cross_validation import Classes, Outcome, Settings, validated
from mercer.selection.folds import Layout
from mercer.selection.newton_path import along, values_at
from mercer.selection.scoring import CERTAIN
from mercer.solvers.ordinal import newton
from mercer.solvers.solution import Solution

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class Learner(Protocol):
    """A machine of one latent function as a search sees it; ranks (m,) are numbers from 0 on, without holes."""

    @property
    def output(self) -> str:
        """What is predicted: "ranks", "probabilities", or the "utility" that points are sorted by."""
        ...

    @property
    def by_pairs(self) -> bool:
        """Whether C multiplies losses of pairs and not of points."""
        ...

    def problem(self, gram: Any, ranks: Index, C: float, weights: Array, queries: Index | None) -> LatentProblem:
        """The problem of m points; pairs are those of one query, where there are queries (m,)."""
        ...

    def predicted(self, f: Array, solution: Solution, ranks: Index, weights: Array) -> NDArray[Any]:
        """What a score asks of points with latent values f (n,): these, ranks (n,), or probabilities (n, q).

        `ranks` and `weights` (m,) are those of the problem that was solved.
        """
        ...


@dataclass(frozen=True)
class Ranks(Classes):
    """Ranks in place of classes; the relevance (n,) that ranks stand for and the query (n,), where they matter."""

    learner: Learner = field(kw_only=True)
    relevance: Array | None = None
    queries: Index | None = None

    @property
    def truth(self) -> Any:
        """What is to be predicted, (n,): relevances where they are known, else codes."""
        return self.codes if self.relevance is None else self.relevance

    @property
    def groups(self) -> Index | None:
        """Queries (n,), inside which points are compared."""
        return self.queries

    @property
    def output(self) -> str:
        """What is predicted."""
        return self.learner.output

    def losses(self, truth: Any, predicted: Any, groups: Any = None) -> Array:  # type: ignore[override]  # of the output
        """Losses (n,): ranks between truth and answer, -log of the probability, or wrong orders of disjoint pairs."""
        if self.output == "probabilities":
            return np.asarray(-np.log(np.maximum(predicted[np.arange(len(truth)), truth], CERTAIN)))
        if self.output == "ranks":
            return np.asarray(np.abs(predicted - truth), dtype=np.float64)
        return disorder(truth, predicted, groups)

    def decided(self, values: Any) -> Any:  # type: ignore[override]  # the learner has decided
        """The predictions themselves."""
        return values

    def certain(self, code: int, n: int) -> NDArray[Any]:
        """What is predicted for n points where one rank alone was seen."""
        if self.output == "probabilities":
            return np.tile(np.eye(self.count)[code], (n, 1))
        return np.full(n, code) if self.output == "ranks" else np.zeros(n)

    def among_all(self, predicted: NDArray[Any], present: Index) -> NDArray[Any]:
        """Predictions about the ranks `present` in training as predictions about all ranks."""
        if self.output == "utility":
            return predicted
        if self.output == "ranks":
            return np.asarray(present[predicted])
        shares = np.zeros((len(predicted), self.count))
        shares[:, present] = predicted
        return shares


def disorder(truth: Index, values: Array, groups: Index | None) -> Array:
    """1 at the first point (n,) of every pair in the wrong order, of disjoint pairs of neighbours in one group.

    Pairs that share no point are independent, so that the standard error of their mean is an honest one.
    """
    own = np.zeros(len(truth), dtype=np.intp) if groups is None else np.asarray(groups)
    order = np.argsort(own, kind="stable")
    begins = np.flatnonzero(np.diff(own[order], prepend=own[order][:1] - 1))
    place = np.arange(len(order)) - np.repeat(begins, np.diff(begins, append=len(order)))
    at = np.flatnonzero((place[:-1] % 2 == 0) & (own[order][:-1] == own[order][1:]))
    first, second = order[at], order[at + 1]
    sign = np.sign(np.asarray(truth)[first] - np.asarray(truth)[second])
    found = np.zeros(len(truth))
    found[first] = (sign != 0) & (sign * (values[first] - values[second]) <= 0.0)
    return found


def by_points(kernel: Kernel, X: Any) -> bool:
    """Whether products with the kernel matrix are those with the points: a linear kernel of few features."""
    profile = kernel.profile
    linear = profile is not None and profile.name == "linear" and profile.scale is None
    return linear and int(X.shape[1]) < int(X.shape[0])


def stored_fold(K: Any, layout: Layout, fold: int, kind: Ranks, settings: Settings) -> Outcome:
    """The path outside a fold on a stored kernel matrix K (n, n), of which nothing is copied."""
    held = layout.rows(fold)

    def machines(where: Index) -> Iterator[tuple[Any, int]]:
        gram = StoredStretches(K, (0, held.start, held.stop), len(where))
        block, middle = K[held], held.start

        def at_held(c: Array) -> Array:
            found = block[:, :middle] @ c[:middle].astype(K.dtype) + block[:, held.stop :] @ c[middle:].astype(K.dtype)
            return np.asarray(found, dtype=np.float64)

        return _along(gram, kind, where, settings, at_held)

    return validated(machines, layout, fold, kind, settings)


def streamed_fold(
    X: Any, kernel: Kernel, layout: Layout, fold: int, kind: Ranks, settings: Settings, memory: int
) -> Outcome:
    """The same by an operator of its own."""
    held = take(X, layout.rows(fold))

    def machines(where: Index) -> Iterator[tuple[Any, int]]:
        points = take(X, where)
        at_held = values_at(held, kernel, points, memory // 2)
        storage = "lowrank" if by_points(kernel, points) else "auto"
        gram = Gram(kernel, points, memory=memory // 2, storage=storage)
        return _along(gram, kind, where, settings, lambda c: at_held(c[:, None])[:, 0])

    return validated(machines, layout, fold, kind, settings)


def _along(
    gram: GramOperator | StoredStretches, kind: Ranks, where: Index, settings: Settings,
    at_held: Callable[[Array], Array],
) -> Iterator[tuple[Any, int]]:  # fmt: skip
    """Predictions of the held-out points for every C in turn; `at_held` takes coefficients (m,)."""
    present, ranks = np.unique(kind.codes[where], return_inverse=True)
    queries = None if kind.queries is None else np.unique(kind.queries[where], return_inverse=True)[1]
    weights = kind.weights[where]

    def problem(C: float) -> LatentProblem:
        try:
            return kind.learner.problem(gram, ranks, C, weights, queries)
        except InvalidInput as error:
            raise InvalidInput(f"the points outside a fold teach nothing: {error}; take fewer folds") from None

    for found in along(problem, newton.solve, settings):
        predicted = kind.learner.predicted(at_held(found.coefficients), found, ranks, weights)
        yield kind.among_all(predicted, present), int(np.count_nonzero(found.coefficients))
