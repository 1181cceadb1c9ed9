"""TunedSVC, TunedSVR and TunedLogistic: machines whose C and width are found by cross-validation.

`fit` searches on shared kernel values (see `mercer.selection.search`), then trains the best candidate on all points.
It is what GridSearchCV(SVC()) does, in a small part of the time, with a grid from the data unless one is given.
"""

import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, _fit_context
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer import threads
from mercer.errors import Advice, InvalidInput
from mercer.kernels import Gaussian, Kernel, as_kernel
from mercer.machine import arguments, repeated_rows
from mercer.machine.arguments import (
    HoldsValues,
    gamma_of,
    refuse_negative,
    sample_weights,
    with_class_weights,
)
from mercer.machine.base import KernelMachine
from mercer.machine.callbacks import watching
from mercer.machine.outcome import MadeOfMachines, StoppedEarly
from mercer.multiclass import KernelLogistic
from mercer.selection.grid import Grid, from_data
from mercer.selection.latent_path import Learner
from mercer.selection.result import SearchResult
from mercer.selection.scoring import takes_weights
from mercer.selection.search import MODES, Data, search
from mercer.solvers.monitor import Monitor
from mercer.svm import SVC, SVR
from mercer.svm.decisions import offers_probability

Array = NDArray[np.float64]
Index = NDArray[np.intp]

HANDED_ON = ("tol", "memory", "precision", "max_iter", "n_jobs")  # parameters of the final machine too
KERNELS = {"rbf", "linear", "poly", "sigmoid", "laplacian", "chi2", "cosine"}


