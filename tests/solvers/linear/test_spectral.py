"""The eigendecomposition: one for every C, and interpolation where the matrix is singular."""

import numpy as np
import pytest

from mercer.errors import Infeasible, NotPositiveDefinite
from mercer.gram import Gram
from mercer.kernels import Gaussian, Linear, Precomputed
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.linear import cholesky, minres, spectral

from .linear_system_cases import make, points, weights


@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
def test_one_decomposition_serves_every_C(bias):
    problem = make(weights=weights(), bias=bias)
    first = spectral.solve(problem)
    for C in (0.01, 1.0, 100.0):
        again = spectral.solve(problem.with_C(C), decomposition=first.details["decomposition"])
        direct = cholesky.solve(problem.with_C(C))
        np.testing.assert_allclose(
            again.coefficients, direct.coefficients, atol=1e-9 * np.abs(direct.coefficients).max()
        )
        np.testing.assert_allclose(again.bias, direct.bias, atol=1e-10)


def test_condition_is_exact():
    problem = make(C=30.0)
    H = problem.gram.dense() + np.diag(problem.ridge)
    assert spectral.solve(problem).details["condition"] == pytest.approx(np.linalg.cond(H), rel=1e-9)


@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
def test_infinite_C_interpolates(bias):
    X, Y = points(n=25)
    gram = Gram(Gaussian(0.5), X)
    solution = spectral.solve(LeastSquares(gram, Y, C=np.inf, bias=bias))
    np.testing.assert_allclose(gram.dot(solution.coefficients) + solution.bias, Y, atol=1e-8)
    assert solution.primal == pytest.approx(solution.dual, rel=1e-7)
    near = cholesky.solve(LeastSquares(gram, Y, C=1e9, bias=bias))
    np.testing.assert_allclose(solution.coefficients, near.coefficients, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("solver", [spectral, minres])
def test_infinite_C_takes_the_shortest_solution_of_a_singular_system(solver):
    X, Y = points(n=20)
    X, Y = np.vstack([X, X[:8]]), np.vstack([Y, Y[:8]])
    K = Gaussian(0.5)(X)
    solution = solver.solve(LeastSquares(Gram(Precomputed(), K), Y, C=np.inf, bias="none"))
    np.testing.assert_allclose(K @ solution.coefficients, Y, atol=1e-4)
    np.testing.assert_allclose(solution.coefficients, np.linalg.pinv(K, hermitian=True) @ Y, atol=1e-3)
    large_C = cholesky.solve(LeastSquares(Gram(Precomputed(), K), Y, C=1e8, bias="none"))
    np.testing.assert_allclose(solution.coefficients, large_C.coefficients, atol=1e-3)


def test_duplicates_with_different_targets_cannot_be_interpolated():
    with pytest.raises(Infeasible, match="finite C"):
        spectral.solve(make(duplicates=True, C=np.inf))
    with pytest.raises(Infeasible, match="finite C"):
        spectral.solve(make(Linear(), C=np.inf))


def test_minres_says_when_there_is_nothing_to_converge_to():
    solution = minres.solve(make(Linear(), n=30, C=np.inf), iterations=2000)
    assert solution.stopped in ("stalled", "iterations")
    assert solution.gap == np.inf


def test_an_indefinite_kernel_is_refused_with_its_eigenvalue():
    K = np.diag([1.0, -5.0, 1.0])
    with pytest.raises(NotPositiveDefinite, match="-4"):
        spectral.solve(LeastSquares(Gram(Precomputed(), K), np.ones(3), C=1.0, bias="none"))
