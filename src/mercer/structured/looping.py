"""Examples of any model, one after the other in Python, with every answer of its inference held against its features.

A wrong answer of an inference would make a wrong certificate, so that what can be seen is refused: features or losses
that are not finite or of the wrong length, a structure that is worse than the right one, which is a candidate itself,
and a bound below the value of the structure that comes with it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.errors import InvalidInput
from mercer.problems.structured import Examples, Plane, Rescaling, SparseVector, Vector

if TYPE_CHECKING:
    from mercer.structured.model import StructuredModel

ROUNDING = 1e-9  # relative error that sums of an inference may have


class LoopedExamples(Examples):
    """Inputs X and structures Y (n each) of a model, as its `check` returns them."""

    def __init__(self, model: "StructuredModel", X: Sequence[Any], Y: Sequence[Any], rescaling: Rescaling) -> None:
        model.refuse_rescaling(rescaling)
        self.model, self.X, self.Y, self.rescaling = model, X, Y, rescaling
        self.n, self.size = len(X), model.size()
        self._right = [self._features(i, y, "the right structure") for i, y in enumerate(Y)]
        for i, y in enumerate(Y):
            if model.loss(y, y) != 0.0:
                raise InvalidInput(f"the loss of example {i} with itself is {model.loss(y, y)}, not zero")

    def plane(self, w: Vector, i: int, *, augmented: bool = True) -> Plane:
        """The plane of the structure that inference finds for example i at w."""
        model, x, y = self.model, self.X[i], self.Y[i]
        structure, stated = model.loss_augmented(w, x, y, self.rescaling) if augmented else (model.infer(w, x), None)
        other, loss = self._features(i, structure, "inference"), self._loss(i, structure)
        right = self._right[i]
        v = right.minus(other).merged()
        margin = v.dot(w)
        if self.rescaling == "slack" and augmented:
            v, margin = SparseVector(v.positions, loss * v.values), loss * margin
        value = loss - margin
        unit = ROUNDING * (1.0 + abs(loss) + float(np.abs(w[right.positions] * right.values).sum()) + abs(margin))
        if not augmented:
            return Plane(v, loss, -margin)
        if stated is None and value < -unit:
            raise InvalidInput(
                f"inference on example {i} returned a structure of value {value:.6g}, worse than the right one (0): it "
                "does not maximise; state a bound where it is not exact"
            )
        bound = value if stated is None else float(stated)
        if not bound >= max(value, 0.0) - unit:
            raise InvalidInput(
                f"inference on example {i} states a bound of {bound:.6g} on a maximum that is at least "
                f"{max(value, 0.0):.6g}"
            )
        return Plane(v, loss, bound)

    def _features(self, i: int, structure: Any, source: str) -> SparseVector:
        """F(x_i, y) as entries, if it is a finite vector of the right length."""
        found = self.model.joint_features(self.X[i], structure)
        if isinstance(found, SparseVector):
            index, value = np.asarray(found.positions, dtype=np.intp), np.asarray(found.values, dtype=np.float64)
            wrong = index.shape != value.shape or index.ndim != 1
            wrong = wrong or bool(index.size and not (index.min() >= 0 and index.max() < self.size))
        else:
            dense = np.asarray(found, dtype=np.float64)
            wrong = dense.shape != (self.size,)
            index = np.flatnonzero(dense) if not wrong else np.empty(0, dtype=np.intp)
            value = dense[index] if not wrong else np.empty(0)
        if wrong or not np.isfinite(value).all():
            raise InvalidInput(
                f"the joint features of example {i} with what came from {source} are not a finite vector of length "
                f"{self.size}"
            )
        return SparseVector(index, value)

    def _loss(self, i: int, structure: Any) -> float:
        loss = float(self.model.loss(self.Y[i], structure))
        if not (np.isfinite(loss) and loss >= 0.0):
            raise InvalidInput(f"the loss of example {i} is {loss}: losses are finite and never negative")
        return loss
