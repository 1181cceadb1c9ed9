"""Pair steps for least squares: the optimum of the dual, more steps as C grows, rows fetched or kept."""

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.solvers.linear import cholesky, least_squares_smo

from .linear_system_cases import make, weights


@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
@pytest.mark.parametrize("stored", [True, False])
def test_it_reaches_the_direct_solution(bias, stored):
    problem = make(n=40, C=2.0, bias=bias, weights=weights(40), k=2)
    solution = least_squares_smo.solve(problem, tol=1e-12, stored=stored)
    exact = cholesky.solve(problem)
    assert solution.stopped == "converged"
    np.testing.assert_allclose(solution.coefficients, exact.coefficients, atol=1e-4)
    np.testing.assert_allclose(solution.bias, exact.bias, atol=1e-5)


def test_rows_kept_and_rows_fetched_take_the_same_steps():
    problem = make(n=40, k=1)
    kept = least_squares_smo.solve(problem, tol=1e-6, stored=True)
    fetched = least_squares_smo.solve(problem, tol=1e-6, stored=False)
    assert kept.iterations == fetched.iterations
    np.testing.assert_allclose(kept.coefficients, fetched.coefficients, atol=1e-10)


def test_steps_grow_strongly_with_C():
    # Hamers 2004, section 3.5.6.
    steps = [least_squares_smo.solve(make(n=80, k=1, C=C), tol=1e-10).iterations for C in (1.0, 10.0, 100.0)]
    assert steps[0] < steps[1] < steps[2]
    assert steps[2] > 5 * steps[0]


def test_at_the_optimum_the_gradient_is_the_bias_everywhere():
    problem = make(k=1)
    solution = least_squares_smo.solve(problem, tol=1e-14)
    H = problem.gram.dense() + np.diag(problem.ridge)
    gradient = problem.Y - H @ solution.coefficients
    np.testing.assert_allclose(gradient, solution.bias[0], atol=1e-5)
    assert solution.coefficients.sum() == pytest.approx(0.0, abs=1e-10)


def test_the_limit_on_steps_is_kept():
    solution = least_squares_smo.solve(make(n=80, C=1000.0, k=2), tol=1e-12, iterations=150)
    assert solution.stopped == "iterations"
    assert (solution.details["steps"] == 150).all()


@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
def test_a_basis_of_one_column_is_refused_whatever_the_bias(bias):
    # Pair steps keep 1'c = 0, which is the equality of a free bias; a basis asks for basis'c = 0.
    problem = make(n=40, bias=bias, basis=np.linspace(1.0, 2.0, 40))
    answer = least_squares_smo.accepts(problem)
    assert not answer
    assert "drop basis" in answer.reason
    with pytest.raises(InvalidInput, match="pair steps keep one equality only"):
        least_squares_smo.solve(problem)
    assert least_squares_smo.accepts(make(n=40, bias=bias))
