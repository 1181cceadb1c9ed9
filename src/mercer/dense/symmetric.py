"""Symmetric matrices that need not be definite: eigenvectors, L D L', tridiagonal form; products with one triangle."""

import numpy as np
import scipy.linalg

from mercer.dense.positive import lead, side
from mercer.dense.routines import Matrix, call, call_with_room
from mercer.errors import InvalidInput


def eigen(A: Matrix) -> tuple[Matrix, Matrix]:
    """Eigenvalues (n,), rising, and eigenvectors (n, n) of a symmetric A (n, n); its lower triangle is read."""
    vectors = np.array(A, order="F")
    return diagonalise(vectors), vectors


def eigenvalues(A: Matrix) -> Matrix:
    """Eigenvalues (n,), rising, of a symmetric A (n, n)."""
    return _diagonalised(np.array(A, order="F"), b"N")


def diagonalise(A: Matrix) -> Matrix:
    """Eigenvalues (n,), rising, of a symmetric A (n, n) in Fortran order, over which its eigenvectors are written."""
    return _diagonalised(A, b"V")


def _diagonalised(A: Matrix, job: bytes) -> Matrix:
    values = np.empty(len(A), A.dtype)
    if call_with_room("syevd", A.dtype, job, b"L", len(A), A, lead(A), values, integers=True):
        raise InvalidInput("the eigenvalues of the matrix do not converge: it may hold values that are not finite")
    return values


def pseudo_inverse(A: Matrix) -> Matrix:
    """A^+ (n, n) of a symmetric A (n, n): eigenvalues within n eps of the largest count as zero."""
    values, vectors = eigen(A)
    sizes = np.abs(values)
    kept = sizes > len(A) * np.finfo(A.dtype).eps * sizes.max(initial=0.0)
    return np.asarray((vectors[:, kept] / values[kept]) @ vectors[:, kept].T)


def factorise_indefinite(A: Matrix) -> Matrix | None:
    """Write L, D with A = L D L' over a symmetric A (n, n) in Fortran order; the pivots (n,), None where singular."""
    pivots = np.empty(len(A), np.int32)
    return None if call_with_room("sytrf", A.dtype, b"L", len(A), A, lead(A), pivots) > 0 else pivots


def solve_indefinite(factor: Matrix, pivots: Matrix, R: Matrix) -> Matrix:
    """A^-1 R for R (n, k), from the factor (n, n) and the pivots (n,) of `factorise_indefinite`."""
    X = np.array(R, factor.dtype, order="F")
    n = len(factor)
    call("sytrs", factor.dtype, b"L", n, X.shape[1], factor, lead(factor), pivots, X, lead(X))
    return X


def tridiagonalise(A: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Householder's A = Q T Q' of a symmetric A (n, n) in Fortran order, n > 1.

    The reflections are written over its lower triangle.  Returns the diagonal (n,) of T, the numbers beside it (n - 1,)
    and the factors (n - 1,) of the reflections.
    """
    diagonal, beside, factors = (np.empty(len(A) - less, A.dtype) for less in (0, 1, 1))
    call_with_room("sytrd", A.dtype, b"L", len(A), A, lead(A), diagonal, beside, factors)
    return diagonal, beside, factors


def rotation(reflections: Matrix, factors: Matrix) -> None:
    """Write Q (n, n) over the reflections of `tridiagonalise` that make it, moved to the lower triangle (n, n)."""
    n = len(reflections)
    call_with_room("orgqr", reflections.dtype, n, n, n, reflections, lead(reflections), factors)


def rotate(reflections: Matrix, factors: Matrix, W: Matrix) -> Matrix:
    """Q'W for W (n, k), from the reflections (n, n) that `rotation` takes."""
    X, n = np.array(W, reflections.dtype, order="F"), len(reflections)
    given = (b"L", b"T", n, X.shape[1], n, reflections, lead(reflections), factors, X, lead(X))
    call_with_room("ormqr", X.dtype, *given)
    return X


def lowest_eigenvector(diagonal: Matrix, beside: Matrix) -> Matrix:
    """The eigenvector (n,) of the smallest eigenvalue of a tridiagonal matrix."""
    return np.asarray(scipy.linalg.eigh_tridiagonal(diagonal, beside, select="i", select_range=(0, 0))[1][:, 0])


def symmetric_product(A: Matrix, V: Matrix, lower: bool = True) -> Matrix:
    """A V for V (n,) or (n, k), with only one triangle of A (n, n) read; A in Fortran order."""
    triangle = b"L" if lower else b"U"
    if V.ndim == 1 or V.shape[1] == 1:
        out = np.empty(V.shape, A.dtype)
        vector = np.array(V, A.dtype)
        call("symv", A.dtype, triangle, len(A), 1.0, A, lead(A), vector, 1, 0.0, out, 1)
        return out
    columns, product = np.array(V, A.dtype, order="F"), np.empty(V.shape, A.dtype, order="F")
    given = (b"L", triangle, len(A), V.shape[1], 1.0, A, lead(A), columns, lead(A), 0.0, product, lead(A))
    call("symm", A.dtype, *given)
    return product


def add_outer(A: Matrix, V: Matrix, factor: float = 1.0) -> None:
    """Add factor V V' to the lower triangle of A (n, n) in Fortran order; V (n, k) in either order, or (n,)."""
    k = int(np.prod(V.shape[1:]))
    turned, apart = (b"T", k) if V.flags.c_contiguous and not V.flags.f_contiguous else (b"N", lead(V))
    call("syrk", A.dtype, side(A), turned, len(A), k, factor, V, apart, 1.0, A, lead(A))
