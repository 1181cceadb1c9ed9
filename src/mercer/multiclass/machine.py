"""What the machines with one problem for all classes share: from data to k functions and back to labels.

Every machine is f_m(x) = sum_v c_vm k(x, v) + b_m over its support vectors v, one function for each class, and predicts
the class of the largest.  `fit` checks the data, leaves out points of weight zero, states one problem of
`mercer.problems`, has it solved and keeps the expansion together with its certificate.  On the linear kernel the weight
vectors are trained directly where that is cheaper than going through the kernel matrix.
"""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.callback import CallbackSupportMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer import threads
from mercer.errors import InvalidInput
from mercer.estimation import advice, prediction, validation
from mercer.estimation.callbacks import watching
from mercer.estimation.convergence import warn_if_stopped
from mercer.estimation.similarity import NAMES, Kind, evaluate, gamma_of, is_linear, kind_of, resolve
from mercer.estimation.training import TrainingSet
from mercer.estimation.weights import class_weights, point_weights, refuse_negative, sample_weights
from mercer.gram import Gram, GramOperator
from mercer.kernels import Kernel, Precomputed
from mercer.solvers import multiclass_linear
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class Task(NamedTuple):
    """The points of positive weight: classes 0..k-1 (n,), weights (n,) or None, number of classes."""

    codes: Index
    weights: Array | None
    k: int


