"""Sparse, low-rank and mapped matrices: what is special to each."""

import gc
import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import BudgetTooSmall, InvalidInput, PrecisionLoss
from mercer.gram import Gram, LowRankGram, MappedGram, cost
from mercer.kernels import BSpline, CompactGaussian, Gaussian, Linear, Precomputed, Wendland


def grid(n):
    """Points of the sinc example: the line from -20 to 20."""
    return np.linspace(-20, 20, n)[:, None]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 120), d=st.integers(1, 4), sigma=st.floats(0.01, 3))
def test_sparse_values_found_by_neighbour_search_are_the_tapered_dense_matrix(seed, n, d, sigma):
    X = np.random.default_rng(seed).normal(size=(n, d))
    kernel = CompactGaussian(sigma=sigma)
    gram = Gram(kernel, X, storage="sparse")
    K = kernel(X)
    np.testing.assert_allclose(gram.dense(), K, atol=1e-12)
    np.testing.assert_allclose(gram @ X, K @ X, atol=1e-10)
    assert np.count_nonzero(K) <= gram.nonzeros <= np.count_nonzero(K) + n
    Z = np.random.default_rng(seed + 1).normal(size=(31, d))
    across = Gram(kernel, X, Z, storage="sparse")
    np.testing.assert_allclose(across.dense(), kernel(X, Z), atol=1e-12)
    np.testing.assert_allclose(across.T @ X, kernel(X, Z).T @ X, atol=1e-10)


def test_sparse_blocks_subsets_and_other_kernels_agree():
    X = np.random.default_rng(0).normal(size=(150, 2))
    K = Wendland(theta=0.5, dimension=2)(X)
    gram = Gram(Wendland(theta=0.5, dimension=2), X, storage="sparse")
    np.testing.assert_allclose(gram.block([5, 1, 1], slice(3, 90, 7)), K[[5, 1, 1], 3:90:7], atol=1e-12)
    np.testing.assert_allclose(gram.columns_dot([5, 5, 2], [1.0, 2.0, 3.0]), K[:, [5, 5, 2]] @ [1, 2, 3], atol=1e-12)
    np.testing.assert_allclose(gram.subset([9, 3, 8]).dense(), K[np.ix_([9, 3, 8], [9, 3, 8])], atol=1e-12)
    wider = gram.with_kernel(CompactGaussian(sigma=0.3))
    assert wider.storage == "sparse"
    np.testing.assert_allclose(wider.dense(), CompactGaussian(sigma=0.3)(X), atol=1e-12)
    np.testing.assert_allclose(gram.diagonal(), np.diagonal(K))


def test_sparse_matrix_is_built_without_a_dense_one(measured):
    X = grid(6000)
    kernel = CompactGaussian(sigma=0.05)
    Gram(kernel, X, memory="40 MB") @ X  # compiled code is not the operator's
    with measured() as peak:
        gram = Gram(kernel, X, memory="40 MB")
        gram @ X
    assert gram.storage == "sparse"
    assert peak.bytes < 10_000_000 < 6000 * 6000 * 8 / 20
    assert f"{gram.nonzeros} of 36000000" in str(gram.plan())


def test_compact_kernel_on_the_sinc_grid_leaves_the_published_share_of_values():
    """Hamers 2004, section 4.3.2: 1334 points, exp(-r^2 / 3.70^2) cut at 11.1, leave a band of 850 526 values."""
    X = np.arange(-20, 20, 0.03)[:, None]
    assert len(X) == 1334
    gram = Gram(CompactGaussian(sigma=3.70 / np.sqrt(2)), X, storage="sparse")
    support = CompactGaussian(sigma=3.70 / np.sqrt(2)).support_in(1)
    distances = np.abs(X - X.T)
    assert gram.nonzeros == np.count_nonzero(distances < support)
    assert gram.nonzeros == pytest.approx(850_526, rel=2e-3)
    rows, columns = gram.matrix.nonzero()
    assert np.abs(rows - columns).max() == np.ceil(support / 0.03 - 1e-9) - 1


def test_a_compact_kernel_that_reaches_nearly_everywhere_is_not_stored_sparse():
    X = np.random.default_rng(0).normal(size=(200, 3))
    assert Gram(CompactGaussian(sigma=5.0), X).storage == "dense"
    assert Gram(CompactGaussian(sigma=0.1), X).storage == "sparse"
    assert Gram(CompactGaussian(sigma=0.1), sp.csr_array(X)).storage == "sparse"


def test_a_compact_kernel_that_is_no_function_of_the_distance_is_stored_sparse_too():
    X = np.random.default_rng(0).uniform(0, 20, size=(120, 2))
    kernel = BSpline(n=1, sigma=0.5)
    gram = Gram(kernel, X)
    assert gram.storage == "sparse"
    np.testing.assert_allclose(gram.dense(), kernel(X), atol=1e-12)


def test_a_sparse_matrix_that_does_not_fit_gives_way_to_tiles():
    X = np.random.default_rng(0).uniform(size=(3000, 2))
    kernel = CompactGaussian(sigma=0.04)
    with pytest.raises(BudgetTooSmall) as error:
        Gram(kernel, X, storage="sparse", memory="1 MB")
    needed = int(re.search(r"smallest workable budget is memory=(\d+)", str(error.value))[1])
    gram = Gram(kernel, X, memory=needed - 1)
    assert gram.storage == "streamed"
    assert "do not fit" in str(gram.plan())
    assert Gram(kernel, X, memory=needed).storage == "sparse"


