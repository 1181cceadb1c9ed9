"""Distances are accurate relative to themselves, wherever the points lie."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.kernels import Exponential, Gaussian
from mercer.kernels.distances import manhattan, product, squared_distances, squared_norms


def exact(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Squared distances by differences in extended precision."""
    difference = X.astype(np.longdouble)[:, None] - Z.astype(np.longdouble)[None]
    return np.sum(difference * difference, axis=2).astype(np.float64)


@pytest.mark.parametrize("d", [1, 5, 16, 17, 60])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e8])
def test_close_points_far_from_the_origin_keep_their_distance(d: int, offset: float) -> None:
    random = np.random.default_rng(d)
    X = offset + 1e-2 * random.standard_normal((12, d))
    Z = np.concatenate([X[:3], X[3:6] + 1e-3, offset + random.standard_normal((2, d))])
    reference = exact(X, Z)
    np.testing.assert_allclose(squared_distances(X, Z), reference, rtol=1e-11, atol=0.0)
    np.testing.assert_allclose(squared_distances(X, None), exact(X, X), rtol=1e-11, atol=0.0)
    np.testing.assert_allclose(squared_distances(sp.csr_array(X), sp.csr_array(Z)), reference, rtol=1e-11, atol=0.0)
    np.testing.assert_allclose(squared_distances(sp.csr_array(X), Z), reference, rtol=1e-11, atol=0.0)
    np.testing.assert_allclose(squared_distances(X, sp.csr_array(Z)), reference, rtol=1e-11, atol=0.0)


def test_two_distant_clusters_are_both_resolved() -> None:
    random = np.random.default_rng(0)
    X = np.concatenate([1e-5 * random.standard_normal((6, 40)) + centre for centre in (-1e5, 1e5)])
    np.testing.assert_allclose(squared_distances(X, None), exact(X, X), rtol=1e-11, atol=0.0)
    K = Gaussian(sigma=1e-4)(X)
    np.testing.assert_allclose(K[:6, :6], np.exp(-exact(X, X)[:6, :6] / 2e-8), rtol=1e-9)
    K = Exponential(sigma=1e-4)(X)
    np.testing.assert_allclose(K[:6, :6], np.exp(-np.sqrt(exact(X, X)[:6, :6]) / 1e-4), rtol=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 30), st.floats(-8, 8), st.floats(-8, 8))
def test_squared_distances_are_symmetric_never_negative_and_zero_for_equal_points(
    seed: int, d: int, spread: float, offset: float
) -> None:
    X = 10.0**offset + 10.0**spread * np.random.default_rng(seed).standard_normal((8, d))
    X[5] = X[2]
    for points in (X, sp.csr_array(X)):
        q = squared_distances(points, None)
        assert (q >= 0.0).all()
        assert (np.diag(q) == 0.0).all()
        assert q[5, 2] == 0.0
        np.testing.assert_array_equal(q, q.T)
        np.testing.assert_allclose(q, exact(X, X), rtol=1e-10, atol=0.0)


def test_many_equal_rows_cost_no_accuracy_and_no_memory() -> None:
    X = np.repeat(np.random.default_rng(1).standard_normal((4, 33)) + 100.0, 60, axis=0)
    np.testing.assert_allclose(squared_distances(X, None), exact(X, X), rtol=1e-11, atol=0.0)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12), st.floats(0.0, 1.0))
def test_manhattan_distance_of_sparse_rows_is_that_of_dense_ones(seed: int, d: int, density: float) -> None:
    random = np.random.default_rng(seed)
    X, Z = (random.standard_normal((n, d)) * (random.random((n, d)) < density) for n in (6, 4))
    reference = np.abs(X[:, None] - Z[None]).sum(axis=2)
    for left in (X, sp.csr_array(X)):
        for right in (Z, sp.csr_array(Z)):
            np.testing.assert_allclose(manhattan(left, right), reference, rtol=1e-13, atol=1e-300)


def test_products_and_norms_take_every_mixture_of_storage() -> None:
    random = np.random.default_rng(3)
    X, Z = random.standard_normal((5, 7)), random.standard_normal((4, 7))
    for left in (X, sp.csr_array(X)):
        np.testing.assert_allclose(squared_norms(left), (X**2).sum(axis=1), rtol=1e-14)
        for right in (Z, sp.csr_array(Z)):
            result = product(left, right)
            assert isinstance(result, np.ndarray)
            assert result.flags.c_contiguous
            np.testing.assert_allclose(result, X @ Z.T, rtol=1e-13)


def test_sparse_points_that_are_not_canonical_are_read_and_left_as_they_are() -> None:
    rows = sp.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3, 3])), shape=(2, 3))
    K = Gaussian()(rows)
    np.testing.assert_allclose(K, Gaussian()(rows.toarray()))
    np.testing.assert_array_equal(rows.indices, [2, 0, 2])


def test_wide_sparse_points_are_never_made_dense() -> None:
    d = 400_000_000  # a dense row alone would take 3 GiB
    rows = sp.csr_array((np.ones(6), np.array([0, 5, 9, d - 1, 5, 7]), np.array([0, 2, 4, 6])), shape=(3, d))
    for kernel in (Gaussian(), Exponential()):
        assert kernel(rows).shape == (3, 3)
    np.testing.assert_allclose(squared_distances(rows, None), [[0, 4, 2], [4, 0, 4], [2, 4, 0]])
    np.testing.assert_allclose(manhattan(rows, None), [[0, 4, 2], [4, 0, 4], [2, 4, 0]])
