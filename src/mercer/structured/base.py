"""What the structured machines share: have a model look at the data, solve, keep w and its certificate."""

import os
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, _fit_context
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from mercer import threads
from mercer.errors import InvalidInput
from mercer.machine.callbacks import watching
from mercer.machine.fitted_state import State
from mercer.machine.outcome import FitPlan, warn_if_stopped
from mercer.problems.structured import Rescaling, StructuredProblem, Vector
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution
from mercer.structured.model import StructuredModel
from mercer.structured.multiclass import Multiclass

SECONDS = 60.0  # between two checkpoints


@dataclass(kw_only=True, eq=False, repr=False)
class StructuredMachine(CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Base of the machines; see `StructuredSVM` for the meaning of the parameters."""

    model: Any = field(default=None, kw_only=False)
    max_iter: int = -1
    max_time: float | None = None
    warm_start: bool = False
    checkpoint: Any = None
    verbose: bool | int = False
    random_state: Any = None
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "model": [StructuredModel, None],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "max_time": [Interval(Real, 0.0, None, closed="neither"), None],
        "warm_start": ["boolean"],
        "checkpoint": [str, os.PathLike, None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __sklearn_tags__(self) -> Any:
        """Inputs are what the model says, no table of numbers, and it is the model that checks them."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.no_validation, tags.target_tags.required = False, True, True
        return tags

    def _problem(self, model: StructuredModel, X: Any, Y: Any, weights: Vector | None) -> StructuredProblem:
        """The problem of the machine."""
        raise NotImplementedError

    def _solve(self, problem: StructuredProblem, start: Solution | None, seed: int, monitor: Monitor) -> Solution:
        """Have it solved, and set `solver_`."""
        raise NotImplementedError

    def _continues(self, problem: StructuredProblem, solution: Solution) -> bool:
        """Whether an earlier solution is one of this problem by the present solver."""
        raise NotImplementedError

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> Self:
        """Train on inputs X and their structures Y, as the model takes them; `sample_weight` (n,) multiplies C."""
        earlier: Solution | None = getattr(self, "solution_", None) if self.warm_start else None
        model = (Multiclass() if self.model is None else self.model).prepared(X, Y)
        inputs, structures = model.check(X, Y)
        if len(inputs) == 0:
            raise InvalidInput("X has no inputs; a machine needs at least one")
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        with threads.limit(self.n_jobs), watching(self, X, Y, self.max_time) as monitor:
            if self.checkpoint is not None:
                monitor.checkpoint(self.checkpoint, SECONDS)
            problem = self._problem(model, inputs, structures, weights)
            seed = int(check_random_state(self.random_state).randint(1 << 31))
            start = earlier if earlier is not None and self._continues(problem, earlier) else None
            solution = self._solve(problem, start, seed, monitor)
        self.model_ = model
        self._keep(solution)
        return self

    def _keep(self, solution: Solution) -> None:
        """Store w, its certificate and what stopped it."""
        if not np.isfinite(solution.coefficients).all():
            raise InvalidInput("the weights are not finite: scale the joint features or lower C")
        self.coef_, self.solution_, self.history_ = solution.coefficients, solution, solution.history
        self.objective_, self.dual_objective_, self.gap_ = solution.primal, solution.dual, solution.gap
        self.n_iter_ = solution.iterations
        self.plan_ = FitPlan(
            self.solver_, 1, f"the joint features of the model {self.model_.name!r}", "that of the solver's state",
            "float64", "cpu", f"{len(self.coef_)} weights",
        )  # fmt: skip
        self.stopped_ = solution.stopped
        warn_if_stopped([solution], self.max_iter, self.max_time)

    def _state(self) -> State:
        """What the machine consists of beside its parameters, its weights, its model and its certificate."""
        return {}

    def predict(self, X: Any) -> list[Any]:
        """The best structures of inputs X, as the model states them."""
        check_is_fitted(self)
        inputs, _ = self.model_.check(X)
        with threads.limit(self.n_jobs):
            return [self.model_.decoded(y) for y in self.model_.predict(self.coef_, inputs)]

    def score(self, X: Any, Y: Any) -> float:
        """1 - sum of losses / sum of the largest losses; for chains with Hamming loss the share of right labels."""
        check_is_fitted(self)
        inputs, structures = self.model_.check(X, Y)
        with threads.limit(self.n_jobs):
            return float(self.model_.score(structures, self.model_.predict(self.coef_, inputs)))


def stated(model: StructuredModel, X: Any, Y: Any, rescaling: Rescaling, C: float, weights: Any) -> StructuredProblem:
    """The problem of checked data."""
    return StructuredProblem(model.examples(X, Y, rescaling), C, weights)
