"""What the machines on streams share: points in, one stochastic gradient step for each, an expansion out.

    f <- (1 - lambda Lambda_t) f - Lambda_t c'(y_t, f(x_t) + b) k(x_t, .)

(Schoelkopf and Smola 2002, section 10.6.3; `mercer.solvers.online`).  `partial_fit` learns the points it is given after
all those before, in their order; `fit` begins anew and passes over its points `max_iter` times, in random order unless
`shuffle` is false.
"""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import check_consistent_length, validate_data

from mercer.errors import InvalidInput
from mercer.machine.approximation import EXACT
from mercer.machine.arguments import kind_of, points_at, refuse_negative, sample_weights
from mercer.machine.base import NOT_FINITE, KernelEstimator
from mercer.machine.fitted_state import Number, State, Values
from mercer.machine.outcome import FitPlan
from mercer.online.batch import Batch
from mercer.resources import Resources, show
from mercer.solvers.monitor import Monitor
from mercer.solvers.online import SCHEDULES, Rule, Schedule, Stream
from mercer.solvers.online.stream import room
from mercer.solvers.solution import Solution, Stopped

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Index = NDArray[np.intp]

FEWEST_PASSES = 2  # before their losses are compared


@dataclass(kw_only=True, eq=False, repr=False)
class OnlineMachine(KernelEstimator):
    """Base of the machines; see `OnlineSVC` for the meaning of the parameters."""

    regularisation: float = 1e-4
    rate: float = 1.0
    schedule: str = "inverse"
    budget: int | None = 10_000
    max_iter: int = 1
    shuffle: bool = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelEstimator._parameter_constraints,
        "regularisation": [Interval(Real, 0.0, None, closed="left")],
        "rate": [Interval(Real, 0.0, None, closed="neither")],
        "schedule": [StrOptions(set(SCHEDULES))],
        "budget": [Interval(Integral, 1, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left"), Options(Integral, {-1})],
        "shuffle": ["boolean"],
    }

    _supervised: ClassVar[bool] = True

    # What the single machines say ----------------------------------------------------------------------------------

    def _rule(self) -> tuple[Rule, float, bool, float]:
        """The update rule, its nu, whether there is a bias, and the first width."""
        raise NotImplementedError

    def _outputs(self) -> int:
        """Number of functions that are learnt."""
        return 1

    def _first(self, y: Any, classes: Any) -> None:
        """Set what is known from the first points alone."""

    def _coded(self, y: Any, weights: Vector) -> tuple[Matrix, Vector]:
        """Targets (k, n), and the weights (n,) they get."""
        raise NotImplementedError

    def _intercepts(self, stream: Stream) -> Vector:
        """What is added to the expansion (k,)."""
        return stream.bias.copy()

    # Training ------------------------------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Begin anew, unless `warm_start`, and pass over the points."""
        if not self.warm_start:
            for name in ("_stream", "support_", "shape_fit_"):
                if name in vars(self):
                    delattr(self, name)
        X, y, weights = self._checked_stream(X, y, sample_weight)
        batch, targets, lengths = self._stated(X, y, weights)
        stream = self._learner()
        random = check_random_state(self.random_state)
        with self._watched(X, y) as monitor:
            last, passes = math.inf, 0
            while True:
                stream.count_anew()  # in a later pass the points are known
                order = None if batch is None else batch.order(random)
                if not stream.learn(X, targets, lengths, monitor, order):
                    return self._keep_stream(X, monitor, monitor.stopped or "interrupted")
                passes += 1
                loss = stream.mean_loss
                settled = passes >= FEWEST_PASSES and not loss < last - self.tol * abs(last)
                if passes == self.max_iter or (self.max_iter < 0 and settled):
                    return self._keep_stream(X, monitor, "seen")
                last = loss

    def _stated(self, X: Any, y: Any, weights: Vector) -> tuple[Batch | None, Matrix, Vector]:
        """The distinct points where they are shuffled, targets (k, n), and the lengths (n,) of their steps."""
        fresh = self._fresh
        kept = np.flatnonzero(weights)
        if fresh:
            self._first(None if y is None else np.asarray(y)[kept], None)
        if not self.shuffle:
            if fresh:
                self._begin(X, kept, weights[kept])
            return None, *self._coded(y, weights)
        targets, costs = self._coded(y, np.sign(weights))
        batch = Batch.of(X, targets.T if self._supervised else None, weights)
        if fresh:
            self._begin(X, batch.rows, batch.weights)
        return batch, targets, costs * batch.lengths(len(weights))

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Self:
        """Learn the points X after all those before."""
        X, y, weights = self._checked_stream(X, y, sample_weight)
        if self._fresh:
            kept = np.flatnonzero(weights)
            self._first(None if y is None else np.asarray(y)[kept], classes)
            self._begin(X, kept, weights[kept])
        targets, weights = self._coded(y, weights)
        with self._watched(X, y) as monitor:
            ended = self._learner().learn(X, targets, weights, monitor)
            return self._keep_stream(X, monitor, "seen" if ended else monitor.stopped or "interrupted")

    @property
    def _fresh(self) -> bool:
        """Whether no point was seen yet."""
        return "shape_fit_" not in vars(self) and "_stream" not in vars(self)

    def _checked_stream(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Vector]:
        """Points, targets and weights (n,), none of them negative."""
        kind = kind_of(self.kernel, X) if self._fresh else self._kind
        if kind in ("precomputed", "function"):
            raise InvalidInput(
                "kernel: a stream needs kernel values with points to come: give one of mercer's kernels, or wrap a "
                "function of two points in mercer.Custom"
            )
        self._kind = kind
        if kind == "objects":
            X = list(X)
            if self._supervised:
                check_consistent_length(X, y)
        else:
            options = {"dtype": np.float64, "order": "C", "accept_sparse": "csr", "accept_large_sparse": True}
            wanted = {"y": y, "y_numeric": is_regressor(self)} if self._supervised else {}
            found = validate_data(self, X, **wanted, **options, reset=self._fresh)
            X, y = found if self._supervised else (found, None)
        weights = sample_weights(sample_weight, X)
        if weights is None:
            return X, y, np.ones(len(X) if isinstance(X, list) else X.shape[0])
        refuse_negative(weights)
        return X, y, weights

    def _begin(self, X: Any, kept: Index, counted: Vector) -> None:
        """Settle kernel and sizes by the rows `kept` of the first points, of weights `counted`."""
        alike = len(counted) == 0 or counted.min() == counted.max()
        self.kernel_ = self._resolved(self._kind, points_at(self._kind, X, kept), None if alike else counted)
        self._stream: Stream = self._made(1 if isinstance(X, list) else X.shape[1])

    def _made(self, d: int) -> Stream:
        """A stream that has seen nothing, for points of d numbers."""
        rule, nu, biased, width = self._rule()
        terms, rows = room(self.budget, d, self._resources().budget)
        schedule = Schedule(self.schedule, float(self.rate), float(self.regularisation))
        dtype = np.float32 if self.precision == "float32" else np.float64
        return Stream(
            self.kernel_, rule, schedule, self._outputs(), terms,
            nu=nu, biased=biased, width=np.array([width]), dtype=dtype, block=rows,
        )  # fmt: skip

    def _learner(self) -> Stream:
        """The stream, made again from what a model file holds where that is where the machine comes from."""
        if "_stream" not in vars(self):
            stream = self._made(1 if self._kind == "objects" else self.shape_fit_[1])
            stream.points, stream.numbers, stream.seen = self.support_vectors_, self.support_, self.shape_fit_[0]
            stream.coefficients, stream.bias, stream.width = self._dual_coef_, self._bias, self._width
            stream.births, stream.lengths = self._births, self._lengths
            stream.totals, stream.clock, stream.radius = self._totals, self._clock, self._radius
            self._stream = stream
        return self._stream

    # What a fit leaves behind --------------------------------------------------------------------------------------

    def _keep_stream(self, X: Any, monitor: Monitor, stopped: Stopped) -> Self:
        """Publish the expansion and what is known about it."""
        stream = self._stream
        if not (np.isfinite(stream.coefficients).all() and np.isfinite(stream.bias).all()):
            raise InvalidInput(NOT_FINITE)
        self.approximation_ = self.feature_map_ = self._points = None
        self.approximation_reason_ = EXACT
        self.shape_fit_ = (stream.seen,) if isinstance(X, list) else (stream.seen, int(X.shape[1]))
        self.support_, self.support_vectors_ = stream.numbers, stream.points
        self._bias, self._width = stream.bias.copy(), stream.width.copy()
        self._births, self._lengths = stream.births, stream.lengths
        self._totals, self._clock, self._radius = stream.totals.copy(), stream.clock.copy(), stream.radius
        self._show(stream.coefficients, self._intercepts(stream))
        self.progressive_loss_, self.mistakes_ = stream.mean_loss, stream.mistakes
        self.truncation_error_, self.truncation_bound_ = stream.truncation_error, stream.truncation_bound
        nan = math.nan
        self.objective_ = self.dual_objective_ = self.gap_ = nan
        self.n_iter_, self.stopped_, self.history_ = stream.steps, stopped, tuple(monitor.history)
        self.solution_ = Solution(
            stream.coefficients.T, stream.bias.copy(), stream.coefficients.T, nan, nan, nan, stream.steps, stopped,
            monitor.seconds, "online", history=self.history_,
        )  # fmt: skip
        self.solver_ = f"online: each point is seen once, and the newest {stream.budget} terms are kept"
        self.plan_ = self._planned(stream)
        return self

    def _planned(self, stream: Stream) -> FitPlan:
        resources, terms = self._resources(), len(stream.numbers)
        own = Resources(resources.memory, np.dtype(stream.dtype).name, threads=resources.threads)
        plan = FitPlan.of(self.solver_, stream.outputs, EXACT, own, None)
        values = show(stream.block * (stream.budget + stream.block) * np.dtype(stream.dtype).itemsize)
        storage = (
            f"no kernel matrix: {terms} of at most {stream.budget} terms, and the values of {stream.block} points at a "
            f"time with them, {values}"
        )
        return FitPlan(**{**vars(plan), "storage": storage})

    def _state(self) -> State:
        terms, outputs = Values(("terms",)), Values(("outputs",))
        return {
            "_births": terms, "_lengths": terms, "_bias": outputs, "_width": outputs, "_radius": Number(),
            "_totals": Values(("outputs", 4)), "_clock": Values((4,)),
            "progressive_loss_": Number(), "mistakes_": Number(),
            "truncation_error_": Number(), "truncation_bound_": Number(),
        }  # fmt: skip

    def _expansion_shape(self, outputs: int) -> tuple[int, int]:
        return outputs, outputs
