"""Documents and linear machines of the studies of text.

Raw documents (20 newsgroups) or raw counts (sector) become tf-idf points whose vocabulary and weights are learnt on the
training part of a random split.  A least-squares machine is (X X' + r I) c = y, r = lambda l, no bias, solved by
conjugate gradients on the sparse X for all machines of a code at once; codes without zeros are linear in the
one-versus-all solutions (Rifkin 2002, section 4.4.2) and cost nothing more.  A support vector machine has C = 1 and a
free bias, and is solved by dual coordinate descent on the sparse X, one machine after the other.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer import data, threads
from mercer.data.text import TfIdf, counts, read_documents, vocabulary
from mercer.gram import Gram
from mercer.kernels import Linear
from mercer.losses import Hinge, Square
from mercer.multiclass.decoders import loss_based
from mercer.problems import RegularisedRisk
from mercer.selection.leave_one_out import leave_one_out
from mercer.solvers.quadratic import linear_dual

Single = NDArray[np.float32]
Labels = NDArray[np.intp]
RIDGES = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
TOLERANCE = 1e-4  # relative residual of conjugate gradients, every column
GAP = 1e-3  # relative duality gap of support vector machines
EXACT = 2200  # up to so many training documents lambda l is chosen by exact leave-one-out, above by a fifth held out
SIZES = {"news": (800, 250, 100, 30), "sector": (52, 20, 10, 3)}  # training documents a class


@dataclass(frozen=True)
class Corpus:
    """Counts (n, words) and class numbers (n,); `share`: the most of a class that goes into training."""

    counts: Any
    y: Labels
    sizes: tuple[int, ...]
    share: float

    @property
    def classes(self) -> int:
        """Number of classes."""
        return int(self.y.max()) + 1


@dataclass(frozen=True)
class Split:
    """Points and labels of a split: training parts of each size are nested, the test part is the same for all."""

    order: list[Labels]
    test: Labels

    def train(self, size: int) -> Labels:
        """Training documents, up to `size` of each class."""
        return np.sort(np.concatenate([index[:size] for index in self.order]))


def split(corpus: Corpus, seed: int) -> Split:
    """Up to the largest size, and at most `share`, of each class at random for training; the rest for testing."""
    rng = np.random.default_rng(seed)
    largest = max(corpus.sizes)
    order, test = [], []
    for label in range(corpus.classes):
        index = rng.permutation(np.flatnonzero(corpus.y == label))
        most = max(1, min(largest, int(corpus.share * len(index))))
        order.append(index[:most])
        test.append(index[most:])
    return Split(order, np.sort(np.concatenate(test)))


def news(folder: Path, headers: bool) -> Corpus:
    """Counts of 20 newsgroups."""
    documents = read_documents(folder / "20news-bydate.tar.xz", headers=headers)
    y = np.unique(documents.labels, return_inverse=True)[1]
    return Corpus(counts(documents.texts, vocabulary(documents.texts)), y, SIZES["news"], 0.8)


def sector() -> Corpus:
    """Counts of sector, both parts together."""
    parts = [data.benchmark("sector", part, features=55_197, sparse=True) for part in ("train", "test")]
    y = np.unique(np.concatenate([np.asarray(part.y) for part in parts]), return_inverse=True)[1]
    return Corpus(sparse.vstack([part.X for part in parts]).tocsr(), y, SIZES["sector"], 0.5)


def synthetic(sizes: tuple[int, ...], share: float, classes: int = 8, each: int = 40) -> Corpus:
    """Documents of 30 words, a third of them typical of the class."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(classes), each)
    own = 12 * y[:, None] + rng.integers(0, 12, (len(y), 10))
    common = rng.integers(0, 12 * classes, (len(y), 20))
    columns = np.concatenate([own, common], axis=1)
    rows = np.repeat(np.arange(len(y)), 30)
    matrix = sparse.csr_matrix((np.ones(rows.size), (rows, columns.ravel())), shape=(len(y), 12 * classes))
    return Corpus(matrix, y, sizes, share)


def points(corpus: Corpus, train: Labels, test: Labels, everywhere: bool = False) -> tuple[Any, Any]:
    """Both parts as float32 CSR; weights learnt on the training documents, or on all of them."""
    learnt = TfIdf.learn(corpus.counts if everywhere else corpus.counts[train])
    return learnt(corpus.counts[train]).astype(np.float32), learnt(corpus.counts[test]).astype(np.float32)


