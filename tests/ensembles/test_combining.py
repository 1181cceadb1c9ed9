"""Weights of least error against a general solver, and the Bayesian committee against the whole Gaussian process."""

import cvxopt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.ensembles import combining
from mercer.ensembles.combining import Posterior
from mercer.errors import InvalidInput

cvxopt.solvers.options.update(show_progress=False, abstol=1e-12, reltol=1e-12, feastol=1e-12)


def errors(q: int, seed: int, n: int = 30) -> np.ndarray:
    random = np.random.default_rng(seed)
    E = random.standard_normal((q, n)) * random.uniform(0.3, 2.0, (q, 1)) + random.standard_normal(n)
    return E @ E.T / n


def by_quadratic_program(S: np.ndarray, convex: bool) -> np.ndarray:
    q = len(S)
    options = (cvxopt.matrix(-np.eye(q)), cvxopt.matrix(np.zeros(q))) if convex else (None, None)
    found = cvxopt.solvers.qp(
        cvxopt.matrix(2 * S), cvxopt.matrix(np.zeros(q)), *options, cvxopt.matrix(np.ones((1, q))), cvxopt.matrix(1.0)
    )
    return np.array(found["x"]).ravel()


@settings(deadline=None, max_examples=25)
@given(q=st.integers(2, 8), seed=st.integers(0, 10_000))
def test_affine_weights_are_those_of_a_general_solver(q, seed):
    S = errors(q, seed)
    beta = combining.affine(S)
    np.testing.assert_allclose(beta, by_quadratic_program(S, convex=False), atol=1e-6)
    least = beta @ S @ beta
    assert least == pytest.approx(1.0 / np.linalg.inv(S).sum())
    assert least <= S.diagonal().min() + 1e-12
    assert least <= S.mean() + 1e-12


@settings(deadline=None, max_examples=25)
@given(q=st.integers(2, 8), seed=st.integers(0, 10_000))
def test_convex_weights_are_optimal_with_exact_zeros(q, seed):
    S = errors(q, seed)
    beta = combining.convex(S)
    assert beta.min() >= 0.0
    assert beta.sum() == pytest.approx(1.0)
    least = beta @ S @ beta
    slopes = S @ beta  # (S beta)_j >= beta'S beta, with equality on the support
    assert np.all(slopes >= least - 1e-10 * S.max())
    np.testing.assert_allclose(slopes[beta > 0], least, atol=1e-10 * S.max())
    reference = by_quadratic_program(S, convex=True)
    assert least == pytest.approx(reference @ S @ reference, rel=1e-6)


def test_strongly_correlated_members_leave_few_support_models():
    random = np.random.default_rng(0)
    common = random.standard_normal(200)
    E = np.array([(1.0 + 0.2 * j) * common + 0.1 * random.standard_normal(200) for j in range(10)])
    beta = combining.convex(E @ E.T / 200)
    assert np.count_nonzero(beta) < 5
    assert np.any(combining.affine(E @ E.T / 200) < 0.0)


def test_the_error_of_the_sum_is_the_quadratic_form():
    random = np.random.default_rng(1)
    F, y, w = random.standard_normal((4, 50, 2)), random.standard_normal((50, 2)), random.uniform(0.1, 2, 50)
    beta = np.array([0.7, -0.2, 0.1, 0.4])
    S = combining.error_products(F, y, w)
    direct = np.average(np.sum((combining.weighted(F, beta) - y) ** 2, axis=1), weights=w)
    assert beta @ S @ beta == pytest.approx(direct)


def test_rules_without_training():
    F = np.array([[[1.0], [-1.0]], [[2.0], [3.0]], [[-9.0], [4.0]], [[3.0], [5.0]]])
    np.testing.assert_allclose(combining.mean(F)[:, 0], [-0.75, 2.75])
    np.testing.assert_allclose(combining.median(F)[:, 0], [1.5, 3.5])
    np.testing.assert_allclose(combining.trimmed(F, 0.25)[:, 0], [1.5, 3.5])
    np.testing.assert_allclose(combining.trimmed(F, 0.0), combining.mean(F))
    np.testing.assert_allclose(combining.vote(F)[:, 0], [0.5, 0.5])
    three = np.array([[[0.0, 2.0, 1.0]], [[0.0, 1.0, 2.0]], [[-1.0, 5.0, 2.0]]])
    np.testing.assert_allclose(combining.vote(three), [[0.0, 2 / 3, 1 / 3]])
    gate = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(combining.weighted(F, gate)[:, 0], [1.0, 3.0])
    with pytest.raises(InvalidInput, match="trim"):
        combining.trimmed(F, 0.5)


def test_the_bayesian_committee_is_the_whole_process_where_the_test_points_determine_it():
    """With as many test points as the kernel has features, f at them determines f: the committee loses nothing."""
    random = np.random.default_rng(2)
    X, T, y = random.standard_normal((30, 3)), random.standard_normal((3, 3)), random.standard_normal(30)
    noise = 0.3

    def posterior(rows: np.ndarray) -> Posterior:
        H = X[rows] @ X[rows].T + noise * np.eye(len(rows))
        across = T @ X[rows].T
        return Posterior(across @ np.linalg.solve(H, y[rows]), T @ T.T - across @ np.linalg.solve(H, across.T))

    whole = posterior(np.arange(30))
    found = combining.bayesian_committee(T @ T.T, [posterior(part) for part in np.split(np.arange(30), 5)])
    np.testing.assert_allclose(found.mean, whole.mean, atol=1e-9)
    np.testing.assert_allclose(found.covariance, whole.covariance, atol=1e-9)
