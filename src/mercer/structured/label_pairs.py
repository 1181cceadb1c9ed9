"""Several labels at once, with a score for every pair of them that goes together.

    w.F(x, y) = sum_j y_j x'W e_j + sum_{j<l} V_jl y_j y_l,        y in {0, 1}^k

The loss is the number of labels that are wrong.  This is a network of k nodes with two labels each and all edges, so
that inference is hard for many labels: "exact" looks at all 2^k sets while these are few and solves an integer
programme then, "relaxed" is a linear programme whose whole labels are right (roof duality), "messages" passes messages
(Finley and Joachims 2008 compare such choices for this very model).
"""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from mercer.errors import InvalidInput
from mercer.problems.networks import Inferred, network
from mercer.problems.structured import Rescaling, Vector
from mercer.solvers.structured.inference import Method, infer
from mercer.structured.graphs import Fractional, answered, refuse_inference
from mercer.structured.model import Found, StructuredModel

Array = NDArray[np.float64]
Codes = NDArray[np.intp]


class LabelPairs(StructuredModel):
    """Inputs are points X (n, d), structures the rows of indicators Y (n, k) of zeros and ones.

    inference : "exact", "relaxed" or "messages".
    labels : k, by default that of the training data.
    features : d, by default that of the training data.  Where labels differ in frequency, give a constant feature.
    """

    name = "label pairs"

    def __init__(self, inference: Method = "exact", labels: int | None = None, features: int | None = None) -> None:
        self.inference, self.labels, self.features = inference, labels, features

    @property
    def k(self) -> int:
        """Number of labels."""
        return int(self.labels or 0)

    def prepared(self, X: Any, Y: Any) -> Self:
        """The model with the numbers of labels and features of these data."""
        refuse_inference(self.inference)
        shape = np.shape(Y)
        if len(shape) != 2 or shape[1] < 1:
            raise InvalidInput(f"Y must be indicators of shape (n, k), got shape {shape}")
        return type(self)(self.inference, shape[1], check_array(X, dtype=np.float64).shape[1])

    def check(self, X: Any, Y: Any = None) -> tuple[Any, Any]:
        """Points (n, d), and indicators (n, k)."""
        points = check_array(X, dtype=np.float64)
        if points.shape[1] != self.features:
            raise InvalidInput(f"X has {points.shape[1]} features, the model is for {self.features}")
        if Y is None:
            return points, None
        given = np.asarray(Y)
        if given.shape != (len(points), self.k) or not np.isin(given, (0, 1)).all():
            raise InvalidInput(f"Y must be zeros and ones of shape {(len(points), self.k)}, got shape {given.shape}")
        return points, given.astype(np.intp)

    def size(self) -> int:
        """The number of entries of W (d, k), and of pairs of labels."""
        return int(self.features or 0) * self.k + self.k * (self.k - 1) // 2

    def weights(self, w: Vector) -> tuple[Array, Array]:
        """W (d, k), and V (k, k) above its diagonal."""
        V = np.zeros((self.k, self.k))
        V[np.triu_indices(self.k, 1)] = w[int(self.features or 0) * self.k :]
        return w[: int(self.features or 0) * self.k].reshape(-1, self.k), V

    def joint_features(self, x: Array, y: Any) -> Vector:
        """X in the columns of the labels that are there, and the pairs of labels that are."""
        if isinstance(y, Fractional):
            there, pairs = y.nodes[:, 1], y.edges[:, 1, 1]
        else:
            there = y.astype(np.float64)
            first, second = np.triu_indices(self.k, 1)
            pairs = there[first] * there[second]
        return np.concatenate((np.outer(x, there).ravel(), pairs))

    def loss(self, y: Codes, other: Any) -> float:
        """The number of wrong labels, or their mass."""
        there = other.nodes[:, 1] if isinstance(other, Fractional) else other
        return float(np.abs(there - y).sum())

    def largest_loss(self, y: Codes) -> float:
        """The number of labels."""
        return float(self.k)

    def infer(self, w: Vector, x: Array) -> Codes:
        """The best set of labels, or a good one where inference is not exact."""
        return self._inferred(w, x).labels

    def loss_augmented(self, w: Vector, x: Array, y: Codes, rescaling: Rescaling) -> Found:
        """The highest set of labels or relaxed one, and a bound where it may not be the maximum."""
        losses = np.stack((y, 1 - y), axis=1).astype(np.float64)
        return answered(self._inferred(w, x, losses), (self.k,), lambda: self.score_of(w, x, y))

    def _inferred(self, w: Vector, x: Array, losses: Array | None = None) -> Inferred:
        W, V = self.weights(w)
        scores = np.stack((np.zeros(self.k), x @ W), axis=1)
        edges = np.stack(np.triu_indices(self.k, 1), axis=1)
        tables = np.zeros((len(edges), 2, 2))
        tables[:, 1, 1] = V[edges[:, 0], edges[:, 1]]
        scores = scores if losses is None else scores + losses
        return infer(network(scores, tables, edges, np.arange(len(edges))), self.inference)

    def state(self) -> Mapping[str, Any]:
        """The method of inference and the numbers of labels and features."""
        return {"inference": self.inference, "labels": self.labels, "features": self.features}
