"""Chains: sequences whose positions are labelled, with scores of labels given points and of neighbouring labels.

    w.F(x, y) = sum_t x_t'W e_{y_t} + sum_t A[y_t-1, y_t]

The best labelling is found by Viterbi's dynamic programme, over all sequences in compiled code
(`mercer.problems.chains`).
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Self, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from mercer.errors import InvalidInput
from mercer.problems.chain_inference import PLAIN
from mercer.problems.chains import ChainExamples, Codes, mode_of
from mercer.problems.structured import Rescaling, SparseVector, Vector
from mercer.structured.model import Found, StructuredModel, distinct_labels, numbered

LOSSES = ("hamming", "zero-one")


class Sequences(Sequence[Any]):
    """Sequences of points, held as the rows (R, d) of one matrix and the places (n + 1,) where each begins."""

    def __init__(self, rows: Any, offsets: Codes) -> None:
        self.rows, self.offsets = rows, offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, i: int) -> Any: ...
    @overload
    def __getitem__(self, i: slice) -> list[Any]: ...
    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        return self.rows[self.offsets[i] : self.offsets[i + 1]]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))


class Chain(StructuredModel):
    """Inputs are sequences of points (T, d), dense or CSR, and structures the labels (T,) of these; T may be zero.

    labels : the k labels, by default those of the training data, sorted.
    loss : "hamming", the number of wrong labels; or "zero-one", 1 for every sequence that is not all right.
    features : d, by default that of the training data.
    """

    name = "chain"
    rescalings = ("margin", "slack")

    def __init__(self, labels: Any = None, *, loss: str = "hamming", features: int | None = None) -> None:
        self.labels, self.losses, self.features = labels, loss, features

    # Data ----------------------------------------------------------------------------------------------------------

    def prepared(self, X: Any, Y: Any) -> Self:
        """The model with the labels and the number of features of these sequences."""
        if self.losses not in LOSSES:
            raise InvalidInput(f"loss must be one of {', '.join(LOSSES)}, got {self.losses!r}")
        widths = [x.shape[1] for x in map(_shaped, X) if x.ndim == 2 and x.shape[0]]
        if not widths:
            raise InvalidInput("X has no sequence with a point in it: there is nothing to learn from")
        return type(self)(distinct_labels(self.labels, Y), loss=self.losses, features=widths[0])

    def check(self, X: Any, Y: Any = None) -> tuple[Sequences, list[Codes] | None]:
        """The sequences below one another, and the numbers of their labels."""
        parts = [self._points(i, x) for i, x in enumerate(X)]
        offsets = np.concatenate(([0], np.cumsum([x.shape[0] for x in parts]))).astype(np.intp)
        if not parts:
            rows: Any = np.empty((0, int(self.features or 0)))
        elif any(sp.issparse(x) for x in parts):
            rows = sp.vstack([sp.csr_matrix(x) for x in parts], format="csr")
        else:
            rows = np.vstack(parts)
        inputs = Sequences(rows, offsets)
        if Y is None:
            return inputs, None
        structures = list(Y)
        if len(structures) != len(inputs):
            raise InvalidInput(f"X has {len(inputs)} sequences and Y {len(structures)}; give labels for each")
        return inputs, self._codes(structures, offsets)

    def _points(self, i: int, x: Any) -> Any:
        """Sequence i as (T, d)."""
        shaped = _shaped(x)
        if shaped.shape[0] == 0:
            return np.empty((0, int(self.features or 0)))
        try:
            points = check_array(shaped, accept_sparse="csr", dtype=np.float64)
        except ValueError as error:
            raise InvalidInput(f"sequence {i} of X: {error}") from None
        if points.shape[1] != self.features:
            raise InvalidInput(f"sequence {i} of X has {points.shape[1]} features, the model is for {self.features}")
        return points

    def _codes(self, Y: list[Any], offsets: Codes) -> list[Codes]:
        """Numbers of the labels, one array for each sequence."""
        lengths = np.diff(offsets)
        for i, y in enumerate(Y):
            if np.ndim(y) != 1 or len(y) != lengths[i]:
                raise InvalidInput(f"Y[{i}] has shape {np.shape(y)} for a sequence of {lengths[i]} points")
        if not offsets[-1]:
            return [np.empty(0, dtype=np.intp) for _ in Y]
        given = np.concatenate([np.asarray(y) for y in Y if len(y)])
        codes, strange = numbered(self.labels, given)
        if strange.any():
            first = int(np.argmax(strange))
            i = int(np.searchsorted(offsets, first, side="right")) - 1
            raise InvalidInput(f"Y[{i}] has the label {given[first].item()!r}, which the model does not know")
        return [codes[a:b] for a, b in pairwise(offsets)]

    # Structures ----------------------------------------------------------------------------------------------------

    @property
    def k(self) -> int:
        """Number of labels."""
        return len(self.labels)

    def size(self) -> int:
        """The number of entries of W (d, k) and A (k, k)."""
        return (int(self.features or 0) + self.k) * self.k

    def weights(self, w: Vector) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Emissions W (d, k) and transitions A (k, k), from row to column, in w."""
        emissions = self.size() - self.k * self.k
        return w[:emissions].reshape(-1, self.k), w[emissions:].reshape(self.k, self.k)

    def _one(self, x: Any, y: Any = None, rescaling: Rescaling = "margin") -> ChainExamples:
        """One sequence as an example, with right labels where they matter."""
        T = x.shape[0]
        labels = np.zeros(T, dtype=np.intp) if y is None else y
        return ChainExamples(x, np.array([0, T]), labels, self.k, mode_of(self.losses, rescaling))

    def joint_features(self, x: Any, y: Any) -> SparseVector:
        """Sums of points by label, and counts of neighbouring labels."""
        labels, A = np.eye(self.k)[y], np.zeros((self.k, self.k))
        np.add.at(A, (y[:-1], y[1:]), 1.0)
        dense = self._one(x).features(labels.reshape(-1, self.k), A)
        positions = np.flatnonzero(dense)
        return SparseVector(positions, dense[positions])

    def loss(self, y: Any, other: Any) -> float:
        """The number of wrong labels, or whether there are any."""
        wrong = int(np.count_nonzero(np.asarray(y) != np.asarray(other)))
        return float(min(wrong, 1) if self.losses == "zero-one" else wrong)

    def largest_loss(self, y: Any) -> float:
        """The length, or 1."""
        return float(min(len(y), 1) if self.losses == "zero-one" else len(y))

    def infer(self, w: Vector, x: Any) -> Codes:
        """The labelling of the best score."""
        return self._one(x).decode(w, PLAIN)[0]

    def loss_augmented(self, w: Vector, x: Any, y: Any, rescaling: Rescaling) -> Found:
        """The labelling of the highest plane."""
        one = self._one(x, y, rescaling)
        return Found(one.decode(w, one.mode)[0])

    def decoded(self, y: Any) -> Any:
        """Labels (T,) of their numbers."""
        return np.asarray(self.labels)[y]

    def examples(self, X: Any, Y: Sequence[Any], rescaling: Rescaling) -> ChainExamples:
        """All sequences at once."""
        self.refuse_rescaling(rescaling)
        labels = np.concatenate([*Y, np.empty(0, dtype=np.intp)])
        return ChainExamples(X.rows, X.offsets, labels, self.k, mode_of(self.losses, rescaling))

    def predict(self, w: Vector, X: Any) -> list[Any]:
        """The best labellings of all sequences."""
        offsets = X.offsets
        all_at_once = ChainExamples(X.rows, offsets, np.zeros(offsets[-1], dtype=np.intp), self.k, PLAIN)
        path, _, _ = all_at_once.decode(w, PLAIN)
        return [path[a:b] for a, b in pairwise(offsets)]

    def state(self) -> Mapping[str, Any]:
        """Labels, the name of the loss, and the number of features."""
        return {"labels": np.asarray(self.labels), "loss": self.losses, "features": self.features}


def _shaped(x: Any) -> Any:
    """A sparse matrix, or an array."""
    return x if sp.issparse(x) else np.asarray(x)
