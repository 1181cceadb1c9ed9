"""Dense linear algebra: the only place that calls LAPACK, arrays in and arrays out, other threads running meanwhile.

    positive      A = L L' of positive definite matrices: factorise, solve, invert; banded ones
    semidefinite  the same with pivots, of a matrix or of its rows one by one
    symmetric     eigenvectors, L D L', tridiagonal form
    rectangular   QR, singular vectors, least squares
    routines      the bare functions of LAPACK

Sparse matrices and iterations that only multiply (`scipy.sparse.linalg`) belong to their users.
"""

from mercer.dense.positive import (
    Poll,
    cholesky,
    condition,
    factorise,
    factorise_band,
    inverse_diagonal,
    invert,
    invert_factored,
    invert_lower,
    mirror,
    solve,
    solve_band,
    solve_positive,
    solve_rows,
    solve_triangular,
    solve_triangular_rows,
)
from mercer.dense.rectangular import (
    least_squares,
    left_singular,
    null_space,
    orthonormal,
    pivoted_qr,
    qr,
    solve_square,
)
from mercer.dense.semidefinite import PartialCholesky, pivoted_cholesky
from mercer.dense.symmetric import (
    add_outer,
    diagonalise,
    eigen,
    eigenvalues,
    factorise_indefinite,
    lowest_eigenvector,
    pseudo_inverse,
    rotate,
    rotation,
    solve_indefinite,
    symmetric_product,
    tridiagonalise,
)

__all__ = [
    "PartialCholesky",
    "Poll",
    "add_outer",
    "cholesky",
    "condition",
    "diagonalise",
    "eigen",
    "eigenvalues",
    "factorise",
    "factorise_band",
    "factorise_indefinite",
    "inverse_diagonal",
    "invert",
    "invert_factored",
    "invert_lower",
    "least_squares",
    "left_singular",
    "lowest_eigenvector",
    "mirror",
    "null_space",
    "orthonormal",
    "pivoted_cholesky",
    "pivoted_qr",
    "pseudo_inverse",
    "qr",
    "rotate",
    "rotation",
    "solve",
    "solve_band",
    "solve_indefinite",
    "solve_positive",
    "solve_rows",
    "solve_square",
    "solve_triangular",
    "solve_triangular_rows",
    "symmetric_product",
    "tridiagonalise",
]
