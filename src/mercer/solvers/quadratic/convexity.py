"""Whether a quadratic program is convex, and the matrix that shows it.

A kernel need be positive semidefinite only where the equalities leave freedom.  A conditionally positive definite
kernel with a bias (or with the polynomials it needs as a basis) is projected onto that subspace, which changes the
objective at no feasible point; any other indefinite matrix is refused.
"""

import numpy as np
from numpy.typing import NDArray

from mercer import dense
from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.problems.program import QuadraticProgram
from mercer.solvers.linear.bordered import project

Array = NDArray[np.float64]

# Share of the trace by which an eigenvalue may be negative: rounding of kernel values, single precision included.
ROUNDING = 1e-9


def convex_matrix(program: QuadraticProgram) -> Array:
    """K~ (n, n), positive semidefinite, with the program's objective on all of its feasible points."""
    K = np.array(program.gram.dense(), dtype=np.float64)
    if not np.isfinite(K).all():
        raise InvalidInput(
            "the kernel matrix contains NaN or infinite values: check the data and the parameters of the kernel"
        )
    if program.constant:
        K += program.constant
    twin = K.T.copy()
    twin -= K
    if max(twin.max(), -twin.min()) > 1e-5 * max(K.max(), -K.min()):
        raise InvalidInput("the kernel matrix is not symmetric: symmetrise it, or check how it was computed")
    twin *= 0.5
    K += twin
    del twin
    if is_semidefinite(K):
        return K
    basis = _constrained_functions(program)
    if basis is not None:
        projected = K.copy()
        project(projected, basis)
        projected = 0.5 * (projected + projected.T)
        if is_semidefinite(projected):
            return projected
    raise NotPositiveDefinite(_refusal(program, K))


def is_semidefinite(K: Array) -> bool:
    """Whether K, with its diagonal raised by a rounding error's worth, has a Cholesky factor."""
    M = K.copy(order="F")
    np.einsum("ii->i", M)[...] += ROUNDING * max(float(np.abs(np.diagonal(K)).sum()), np.finfo(np.float64).tiny)
    return dense.factorise(M)


def _constrained_functions(program: QuadraticProgram) -> Array | None:
    """Orthonormal columns (n, q) spanning the functions psi with sum_j s_j psi(x_point_j) = 0 for all feasible s."""
    if program.d.size == 0 or program.d.any():
        return None
    psi = np.zeros((program.n, program.d.size))
    psi[program.point] = program.equalities.T
    if not np.array_equal(psi[program.point], program.equalities.T):
        return None
    left, values = dense.left_singular(psi)
    return np.asarray(left[:, values > 1e-12 * values.max()])


def _refusal(program: QuadraticProgram, K: Array) -> str:
    kernel = getattr(program.gram, "kernel", None)
    name = "the kernel matrix" if kernel is None else f"the matrix of {kernel!r}"
    smallest = float(dense.eigenvalues(K)[0])
    return (
        f"{name} is not positive semidefinite (smallest eigenvalue {smallest:.3g}), so the problem is not convex: "
        "choose a positive definite kernel, or a solver that accepts indefinite ones"
    )
