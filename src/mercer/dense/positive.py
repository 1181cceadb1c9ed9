"""Cholesky factors A = L L': factorise, solve, invert.

Everything works on the lower triangle of a matrix of float32 or float64, in either order: LAPACK thinks in columns and
sees the lower triangle of rows as the upper one.  What a function writes over is said; the others return new arrays,
in Fortran order.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mercer.dense.routines import Matrix, call
from mercer.errors import InvalidInput, NotPositiveDefinite

Poll = Callable[[], None]

Run = Callable[[Callable[..., None], Sequence[tuple[Any, ...]]], Any]

SHARED_COLUMNS = 256  # columns, and rows of a part, where the parts of a column are shared out
COLUMNS = 512  # columns of a factor between two polls: a few tenths of a second at 10,000 points
MIRRORED = 256  # rows turned at a time: a square of them stays in cache


def factorise(A: Matrix, poll: Poll | None = None, run: Run | None = None) -> bool:
    """Write L with A = L L' over the lower triangle of A (n, n); False where A is not positive definite.

    With `poll`, which may raise to give up, block columns are factorised one after the other and it is called between
    them: column j of L is (A_j - L_left L_j') L_jj^-T, a product and a triangular solve with as many operations as
    LAPACK spends, and the strict upper triangle is left alone either way.  With `run`, which is `mercer.threads.run` or
    calls a function on tuples of arguments in a way of its own, the rows of a block column are shared out, each part to
    one thread of BLAS.
    """
    width = COLUMNS if run is None else SHARED_COLUMNS
    if (poll is None and run is None) or len(A) <= 2 * width:
        return call("potrf", A.dtype, side(A), len(A), A, lead(A)) == 0
    for start in range(0, len(A), width):
        if poll is not None:
            poll()
        if not _factorise_column(A, start, min(len(A), start + width), run or _in_turn):
            return False
    return True


def _in_turn(function: Callable[..., None], tasks: Sequence[tuple[Any, ...]]) -> None:
    """All rows at once."""
    function(tasks[0][0], tasks[-1][1])


def _factorise_column(A: Matrix, start: int, stop: int, run: Run) -> bool:
    """Columns start..stop of L, those left of them being there."""
    dtype, n, width = A.dtype, len(A), stop - start
    rows = A.flags.c_contiguous

    def at(i: int, j: int) -> int:
        return int(A.ctypes.data) + A.itemsize * (i * n + j if rows else i + j * n)

    # LAPACK thinks in columns: in C order it sees U = L' in the upper triangle, and products are turned around.
    plain, turned = (b"T", b"N") if rows else (b"N", b"T")
    corner = at(start, start)
    if start:
        call("syrk", dtype, side(A), plain, width, start, -1.0, at(start, 0), n, 1.0, corner, n)
    if call("potrf", dtype, side(A), width, corner, n):
        return False

    def below(first: int, last: int) -> None:
        under, height = at(first, start), last - first
        if start:
            left, right = (at(start, 0), at(first, 0)) if rows else (at(first, 0), at(start, 0))
            sizes = (width, height) if rows else (height, width)
            call("gemm", dtype, plain, turned, *sizes, start, -1.0, left, n, right, n, 1.0, under, n)
        ahead = (b"L", b"U", b"T", b"N", width, height) if rows else (b"R", b"L", b"T", b"N", height, width)
        call("trsm", dtype, *ahead, 1.0, corner, n, under, n)

    if stop < n:
        borders = [*range(stop, n, SHARED_COLUMNS), n]
        run(below, list(pairwise(borders)))
    return True


def cholesky(A: Matrix, refusal: str = "the matrix is not positive definite to working precision") -> Matrix:
    """L (n, n) with A = L L', in the lower triangle of a copy; `refusal` is the error where there is none."""
    L = np.array(A, order="F")
    if not factorise(L):
        raise NotPositiveDefinite(refusal)
    return L


def solve(L: Matrix, R: Matrix) -> Matrix:
    """(L L')^-1 R for R (n,) or (n, k), from a factor (n, n) of `factorise`."""
    X = np.array(R, L.dtype, order="F")
    call("potrs", L.dtype, side(L), len(L), _columns(L, X), L, lead(L), X, lead(X))
    return X


def solve_rows(L: Matrix, B: Matrix) -> None:
    """Write (L L')^-1 b over each row b of B (m, n) in C order."""
    _check_rows(L, B)
    call("potrs", L.dtype, side(L), len(L), len(B), L, lead(L), B, lead(L))


def solve_positive(A: Matrix, R: Matrix) -> Matrix:
    """A^-1 R for a positive definite A (n, n) and R (n,) or (n, k)."""
    return solve(cholesky(A), R)


def solve_triangular(L: Matrix, R: Matrix, transposed: bool = False) -> Matrix:
    """L^-1 R, or L^-T R, for R (n,) or (n, k); L (n, n) in a lower triangle."""
    X = np.array(R, L.dtype, order="F")
    turned = b"T" if transposed != L.flags.c_contiguous else b"N"
    call("trtrs", L.dtype, side(L), turned, b"N", len(L), _columns(L, X), L, lead(L), X, lead(X))
    return X


def solve_triangular_rows(L: Matrix, B: Matrix) -> None:
    """Write L^-1 b over each row b of B (m, n) in C order."""
    _check_rows(L, B)
    turned = b"T" if L.flags.c_contiguous else b"N"
    call("trtrs", L.dtype, side(L), turned, b"N", len(L), len(B), L, lead(L), B, lead(L))


def invert_lower(L: Matrix) -> None:
    """Write L^-1 over the lower triangle of L (n, n)."""
    call("trtri", L.dtype, side(L), b"N", len(L), L, lead(L))


def invert(A: Matrix) -> bool:
    """Write the inverse of A (n, n) over it, both triangles; False where A is not positive definite."""
    if not factorise(A):
        return False
    invert_factored(A)
    return True


def invert_factored(L: Matrix) -> None:
    """Write (L L')^-1, both triangles, over a factor L (n, n) of `factorise`."""
    call("potri", L.dtype, side(L), len(L), L, lead(L))
    mirror(L)


def inverse_diagonal(L: Matrix) -> Matrix:
    """The diagonal of (L L')^-1 (n,), column sums of squares of L^-1, which is written over the factor L (n, n)."""
    invert_lower(L)
    n = len(L)
    diagonal = np.empty(n, L.dtype)
    for start in range(0, n, MIRRORED):
        stop = min(start + MIRRORED, n)
        triangle, below = np.tril(L[start:stop, start:stop]), L[stop:, start:stop]
        diagonal[start:stop] = np.einsum("ij,ij->j", triangle, triangle) + np.einsum("ij,ij->j", below, below)
    return diagonal


def condition(L: Matrix, size: float) -> float:
    """An estimate of cond_1(A) from the factor L (n, n) of A and its 1-norm `size`."""
    reciprocal, work, places = np.zeros(1, L.dtype), np.empty(3 * len(L), L.dtype), np.empty(len(L), np.int32)
    call("pocon", L.dtype, side(L), len(L), L, lead(L), size, reciprocal, work, places)
    return float(1.0 / reciprocal[0]) if reciprocal[0] > 0 else np.inf


def factorise_band(band: Matrix) -> bool:
    """Write L over the band of A = L L': column j of A from the diagonal down is column j of `band` (b + 1, n).

    `band` is in Fortran order.  False where A is not positive definite.
    """
    width, n = band.shape
    return call("pbtrf", band.dtype, b"L", n, width - 1, band, width) == 0


def solve_band(band: Matrix, R: Matrix) -> Matrix:
    """(L L')^-1 R for R (n, k), from a factor (b + 1, n) of `factorise_band`."""
    X = np.array(R, band.dtype, order="F")
    width, n = band.shape
    call("pbtrs", band.dtype, b"L", n, width - 1, X.shape[1], band, width, X, lead(X))
    return X


def mirror(A: Matrix) -> None:
    """Write the lower triangle of A (n, n) over the upper one."""
    for start in range(0, len(A), MIRRORED):
        stop = start + MIRRORED
        A[:start, start:stop] = A[start:stop, :start].T
        corner = np.tril(A[start:stop, start:stop])
        A[start:stop, start:stop] = corner + np.tril(corner, -1).T


def side(A: Matrix) -> bytes:
    """What LAPACK calls the lower triangle of A."""
    return b"U" if A.flags.c_contiguous else b"L"


def lead(A: Matrix) -> int:
    """The distance of two columns of a square matrix, or of one in Fortran order."""
    return max(1, len(A))


def _columns(L: Matrix, X: Matrix) -> int:
    """Number of right-hand sides in X (n,) or (n, k)."""
    if X.ndim not in (1, 2) or len(X) != len(L):
        raise InvalidInput(f"right-hand sides of length {len(L)} are needed, got an array of shape {X.shape}")
    return int(np.prod(X.shape[1:]))


def _check_rows(L: Matrix, B: Any) -> None:
    if B.shape[1:] != (len(L),) or not B.flags.c_contiguous:
        raise InvalidInput(f"rows of length {len(L)} in C order are needed, got an array of shape {B.shape}")