def test_sparse_storage_refuses_kernels_without_compact_support_and_small_budgets():
    with pytest.raises(InvalidInput, match="compactly supported"):
        Gram(Gaussian(sigma=1.0), grid(20), storage="sparse")
    with pytest.raises(BudgetTooSmall, match="smallest workable"):
        Gram(CompactGaussian(sigma=5.0), grid(2000), storage="sparse", memory="1 MB")


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 60), d=st.integers(1, 12))
def test_linear_kernel_is_its_own_factor(seed, n, d):
    X = np.random.default_rng(seed).normal(size=(n, d))
    for given_points in (X, sp.csr_array(X)):
        gram = Gram(Linear(), given_points, storage="lowrank")
        assert gram.rank == d
        np.testing.assert_allclose(gram.dense(), X @ X.T, atol=1e-12)
        np.testing.assert_allclose(gram.diagonal(), (X**2).sum(axis=1), atol=1e-12)
        across = Gram(Linear(), given_points, X[:1], storage="lowrank")
        np.testing.assert_allclose(across @ [2.0], 2 * X @ X[0], atol=1e-12)


def test_pivoted_cholesky_error_is_below_its_stated_remainder():
    X = np.random.default_rng(0).normal(size=(300, 3))
    K = Gaussian(sigma=2.0)(X)
    gram = Gram(Gaussian(sigma=2.0), X, storage="lowrank")
    assert gram.rank < 300
    error = K - gram.dense()
    assert np.linalg.norm(error, 2) <= np.trace(error) + 1e-10
    assert np.trace(error) / np.trace(K) == pytest.approx(gram.remainder, abs=1e-10)
    assert gram.remainder <= 1e-8


def test_a_factor_cut_short_by_the_budget_says_so():
    X = np.random.default_rng(0).normal(size=(400, 6))
    task = Gram(Gaussian(sigma=0.3), X, storage="streamed").engine.task(10**9)
    budget = cost.smallest_budget("lowrank", task) + 19 * 400 * 8
    with pytest.warns(PrecisionLoss, match="rank 20"):
        gram = Gram(Gaussian(sigma=0.3), X, storage="lowrank", memory=budget)
    assert gram.rank == 20
    assert gram.plan().bytes <= budget
    K = Gaussian(sigma=0.3)(X)
    assert np.trace(K - gram.dense()) / 400 == pytest.approx(gram.remainder, abs=1e-10)


def test_given_factors_are_an_operator():
    rng = np.random.default_rng(0)
    G, H = rng.normal(size=(30, 4)), rng.normal(size=(20, 4))
    gram = LowRankGram.from_factors(G)
    assert gram.symmetric
    np.testing.assert_allclose(gram @ G, G @ (G.T @ G))
    np.testing.assert_allclose(gram.subset([3, 1]).dense(), G[[3, 1]] @ G[[3, 1]].T)
    across = LowRankGram.from_factors(G, H)
    np.testing.assert_allclose(across.dense(), G @ H.T)
    np.testing.assert_allclose(across.T @ G, H @ (G.T @ G))
    with pytest.raises(InvalidInput, match="do not multiply"):
        LowRankGram.from_factors(G, H[:, :2])


def test_mapped_file_is_complete_under_its_name_and_opens_again(tmp_path):
    X = np.random.default_rng(0).normal(size=(90, 3))
    K = Gaussian(sigma=1.0)(X)
    values = Gram(Gaussian(sigma=1.0), X, storage="streamed").engine
    path = tmp_path / "matrix.npy"
    gram = MappedGram(values, cost.plan("mapped", values.task(10**8)), path)
    assert [file.name for file in tmp_path.iterdir()] == ["matrix.npy"]
    np.testing.assert_allclose(gram.dense(), K, atol=1e-12)
    again = Gram(Precomputed(), np.load(path, mmap_mode="r"))
    np.testing.assert_allclose(again @ X, K @ X, atol=1e-12)
    assert isinstance(again.matrix, np.memmap) or isinstance(again.matrix.base, np.memmap)


def test_an_interrupted_mapped_matrix_leaves_nothing_behind(tmp_path, monkeypatch):
    values = Gram(Gaussian(sigma=1.0), grid(50), storage="streamed").engine

    def interrupted(rows, columns, out):
        raise KeyboardInterrupt

    monkeypatch.setattr(values, "fill", interrupted)
    with pytest.raises(KeyboardInterrupt):
        MappedGram(values, cost.plan("mapped", values.task(10**8)), tmp_path / "matrix.npy")
    assert not list(tmp_path.iterdir())


def test_a_temporary_mapped_file_goes_with_its_operator():
    gram = Gram(Gaussian(sigma=1.0), grid(50), storage="mapped")
    path = gram.path
    assert path.exists()
    del gram
    gc.collect()
    assert not path.exists()


def test_a_full_disk_is_said_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.gram.mapped.shutil.disk_usage", lambda folder: type("Usage", (), {"free": 10}))
    with pytest.raises(BudgetTooSmall, match="on disk"):
        Gram(Gaussian(sigma=1.0), grid(50), storage="mapped")


def test_nothing_warns_in_ordinary_use():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gram = Gram(Gaussian(sigma=1.0), grid(50))
        gram @ np.ones(50)
