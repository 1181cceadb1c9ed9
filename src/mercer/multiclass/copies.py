"""Points that are there more than once, and folds that keep them together.

A point written twice and a point of weight two are the same data and must give the same machine.  Outputs at points the
machines have not seen are therefore never those of a machine that saw a copy: rows with equal values and equal labels
are one point, in an order of their own that depends neither on the order of the rows nor on the number of copies.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.machine import probability

Index = NDArray[np.intp]


def distinct(X: Any, labels: Index) -> tuple[Index, Index]:
    """Row of each distinct point (m,), and the distinct point of each row (n,).

    Rows are compared where they are numbers, dense or CSR; else every row is a point of its own.
    """
    words = _words(X)
    if words is None:
        own = np.arange(len(labels), dtype=np.intp)
        return own, own
    keys = np.empty(len(words), dtype=object)
    keys[:] = [(int(label), word) for label, word in zip(labels, words, strict=True)]
    _, first, point = np.unique(keys, return_index=True, return_inverse=True)
    return first.astype(np.intp), point.astype(np.intp)


def folds(first: Index, point: Index, labels: Index, parts: int, random: np.random.RandomState) -> Index:
    """Fold of each row (n,), at random and evenly within each class; copies share a fold."""
    return np.asarray(probability.folds(labels[first], min(parts, len(first)), random)[point])


def _words(X: Any) -> list[bytes] | None:
    """Every row as bytes; None where rows are not numbers."""
    if sp.issparse(X):
        rows = X.tocsr(copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        places, values, ends = rows.indices.astype(np.int64), rows.data, rows.indptr
        return [places[a:b].tobytes() + values[a:b].tobytes() for a, b in pairwise(ends)]
    if isinstance(X, list):
        return None
    dense = np.asarray(X)
    if dense.ndim != 2 or dense.dtype.kind not in "biuf":
        return None
    return [row.tobytes() for row in np.ascontiguousarray(dense) + 0]  # adding 0 turns -0.0 into 0.0
