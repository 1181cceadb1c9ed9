"""What the machines of one latent function share: from ranks to f(x) = sum_v c_v k(x, v), and its thresholds.

The problems are stated in `mercer.problems.ranking`, `rank_thresholds` and `cumulative`; one Newton's method solves all
(`mercer.solvers.ordinal.newton`), and orders from pairs have two solvers more (`one_slack`, `pairs`).
"""

from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.gram import Gram, GramOperator
from mercer.machine import arguments
from mercer.machine.arguments import classes_of, is_linear, kind_of, sample_weights, with_class_weights
from mercer.machine.base import Index, KernelMachine, Vector
from mercer.machine.fitted_state import Labels, State, Values
from mercer.machine.training_set import TrainingSet
from mercer.problems.latent import LatentProblem
from mercer.problems.normed_pairs import NormedPairs
from mercer.resources import Resources
from mercer.solvers.ordinal import newton, one_slack, pairs
from mercer.solvers.solution import Solution

SOLVERS: dict[str, Any] = {"newton": newton, "one_slack": one_slack, "working_sets": pairs}
REASONS = {
    newton.NAME: "a product with the kernel matrix and a pass over the sorted points for each step",
    one_slack.NAME: "a product with the kernel matrix and a pass over the sorted points for each plane",
    pairs.NAME: "a variable for each pair, a set of points at a time",
}


@dataclass(kw_only=True, eq=False, repr=False)
class LatentMachine(KernelMachine):
    """Base of the machines; see `RankSVM` for the meaning of the parameters."""

    C: float = field(default=1.0, kw_only=False)

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="neither")],
    }

    def _resources(self) -> Resources:
        """Features of a low-rank kernel are held in float64: the certificate is that of their problem."""
        found = super()._resources()
        exact = self.approximation is not None and self.precision == "auto"
        return Resources(found.memory, "float64", threads=found.threads) if exact else found

    def _operator(self, training: TrainingSet) -> GramOperator:
        """Products alone are needed: by the points for a linear kernel, else held where the matrix fits."""
        if training.kind not in ("features", "objects") or training.reduction is not None:
            return training.whole
        memory, precision = training.resources.memory, training.resources.precision
        if is_linear(training.kernel) and np.shape(training.points)[-1] < training.n:
            exact = "float32" if self.precision == "float32" else "float64"
            return Gram(training.kernel, training.points, memory=memory, precision=exact, storage="lowrank")
        return Gram(training.kernel, training.points, memory=memory, precision=precision)

    def _solver(self) -> Any:
        """The module that solves the problem of the machine."""
        return newton

    def _solved(self, problem: LatentProblem | NormedPairs, monitor: Any) -> Solution:
        found: Any = getattr(self, "solution_", None) if self.warm_start else None
        start = None if found is None or found.variables.shape != (problem.n,) else found
        found = self._solver().solve(problem, tol=self.tol, max_iter=self.max_iter, monitor=monitor, start=start)
        assert isinstance(found, Solution)
        return found

    def _finish(
        self, X: Any, training: TrainingSet, gram: GramOperator, solution: Solution, codes: Index | None = None
    ) -> None:
        """Store the machine, its certificate and what stopped it; `codes` are the classes of the points."""
        c, doubt = solution.coefficients, training.doubt("none" if codes is None else "free")
        if doubt is not None and not np.isfinite(c).all():
            raise NotPositiveDefinite(f"the problem has no solution, because {doubt}")
        support = np.flatnonzero(c)
        counts = [len(support)] if codes is None else np.bincount(codes[support], minlength=int(codes.max()) + 1)
        self._keep(training, X, support, c[support][None, :], np.zeros(1), np.asarray(counts))
        self._certify([solution], doubt, REASONS[solution.solver], gram, training.resources)

    def utility(self, X: Any) -> Vector:
        """Values (n,) of the latent function: the higher, the better."""
        check_is_fitted(self)
        return np.asarray(self._values(X))[:, 0]


@dataclass(kw_only=True, eq=False, repr=False)
class RankClassifier(ClassifierMixin, LatentMachine):  # type: ignore[misc]  # scikit-learn is untyped
    """Base of the machines that answer with a rank: a latent function and thresholds between the ranks."""

    class_weight: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LatentMachine._parameter_constraints,
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    def _problem(self, gram: GramOperator, codes: Index, weights: Vector | None) -> LatentProblem:
        """The problem of the machine."""
        raise NotImplementedError

    def _thresholds(self, solution: Solution, codes: Index, weights: Vector | None) -> Vector:
        """Thresholds (k - 1,) of a solved problem."""
        return np.asarray(solution.multipliers["thresholds"])

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Train on points X (n, d), dense or CSR, and ranks y (n,) in their own order; `sample_weight` multiplies C."""
        kind = kind_of(self.kernel, X)
        X, y = arguments.training_data(self, kind, X, y)
        check_classification_targets(y)
        weights = sample_weights(sample_weight, X)
        self.classes_, codes = classes_of(y, weights)
        if len(self.classes_) < 2:
            raise InvalidInput("The number of classes has to be greater than one; got 1 class")
        with self._watched(X, y) as monitor:
            targets = None if self.approximation is None else codes.astype(np.float64)
            training, weights = self._training_set(kind, X, weights, codes, targets, largest=0.0)
            if training.kept is not None:
                codes, y = codes[training.kept], y[training.kept]
            self.class_weight_, weights = with_class_weights(self.class_weight, self.classes_, y, codes, weights)
            gram = self._operator(training)
            solution = self._solved(self._problem(gram, codes, weights), monitor)
        self._finish(X, training, gram, solution, codes)
        self.thresholds_ = self._thresholds(solution, codes, weights)
        return self

    def _state(self) -> State:
        return {"classes_": Labels(), "class_weight_": Values(("classes",)), "thresholds_": Values(("boundaries",))}

    def predict(self, X: Any) -> NDArray[Any]:
        """Ranks (n,): the class of the largest decision value."""
        check_is_fitted(self)
        return np.asarray(self.classes_[self.decided(self.decision_function(X))])

    @staticmethod
    def decided(values: NDArray[np.float64]) -> Index:
        """Numbers (n,) of the ranks that decision values (n, k) or (n,) stand for."""
        return (values > 0.0).astype(np.intp) if values.ndim == 1 else np.argmax(values, axis=1)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """A number for each rank (n, k), the largest that of the answer; for two ranks their difference (n,)."""
        return self._decisions(self.utility(X))

    def _decisions(self, f: Vector) -> NDArray[np.float64]:
        """The same at latent values f (n,)."""
        raise NotImplementedError
