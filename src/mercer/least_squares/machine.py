"""What LSSVC and LSSVR share: from data to coefficients, certificate and leave-one-out.

The machine f(x) = sum_i c_i k(x, x_i) + b + g(x)'beta solves one linear system (see `mercer.problems.least_squares`)
for all its outputs at once.  Leave-one-out comes from the same matrix: it is there at once where it was used to choose
parameters, and otherwise computed when `loo_predictions_`, `loo_residuals_`, `loo_error_` or `gcv_` is first read.

With an `approximation` the same is done for the low-rank kernel K~ = Z Z' of its feature map, through systems of the
size of the features; the expansion is then on the landmarks.
"""

from collections.abc import Callable
from dataclasses import replace
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
from mercer.errors import BudgetTooSmall, InvalidInput
from mercer.estimation import advice, prediction, validation
from mercer.estimation.callbacks import watching
from mercer.estimation.convergence import warn_if_stopped
from mercer.estimation.reduction import Machine, Reduction, machine_of, reduce
from mercer.estimation.similarity import NAMES, Kind, evaluate, gamma_of, is_linear, kind_of
from mercer.estimation.weights import refuse_negative
from mercer.gram import Gram
from mercer.gram.memory import budget, show
from mercer.kernels import Kernel, Linear, Precomputed, as_kernel
from mercer.least_squares import choosing, solving, streaming
from mercer.lowrank.approximations import Approximation
from mercer.lowrank.feature_map import FeatureMap
from mercer.problems.least_squares import LeastSquares
from mercer.selection.leave_one_out import LeaveOneOut, leave_one_out, linear_leave_one_out
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution

Array = NDArray[np.float64]
Basis = Callable[[Any], Any]

BIASES = {True: "free", False: "none"}


