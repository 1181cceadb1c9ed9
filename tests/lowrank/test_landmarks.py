"""What holds for every way of choosing landmarks: one signature, seeds, weights, bad input, honest measurements."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.errors import InvalidInput
from mercer.kernels import Gaussian, Precomputed
from mercer.lowrank import choose
from mercer.lowrank.landmarks import METHODS
from mercer.lowrank.landmarks.measures import residual_diagonal


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(150, 4))


@pytest.fixture(scope="module")
def y(X):
    return np.sin(X[:, 0]) + X[:, 1] ** 2


KERNEL = Gaussian(sigma=1.5)


def residual(kernel, X, S):
    """trace(K - A B^+ A') by dense algebra."""
    A = kernel(X, S)
    return np.trace(kernel(X) - A @ np.linalg.pinv(kernel(S), rcond=1e-12, hermitian=True) @ A.T)


@pytest.mark.parametrize("method", METHODS)
def test_residual_trace_and_entropy_are_those_of_dense_algebra(X, y, method):
    chosen = choose(KERNEL, X, 20, method=method, y=y, seed=1)
    assert len(chosen) == 20
    assert chosen.residual_rows == 150
    assert chosen.residual_trace == pytest.approx(residual(KERNEL, X, chosen.points), rel=1e-8)
    assert chosen.trace == pytest.approx(150.0)
    assert chosen.explained == pytest.approx(1 - chosen.residual_trace / 150.0)
    assert chosen.entropy == pytest.approx(-math.log(KERNEL(chosen.points).mean()))
    assert chosen.seconds > 0
    assert chosen.method == method


@pytest.mark.parametrize("unit", [1e-14, 1e14])
def test_the_residual_is_measured_in_the_unit_of_the_kernel(X, unit):
    points = np.vstack([X[:20], X[:5]])  # copies are dependent, whatever the unit
    expected = residual_diagonal(KERNEL, X, points)
    np.testing.assert_allclose(residual_diagonal(unit * KERNEL, X, points) / unit, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_seed_reproduces_the_choice_and_no_row_comes_twice(X, y, method):
    first, second = (choose(KERNEL, X, 30, method=method, y=y, seed=7) for _ in range(2))
    np.testing.assert_array_equal(first.points, second.points)
    assert first.residual_trace == second.residual_trace
    if first.index is not None:
        assert len(set(first.index)) == 30
        np.testing.assert_array_equal(X[first.index], first.points)


@pytest.mark.parametrize("method", METHODS)
def test_more_landmarks_than_points_means_all_points(X, y, method):
    few = X[:12]
    chosen = choose(KERNEL, few, 50, method=method, y=y[:12], seed=0)
    assert len(chosen) == 12
    assert chosen.residual_trace == pytest.approx(0.0, abs=1e-9)
    assert "50" in chosen.details["asked"]


@pytest.mark.parametrize("method", METHODS)
def test_sparse_points_give_the_landmarks_of_dense_ones(y, method):
    X = np.random.default_rng(3).normal(size=(150, 40)) * (np.random.default_rng(4).random((150, 40)) < 0.1)
    kernel = Gaussian(sigma=3.0)
    dense = choose(kernel, X, 15, method=method, y=y, seed=5)
    sparse = choose(kernel, sp.csr_array(X), 15, method=method, y=y, seed=5)
    assert sp.issparse(sparse.points)
    assert sparse.points.format == "csr"
    if dense.index is not None:
        np.testing.assert_array_equal(dense.index, sparse.index)
    np.testing.assert_allclose(sparse.points.toarray(), dense.points, atol=1e-10)
    assert sparse.residual_trace == pytest.approx(dense.residual_trace, rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_point_of_weight_zero_is_never_chosen(X, y, method):
    weights = np.where(np.arange(150) % 3 == 0, 0.0, 1.0)
    chosen = choose(KERNEL, X, 40, method=method, y=y, weights=weights, seed=2)
    if chosen.index is not None:
        assert (weights[chosen.index] > 0).all()
    without = choose(KERNEL, X[weights > 0], 40, method=method, y=y[weights > 0], seed=2)
    assert chosen.residual_trace == pytest.approx(without.residual_trace, rel=1e-9)
    assert chosen.trace == pytest.approx(100.0)


@pytest.mark.parametrize("method", METHODS)
def test_duplicate_points_never_break_a_method(X, y, method):
    doubled, targets = np.repeat(X[:25], 4, axis=0), np.repeat(y[:25], 4)
    chosen = choose(KERNEL, doubled, 60, method=method, y=targets, seed=0)
    assert np.isfinite(chosen.residual_trace)
    assert chosen.residual_trace == pytest.approx(residual(KERNEL, doubled, chosen.points), abs=1e-8)
    if chosen.index is not None:
        assert len(set(chosen.index)) == len(chosen)
    if len(chosen) < 60:
        assert chosen.details["dropped"] == 60 - len(chosen)


def test_the_residual_trace_is_estimated_from_random_rows_where_asked(X):
    exact = choose(KERNEL, X, 10, seed=0, measure=True)
    estimates = [choose(KERNEL, X, 10, seed=0, measure=75)]
    assert estimates[0].residual_rows == 75
    assert "75 of 150" in estimates[0].details["measure"]
    np.testing.assert_array_equal(exact.index, estimates[0].index)
    assert estimates[0].residual_trace == pytest.approx(exact.residual_trace, rel=0.1)
    unmeasured = choose(KERNEL, X, 10, seed=0, measure=False)
    assert math.isnan(unmeasured.residual_trace)
    assert unmeasured.residual_rows == 0


def test_half_a_million_points_are_no_trouble_for_uniform():
    X = np.random.default_rng(0).normal(size=(500_000, 3)).astype(np.float32)
    chosen = choose(Gaussian(sigma=1.0), X, 2000, seed=0)
    assert len(set(chosen.index)) == 2000
    assert chosen.residual_rows < 500_000
    assert chosen.seconds < 2.0


def test_uniform_rows_are_drawn_in_proportion_to_their_weights():
    X = np.arange(40.0)[:, None]
    weights = np.where(np.arange(40) < 20, 1.0, 9.0)
    heavy = [np.mean(choose(KERNEL, X, 4, weights=weights, seed=s, measure=False).index >= 20) for s in range(300)]
    assert np.mean(heavy) == pytest.approx(0.9, abs=0.05)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"m": 0}, "m must be"),
        ({"m": 2.5}, "m must be"),
        ({"method": "best"}, "uniform"),
        ({"candidates": 5}, "takes no option 'candidates'"),
        ({"weights": [1.0]}, "weights of shape"),
        ({"weights": np.full(150, -1.0)}, "weights must be"),
        ({"y": np.ones(3)}, "y of shape"),
        ({"y": ["a"] * 150}, "code classes"),
        ({"kernel": Precomputed()}, "landmarks are points"),
        ({"kernel": "rbf"}, "is no kernel"),
        ({"X": np.full((4, 2), np.nan)}, "X contains NaN"),
    ],
)
def test_bad_arguments_are_refused_by_name(X, arguments, words):
    call = {"kernel": KERNEL, "X": X, "m": 10} | arguments
    with pytest.raises(InvalidInput, match=words):
        choose(call.pop("kernel"), call.pop("X"), call.pop("m"), **call)
