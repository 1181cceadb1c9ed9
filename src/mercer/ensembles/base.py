"""What all ensembles share: a base machine, checked data, outputs that become labels or values, certificates together.

An ensemble combines the functions f_1, ..., f_q of its members.  A member's outputs at n points are (n, k): one column
for a regression and for two classes (positive for classes_[1]), one column for each class where there are more.
Whether an ensemble is a classifier or a regressor follows from its base.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.callback import CallbackSupportMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer import threads
from mercer.ensembles.sampling import Coverage
from mercer.errors import InvalidInput
from mercer.machine import arguments, repeated_rows
from mercer.machine.arguments import HoldsValues, Kind, kind_of, refuse_negative, sample_weights
from mercer.machine.callbacks import watching
from mercer.machine.fitted_state import Labels, State, Values
from mercer.machine.outcome import MadeOfMachines
from mercer.solvers.monitor import Monitor
from mercer.svm import SVC

Array = NDArray[np.float64]
Index = NDArray[np.intp]

SMALLEST = 1e-9  # probabilities stay this far from 0 and 1 on their way to log-odds


@dataclass(frozen=True)
class Data:
    """Checked training data: n points of positive weight.

    X is in the form of its kind, (n, n) where it is a kernel matrix; y (n,) are labels or numbers; codes (n,) the
    classes 0..k-1 of a classifier, None for a regression; weights (n,), None where all are one.  `point` is the place
    here of each row of positive weight that was handed to `fit`: its own, until copies are `merged`; `kept` are these
    rows, None: all.
    """

    kind: Kind
    X: Any
    y: NDArray[Any]
    codes: Index | None
    weights: Array | None
    point: Index
    kept: Index | None = None

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.y)

    def take(self, rows: Index) -> Any:
        """Points at `rows`; of a kernel matrix their rows and columns."""
        return self.X[np.ix_(rows, rows)] if self.kind == "precomputed" else arguments.take(self.X, rows)

    def merged(self, *, ordered: bool = True) -> "Data":
        """The distinct points, copies being one point of their weight, in an order that the rows have no part in.

        A weight of two and two copies are then the same data, whatever is drawn or left out later.  Unless `ordered`,
        points of equal weight keep their order.
        """
        if self.kind != "features":
            return self
        labels = np.unique(self.y, return_inverse=True)[1]
        rows = repeated_rows.distinct(self.X, labels, self.weights, ordered=ordered)
        if rows is None:
            return self
        first = rows.first
        X, codes = arguments.take(self.X, first), None if self.codes is None else self.codes[first]
        return replace(self, X=X, y=self.y[first], codes=codes, weights=rows.weights, point=rows.point(self.n))


def _classifies(estimator: "Ensemble") -> bool:
    if not estimator._classify:
        raise AttributeError("decision_function is for classifiers; this ensemble is a regressor")
    return True


class FittedEnsemble(MadeOfMachines, MetaEstimatorMixin, CallbackSupportMixin, HoldsValues):  # type: ignore[misc]  # untyped
    """An ensemble as it is after its fit."""

    classes_: NDArray[Any]
    kernel_: Any
    stopped_: str
    bank_: Any
    coverage_: Coverage
    _kept: Index | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class Ensemble(FittedEnsemble):
    """Base of the ensembles; see `Bagging` for the meaning of the parameters."""

    _default: ClassVar[Callable[[], Any]] = SVC
    """What makes the base where none is given."""

    base: Any = field(default=None, kw_only=False)
    random_state: Any = None
    verbose: bool | int = False
    n_jobs: int | None = None
    executor: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "base": "no_validation",  # type: ignore[dict-item]  # scikit-learn takes the word
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "n_jobs": [Integral, None],
        "executor": [Executor, None],
    }

    # What it is ------------------------------------------------------------------------------------------------

    @property
    def _base(self) -> Any:
        """The machine, or the list of machines, that the members are made of."""
        return type(self)._default() if self.base is None else self.base

    @property
    def _bases(self) -> list[Any]:
        return list(self._base) if isinstance(self._base, (list, tuple)) else [self._base]

    @property
    def _first(self) -> Any:
        found = self._bases
        if not found:
            raise InvalidInput("base holds no machine; give one, or a list of them")
        return found[0]

    @property
    def _classify(self) -> bool:
        """Whether it predicts classes."""
        return bool(is_classifier(self._first))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = get_tags(self._first)
        tags.estimator_type, tags.regressor_tags = own.estimator_type, own.regressor_tags
        if own.classifier_tags is not None:
            tags.classifier_tags = replace(own.classifier_tags, multi_label=False)
        tags.target_tags.required = True
        tags.input_tags.sparse, tags.input_tags.pairwise = own.input_tags.sparse, own.input_tags.pairwise
        return tags

    def __sklearn_clone__(self) -> Self:
        """A copy of the parameters; the executor, which runs elsewhere, is the same."""
        own = self.get_params(deep=False)
        executor = own.pop("executor")
        copy = type(self)(**{name: clone(value, safe=False) for name, value in own.items()}, executor=executor)
        if hasattr(self, "_skl_callbacks"):
            copy._skl_callbacks = self._skl_callbacks
        return copy

    def __getstate__(self) -> Any:
        """Executors do not travel."""
        return {**super().__getstate__(), "executor": None}

    def _state(self) -> State:
        """What predictions need beside the members."""
        labels: dict[str, Any] = {"classes_": Labels()} if self._classify else {}
        return {**labels, "_kept": Values(("points",), "i8", optional=True)}

    @property
    def solver_(self) -> str:
        """Which solvers ran, each with the first of the reasons."""
        found = [part.solver_.partition(": ") for part in self._parts()]
        first = {name: reason for name, _, reason in reversed(found)}
        return "; ".join(f"{name}: {first[name]}" for name in dict.fromkeys(name for name, _, _ in found))

    # Training --------------------------------------------------------------------------------------------------

    def _data(self, X: Any, y: Any, sample_weight: Any) -> Data:
        """Points, targets and weights as all ensembles take them; points of weight zero are left out."""
        classify = self._classify
        if not is_classifier(self._first) and not is_regressor(self._first):
            raise InvalidInput(f"base={self._first!r} is neither a classifier nor a regressor")
        kind = kind_of(getattr(self._first, "kernel", "rbf"), X)
        X, y = arguments.training_data(self, kind, X, y, numeric=not classify)
        weights = sample_weights(sample_weight, X)
        kept = None
        if weights is not None:
            refuse_negative(weights)
            if not weights.all():
                kept = np.flatnonzero(weights)
                X = X[np.ix_(kept, kept)] if kind == "precomputed" else arguments.take(X, kept)
                y, weights = np.asarray(y)[kept], weights[kept]
        self._kept = kept if kind == "precomputed" else None
        point = np.arange(len(y), dtype=np.intp)
        if not classify:
            return Data(kind, X, np.asarray(y, dtype=np.float64), None, weights, point, kept)
        check_classification_targets(y)
        self.classes_, codes = arguments.classes_of(np.asarray(y), weights)
        return Data(kind, X, np.asarray(y), codes, weights, point, kept)

    @contextmanager
    def _watched(self, X: Any, y: Any) -> Iterator[Monitor]:
        """Train under the thread limit, Ctrl-C and the callbacks of this estimator."""
        with threads.limit(self.n_jobs), watching(self, X, y, None) as monitor:
            yield monitor

    def _generator(self) -> np.random.Generator:
        """The source of everything random in a fit."""
        return np.random.default_rng(int(check_random_state(self.random_state).randint(1 << 31)))

    @property
    def _columns(self) -> int:
        """Columns of a member's outputs."""
        return 1 if not self._classify or len(self.classes_) == 2 else len(self.classes_)

    # Prediction ------------------------------------------------------------------------------------------------

    def _points(self, X: Any) -> Any:
        """New points in the form predictions work on."""
        check_is_fitted(self)
        kind = kind_of(getattr(self._first, "kernel", "rbf"), X)
        X = arguments.prediction_data(self, kind, X, getattr(self, "n_features_in_", 0))
        return X if self._kept is None else X[:, self._kept]

    def _combined(self, X: Any) -> Array:
        """Outputs (n, k) of the ensemble at points that have been checked."""
        raise NotImplementedError

    @available_if(_classifies)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def decision_function(self, X: Any) -> Array:
        """Outputs (n, k), the largest for the predicted class; (n,) for two classes, positive for classes_[1]."""
        values = self._combined(self._points(X))
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels or values (n,)."""
        return self._answers(self._combined(self._points(X)))

    def _answers(self, values: Array) -> NDArray[Any]:
        """Labels or values (n,) from outputs (n, k)."""
        if not self._classify:
            return values[:, 0]
        codes = (values[:, 0] > 0).astype(np.intp) if values.shape[1] == 1 else np.argmax(values, axis=1)
        return np.asarray(self.classes_[codes])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of right labels, or the coefficient of determination of values."""
        measure = accuracy_score if self._classify else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    def _error(self, values: Array, y: NDArray[Any], weights: Array | None) -> float:
        """Share of wrong labels, or mean squared error, of outputs (n, k) at points of known targets (n,)."""
        found = self._answers(values)
        wrong = (found != y).astype(np.float64) if self._classify else (found - y) ** 2
        return float(np.average(wrong, weights=weights))


def outputs_of(machine: Any, X: Any, columns: int) -> Array:
    """Outputs (n, columns) of a fitted machine: decision values, log-odds of its probabilities, or predicted values."""
    if not is_classifier(machine):
        return np.asarray(machine.predict(X), dtype=np.float64).reshape(-1, 1)
    if hasattr(machine, "decision_function"):
        values = np.asarray(machine.decision_function(X), dtype=np.float64)
    elif hasattr(machine, "predict_proba"):
        p = np.clip(np.asarray(machine.predict_proba(X), dtype=np.float64), SMALLEST, 1.0 - SMALLEST)
        values = np.log(p)
        values = values[:, 1] - values[:, 0] if columns == 1 else values
    else:
        raise InvalidInput(f"{type(machine).__name__} has neither decision_function nor predict_proba to combine")
    values = values.reshape(len(values), -1)
    if values.shape[1] != columns:
        raise InvalidInput(
            f"{type(machine).__name__} gives {values.shape[1]} outputs where {columns} are combined; an SVC needs "
            'decision_function_shape="ovr"'
        )
    return values
