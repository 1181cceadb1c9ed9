"""What the machines share that only separate the classes: the perceptron and the Bayes point.

They look for some f with y_i f(x_i) > 0, or for the middle of all of them, not for the optimum of an objective: there
is no dual, and `objective_`, `dual_objective_` and `gap_` are nan.  Two classes are one function, k > 2 classes are k
of them, one class against the rest.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets

from mercer.errors import InvalidInput
from mercer.gram import GramOperator
from mercer.machine import arguments
from mercer.machine.arguments import class_weights, classes_of, kind_of, point_weights, sample_weights
from mercer.machine.base import KernelMachine, Matrix, Vector
from mercer.machine.fitted_state import Labels, State, Values
from mercer.machine.outcome import FitPlan, warn_if_stopped
from mercer.machine.training_set import TrainingSet
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution, Stopped


@dataclass(kw_only=True, eq=False, repr=False)
class Separator(ClassifierMixin, KernelMachine):  # type: ignore[misc]  # scikit-learn is untyped
    """Base of the machines; see `KernelPerceptron` for the meaning of the parameters."""

    class_weight: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelMachine._parameter_constraints,
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    _reason: ClassVar[str]
    """Name of the method, and what it does."""

    def _separate(
        self, gram: GramOperator, y: Vector, weights: Vector, random: np.random.Generator, monitor: Monitor
    ) -> tuple[Vector, int, Stopped]:
        """Coefficients (n,) of a function that separates labels y (n,), their sum being the bias; updates; outcome."""
        raise NotImplementedError

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Train on points X (n, d), dense or CSR, and labels y (n,); points of weight zero are left out."""
        kind = kind_of(self.kernel, X)
        X, y = arguments.training_data(self, kind, X, y)
        check_classification_targets(y)
        weights = sample_weights(sample_weight, X)
        self.classes_, codes = classes_of(y, weights)
        k = len(self.classes_)
        if k < 2:
            raise InvalidInput(f"The number of classes has to be greater than one; got {k} class")
        with self._watched(X, y) as monitor:
            positive = np.arange(1, 2) if k == 2 else np.arange(k)
            signs = np.where(codes[:, None] == positive, 1.0, -1.0)
            training, weights = self._training_set(kind, X, weights, codes, signs, largest=1.0)
            if training.kept is not None:
                codes, y, signs = codes[training.kept], y[training.kept], signs[training.kept]
            self.class_weight_ = class_weights(self.class_weight, self.classes_, y, weights)
            sizes = point_weights(weights, self.class_weight_, codes)
            sizes = np.ones(training.n) if sizes is None else sizes
            seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
            found = []
            for column in signs.T:
                random = np.random.default_rng(seed)
                began = monitor.seconds
                answer = self._separate(training.gram(), np.ascontiguousarray(column), sizes, random, monitor)
                found.append(self._solution(*answer, monitor.seconds - began))
            self._finish(training, X, codes, found, monitor)
        return self

    def _solution(self, c: Vector, updates: int, stopped: Stopped, seconds: float) -> Solution:
        nan = math.nan
        name = self._reason.partition(":")[0]
        return Solution(c, float(c.sum()), c, nan, nan, nan, updates, stopped, seconds, name)

    def _finish(
        self, training: TrainingSet, X: Any, codes: NDArray[np.intp], found: list[Solution], monitor: Monitor
    ) -> None:
        """Store the functions and how they were found."""
        C = np.stack([solution.coefficients for solution in found])
        support = np.flatnonzero(C.any(axis=0))
        counts = np.bincount(codes[support], minlength=len(self.classes_))
        self._keep(training, X, support, np.ascontiguousarray(C[:, support]), C.sum(axis=1), counts)
        self.objective_ = self.dual_objective_ = self.gap_ = math.nan
        single = len(found) == 1
        self.n_iter_ = found[0].iterations if single else np.array([s.iterations for s in found], dtype=np.int32)
        self.solution_, self.history_ = found[0] if single else found, tuple(monitor.history)
        self.solver_ = self._reason
        self.plan_ = FitPlan.of(
            self.solver_, len(found), self.approximation_reason_, training.resources, vars(training).get("whole")
        )
        self.stopped_ = warn_if_stopped(found, self.max_iter, self.max_time)

    def _state(self) -> State:
        return {"classes_": Labels(), "class_weight_": Values(("classes",))}

    def _expansion_shape(self, outputs: int) -> tuple[int, int]:
        k = len(self.classes_)
        return (1, 1) if k == 2 else (k, k)

    def decision_function(self, X: Any) -> Matrix:
        """Outputs (n,) for two classes, positive for classes_[1]; (n, k) for more."""
        values = self._values(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels (n,)."""
        values = self._values(X)
        codes = (values[:, 0] > 0.0).astype(np.intp) if values.shape[1] == 1 else np.argmax(values, axis=1)
        return np.asarray(self.classes_[codes])
