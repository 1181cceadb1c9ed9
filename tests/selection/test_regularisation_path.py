"""The whole path of C against separate fits, on every method."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.selection.leave_one_out import leave_one_out
from mercer.selection.regularisation_path import (
    choose_method,
    default_values,
    linear_path,
    method_seconds,
    regularisation_path,
)

METHODS = ["cholesky", "tridiagonal", "spectral"]
C_VALUES = np.geomspace(1e-3, 1e4, 37)


def problem(seed, n=40, k=2, d=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    K = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / 4)
    return X, K, rng.standard_normal((n, k)), rng.uniform(0.3, 2.0, n)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("border", ["none", "free", "basis"])
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10**6), weighted=st.booleans(), n=st.sampled_from([2, 3, 4, 40, 150]))
def test_every_value_equals_a_separate_fit(method, border, seed, weighted, n):
    X, K, Y, w = problem(seed, n)
    if border == "basis" and n < 5:
        n = 5
        X, K, Y, w = problem(seed, n)
    P = {"none": None, "free": np.ones((n, 1)), "basis": np.column_stack([np.ones(n), X[:, 0]])}[border]
    w = w if weighted else None
    path = regularisation_path(K, Y, C_VALUES, weights=w, border=P, method=method)
    separate = [leave_one_out(K, Y, 1 / C, weights=w, border=P) for C in C_VALUES]
    np.testing.assert_allclose(path.loo, [s.mean_squared_error for s in separate], rtol=1e-9)
    np.testing.assert_allclose(path.gcv, [s.gcv for s in separate], rtol=1e-9)
    np.testing.assert_allclose(path.degrees, [s.degrees for s in separate], rtol=1e-9, atol=1e-9)
    best = separate[path.index]
    np.testing.assert_allclose(path.best.residuals, best.residuals, rtol=1e-9, atol=1e-9)
    assert path.best_C == C_VALUES[np.argmin(path.loo)]
    alone = regularisation_path(K, Y, C_VALUES, weights=w, border=P, method=method, criterion="gcv")
    np.testing.assert_allclose(alone.gcv, path.gcv, rtol=1e-9)
    np.testing.assert_allclose(alone.degrees, path.degrees, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("border", [None, "free"])
def test_linear_path_equals_the_kernel_path(border):
    X, _, Y, w = problem(1, n=60, d=4)
    P = None if border is None else np.ones((60, 1))
    thin = linear_path(X, Y, C_VALUES, weights=w, border=P)
    full = regularisation_path(X @ X.T, Y, C_VALUES, weights=w, border=P, method="cholesky")
    np.testing.assert_allclose(thin.loo, full.loo, rtol=1e-9)
    np.testing.assert_allclose(thin.gcv, full.gcv, rtol=1e-9)
    gcv = linear_path(X, Y, C_VALUES, weights=w, border=P, criterion="gcv")
    np.testing.assert_allclose(gcv.gcv, full.gcv, rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_singular_matrix_with_points_of_no_weight(method):
    X, _, Y, w = problem(2, n=50)
    X[10:20] = X[:10]
    K = X @ X.T
    w[::6] = 0
    path = regularisation_path(K, Y, C_VALUES, weights=w, border=np.ones((50, 1)), method=method)
    for C, value in zip(C_VALUES, path.loo):
        assert value == pytest.approx(
            leave_one_out(K, Y, 1 / C, weights=w, border=np.ones((50, 1))).mean_squared_error, rel=1e-9
        )


def test_fewest_errors_are_chosen_and_ties_go_to_the_smaller_residual():
    X, K, _, _ = problem(3, n=80)
    y = np.where(X[:, 0] + 0.5 * np.random.default_rng(0).standard_normal(80) > 0, 1.0, -1.0)
    path = regularisation_path(K, y, C_VALUES, border=np.ones((80, 1)), criterion="error")
    ties = np.flatnonzero(path.error == np.min(path.error))
    assert path.index == ties[np.argmin(path.loo[ties])]
    assert path.best.error_rate() == np.min(path.error)
    assert np.isnan(regularisation_path(K, X[:, 0], C_VALUES).error).all()


def test_degrees_of_freedom_rise_with_C_between_the_border_and_n():
    _, K, Y, _ = problem(4)
    path = regularisation_path(K, Y, np.geomspace(1e-9, 1e9, 50), border=np.ones((40, 1)), method="spectral")
    assert np.all(np.diff(path.degrees) > -1e-9)
    assert path.degrees[0] == pytest.approx(1.0, abs=1e-4)
    assert path.degrees[-1] <= 40


def test_cost_model_takes_cholesky_for_few_values_and_one_reduction_for_many():
    for n in (500, 2500, 5000, 20000):
        assert choose_method(n, 1) == "cholesky"
        assert choose_method(n, 3) == "cholesky"
        assert choose_method(n, 100) == ("spectral" if n == 500 else "tridiagonal")
        assert choose_method(n, 100, gcv_only=True) == "tridiagonal"
        costs = method_seconds(n, 10**6)
        assert costs["spectral"] < costs["tridiagonal"] < costs["cholesky"]


def test_indefinite_matrix_is_refused_on_every_road():
    K = np.diag([1.0, -1.0, 2.0, 3.0])
    for method in METHODS:
        with pytest.raises(NotPositiveDefinite):
            regularisation_path(K, np.arange(4.0), [0.1, 10.0], method=method)


def test_bad_values_are_named():
    _, K, Y, _ = problem(5)
    for C in ([], [0.0], [-1.0, 1.0], [np.nan]):
        with pytest.raises(InvalidInput, match="C must be"):
            regularisation_path(K, Y, C)
    with pytest.raises(InvalidInput, match="method"):
        regularisation_path(K, Y, [1.0], method="factored")
    with pytest.raises(InvalidInput, match="more points"):
        regularisation_path(np.eye(1), [1.0], [1.0], border=np.ones((1, 1)))


def test_default_values_follow_the_scale_of_the_kernel_and_edges_are_seen():
    np.testing.assert_allclose(default_values(10.0), default_values(1.0) / 10)
    _, K, Y, _ = problem(6)
    assert regularisation_path(K, Y, [1e3, 1e4]).at_edge
