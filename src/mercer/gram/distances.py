"""Squared distances between all points, kept once and turned into the matrix of any isotropic kernel.

D_ij = |x_i - x_j|^2 = |x_i|^2 + |x_j|^2 - 2 <x_i, x_j>, on centred points, with D_ij >= 0 and D_ii = 0.  A new width
of a Gaussian is then one elementwise pass, exp(-D / (2 sigma^2)), in place of a product over d features; and a block of
its matrix is that pass over a block of D.  Products run in the precision of D: its error is about
(1e-7 in float32, 4e-16 in float64) |x|^2.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import resources as memory
from mercer import threads
from mercer.compiled import loop
from mercer.errors import BudgetTooSmall, InvalidInput
from mercer.gram import cost
from mercer.gram.cpu_engine import engine_of
from mercer.gram.dense import DenseGram
from mercer.gram.points import AnyIndex, Points, check_index, check_points, length
from mercer.gram.tiles import Points as PreparedPoints
from mercer.gram.tiles import Tiles, preparation
from mercer.gram.transform import transform_row
from mercer.kernels.profile import Profile

STRIP = 256
# Sparse points are made dense where that takes at most this share of the budget, and a dense product no more time.
DENSE_SHARE = 0.25
DENSE_FROM_DENSITY = 1.0 / 16.0


@loop
def _finish(norms: Any, start: int, stop: int, D: Any) -> None:
    """Turn the products in the rows start..stop into squared distances, and the diagonal into zeros."""
    two, zero = D.dtype.type(2.0), D.dtype.type(0.0)
    for i in range(start, stop):
        own, line = norms[i], D[i]
        for j in range(D.shape[1]):
            value = own + norms[j] - two * line[j]
            line[j] = value if value > zero else zero
        line[i] = zero


@loop
def _stretch(
    D: Any, rows: Any, left: int, start: int, stop: int, half: Any, code: int, parameters: Any, out: Any
) -> None:
    """out[a] = g(half D[rows[a], left:]) for a in start..stop."""
    m = out.shape[1]
    nothing = np.zeros(max(m, 1), D.dtype)
    for a in range(start, stop):
        source, line = D[rows[a], left : left + m], out[a]
        for j in range(m):
            line[j] = half * source[j]
        transform_row(code, parameters, line, nothing[0], nothing[:m])


@loop
def _gather(
    D: Any, rows: Any, columns: Any, start: int, stop: int, half: Any, code: int, parameters: Any, out: Any
) -> None:
    """out[a, b] = g(half D[rows[a], columns[b]]) for a in start..stop."""
    m = columns.shape[0]
    nothing = np.zeros(max(m, 1), D.dtype)
    for a in range(start, stop):
        source, line = D[rows[a]], out[a]
        for j in range(m):
            line[j] = half * source[columns[j]]
        transform_row(code, parameters, line, nothing[0], nothing[:m])


def _products(U: NDArray[Any], start: int, stop: int, D: NDArray[Any]) -> None:
    np.dot(U[start:stop], U.T, out=D[start:stop])


class SquaredDistances:
    """All squared distances of X (n, d), dense or CSR; `values` is D (n, n).

    Parameters
    ----------
    X : the points.
    memory : budget for D and for one matrix made from it, 2 n^2 values; None: a quarter of the free memory.
    precision : "float64" or "float32".

    """

    def __init__(self, X: Any, *, memory: int | float | str | None = None, precision: str = "float64") -> None:
        self.X = check_points(X, "X")
        self.n = int(self.X.shape[0])
        self.dtype = cost.value_type(precision)
        self.budget = _budget(self.X, self.dtype.itemsize, memory)
        self.values = _squared_distances(self.X, self.dtype, self.budget)

    @property
    def capacity(self) -> int:
        """How many n x n matrices may be held at a time beside the distances."""
        return int(self.budget // max(1, self.values.nbytes)) - 1

    def at(self, kernel: Any) -> "TransformedDistances":
        """The matrix of an isotropic kernel, block by block."""
        return TransformedDistances(self.values, kernel, self.X.shape[1])

    def gram(self, kernel: Any) -> DenseGram:
        """The whole matrix of an isotropic kernel: one pass over the distances."""
        matrix = self.at(kernel).block(None, None)
        values = engine_of(kernel, self.X, None, self.dtype)
        plan = cost.plan("dense", values.task(self.budget)).because("one pass over squared distances that are kept")
        return DenseGram(values, plan, matrix)


class TransformedDistances:
    """k = g(-D / 2) for kept distances D (n, n) between points of d features."""

    def __init__(self, D: NDArray[Any], kernel: Any, d: int) -> None:
        if not is_function_of_distance(kernel):
            raise InvalidInput(f"{kernel!r} is not a function of the distance; build Gram(kernel, X) instead")
        self.D, self.kernel, self.d = D, kernel, d

    def block(self, rows: AnyIndex, columns: AnyIndex, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Values between the points `rows` and the points `columns`, in the precision of D."""
        n, D = len(self.D), self.D
        some, others = check_index(rows, n, "rows"), check_index(columns, n, "columns")
        points = np.arange(n, dtype=np.intp)[some] if isinstance(some, slice) else some
        out = np.empty((len(points), length(others)), D.dtype) if out is None else out
        parts = threads.split(len(points), step=16)
        if not _fused(self.kernel):
            for start in range(0, len(points), STRIP):
                here = slice(start, start + STRIP)
                out[here] = self.kernel.of_distance(np.sqrt(D[points[here]][:, others]), self.d)
            return out
        code, factor, parameters = preparation(self.kernel.profile)
        half = D.dtype.type(-0.5 * factor * factor)
        run: Any = _gather
        where: Any = others
        if isinstance(others, slice) and (others.step or 1) == 1:
            run, where = _stretch, others.start
        elif isinstance(others, slice):
            where = np.arange(n, dtype=np.intp)[others]
        threads.run(run, [(D, points, where, a, b, half, code, parameters, out) for a, b in parts])
        return out


