"""From the values of binary machines to decision values, labels and probabilities of k classes.

k > 2 classes have k(k-1)/2 machines, one for each pair ("ovo", as in scikit-learn), or k machines, one class against
the rest ("ovr").  Inside, the first class of a pair is the positive one, as in LIBSVM; what a user sees of two classes
has the opposite sign, so that a positive decision value means classes_[1], as in scikit-learn.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput
from mercer.machine import pairwise, probability
from mercer.machine.fitted_state import Labels, State, Values
from mercer.svm.base import SupportVectorMachine

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Index = NDArray[np.intp]
Counts = NDArray[np.int32]

HELD_VALUES = 1 << 20  # kernel values, or outputs of machines with what is made of them, in float64 at a time
OUTPUT_COPIES = 8  # arrays as large as the outputs of all pairs that coupling them takes


def offers_probability(estimator: Any) -> bool:
    """Whether an estimator has `predict_proba`, as scikit-learn's `available_if` asks."""
    if not estimator.probability:
        raise AttributeError("predict_proba is not available when probability=False")
    return True


class Decisions(ClassifierMixin, SupportVectorMachine):  # type: ignore[misc]  # scikit-learn is untyped
    """Binary machines for k classes, as they are after the fit."""

    probability: bool
    decision_function_shape: str
    break_ties: bool
    multiclass: str
    classes_: NDArray[Any]

    _probA: Vector
    _probB: Vector

    @property
    def _paired(self) -> bool:
        """Whether there is a machine for each of three or more pairs."""
        return self.multiclass == "ovo" and len(self.classes_) > 2

    @property
    def _machines(self) -> int:
        """How many binary machines there are."""
        k = len(self.classes_)
        return 1 if k == 2 else k * (k - 1) // 2 if self._paired else k

    def _state(self) -> State:
        sigmoids = Values(("outputs",), perhaps_empty=True)
        return {"classes_": Labels(), "class_weight_": Values(("classes",)), "_probA": sigmoids, "_probB": sigmoids}

    def _expansion_shape(self, outputs: int) -> tuple[int, int]:
        rows = len(self.classes_) - 1 if self._paired and self.approximation_ is None else self._machines
        return rows, self._machines

    def _public(self, dual: Matrix, intercept: Vector) -> tuple[Any, Vector]:
        # For two classes the public ones have the opposite sign, as in scikit-learn.
        return super()._public(-dual, -intercept + 0.0) if len(self.classes_) == 2 else super()._public(dual, intercept)

    @property
    def basis_coef_(self) -> Matrix:
        """Coefficients of the basis functions, (q,) for two classes and (q, machines) for more."""
        return -super().basis_coef_ + 0.0 if len(self.classes_) == 2 else super().basis_coef_

    # The values of the machines --------------------------------------------------------------------------------

    def _split(self, dual: Matrix, counts: NDArray[np.integer[Any]]) -> tuple[list[slice], list[Matrix]]:
        """Blocks of support vectors with their coefficients: one for each class when there are pairs, else one."""
        if not self._paired:
            return [slice(0, dual.shape[1])], [dual.T]
        blocks = pairwise.blocks_of(counts)
        return blocks, [dual[:, block].T for block in blocks]

    def _operands(self) -> tuple[list[slice], list[Matrix]]:
        if self.approximation_ is not None:
            return super()._operands()
        if self._n_support.sum() != self._dual_coef_.shape[1]:
            raise InvalidInput(f"The internal representation of {type(self).__name__} was altered")
        if self._trained is not None:
            return self._split(self._trained.dual, self._trained.counts)
        return self._split(self._dual_coef_, self._n_support)

    def _combine(self, products: list[Matrix], intercept: Vector) -> Matrix:
        return super()._combine(products, intercept) if len(products) == 1 else pairwise.gather(products, intercept)

    def _in_pieces(self, X: Any, read: Callable[[Matrix], NDArray[Any]]) -> NDArray[Any]:
        """What `read` makes of the decision values (n, machines), for some points at a time.

        The values of all pairs of many classes take far more memory than what is made of them.
        """
        X = self._checked(X)
        n = len(X) if isinstance(X, list) else X.shape[0]
        step = max(1, HELD_VALUES // (OUTPUT_COPIES * max(1, len(self._intercept_))))
        if n <= step:
            return read(self._values_at(X))
        parts = [slice(start, start + step) for start in range(0, n, step)]
        return np.concatenate([read(self._values_at(X[part])) for part in parts])

    # What is made of them --------------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels (n,): by the sign for two classes, by most votes of the pairs, or by the largest value."""
        if self.break_ties and self.decision_function_shape == "ovo":
            raise InvalidInput("break_ties must be False when decision_function_shape is 'ovo'")
        codes = self._in_pieces(X, self._decide)
        return np.asarray(self.classes_[codes])

    def decision_function(self, X: Any) -> Matrix:
        """Decision values at X.

        (n,) for two classes, positive for classes_[1].  For the pairs of k > 2 classes (n, k(k-1)/2), positive for the
        first class of the pair, when decision_function_shape is "ovo"; (n, k), the votes plus a share of the summed
        values, when it is "ovr".  (n, k) for one machine per class.  A pair value of exactly 0 is a vote for the first
        class of the pair here and for the second in `predict`: scikit-learn and LIBSVM, whose votes these are, differ.
        """
        check_is_fitted(self)
        k = len(self.classes_)
        if k > 2 and self._paired and self.decision_function_shape == "ovr":
            return self._in_pieces(X, lambda values: _ovr_decision_function(values < 0, -values, k))
        values = self._values(X)
        return -values[:, 0] if k == 2 else values

    def _decide(self, values: Matrix) -> Index:
        """Class 0..k-1 (n,) for decision values (n, machines)."""
        k = len(self.classes_)
        if k == 2:
            return np.asarray(values[:, 0] <= 0.0, dtype=np.intp)
        if not self._paired:
            return np.asarray(values.argmax(axis=1))
        if self.break_ties:
            return np.asarray(_ovr_decision_function(values < 0, -values, k).argmax(axis=1))
        return pairwise.vote(values, k)

    def decided(self, decision: Matrix) -> Index:
        """Class 0..k-1 (n,) that `predict` gives where `decision_function` gave these values."""
        if decision.ndim == 1:
            return self._decide(-decision[:, None])
        if not self._paired or self.break_ties:
            return np.asarray(decision.argmax(axis=1))
        if self.decision_function_shape == "ovr":
            return np.asarray(np.rint(decision).argmax(axis=1))  # the votes alone, without the share of the values
        return self._decide(decision)

    @available_if(offers_probability)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def predict_proba(self, X: Any) -> Matrix:
        """Class probabilities (n, k), from Platt's sigmoid of each machine, coupled over pairs.

        The class that `predict` returns is the most probable one in every row: where the calibrated probabilities say
        otherwise, it and the classes above it are given equal shares (see `mercer.machine.probability.agree`).
        """
        check_is_fitted(self)
        if self._probA.size == 0:
            raise NotFittedError("predict_proba is not available when fitted with probability=False")
        return self._in_pieces(X, self._probabilities)

    @available_if(offers_probability)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def predict_log_proba(self, X: Any) -> Matrix:
        """Logarithms of the class probabilities (n, k)."""
        return np.asarray(np.log(self.predict_proba(X)))

    def _probabilities(self, values: Matrix) -> Matrix:
        """Class probabilities (n, k) for decision values (n, machines)."""
        wins = probability.sigmoid(values, self._probA, self._probB)
        k = len(self.classes_)
        if self._paired or k == 2:
            p = probability.couple(wins, k)
        else:
            total = wins.sum(axis=1, keepdims=True)
            p = np.divide(wins, total, out=np.full_like(wins, 1.0 / k), where=total > 0.0)
        return probability.agree(p, self._decide(values))

    @property
    def probA_(self) -> Vector:
        """Slopes A of the sigmoids 1 / (1 + exp(A f + B)), one for each machine; empty without `probability`."""
        return self._probA

    @property
    def probB_(self) -> Vector:
        """Offsets B of the sigmoids, one for each machine; empty without `probability`."""
        return self._probB

    # Weight vectors of a linear kernel -------------------------------------------------------------------------

    def _weights_on(self, vectors: Matrix, dual: Matrix, counts: NDArray[np.integer[Any]]) -> Matrix:
        if not self._paired:
            return super()._weights_on(vectors, dual, counts)
        return pairwise.primal_weights(dual, vectors, counts.astype(np.int32))

    def _weight_vectors(self) -> Any:
        if not self._paired or self.approximation_ is not None:
            return super()._weight_vectors()
        weights = pairwise.primal_weights(self._dual_coef_, self.support_vectors_, self._n_support)
        return super()._public(weights, self._intercept_)[0]
