"""Conjugate gradients: finite termination, monotone objective, stopping rules, drift, matrix-free products."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import cg as scipy_cg

from mercer.gram import Gram
from mercer.kernels import Gaussian, Linear, Precomputed
from mercer.problems.least_squares import LeastSquares
from mercer.solvers import Monitor
from mercer.solvers.linear import cholesky, conjugate_gradient

from .linear_system_cases import make, points


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 8))
def test_the_linear_kernel_takes_at_most_rank_plus_one_steps(seed, d):
    problem = make(Linear(), n=50, d=d, k=1, C=1.0, seed=seed)
    solution = conjugate_gradient.solve(problem, tol=None, residual=1e-8)
    assert solution.iterations <= d + 1
    assert solution.details["true_residual"] < 1e-7


def test_steps_are_no_more_than_distinct_eigenvalues():
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    K = (Q * np.repeat([1.0, 4.0, 9.0], 10)) @ Q.T
    problem = LeastSquares(Gram(Precomputed(), 0.5 * (K + K.T)), rng.normal(size=30), C=2.0, bias="none")
    solution = conjugate_gradient.solve(problem, tol=None, residual=1e-12)
    assert solution.iterations == 3


def test_the_objective_falls_at_every_step_and_is_half_z_of_residual_minus_target():
    problem = make(k=2, C=1000.0)
    solution = conjugate_gradient.solve(problem, tol=None, residual=1e-8)
    J = solution.details["objectives"]
    assert (np.diff(J, axis=0) <= 1e-9 * np.abs(J[-1])).all()
    H = problem.gram.dense() + np.diag(problem.ridge)
    T = np.hstack([np.ones((60, 1)), problem.Y])
    Z = solution.variables
    np.testing.assert_allclose(J[-1], 0.5 * np.sum(Z * (H @ Z), axis=0) - np.sum(T * Z, axis=0), rtol=1e-7)


def test_residuals_need_not_fall_monotonically():
    solution = conjugate_gradient.solve(make(k=1, C=1e4), tol=None, residual=1e-8)
    assert (np.diff(solution.details["residuals"]) > 0).any()


def test_iterates_are_those_of_scipy():
    problem = make(k=1, C=30.0, bias="none")
    H = problem.gram.dense() + np.diag(problem.ridge)
    for steps in (1, 4, 9):
        expected, _ = scipy_cg(H, problem.Y[:, 0], rtol=0.0, atol=0.0, maxiter=steps)
        ours = conjugate_gradient.solve(problem, tol=1e-30, iterations=steps)
        np.testing.assert_allclose(ours.coefficients[:, 0], expected, rtol=1e-9)


def test_each_rule_stops_on_its_own():
    problem = make(k=1, C=100.0)
    by_residual = conjugate_gradient.solve(problem, tol=None, residual=1e-3)
    by_decrease = conjugate_gradient.solve(problem, tol=None, decrease=1e-2)
    by_gap = conjugate_gradient.solve(problem, tol=1e-3)
    assert {s.stopped for s in (by_residual, by_decrease, by_gap)} == {"converged"}
    assert by_residual.details["residuals"][-1] <= 1e-3
    drops = -np.diff(by_decrease.details["objectives"], axis=0)
    assert (drops[-1] <= 1e-2).any()
    assert by_gap.relative_gap <= 1e-3
    assert by_residual.details["steps"].max() == by_residual.iterations


def test_a_column_that_is_done_costs_no_more_products():
    problem = make(Linear(), k=1, d=6, C=1.0)
    Y = np.hstack([problem.Y, np.ones((60, 1))])
    solution = conjugate_gradient.solve(LeastSquares(problem.gram, Y, C=1.0, bias="none"), tol=None, residual=1e-10)
    assert solution.iterations == solution.details["steps"].max()
    both = conjugate_gradient.solve(
        LeastSquares(Gram(Precomputed(), np.eye(60)), Y, C=1.0, bias="none"), tol=None, residual=1e-10
    )
    assert list(both.details["steps"]) == [1, 1]


def test_many_columns_equal_separate_solves():
    problem = make(k=3, C=10.0)
    together = conjugate_gradient.solve(problem, tol=None, residual=1e-9)
    for j in range(3):
        alone = conjugate_gradient.solve(LeastSquares(problem.gram, problem.Y[:, j], C=10.0), tol=None, residual=1e-9)
        np.testing.assert_allclose(together.coefficients[:, j], alone.coefficients[:, 0], atol=1e-6)


def test_drift_of_the_recursive_residual_is_reported():
    # Rifkin 2002, appendix C promises the residual of the recursion only.
    X, Y = points(n=80, d=1, k=1)
    problem = LeastSquares(Gram(Gaussian(1.0), X), Y, C=1e8, bias="none")
    solution = conjugate_gradient.solve(problem, tol=None, residual=1e-8)
    product = problem.gram.dot(solution.coefficients) + 1e-8 * solution.coefficients
    true = np.linalg.norm(Y - product) / np.linalg.norm(Y)
    assert solution.details["true_residual"] == pytest.approx(true, rel=1e-9)
    assert solution.details["recursive_residual"].max() <= 1e-8 < 0.5 * true


def test_refreshing_the_residual_costs_steps_on_ill_conditioned_matrices():
    X, Y = points(n=100, d=2, k=1)
    problem = LeastSquares(Gram(Gaussian(1.0), X), Y, C=1e4, bias="none")
    plain = conjugate_gradient.solve(problem, tol=None, residual=1e-8)
    refreshed = conjugate_gradient.solve(problem, tol=None, residual=1e-8, refresh=50)
    assert plain.iterations < refreshed.iterations


def test_sparse_data_and_the_linear_kernel_are_never_multiplied_out():
    rng = np.random.default_rng(0)
    X = sp.random(1200, 10_000, density=1e-3, format="csr", random_state=rng)
    Y = rng.normal(size=1200)
    gram = Gram(Linear(), X)
    conjugate_gradient.solve(LeastSquares(gram, Y, C=1.0), tol=0.1)  # what is compiled is not what is measured
    tracemalloc.start()
    solution = conjugate_gradient.solve(LeastSquares(gram, Y, C=1.0), tol=1e-8)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert solution.relative_gap <= 1e-8
    assert peak < 5e6  # the dense matrix has 11.5e6 bytes
    K = (X @ X.T).toarray()
    c = cholesky.solve(LeastSquares(Gram(Precomputed(), K), Y, C=1.0)).coefficients
    np.testing.assert_allclose(solution.coefficients, c, atol=1e-3)


def test_a_streamed_matrix_is_never_stored():
    X, Y = points(n=2000, d=5, k=1)
    gram = Gram(Gaussian(2.0), X, storage="streamed", memory="6 MiB")
    conjugate_gradient.solve(LeastSquares(gram, Y, C=1.0), tol=0.1)  # what is compiled is not what is measured
    tracemalloc.start()
    solution = conjugate_gradient.solve(LeastSquares(gram, Y, C=1.0), tol=1e-6)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert solution.relative_gap <= 1e-6
    assert peak < 12e6  # the dense matrix has 32e6 bytes
    exact = cholesky.solve(LeastSquares(gram, Y, C=1.0))
    assert solution.primal == pytest.approx(exact.primal, rel=1e-6)


def test_an_interrupted_run_goes_on_from_its_checkpoint(tmp_path):
    problem = make(k=1, C=100.0)
    whole = conjugate_gradient.solve(problem, tol=1e-10)
    path = tmp_path / "fit.npz"
    monitor = Monitor(checkpoint=path, every=0.0, callback=lambda record: record.iteration >= whole.iterations // 2)
    with monitor:
        half = conjugate_gradient.solve(problem, tol=1e-10, monitor=monitor)
    assert half.stopped == "interrupted"
    with Monitor(checkpoint=path) as monitor:
        rest = conjugate_gradient.solve(problem, tol=1e-10, monitor=monitor)
    assert rest.stopped == "converged"
    assert rest.iterations < whole.iterations


def test_intermediate_iterates_already_classify():
    # Hamers 2004, section 3.6: high accuracy rarely changes decisions.
    X, _ = points(n=200)
    y = np.sign(X[:, 0] + X[:, 1] ** 2 - 0.5)
    problem = LeastSquares(Gram(Gaussian(), X), y, C=10.0)
    values = problem.gram.dot(cholesky.solve(problem).coefficients) + cholesky.solve(problem).bias
    decided, exact = np.abs(values) > 1e-2, np.sign(values)  # nearer to zero a decision is that of the last digits
    agreement = []
    for tol in (1e-1, 1e-2, 1e-3):
        rough = conjugate_gradient.solve(problem, tol=tol)
        found = np.sign(problem.gram.dot(rough.coefficients) + rough.bias)
        agreement.append(np.mean(found[decided] == exact[decided]))
    assert agreement[-1] == 1.0
    assert agreement[0] > 0.9