class ClassMachine(CallbackSupportMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the machines; see `CrammerSingerSVC` for the meaning of the parameters."""

    C: float
    kernel: Any
    degree: int
    gamma: Any
    coef0: float
    bias: str
    class_weight: Any
    tol: float
    max_iter: int
    max_time: float | None
    memory: int | str | None
    precision: str
    n_jobs: int | None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "kernel": [StrOptions(NAMES), callable],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "bias": [StrOptions({"free", "none", "penalised"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "max_time": [Interval(Real, 0.0, None, closed="neither"), None],
        "memory": [Interval(Integral, 1, None, closed="left"), str, None],
        "precision": [StrOptions({"auto", "float32", "float64"})],
        "n_jobs": [Integral, None],
    }

    classes_: NDArray[Any]
    support_: Index
    support_vectors_: Any
    dual_coef_: Array
    intercept_: Array
    kernel_: Kernel
    solution_: Solution
    _kind: Kind
    _weights: Array | None

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        bias: str = "free",
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int = -1,
        max_time: float | None = None,
        memory: int | str | None = None,
        precision: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.bias = bias
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.memory = memory
        self.precision = precision
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = self.kernel == "precomputed" if isinstance(self.kernel, str) else isinstance(self.kernel, Precomputed)
        tags.input_tags.pairwise = given
        tags.input_tags.sparse = not given
        return tags

    def _problem(self, gram: GramOperator, task: Task) -> Any:
        """The problem of this machine."""
        raise NotImplementedError

    def _solver(self) -> Callable[..., Solution]:
        """The solver for a kernel matrix."""
        raise NotImplementedError

    # Training --------------------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Train on points X (n, d), dense or CSR, and labels y (n,); `sample_weight` (n,) multiplies C."""
        kind = kind_of(self.kernel, X)
        X, y = validation.training_data(self, kind, X, y)
        check_classification_targets(y)
        weights = sample_weights(sample_weight, X)
        kept = None
        if weights is not None:
            refuse_negative(weights)
            kept = None if weights.all() else np.flatnonzero(weights)
        task = self._task(y, weights, kept)
        training = self._training_set(kind, X, kept, task.weights)
        with threads.limit(self.n_jobs), watching(self, X, y, self.max_time) as monitor:
            solution = self._train(training, task, monitor)
        if kind == "features" and not is_linear(self.kernel_):
            advice.on_scales(self.kernel_, training.points)
        self._keep(X, training, task, solution)
        return self

    def _task(self, y: NDArray[Any], weights: Array | None, kept: Index | None) -> Task:
        """Classes and weights of the points of positive weight."""
        y, weights = (y, weights) if kept is None or weights is None else (y[kept], weights[kept])
        self.classes_, codes = np.unique(y, return_inverse=True)
        k = len(self.classes_)
        if k < 2:
            raise InvalidInput(f"The number of classes has to be greater than one; got {k} class")
        self.class_weight_ = class_weights(self.class_weight, self.classes_, y, weights)
        return Task(np.asarray(codes, dtype=np.intp), point_weights(weights, self.class_weight_, codes), k)

    def _training_set(self, kind: Kind, X: Any, kept: Index | None, weights: Array | None) -> TrainingSet:
        """The points of positive weight with their kernel."""
        kernel = self.kernel
        if kind in ("features", "objects"):
            points = X if kept is None else validation.take(X, kept)
            gamma = 0.0
            if not isinstance(kernel, Kernel):
                gamma = gamma_of(self.gamma, validation.working_form(points), weights)
            kernel = resolve(kernel, gamma, self.degree, self.coef0, points)
        training = TrainingSet(kind, X, kept, kernel, self.memory, self.precision)
        self._kind, self.kernel_ = kind, training.kernel
        return training

    def _train(self, training: TrainingSet, task: Task, monitor: Monitor) -> Solution:
        """Solve on the weight vectors or on the kernel matrix, whichever is cheaper."""
        options: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "monitor": monitor}
        if self._kind == "features" and is_linear(self.kernel_) and _entries(training.points) <= training.n:
            gram = Gram(self.kernel_, training.points, storage="streamed")
            return multiclass_linear.solve(self._problem(gram, task), **options)
        return self._solver()(self._problem(training.whole, task), **options)

    def _keep(self, X: Any, training: TrainingSet, task: Task, solution: Solution) -> None:
        """Store the machine, its certificate and what stopped it."""
        c, intercept = solution.coefficients, np.asarray(solution.bias)
        if not (np.isfinite(c).all() and np.isfinite(intercept).all()):
            raise InvalidInput("the solution is not finite: the data may hold very large values; scale them first.")
        support = np.flatnonzero(c.any(axis=1))
        self.support_ = training.original(support)
        self.n_support_ = np.bincount(task.codes[support], minlength=task.k).astype(np.int32)
        self.dual_coef_, self.intercept_ = np.ascontiguousarray(c[support].T), intercept
        given = self._kind in ("precomputed", "function")
        self.support_vectors_ = np.empty((0, 0)) if given else validation.take(X, self.support_)
        self._points = X if self._kind == "function" else None
        self._trained_on = len(X) if isinstance(X, list) else int(np.shape(X)[0])
        self._weights = solution.details.get("weights")
        self.objective_, self.dual_objective_, self.gap_ = solution.primal, solution.dual, solution.gap
        self.n_iter_, self.solution_, self.history_ = solution.iterations, solution, solution.history
        self.solver_ = solution.solver
        self.stopped_ = warn_if_stopped([solution], self.max_iter, self.max_time)

    # Prediction ------------------------------------------------------------------------------------------------

    def _values(self, X: Any) -> Array:
        """Outputs (m, k) at new points."""
        check_is_fitted(self)
        X = validation.prediction_data(self, self._kind, X, self._trained_on)
        c = self.dual_coef_.T
        if self._kind == "precomputed":
            values = X[:, self.support_] @ c
        elif self._kind == "function":
            m = len(X) if isinstance(X, list) else np.shape(X)[0]
            values = evaluate(self.kernel, X, self._points, m, self._trained_on)[:, self.support_] @ c
        elif is_linear(self.kernel_):
            values = X @ self.coef_.T
        else:
            vectors = self.support_vectors_
            values = prediction.expand(self.kernel_, X, vectors, [slice(0, len(c))], [c], self.precision)[0]
        return np.asarray(values + self.intercept_)

    def decision_function(self, X: Any) -> Array:
        """Outputs (n, k); for two classes their difference (n,), positive for classes_[1]."""
        values = self._values(X)
        return values[:, 1] - values[:, 0] if values.shape[1] == 2 else values

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels (n,): the class of the largest output."""
        winners = np.argmax(self._values(X), axis=1)
        return np.asarray(self.classes_[winners])

    @property
    def coef_(self) -> Array:
        """Weight vectors (k, d) of a linear kernel, one for each class."""
        if not is_linear(getattr(self, "kernel_", None)):
            raise AttributeError("coef_ is only available when using a linear kernel")
        if self._weights is None:
            self._weights = np.asarray(self.dual_coef_ @ self.support_vectors_)
        return self._weights


def _entries(points: Any) -> float:
    """Mean number of entries of a point."""
    return float(points.nnz / max(1, points.shape[0])) if sp.issparse(points) else float(points.shape[1])
