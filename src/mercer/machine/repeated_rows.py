"""Rows that are there more than once: one point of their weight, in an order of its own.

A point x_i with the label y_i that is given t times, with the weights v_1, ..., v_t, has in every problem of mercer the
cost of one point of weight w_i = v_1 + ... + v_t, because costs add up over rows.  So machines are trained on the
distinct points, and a coefficient c_i is handed back to the rows as they were given, v_j / w_i of it to the j-th.  That
is a solution of the problem on all rows: the function is the same, the objective too, and every share keeps to its own
bound C v_j.

Whatever a solver draws at random, or settles by position, depends on the order of its points.  Where the weights w_i
differ, points are therefore put into an order that follows from their values and labels alone: that of 64-bit keys

    key(x) = sum over features j with x_j not zero of mix(bits of x_j + j g)          (mod 2^64)

(g is 2^64 over the golden ratio; dense and sparse rows have the same key).  A weight of two, two copies of the row and
any permutation of the rows are then the same computation to the last bit.  Where all weights are equal, points keep
the order of the rows.  Rows with equal keys are compared value by value: a key alone decides nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.compiled import loop

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Index = NDArray[np.intp]
Keys = NDArray[np.uint64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)  # of splitmix64
HALF, REST, ONE, ZERO = np.uint64(32), np.uint64(29), np.uint64(1), np.uint64(0)
COMPARED = 1 << 20  # values that are compared at a time


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """The m distinct points among given rows, in the order in which they are trained on.

    `rows` are the given rows of positive weight, copies next to each other: those of point i are at starts[i] up to
    starts[i + 1] of `rows`, with the weights at the same places of `own` (None: all one).  `weights` (m,) are those of
    the points, None where all are one.
    """

    rows: Index
    starts: Index
    own: Vector | None
    weights: Vector | None

    @property
    def first(self) -> Index:
        """One of the given rows of each point (m,)."""
        return self.rows[self.starts[:-1]]

    @cached_property
    def as_given(self) -> bool:
        """Whether points are single rows in the order in which they were given."""
        return len(self.rows) == len(self.starts) - 1 and bool(np.all(self.rows[1:] > self.rows[:-1]))

    def point(self, n: int) -> Index:
        """The point of each of n given rows; -1 for rows of weight zero."""
        found = np.full(n, -1, dtype=np.intp)
        found[self.rows] = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        return found

    def handed_back(self, points: Index, dual: Matrix, classes: Index) -> tuple[Index, Matrix, Index]:
        """Coefficients `dual` (k, s) of `points` (s,) as those of the given rows, ordered by class and row.

        Returns the rows (t,), their coefficients (k, t), and the place in `points` of each (t,); `classes` (s,) are the
        classes of the points.
        """
        sizes = self.starts[points + 1] - self.starts[points]
        place = np.repeat(np.arange(len(points)), sizes)
        where = np.arange(len(place)) + np.repeat(self.starts[points] - (np.cumsum(sizes) - sizes), sizes)
        rows = self.rows[where]
        weights = np.ones(len(rows)) if self.own is None else self.own[where]
        total = np.bincount(place, weights, minlength=len(points))[place]
        order = np.lexsort((rows, classes[place]))
        values = dual[:, place] * (weights / total)
        return rows[order], np.ascontiguousarray(values[:, order]), place[order]


def distinct(
    X: Any, labels: Any, weights: Vector | None, *, given: bool = False, ordered: bool = False
) -> DistinctRows | None:
    """The distinct points of X, an (n, d) array, a CSR matrix or a list; None where that are all rows as they are.

    Rows with different `labels`, (n,) or (n, k) numbers, are different points; weights (n,) are not negative, and rows
    of weight zero are left out.  Things in a list are the same where they are equal, and are ordered where Python
    orders them.  With `given`, as for rows of a kernel matrix, no row is merged and none moved; with `ordered`, points
    do not keep the order of the rows even where their weights are equal.
    """
    if weights is not None and bool(np.all(weights == 1.0)):
        weights = None
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf" and not given:
        keys, twice = _dense_keys(np.ascontiguousarray(X, dtype=np.float64).view(np.uint64))
    elif sp.issparse(X) and X.format == "csr" and not given:
        X = _canonical(X)
        keys = _sparse_keys(X)
        twice = _any_twice(keys)
    elif isinstance(X, list) and not given:
        return _distinct_things(X, labels, weights, ordered)
    else:
        return None if weights is None else _rows_as_given(weights)
    if weights is None and not ordered and not twice:
        return None
    return _distinct_numbers(X, labels, weights, keys, ordered)


def _rows_as_given(weights: Vector) -> DistinctRows:
    """Every row of positive weight as a point."""
    rows = np.flatnonzero(weights)
    return _points(rows, np.arange(len(rows) + 1), weights[rows], True)


def _points(rows: Index, starts: Index, own: Vector | None, ordered: bool) -> DistinctRows:
    """Points of their summed weights, in this order; where weights are equal and it is free, in that of first rows."""
    weights: Any = np.diff(starts).astype(np.float64) if own is None else np.add.reduceat(own, starts[:-1])
    alike = bool(np.all(weights == weights[0]))
    if alike and not ordered:
        sizes = np.diff(starts)
        order = np.argsort(np.minimum.reduceat(rows, starts[:-1]))
        moved = np.concatenate([[0], np.cumsum(sizes[order])])
        where = np.arange(len(rows)) + np.repeat(starts[:-1][order] - moved[:-1], sizes[order])
        rows, starts, own = rows[where], moved, None if own is None else own[where]
    return DistinctRows(rows, starts, own, None if alike and weights[0] == 1.0 else weights)


# Rows of numbers ---------------------------------------------------------------------------------------------------


def _distinct_numbers(X: Any, labels: Any, weights: Vector | None, keys: Keys, ordered: bool) -> DistinctRows | None:
    """The distinct rows of numbers with these keys (n,), those of their labels still missing."""
    L = None
    if labels is not None:
        L = np.ascontiguousarray(labels, dtype=np.float64).reshape(len(keys), -1)
        keys = keys + _mixed(_dense_keys(L.view(np.uint64))[0])
    rows = np.arange(len(keys)) if weights is None else np.flatnonzero(weights)
    # Copies are ordered by weight, so that sums are the same however they were given.
    sorting = (keys[rows],) if weights is None else (weights[rows], keys[rows])
    rows = rows[np.lexsort(sorting)]
    twin = np.flatnonzero(keys[rows[1:]] == keys[rows[:-1]])
    equal = _equal(X, rows[twin], rows[twin + 1])
    if L is not None:
        equal &= (L[rows[twin]] == L[rows[twin + 1]]).all(axis=1)
    if not equal.all():
        rows = _told_apart(X, L, keys, rows)
        equal = np.array([_word(X, L, a) == _word(X, L, b) for a, b in zip(rows[twin], rows[twin + 1])], dtype=bool)
    begins = np.ones(len(rows) + 1, dtype=bool)
    begins[1 + twin[equal]] = False
    if weights is None and not ordered and not equal.any():
        return None
    return _points(rows, np.flatnonzero(begins), None if weights is None else weights[rows], ordered)


def _equal(X: Any, a: Index, b: Index) -> NDArray[np.bool_]:
    """Whether rows a (p,) and b (p,) of X are the same."""
    if sp.issparse(X):
        differences = (X[a] - X[b]).tocsr()
        differences.eliminate_zeros()
        return np.asarray(np.diff(differences.indptr) == 0)
    equal = np.empty(len(a), dtype=bool)
    step = max(1, COMPARED // max(1, X.shape[1]))
    for start in range(0, len(a), step):
        part = slice(start, start + step)
        equal[part] = (X[a[part]] == X[b[part]]).all(axis=1)
    return equal


def _told_apart(X: Any, L: Matrix | None, keys: Keys, rows: Index) -> Index:
    """Rows in the order of their keys, and rows of one key in the order of their bytes."""
    order = keys[rows]
    ends = np.flatnonzero(np.append(order[1:] != order[:-1], True)) + 1
    found, start = rows.copy(), 0
    for end in ends.tolist():
        if end > start + 1:  # sorting is stable, and so copies stay ordered by weight
            found[start:end] = sorted(rows[start:end].tolist(), key=lambda row: _word(X, L, row))
        start = end
    return found


def _word(X: Any, L: Matrix | None, row: int) -> bytes:
    """A row and its labels as bytes; adding 0 turns -0.0 into 0.0."""
    values = X[[row]].toarray() if sp.issparse(X) else X[[row]]
    return bytes((values + 0).tobytes() + (b"" if L is None else (L[row] + 0).tobytes()))


def _canonical(X: Any) -> Any:
    """A CSR matrix whose entries are sorted and sums, a copy where it has to be changed."""
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def _sparse_keys(X: Any) -> Keys:
    """Keys (n,) of the rows of a CSR matrix."""
    words = np.ascontiguousarray(X.data, dtype=np.float64).view(np.uint64)
    parts = _mixed(words + (X.indices.astype(np.uint64) + ONE) * GOLDEN)
    parts[words << ONE == ZERO] = ZERO
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(parts, dtype=np.uint64)])
    return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])


def _mixed(words: Keys) -> Keys:
    """The same mixing as in the loop below."""
    words = (words ^ (words >> HALF)) * MULTIPLIER
    return np.asarray(words ^ (words >> REST))


@loop
def _any_twice(keys: Keys) -> bool:
    """Whether two keys (n,) are equal, by a table of those seen so far."""
    size = 2
    while size < 2 * len(keys):
        size *= 2
    table = np.zeros(size, dtype=np.uint64)
    mask = np.uint64(size - 1)
    for i in range(len(keys)):
        key = keys[i] | ONE
        place = (keys[i] >> HALF) & mask
        while table[place] != ZERO:
            if table[place] == key:
                return True
            place = (place + ONE) & mask
        table[place] = key
    return False


@loop
def _dense_keys(bits: Keys) -> tuple[Keys, bool]:
    """Keys (n,) of rows whose float64 values have these bits (n, d), and whether two are equal."""
    n, d = bits.shape
    keys = np.empty(n, dtype=np.uint64)
    for i in range(n):
        total, salt = ZERO, ZERO
        for j in range(d):
            salt += GOLDEN
            word = bits[i, j] + salt
            word = (word ^ (word >> HALF)) * MULTIPLIER
            word = word ^ (word >> REST)
            total += word if bits[i, j] << ONE != ZERO else ZERO
        keys[i] = total
    return keys, _any_twice(keys)


# Things ------------------------------------------------------------------------------------------------------------


def _distinct_things(X: Sequence[Any], labels: Any, weights: Vector | None, ordered: bool) -> DistinctRows | None:
    """The distinct elements of a list; those that Python cannot look up are all different."""
    rows = range(len(X)) if weights is None else np.flatnonzero(weights).tolist()
    L = None if labels is None else np.asarray(labels, dtype=np.float64).reshape(len(X), -1)
    places: dict[Any, list[int]] = {}
    try:
        for row in rows:
            places.setdefault((X[row], () if L is None else tuple(L[row])), []).append(row)
    except TypeError:
        return None if weights is None else _rows_as_given(weights)
    if weights is None and not ordered and len(places) == len(X):
        return None
    try:
        groups = [places[key] for key in sorted(places)]
    except TypeError:
        groups = list(places.values())
    if weights is not None:
        groups = [sorted(group, key=weights.__getitem__) for group in groups]
    found = np.concatenate(groups).astype(np.intp)
    starts = np.cumsum([0, *map(len, groups)])
    return _points(found, starts, None if weights is None else weights[found], ordered)
