"""What all machines share: state a problem, have it solved, keep the expansion.

Every machine is  f(x) = sum_v c_v k(x, v) + b  over some of its training points, or over landmarks, with one function
for each output.  Its `fit`

    checks the data, merges repeated rows and resolves the kernel                   `_training_set`
    states its problems and has them solved                                         the machine's own part, `_watched`
    keeps the expansion, its certificate and what stopped it                        `_keep`, `_certify`

and its predictions are one product of kernel values with the coefficients (`mercer.machine.prediction`).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import CallbackSupportMixin
from sklearn.utils._param_validation import Interval, StrOptions

from mercer import threads
from mercer.errors import InvalidInput
from mercer.gram import GramOperator
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.names import named_kernel
from mercer.lowrank.approximations import Approximation
from mercer.machine import advice, arguments, repeated_rows
from mercer.machine.approximation import EXACT, Machine, ReducedSet, Reduction, machine_of, reduce
from mercer.machine.arguments import NAMES, Kind, gamma_of, refuse_negative, with_widths
from mercer.machine.callbacks import OBSERVERS, watching
from mercer.machine.fitted_state import State
from mercer.machine.outcome import FitPlan, confirmed, warn_if_stopped
from mercer.machine.prediction import Expansion, Terms
from mercer.machine.repeated_rows import DistinctRows
from mercer.machine.training_set import FACTORISING, TrainingSet
from mercer.resources import Resources
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Index = NDArray[np.intp]

_VALID: set[Any] = set()  # parameter values that passed their check
_VALUES = attrgetter("primal", "dual", "gap")

NOT_FINITE = (
    "The dual coefficients or intercepts are not finite. The input data may contain large values and need to be "
    "preprocessed."
)


@dataclass(kw_only=True, eq=False, repr=False)
class KernelEstimator(CallbackSupportMixin, Expansion):  # type: ignore[misc]  # scikit-learn is untyped
    """Base of all machines, on a set of points or on a stream; see `SVC` for the meaning of the parameters.

    The parameters of an estimator are the fields of a dataclass, and those that all share stand here: its `__init__`
    does no more than store them, as scikit-learn asks.
    """

    kernel: Any = "rbf"
    degree: int = 3
    gamma: Any = "scale"
    coef0: float = 0.0
    tol: float = 1e-3
    max_iter: int = -1
    max_time: float | None = None
    memory: int | str | None = None
    precision: str = "auto"
    warm_start: bool = False
    verbose: bool | int = False
    random_state: Any = None
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions(NAMES), callable],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "max_time": [Interval(Real, 0.0, None, closed="neither"), None],
        "memory": [Interval(Integral, 1, None, closed="left"), str, None],
        "precision": [StrOptions({"auto", "float32", "float64"})],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def _validate_params(self) -> None:
        """Check the parameters against the table, once for each set of values: on small data the check is the fit."""
        try:
            values = tuple(map(vars(self).__getitem__, self._get_param_names()))
            key = (type(self), values, tuple(map(type, values)))
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

    # Training --------------------------------------------------------------------------------------------------

    def _resources(self) -> Resources:
        """What this machine may use."""
        return Resources(self.memory, self.precision, threads=self.n_jobs)

    def _resolved(self, kind: Kind, points: Any, weights: Vector | None, searched: bool = False) -> Kernel:
        """The kernel of points (n, d) in their working form, of weights (n,); a given matrix is its own kernel."""
        self._kind, self._gamma = kind, 0.0
        if kind in ("precomputed", "function"):
            return Precomputed()
        if not isinstance(self.kernel, Kernel):
            self._gamma = gamma_of(self.gamma, points, weights)
            return named_kernel(self.kernel, self._gamma, self.degree, self.coef0)
        return with_widths(self.kernel, points, searched=searched)

    def _blas(self, n: int) -> AbstractContextManager[None]:
        """How many threads BLAS has while n points are trained on."""
        return nullcontext()

    @contextmanager
    def _watched(self, X: Any, y: Any, n: int = 0) -> Iterator[Monitor]:
        """Train under the thread limit, the time limit, Ctrl-C and the callbacks of this estimator."""
        heard = self.verbose or "_skl_callbacks" in vars(self) or OBSERVERS.get()
        watch = watching(self, X, y, self.max_time) if heard else Monitor(time_limit=self.max_time)
        with threads.limit(self.n_jobs), self._blas(n), watch as monitor:
            yield monitor

    # What a fit leaves behind ----------------------------------------------------------------------------------

    def _show(self, dual: Matrix, intercept: Vector) -> None:
        """Store the coefficients: predictions read these, users the public ones; those of a basis come later."""
        self._dual_coef_, self._intercept_, self._trained = dual, intercept, None
        self._basis_coefficients = np.empty((0, len(intercept)))
        self.dual_coef_, self.intercept_ = self._public(dual, intercept)

    def _public(self, dual: Matrix, intercept: Vector) -> tuple[Any, Any]:
        """The coefficients and intercepts as the user sees them."""
        return dual, intercept

    def _state(self) -> State:
        """What the machine consists of beside its parameters, its expansion and its certificate."""
        return {}

    def _expansion_shape(self, outputs: int) -> tuple[int, int]:
        """Rows of the dual coefficients and number of intercepts; `outputs` of both where any number will do."""
        return 1, 1


@dataclass(kw_only=True, eq=False, repr=False)
class KernelMachine(KernelEstimator):
    """Base of the machines that are trained on a set of points; they may do so on a low-rank kernel."""

    approximation: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelEstimator._parameter_constraints,
        "approximation": [Approximation, StrOptions({"auto"}), None],
    }

    # Training --------------------------------------------------------------------------------------------------

    def _training_set(
        self,
        kind: Kind,
        X: Any,
        weights: Vector | None,
        labels: Any,
        targets: Any = None,
        *,
        largest: float = 1.0,
        size: Callable[[int], int | None] | None = None,
    ) -> tuple[TrainingSet, Vector | None]:
        """The distinct points of positive weight with their kernel, and their weights (n,), None where all are one.

        Rows with different `labels`, (n,) or (n, k) numbers, are different points (`mercer.machine.repeated_rows`).
        targets (n,) or (n, k) are for landmarks that are chosen by them; `largest` is about the largest coefficient for
        a weight of one, `size` says how many points one of several small machines has.
        """
        if weights is not None:
            refuse_negative(weights)
        rows = repeated_rows.distinct(X, labels, weights, given=kind == "precomputed")
        kept, weights = (None, None) if rows is None else (rows.first, rows.weights)
        if weights is not None:
            largest *= float(np.sqrt(np.mean(np.square(weights))))  # errors of many coefficients add up like that
        if self.warm_start:
            self._forget_other_rows(kept)
        points = arguments.points_at(kind, X, kept)
        self.kernel_ = self._resolved(kind, points, weights)
        kernel = self.kernel if kind == "function" else self.kernel_
        training = TrainingSet(kind, points, rows, kernel, self._resources(), largest, self.tol, size)
        training.by_factor = getattr(self, "solver", None) in FACTORISING
        if kind == "features":
            advice.on_scales(self.kernel_, training.points)
        if self.basis is not None:
            columns = self._basis_columns(X, len(X) if isinstance(X, list) else X.shape[0])
            training.basis = columns if kept is None else columns[kept]
        self.approximation_reason_ = EXACT
        if self.approximation is None:
            return training, weights
        if targets is not None and kept is not None:
            targets = targets[kept]
        row_bytes = np.dtype(training.resources.precision).itemsize
        reduction = self._reduction(
            kind, self.kernel_, training.points, targets, weights, training.resources, row_bytes
        )
        return training if reduction is None else ReducedSet(training, reduction), weights

    def _forget_other_rows(self, kept: Index | None) -> None:
        """Drop what the last fit left to start from where that was trained on other rows, or in another order."""
        if not np.array_equal(getattr(self, "_rows", kept), kept):  # type: ignore[arg-type]  # None is equal to None
            for name in {"solution_", "_previous"} & set(vars(self)):
                delattr(self, name)
        self._rows = kept

    def _reduction(
        self,
        kind: Kind,
        kernel: Kernel,
        points: Any,
        targets: Any,
        weights: Vector | None,
        resources: Resources,
        row_bytes: int = 0,
    ) -> Reduction | None:
        """The feature map that `approximation` asks for, None for the exact machine."""
        seed = int(self.random_state) if isinstance(self.random_state, Integral) else 0
        reduction, self.approximation_reason_ = reduce(
            self.approximation, kind, kernel, points,
            y=targets, weights=weights, seed=seed, resources=resources, row_bytes=row_bytes,
        )  # fmt: skip
        return reduction

    # What a fit leaves behind ----------------------------------------------------------------------------------

    def _keep(
        self,
        training: TrainingSet,
        X: Any,
        support: Index | None,
        dual: Matrix,
        intercept: Vector,
        counts: NDArray[np.integer[Any]] | None = None,
    ) -> None:
        """Store an expansion: `dual` (rows, n_SV) on the training points `support`, and `intercept` (outputs,).

        `support` is None where all points carry coefficients; `counts` are the support vectors of each class.
        """
        if not (np.isfinite(dual).all() and np.isfinite(intercept).all()):
            raise InvalidInput(NOT_FINITE)
        self.shape_fit_ = X.shape if hasattr(X, "shape") else (len(X),)
        if training.reduction is not None:
            weights = self._weights_on(training.points[support], dual, counts)
            machine = machine_of(training.reduction.feature_map, weights.T)
            self._keep_reduced(training.reduction, training.kept, machine, intercept)
            self._n_support = np.array([self._dual_coef_.shape[1]], dtype=np.int32)
            return
        self.approximation_ = self.feature_map_ = None
        self._points = X if self._kind == "function" else None
        rows, everywhere = training.rows, support is None
        points = np.arange(training.n) if support is None else support
        if rows is None or (rows.as_given and not everywhere):
            self.support_ = points if rows is None else rows.first[points]
            self._show_on(X, everywhere, dual, intercept, counts)
        else:
            self._hand_back(rows, X, points, everywhere, dual, intercept, counts)

    def _hand_back(
        self,
        rows: DistinctRows,
        X: Any,
        points: Index,
        everywhere: bool,
        dual: Matrix,
        intercept: Vector,
        counts: NDArray[np.integer[Any]] | None,
    ) -> None:
        """Show the coefficients `dual` of distinct `points` as shares of the rows that were given, and keep both."""
        sizes = np.array([len(points)]) if counts is None else np.asarray(counts)
        classes = np.repeat(np.arange(len(sizes)), sizes)
        self.support_, shares, of = rows.handed_back(points, dual, classes)
        place = np.empty(len(points), dtype=np.intp)
        place[of] = np.arange(len(of))
        if everywhere:  # all rows are shown, those of weight zero without a coefficient
            every = np.zeros((len(shares), self.shape_fit_[0]))
            every[:, self.support_] = shares
            place, shares, self.support_ = self.support_[place], every, np.arange(self.shape_fit_[0])
        shown = None if counts is None else np.bincount(classes[of], minlength=len(sizes))
        self._show_on(X, everywhere, shares, intercept, shown)
        self._trained = Terms.at(place, self.support_vectors_, dual, sizes)

    def _show_on(
        self,
        X: Any,
        everywhere: bool,
        dual: Matrix,
        intercept: Vector,
        counts: NDArray[np.integer[Any]] | None,
    ) -> None:
        """Store coefficients (rows, n_SV) of rows `support_` of X, perhaps all, so many of each class."""
        if counts is not None:
            self._n_support = np.asarray(counts, dtype=np.int32)
        if self._kind in ("precomputed", "function"):
            self.support_vectors_ = np.empty((0, 0))
        else:
            self.support_vectors_ = X if everywhere else arguments.take(X, self.support_)
        self._show(dual, intercept)

    def _keep_reduced(self, reduction: Reduction, kept: Index | None, machine: Machine, intercept: Vector) -> None:
        """Store a machine on the features of a low-rank kernel: on its landmarks, where there are any."""
        index = reduction.index
        self.approximation_, self.feature_map_ = reduction.approximation, reduction.feature_map
        self.support_ = np.empty(0, dtype=np.intp) if index is None else index if kept is None else kept[index]
        self.support_vectors_ = np.empty((0, self.shape_fit_[-1])) if machine.points is None else machine.points
        self._points = None
        self._show(np.ascontiguousarray(machine.coefficients.T), intercept + machine.constant)

    def _certify(
        self,
        solutions: Sequence[Solution],
        doubt: str | None,
        reason: str,
        gram: GramOperator | None,
        resources: Resources,
    ) -> list[Solution]:
        """Keep the certificate of the fit and what stopped it, and warn where there is none or that was too early.

        doubt : why there is no certificate, else None; reason : why this solver; gram : the operator that was used,
        None where there was none.  Returns the solutions as they may be shown.
        """
        found = confirmed(solutions, doubt)
        single = len(found) == 1
        self.objective_, self.dual_objective_, self.gap_ = map(float, map(sum, zip(*map(_VALUES, found))))
        self.n_iter_ = found[0].iterations if single else np.array([s.iterations for s in found], dtype=np.int32)
        self.solution_ = found[0] if single else found
        self.history_ = found[0].history if single else [s.history for s in found]
        name = found[0].solver if single else ", ".join(sorted({s.solver for s in found}))
        self.solver_ = f"{name}: {found[0].details.get('reason', reason)}"
        self.plan_ = FitPlan.of(self.solver_, len(found), self.approximation_reason_, resources, gram)
        self.stopped_ = warn_if_stopped(found, self.max_iter, self.max_time)
        return found

    def _weights_on(self, vectors: Matrix, dual: Matrix, counts: Any) -> Matrix:
        """Weights (outputs, p) of a linear kernel on support vectors (n_SV, p)."""
        return np.asarray(dual @ vectors)
