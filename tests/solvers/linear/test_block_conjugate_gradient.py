"""Block conjugate gradients: never behind single ones, and no column lost when directions become dependent."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.gram import Gram
from mercer.kernels import Gaussian, Linear, Precomputed
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.linear import block_conjugate_gradient, cholesky, conjugate_gradient
from mercer.solvers.linear.block_conjugate_gradient import revealing_qr

from .linear_system_cases import dense_answer, make, points


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), log_C=st.floats(-2, 4), linear=st.booleans(), k=st.integers(1, 4))
def test_it_never_takes_more_steps_than_the_slowest_column_alone(seed, log_C, linear, k):
    problem = make(Linear() if linear else None, n=50, C=10.0**log_C, k=k, seed=seed)
    single = conjugate_gradient.solve(problem, tol=None, residual=1e-8)
    block = block_conjugate_gradient.solve(problem, tol=None, residual=1e-8)
    # Residuals are not what the method minimises: one step of slack.
    assert block.iterations <= single.iterations + 1
    assert block.details["true_residual"] <= max(1e-7, 10 * single.details["true_residual"])


def test_the_energy_error_of_every_column_is_at_most_that_of_single_steps():
    problem = make(k=2, C=30.0)
    H = problem.gram.dense() + np.diag(problem.ridge)
    exact = np.linalg.solve(H, np.hstack([np.ones((60, 1)), problem.Y]))
    for steps in (1, 3, 6, 10):
        errors = []
        for solver in (block_conjugate_gradient, conjugate_gradient):
            D = solver.solve(problem, tol=1e-30, iterations=steps).variables - exact
            errors.append(np.sum(D * (H @ D), axis=0))
        assert (errors[0] <= errors[1] * (1 + 1e-9)).all()


@pytest.mark.parametrize("n", [20, 21])
def test_two_columns_end_within_half_the_points(n):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n))
    problem = LeastSquares(Gram(Precomputed(), A @ A.T / n), rng.normal(size=n), C=1.0)
    solution = block_conjugate_gradient.solve(problem, tol=None, residual=1e-10)
    assert solution.iterations <= (n + 1) // 2


def test_parallel_and_repeated_targets_share_one_direction():
    X, y = points(k=1)
    Y = y @ np.array([[1.0, -3.0, 1e-6, 0.0]])
    problem = LeastSquares(Gram(Gaussian(), X), Y, C=20.0, bias="none")
    solution = block_conjugate_gradient.solve(problem, tol=1e-14)
    assert (solution.details["widths"] == 1).all()
    exact = cholesky.solve(problem).coefficients
    np.testing.assert_allclose(solution.coefficients, exact, rtol=1e-5, atol=1e-12)


def test_krylov_dependent_targets_are_deflated_and_solved():
    # The second column is H times the first: dropping it without care leaves it unsolved.
    X, y = points(k=1)
    C = 10.0
    H = Gaussian()(X) + np.eye(60) / C
    Y = np.hstack([y, H @ y, H @ (H @ y)])
    problem = LeastSquares(Gram(Gaussian(), X), Y, C=C, bias="none")
    solution = block_conjugate_gradient.solve(problem, tol=1e-16)
    assert solution.details["widths"].min() < 3
    np.testing.assert_allclose(solution.coefficients, np.linalg.solve(H, Y), atol=1e-5)


def test_ill_conditioned_systems_keep_their_advantage():
    # Hamers 2004, section 3.5.4, the regime in which the plain block method loses rank.
    X, Y = points(n=120, d=2, k=1)
    problem = LeastSquares(Gram(Gaussian(), X), Y, C=1e4)
    block = block_conjugate_gradient.solve(problem, tol=None, residual=1e-10)
    single = conjugate_gradient.solve(problem, tol=None, residual=1e-10)
    assert block.iterations < 0.8 * single.iterations
    assert block.details["true_residual"] < 1e-8


def test_revealing_qr_rebuilds_the_matrix_and_drops_noise():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 5))
    Q, S = revealing_qr(A, 1e-12)
    assert Q.shape == (30, 2)
    np.testing.assert_allclose(Q @ S, A, atol=1e-12)
    np.testing.assert_allclose(Q.T @ Q, np.eye(2), atol=1e-14)


@pytest.mark.parametrize("solver", [conjugate_gradient, block_conjugate_gradient])
def test_weights_that_count_repeated_rows_cost_no_more_steps_than_the_rows(solver):
    rng = np.random.default_rng(5)
    X, Y = points(n=80, k=2)
    times = rng.integers(1, 40, size=80)
    counted = LeastSquares(Gram(Gaussian(1.0), X), Y, C=3.0, weights=times.astype(float))
    repeated = LeastSquares(Gram(Gaussian(1.0), np.repeat(X, times, axis=0)), np.repeat(Y, times, axis=0), C=3.0)
    one, other = (solver.solve(problem, tol=1e-10) for problem in (counted, repeated))
    assert one.iterations <= other.iterations + 1
    c, _ = dense_answer(counted)
    np.testing.assert_allclose(one.coefficients, c, rtol=1e-3, atol=1e-4 * np.abs(c).max())
