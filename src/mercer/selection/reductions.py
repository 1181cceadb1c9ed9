"""One matrix, many shifts: (A + r I)^-1 and its diagonal for hundreds of ridges r.

Four reductions with the same two methods, from S = (A + r I)^-1 W and the diagonal of the inverse:

    Repeated      a Cholesky factor for each r                 2/3 n^3 for each value, nothing once
    Tridiagonal   A = Q T Q', T tridiagonal                    8/3 n^3 once,  4 n^2 for each value
    Spectral      A = V diag(s) V'                             about 6 n^3 once,  2 n^2 for each value
    Factored      A = F F', F (n, m) thin                      n m^2 once,  2 n m for each value

T + r I = L D L' with L unit bidiagonal, so the diagonal of the inverse is a sum of squares along a recurrence of
length n that runs down the columns of Q' for many points and many r at once:  z_j = Q'_j - l_{j-1} z_{j-1},
G = sum_j z_j^2 / d_j.  It needs no eigenvectors, which are the expensive part of a spectral decomposition; and the
trace, hence generalised cross-validation, needs not even Q.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from mercer import dense, threads
from mercer.compiled import loop
from mercer.dense import Poll
from mercer.errors import NotPositiveDefinite
from mercer.solvers.linear.bordered import Array, cholesky

# Values handled together: enough to make the products BLAS-3, few enough that n x 16 x (q + k) numbers stay small.
TOGETHER = 16


class Reduction(ABC):
    """(A + r I)^-1 for many r, where A is n x n, symmetric and positive semidefinite."""

    @abstractmethod
    def resolve(self, W: Array, ridges: Sequence[float]) -> Iterator[tuple[Array, Array]]:
        """For each ridge in turn: S = (A + r I)^-1 W (n, p) and the diagonal of (A + r I)^-1 (n,)."""

    def moments(self, W: Array, ridges: Sequence[float]) -> Iterator[tuple[Array, Array, float]]:
        """For each ridge in turn: W'(A + r I)^-1 W, W'(A + r I)^-2 W (p, p), and the trace of (A + r I)^-1.

        By the work of `resolve` where a reduction has no cheaper way: the trace of an inverse is no cheaper than its
        diagonal.
        """
        for solved, diagonal in self.resolve(W, ridges):
            yield W.T @ solved, solved.T @ solved, float(np.sum(diagonal))


class Repeated(Reduction):
    """A (n, n), Fortran-ordered, factored anew for each ridge."""

    def __init__(self, A: Array, poll: Poll | None = None) -> None:
        self.matrix, self.poll = A, poll

    def resolve(self, W: Array, ridges: Sequence[float]) -> Iterator[tuple[Array, Array]]:
        """2/3 n^3 operations for each ridge."""
        work = np.empty_like(self.matrix, order="F")
        for ridge in ridges:
            np.copyto(work, self.matrix)
            factor = cholesky(work, ridge, self.poll)
            solved = dense.solve(factor, W)
            yield solved, threads.apart(partial(dense.inverse_diagonal, factor), self.poll)


class Spectral(Reduction):
    """A (n, n) = V diag(s) V' by divide and conquer; A is overwritten."""

    def __init__(self, A: Array, poll: Poll | None = None) -> None:
        self.vectors = A
        values = threads.apart(lambda: dense.diagonalise(A), poll)
        # A is positive semidefinite: what lies below zero is rounding, as large as eps times the largest.
        self.values = _floor(values)

    def resolve(self, W: Array, ridges: Sequence[float]) -> Iterator[tuple[Array, Array]]:
        """One product for the solutions and one for the diagonals, `TOGETHER` values at a time."""
        rotated = self.vectors.T @ W
        n, p = rotated.shape
        for start in range(0, len(ridges), TOGETHER):
            inverse = _inverse(self.values, np.asarray(ridges[start : start + TOGETHER]))
            solved = self.vectors @ (rotated[:, :, None] * inverse[:, None, :]).reshape(n, -1)
            solved = solved.reshape(n, p, -1)
            diagonal = np.empty((n, inverse.shape[1]))
            for a, b in threads.split(n, parts=-(-n // 512)):
                diagonal[a:b] = self.vectors[a:b] ** 2 @ inverse
            for v in range(inverse.shape[1]):
                yield solved[:, :, v], diagonal[:, v]

    def moments(self, W: Array, ridges: Sequence[float]) -> Iterator[tuple[Array, Array, float]]:
        """O(n p^2) for each ridge."""
        rotated = self.vectors.T @ W
        for ridge in ridges:
            inverse = _inverse(self.values, np.asarray([ridge]))
            solved = rotated * inverse
            yield rotated.T @ solved, solved.T @ solved, float(np.sum(inverse))


class Factored(Reduction):
    """A (n, n) = F F' of F (n, m), m below n, through F'F = V diag(s) V'; ridges must be positive."""

    def __init__(self, F: Array) -> None:
        values, vectors = dense.eigen(F.T @ F)
        self.values = np.maximum(values, 0.0)
        self.rotated = F @ vectors

    def resolve(self, W: Array, ridges: Sequence[float]) -> Iterator[tuple[Array, Array]]:
        """(A + r I)^-1 = (I - F V (s + r)^-1 V'F') / r."""
        seen, squares = self.rotated.T @ W, self.rotated**2
        for ridge in ridges:
            inverse = _inverse(self.values, np.asarray([ridge]))
            yield (W - self.rotated @ (inverse * seen)) / ridge, (1.0 - squares @ inverse[:, 0]) / ridge


class Tridiagonal(Reduction):
    """A (n, n) = Q T Q' by Householder reflections; A is overwritten.

    `rotation` says whether Q itself is wanted (`resolve` needs it); without it Q is only applied.
    """

    def __init__(self, A: Array, rotation: bool = True, poll: Poll | None = None) -> None:
        n = A.shape[0]
        self.rows: Array | None = None
        if n < 3:
            self.diagonal, self.beside = np.diagonal(A).copy(), np.diagonal(A, -1).copy()
            self.rows = np.eye(max(n - 1, 0))
            return
        # In lower storage reflection j acts on rows j+1 and below: Q = diag(1, Q1), and Q1 lies below the diagonal.
        self.diagonal, self.beside, self.tau = threads.apart(lambda: dense.tridiagonalise(A), poll)
        self.reflections = np.asfortranarray(A[1:, :-1])
        if rotation:
            threads.apart(lambda: dense.rotation(self.reflections, self.tau), poll)
            self.rows = self.reflections.T  # (n - 1, n - 1), C-ordered: row j holds column j of Q1

    def rotate(self, W: Array) -> Array:
        """Q'W (n, p)."""
        first, rest = W[:1], W[1:]
        if self.rows is not None:
            return np.concatenate([first, self.rows @ rest])
        return np.concatenate([first, dense.rotate(self.reflections, self.tau, rest)])

    def factor(self, ridges: Array) -> tuple[Array, Array]:
        """T + r I = L D L' for each of v ridges: the pivots D (n, v), and below the diagonal of L (n - 1, v)."""
        pivots, below = _factor(self.diagonal, self.beside, ridges)
        _refuse_indefinite(pivots, np.max(np.abs(self.diagonal)) + np.max(ridges), ridges)
        return pivots, below

    def resolve(self, W: Array, ridges: Sequence[float]) -> Iterator[tuple[Array, Array]]:
        """O(n) for the solution, 4 n^2 for the diagonal, `TOGETHER` values at a time."""
        assert self.rows is not None
        rotated = self.rotate(W)
        n, p = rotated.shape
        for start in range(0, len(ridges), TOGETHER):
            pivots, below = self.factor(np.asarray(ridges[start : start + TOGETHER], dtype=np.float64))
            v = pivots.shape[1]
            solved = _solve(rotated, pivots, below)
            solved[1:] = (self.rows.T @ solved[1:].reshape(n - 1, -1)).reshape(n - 1, p, v)
            diagonal = np.empty((v, n))
            diagonal[:, 0] = _upwards(pivots, below)[1]
            parts = threads.split(n - 1, parts=-(-(n - 1) // 128))
            threads.run(_inverse_diagonal, [(self.rows, pivots, below, a, b, diagonal) for a, b in parts])
            for value in range(v):
                yield solved[:, :, value], diagonal[value]

    def moments(self, W: Array, ridges: Sequence[float]) -> Iterator[tuple[Array, Array, float]]:
        """O(n p) for each ridge, and Q is never formed."""
        rotated = self.rotate(W)
        for start in range(0, len(ridges), TOGETHER):
            pivots, below = self.factor(np.asarray(ridges[start : start + TOGETHER], dtype=np.float64))
            solved, traces = _solve(rotated, pivots, below), _upwards(pivots, below)[0]
            for value in range(pivots.shape[1]):
                S = solved[:, :, value]
                yield rotated.T @ S, S.T @ S, float(traces[value])


def _floor(values: Array) -> Array:
    """Eigenvalues of a semidefinite matrix with rounding below zero taken out; a truly negative one stays."""
    rounding = values.size * np.finfo(float).eps * float(np.max(np.abs(values), initial=0.0))
    return np.where(np.abs(values) <= rounding, np.maximum(values, 0.0), values)


def _inverse(values: Array, ridges: Array) -> Array:
    """1 / (s + r) (n, v), refused where the shifted matrix is not positive definite."""
    shifted = values[:, None] + ridges
    _refuse_indefinite(shifted, np.max(np.abs(values), initial=0.0), ridges)
    return np.asarray(1.0 / shifted)


def _refuse_indefinite(pivots: Array, largest: float, ridges: Array) -> None:
    """Refuse a matrix with a pivot or eigenvalue that is rounding of the largest, or less."""
    if not np.all(pivots > np.finfo(float).eps * largest):
        raise NotPositiveDefinite(
            f"the kernel matrix with ridge 1/C = {np.min(ridges):.3g} on its diagonal is not positive definite to "
            "working precision: leave the largest values of C out, or take a positive definite kernel."
        )


@loop
def _factor(diagonal: Array, beside: Array, ridges: Array) -> tuple[Array, Array]:
    n, v = diagonal.shape[0], ridges.shape[0]
    pivots, below = np.empty((n, v)), np.empty((max(n - 1, 0), v))
    for r in range(v):
        pivots[0, r] = diagonal[0] + ridges[r]
    for j in range(1, n):
        e, d = beside[j - 1], diagonal[j]
        for r in range(v):
            ratio = e / pivots[j - 1, r]
            below[j - 1, r] = ratio
            pivots[j, r] = d + ridges[r] - e * ratio
    return pivots, below


@loop
def _solve(rotated: Array, pivots: Array, below: Array) -> Array:
    """(L D L')^-1 applied to (n, p) for each of v factors: (n, p, v)."""
    n, p = rotated.shape
    v = pivots.shape[1]
    x = np.empty((n, p, v))
    for c in range(p):
        for r in range(v):
            x[0, c, r] = rotated[0, c]
    for j in range(1, n):
        for c in range(p):
            for r in range(v):
                x[j, c, r] = rotated[j, c] - below[j - 1, r] * x[j - 1, c, r]
    for c in range(p):
        for r in range(v):
            x[n - 1, c, r] /= pivots[n - 1, r]
    for j in range(n - 2, -1, -1):
        for c in range(p):
            for r in range(v):
                x[j, c, r] = x[j, c, r] / pivots[j, r] - below[j, r] * x[j + 1, c, r]
    return x


@loop
def _upwards(pivots: Array, below: Array) -> tuple[Array, Array]:
    """Trace and first entry of the diagonal of (L D L')^-1, (v,) each; it runs upwards, g_j = 1/d_j + l_j^2 g_{j+1}."""
    n, v = pivots.shape
    traces, first = np.zeros(v), np.zeros(v)
    for r in range(v):
        g = 0.0
        for j in range(n - 1, -1, -1):
            l = below[j, r] if j < n - 1 else 0.0
            g = 1.0 / pivots[j, r] + l * l * g
            traces[r] += g
        first[r] = g
    return traces, first


@loop
def _inverse_diagonal(rows: Array, pivots: Array, below: Array, start: int, stop: int, out: Array) -> None:
    """Entries start + 1 .. stop of the diagonal of Q (L D L')^-1 Q' for v factors, written to out (v, n).

    The recurrence restarts from zero in the first row of Q', which touches only the first point; the pieces in use
    (4 factors, at most 128 points) stay in the nearest cache while the rows of Q' pass by once.
    """
    m, v = rows.shape[0], pivots.shape[1]
    width = stop - start
    z, total = np.empty((4, width)), np.empty((4, width))
    for group in range(0, v, 4):
        several = min(4, v - group)
        z[:] = 0.0
        total[:] = 0.0
        for j in range(m):
            row = rows[j, start:stop]
            for g in range(several):
                l, weight = below[j, group + g], 1.0 / pivots[j + 1, group + g]
                zg, tg = z[g], total[g]
                for i in range(width):
                    value = row[i] - l * zg[i]
                    zg[i] = value
                    tg[i] += value * value * weight
        for g in range(several):
            out[group + g, start + 1 : stop + 1] = total[g]