@dataclass(kw_only=True, eq=False, repr=False)
class TunedMachine(MadeOfMachines, CallbackSupportMixin, HoldsValues):  # type: ignore[misc]  # scikit-learn is untyped
    """What the estimators share; see `TunedSVC` for the meaning of the parameters."""

    _final: ClassVar[type[Any]]
    """The machine that is trained with what was found."""
    _own: ClassVar[tuple[str, ...]] = ()
    """Parameters of that machine that only this kind has."""

    kernel: Any = "rbf"
    C: Any = None
    sigma: Any = None
    n_C: int = 10
    n_sigma: int = 10
    folds: Any = 5
    mode: str = "grid"
    scoring: Any = None
    tol: float = 1e-3
    search_tol: float | None = None
    early_stop: bool = True
    random_state: Any = 0
    memory: int | str | None = None
    precision: str = "auto"
    max_iter: int = -1
    max_time: float | None = None
    checkpoint: Any = None
    verbose: bool | int = False
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions(KERNELS), Kernel],
        "C": ["array-like", Interval(Real, 0.0, None, closed="neither"), None],
        "sigma": ["array-like", Interval(Real, 0.0, None, closed="neither"), None],
        "n_C": [Interval(Integral, 1, None, closed="left")],
        "n_sigma": [Interval(Integral, 1, None, closed="left")],
        "folds": [Interval(Integral, 2, None, closed="left"), "array-like"],
        "mode": [StrOptions(set(MODES))],
        "scoring": [str, callable, None],
        "search_tol": [Interval(Real, 0.0, None, closed="neither"), None],
        "early_stop": ["boolean"],
        "checkpoint": "no_validation",  # type: ignore[dict-item]  # scikit-learn takes the word
        **{
            name: KernelMachine._parameter_constraints[name]
            for name in (*HANDED_ON, "random_state", "max_time", "verbose")
        },
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _kernel(self, X: Any, counted: Array | None) -> tuple[Kernel, bool]:
        """The kernel, and whether its width is to be chosen; sample weights `counted` (n,) are for gamma="scale"."""
        if isinstance(self.kernel, Kernel):
            return self.kernel, "sigma" in self.kernel.placeholders
        if self.kernel == "rbf":
            return Gaussian(sigma=1.0), True
        return as_kernel(self.kernel, gamma=gamma_of("scale", X, counted)), False

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Search, then train on all points X (n, d), dense or CSR, with labels or targets y (n,).

        `sample_weight` (n,) multiplies C and counts in the scores; points of weight zero are left out.
        """
        self._fit(X, y, sample_weight, None)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels or values (n,) of the final machine."""
        return self._answer("predict", X)

    def _fit(self, X: Any, y: Any, sample_weight: Any, monitor: Monitor | None, **others: Any) -> None:
        """Search and train; see `_search` for `monitor`; `others` are what `_found` of a machine takes beside."""
        self.best_estimator_: Any = self._found(X, y, sample_weight, monitor, **others)

    def _found(self, X: Any, y: Any, sample_weight: Any, monitor: Monitor | None) -> Any:
        """The machine of the best candidate, trained on all points; sets all that the search has found."""
        raise NotImplementedError

    def _distinct(self, X: Any, labels: NDArray[Any], sample_weight: Any) -> tuple[Any, Index, Array | None, Any]:
        """The distinct points of positive weight, the row of each, their weights (None: all one) and their folds.

        Rows with different `labels`, (n,) or (n, k) numbers, are different points.  Copies of a point are in one fold,
        unless `folds` says otherwise.  A score that takes no weights is asked about all rows as they are.
        """
        weights = sample_weights(sample_weight, X)
        if weights is not None:
            refuse_negative(weights)
        n = len(labels)
        dealt = np.shape(self.folds) == (n,)
        if dealt:
            labels = np.column_stack([labels, np.unique(self.folds, return_inverse=True)[1]])
        rows = repeated_rows.distinct(X, labels, weights, given=not takes_weights(self.scoring))
        if rows is None:
            return X, np.arange(n), None, self.folds
        return X[rows.first], rows.first, rows.weights, np.asarray(self.folds)[rows.first] if dealt else self.folds

    def _search(self, data: Data, X: Any, y: Any, epsilon: Any, folds: Any, monitor: Monitor | None) -> None:
        """Find the best candidate; `monitor` stands in for the estimator's own time limit and callbacks."""
        kernel, tuned = self._kernel(X, data.counted)
        seed = self.random_state
        seed = int(seed) if isinstance(seed, Integral) else int(check_random_state(seed).randint(2**31 - 1))
        targets = data.y if data.learner is None else None
        self.grid_: Grid = from_data(
            X, targets, kernel, tuned=tuned, n_C=self.n_C, n_sigma=self.n_sigma, C=self.C, sigma=self.sigma,
            epsilon=epsilon, unit=self._unit(data), seed=seed,
        )  # fmt: skip
        watched = watching(self, X, y, self.max_time) if monitor is None else nullcontext(monitor)
        with threads.limit(self.n_jobs), watched as own:
            self.search_: SearchResult = search(
                data, kernel, self.grid_, mode=self.mode, folds=folds, scoring=self._score(), seed=seed,
                tol=self.tol if self.search_tol is None else self.search_tol, early=self.early_stop,
                memory=self.memory, checkpoint=self.checkpoint, monitor=own,
            )  # fmt: skip
        self._publish()
        sigma = self.best_params_.get("sigma")
        self.kernel_ = kernel if sigma is None else kernel.with_parameters(sigma=sigma)
        self._warn()

    def _unit(self, data: Data) -> float:
        """What the values of C that follow from the data are counted in."""
        return 1.0

    def _score(self) -> Any:
        """What the search judges by."""
        return self.scoring

    def _publish(self) -> None:
        """Set what users read of the search."""
        result = self.search_
        self.best_index_, self.best_score_, self.best_params_ = result.best_index, result.best_score, result.best
        self.cv_results_ = result.table()
        self.stopped_ = result.stopped

    def _warn(self) -> None:
        """Say that the search ended early, or that its best candidate lies on the edge of the grid."""
        result = self.search_
        if result.stopped != "converged":
            reason = "its time limit" if result.stopped == "time" else "an interruption"
            warnings.warn(
                f"The search was ended by {reason} with {result.evaluated} of {len(result.candidates)} candidates "
                "evaluated; the best of them is kept.",
                StoppedEarly,
                stacklevel=4,
            )
        if edges := result.edges():
            warnings.warn(
                f"the best candidate lies on the edge of the grid: {', '.join(edges)}; give values beyond it.",
                Advice,
                stacklevel=4,
            )

    @property
    def n_support_(self) -> Any:
        """Number of support vectors of the machine trained on all points."""
        check_is_fitted(self)
        return self.best_estimator_.n_support_

    def _machine(self) -> Any:
        """The machine at the best parameters, not yet trained."""
        found = {name: value for name, value in self.best_params_.items() if name != "sigma"}
        shared = {name: getattr(self, name) for name in (*HANDED_ON, *self._own)}
        return self._final(kernel=self.kernel_, **shared, **found)

    def _parts(self) -> list[Any]:
        check_is_fitted(self)
        return [self.best_estimator_]

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        return arguments.prediction_data(self, "features", X, 0)

    def _answer(self, method: str, X: Any) -> NDArray[Any]:
        """What a method of the final machine answers at points X (n, d)."""
        X = self._checked(X)
        return np.asarray(getattr(self.best_estimator_, method)(X))


