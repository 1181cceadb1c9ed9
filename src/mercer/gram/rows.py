"""Rows of the matrix made inside a compiled loop, each when it is first needed.

A solver of few points of few features needs some rows of K and not others, and leaves its own compiled loop for none of
them.  It is handed the prepared points as columns, `PointColumns`, and calls `fill_row` or `fill_all` from its loop;
what the columns hold is nobody's business outside `mercer.gram`.

Local points of such a loop may be two stretches of the N columns: local point k is column first + k for k < middle and
second + k - middle from there on.
"""

from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import threads
from mercer.compiled import borrowed, loop
from mercer.gram.tiles import Tiles, worth_densifying
from mercer.gram.transform import CODES, LINEAR, transform_row

# Rows on demand are d passes over n points, without BLAS: best for few points of few features.  On many threads, which
# would wait for the interpreter's lock between blocks of rows, also for more (256 features of 1,500 points: 0.22 s for
# 0.30 s in blocks on two threads, 0.22 s for 0.08 s on sixteen).
MOST_POINTS = 3000
MOST_FEATURES, MANY_FEATURES = 48, 300
MANY_THREADS = 4
MOST_VALUES = 800_000
# CSR points of a lower density are better solved from the matrix of their sparse rows than from dense rows on demand.
LEAST_DENSITY = 0.3


class PointColumns(NamedTuple):
    """Prepared points (d, N), half their squared norms (N,), code and parameters of the function of products."""

    points: NDArray[Any]
    half_norms: NDArray[Any]
    code: int
    parameters: NDArray[np.float64]


@loop
def fill_row(columns: Any, k: int, first: int, middle: int, second: int, row: Any) -> None:
    """Kernel values of local point k with all local points, into row (n,)."""
    U, a, row = borrowed(columns.points), borrowed(columns.half_norms), borrowed(row)
    n = row.shape[0]
    own = first + k if k < middle else second + k - middle
    row[:] = 0
    head, tail = row[:middle], row[middle:]
    for f in range(U.shape[0]):
        weight = U[f, own]
        line = U[f, first : first + middle]
        for j in range(middle):
            head[j] += weight * line[j]
        line = U[f, second : second + n - middle]
        for j in range(n - middle):
            tail[j] += weight * line[j]
    if columns.code != LINEAR:
        transform_row(columns.code, columns.parameters, head, a[own], a[first : first + middle])
        transform_row(columns.code, columns.parameters, tail, a[own], a[second : second + n - middle])


@loop
def fill_all(columns: Any, first: int, middle: int, second: int, K: Any) -> None:
    """All kernel values between the local points, into K (n, n), by one product."""
    U, a = columns.points, columns.half_norms
    n = K.shape[0]
    points = np.empty((U.shape[0], n), U.dtype)
    norms = np.empty(n, U.dtype)
    # Element by element: assignments of slices take seconds to compile.
    for k in range(n):
        at = first + k if k < middle else second + k - middle
        norms[k] = a[at]
        for f in range(U.shape[0]):
            points[f, k] = U[f, at]
    np.dot(points.T, points, K)
    if columns.code != LINEAR:
        for k in range(n):
            transform_row(columns.code, columns.parameters, K[k], norms[k], norms)


class RowsOnDemand:
    """Dense points prepared for a kernel that is a compiled function of products or distances.

    `shape` is that of the points, (N, d); `dtype` that of the values; `diagonal()` gives k(x_i, x_i), (N,).
    """

    def __init__(self, tiles: Tiles, X: Any) -> None:
        self._tiles, self._points = tiles, X
        self.shape = (tiles.left.n, tiles.left.d)
        self.dtype = tiles.dtype
        self.diagonal = tiles.diagonal

    @classmethod
    def of(cls, kernel: Any, X: Any, precision: Any) -> Self | None:
        """Those of the points X (N, d); None where the kernel is no such function or they are best kept sparse."""
        if kernel.profile is None or kernel.profile.name not in CODES:
            return None
        if sp.issparse(X) and not worth_densifying(X):
            numbers = np.prod(X.shape)
            if X.nnz <= LEAST_DENSITY * numbers or numbers > MOST_VALUES:
                return None
        return cls(Tiles(kernel.profile, X, dtype=precision, dense=True), X)

    @staticmethod
    def suit(n: int, d: int) -> bool:
        """Whether problems of n points of d features are best solved a row at a time, rather than from their matrix."""
        most = MANY_FEATURES if threads.count() >= MANY_THREADS else MOST_FEATURES
        return n <= MOST_POINTS and d <= most and n * d <= MOST_VALUES

    def columns(self, order: NDArray[np.intp] | None = None) -> PointColumns:
        """All points, or those at `order` in that order, for `fill_row` and `fill_all`."""
        points, tiles = self._tiles.left, self._tiles
        U, a = (points.U, points.a) if order is None else (points.U[order], points.a[order])
        return PointColumns(np.ascontiguousarray(U.T), a, tiles.code, tiles.parameters)

    def block(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[Any]:
        """K[rows][:, columns]; one index object for both costs half."""
        return self._tiles.fill(rows, columns)

    def exact_dot(
        self, rows: NDArray[np.intp], columns: NDArray[np.intp], c: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """K[rows][:, columns] c with every value computed again from the points in float64."""
        both = Tiles(self._tiles.profile, self._points[np.concatenate((rows, columns))], dtype=np.float64)
        return np.asarray(both.fill(slice(0, len(rows)), slice(len(rows), None)) @ c)
