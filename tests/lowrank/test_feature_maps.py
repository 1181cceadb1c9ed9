"""Feature maps and the values that ask for them: inner products, expansions, JSON."""

import json
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial, Sigmoid
from mercer.lowrank import (
    FixedSize,
    IncompleteCholesky,
    KernelPCA,
    Nystrom,
    OrthogonalFourier,
    RandomFourier,
    ReducedBasis,
)
from mercer.lowrank.approximations import approximation_from_dict
from mercer.lowrank.feature_map import KernelMap, principal_components_map, spectral_map, triangular_map
from mercer.planning import approximation_for
from mercer.resources import Resources

Array = NDArray[np.float64]
X = np.random.default_rng(0).standard_normal((70, 3))
S = X[:20]
KERNELS = [Gaussian(1.0), Laplacian(2.0), Matern(1.5, 2.5), Polynomial(degree=2, gamma=1.0, offset=1.0), Linear()]


@pytest.mark.parametrize("make", [triangular_map, spectral_map])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_inner_products_are_the_nystrom_matrix(make: Any, kernel: Any) -> None:
    Z = make(kernel, S).features(X)
    A = kernel(X, S)
    K = A @ np.linalg.pinv(kernel(S), rcond=1e-11, hermitian=True) @ A.T
    assert np.allclose(Z @ Z.T, K, atol=1e-7 * np.abs(K).max())
    assert np.allclose(Z[:20] @ Z.T, kernel(S, X), atol=1e-7 * np.abs(K).max())  # exact on the landmarks
    assert np.linalg.eigvalsh(kernel(X) - Z @ Z.T).min() > -1e-8 * np.abs(K).max()


def test_adding_landmarks_never_raises_the_error() -> None:
    kernel = Gaussian(1.0)
    traces = [
        float(np.sum(1.0 - np.sum(triangular_map(kernel, X[:m]).features(X) ** 2, axis=1))) for m in range(1, 71, 8)
    ]
    assert (np.diff(traces) <= 1e-9).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 30), st.integers(0, 100))
