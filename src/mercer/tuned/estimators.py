"""TunedSVC and TunedSVR: support vector machines whose C and width are found by cross-validation.

`fit` searches on shared kernel values (see `mercer.selection.search`), then trains the best candidate on all points.
It is what GridSearchCV(SVC()) does, in a small part of the time, with a grid from the data unless one is given.
"""

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, _fit_context
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer import threads
from mercer.errors import Advice, InvalidInput
from mercer.estimation import validation
from mercer.estimation.callbacks import watching
from mercer.estimation.convergence import StoppedEarly
from mercer.estimation.weights import class_weights, point_weights
from mercer.kernels import Gaussian, Kernel, as_kernel
from mercer.selection.grid import Grid, from_data
from mercer.selection.result import SearchResult
from mercer.selection.search import MODES, Data, search
from mercer.solvers.monitor import Monitor
from mercer.svm import SVC, SVR

Array = NDArray[np.float64]

KERNELS = {"rbf", "linear", "poly", "sigmoid", "laplacian", "chi2", "cosine"}


class TunedMachine(CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]
    """What the two estimators share; see `TunedSVC` for the meaning of the parameters."""

    kernel: Any
    C: Any
    sigma: Any
    n_C: int
    n_sigma: int
    folds: Any
    mode: str
    scoring: Any
    tol: float
    early_stop: bool
    random_state: Any
    memory: int | str | None
    max_time: float | None
    checkpoint: Any
    n_jobs: int | None

    search_: SearchResult
    best_estimator_: Any

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions(KERNELS), Kernel],
        "C": ["array-like", Interval(Real, 0.0, None, closed="neither"), None],
        "sigma": ["array-like", Interval(Real, 0.0, None, closed="neither"), None],
        "n_C": [Interval(Integral, 1, None, closed="left")],
        "n_sigma": [Interval(Integral, 1, None, closed="left")],
        "folds": [Interval(Integral, 2, None, closed="left"), "array-like"],
        "mode": [StrOptions(set(MODES))],
        "scoring": [str, callable, None],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "early_stop": ["boolean"],
        "random_state": ["random_state"],
        "memory": [Interval(Integral, 1, None, closed="left"), str, None],
        "max_time": [Interval(Real, 0.0, None, closed="neither"), None],
        "checkpoint": "no_validation",  # type: ignore[dict-item]
        "n_jobs": [Integral, None],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _kernel(self, X: Any) -> tuple[Kernel, bool]:
        """The kernel, and whether its width is to be chosen."""
        if isinstance(self.kernel, Kernel):
            return self.kernel, "sigma" in self.kernel.placeholders
        if self.kernel == "rbf":
            return Gaussian(sigma=1.0), True
        return as_kernel(self.kernel, gamma="scale", X=X), False

    def _search(self, data: Data, X: Any, y: Any, epsilon: Any, monitor: Monitor | None) -> None:
        """Find the best candidate; `monitor` stands in for the estimator's own time limit and callbacks."""
        kernel, tuned = self._kernel(X)
        seed = self.random_state
        seed = int(seed) if isinstance(seed, Integral) else int(check_random_state(seed).randint(2**31 - 1))
        self.grid_: Grid = from_data(
            X, data.y, kernel, tuned=tuned, n_C=self.n_C, n_sigma=self.n_sigma, C=self.C, sigma=self.sigma,
            epsilon=epsilon, seed=seed,
        )  # fmt: skip
        options = {
            "mode": self.mode,
            "folds": self.folds,
            "tol": self.tol,
            "scoring": self.scoring,
            "seed": seed,
            "early": self.early_stop,
            "memory": self.memory,
            "checkpoint": self.checkpoint,
        }
        with threads.limit(self.n_jobs):
            if monitor is not None:
                self.search_ = search(data, kernel, self.grid_, monitor=monitor, **options)
            else:
                with watching(self, X, y, self.max_time) as own:
                    self.search_ = search(data, kernel, self.grid_, monitor=own, **options)
        self._publish(kernel)

    def _publish(self, kernel: Kernel) -> None:
        result = self.search_
        self.best_index_, self.best_score_, self.best_params_ = result.best_index, result.best_score, result.best
        self.cv_results_ = result.table()
        sigma = self.best_params_.get("sigma")
        self.kernel_ = kernel if sigma is None else kernel.with_parameters(sigma=sigma)
        self.stopped_ = result.stopped
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

    def _machine_options(self) -> dict[str, Any]:
        return {
            "C": self.best_params_["C"],
            "kernel": self.kernel_,
            "tol": self.tol,
            "memory": self.memory,
            "n_jobs": self.n_jobs,
        }

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        return validation.prediction_data(self, "features", X, 0)


