"""Classes as structures: F(x, y) = e_y (x) x, the machine of Crammer and Singer (2001).

w is a matrix W (k, d) of one row per class, the loss is 1 for every wrong class unless a table says otherwise, and the
maximum over k classes is taken for all points in one product.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from mercer.errors import InvalidInput
from mercer.problems.structured import Examples, Plane, Rescaling, SparseVector, Sum, Vector
from mercer.structured.model import Found, StructuredModel, numbered

Matrix = NDArray[np.float64]


class Multiclass(StructuredModel):
    """Points X (n, d), dense or CSR, and labels Y (n,).

    labels : the classes (k,), by default those of the training data, sorted.
    losses : (k, k), the loss of predicting column where row is right, in the order of the labels; by default 0 and 1.
    features : d, by default that of the training data.
    """

    name = "multiclass"
    rescalings = ("margin", "slack")

    def __init__(self, labels: Any = None, losses: Any = None, features: int | None = None) -> None:
        self.labels, self.losses, self.features = labels, losses, features

    def prepared(self, X: Any, Y: Any) -> Self:
        """The model with the labels and the number of features of these points."""
        points = check_array(X, accept_sparse="csr", dtype=np.float64)
        found = np.unique(column_or_1d(Y)) if self.labels is None else np.asarray(self.labels)
        if found.ndim != 1 or len(np.unique(found)) != len(found) or len(found) < 2:
            raise InvalidInput(f"labels must be at least two different classes, got {len(found)}")
        losses = 1.0 - np.eye(len(found)) if self.losses is None else np.asarray(self.losses, dtype=np.float64)
        if losses.shape != (len(found),) * 2 or not (losses >= 0.0).all() or np.diagonal(losses).any():
            raise InvalidInput(f"losses must be ({len(found)}, {len(found)}), not negative, and zero on its diagonal")
        return type(self)(found, losses, points.shape[1])

    def check(self, X: Any, Y: Any = None) -> tuple[Any, Any]:
        """Points (n, d), and the numbers (n,) of their classes."""
        points = check_array(X, accept_sparse="csr", dtype=np.float64)
        if self.features is not None and points.shape[1] != self.features:
            raise InvalidInput(f"X has {points.shape[1]} features, the model was made for {self.features}")
        if Y is None:
            return points, None
        given = column_or_1d(Y)
        check_consistent_length(points, given)
        codes, strange = numbered(self.labels, given)
        if strange.any():
            stranger = given[strange].tolist()[0]
            raise InvalidInput(f"Y has the label {stranger!r}, which is not among the labels of the model")
        return points, codes

    def size(self) -> int:
        """The number of entries of W."""
        return len(self.labels) * int(self.features or 0)

    def joint_features(self, x: Any, y: Any) -> SparseVector:
        """The point in the row of its class."""
        index, value = (x.indices, x.data) if sp.issparse(x) else (np.arange(x.size), np.ravel(x))
        return SparseVector(int(y) * int(self.features or 0) + index.astype(np.intp), value)

    def loss(self, y: Any, other: Any) -> float:
        """The entry of the table of losses."""
        return float(self.losses[y, other])

    def largest_loss(self, y: Any) -> float:
        """The largest entry of the row of y."""
        return float(self.losses[y].max())

    def infer(self, w: Vector, x: Any) -> int:
        """The number of the best class; the first of several."""
        return int(np.argmax(self._scores(w, x)))

    def loss_augmented(self, w: Vector, x: Any, y: Any, rescaling: Rescaling) -> Found:
        """The number of the class of the highest plane."""
        return Found(int(self._augmented(self._scores(w, x), np.array([y]), rescaling)[0].argmax()))

    def decoded(self, y: Any) -> Any:
        """The label of class number y."""
        return self.labels[y]

    def _scores(self, w: Vector, X: Any) -> Matrix:
        """w.F(x, y) (n, k)."""
        W = w.reshape(len(self.labels), -1)
        return np.asarray(X @ W.T).reshape(-1, len(W))

    def _augmented(self, scores: Matrix, y: NDArray[np.intp], rescaling: Rescaling) -> Matrix:
        """What is to be maximised (n, k)."""
        margins, losses = scores - np.take_along_axis(scores, y[:, None], axis=1), self.losses[y]
        found: Matrix = losses + margins if rescaling == "margin" else losses * (1.0 + margins)
        return found

    def predict(self, w: Vector, X: Any) -> list[Any]:
        """The numbers of the best classes, in one product."""
        return list(np.argmax(self._scores(w, X), axis=1))

    def examples(self, X: Any, Y: Sequence[Any], rescaling: Rescaling) -> Examples:
        """All points at once."""
        self.refuse_rescaling(rescaling)
        return Points(self, X, np.asarray(Y, dtype=np.intp), rescaling)

    def state(self) -> Mapping[str, Any]:
        """Labels, losses and number of features."""
        return {"labels": np.asarray(self.labels), "losses": np.asarray(self.losses), "features": self.features}


class Points(Examples):
    """Points (n, d) with the numbers (n,) of their classes."""

    def __init__(self, model: Multiclass, X: Any, y: NDArray[np.intp], rescaling: Rescaling) -> None:
        self.model, self.X, self.y, self.rescaling = model, X, y, rescaling
        self.n, self.size = len(y), model.size()

    def plane(self, w: Vector, i: int, *, augmented: bool = True) -> Plane:
        """The plane of the best class of point i."""
        x, y = self.X[[i]] if sp.issparse(self.X) else self.X[i], self.y[i]
        scores = self.model._scores(w, x)
        values = (
            self.model._augmented(scores, self.y[i : i + 1], self.rescaling)[0]
            if augmented
            else scores[0] - scores[0, y]
        )
        other = int(np.argmax(values))
        loss = self.model.loss(y, other)
        if other == y:
            return Plane(SparseVector(np.empty(0, dtype=np.intp), np.empty(0)), 0.0, 0.0)
        factor = loss if self.rescaling == "slack" and augmented else 1.0
        right, found = self.model.joint_features(x, y), self.model.joint_features(x, other)
        v = right.minus(found)
        return Plane(SparseVector(v.positions, factor * v.values), loss, float(values[other]))

    def planes(self, w: Vector, costs: Vector) -> Sum:
        """Those of all points, by two products."""
        values = self.model._augmented(self.model._scores(w, self.X), self.y, self.rescaling)
        found, rows = np.argmax(values, axis=1), np.arange(self.n)
        losses = self.model.losses[self.y, found]
        factors = costs * losses if self.rescaling == "slack" else costs
        coefficients = np.zeros((len(self.model.labels), self.n))
        np.add.at(coefficients, (self.y, rows), factors)
        np.add.at(coefficients, (found, rows), -factors)
        return Sum(np.asarray(coefficients @ self.X).ravel(), float(costs @ losses), values[rows, found])