# Machines -----------------------------------------------------------------------------------------------------------


def weights(X: Any, Y: Single, ridge: float, limit: int = 500) -> Single:
    """Weights w (d, k) = X'c with (X_S X_S' + r I) c = y_S for every column y of Y (n, k).

    S are the documents where y is not 0.  All columns share each pass over X; a document outside S keeps c = 0, because
    its residual is masked.
    """
    T = sparse.csr_matrix(X.T)
    mask = None if np.all(Y) else (Y != 0).astype(np.float32)
    c, R = np.zeros_like(Y), Y.copy()
    P = R.copy()
    squared = np.einsum("ij,ij->j", R, R)
    enough = TOLERANCE**2 * squared
    for _ in range(limit):
        Q = X @ (T @ P)
        if mask is not None:
            Q *= mask
        Q += ridge * P
        step = squared / np.maximum(np.einsum("ij,ij->j", P, Q), 1e-30)
        c += step * P
        R -= step * Q
        new = np.einsum("ij,ij->j", R, R)
        if np.all(new <= enough):
            break
        P *= new / np.maximum(squared, 1e-30)
        P += R
        squared = new
    return np.asarray(T @ c)


def support_vector_outputs(X: Any, signs: NDArray[Any], new: Any) -> NDArray[np.float64]:
    """Outputs (m, F) on new documents of the machines with targets +-1 in the columns of signs (n, F)."""
    gram = Gram(Linear(), X.astype(np.float64), storage="streamed")

    def train(column: int) -> NDArray[np.float64]:
        problem = RegularisedRisk(gram, signs[:, column].astype(np.float64), Hinge(), 1.0)
        found = linear_dual.solve(problem, gap_tol=GAP)
        return np.asarray(new @ (X.T @ found.coefficients) + found.bias)

    return np.column_stack(threads.run(train, [(column,) for column in range(signs.shape[1])]))


def indicators(y: Labels, classes: int) -> Single:
    """0/1 columns turned to +-1: targets (n, k) of one-versus-all."""
    return np.where(y[:, None] == np.arange(classes), 1.0, -1.0).astype(np.float32)


def combined(outputs: NDArray[Any], ones: NDArray[Any], M: NDArray[np.int8]) -> NDArray[Any]:
    """Outputs (n, F) of a code without zeros from those of OVA (n, k) and of the constant target 1 (n, 1).

    The target of column a is sum_j M_ja [y = j], and the indicator of class j is (OVA_j + 1)/2.
    """
    return np.asarray((outputs + ones) @ M.astype(np.float64) / 2.0)


def pairs(X: Any, y: Labels, new: Any, M: NDArray[np.int8], ridge: float) -> NDArray[Any]:
    """Outputs (m, F) of the machines of all pairs, each on the documents of its two classes."""
    outputs = np.zeros((new.shape[0], M.shape[1]))
    for column in range(M.shape[1]):
        used = np.flatnonzero(M[y, column])
        target = M[y[used], column].astype(np.float32)[:, None]
        outputs[:, column] = (new @ weights(X[used], target, ridge))[:, 0]
    return outputs


def decode(M: NDArray[np.int8], outputs: NDArray[Any], loss: Any = None) -> Labels:
    """Class of least total loss, square by default."""
    return np.asarray(np.argmin(loss_based(M, outputs, Square() if loss is None else loss), axis=1))


def best_ridge(X: Any, y: Labels, classes: int, seed: int) -> float:
    """The lambda l of least error of OVA on the training part: exact leave-one-out, or a fifth held out."""
    n = X.shape[0]
    if n <= EXACT:
        K, Y = np.asarray((X @ X.T).toarray(), dtype=np.float64), indicators(y, classes).astype(np.float64)
        errors = [leave_one_out(K, Y, ridge).error_rate() for ridge in RIDGES]
    else:
        out = np.zeros(n, dtype=bool)
        out[np.random.default_rng(seed).permutation(n)[: n // 5]] = True
        Y = indicators(y[~out], classes)
        errors = [float(np.mean(np.argmax(X[out] @ weights(X[~out], Y, ridge), axis=1) != y[out])) for ridge in RIDGES]
    return RIDGES[int(np.argmin(errors))]