class TunedSVC(ClassifierMixin, TunedMachine):  # type: ignore[misc]
    """Support vector classification with C and the kernel's width chosen by cross-validation.

    Parameters
    ----------
    kernel : "rbf", whose width is chosen, or a Kernel object: one with sigma="median" has its width chosen, any other
        (and the other names) is taken as it is and only C is chosen.
    C, sigma : values to try; None takes `n_C` and `n_sigma` values that follow from the data (`mercer.selection.grid`).
    folds : number of folds, classes dealt out evenly, or the fold of each point (n,).
    mode : "grid", "random" or "halving" (see `mercer.selection.search`).
    scoring : "accuracy", "balanced_accuracy" or a function of labels' codes 0..k-1 and predicted codes.
    tol : largest violation of the optimality conditions, in the search and in the final machine.
    class_weight : as in scikit-learn; "balanced" weights are those of all points.
    probability : also fit Platt's sigmoids in the final machine.
    early_stop : let the path of a width stop once larger C are clearly worse; their scores are then NaN.
    random_state : seed of the folds.
    memory : bytes, or text such as "2 GiB", for distances and kernel values; None is a quarter of what is free.
    max_time : seconds after which the search ends with the best candidate so far.
    checkpoint : file from which the same search goes on after it was killed.
    n_jobs : threads; None is all.

    Attributes
    ----------
    best_params_, best_score_, best_index_, cv_results_ : as in GridSearchCV.
    best_estimator_ : the `SVC` trained on all points; classes_, n_support_ are its own.
    kernel_ : its kernel.
    search_ : the SearchResult, with `surface()`, `edges()` and `table()`.
    grid_ : the values tried; stopped_ what ended the search.

    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TunedMachine._parameter_constraints,
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "probability": ["boolean"],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        C: Any = None,
        sigma: Any = None,
        n_C: int = 10,
        n_sigma: int = 10,
        folds: Any = 5,
        mode: str = "grid",
        scoring: Any = None,
        tol: float = 1e-3,
        class_weight: Any = None,
        probability: bool = False,
        early_stop: bool = True,
        random_state: Any = 0,
        memory: int | str | None = None,
        max_time: float | None = None,
        checkpoint: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.sigma = sigma
        self.n_C = n_C
        self.n_sigma = n_sigma
        self.folds = folds
        self.mode = mode
        self.scoring = scoring
        self.tol = tol
        self.class_weight = class_weight
        self.probability = probability
        self.early_stop = early_stop
        self.random_state = random_state
        self.memory = memory
        self.max_time = max_time
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any) -> "TunedSVC":
        """Search, then train on all points X (n, d), dense or CSR, with labels y (n,)."""
        return self._fit(X, y, None)

    def _fit(self, X: Any, y: Any, monitor: Monitor | None) -> "TunedSVC":
        X, y = validation.training_data(self, "features", X, y)
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise InvalidInput(f"The number of classes has to be greater than one; got {len(classes)} class")
        self.classes_ = classes
        of_class = class_weights(self.class_weight, classes, y, None)
        weights = point_weights(None, of_class, codes)
        weights = np.ones(len(codes)) if weights is None else weights
        data = Data(validation.working_form(X), codes.astype(np.intp), None, len(classes), weights)
        self._search(data, data.X, y, None, monitor)
        machine = SVC(
            class_weight=self.class_weight,
            probability=self.probability,
            random_state=self.random_state,
            **self._machine_options(),
        )
        self.best_estimator_ = machine.fit(X, y)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels (n,)."""
        X = self._checked(X)
        return np.asarray(self.best_estimator_.predict(X))

    def decision_function(self, X: Any) -> Array:
        """Decision values of the final `SVC`."""
        X = self._checked(X)
        return np.asarray(self.best_estimator_.decision_function(X))

    def __getattr__(self, name: str) -> Any:
        # Offered by the final machine only where it was trained for it, as scikit-learn's duck typing wants.
        if name in ("predict_proba", "predict_log_proba") and self.__dict__.get("probability"):
            return getattr(self.__dict__["best_estimator_"], name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class TunedSVR(RegressorMixin, TunedMachine):  # type: ignore[misc]
    """Epsilon-insensitive support vector regression with C, width and tube chosen by cross-validation.

    The parameters and attributes are those of `TunedSVC` without those that speak of classes, and

    epsilon : half the width of the tube, or several values to choose from; None is a tenth of the deviation of y.
    scoring : "r2", "neg_mean_squared_error", "neg_mean_absolute_error" or a function of y and the predictions.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TunedMachine._parameter_constraints,
        "epsilon": ["array-like", Interval(Real, 0.0, None, closed="left"), None],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        C: Any = None,
        sigma: Any = None,
        epsilon: Any = None,
        n_C: int = 10,
        n_sigma: int = 10,
        folds: Any = 5,
        mode: str = "grid",
        scoring: Any = None,
        tol: float = 1e-3,
        early_stop: bool = True,
        random_state: Any = 0,
        memory: int | str | None = None,
        max_time: float | None = None,
        checkpoint: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.sigma = sigma
        self.epsilon = epsilon
        self.n_C = n_C
        self.n_sigma = n_sigma
        self.folds = folds
        self.mode = mode
        self.scoring = scoring
        self.tol = tol
        self.early_stop = early_stop
        self.random_state = random_state
        self.memory = memory
        self.max_time = max_time
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any) -> "TunedSVR":
        """Search, then train on all points X (n, d), dense or CSR, with targets y (n,)."""
        return self._fit(X, y, None)

    def _fit(self, X: Any, y: Any, monitor: Monitor | None) -> "TunedSVR":
        X, y = validation.training_data(self, "features", X, y, numeric=True)
        y = np.ascontiguousarray(y, dtype=np.float64)
        data = Data(validation.working_form(X), None, y, 0, np.ones(len(y)))
        self._search(data, data.X, y, self.epsilon, monitor)
        self.best_estimator_ = SVR(epsilon=self.best_params_["epsilon"], **self._machine_options()).fit(X, y)
        return self

    def predict(self, X: Any) -> Array:
        """Predicted values (n,)."""
        X = self._checked(X)
        return np.asarray(self.best_estimator_.predict(X))
