"""Preconditioners: symmetric positive definite maps, and when they pay."""

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import Gaussian
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.linear import cholesky, conjugate_gradient
from mercer.solvers.linear.preconditioners import block_jacobi, nystrom, partial_cholesky, pivoted_cholesky, ssor
from mercer.solvers.linear.system import LinearSystem

from .linear_system_cases import make, points, weights

MAKERS = {
    "pivoted Cholesky": lambda system: pivoted_cholesky(system, 20),
    "Nystrom": lambda system: nystrom(system, 20),
    "SSOR": lambda system: ssor(system, 1.2),
    "block Jacobi": lambda system: block_jacobi(system, 16),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_each_is_symmetric_positive_definite_and_named(kind):
    system = LinearSystem(make(weights=weights()))
    M = MAKERS[kind](system)
    inverse = M(np.eye(system.n))
    np.testing.assert_allclose(inverse, inverse.T, atol=1e-10)
    assert np.linalg.eigvalsh(0.5 * (inverse + inverse.T))[0] > 0
    assert kind.split()[0].lower() in M.name.lower()


def on_blocks(H, size):
    """H with zeros outside its diagonal blocks."""
    block = np.arange(len(H)) // size
    return np.where(block[:, None] == block, H, 0.0)


@pytest.mark.parametrize("omega", [0.7, 1.0, 1.2])
@pytest.mark.parametrize("bias", ["none", "penalised"])
def test_ssor_and_block_jacobi_invert_the_matrices_they_are_named_after(bias, omega):
    # Weights make the diagonal uneven: on an even one, a power of it too much only scales M.
    problem = make(bias=bias, weights=weights(zeros=False))
    system = LinearSystem(problem)
    H = problem.gram.dense() + problem.constant + np.diag(problem.ridge)
    D, L = np.diag(np.diag(H)) / omega, np.tril(H, -1)
    M = (D + L) @ np.linalg.inv(D) @ (D + L).T
    V = np.random.default_rng(0).normal(size=(60, 3))
    np.testing.assert_allclose(M @ ssor(system, omega)(V), V, rtol=0, atol=1e-9)
    np.testing.assert_allclose(on_blocks(H, 16) @ block_jacobi(system, 16)(V), V, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
def test_the_solution_does_not_depend_on_the_preconditioner(kind, bias):
    problem = make(bias=bias, weights=weights())
    M = MAKERS[kind](LinearSystem(problem))
    solution = conjugate_gradient.solve(problem, tol=1e-12, preconditioner=M)
    exact = cholesky.solve(problem)
    assert solution.primal == pytest.approx(exact.primal, rel=1e-11)
    np.testing.assert_allclose(solution.bias, exact.bias, atol=1e-5)


def ill_conditioned(C):
    X, Y = points(n=200, d=2, k=1)
    return LeastSquares(Gram(Gaussian(1.0), X), Y, C=C, bias="none")


@pytest.mark.parametrize("C", [1.0, 1e3, 1e5])
def test_pivoted_cholesky_saves_steps(C):
    problem = ill_conditioned(C)
    plain = conjugate_gradient.solve(problem, tol=None, residual=1e-8)
    helped = conjugate_gradient.solve(
        problem, tol=None, residual=1e-8, preconditioner=pivoted_cholesky(LinearSystem(problem), 60)
    )
    assert helped.iterations <= plain.iterations
    if C > 1:
        assert helped.iterations < 0.3 * plain.iterations


def test_ssor_gives_no_guarantee():
    # Hamers 2004, section 3.5.2: popular, but with no promise; it saves steps on the one and costs them on the other.
    def counts(n, d):
        X, Y = points(n=n, d=d, k=1)
        problem = LeastSquares(Gram(Gaussian(1.0), X), Y, C=1.0, bias="none")
        M = ssor(LinearSystem(problem), 1.0)
        plain = conjugate_gradient.solve(problem, tol=None, residual=1e-8)
        return plain.iterations, conjugate_gradient.solve(problem, tol=None, residual=1e-8, preconditioner=M).iterations

    plain, helped = counts(150, 5)
    assert helped < plain
    plain, hindered = counts(100, 2)
    assert hindered > plain


def test_a_full_partial_factor_is_the_matrix_and_takes_the_largest_diagonal_first():
    system = LinearSystem(make())
    F, pivots = partial_cholesky(system, 60)
    K = system.kernel_matrix()
    np.testing.assert_allclose(F @ F.T, K, atol=1e-6)
    assert len(set(pivots)) == len(pivots)
    left = K.diagonal().copy()
    for j, pivot in enumerate(pivots[:20]):
        assert left[pivot] == pytest.approx(left.max(), rel=1e-9)
        left -= F[:, j] ** 2
    short, _ = partial_cholesky(system, 60, tolerance=0.1)
    assert short.shape[1] < 30
    assert np.trace(K - short @ short.T) <= 0.1 * np.trace(K)


def test_block_jacobi_with_one_block_is_the_inverse():
    problem = make()
    solution = conjugate_gradient.solve(problem, preconditioner=block_jacobi(LinearSystem(problem), 60))
    assert solution.iterations == 1


def test_nonsense_is_refused():
    system = LinearSystem(make())
    with pytest.raises(InvalidInput, match="omega"):
        ssor(system, 2.0)
    with pytest.raises(InvalidInput, match="size"):
        block_jacobi(system, 0)
    with pytest.raises(InvalidInput, match="finite C"):
        pivoted_cholesky(LinearSystem(make(C=np.inf)), 5)
