"""Thin factors: Woodbury, direct and matrix-free solutions are one (Rifkin 2002, section 3.5; Hamers 2004, 4.5)."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.errors import InvalidInput
from mercer.gram import Gram, LowRankGram
from mercer.kernels import Gaussian, Linear, Precomputed
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.linear import cholesky, conjugate_gradient, woodbury

from .linear_system_cases import make, points, weights


@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_woodbury_direct_and_matrix_free_agree(bias, sparse, weighted):
    X, Y = points(d=6, k=3)
    X = X * (np.abs(X) > 0.7)
    w = weights() if weighted else None
    gram = Gram(Linear(), sp.csr_array(X) if sparse else X)
    problem = LeastSquares(gram, Y, C=3.0, bias=bias, weights=w)
    thin = woodbury.solve(problem)
    dense = cholesky.solve(LeastSquares(Gram(Precomputed(), X @ X.T), Y, C=3.0, bias=bias, weights=w))
    free = conjugate_gradient.solve(problem, tol=1e-14)
    np.testing.assert_allclose(thin.coefficients, dense.coefficients, atol=1e-11)
    np.testing.assert_allclose(thin.bias, dense.bias, atol=1e-12)
    np.testing.assert_allclose(free.coefficients, dense.coefficients, atol=1e-5)
    np.testing.assert_allclose(free.bias, dense.bias, atol=1e-5)
    np.testing.assert_allclose(thin.details["weights"], X.T @ dense.coefficients, atol=1e-11)
    assert thin.relative_gap < 1e-20


def test_weights_are_those_of_ridge_regression():
    X, Y = points(d=4)
    solution = woodbury.solve(LeastSquares(Gram(Linear(), X), Y, C=0.5, bias="none"))
    w = np.linalg.solve(X.T @ X + 2.0 * np.eye(4), X.T @ Y)
    np.testing.assert_allclose(solution.details["weights"], w, atol=1e-12)


def test_the_classifier_with_signed_rows_is_the_same_machine():
    # Hamers 2004, equation 4.19: diag(y) X in place of X, with u = 1 and z = y.
    X, _ = points(d=4)
    y = np.where(X[:, 0] > 0.2, 1.0, -1.0)
    C = 2.0
    S = y[:, None] * X
    core = np.eye(4) / C + S.T @ S
    right = np.column_stack([y, np.ones(60)])
    eta, nu = (C * (right - S @ np.linalg.solve(core, S.T @ right))).T
    b = eta @ np.ones(60) / (y @ eta)
    solution = woodbury.solve(LeastSquares(Gram(Linear(), X), y, C=C))
    np.testing.assert_allclose(solution.coefficients[:, 0], y * (nu - b * eta), atol=1e-10)
    assert solution.bias[0] == pytest.approx(b, abs=1e-11)


def test_a_rank_one_kernel_has_a_closed_form():
    # Hamers 2004, equation 4.16 corrected: H^-1 = C (I - a b' / (1/C + b'a)).
    rng = np.random.default_rng(0)
    a, y, C = rng.normal(size=50), rng.normal(size=50), 4.0
    b = 0.7 * a
    expected = C * (y - a * (b @ y) / (1 / C + b @ a))
    gram = LowRankGram.from_factors(np.sqrt(0.7) * a[:, None])
    solution = woodbury.solve(LeastSquares(gram, y, C=C, bias="none"))
    np.testing.assert_allclose(solution.coefficients[:, 0], expected, atol=1e-11)
    assert solution.details["rank"] == 1


def test_any_low_rank_matrix_brings_its_factor():
    rng = np.random.default_rng(0)
    F = rng.normal(size=(60, 7))
    Y = rng.normal(size=(60, 2))
    thin = woodbury.solve(LeastSquares(LowRankGram.from_factors(F), Y, C=10.0, basis=rng.normal(size=60)))
    rng = np.random.default_rng(0)
    rng.normal(size=(60, 7)), rng.normal(size=(60, 2))
    dense = cholesky.solve(LeastSquares(Gram(Precomputed(), F @ F.T), Y, C=10.0, basis=rng.normal(size=60)))
    np.testing.assert_allclose(thin.coefficients, dense.coefficients, atol=1e-10)


def test_refinement_restores_digits_at_a_small_ridge():
    problem = make(Linear(), d=5, C=1e8, k=1)
    exact = cholesky.solve(problem)
    rough = woodbury.solve(problem, refine=0)
    fine = woodbury.solve(problem, refine=2)
    assert fine.gap <= rough.gap
    assert fine.primal == pytest.approx(exact.primal, rel=1e-6)


def test_a_hundred_thousand_points_are_small():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 10))
    y = X @ np.arange(10.0) + 3.0 + 0.1 * rng.normal(size=100_000)
    solution = woodbury.solve(LeastSquares(Gram(Linear(), X), y, C=1.0))
    np.testing.assert_allclose(solution.details["weights"][:, 0], np.arange(10.0), atol=1e-2)
    assert solution.bias[0] == pytest.approx(3.0, abs=1e-2)
    assert solution.relative_gap < 1e-14


def test_a_matrix_without_a_factor_is_refused():
    assert not woodbury.accepts(make(Gaussian()))
    with pytest.raises(InvalidInput, match="thin factor"):
        woodbury.solve(make(Gaussian()))
    with pytest.raises(InvalidInput, match="C = inf"):
        woodbury.solve(make(Linear(), C=np.inf))
