"""TunedOrdinalSVC, TunedProportionalOdds, TunedRankSVM: ranks and orders with C and width found by cross-validation.

The search (`mercer.selection.latent_path`) states the problems of the machines themselves and asks them what they
predict, so that its scores are those of separate fits.  Folds of a ranking never part a query.
"""

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context, clone
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput
from mercer.machine import arguments
from mercer.ordinal import OrdinalSVC, ProportionalOdds, RankSVM, metrics
from mercer.ordinal.ranking import group_codes
from mercer.problems.latent import LatentProblem
from mercer.selection import scoring
from mercer.selection.latent_path import Learner
from mercer.selection.search import Data
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution
from mercer.tuned.estimators import TunedClassifier, TunedMachine, WithProbabilities

Array = NDArray[np.float64]
Index = NDArray[np.intp]

OF_RANKS = ("neg_rank_error", "accuracy", "balanced_accuracy", "pairs_in_order")
OF_ORDERS = ("pairs_in_order", "ndcg", "map")
PLACES = re.compile(r"ndcg@([1-9][0-9]*)")
UTILITIES = {"pairs_in_order", "ndcg", "map"}  # scores of what points are sorted by


@dataclass(frozen=True)
class RankScore:
    """A score of ranks or orders by its name; larger is better.

    "neg_rank_error" (minus the mean number of ranks between truth and answer), "accuracy", "balanced_accuracy",
    "neg_log_loss", "pairs_in_order" (the share of the pairs of different rank in one group that are in order), "ndcg"
    or "ndcg@10" (of the first ten), "map".  The last two count every group once, whatever the weights of its points.
    """

    name: str

    def __call__(self, y: Any, predicted: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """The score of predictions for ranks or relevances y (n,)."""
        if self.name == "neg_rank_error":
            return scoring.negative_absolute_error(y, predicted, sample_weight)
        if self.name == "pairs_in_order":
            return _pairs_in_order(y, predicted, sample_weight, groups)
        if self.name == "map":
            return metrics.mean_average_precision(y, predicted, groups=groups)
        if self.name in scoring.CLASSIFICATION | scoring.PROBABILITY:
            return (scoring.CLASSIFICATION | scoring.PROBABILITY)[self.name](y, predicted, sample_weight)
        places = PLACES.fullmatch(self.name)
        return metrics.ndcg(y, predicted, k=None if places is None else int(places[1]), groups=groups)

    @property
    def output(self) -> str:
        """What it judges."""
        if self.name in UTILITIES or PLACES.fullmatch(self.name):
            return "utility"
        return "probabilities" if self.name in scoring.PROBABILITY else "ranks"


def _pairs_in_order(y: Any, f: Any, weights: Any, groups: Any) -> float:
    """Share of the pairs that are in order; one where there is no pair to order, as nothing is wrong."""
    wrong, total = metrics.pair_counts(y, f, groups=groups, sample_weight=weights)
    return 1.0 - wrong / total if total > 0.0 else 1.0


def _scored(asked: Any, known: tuple[str, ...]) -> Any:
    """The score behind a name, the first of those that are known by default; a function is taken as it is."""
    if callable(asked):
        return asked
    name = known[0] if asked is None else str(asked)
    if name not in known and not (PLACES.fullmatch(name) and "ndcg" in known):
        listed = ", ".join(known) + (", ndcg@10" if "ndcg" in known else "")
        raise InvalidInput(f"scoring={asked!r} is not known here; give one of {listed} or a function")
    return RankScore(name)


@dataclass(frozen=True)
class RankLearner:
    """`OrdinalSVC` or `ProportionalOdds` as the search sees it."""

    machine: Any
    output: str

    @property
    def by_pairs(self) -> bool:
        """Whether it learns from pairs."""
        return getattr(self.machine, "thresholds", "") == "pairs"

    def problem(self, gram: Any, ranks: Index, C: float, weights: Array, queries: Index | None) -> LatentProblem:
        """The machine's own problem."""
        problem: LatentProblem = clone(self.machine).set_params(C=C)._problem(gram, ranks, weights)
        return problem

    def predicted(self, f: Array, solution: Solution, ranks: Index, weights: Array) -> NDArray[Any]:
        """The machine's own answers."""
        if self.output == "utility":
            return f
        own = clone(self.machine)
        own.thresholds_ = own._thresholds(solution, ranks, weights)
        if self.output == "probabilities":
            return np.asarray(np.exp(own._log_shares(f)))
        return np.asarray(own.decided(own._decisions(f)))


@dataclass(frozen=True)
class OrderLearner:
    """`RankSVM` as the search sees it."""

    machine: RankSVM
    output: str = "utility"
    by_pairs: bool = True

    def problem(self, gram: Any, ranks: Index, C: float, weights: Array, queries: Index | None) -> LatentProblem:
        """The machine's own problem."""
        problem: LatentProblem = clone(self.machine).set_params(C=C)._problem(gram, ranks, weights, queries)
        return problem

    def predicted(self, f: Array, solution: Solution, ranks: Index, weights: Array) -> NDArray[Any]:
        """The latent values themselves."""
        return f


def _pair_unit(data: Data, y: Any) -> float:
    """Points over pairs: C in this unit is the weight of a point, whatever the number of its pairs."""
    total = metrics.pair_counts(y, np.zeros(data.n), groups=data.queries, sample_weight=data.weights)[1]
    return float(data.weights.sum()) / total if total > 0.0 else 1.0


@dataclass(kw_only=True, eq=False, repr=False)
class TunedRanks(TunedClassifier):
    """What the two machines of ranks share."""

    _scores: ClassVar[tuple[str, ...]]
    _of_function: ClassVar[str] = "ranks"
    """What a function of the user is given."""

    def _score(self) -> Any:
        return _scored(self.scoring, self._scores)

    def _learner(self) -> Learner:
        machine = self._final(**{name: getattr(self, name) for name in self._own})
        return RankLearner(machine, getattr(self._score(), "output", self._of_function))

    def utility(self, X: Any) -> Array:
        """Values (n,) of the latent function: the higher, the better."""
        return self._answer("utility", X)

    @property
    def thresholds_(self) -> Array:
        """Thresholds (k - 1,) between the ranks."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.thresholds_)


@dataclass(kw_only=True, eq=False, repr=False)
class TunedOrdinalSVC(TunedRanks):
    """`OrdinalSVC` with C and the kernel's width chosen by cross-validation.

    The parameters and attributes are those of `TunedSVC` without `probability`, and

    thresholds : as in `OrdinalSVC`.
    loss : "squared_hinge" or "hinge"; the former is solved in a few steps at every C, which a search has many of.
    scoring : "neg_rank_error" (None), "accuracy", "balanced_accuracy", "pairs_in_order", or a function of the codes
        0..k-1 of the ranks and predicted codes.
    tol : relative duality gap, in the search and in the final machine.
    best_estimator_ : the `OrdinalSVC` trained on all points; thresholds_ are its own.
    """

    thresholds: str = "implicit"
    loss: str = "squared_hinge"

    _final = OrdinalSVC
    _own = ("class_weight", "thresholds", "loss")
    _scores = OF_RANKS

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TunedClassifier._parameter_constraints,
        **{name: OrdinalSVC._parameter_constraints[name] for name in ("thresholds", "loss")},
    }

    def _unit(self, data: Data) -> float:
        return _pair_unit(data, data.codes) if self.thresholds == "pairs" else 1.0


@dataclass(kw_only=True, eq=False, repr=False)
class TunedProportionalOdds(WithProbabilities, TunedRanks):
    """`ProportionalOdds` with C and the kernel's width chosen by cross-validation, by its probabilities.

    The parameters and attributes are those of `TunedSVC` without `probability`, and

    link : as in `ProportionalOdds`.
    scoring : "neg_log_loss" (None), "neg_brier_score", "neg_rank_error", "accuracy", "balanced_accuracy",
        "pairs_in_order", or a function of the codes 0..k-1 of the ranks and the probabilities (n, k).
    tol : relative duality gap, in the search and in the final machine.
    best_estimator_ : the `ProportionalOdds` trained on all points; thresholds_ are its own.
    """

    link: str = "logit"

    _final = ProportionalOdds
    _own = ("class_weight", "link")
    _scores = (*scoring.PROBABILITY, *OF_RANKS)
    _of_function = "probabilities"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TunedClassifier._parameter_constraints,
        "link": ProportionalOdds._parameter_constraints["link"],
    }


@dataclass(kw_only=True, eq=False, repr=False)
class TunedRankSVM(TunedMachine):
    """`RankSVM` with C and the kernel's width chosen by cross-validation, whose folds part no query.

    The parameters and attributes are those of `TunedSVC` without those that speak of classes, and

    C : values to try; by default they are counted in points over pairs, because C multiplies the loss of every pair.
    loss : as in `RankSVM`.
    folds : number of folds, queries dealt out evenly by their points, or the fold of each point (n,).
    scoring : "pairs_in_order" (None), "ndcg", "ndcg@10" (of the first 10, or any other number), "map", or a function of
        the relevances and the values that points are sorted by; it gets `groups` where it has such an argument.
    tol : relative duality gap, in the search and in the final machine.
    best_estimator_ : the `RankSVM` trained on all points.
    """

    loss: str = "squared_hinge"

    _final = RankSVM
    _own = ("loss",)

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TunedMachine._parameter_constraints,
        "loss": [StrOptions({"hinge", "squared_hinge"})],
    }

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Search, then train on all points X (n, d), relevances y (n,) and the query of every point, `groups` (n,)."""
        self._fit(X, y, sample_weight, None, groups=groups)
        return self

    def _score(self) -> Any:
        return _scored(self.scoring, OF_ORDERS)

    def _unit(self, data: Data) -> float:
        return _pair_unit(data, data.codes)

    def _found(self, X: Any, y: Any, sample_weight: Any, monitor: Monitor | None, groups: Any = None) -> Any:
        X, y = arguments.training_data(self, "features", X, y, numeric=True)
        codes = group_codes(groups, y)
        points, kept, counted, folds = self._distinct(X, np.column_stack([y, codes]), sample_weight)
        targets = np.asarray(y, dtype=np.float64)[kept]
        queries = None if groups is None else group_codes(codes[kept], targets)
        values, ranks = np.unique(targets, return_inverse=True)
        if len(values) < 2:
            raise InvalidInput("all targets are equal, and one class has no order: give at least two ranks")
        weights = np.ones(len(targets)) if counted is None else counted
        points, learner = arguments.working_form(points), OrderLearner(RankSVM(loss=self.loss))
        data = Data(points, ranks, targets, len(values), weights, counted, learner=learner, queries=queries)
        self._search(data, data.X, y, None, folds, monitor)
        return self._machine().fit(X, y, sample_weight=sample_weight, groups=groups)

    def utility(self, X: Any) -> Array:
        """Values (n,) of the latent function: the higher, the earlier in the order."""
        return self._answer("utility", X)

    def decision_function(self, X: Any) -> Array:
        """The same values."""
        return self.utility(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """Share of the pairs of different rank in one group that are put in the right order; ties are wrong."""
        X = self._checked(X)
        return float(self.best_estimator_.score(X, y, sample_weight, groups))
