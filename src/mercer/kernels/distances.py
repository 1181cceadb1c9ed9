"""Products and distances between two sets of points, dense or sparse.

The expansion |x - z|^2 = |x|^2 + |z|^2 - 2 <x, z> is one matrix product, but it loses the digits of a small distance
between points far from the origin.  Three remedies keep every squared distance accurate to about 1e-11 relative:
few features are differenced directly; dense data are centred first; and wherever the result is below 1e-4 of
|x|^2 + |z|^2, the difference is formed and squared after all.  Negative results are impossible.

In all functions X is (n, d), Z is (m, d) or None for X itself; both are as `checks.prepare` gives them.
"""

from collections.abc import Iterator
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from mercer.kernels.checks import Matrix, Points
from mercer.resources import row_blocks

_FEW_FEATURES = 16  # up to here a direct difference costs no more than the product
_CANCELLATION = 1e-4
_CHUNK = 1 << 20  # numbers held at a time by the passes over a matrix
_SPARSE_WIDTH = 32  # numbers for which a sparse row counts there


def product(X: Points, Z: Points | None) -> Matrix:
    """Inner products <x_i, z_j>, (n, m)."""
    right = X if Z is None else Z
    if sp.issparse(X) and sp.issparse(right):
        left, right = used_columns(X, right) if X.shape[1] > X.nnz + right.nnz else (X, right)
        return np.ascontiguousarray((left @ right.T).toarray())
    result = X @ right.T if sp.issparse(X) or not sp.issparse(right) else (right @ X.T).T
    return np.ascontiguousarray(result)


def used_columns(*matrices: Points) -> list[Points]:
    """The same CSR rows on the columns that hold a value in any of them: dense vectors take memory for every column."""
    used, place = np.unique(np.concatenate([X.indices for X in matrices]), return_inverse=True)
    width, starts = max(1, len(used)), np.cumsum([0] + [X.nnz for X in matrices])
    return [
        sp.csr_array((X.data, place[start : start + X.nnz], X.indptr), shape=(X.shape[0], width))
        for X, start in zip(matrices, starts)
    ]


def squared_norms(X: Points) -> Matrix:
    """|x_i|^2, (n,)."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X))


def row_sums(X: Points) -> Matrix:
    """sum_p x_p, (n,)."""
    return np.asarray(X.sum(axis=1), dtype=np.float64).ravel()


def scaled(X: Points, scale: Matrix) -> Points:
    """Features multiplied by `scale` (d,); sparse stays sparse."""
    return sp.csr_array(X @ sp.diags_array(scale)) if sp.issparse(X) else X * scale


def take_columns(X: Points, columns: tuple[int, ...]) -> Points:
    """The chosen columns, in the order given."""
    chosen = X[:, list(columns)]
    if sp.issparse(chosen):
        chosen.sum_duplicates()
    return chosen


def columns(X: Points, Z: Points | None) -> Iterator[tuple[Matrix, Matrix]]:
    """Pairs (x[:, p] as a column (n, 1), z[:, p] as a row (1, m)) for every feature p in turn."""
    left = X.tocsc() if sp.issparse(X) else X
    right = left if Z is None else (Z.tocsc() if sp.issparse(Z) else Z)
    for p in range(X.shape[1]):
        yield _column(left, p)[:, None], _column(right, p)[None, :]


def _column(X: Points, p: int) -> Matrix:
    return np.asarray(X[:, [p]].toarray()[:, 0] if sp.issparse(X) else X[:, p], dtype=np.float64)


def squared_distances(X: Points, Z: Points | None) -> Matrix:
    """|x_i - z_j|^2, (n, m), each accurate relative to itself and never negative."""
    left, right = X, Z
    others = X if Z is None else Z
    if not sp.issparse(X) and not sp.issparse(others):
        if X.shape[1] <= _FEW_FEATURES:
            return np.asarray(cdist(X, others, "sqeuclidean"))
        centre = (X.sum(axis=0) + others.sum(axis=0)) / (X.shape[0] + others.shape[0])
        left, right = X - centre, None if Z is None else Z - centre
    result = product(left, right)
    left_norms = squared_norms(left)
    right_norms = left_norms if right is None else squared_norms(right)
    result *= -2.0
    for rows in row_blocks(len(result), result.shape[1], _CHUNK):
        part = result[rows]
        size = left_norms[rows, None] + right_norms[None, :]
        part += size
        i, j = np.nonzero(part <= _CANCELLATION * size)
        part[i, j] = _pair_distances(X, others, i + rows.start, j)  # not centred: centring rounds every coordinate
    return result


def _pair_distances(X: Points, Z: Points, i: NDArray[np.intp], j: NDArray[np.intp]) -> Matrix:
    """|x_i - z_j|^2 by differences, for the pairs (i, j) given."""
    result = np.empty(len(i))
    for here in row_blocks(len(i), _SPARSE_WIDTH if sp.issparse(X) else X.shape[1], _CHUNK):
        left, right = X[i[here]], Z[j[here]]
        if sp.issparse(left) and not sp.issparse(right):
            left = left.toarray()
        elif sp.issparse(right) and not sp.issparse(left):
            right = right.toarray()
        result[here] = squared_norms(left - right)
    return result


def manhattan(X: Points, Z: Points | None) -> Matrix:
    """L1 distances sum_p |x_ip - z_jp|, (n, m)."""
    if not sp.issparse(X) and not sp.issparse(Z):
        return np.asarray(cdist(X, X if Z is None else Z, "cityblock"))
    return merged("absolute", X, Z)


def merged(term: Literal["absolute", "smaller", "chi_square"], X: Points, Z: Points | None) -> Matrix:
    """sum_p h(x_ip, z_jp), (n, m), for sparse points, with the h of that name in `sparse_merge`."""
    from mercer.kernels import sparse_merge  # here, because it brings in the compiler and dense data do not need it

    left = sp.csr_array(X)
    right = left if Z is None else sp.csr_array(Z)
    result = np.empty((left.shape[0], right.shape[0]))
    sparse_merge.fill(sparse_merge.CODES[term], *_rows(left), *_rows(right), result)
    return result


def _rows(X: Points) -> tuple[NDArray[np.int64], NDArray[np.int64], Matrix]:
    """Row pointers, column numbers and values, in the types the compiled loop takes."""
    return X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data
