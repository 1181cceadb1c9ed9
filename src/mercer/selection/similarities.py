"""Kernel values for a search: many widths, many subsets, one set of squared distances.

    stored      D (n, n) in float32, once; a block of the matrix for any width is one transform of a block of D
    streamed    where D does not fit in the memory, or the kernel is no function of the distance: blocks come from the
                points, tile by tile

Either way `at(kernel)` gives `block(rows, columns)` in float32, callable from several threads at once.  Distances come
from products in float32 of centred points: their error is about 1e-7 |x|^2.
"""

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import threads
from mercer.compiled import loop
from mercer.gram import Gram
from mercer.gram.memory import budget
from mercer.gram.transform import CODES, preparation, transform_row
from mercer.kernels import Kernel

Index = NDArray[np.intp]
Matrix = NDArray[np.float32]

STRIP = 256
# Sparse points are made dense where that takes at most this share of the budget.
DENSE_SHARE = 0.25


class Values(Protocol):
    """The matrix of one kernel."""

    def block(self, rows: Index | slice, columns: Index | slice, out: Matrix | None = None) -> Matrix:
        """Values between the points `rows` and the points `columns`, float32 and contiguous."""
        ...


class Similarities(Protocol):
    """The points of a search; `capacity` is how many n x n matrices may be held at a time."""

    n: int
    capacity: int

    def at(self, kernel: Kernel) -> Values:
        """The matrix of this kernel."""
        ...


@loop
def _finish(norms: Any, start: int, stop: int, D: Any) -> None:
    """Turn the products in the rows start..stop into squared distances, and the diagonal into zeros."""
    two, zero = np.float32(2.0), np.float32(0.0)
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
    nothing = np.zeros(max(m, 1), np.float32)
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
    nothing = np.zeros(max(m, 1), np.float32)
    for a in range(start, stop):
        source, line = D[rows[a]], out[a]
        for j in range(m):
            line[j] = half * source[columns[j]]
        transform_row(code, parameters, line, nothing[0], nothing[:m])


def _products(U: Any, norms: Matrix, start: int, stop: int, D: Matrix) -> None:
    if sp.issparse(U):
        D[start:stop] = (U[start:stop] @ U.T).toarray()
    else:
        np.dot(U[start:stop], U.T, out=D[start:stop])
    _finish(norms, start, stop, D)


class Distances:
    """Squared distances between all points of X (n, d), kept in float32."""

    def __init__(self, X: Any, memory: int) -> None:
        self.n = int(X.shape[0])
        self.capacity = int(memory // max(1, 4 * self.n**2)) - 1
        if sp.issparse(X) and 4 * X.shape[0] * X.shape[1] <= DENSE_SHARE * memory:
            X = X.toarray()
        U = X.astype(np.float32) if sp.issparse(X) else (X - X.mean(axis=0, dtype=np.float64)).astype(np.float32)
        squares = U.multiply(U).sum(axis=1) if sp.issparse(U) else np.einsum("ij,ij->i", U, U, dtype=np.float64)
        norms = np.asarray(squares, dtype=np.float32).ravel()
        self.values: Matrix = np.empty((self.n, self.n), np.float32)
        with threads.one_blas_thread():
            strips = [(a, min(self.n, a + STRIP)) for a in range(0, self.n, STRIP)]
            threads.run(_products, [(U, norms, a, b, self.values) for a, b in strips])

    def at(self, kernel: Kernel) -> "Transformed":
        """The matrix of an isotropic kernel with a compiled transform."""
        return Transformed(self.values, kernel)


class Transformed:
    """g of stored distances."""

    def __init__(self, D: Matrix, kernel: Kernel) -> None:
        assert kernel.profile is not None
        self.D = D
        self.code, factor, self.parameters = preparation(kernel.profile)
        self.half = np.float32(-0.5 * factor * factor)

    def block(self, rows: Index | slice, columns: Index | slice, out: Matrix | None = None) -> Matrix:
        """Values between the points `rows` and the points `columns`."""
        n = len(self.D)
        points = np.arange(*rows.indices(n), dtype=np.intp) if isinstance(rows, slice) else rows
        contiguous = isinstance(columns, slice)
        start, stop, _ = columns.indices(n) if isinstance(columns, slice) else (0, len(columns), 1)
        out = np.empty((len(points), stop - start), np.float32) if out is None else out
        fill: Any = _stretch if contiguous else _gather
        threads.run(
            fill,
            [
                (self.D, points, start if contiguous else columns, a, b, self.half, self.code, self.parameters, out)
                for a, b in threads.split(len(points), step=16)
            ],
        )
        return out


class Streamed:
    """Values computed from the points when they are asked for."""

    def __init__(self, X: Any, memory: int) -> None:
        self.X = X
        self.n = int(X.shape[0])
        self.memory = memory
        self.capacity = int(memory // max(1, 4 * self.n**2))

    def at(self, kernel: Kernel) -> "Computed":
        """The matrix of any kernel on these points."""
        return Computed(Gram(kernel, self.X, storage="streamed", precision="float32", memory=self.memory))


class Computed:
    """Blocks of a streamed Gram operator."""

    def __init__(self, gram: Any) -> None:
        self.gram = gram

    def block(self, rows: Index | slice, columns: Index | slice, out: Matrix | None = None) -> Matrix:
        """Values between the points `rows` and the points `columns`."""
        where = [
            np.arange(*i.indices(self.gram.shape[0]), dtype=np.intp) if isinstance(i, slice) else i
            for i in (rows, columns)
        ]
        values = np.ascontiguousarray(self.gram.block(*where), dtype=np.float32)
        if out is None:
            return values
        out[:] = values
        return out


def similarities(X: Any, kernel: Kernel, *, widths: int, memory: int | str | None = None) -> Distances | Streamed:
    """Stored distances where several widths of a distance kernel fit in the memory with one matrix beside them."""
    allowed = budget(memory)
    n = int(X.shape[0])
    profile = kernel.profile
    fused = (
        profile is not None and profile.base == "squared_distance" and profile.scale is None and profile.name in CODES
    )
    if fused and widths > 1 and 8 * n * n + 4 * X.shape[0] * X.shape[1] <= allowed:
        return Distances(X, allowed)
    return Streamed(X, allowed)
