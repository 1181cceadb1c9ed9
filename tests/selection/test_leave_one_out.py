"""Leave-one-out of least squares against n explicit retrainings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import dense
from mercer.errors import Infeasible, InvalidInput, NotPositiveDefinite
from mercer.selection.leave_one_out import leave_one_out, linear_leave_one_out
from tests.selection.bordered_cases import BORDERS, problem, without


def kernel_matrix(X, Z, sigma=1.5):
    return np.exp(-np.sum((X[:, None] - Z) ** 2, axis=2) / (2 * sigma**2))


def retrained(K, Y, ridge, weights, P):
    """Predictions of the machine trained without each point in turn."""
    return np.array([without([i], i, K, Y, ridge, weights, P) for i in range(len(Y))])


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("weighted", ["equal", "weighted", "zeros"])
@pytest.mark.parametrize("constant", [0.0, 1.0])
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), ridge=st.sampled_from([1e-2, 0.3, 20.0]))
def test_leave_one_out_equals_retraining(border, weighted, constant, seed, ridge):
    X, Y, w = problem(seed, 24, 3)
    weights = {"equal": np.ones(len(X)), "weighted": w, "zeros": np.where(np.arange(len(X)) % 5 == 0, 0.0, w)}[weighted]
    P = BORDERS[border](X)
    K = kernel_matrix(X, X)
    found = leave_one_out(K, Y, ridge, weights=None if weighted == "equal" else weights, border=P, constant=constant)
    expected = retrained(K + constant, Y, ridge, weights, P)
    np.testing.assert_allclose(found.predictions, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("border", ["none", "free"])
def test_linear_machine_through_features_equals_the_kernel_form(border):
    X, Y, w = problem(3, 40, 5)
    w[::7] = 0
    P = BORDERS[border](X)
    thin = linear_leave_one_out(X, Y, 0.7, weights=w, border=P)
    full = leave_one_out(X @ X.T, Y, 0.7, weights=w, border=P)
    for name in ("residuals", "coefficients", "border", "inverse_diagonal", "gcv", "degrees"):
        np.testing.assert_allclose(getattr(thin, name), getattr(full, name), rtol=1e-10, atol=1e-11)


def test_coefficients_and_border_solve_the_bordered_system():
    X, Y, w = problem(4, 24, 3)
    K, P = kernel_matrix(X, X), BORDERS["semiparametric"](X)
    found = leave_one_out(K, Y, 0.2, weights=w, border=P)
    np.testing.assert_allclose(
        K @ found.coefficients + (0.2 / w)[:, None] * found.coefficients + P @ found.border, Y, atol=1e-12
    )
    np.testing.assert_allclose(P.T @ found.coefficients, 0, atol=1e-12)


def test_the_printed_formula_with_the_inverse_in_place_of_the_hat_matrix_is_wrong():
    X, Y, _ = problem(5, 24, 3)
    K = kernel_matrix(X, X)
    r = 0.1
    G = np.linalg.inv(K + r * np.eye(len(K)))
    fitted = K @ G @ Y
    expected = retrained(K, Y, r, np.ones(len(K)), np.empty((len(K), 0)))
    printed = (Y - fitted) / (1 - np.diag(G))[:, None]
    corrected = (Y - fitted) / (1 - np.diag(K @ G))[:, None]
    assert np.max(np.abs(printed - (Y - expected))) > 1e-2
    np.testing.assert_allclose(corrected, Y - expected, atol=1e-11)


def test_generalised_cross_validation_is_leave_one_out_with_mean_leverage():
    X, Y, w = problem(6, 24, 3)
    K, P, r = kernel_matrix(X, X), BORDERS["free"](X), 0.4
    n = len(K)
    M = np.block([[K + np.diag(r / w), P], [P.T, np.zeros((1, 1))]])
    H = (np.hstack([K, P]) @ np.linalg.inv(M))[:, :n]
    found = leave_one_out(K, Y, r, weights=w, border=P)
    residual = Y - H @ Y
    expected = np.sum(w[:, None] * residual**2) / np.sum(w) / (1 - np.trace(H) / n) ** 2
    assert found.gcv == pytest.approx(expected, rel=1e-10)
    assert found.degrees == pytest.approx(np.trace(H), rel=1e-10)


def test_gcv_equals_leave_one_out_when_all_leverages_are_equal():
    n = 12
    K = np.cos(2 * np.pi * (np.arange(n)[:, None] - np.arange(n)) / n) + 1.5  # circulant: a constant hat diagonal
    y = np.random.default_rng(0).standard_normal(n)
    found = leave_one_out(K, y, 0.3)
    assert found.gcv == pytest.approx(found.mean_squared_error, rel=1e-10)


def test_error_rate_counts_signs_and_largest_columns():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 2))
    labels = rng.integers(0, 3, 30)
    Y = np.where(labels[:, None] == np.arange(3), 1.0, -1.0)
    found = leave_one_out(kernel_matrix(X, X), Y, 1.0, border=np.ones((30, 1)))
    assert found.error_rate() == np.mean(np.argmax(found.predictions, axis=1) != labels)
    binary = leave_one_out(kernel_matrix(X, X), Y[:, :1], 1.0)
    assert binary.error_rate() == np.mean(np.sign(binary.predictions[:, 0]) != Y[:, 0])


def test_diagonal_of_the_inverse_from_the_factor():
    rng = np.random.default_rng(2)
    A = rng.standard_normal((600, 600))
    A = A @ A.T + 600 * np.eye(600)
    L = np.asfortranarray(np.linalg.cholesky(A))
    np.testing.assert_allclose(dense.inverse_diagonal(L), np.diag(np.linalg.inv(A)), rtol=1e-12)


def test_input_is_kept_unless_overwriting_is_allowed():
    X, Y, _ = problem(7, 24, 3)
    K = kernel_matrix(X, X)
    before = K.copy()
    leave_one_out(K, Y, 0.1, border=np.ones((len(K), 1)))
    np.testing.assert_array_equal(K, before)


def test_interpolation_without_ridge_is_left_out_exactly():
    X, Y, _ = problem(8, 10, 3)
    K = kernel_matrix(X, X, sigma=0.5)
    expected = retrained(K, Y, 0.0, np.ones(10), np.empty((10, 0)))
    np.testing.assert_allclose(leave_one_out(K, Y, 0.0).predictions, expected, rtol=1e-8, atol=1e-8)


def test_singular_matrix_without_ridge_is_refused_with_a_remedy():
    X, Y, _ = problem(9, 24, 3)
    X[1] = X[0]
    with pytest.raises(NotPositiveDefinite, match="lower C"):
        leave_one_out(kernel_matrix(X, X), Y, 0.0)


def test_duplicates_with_conflicting_targets_equal_retraining():
    X, Y, _ = problem(10, 24, 3)
    X[1], Y[1] = X[0], -Y[0]
    K, P = kernel_matrix(X, X), np.ones((len(X), 1))
    expected = retrained(K, Y, 1e-6, np.ones(len(X)), P)
    np.testing.assert_allclose(leave_one_out(K, Y, 1e-6, border=P).predictions, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("ridge", [-1.0, np.nan, np.inf])
def test_bad_ridge_is_named(ridge):
    with pytest.raises(InvalidInput, match="ridge"):
        leave_one_out(np.eye(3), np.ones(3), ridge)


def test_dependent_border_and_bad_weights_and_shapes_are_named():
    K, y = np.eye(4), np.arange(4.0)
    with pytest.raises(Infeasible, match="linearly dependent"):
        leave_one_out(K, y, 1.0, border=np.ones((4, 2)))
    with pytest.raises(InvalidInput, match="weights"):
        leave_one_out(K, y, 1.0, weights=[1, -1, 1, 1])
    with pytest.raises(InvalidInput, match="all weights are zero"):
        leave_one_out(K, y, 1.0, weights=np.zeros(4))
    with pytest.raises(InvalidInput, match="square"):
        leave_one_out(np.eye(3), y, 1.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_conditionally_positive_definite_kernel_equals_retraining(weighted):
    X, Y, w = problem(11, 24, 3)
    w = np.where(np.arange(len(X)) % 5 == 0, 0.0, w) if weighted else np.ones(len(X))
    K, P = -np.sqrt(1.0 + np.sum((X[:, None] - X) ** 2, axis=2)), np.ones((len(X), 1))
    found = leave_one_out(K, Y, 0.3, weights=w, border=P, projected=True)
    np.testing.assert_allclose(found.predictions, retrained(K, Y, 0.3, w, P), rtol=1e-10, atol=1e-10)
    with pytest.raises(NotPositiveDefinite):
        leave_one_out(K, Y, 0.3, border=P)
