"""What the five support vector machines share: parameters, the way from data to a trained expansion, prediction.

Every machine is f(x) = sum_v c_v k(x, v) + b over its support vectors v.  `fit` checks the data, leaves out points of
weight zero, states one problem of `mercer.problems` for each binary machine, has it solved and keeps the expansion
together with its certificate: `objective_`, `dual_objective_` and `gap_` are sums over the machines, `solution_` has
each of them.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from mercer import threads
from mercer.errors import InvalidInput
from mercer.estimation import advice, prediction, validation
from mercer.estimation.callbacks import watching
from mercer.estimation.convergence import warn_if_stopped
from mercer.estimation.reduction import ReducedSet, Reduction, machine_of, reduce
from mercer.estimation.similarity import NAMES, Kind, evaluate, gamma_of, is_linear, resolve
from mercer.estimation.training import TrainingSet
from mercer.estimation.weights import refuse_negative
from mercer.kernels import Kernel
from mercer.lowrank.approximations import Approximation
from mercer.lowrank.feature_map import FeatureMap
from mercer.problems import Problem
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution
from mercer.svm.solving import WarmStart, solve

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Index = NDArray[np.intp]

DEFAULT_CACHE = 200  # scikit-learn's default cache_size, in MB
HARD_MARGIN = 1e10  # stands for C = inf
_VALID: set[Any] = set()  # parameter values that passed their check


class SupportVectorMachine(CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the five machines; see `SVC` for the meaning of the parameters."""

    kernel: Any
    degree: int
    gamma: Any
    coef0: float
    tol: float
    shrinking: bool
    cache_size: float
    verbose: bool | int
    max_iter: int
    solver: str
    memory: int | str | None
    precision: str
    gap_tol: float | None
    max_time: float | None
    warm_start: bool
    n_jobs: int | None

    support_: Index
    support_vectors_: Any
    dual_coef_: Any
    intercept_: Vector
    _dual_coef_: Any
    _intercept_: Vector
    _n_support: NDArray[np.int32]
    _kernel: Kernel | None
    _kind: Kind
    approximation_: Approximation | None
    feature_map_: FeatureMap | None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions(NAMES), callable],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "shrinking": ["boolean"],
        "cache_size": [Interval(Real, 0, None, closed="neither")],
        "verbose": ["verbose"],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "solver": [StrOptions({"auto", "decomposition", "interior_point", "linear_dual"})],
        "memory": [Interval(Integral, 1, None, closed="left"), str, None],
        "precision": [StrOptions({"auto", "float32", "float64"})],
        "gap_tol": [Interval(Real, 0.0, None, closed="neither"), None],
        "max_time": [Interval(Real, 0.0, None, closed="neither"), None],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
    }

    def _validate_params(self) -> None:
        """Check the parameters against the table, once for each set of values: on small data the check is the fit."""
        own = vars(self)
        try:
            key = (type(self), *((type(own[name]), own[name]) for name in self._get_param_names()))
            if key in _VALID:
                return
        except (TypeError, KeyError):  # a value that cannot be looked up
            key = None
        super()._validate_params()
        if key is not None and len(_VALID) < 10_000:
            _VALID.add(key)

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Names of the parameters; read off the signature once for each class."""
        names: list[str] = super()._get_param_names()
        return names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        precomputed = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.input_tags.pairwise = precomputed
        tags.input_tags.sparse = not precomputed
        return tags

    # Training --------------------------------------------------------------------------------------------------

    def _training_set(
        self, kind: Kind, X: Any, weights: Vector | None, targets: Any = None
    ) -> tuple[TrainingSet, Vector | None]:
        """The points of positive weight with their kernel, and their weights (n,).

        targets (n,) or (n, k) are for landmarks that are chosen by them.
        """
        kept = None
        if weights is not None:
            refuse_negative(weights)
            if not weights.all():
                kept = np.flatnonzero(weights)
                weights = weights[kept]
        kernel = self.kernel
        self._kind, self._kernel, self._gamma = kind, None, 0.0
        if kind in ("features", "objects"):
            points = X if kept is None else validation.take(X, kept)
            if not isinstance(kernel, Kernel):
                self._gamma = gamma_of(self.gamma, validation.working_form(points), weights)
            kernel = self._kernel = resolve(kernel, self._gamma, self.degree, self.coef0, points)
        training = TrainingSet(kind, X, kept, kernel, self._budget(), self.precision)
        if kind == "features":
            advice.on_scales(training.kernel, training.points)
        if targets is not None and kept is not None:
            targets = targets[kept]
        return self._reduced(training, weights, targets), weights

    def _reduced(self, training: TrainingSet, weights: Vector | None, targets: Any) -> TrainingSet:
        """The training set seen through the features of `approximation`, where there is one."""
        wanted = getattr(self, "approximation", None)
        seed = getattr(self, "random_state", None)
        reduction, self.approximation_reason_ = reduce(
            wanted,
            training.kind,
            training.kernel,
            training.points,
            y=targets,
            weights=weights,
            seed=int(seed) if isinstance(seed, Integral) else 0,
            memory=training.memory if wanted is not None else None,
            row_bytes=np.dtype(training.precision).itemsize,
        )
        return training if reduction is None else ReducedSet(training, reduction)

    def _budget(self) -> int | str | None:
        """Memory for kernel values: `memory`, else a `cache_size` that was changed, else what is free."""
        if self.memory is not None or self.cache_size == DEFAULT_CACHE:
            return self.memory
        return int(self.cache_size * 2**20)

    def _solve(self, problem: Problem, monitor: Monitor | None, start: WarmStart | None = None) -> Solution:
        """One binary machine."""
        return solve(
            problem,
            solver=self.solver,
            tol=self.tol,
            gap_tol=self.gap_tol,
            max_iter=self.max_iter,
            memory=self._budget(),
            start=start if self.warm_start else None,
            monitor=monitor,
        )

    @contextmanager
    def _watched(self, X: Any, y: Any) -> Iterator[Monitor]:
        """Train under the thread limit, the time limit, Ctrl-C and the callbacks of this estimator."""
        # The interior point factorises large matrices; all else runs its own threads, each with one of BLAS.
        blas = nullcontext() if self.solver == "interior_point" else threads.one_blas_thread()
        with threads.limit(self.n_jobs), blas, watching(self, X, y, self.max_time) as monitor:
            yield monitor

    def _keep(
        self,
        training: TrainingSet,
        X: Any,
        support: Index,
        counts: NDArray[np.integer[Any]],
        dual: Matrix,
        intercept: Vector,
    ) -> None:
        """Store an expansion: `dual` (rows, n_SV) and `intercept` (machines,), the first class of a pair positive."""
        if not (np.isfinite(dual).all() and np.isfinite(intercept).all()):
            raise InvalidInput(
                "The dual coefficients or intercepts are not finite. The input data may contain large values and need "
                "to be preprocessed."
            )
        self.shape_fit_ = X.shape if hasattr(X, "shape") else (len(X),)
        if training.reduction is not None:
            weights = self._weights_on(training.points[support], dual, counts)
            self._keep_reduced(training.reduction, training, weights, intercept)
            return
        self.approximation_ = self.feature_map_ = None
        self.support_ = training.original(support)
        self._n_support = np.asarray(counts, dtype=np.int32)
        given = self._kind in ("precomputed", "function")
        self.support_vectors_ = np.empty((0, 0)) if given else validation.take(X, self.support_)
        self._points = X if self._kind == "function" else None
        self._show(dual, intercept)

    def _keep_reduced(self, reduction: Reduction, training: TrainingSet, weights: Matrix, intercept: Vector) -> None:
        """Store machines with weights (machines, p) on features as expansions on landmarks, where there are any."""
        machine = machine_of(reduction.feature_map, weights.T)
        index = reduction.index
        self.approximation_, self.feature_map_ = reduction.approximation, reduction.feature_map
        self.support_ = np.empty(0, dtype=np.intp) if index is None else training.original(index)
        self.support_vectors_ = np.empty((0, self.shape_fit_[-1])) if machine.points is None else machine.points
        self._n_support = np.array([len(machine.coefficients)], dtype=np.int32)
        self._points = None
        self._show(np.ascontiguousarray(machine.coefficients.T), intercept + machine.constant)

    def _show(self, dual: Matrix, intercept: Vector) -> None:
        # Predictions read these two; for two classes the public ones have the opposite sign, as in scikit-learn.
        self._dual_coef_, self._intercept_ = dual, intercept
        self.dual_coef_, self.intercept_ = self._public(dual, intercept)
        if sp.issparse(self.support_vectors_):
            kind = sp.csr_array if isinstance(self.support_vectors_, sp.sparray) else sp.csr_matrix
            self.dual_coef_ = kind(self.dual_coef_)

    def _keep_one(self, training: TrainingSet, X: Any, problem: Problem, solution: Solution) -> None:
        """Store the only machine of an estimator."""
        c = solution.coefficients
        support = np.flatnonzero(c)
        self._keep(training, X, support, np.array([len(support)]), c[None, support], np.array([float(solution.bias)]))
        self._certify([problem], [solution], single=True)

    def _public(self, dual: Matrix, intercept: Vector) -> tuple[Matrix, Vector]:
        """The coefficients and intercepts as the user sees them."""
        return dual, intercept

    def _certify(self, problems: Sequence[Problem | None], solutions: Sequence[Solution], single: bool) -> None:
        """Keep the certificate of the fit and what stopped it, and warn when that was too early."""
        self.objective_ = float(sum(s.primal for s in solutions))
        self.dual_objective_ = float(sum(s.dual for s in solutions))
        self.gap_ = float(sum(s.gap for s in solutions))
        iterations = np.array([s.iterations for s in solutions], dtype=np.int32)
        self.n_iter_ = int(iterations[0]) if single else iterations
        self.solution_ = solutions[0] if len(solutions) == 1 else list(solutions)
        self.history_ = solutions[0].history if len(solutions) == 1 else [s.history for s in solutions]
        self._previous = None
        if self.warm_start:
            self._previous = [WarmStart.of(p, s) for p, s in zip(problems, solutions) if p is not None]
        self.stopped_ = warn_if_stopped(solutions, self.max_iter, self.max_time)
        self.fit_status_ = int(self.stopped_ != "converged")

    def _starts(self, count: int) -> list[WarmStart | None]:
        """What the last fit left for `count` machines."""
        previous = getattr(self, "_previous", None) if self.warm_start else None
        return list(previous) if previous is not None and len(previous) == count else [None] * count

    # Prediction ------------------------------------------------------------------------------------------------

    def _operands(self) -> tuple[list[slice], list[Matrix]]:
        """Blocks of support vectors, and the coefficients (size of the block, machines) of each."""
        dual = self._dual_coef_
        return [slice(0, dual.shape[1])], [dual.T]

    def _combine(self, products: list[Matrix]) -> Matrix:
        """Decision values (n, machines) from the products of all blocks."""
        return np.asarray(products[0] + self._intercept_)

    def _values(self, X: Any) -> Matrix:
        """Decision values (n, machines) at new points."""
        check_is_fitted(self)
        kind = self._kind
        X = validation.prediction_data(self, kind, X, self.shape_fit_[0])
        blocks, coefficients = self._operands()
        if self.feature_map_ is not None and self.support_vectors_.shape[0] == 0:
            return self._combine([self.feature_map_.multiply(X, self._dual_coef_.T)])
        if kind in ("features", "objects"):
            assert self._kernel is not None
            vectors = self.support_vectors_
            if vectors is not None and self._n_support.sum() != self._dual_coef_.shape[1]:
                raise InvalidInput(f"The internal representation of {type(self).__name__} was altered")
            return self._combine(prediction.expand(self._kernel, X, vectors, blocks, coefficients, self.precision))
        if kind == "function":
            size = len(X) if isinstance(X, list) else np.shape(X)[0]
            X = evaluate(self.kernel, X, self._points, size, self.shape_fit_[0])
        return self._combine(prediction.contract(X[:, self.support_], blocks, coefficients))

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """Number of support vectors, of each class for classifiers."""
        try:
            return self._n_support
        except AttributeError:
            raise AttributeError("n_support_ is available after fit") from None

    @property
    def coef_(self) -> Any:
        """Weight vectors (machines, d) of a linear kernel; read only."""
        kernel = getattr(self, "_kernel", None)
        if not is_linear(kernel) or self.support_vectors_.shape[0] == 0 < self._n_support.sum():
            raise AttributeError("coef_ is only available when using a linear kernel")
        weights = self._weight_vectors()
        (weights.data if sp.issparse(weights) else weights).flags.writeable = False
        return weights

    def _weight_vectors(self) -> Any:
        return self.dual_coef_ @ self.support_vectors_

    def _weights_on(self, vectors: Matrix, dual: Matrix, counts: NDArray[np.integer[Any]]) -> Matrix:
        """Weights (machines, p) of a linear kernel on support vectors (n_SV, p)."""
        return np.asarray(dual @ vectors)
