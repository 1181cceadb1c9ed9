"""What the machines with one problem for all classes share: from data to k functions and back to labels.

Every machine is f_m(x) = sum_v c_vm k(x, v) + b_m over its support vectors v, one function for each class, and predicts
the class of the largest.  On the linear kernel, and on the features of an approximation, the weight vectors are trained
directly where that is cheaper than going through the kernel matrix.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.gram import Gram, GramOperator
from mercer.machine import arguments
from mercer.machine.arguments import classes_of, is_linear, kind_of, sample_weights, with_class_weights
from mercer.machine.base import Index, KernelMachine
from mercer.machine.fitted_state import Labels, State, Values
from mercer.machine.training_set import TrainingSet
from mercer.resources import Resources
from mercer.selection.bounds.multiclass import one_versus_all
from mercer.solvers.multiclass import decomposition
from mercer.solvers.multiclass import linear as multiclass_linear
from mercer.solvers.solution import Solution

Array = NDArray[np.float64]

TIE = 1e-12  # outputs that differ by less, in units of the largest of them, are equal up to rounding


@dataclass(kw_only=True, eq=False, repr=False)
class ClassMachine(ClassifierMixin, KernelMachine):  # type: ignore[misc]  # scikit-learn is untyped
    """Base of the machines; see `CrammerSingerSVC` for the meaning of the parameters."""

    _problem: ClassVar[Callable[..., Any]]  # from an operator, classes, C, weights and the kind of bias
    _solve: ClassVar[Callable[..., Solution]] = staticmethod(decomposition.solve)  # it on a kernel matrix

    C: float = field(default=1.0, kw_only=False)
    bias: str = "free"
    class_weight: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "bias": [StrOptions({"free", "none", "penalised"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    # Training --------------------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Train on points X (n, d), dense or CSR, and labels y (n,); `sample_weight` (n,) multiplies C."""
        kind = kind_of(self.kernel, X)
        X, y = arguments.training_data(self, kind, X, y)
        check_classification_targets(y)
        weights = sample_weights(sample_weight, X)
        self.classes_, codes = classes_of(y, weights)
        k = len(self.classes_)
        if k < 2:
            raise InvalidInput(f"The number of classes has to be greater than one; got {k} class")
        with self._watched(X, y) as monitor:
            # The solvers compute outputs again in float64: C need not decide about the precision of the values.
            targets = None if self.approximation is None else one_versus_all(k)[codes]
            training, weights = self._training_set(kind, X, weights, codes, targets, largest=0.0)
            if training.kept is not None:
                codes, y = codes[training.kept], y[training.kept]
            self.class_weight_, weights = with_class_weights(self.class_weight, self.classes_, y, codes, weights)
            gram, solve = self._choice(training)
            solution = solve(
                self._problem(gram, codes, self.C, weights, self.bias, k=k),
                tol=self.tol,
                max_iter=self.max_iter,
                monitor=monitor,
                start=self._start(len(codes), k),
            )
        self._finish(X, training, codes, gram, solution)
        return self

    def _resources(self) -> Resources:
        """Weight vectors are trained in float64, and so the features of a low-rank kernel are held in it."""
        found = super()._resources()
        exact = self.approximation is not None and self.precision == "auto"
        return Resources(found.memory, "float64", threads=found.threads) if exact else found

    def _choice(self, training: TrainingSet) -> tuple[GramOperator, Callable[..., Solution]]:
        """The operator and the solver: on the weight vectors or on the kernel matrix, whichever is cheaper."""
        if training.kind == "features" and is_linear(training.kernel) and _entries(training.points) <= training.n:
            precision = "float32" if self.precision == "float32" else "float64"
            gram = Gram(
                training.kernel,
                training.points,
                storage="streamed",
                memory=training.resources.memory,
                precision=precision,
            )
            return gram, multiclass_linear.solve
        return training.whole, self._solve

    def _start(self, n: int, k: int) -> Any:
        """The variables (n, k) of the last fit, where they fit this one."""
        found: Any = getattr(self, "solution_", None) if self.warm_start else None
        return None if found is None or found.variables.shape != (n, k) else found.variables

    def _finish(self, X: Any, training: TrainingSet, codes: Index, gram: GramOperator, solution: Solution) -> None:
        """Store the machine, its certificate and what stopped it."""
        c, doubt = solution.coefficients, training.doubt(self.bias)
        if doubt is not None and not np.isfinite(c).all():
            raise NotPositiveDefinite(f"the problem has no solution, because {doubt}")
        support = np.flatnonzero(c.any(axis=1))
        counts = np.bincount(codes[support], minlength=len(self.classes_))
        # Vectors (k, d) of a linear kernel that the solver has found.
        self._weights: Array | None = None if training.reduction is not None else solution.details.get("weights")
        self._keep(training, X, support, np.ascontiguousarray(c[support].T), np.asarray(solution.bias), counts)
        on_weights = solution.solver.endswith("linear")
        reason = "a weight vector for each class costs less than the kernel matrix" if on_weights else "any kernel"
        self._certify([solution], doubt, reason, gram, training.resources)

    def _state(self) -> State:
        weights = Values(("classes", "features"), optional=True)
        return {"classes_": Labels(), "class_weight_": Values(("classes",)), "_weights": weights}

    def _expansion_shape(self, outputs: int) -> tuple[int, int]:
        return len(self.classes_), len(self.classes_)

    # Prediction ------------------------------------------------------------------------------------------------

    def _values_at(self, X: Any) -> Array:
        """Outputs (m, k) at points that have been checked."""
        return super()._values_at(X) if self._weights is None else np.asarray(X @ self._weights.T + self.intercept_)

    def _weight_vectors(self) -> Array:
        return np.asarray(self.dual_coef_ @ self.support_vectors_) if self._weights is None else self._weights

    def decision_function(self, X: Any) -> Array:
        """Outputs (n, k); for two classes their difference (n,), positive for classes_[1]."""
        values = self._values(X)
        return values[:, 1] - values[:, 0] if values.shape[1] == 2 else values

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels (n,): the class of the largest output, the first of those that are equal up to rounding."""
        winners = _first_largest(self._values(X))
        return np.asarray(self.classes_[winners])


def _first_largest(values: Array) -> NDArray[np.intp]:
    """First column (n,) that comes within rounding of the largest value of each row (n, k).

    The coefficients of a point that two classes share make them tie exactly, and a product of a part of the points
    rounds otherwise than that of all of them: the plain maximum would depend on what else is predicted.
    """
    largest = np.max(values, axis=1, keepdims=True)
    rounding = TIE * np.max(np.abs(values), axis=1, keepdims=True)
    return np.asarray(np.argmax(values >= largest - rounding, axis=1))


def _entries(points: Any) -> float:
    """Mean number of entries of a point."""
    return float(points.nnz / max(1, points.shape[0])) if sp.issparse(points) else float(points.shape[1])