def test_expansions_are_the_linear_function_of_the_features(m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kernel = Gaussian(1.5)
    for make in (triangular_map, spectral_map, principal_components_map):
        if make is principal_components_map and m == 1:
            continue  # one point has no variance
        found = make(kernel, rng.standard_normal((m, 3)))
        W = rng.standard_normal((found.dimension, 2)) * 1e-3
        points, alpha, constant = found.expansion(W)
        assert np.allclose(kernel(X, points) @ alpha + constant, found.features(X) @ W, atol=1e-7)


def test_dependent_landmarks_are_left_out_and_named() -> None:
    found = triangular_map(Gaussian(1.0), np.vstack([S, S[:5]]))
    assert found.dimension == 20
    assert len(set((found.kept % 20).tolist())) == 20
    assert triangular_map(Linear(), S).dimension == 3


def test_a_rank_keeps_the_largest_eigenvalues() -> None:
    found = spectral_map(Gaussian(1.0), S, rank=4)
    Z = found.features(S)
    values = np.linalg.eigvalsh(Gaussian(1.0)(S))[::-1][:4]
    assert np.allclose(Z.T @ Z, np.diag(values), atol=1e-10)


def test_kernel_principal_components_are_centred_and_uncorrelated() -> None:
    kernel = Gaussian(1.0)
    Z = principal_components_map(kernel, X, rank=6).features(X)
    H = np.eye(70) - 1.0 / 70
    values = np.linalg.eigvalsh(H @ kernel(X) @ H)[::-1][:6]
    assert np.allclose(Z.mean(axis=0), 0.0, atol=1e-10)
    assert np.allclose(Z.T @ Z, np.diag(values), atol=1e-9)


def test_blocks_and_forms_of_the_points_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    found = triangular_map(Gaussian(1.0), S)
    Z = found.features(X)
    monkeypatch.setattr("mercer.lowrank.feature_map.BLOCK_VALUES", 1)
    assert np.allclose(found.features(X), Z, atol=1e-12)
    assert np.allclose(found.multiply(X, np.ones((20, 1))), Z.sum(axis=1, keepdims=True), atol=1e-9)
    assert np.allclose(found.features(sp.csr_array(X)), Z, atol=1e-7)
    out = np.empty((70, 20), dtype=np.float32)
    assert found.features(X, out) is out
    assert np.allclose(out, Z, atol=1e-4)


def test_what_has_no_map_is_refused() -> None:
    with pytest.raises(NotPositiveDefinite):
        triangular_map(Sigmoid(), S)
    with pytest.raises(InvalidInput, match="no points"):
        triangular_map(Gaussian(), S[:0])
    with pytest.raises(InvalidInput, match="zero"):
        triangular_map(Linear(), np.zeros((3, 2)))
    with pytest.raises(InvalidInput, match="features"):
        triangular_map(Gaussian(), S).features(X[:, :2])
    with pytest.raises(InvalidInput, match="rows"):
        KernelMap(Gaussian(), S, np.eye(3))
    with pytest.raises(InvalidInput, match="out"):
        triangular_map(Gaussian(), S).features(X, np.empty((2, 2)))


# The values ----------------------------------------------------------------------------------------------------------

VALUES = [
    Nystrom(10),
    Nystrom(10, landmarks="kmeans++", rank=3, tol=1e-6, seed=4),
    Nystrom(2, landmarks=[[0.0, 1.0], [2.0, 3.0]]),
    FixedSize(5),
    IncompleteCholesky(7, tol=0.1),
    KernelPCA(9, rank=2),
    ReducedBasis(4, ridge="identity"),
    RandomFourier(8, seed=1),
    OrthogonalFourier(8),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_print_as_their_call_and_go_through_json(value: Any) -> None:
    names = {type(v).__name__: type(v) for v in VALUES}
    assert eval(repr(value), names) == value
    assert approximation_from_dict(json.loads(json.dumps(value.to_dict()))) == value
    assert hash(value) == hash(approximation_from_dict(value.to_dict()))


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_make_maps_of_at_most_m_features(value: Any) -> None:
    points = X[:, :2] if not isinstance(getattr(value, "landmarks", ""), str) else X
    found = value.feature_map(Gaussian(1.0), points, seed=0)
    assert 1 <= found.dimension <= value.m
    again = value.feature_map(Gaussian(1.0), points, seed=0)
    assert np.array_equal(found.features(points), again.features(points))


@pytest.mark.parametrize("kind", [Nystrom, FixedSize, KernelPCA, ReducedBasis, RandomFourier, OrthogonalFourier])
@pytest.mark.parametrize("own", [0, 4])
def test_the_seed_of_an_approximation_goes_before_the_one_it_is_given(kind: Any, own: int) -> None:
    kernel = Gaussian(1.0)
    found = kind(10, seed=own).feature_map(kernel, X, seed=9).features(X)
    assert np.array_equal(found, kind(10).feature_map(kernel, X, seed=own).features(X))
    other = kind(10).feature_map(kernel, X, seed=9).features(X)
    assert found.shape != other.shape or not np.allclose(found, other)


@pytest.mark.parametrize(
    "call",
    [
        lambda: Nystrom(0),
        lambda: Nystrom(2.5),  # type: ignore[arg-type]
        lambda: Nystrom(True),
        lambda: Nystrom(5, landmarks="nearest"),
        lambda: Nystrom(5, landmarks=[1.0, 2.0]),
        lambda: Nystrom(5, landmarks=np.array([[np.nan]])),
        lambda: Nystrom(5, rank=0),
        lambda: Nystrom(5, tol=2.0),
        lambda: Nystrom(5, seed=-1),
        lambda: ReducedBasis(5, ridge="lasso"),  # type: ignore[arg-type]
        lambda: approximation_from_dict({"name": "Exact", "arguments": {}}),
        lambda: approximation_from_dict({"name": "Nystrom", "arguments": {"m": 3, "colour": 1}}),
        lambda: approximation_from_dict([]),
    ],
)
def test_senseless_values_are_refused(call: Any) -> None:
    with pytest.raises(InvalidInput):
        call()


def test_auto_decides_by_size_and_memory() -> None:
    kernel = Gaussian()
    assert approximation_for(kernel, 5_000, resources=Resources("1 GiB")).approximation is None
    assert approximation_for(Linear(), 10**7, resources=Resources("1 GiB")).approximation is None
    assert approximation_for(Sigmoid(), 10**7, resources=Resources("1 GiB")).approximation is None
    assert approximation_for(kernel, 500_000, resources=Resources("4 GiB")).approximation == Nystrom(2828)
    small = approximation_for(kernel, 500_000, resources=Resources("4 MiB"))
    assert isinstance(small.approximation, Nystrom)
    assert small.approximation.m < 500
    assert "as many as" in small.reason
    held = approximation_for(kernel, 500_000, resources=Resources("1 GiB"), row_bytes=4)
    assert held.approximation is not None
    assert held.approximation.m * 4 * 500_000 <= 2**30
