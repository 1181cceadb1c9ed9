"""What classifiers share whose functions do not depend on each other: one for two classes, else one for each class.

Two classes are one function, positive for the second; k > 2 classes are k functions, each one class against the rest,
and the largest decides.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets

from mercer.errors import InvalidInput
from mercer.machine import arguments
from mercer.machine.arguments import classes_of, kind_of, sample_weights, with_class_weights
from mercer.machine.base import KernelMachine, Matrix, Vector
from mercer.machine.fitted_state import Labels, State, Values
from mercer.machine.training_set import TrainingSet
from mercer.solvers.monitor import Monitor


@dataclass(kw_only=True, eq=False, repr=False)
class OneVersusAllMachine(ClassifierMixin, KernelMachine):  # type: ignore[misc]  # scikit-learn is untyped
    """Base of the classifiers; how the functions are found is theirs to say."""

    class_weight: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelMachine._parameter_constraints,
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    def _largest(self) -> float:
        """The largest that a coefficient may be, by which the precision of kernel values is chosen."""
        return 1.0

    def _learn(
        self, training: TrainingSet, X: Any, codes: NDArray[np.intp], signs: Matrix, weights: Vector | None,
        monitor: Monitor,
    ) -> None:  # fmt: skip
        """Find and keep the functions of targets `signs` (n, 1 or k) of +-1, `codes` (n,) being the classes."""
        raise NotImplementedError

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on points X (n, d), dense or CSR, and labels y (n,); points of `sample_weight` zero are left out."""
        kind = kind_of(self.kernel, X)
        X, y = arguments.training_data(self, kind, X, y)
        check_classification_targets(y)
        weights = sample_weights(sample_weight, X)
        self.classes_, codes = classes_of(y, weights)
        k = len(self.classes_)
        if k < 2:
            raise InvalidInput(f"The number of classes has to be greater than one; got {k} class")
        with self._watched(X, y) as monitor:
            signs = np.where(codes[:, None] == (np.arange(1, 2) if k == 2 else np.arange(k)), 1.0, -1.0)
            training, weights = self._training_set(kind, X, weights, codes, signs, largest=self._largest())
            if training.kept is not None:
                codes, y, signs = codes[training.kept], y[training.kept], signs[training.kept]
            self.class_weight_, weights = with_class_weights(self.class_weight, self.classes_, y, codes, weights)
            self._learn(training, X, codes, signs, weights, monitor)
        return self

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
