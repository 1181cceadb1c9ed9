"""Chains of labelled points as examples of a structured problem, all in compiled code.

The rows of all chains stand below one another: points (R, d), dense or CSR, chain i in the rows offsets[i] to
offsets[i + 1].  The joint features of a chain x with labels y,

    F(x, y) = ( sum_t x_t (x) e_{y_t} ,  sum_t e_{y_t-1} (x) e_{y_t} ) ,

make w a matrix W (d, k) of emissions, row by row, followed by a matrix A (k, k) of transitions.  Every point of the
dual is given by the mean labels m (R, k) and the mean transitions (n, k, k) of its labellings: that is what solvers
keep, and there is no list of planes.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import threads
from mercer.compiled import loop
from mercer.problems.chain_inference import HAMMING, PLAIN, SLACK, ZERO_ONE, best_labellings
from mercer.problems.structured import Examples, Plane, Rescaling, SparseVector, Sum, Vector

Matrix = NDArray[np.float64]
Codes = NDArray[np.intp]

HANDED_OVER = 2_000_000  # operations below which chains are not worth handing to other threads


class Rows(NamedTuple):
    """Points (R, d) as compiled loops take them: dense (R, d), or CSR with a dense part (0, d)."""

    dense: Matrix
    starts: NDArray[np.int64]
    columns: NDArray[np.int32]
    entries: Vector

    @classmethod
    def of(cls, X: Any) -> "Rows":
        """The rows of a dense or sparse matrix."""
        if sp.issparse(X):
            X = X.tocsr()
            columns = X.indices.astype(np.int32, copy=False)
            entries = X.data.astype(np.float64, copy=False)
            return cls(np.empty((0, X.shape[1])), X.indptr.astype(np.int64), columns, entries)
        empty = np.empty(0, dtype=np.int32)
        return cls(np.ascontiguousarray(X, dtype=np.float64), np.empty(0, dtype=np.int64), empty, np.empty(0))


@loop
def emissions(rows: Any, first: int, last: int, W: Any, S: Any) -> None:
    """S[t] = x_t'W (k,) for the rows first..last, into S (last - first, k)."""
    dense, starts, columns, entries = rows
    k = W.shape[1]
    S[:] = 0.0
    for t in range(first, last):
        out = S[t - first]
        if len(starts) == 0:
            for f in range(dense.shape[1]):
                x = dense[t, f]
                if x != 0.0:
                    for b in range(k):
                        out[b] += x * W[f, b]
        else:
            for at in range(starts[t], starts[t + 1]):
                x, f = entries[at], columns[at]
                for b in range(k):
                    out[b] += x * W[f, b]


@loop
def add_row(rows: Any, t: int, D: Any, W: Any) -> None:
    """W += x_t (x) D, D (k,)."""
    dense, starts, columns, entries = rows
    if len(starts) == 0:
        for f in range(dense.shape[1]):
            x = dense[t, f]
            if x != 0.0:
                for b in range(len(D)):
                    W[f, b] += x * D[b]
    else:
        for at in range(starts[t], starts[t + 1]):
            x, f = entries[at], columns[at]
            for b in range(len(D)):
                W[f, b] += x * D[b]


class ChainExamples(Examples):
    """n chains: rows of points (R, d), `offsets` (n + 1,), the right labels (R,) as numbers below k."""

    def __init__(self, X: Any, offsets: Codes, labels: Codes, k: int, mode: int) -> None:
        self.X, self.offsets, self.labels, self.k, self.mode = X, offsets, labels, k, mode
        self.rows = Rows.of(X)
        self.n, self.d = len(offsets) - 1, int(X.shape[1])
        self.size = self.d * k + k * k

    def split(self, w: Vector) -> tuple[Matrix, Matrix]:
        """W (d, k) and A (k, k) of w, as views."""
        return w[: self.d * self.k].reshape(self.d, self.k), w[self.d * self.k :].reshape(self.k, self.k)

    def scores(self, w: Vector) -> Matrix:
        """Emission scores (R, k) of all rows."""
        W, _ = self.split(w)
        return np.ascontiguousarray(self.X @ W)

    def decode(self, w: Vector, mode: int) -> tuple[Codes, Vector, Vector]:
        """The best labels (R,) of all chains in the sense of `mode`, their losses (n,) and values (n,)."""
        S, (_, A) = self.scores(w), self.split(w)
        path, losses, values = np.empty(len(S), dtype=np.intp), np.empty(self.n), np.empty(self.n)
        parts = threads.split(self.n, None if S.size * self.k > HANDED_OVER else 1)
        fixed = (S, A, self.labels, self.offsets, mode)
        threads.run(best_labellings, [(*fixed, a, b, path, losses, values) for a, b in parts])
        return path, losses, values

    def features(self, m: Matrix, transitions: Matrix) -> Vector:
        """The vector (size,) of label weights m (R, k) and transition weights (k, k)."""
        rows = np.flatnonzero(m.any(axis=1))
        return np.concatenate((np.asarray(self.X[rows].T @ m[rows]).ravel(), transitions.ravel()))

    def plane(self, w: Vector, i: int, *, augmented: bool = True) -> Plane:
        """The plane of the best labelling of chain i."""
        rows = slice(self.offsets[i], self.offsets[i + 1])
        one = ChainExamples(self.X[rows], np.array([0, rows.stop - rows.start]), self.labels[rows], self.k, self.mode)
        path, losses, values = one.decode(w, self.mode if augmented else PLAIN)
        m, transitions = one._differences(path, np.ones(1))
        v = one.features(m, transitions)
        positions = np.flatnonzero(v)
        loss = min(losses[0], 1.0) if self.mode == ZERO_ONE else losses[0]
        factor = loss if self.mode == SLACK and augmented else 1.0
        return Plane(SparseVector(positions, factor * v[positions]), float(loss), float(values[0]))

    def planes(self, w: Vector, costs: Vector) -> Sum:
        """Those of all chains: two sparse products and a pass of compiled code."""
        path, losses, values = self.decode(w, self.mode)
        factors = costs * losses if self.mode == SLACK else costs
        return Sum(self.features(*self._differences(path, factors)), float(costs @ losses), values)

    def _differences(self, path: Codes, factors: Vector) -> tuple[Matrix, Matrix]:
        """Right minus found: weights of labels (R, k) and of transitions (k, k), times a factor for each chain."""
        of_row = np.repeat(factors, np.diff(self.offsets))
        every, m, A = np.arange(len(path)), np.zeros((len(path), self.k)), np.zeros((self.k, self.k))
        np.add.at(m, (every, self.labels), of_row)
        np.add.at(m, (every, path), -of_row)
        m[path == self.labels] = 0.0
        inner = np.delete(every, self.offsets[:-1][np.diff(self.offsets) > 0])  # rows with one before them
        np.add.at(A, (self.labels[inner - 1], self.labels[inner]), of_row[inner])
        np.add.at(A, (path[inner - 1], path[inner]), -of_row[inner])
        return m, A


def mode_of(loss: str, rescaling: Rescaling) -> int:
    """Which maximum belongs to "hamming" or "zero-one" loss; for the latter both rescalings are the same."""
    if loss == "zero-one":
        return ZERO_ONE
    return SLACK if rescaling == "slack" else HAMMING