@dataclass(kw_only=True, eq=False, repr=False)
class TunedClassifier(ClassifierMixin, TunedMachine):  # type: ignore[misc]  # scikit-learn is untyped
    """What the classifiers share: the search over classes, and the machine that is trained with what it found."""

    _logistic: ClassVar[bool] = False
    _own: ClassVar[tuple[str, ...]] = ("class_weight",)

    class_weight: Any = None

    def _learner(self) -> Learner | None:
        """How classes are learnt as ranks, where they are."""
        return None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TunedMachine._parameter_constraints,
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    def _found(self, X: Any, y: Any, sample_weight: Any, monitor: Monitor | None) -> Any:
        X, y = arguments.training_data(self, "features", X, y)
        check_classification_targets(y)
        points, kept, counted, folds = self._distinct(X, np.unique(y, return_inverse=True)[1], sample_weight)
        labels = y[kept]
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise InvalidInput(f"The number of classes has to be greater than one; got {len(classes)} class")
        self.classes_ = classes
        _, weights = with_class_weights(self.class_weight, classes, labels, codes, counted)
        weights = np.ones(len(codes)) if weights is None else weights
        points = arguments.working_form(points)
        data = Data(
            points, codes.astype(np.intp), None, len(classes), weights, counted, self._logistic, self._learner()
        )
        self._search(data, data.X, y, None, folds, monitor)
        return self._machine().fit(X, y, sample_weight=sample_weight)

    def decision_function(self, X: Any) -> Array:
        """Decision values of the final machine."""
        return self._answer("decision_function", X)


class WithProbabilities(TunedClassifier):
    """A classifier whose final machine has probabilities by its nature."""

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities (n, k)."""
        return self._answer("predict_proba", X)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the class probabilities (n, k)."""
        return self._answer("predict_log_proba", X)