class LeastSquaresMachine(CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the two machines; see `LSSVC` for the meaning of the parameters."""

    C: Any
    kernel: Any
    degree: int
    gamma: Any
    coef0: float
    bias: Any
    basis: Basis | None
    approximation: Any
    solver: str
    tol: float
    max_time: float | None
    memory: int | str | None
    precision: str
    n_jobs: int | None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0.0, None, closed="right"), StrOptions({"loo", "gcv"}), "array-like"],
        "kernel": [StrOptions(NAMES), callable],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "bias": [StrOptions({"free", "none", "penalised"}), "boolean"],
        "basis": [callable, None],
        "approximation": [Approximation, StrOptions({"auto"}), None],
        "solver": [StrOptions({"auto", *solving.SOLVERS})],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "max_time": [Interval(Real, 0.0, None, closed="neither"), None],
        "memory": [Interval(Integral, 1, None, closed="left"), str, None],
        "precision": [StrOptions({"auto", "float32", "float64"})],
        "n_jobs": [Integral, None],
    }

    X_fit_: Any
    solution_: Solution
    _coefficients: Array
    _intercepts: Array
    _kind: Kind
    _targets: Array
    _loo: LeaveOneOut | None
    _points: Any
    approximation_: Approximation | None
    feature_map_: FeatureMap | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = self.kernel == "precomputed" if isinstance(self.kernel, str) else isinstance(self.kernel, Precomputed)
        tags.input_tags.pairwise = given
        tags.input_tags.sparse = not given
        return tags

    # Training --------------------------------------------------------------------------------------------------

    def _train(self, kind: Kind, X: Any, Y: Array, weights: Array | None) -> None:
        """Fit targets Y (n, k) at checked points X with weights (n,) or None."""
        if weights is not None:
            refuse_negative(weights)
        self._kind, self._weights = kind, weights
        kernel, points, matrix = self._similarity(X)
        columns = self._basis_columns(X, len(Y))
        bias: Any = self.bias if isinstance(self.bias, str) else BIASES[bool(self.bias)]
        border = np.hstack([np.ones((len(Y), 1)), columns]) if bias == "free" else columns
        task = choosing.Task(Y, weights, border, 1.0 if bias == "penalised" else 0.0, self.memory)
        with threads.limit(self.n_jobs), watching(self, X, Y, self.max_time) as monitor:
            if self.approximation is not None:
                kernel = choosing.settled(kernel, self.C, points, matrix, task)
            reduction, self.approximation_reason_ = reduce(
                self.approximation, kind, kernel, points, y=Y, weights=weights, memory=self.memory
            )
            self._matrix, self._task, self._targets, self._trained_on = matrix, task, Y, len(Y)
            if reduction is None:
                chosen, solution, reason = self._solved(kernel, points, matrix, bias, columns, monitor)
                self._keep(X, solution)
            else:
                chosen, solution, reason = self._train_reduced(reduction, kernel, points, bias, columns, monitor)
        if kind == "features" and not is_linear(chosen.kernel):
            advice.on_scales(chosen.kernel, points)
        self._keep_certificate(chosen, reason, solution)
        self._publish()

    def _solved(
        self, kernel: Kernel, points: Any, matrix: Any, bias: Any, columns: Array, monitor: Monitor
    ) -> tuple[choosing.Chosen, Solution, str]:
        """Parameters, solution and the reason for the solver, for one kernel on all points."""
        task = self._task
        chosen = choosing.choose(kernel, self.C, points, matrix, task)
        choice = solving.choose(
            self.solver, chosen.kernel, points, matrix, C=chosen.C, memory=self.memory, precision=self.precision
        )
        problem = LeastSquares(choice.gram, task.Y, chosen.C, task.weights, bias, columns)
        return chosen, self._solution(problem, choice, chosen, monitor), choice.reason

    def _train_reduced(
        self, reduction: Reduction, kernel: Kernel, points: Any, bias: Any, columns: Array, monitor: Monitor
    ) -> tuple[choosing.Chosen, Solution, str]:
        """The same for the kernel of a feature map: from features held in memory, or from points read in blocks."""
        found, task = reduction.feature_map, self._task
        reason = streaming.reason_to_stream(reduction, len(task.Y), self.C, task, self.basis)
        if reason is not None:
            solution = streaming.solve(reduction, points, task, float(self.C), bias, self.tol, monitor)
            machine = Machine(reduction.points, solution.coefficients, np.zeros(task.Y.shape[1]))
            chosen = choosing.Chosen(kernel, float(self.C), None, (), None)
        else:
            Z = np.asarray(found.features(points))
            chosen, solution, reason = self._solved(Linear(), Z, None, bias, columns, monitor)
            machine = machine_of(found, Z.T @ solution.coefficients)
        self._keep_reduced(reduction, machine, points, np.asarray(solution.bias))
        return replace(chosen, kernel=kernel), solution, reason

    def _solution(
        self, problem: LeastSquares, choice: solving.Choice, chosen: choosing.Chosen, monitor: Monitor
    ) -> Solution:
        """Solve, unless choosing the parameters has left coefficients of rounding accuracy behind."""
        automatic = self.solver == "auto"
        if automatic and chosen.leave_one_out is not None:
            road = "leave-one-out descent" if chosen.path is None else f"{chosen.path.road} path"
            solution = solving.certified(problem, chosen.leave_one_out.coefficients, road, monitor)
            if solution.gap <= 1e-16 * abs(solution.primal):
                return solution
        return solving.solve(problem, choice, tol=self.tol, monitor=monitor, automatic=automatic)

    def _similarity(self, X: Any) -> tuple[Kernel, Any, Any]:
        """The kernel, the points in the form it works on, and the matrix (n, n) where it is given."""
        if self._kind == "precomputed":
            return Precomputed(), None, X
        if self._kind == "function":
            n = len(X) if isinstance(X, list) else np.shape(X)[0]
            return Precomputed(), None, evaluate(self.kernel, X, X, n, n)
        kernel = self.kernel
        if not isinstance(kernel, Kernel):
            gamma = gamma_of(self.gamma, X, self._weights)
            kernel = as_kernel(kernel, gamma=gamma, degree=self.degree, coef0=self.coef0)
        return kernel, validation.working_form(X), None

    def _basis_columns(self, X: Any, n: int) -> Array:
        """Values (n, q) of the functions outside the penalty."""
        if self.basis is None:
            return np.empty((n, 0))
        values = self.basis(X)
        values = np.asarray(values.toarray() if sp.issparse(values) else values, dtype=np.float64)
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2 or len(values) != n or not np.isfinite(values).all():
            raise InvalidInput(f"basis must return finite values of shape (n, q) for n = {n} points.")
        return values

    def _keep_certificate(self, chosen: choosing.Chosen, reason: str, solution: Solution) -> None:
        """Store the certificate and what was chosen on the way."""
        if not (np.isfinite(solution.coefficients).all() and np.isfinite(np.asarray(solution.bias)).all()):
            raise InvalidInput("the solution is not finite: the data may hold very large values; scale them first.")
        outputs = solution.coefficients.shape[1]
        self._basis_coefficients = np.asarray(solution.multipliers.get("basis", np.empty((0, outputs))))
        self.kernel_, self.C_ = chosen.kernel, chosen.C
        self.loo_surface_, self.path_ = chosen.surface, chosen.path
        self._loo = chosen.leave_one_out
        self.objective_, self.dual_objective_, self.gap_ = solution.primal, solution.dual, solution.gap
        self.n_iter_, self.solution_, self.history_ = solution.iterations, solution, solution.history
        self.solver_ = f"{solution.solver}: {solution.details.get('reason', reason)}"
        self.stopped_ = warn_if_stopped([solution], -1, self.max_time)

    def _keep(self, X: Any, solution: Solution) -> None:
        """Store the exact machine."""
        self.X_fit_ = X if self._kind != "precomputed" else None
        self._coefficients, self._intercepts = solution.coefficients, np.asarray(solution.bias)
        self.approximation_ = self.feature_map_ = self._points = None
        for name in ("support_", "support_vectors_"):
            if name in vars(self):
                delattr(self, name)

    def _keep_reduced(self, reduction: Reduction, machine: Machine, points: Any, bias: Array) -> None:
        """Store the machine on landmarks or features; the points stay at hand for leave-one-out."""
        self._coefficients, self._intercepts = machine.coefficients, bias + machine.constant
        self.X_fit_ = self.support_vectors_ = machine.points
        self.approximation_, self.feature_map_, self._points = reduction.approximation, reduction.feature_map, points
        index = reduction.index
        self.support_ = np.empty(0, dtype=np.intp) if index is None else index

    def _publish(self) -> None:
        """Set `dual_coef_` and `intercept_` in the shape the user sees."""
        raise NotImplementedError

    # Prediction ------------------------------------------------------------------------------------------------

    def _values(self, X: Any) -> Array:
        """Outputs (m, k) at new points."""
        check_is_fitted(self)
        X = validation.prediction_data(self, self._kind, X, self._trained_on)
        c = self._coefficients
        if self._kind == "precomputed":
            values = X[:, self._support()] @ c
        elif self._kind == "function":
            m = len(X) if isinstance(X, list) else np.shape(X)[0]
            values = evaluate(self.kernel, X, self.X_fit_, m, len(c)) @ c
        elif self.X_fit_ is None:
            assert self.feature_map_ is not None
            values = self.feature_map_.multiply(X, c)
        else:
            precision = "float32" if self.precision == "float32" else "float64"
            points = validation.working_form(self.X_fit_)
            values = prediction.expand(self.kernel_, X, points, [slice(0, len(c))], [c], precision)[0]
        values = values + self._intercepts
        if self.basis is not None:
            values += self._basis_columns(X, len(values)) @ self._basis_coefficients
        return np.asarray(values)

    def _support(self) -> Any:
        """Columns of a precomputed matrix that carry coefficients: all, or those pruning has left."""
        return getattr(self, "support_", slice(None))

    @property
    def coef_(self) -> Any:
        """Weight vector (d,) or vectors (k, d) of a linear kernel."""
        if not is_linear(getattr(self, "kernel_", None)) or self.X_fit_ is None:
            raise AttributeError("coef_ is only available when using a linear kernel")
        weights = np.asarray(self.X_fit_.T @ self._coefficients).T
        return weights[0] if len(weights) == 1 else weights

    # Leave-one-out ---------------------------------------------------------------------------------------------

    def __getstate__(self) -> Any:
        """A given matrix, and points that are not landmarks, do not travel; leave-one-out does once it was read."""
        state = super().__getstate__()
        if state.get("_matrix") is not None or state.get("_points") is not None:
            state = {**state, "_matrix": None, "_points": None}
        return state

    def leave_one_out(self) -> LeaveOneOut:
        """Exact leave-one-out of the fitted machine, computed once: 2/3 n^3 operations and one n x n matrix."""
        check_is_fitted(self)
        if self._loo is None:
            self._loo = self._compute_leave_one_out()
        return self._loo

    def _compute_leave_one_out(self) -> LeaveOneOut:
        task, ridge, kernel = self._task, 1.0 / self.C_, self.kernel_
        points: Any = None if self.X_fit_ is None else validation.working_form(self.X_fit_)
        n = len(task.Y)
        if self.approximation_ is not None:
            kernel, points = Linear(), self._training_features()
        if ridge > 0 and (features := choosing.linear_features(kernel, points, task.constant)) is not None:
            return linear_leave_one_out(features, task.Y, ridge, weights=task.weights, border=task.border)
        if self._kind in ("precomputed", "function"):
            if self._matrix is None:
                raise InvalidInput("the kernel matrix did not travel with the machine: read leave-one-out before.")
            K, own = self._matrix, False
        else:
            allowed = 3 * budget(None) if self.memory is None else budget(self.memory)
            if 8 * n * n > allowed:
                raise BudgetTooSmall(
                    f"exact leave-one-out needs the {show(8 * n * n)} of the kernel matrix; memory allows "
                    f"{show(allowed)}: raise it, or use a sample of the points."
                )
            K, own = Gram(kernel, points, storage="streamed", memory=self.memory).dense(), True
        projected = kernel.conditional_order > 0
        return leave_one_out(K, task.Y, ridge, projected=projected, overwrite=own, **task.options)

    def _training_features(self) -> Array:
        """Z (n, p) of the training points, computed again."""
        if self._points is None or self.feature_map_ is None:
            raise InvalidInput("the training points did not travel with the machine: read leave-one-out before.")
        size = 8 * self._trained_on * self.feature_map_.dimension
        allowed = 3 * budget(None) if self.memory is None else budget(self.memory)
        if size > allowed:
            raise BudgetTooSmall(
                f"the features of all points take {show(size)}, memory allows {show(allowed)}: raise memory, or hold "
                "some points out."
            )
        return np.asarray(self.feature_map_.features(self._points))

    @property
    def loo_predictions_(self) -> Array:
        """What the machine trained without each point says about it: (n,) or (n, k)."""
        return self._shaped(self.leave_one_out().predictions)

    @property
    def loo_residuals_(self) -> Array:
        """Targets less `loo_predictions_`."""
        return self._shaped(self.leave_one_out().residuals)

    @property
    def gcv_(self) -> float:
        """Generalised cross-validation estimate of the mean squared error, summed over outputs."""
        return self.leave_one_out().gcv

    def _shaped(self, values: Array) -> Array:
        return values[:, 0] if values.shape[1] == 1 else values

    def prune(self, *, fraction: float = 0.05, slack: float = 0.02, keep: int = 1) -> Any:
        """A machine like this one on fewer of its points; see `mercer.least_squares.prune`."""
        from mercer.least_squares.pruning import prune

        return prune(self, fraction=fraction, slack=slack, keep=keep)

    def _data(self, X: Any, y: Any, *, numeric: bool) -> tuple[Kind, Any, Any]:
        kind = kind_of(self.kernel, X)
        return kind, *validation.training_data(self, kind, X, y, numeric=numeric)
