"""Cholesky: the factor, the certificate from its untouched triangle, jitter, and matrices it must refuse."""

import numpy as np
import pytest
from scipy.linalg import cho_solve

from mercer.errors import NotPositiveDefinite
from mercer.gram import Gram
from mercer.kernels import Gaussian, Multiquadric, Precomputed
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.linear import cholesky

from .linear_system_cases import dense_answer, make, points, weights


def test_the_factor_kept_solves_further_right_hand_sides():
    problem = make(weights=weights())
    solution = cholesky.solve(problem, keep_factor=True)
    active = solution.details["active"]
    H = problem.gram.dense()[np.ix_(active, active)] + np.diag(problem.ridge[active])
    L, lower = solution.details["factor"]
    np.testing.assert_allclose(np.tril(L) @ np.tril(L).T, H, atol=1e-12)
    right = np.random.default_rng(0).normal(size=(len(active), 3))
    np.testing.assert_allclose(cho_solve((L, lower), right), np.linalg.solve(H, right), atol=1e-10)


@pytest.mark.parametrize("k", [1, 3])
def test_the_certificate_is_a_true_product_with_the_kernel_matrix(k):
    problem = make(k=k)
    solution = cholesky.solve(problem)
    certificate = problem.certificate(solution.coefficients)
    assert solution.primal == pytest.approx(certificate.primal, rel=1e-13)
    # A wrong answer has to show: the same product on coefficients that are off must give their gap.
    H = problem.gram.dense() + np.diag(problem.ridge)
    diagonal, L = H.diagonal().copy(), cholesky.factorise(H.copy())
    wrong = solution.coefficients + 1.0
    np.testing.assert_allclose(cholesky._kernel_product(L, diagonal, wrong), H @ wrong, atol=1e-12)


def test_the_gram_operator_keeps_its_matrix():
    X, Y = points()
    gram = Gram(Gaussian(), X, storage="dense")
    before = gram.dense()
    cholesky.solve(LeastSquares(gram, Y))
    np.testing.assert_array_equal(gram.dense(), before)


def test_variables_are_the_two_systems_of_the_elimination():
    problem = make(k=2)
    H = problem.gram.dense() + np.diag(problem.ridge)
    Z = cholesky.solve(problem).variables
    np.testing.assert_allclose(H @ Z, np.hstack([np.ones((60, 1)), problem.Y]), atol=1e-11)


def test_condition_is_estimated():
    problem = make(C=100.0)
    H = problem.gram.dense() + np.diag(problem.ridge)
    estimate = cholesky.solve(problem, condition=True).details["condition"]
    assert 0.1 * np.linalg.cond(H, 1) <= estimate <= 1.01 * np.linalg.cond(H, 1)


def test_an_indefinite_matrix_is_refused_with_the_remedy():
    K = np.diag([1.0, -5.0, 1.0])
    with pytest.raises(NotPositiveDefinite, match="lower C"):
        cholesky.solve(LeastSquares(Gram(Precomputed(), K), np.ones(3), C=1.0, bias="none"))


def test_conditionally_positive_definite_kernels_need_the_bias():
    X, Y = points()
    with pytest.raises(NotPositiveDefinite, match='bias="free"'):
        cholesky.solve(LeastSquares(Gram(Multiquadric(u=1), X), Y, bias="none"))
    with pytest.raises(NotPositiveDefinite, match='bias="free"'):  # a basis without the constant does not do
        cholesky.solve(LeastSquares(Gram(Multiquadric(u=1), X), Y, bias="none", basis=X))
    assert cholesky.solve(LeastSquares(Gram(Multiquadric(u=1), X), Y, bias="none", basis=X[:, :1] ** 0)).gap >= 0.0


def test_a_multiple_of_the_ones_matrix_leaves_the_model_alone_and_makes_the_matrix_definite():
    # Hamers 2004, section 3.2, the remedy for kernels like -sqrt(sigma^2 + r^2).
    X, Y = points(k=1)
    K, C = Multiquadric(u=1)(X), 5.0
    n = len(X)
    H = K + np.eye(n) / C
    s = np.ones(n) @ np.linalg.solve(H, np.ones(n))
    assert s < 0
    lifted = K - 1.5 / s
    assert np.linalg.eigvalsh(lifted + np.eye(n) / C)[0] > 0
    ours = cholesky.solve(LeastSquares(Gram(Multiquadric(u=1), X), Y, C=C))
    theirs = cholesky.solve(LeastSquares(Gram(Precomputed(), lifted), Y, C=C))
    np.testing.assert_allclose(ours.coefficients, theirs.coefficients, atol=1e-9)
    np.testing.assert_allclose(ours.bias, theirs.bias, atol=1e-9)


def test_order_two_kernels_take_their_polynomials_as_basis():
    X, Y = points(d=2, k=1)
    problem = LeastSquares(Gram(Multiquadric(u=3), X), Y, C=2.0, basis=X)
    c, offsets = dense_answer(problem)
    solution = cholesky.solve(problem)
    np.testing.assert_allclose(solution.coefficients, c, atol=1e-8 * np.abs(c).max())
    np.testing.assert_allclose(solution.multipliers["offsets"], offsets, atol=1e-7 * np.abs(offsets).max())


class TestJitter:
    """Hamers 2004, appendix B: what adding I/C does to a singular or ill-conditioned system."""

    def test_it_makes_a_singular_matrix_definite(self):
        problem = make(duplicates=True, C=1e6)
        K = problem.gram.dense()
        assert np.linalg.matrix_rank(K) < len(K)
        assert np.linalg.eigvalsh(K + np.eye(60) / 1e6)[0] > 0
        assert cholesky.solve(problem).relative_gap < 1e-12

    def test_the_least_norm_solution_of_the_singular_system_leaves_the_smallest_residual(self):
        rng = np.random.default_rng(0)
        F = rng.normal(size=(12, 5))
        K = F @ F.T
        b = K @ rng.normal(size=12)
        shortest = np.linalg.pinv(K) @ b
        null = np.linalg.svd(K)[2][5:]
        for shift in (1e-3, 0.1, 1.0):
            smallest = np.linalg.norm((K + shift * np.eye(12)) @ shortest - b)
            assert smallest == pytest.approx(shift * np.linalg.norm(shortest), rel=1e-6)
            for _ in range(5):
                other = shortest + null.T @ rng.normal(size=7)
                assert np.linalg.norm((K + shift * np.eye(12)) @ other - b) > smallest

    def test_the_change_of_the_solution_is_bounded_for_every_shift(self):
        rng = np.random.default_rng(1)
        A = rng.normal(size=(15, 15))
        K = A @ A.T + 0.1 * np.eye(15)
        b = rng.normal(size=15)
        x = np.linalg.solve(K, b)
        low, high = np.linalg.eigvalsh(K)[[0, -1]]
        for shift in (1e-4, 1e-2, 1.0, 100.0):
            change = np.linalg.norm(np.linalg.solve(K + shift * np.eye(15), b) - x) / np.linalg.norm(x)
            product = (high / low) * (shift / high)
            assert change <= product / (1 + product) * (1 + 1e-9)
            if product < 1:
                assert change <= product / (1 - product)

    def test_it_shifts_every_eigenvalue_and_keeps_the_vectors(self):
        K = Gaussian()(points()[0])
        values, vectors = np.linalg.eigh(K)
        shifted = K + 0.3 * np.eye(60)
        np.testing.assert_allclose(np.linalg.eigvalsh(shifted), values + 0.3, atol=1e-12)
        np.testing.assert_allclose(shifted @ vectors, vectors * (values + 0.3), atol=1e-11)