@dataclass(kw_only=True, eq=False, repr=False)
class TunedSVC(TunedClassifier):
    """Support vector classification with C and the kernel's width chosen by cross-validation.

    Parameters
    ----------
    kernel : "rbf", whose width is chosen, or a Kernel object: one with sigma="median" has its width chosen, any other
        (and the other names) is taken as it is and only C is chosen.
    C, sigma : values to try; None takes `n_C` and `n_sigma` values that follow from the data (`mercer.selection.grid`).
    folds : number of folds, classes dealt out evenly and copies of a point kept together, or the fold of each point
        (n,).
    mode : "grid", "random" or "halving" (see `mercer.selection.search`).
    scoring : "accuracy", "balanced_accuracy" or a function of labels' codes 0..k-1 and predicted codes; it gets the
        weights of the points where it has an argument `sample_weight`.
    tol : largest violation of the optimality conditions, in the search and in the final machine.
    search_tol : that of the search, where it is another; 0.1 seldom changes the choice and takes a third of the time.
    class_weight : as in scikit-learn; "balanced" weights are those of all points.
    probability : also fit Platt's sigmoids in the final machine.
    early_stop : let the path of a width stop once larger C are clearly worse; their scores are then NaN.
    random_state : seed of the folds.
    memory : bytes, or text such as "2 GiB", for distances and kernel values; None is a quarter of what is free.
    precision, max_iter : of the final machine, as in `SVC`.
    max_time : seconds after which the search ends with the best candidate so far.
    checkpoint : file from which the same search goes on after it was killed.
    verbose : print a line for every record of the search.
    n_jobs : threads; None is all.

    Attributes
    ----------
    best_params_, best_score_, best_index_, cv_results_ : as in GridSearchCV.
    best_estimator_ : the `SVC` trained on all points; classes_, n_support_ are its own.
    kernel_ : its kernel.
    search_ : the SearchResult, with `surface()`, `edges()` and `table()`.
    grid_ : the values tried; stopped_ what ended the search.
    objective_, dual_objective_, gap_, solver_, solution_, history_, n_iter_, plan_ : those of `best_estimator_`.

    """

    _final = SVC
    _own = ("class_weight", "probability", "random_state")

    probability: bool = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TunedClassifier._parameter_constraints,
        "probability": ["boolean"],
    }

    @available_if(offers_probability)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities (n, k) of the final `SVC`; with probability=True only."""
        return self._answer("predict_proba", X)

    @available_if(offers_probability)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the class probabilities (n, k)."""
        return np.asarray(np.log(self.predict_proba(X)))


@dataclass(kw_only=True, eq=False, repr=False)
class TunedLogistic(WithProbabilities):
    """Kernel logistic regression with C and the kernel's width chosen by cross-validation, by its probabilities.

    The parameters and attributes are those of `TunedSVC` without `probability`, and

    scoring : "neg_log_loss" (None), "neg_brier_score", "accuracy", "balanced_accuracy", or a function of the codes
        0..k-1 of the labels and the probabilities (n, k).
    tol : relative duality gap, in the search and in the final machine.
    best_estimator_ : the `KernelLogistic` trained on all points.
    """

    _final = KernelLogistic
    _logistic = True


@dataclass(kw_only=True, eq=False, repr=False)
class TunedSVR(RegressorMixin, TunedMachine):  # type: ignore[misc]  # scikit-learn is untyped
    """Epsilon-insensitive support vector regression with C, width and tube chosen by cross-validation.

    The parameters and attributes are those of `TunedSVC` without those that speak of classes, and

    epsilon : half the width of the tube, or several values to choose from; None is a tenth of the deviation of y.
    scoring : "r2", "neg_mean_squared_error", "neg_mean_absolute_error" or a function of y and the predictions.
    """

    _final = SVR

    epsilon: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TunedMachine._parameter_constraints,
        "epsilon": ["array-like", Interval(Real, 0.0, None, closed="left"), None],
    }

    def _found(self, X: Any, y: Any, sample_weight: Any, monitor: Monitor | None) -> Any:
        X, y = arguments.training_data(self, "features", X, y, numeric=True)
        y = np.ascontiguousarray(y, dtype=np.float64)
        points, kept, counted, folds = self._distinct(X, y, sample_weight)
        targets = y[kept]
        weights = np.ones(len(targets)) if counted is None else counted
        data = Data(arguments.working_form(points), None, targets, 0, weights, counted)
        self._search(data, data.X, y, self.epsilon, folds, monitor)
        return self._machine().fit(X, y, sample_weight=sample_weight)