def is_function_of_distance(kernel: Any) -> bool:
    """Whether the matrix of a kernel follows from the distances between its points."""
    return _fused(kernel) or bool(kernel.isotropic)


def _fused(kernel: Any) -> bool:
    """Whether a kernel is a compiled function of the plain squared distance."""
    profile = kernel.profile
    return profile is not None and profile.base == "squared_distance" and profile.scale is None


def _as_dense(X: Points, budget: int, itemsize: int) -> bool:
    """Whether CSR points (n, d) are few and full enough to be made dense."""
    n, d = X.shape
    return bool(itemsize * n * d <= DENSE_SHARE * budget and X.nnz >= DENSE_FROM_DENSITY * n * d)


def _budget(X: Points, itemsize: int, limit: int | float | str | None) -> int:
    """The budget, refused where it does not hold D and one matrix made from it."""
    budget = memory.budget(limit)
    n, d = X.shape
    sparse = sp.issparse(X) and not _as_dense(X, budget, itemsize)
    points = 48 * X.nnz if sparse else (itemsize + (8 if sp.issparse(X) else 0)) * n * d
    needed = 2 * n * n * itemsize + points
    if budget < needed:
        raise BudgetTooSmall(
            f"memory={budget} ({memory.show(budget)}) does not hold the distances of {n} points and a matrix made from "
            f"them: the smallest workable budget is memory={needed} ({memory.show(needed)}); build Gram(kernel, X) "
            "for each kernel instead"
        )
    return budget


def _squared_distances(X: Points, dtype: np.dtype[Any], budget: int) -> NDArray[Any]:
    """D from one product of all points with one another."""
    n = X.shape[0]
    D = np.empty((n, n), dtype)
    strips = [(a, min(n, a + STRIP)) for a in range(0, n, STRIP)]
    if sp.issparse(X) and _as_dense(X, budget, dtype.itemsize):
        X = X.toarray()
    if sp.issparse(X):
        tiles = Tiles(Profile("product", "linear"), X, dtype=dtype)
        norms = tiles.diagonal()
        tiles.fill(out=D)
    else:
        points = PreparedPoints(X, 1.0, X.mean(axis=0, dtype=np.float64), True, dtype)
        norms = points.norms.astype(dtype)
        with threads.one_blas_thread():
            threads.run(_products, [(points.U, a, b, D) for a, b in strips])
    threads.run(_finish, [(norms, a, b, D) for a, b in strips])
    return D
