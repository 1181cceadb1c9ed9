"""What LSSVC and LSSVR share: from data to coefficients, certificate and leave-one-out.

The machine f(x) = sum_i c_i k(x, x_i) + b + g(x)'beta solves one linear system (see `mercer.problems.least_squares`)
for all its outputs at once.  Leave-one-out comes from the same matrix: it is there at once where it was used to choose
parameters, and otherwise computed when `loo_predictions_`, `loo_residuals_`, `loo_error_` or `gcv_` is first read.

Machines are trained on the distinct points (`mercer.machine.repeated_rows`) unless they choose parameters themselves;
leave-one-out leaves out one of the rows as they were given, whether it has copies or not.

With an `approximation` the same is done for the low-rank kernel K~ = Z Z' of its feature map, through systems of the
size of the features; the expansion is then on the landmarks.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from mercer import threads
from mercer.errors import BudgetTooSmall, InvalidInput, NotPositiveDefinite
from mercer.gram import Gram, GramOperator
from mercer.kernels import Kernel, Linear
from mercer.least_squares import choosing, solving, streaming
from mercer.machine import advice, arguments, definiteness, repeated_rows
from mercer.machine.approximation import Machine, Reduction, machine_of
from mercer.machine.arguments import Kind, is_linear, refuse_negative, symmetrised, take
from mercer.machine.base import KernelMachine
from mercer.machine.fitted_state import Number, State
from mercer.machine.outcome import OVERFLOW
from mercer.machine.repeated_rows import DistinctRows
from mercer.machine.training_set import TrainingSet
from mercer.problems.least_squares import LeastSquares
from mercer.resources import Resources, budget, show
from mercer.selection.leave_one_out import LeaveOneOut, leave_one_out, linear_leave_one_out
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution

Array = NDArray[np.float64]
Basis = Callable[[Any], Any]

GIVEN = ("precomputed", "function")  # kinds of kernel whose matrix is there from the start
LOST = 1e-2  # a direct solver with a relative gap above this has run out of digits


class Stated(NamedTuple):
    """What is to be solved: the task for a kernel on points, or a given matrix, the kind of bias and the basis."""

    task: choosing.LeastSquaresTask
    kernel: Kernel
    points: Any
    matrix: Any
    bias: Any
    columns: Array


class Solved(NamedTuple):
    """What was chosen, the solution, why this solver, and the operator it worked on, None where there was none.

    `machine` is what an approximation makes of the solution.
    """

    chosen: choosing.Chosen
    solution: Solution
    reason: str
    gram: GramOperator | None
    machine: Machine | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class LeastSquaresMachine(KernelMachine):
    """Base of the two machines; see `LSSVC` for the meaning of the parameters."""

    C: Any = field(default=1.0, kw_only=False)
    bias: Any = "free"
    basis: Basis | None = None
    solver: str = "auto"
    tol: float = 1e-8

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right"), StrOptions({"loo", "gcv"}), "array-like"],
        "bias": [StrOptions({"free", "none", "penalised"}), "boolean"],
        "basis": [callable, None],
        "solver": [StrOptions({"auto", *solving.SOLVERS})],
    }

    # Training --------------------------------------------------------------------------------------------------

    def _resources(self) -> Resources:
        """Linear systems lose digits that a quadratic program keeps: values are float64 unless float32 is asked for."""
        return Resources(self.memory, "float32" if self.precision == "float32" else "float64", threads=self.n_jobs)

    def _blas(self, n: int) -> AbstractContextManager[None]:
        return threads.blas_threads(n)

    @property
    def _bias(self) -> Any:
        """The kind of bias by its name, also where `bias` is true or false."""
        return self.bias if isinstance(self.bias, str) else "free" if self.bias else "none"

    def _train(self, kind: Kind, X: Any, Y: Array, weights: Array | None, counted: Array | None) -> None:
        """Fit targets Y (n, k) at checked points X with weights (n,); gamma="scale" counts rows by `counted` (n,)."""
        if weights is not None:
            refuse_negative(weights)
        n, resources = len(Y), self._resources()
        columns = self._basis_columns(X, n)
        bias = self._bias
        border = np.hstack([np.ones((n, 1)), columns]) if bias == "free" else columns
        task = choosing.LeastSquaresTask(Y, weights, border, 1.0 if bias == "penalised" else 0.0, resources)
        self._task, rows = task, self._distinct(kind, X, Y, weights)
        if rows is not None:
            once = np.ones(n) if counted is None else counted
            counted = np.bincount(rows.point(n)[rows.rows], once[rows.rows]).astype(np.float64)
            task, columns = task.merged(rows), columns[rows.first]
        distinct = arguments.points_at(kind, X, None if rows is None else rows.first)
        with self._watched(X, Y, n) as monitor:
            kernel = self._resolved(kind, distinct, counted, searched=True)
            training = TrainingSet(kind, distinct, rows, self.kernel if kind == "function" else kernel, resources)
            given = kind in GIVEN
            matrix, points = (symmetrised(training.points), None) if given else (None, training.points)
            if self.approximation is not None and kernel.placeholders:
                kernel = choosing.by_descent(kernel, self.C, points, task, monitor).kernel
            reduction = self._reduction(kind, kernel, points, task.Y, task.weights, resources)
            previous = getattr(self, "solution_", None) if self.warm_start else None
            self._matrix: Any = matrix
            doubt = None
            self.shape_fit_ = X.shape if hasattr(X, "shape") else (n,)
            stated = Stated(task, kernel, points, matrix, bias, columns)
            with self._explaining(kernel, points, task):
                if reduction is None:
                    found = self._solved(stated, monitor, previous)
                    doubt = self._doubt(found.chosen.kernel, points, task)
                    c, intercept = found.solution.coefficients, np.asarray(found.solution.bias)
                    self._keep(training, X, None, np.ascontiguousarray(c.T), intercept)
                else:
                    found = self._train_reduced(stated, reduction, monitor, previous)
                    assert found.machine is not None
                    self._keep_reduced(reduction, training.kept, found.machine, np.asarray(found.solution.bias))
                    self._points = arguments.working_form(X)  # leave-one-out needs them
        self._finish(found, doubt, resources)
        if kind == "features" and not is_linear(self.kernel_):
            advice.on_scales(self.kernel_, points)

    def _distinct(self, kind: Kind, X: Any, Y: Array, weights: Array | None) -> DistinctRows | None:
        """The distinct points; None where rows are all different, and where single rows are left out to choose C."""
        chooses = isinstance(self.C, str) or np.ndim(self.C) > 0
        chooses = chooses or (isinstance(self.kernel, Kernel) and bool(self.kernel.placeholders))
        return None if chooses or kind in GIVEN else repeated_rows.distinct(X, Y, weights)

    @contextmanager
    def _explaining(self, kernel: Kernel, points: Any, task: choosing.LeastSquaresTask) -> Iterator[None]:
        """Say what is at fault with the data or the kernel where linear algebra fails."""
        try:
            yield
        except NotPositiveDefinite as error:
            doubt = None if kernel.placeholders or self.approximation is not None else self._doubt(kernel, points, task)
            if doubt is None:
                raise
            raise NotPositiveDefinite(f"{error}; {doubt}") from error
        except (ValueError, ZeroDivisionError) as error:
            # The answers of LAPACK and its callers to infinite numbers.
            if isinstance(error, (np.linalg.LinAlgError, ZeroDivisionError)) or "infs or NaNs" in str(error):
                raise InvalidInput(OVERFLOW) from error
            raise

    def _doubt(self, kernel: Kernel, points: Any, task: choosing.LeastSquaresTask) -> str | None:
        """Why this machine has no certificate, or None where it has one."""
        matrix, border = self._matrix, task.border
        if task.weights is not None and not task.weights.all():  # points of weight zero are left out
            used = np.flatnonzero(task.weights)
            border = border[used]
            points, matrix = (points, matrix[np.ix_(used, used)]) if points is None else (take(points, used), None)

        def whole() -> Any:
            return Gram(kernel, points if matrix is None else matrix, memory=self.memory)

        return definiteness.doubt(kernel, len(border), points, border, task.constant, whole)

    def _solved(self, stated: Stated, monitor: Monitor, previous: Solution | None) -> Solved:
        """Parameters, solution and the reason for the solver, for one kernel on all points."""
        task, kernel, points, matrix, bias, columns = stated
        chosen = choosing.choose(kernel, self.C, points, matrix, task, monitor)
        choice = solving.choose(self.solver, chosen.kernel, points, matrix, C=chosen.C, resources=task.resources)
        problem = LeastSquares(choice.gram, task.Y, chosen.C, task.weights, bias, columns)
        stopped = monitor.stopped  # a search that was cut short is told even where the machine itself is exact
        solution = self._solution(problem, choice, chosen, monitor, previous)
        solution = solution if stopped is None else replace(solution, stopped=stopped)
        return Solved(chosen, solution, choice.reason, choice.gram)

    def _train_reduced(
        self, stated: Stated, reduction: Reduction, monitor: Monitor, previous: Solution | None
    ) -> Solved:
        """The same for the kernel of a feature map: from features held in memory, or from points read in blocks."""
        task, kernel, points = stated[:3]
        mapped = reduction.feature_map
        reason = streaming.reason_to_stream(reduction, len(task.Y), self.C, task, self.basis)
        if reason is not None:
            solution = streaming.solve(reduction, points, task, float(self.C), stated.bias, self.tol, monitor)
            machine = Machine(reduction.points, solution.coefficients, np.zeros(task.Y.shape[1]))
            found = Solved(choosing.Chosen(kernel, float(self.C), None, (), None), solution, reason, None)
        else:
            Z = np.asarray(mapped.features(points))
            found = self._solved(stated._replace(kernel=Linear(), points=Z, matrix=None), monitor, previous)
            machine = machine_of(mapped, Z.T @ found.solution.coefficients)
        return found._replace(chosen=replace(found.chosen, kernel=kernel), machine=machine)

    def _solution(
        self, problem: LeastSquares, choice: solving.Choice, chosen: choosing.Chosen, monitor: Monitor,
        previous: Solution | None,
    ) -> Solution:  # fmt: skip
        """Solve, unless choosing the parameters has left coefficients of rounding accuracy behind."""
        automatic = self.solver == "auto"
        if automatic and chosen.leave_one_out is not None:
            method = "leave-one-out descent" if chosen.path is None else f"{chosen.path.method} path"
            solution = solving.certified(problem, chosen.leave_one_out.coefficients, method, monitor)
            if solution.gap <= 1e-16 * abs(solution.primal):
                return solution
        if previous is not None and previous.coefficients.shape != problem.Y.shape:
            previous = None
        limits: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "monitor": monitor}
        return solving.solve(problem, choice, start=previous, automatic=automatic, **limits)

    def _finish(self, found: Solved, doubt: str | None, resources: Resources) -> None:
        """Store the certificate and what was chosen on the way."""
        chosen, solution = found.chosen, found.solution
        if solution.stopped == "converged" and solution.relative_gap > LOST:
            solution = replace(solution, stopped="stalled")
        outputs = solution.coefficients.shape[1]
        self._basis_coefficients = np.asarray(solution.multipliers.get("basis", np.empty((0, outputs))))
        self.basis_coef_ = self._shaped(self._basis_coefficients)
        self.kernel_, self.C_ = chosen.kernel, chosen.C
        self.loo_surface_, self.path_ = chosen.surface, chosen.path
        self._loo = chosen.leave_one_out
        self._certify([solution], doubt, found.reason, found.gram, resources)

    def _state(self) -> State:
        return {"C_": Number()}

    # Prediction ------------------------------------------------------------------------------------------------

    def _prediction_resources(self) -> Resources:
        return self._resources()

    def _weight_vectors(self) -> Array:
        """Weight vector (d,) or vectors (k, d)."""
        weights = np.asarray(self.support_vectors_.T @ self._dual_coef_.T).T
        return weights[0] if len(weights) == 1 else weights

    # Leave-one-out ---------------------------------------------------------------------------------------------

    def __getstate__(self) -> Any:
        """A given matrix, and points that are not landmarks, do not travel; leave-one-out does once it was read."""
        state = super().__getstate__()
        if state.get("_matrix") is not None:
            state = {**state, "_matrix": None}
        return {**state, "_points": None} if state.get("approximation_") is not None else state

    def forget_matrix(self) -> None:
        """Let a given kernel matrix go: only leave-one-out that was computed by now can be read afterwards."""
        self._matrix = None

    def leave_one_out(self) -> LeaveOneOut:
        """Exact leave-one-out of the fitted machine, computed once: 2/3 n^3 operations and one n x n matrix."""
        check_is_fitted(self)
        if self._loo is None:
            with threads.limit(self.n_jobs), self._blas(self.shape_fit_[0]):
                self._loo = self._compute_leave_one_out()
        return self._loo

    def _compute_leave_one_out(self) -> LeaveOneOut:
        task, ridge, kernel = self._task, 1.0 / self.C_, self.kernel_
        points: Any = None if self._kind in GIVEN else arguments.working_form(self.support_vectors_)
        n = len(task.Y)
        if self.approximation_ is not None:
            kernel, points = Linear(), self._training_features()
        if ridge > 0 and (features := choosing.linear_features(kernel, points, task.constant)) is not None:
            return linear_leave_one_out(features, task.Y, ridge, weights=task.weights, border=task.border)
        if self._kind in GIVEN:
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
        size = 8 * self.shape_fit_[0] * self.feature_map_.dimension
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
