"""Matrices of any shape: orthogonal factors, singular vectors, least squares and square systems."""

import numpy as np

from mercer.dense.routines import Matrix, call_with_room


def qr(A: Matrix) -> tuple[Matrix, Matrix]:
    """Q (n, r) orthonormal and R (r, m) upper triangular with A = Q R, A (n, m), r = min(n, m)."""
    Q, R = np.linalg.qr(A)
    return Q, R


def orthonormal(A: Matrix) -> Matrix:
    """Orthonormal columns Q (n, r) that span those of A (n, m), r = min(n, m)."""
    return qr(A)[0]


def pivoted_qr(A: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Q (n, r), R (r, m) with a falling diagonal, and the order (m,) of the columns: A[:, order] = Q R."""
    n, m = A.shape
    r = min(n, m)
    work, order, factors = np.array(A, order="F"), np.zeros(m, np.int32), np.empty(r, A.dtype)
    call_with_room("geqp3", A.dtype, n, m, work, max(1, n), order, factors)
    R = np.triu(work[:r])
    Q = np.asfortranarray(work[:, :r])
    call_with_room("orgqr", A.dtype, n, r, r, Q, max(1, n), factors)
    return Q, R, (order - 1).astype(np.intp)


def left_singular(A: Matrix) -> tuple[Matrix, Matrix]:
    """Left singular vectors (n, r) of A (n, m), r = min(n, m), and the singular values (r,), falling."""
    left, values, _ = np.linalg.svd(A, full_matrices=False)
    return left, values


def null_space(A: Matrix) -> Matrix:
    """Orthonormal columns (m, p) that span the vectors v with A v = 0, A (n, m)."""
    _, values, right = np.linalg.svd(A, full_matrices=True)
    rank = int(np.count_nonzero(values > max(A.shape) * np.finfo(A.dtype).eps * values.max(initial=0.0)))
    return np.asarray(right[rank:].T)


def least_squares(A: Matrix, B: Matrix, tolerance: float | None = None) -> Matrix:
    """The X of least norm that minimises |A X - B|, A (n, m), B (n,) or (n, k).

    Singular values at most `tolerance` times the largest count as zero; None: the larger side of A times the rounding
    unit.
    """
    return np.asarray(np.linalg.lstsq(A, B, rcond=tolerance)[0])


def solve_square(A: Matrix, B: Matrix) -> Matrix:
    """A^-1 B for any regular A (..., n, n), also many at once, and B (..., n, k)."""
    return np.asarray(np.linalg.solve(A, B))
