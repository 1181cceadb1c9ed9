"""The system behind the solvers: elimination, bounds on the error, and its condition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import Gaussian
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.linear import conjugate_gradient
from mercer.solvers.linear.system import LinearSystem, error_bounds

from .linear_system_cases import CASES, CONDITIONAL, SEMIPARAMETRIC, dense_answer, make, points, weights


@pytest.mark.parametrize("case", [*CASES, *SEMIPARAMETRIC, *CONDITIONAL])
def test_products_rows_diagonal_and_matrix_agree(case):
    system = LinearSystem((CASES | SEMIPARAMETRIC | CONDITIONAL)[case]())
    H = system.matrix()
    V = np.random.default_rng(0).normal(size=(system.n, 3))
    np.testing.assert_allclose(system.dot(V), H @ V, atol=1e-11)
    np.testing.assert_allclose(system.diagonal(), H.diagonal(), atol=1e-13)
    index = np.array([3, 0, 20])
    np.testing.assert_allclose(system.rows(index), H[index], atol=1e-13)


@pytest.mark.parametrize("case", [*CASES, *SEMIPARAMETRIC])
def test_two_definite_systems_give_the_saddle_point_solution(case):
    # Hamers 2004, equations 3.2 to 3.4.
    problem = (CASES | SEMIPARAMETRIC)[case]()
    system = LinearSystem(problem)
    Z = np.linalg.solve(system.matrix(), system.T)
    c, offsets = system.eliminate(Z)
    expected, expected_offsets = dense_answer(problem)
    np.testing.assert_allclose(system.expand(c), expected, atol=1e-9 * (1 + np.abs(expected).max()))
    np.testing.assert_allclose(offsets, expected_offsets, atol=1e-9)
    np.testing.assert_allclose(system.Phi.T @ c, 0, atol=1e-12 * (1 + np.abs(c).max()))


def test_any_guess_gives_a_feasible_model_with_a_valid_gap():
    problem = make(weights=weights(), basis=points()[0][:, 0])
    system = LinearSystem(problem)
    Z = np.random.default_rng(0).normal(size=system.T.shape)
    c, _ = system.eliminate(Z)
    np.testing.assert_allclose(system.Phi.T @ c, 0, atol=1e-11 * np.abs(c).max())
    free = system.certificate(Z, system.T - system.dot(Z))
    paid = problem.certificate(system.expand(c))
    for value in ("primal", "dual", "gap"):
        np.testing.assert_allclose(free.outputs[value], paid.outputs[value], rtol=1e-9)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), log_C=st.floats(-2, 4))
def test_residual_and_condition_sandwich_the_error(seed, log_C):
    rng = np.random.default_rng(seed)
    X, y = points(n=20, k=1, seed=seed)
    H = Gaussian()(X) + np.eye(20) / 10.0**log_C
    exact = np.linalg.solve(H, y[:, 0])
    guess = exact + 10.0 ** rng.uniform(-6, 0) * rng.normal(size=20)
    relative_residual = np.linalg.norm(y[:, 0] - H @ guess) / np.linalg.norm(y)
    low, high = error_bounds(relative_residual, np.linalg.cond(H))
    error = np.linalg.norm(guess - exact) / np.linalg.norm(exact)
    assert low * (1 - 1e-6) <= error <= high * (1 + 1e-6)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_condition_falls_with_the_ridge_and_bounds_the_answer_to_a_change_of_targets(seed):
    # Hamers 2004, sections 3.5.1 and 3.5.3.
    rng = np.random.default_rng(seed)
    X, y = points(n=20, k=1, seed=seed)
    K = Gaussian()(X)
    values = np.linalg.eigvalsh(K)
    change = 0.1 * rng.normal(size=(20, 1))
    conditions = []
    for C in (1e-4, 1e-2, 1.0, 1e2, 1e4):
        H = K + np.eye(20) / C
        condition = (values[-1] + 1 / C) / (values[0] + 1 / C)
        assert np.linalg.cond(H) == pytest.approx(condition, rel=1e-6)
        conditions.append(condition)
        ratio = np.linalg.norm(np.linalg.solve(H, change)) / np.linalg.norm(np.linalg.solve(H, y))
        ratio /= np.linalg.norm(change) / np.linalg.norm(y)
        assert 1 / condition <= ratio * (1 + 1e-9)
        assert ratio <= condition * (1 + 1e-9)
    assert (np.diff(conditions) > 0).all()
    assert conditions[0] < 1.01


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_neighbours_on_a_grid_have_near_solutions(seed):
    # Hamers 2004, equation 3.15 with its denominator corrected: why warm starts work.
    rng = np.random.default_rng(seed)
    X, y = points(n=15, k=1, seed=seed)
    A = Gaussian(1.0)(X) + np.eye(15)
    B = Gaussian(float(rng.uniform(0.9, 1.1)))(X) + np.eye(15) / rng.uniform(0.8, 1.25)
    condition, rho = np.linalg.cond(A), np.linalg.norm(B - A, 2) / np.linalg.norm(A, 2)
    if condition * rho < 1:
        x, z = np.linalg.solve(A, y), np.linalg.solve(B, y)
        assert np.linalg.norm(z - x) / np.linalg.norm(x) <= condition * rho / (1 - condition * rho) * (1 + 1e-9)


def test_warm_starts_save_iterations_over_a_grid():
    X, Y = points(n=100, k=1)
    cold = warm = 0
    previous = None
    for sigma in (1.0, 1.1, 1.2, 1.3):
        problem = LeastSquares(Gram(Gaussian(sigma), X), Y, C=20.0)
        cold += conjugate_gradient.solve(problem, tol=1e-8).iterations
        previous = conjugate_gradient.solve(problem, tol=1e-8, start=previous)
        warm += previous.iterations
    assert warm < cold


def test_a_start_of_another_shape_is_refused():
    with pytest.raises(InvalidInput, match="start must be"):
        conjugate_gradient.solve(make(), start=np.zeros((7, 2)))


def test_a_solution_can_be_saved_and_taken_up_again(tmp_path):
    problem = make(C=50.0)
    first = conjugate_gradient.solve(problem, tol=1e-6)
    first.save(tmp_path / "fit.npz")
    loaded = type(first).load(tmp_path / "fit.npz")
    again = conjugate_gradient.solve(problem, tol=1e-6, start=loaded)
    assert again.iterations == 0
    np.testing.assert_allclose(again.coefficients, first.coefficients, rtol=1e-10)
