"""AdaBoost: members trained one after the other, each on the points that those before it found hard.

The mathematics is in `mercer.solvers.boosting`.  A learner that takes weights is trained with n D, of mean one, so that
C keeps its meaning; one that takes none, and any learner on subsets (`size`), is trained on points drawn from D.  On
subsets the weighted error is still taken over all points, so that the bound on the training error holds (arcing;
Pavlov, Mao and Dom 2000; Hamers 2004, section 6.3).
"""

from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context, is_regressor
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import ClassifierTags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, has_fit_parameter

from mercer.ensembles import combining, sampling
from mercer.ensembles.base import Array, Data, Index
from mercer.ensembles.members import Crew
from mercer.ensembles.sampled import BankedEnsemble
from mercer.ensembles.sampling import Sample
from mercer.errors import InvalidInput
from mercer.machine.fitted_state import State, Values, Word
from mercer.selection.bounds.boosting import boosted_margin_error
from mercer.selection.bounds.result import Bound
from mercer.solvers import boosting
from mercer.solvers.boosting import Boosted
from mercer.solvers.monitor import Monitor

METHODS = ("adaboost", "arc-gv", "logitboost")


@dataclass(kw_only=True, eq=False, repr=False)
class AdaBoost(BankedEnsemble):
    """A weighted vote of members, each trained on the points that those before it found hard.

    Parameters
    ----------
    base : any classifier; None is a decision stump.  "logitboost" takes a regressor, such as a tree or LSSVR.
    rounds : at most so many members; a member without error, or no better than chance, is the last.
    method : "adaboost", for any number of classes; "arc-gv", which maximises the smallest margin, and "logitboost",
        which descends the logistic loss, for two.
    size : points drawn from the distribution for each member, a number or a share; None trains on all of them with
        weights.
    random_state : seed of the draws.
    verbose, n_jobs, executor : as in `Bagging`; the members come one after the other.

    Attributes
    ----------
    alphas_ : weights (T,) of the members; errors_ their weighted errors (T,); normalisers_ the Z_t (T,).  Of
        "logitboost": 1/2, the training error and the logistic loss after each round.
    ended_ : "rounds", "perfect" (a member without error), "weak" (one no better than chance) or "interrupted".
    bank_ and all others : as in `Bagging`.

    """

    _default = partial(DecisionTreeClassifier, max_depth=1, random_state=0)

    rounds: int = 50
    method: str = "adaboost"
    size: float | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BankedEnsemble._parameter_constraints,
        "rounds": [Interval(Integral, 1, None, closed="left")],
        "method": [StrOptions(set(METHODS))],
        "size": [Interval(Integral, 1, None, closed="left"), Interval(Real, 0.0, 1.0, closed="right"), None],
    }

    @property
    def _classify(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if tags.classifier_tags is None:
            tags.estimator_type, tags.classifier_tags, tags.regressor_tags = "classifier", ClassifierTags(), None
        return tags

    # Training --------------------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "AdaBoost":
        """Train on points X and labels y (n,); `sample_weight` (n,) is the distribution of the first round."""
        self._refuse_other_bases()
        data = self._data(X, y, sample_weight).merged()
        if self.method != "adaboost" and len(self.classes_) > 2:
            raise InvalidInput(
                f'method="{self.method}" is for two classes, y has {len(self.classes_)}: OutputCode(AdaBoost(...)) '
                "boosts the machines of a code"
            )
        whole = Sample(np.arange(data.n))
        with self._watched(X, y) as monitor:
            crew = Crew(
                data, [self._base] * 2, [whole] * 2, self._columns, executor=self.executor
            )  # two share a matrix
            crew.prepare()
            self._boost(crew, data, whole, monitor)
            crew.forget()
        return self

    def _refuse_other_bases(self) -> None:
        logit = self.method == "logitboost"
        if is_regressor(self._first) != logit:
            kind = "a regressor" if logit else "a classifier"
            raise InvalidInput(f'method="{self.method}" boosts {kind}; base={self._first!r} is none')
        if logit and not has_fit_parameter(self._first, "sample_weight"):
            raise InvalidInput(f"{type(self._first).__name__} takes no sample_weight, which logitboost needs")

    def _boost(self, crew: Crew, data: Data, whole: Sample, monitor: Monitor) -> None:
        assert data.codes is not None
        codes = data.codes
        random, samples = self._generator(), []
        drawn = self.size is not None or not has_fit_parameter(self._first, "sample_weight")
        total = data.n if data.weights is None else float(data.weights.sum())
        size = sampling.absolute(1.0 if self.size is None else self.size, data.n)

        def learn(D: Array) -> tuple[Any, Index] | None:
            sample = _drawn(D, size, codes, random) if drawn else whole
            if sample is None:
                return None
            weights = np.ones(data.n) if drawn else total * D
            machine = crew.run(crew.job(0, sample=sample, weights=weights))
            samples.append(sample)
            return machine, _codes(crew.output(machine, sample))

        def regress(z: Array, weights: Array) -> tuple[Any, Array]:
            machine = crew.run(crew.job(0, weights=weights * total / weights.sum(), targets=z))
            samples.append(whole)
            return machine, crew.output(machine, whole)[:, 0]

        if self.method == "logitboost":
            found = boosting.logit_boost(regress, codes == 1, self.rounds, start=data.weights, monitor=monitor)
        else:
            method: Any = self.method
            found = boosting.boost(
                learn, codes, len(self.classes_), self.rounds, method=method, start=data.weights, monitor=monitor
            )
        if not found.rounds:
            raise InvalidInput(f"size={self.size!r}: a draw of {size} points never holds every class; draw more")
        self._keep(crew, found, samples)

    def _keep(self, crew: Crew, found: Boosted, samples: list[Sample]) -> None:
        machines = [one.hypothesis for one in found.rounds]
        self.bank_ = crew.members(machines, samples[: len(machines)])
        self.coverage_ = sampling.coverage(self.bank_.samples, crew.data.n)
        self.alphas_ = found.alphas
        self.errors_ = np.array([one.error for one in found.rounds])
        self.normalisers_ = np.array([one.normaliser for one in found.rounds])
        self.ended_ = found.stopped
        self._conclude("interrupted" if found.stopped == "interrupted" else None)

    def _state(self) -> State:
        vectors = dict.fromkeys(("alphas_", "errors_", "normalisers_"), Values(("members",)))
        return {**super()._state(), **vectors, "ended_": Word(("rounds", "perfect", "weak", "interrupted"))}

    # Prediction and margins ------------------------------------------------------------------------------------

    def _combine(self, F: Array) -> Array:
        """For "logitboost" half the log-odds, else the margins of the classes between -1 and 1."""
        if self.method == "logitboost":
            return combining.weighted(F, self.alphas_)
        return combining.weighted(combining.decisions(F), self.alphas_ / self.alphas_.sum())

    def margins(self, X: Any, y: Any) -> Array:
        """Margins y f(x) (n,) of points of two classes, from -1 to 1, f = sum alpha g / sum alpha."""
        check_is_fitted(self)
        if len(self.classes_) != 2 or self.method == "logitboost":
            raise InvalidInput("margins are those of a weighted vote about two classes")
        labels = column_or_1d(y)
        check_consistent_length(X, labels)
        unknown = ~np.isin(labels, self.classes_)
        if unknown.any():
            raise InvalidInput(f"y holds the label {labels[unknown][0]!r}, which is none of {list(self.classes_)}")
        return np.asarray(np.where(labels == self.classes_[1], 1.0, -1.0) * self.decision_function(X))

    def margin_bound(self, rho: float = 0.0) -> Bound:
        """Theorem 1.12: bound on the share of training points of margin at most rho; at rho = 0 on training errors.

        For AdaBoost without sample weights; `mercer.selection.bounds.boosted_margin_error` has the formula.
        """
        check_is_fitted(self)
        if self.method != "adaboost" or len(self.classes_) != 2:
            raise InvalidInput('the bound is for method="adaboost" and two classes')
        return boosted_margin_error(self.errors_, rho)


def _codes(values: Array) -> Index:
    """Classes (n,) from outputs (n, k)."""
    return (values[:, 0] > 0).astype(np.intp) if values.shape[1] == 1 else np.argmax(values, axis=1)


def _drawn(D: Array, size: int, codes: Index, random: np.random.Generator) -> Sample | None:
    """A draw from D that holds every class; None where there was none in many."""
    for _ in range(sampling.DRAWS):
        rows, counts = np.unique(random.choice(len(D), size, p=D), return_counts=True)
        if len(np.unique(codes[rows])) == int(codes.max()) + 1:
            return Sample(rows.astype(np.intp), counts.astype(np.float64))
    return None
