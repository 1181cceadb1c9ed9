"""Sparse points: the same values as dense ones, at a cost that follows the stored entries and not the width."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import threads
from mercer.errors import BudgetTooSmall
from mercer.gram import Gram, SquaredDistances
from mercer.gram.column_blocks import TILE
from mercer.gram.compressed import FEW_ROWS
from mercer.gram.numbering import Numbering
from mercer.gram.tiles import Tiles, worth_densifying
from mercer.kernels import Cosine, Exponential, Gaussian, Laplacian, Linear, Matern, Polynomial, RationalQuadratic

WIDE = 2**20
FUSED = [
    Linear(),
    Gaussian(sigma=1.5),
    Polynomial(degree=2),
    Exponential(sigma=2.0),
    Matern(nu=2.5),
    RationalQuadratic(alpha=1.3, sigma=1.1),
]
CALLED = [Cosine(), Laplacian(sigma=2.0)]


def documents(n, d=WIDE, entries=20, seed=0):
    """Rows of whole numbers over 4: nine in ten of their words from a hundred common ones, the others from all."""
    rng = np.random.default_rng(seed)
    shape = (n, entries)
    words = np.where(rng.random(shape) < 0.9, rng.integers(0, 100, shape), rng.integers(0, d, shape))
    counts = 0.25 * rng.integers(1, 4, words.size)
    X = sp.csr_array((counts, words.ravel(), np.arange(0, words.size + 1, entries)), shape=(n, d))
    X.sum_duplicates()
    return X


def on_used_columns(*matrices):
    """Dense float64 copies on the columns that any of them uses: products and distances do not change."""
    used = np.unique(np.concatenate([X.indices for X in matrices] + [[0]]))
    return [np.asarray(X[:, used].todense(), dtype=np.float64) for X in matrices]


@st.composite
def odd_matrices(draw, d):
    """CSR as it may come: 32- or 64-bit indices in any order, entries given twice, stored zeros, empty rows."""
    n = draw(st.integers(1, 12))
    lengths = draw(st.lists(st.integers(0, 6), min_size=n, max_size=n))
    total = sum(lengths)
    # Columns from a narrow range meet often, others hardly ever.
    column = st.one_of(st.integers(0, 5), st.integers(0, d - 1))
    indices = draw(st.lists(column, min_size=total, max_size=total))
    values = draw(st.lists(st.sampled_from([-2.0, -0.5, 0.0, 0.25, 1.0, 3.0]), min_size=total, max_size=total))
    kind = draw(st.sampled_from([np.int32, np.int64]))
    X = sp.csr_array((n, d))
    X.data = np.array(values, dtype=np.float64)
    X.indices = np.array(indices, dtype=kind)
    X.indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(kind)
    return X


@pytest.mark.parametrize("kernel", FUSED + CALLED, ids=repr)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_any_csr_form_gives_the_values_of_the_dense_points(kernel, data):
    d = data.draw(st.sampled_from([17, 400, WIDE]))
    X, Z = data.draw(odd_matrices(d)), data.draw(odd_matrices(d))
    copies = [P.copy() for P in (X, Z)]
    A, B = on_used_columns(X, Z)
    for gram, K in ((Gram(kernel, X), kernel(A)), (Gram(kernel, X, Z), kernel(A, B))):
        scale = max(1.0, np.abs(K).max())
        np.testing.assert_allclose(gram.dense(), K, rtol=0, atol=1e-7 * scale)
        np.testing.assert_allclose(gram.rows([0]), K[[0]], rtol=0, atol=1e-7 * scale)
        V = np.arange(1.0, 1.0 + 2 * K.shape[1]).reshape(-1, 2)
        np.testing.assert_allclose(gram.dot(V), K @ V, rtol=0, atol=1e-6 * scale * V.sum())
    for P, copy in zip((X, Z), copies):
        np.testing.assert_array_equal(P.data, copy.data)
        np.testing.assert_array_equal(P.indices, copy.indices)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", FUSED, ids=repr)
def test_every_way_through_the_tiles_of_wide_points_equals_dense_algebra(kernel, dtype):
    X, Z = documents(1100, seed=1), documents(60, seed=2)
    A, B = on_used_columns(X, Z)
    near = {"rtol": 0, "atol": (1e-11 if dtype is np.float64 else 2e-4) * max(1.0, np.abs(kernel(B)).max())}
    if kernel.profile.name in ("exponential", "matern52"):
        near["atol"] = max(near["atol"], 1e-7)  # the root of a rounded square
    tiles = Tiles(kernel.profile, Z, X, dtype=dtype)
    assert tiles.sparse
    assert 0 < tiles.features[1] < tiles.features[0] <= X.nnz
    K = kernel(B, A)
    np.testing.assert_allclose(tiles.fill(), K, **near)
    few, some = np.array([5, 3, 5]), np.array([1000, 2, 2, 77])
    assert len(few) <= FEW_ROWS
    np.testing.assert_allclose(tiles.fill(few, some), K[np.ix_(few, some)], **near)
    np.testing.assert_allclose(tiles.fill(slice(7, 50, 3), some), K[7:50:3][:, some], **near)
    symmetric = Tiles(kernel.profile, X, dtype=dtype)
    np.testing.assert_allclose(symmetric.fill(), kernel(A), **near)
    np.testing.assert_allclose(symmetric.diagonal(), np.diagonal(kernel(A)), **near)
    np.testing.assert_allclose(tiles.against(X[:40]).fill(), kernel(A[:40], A), **near)
    np.testing.assert_allclose(tiles.against(X[:40]).diagonal(), np.diagonal(kernel(A[:40])), **near)
    W = np.random.default_rng(0).normal(size=(len(some), 3))
    out = tiles.multiply(None, some, W, np.zeros((len(B), 3)))
    np.testing.assert_allclose(out, K[:, some] @ W, rtol=0, atol=20 * near["atol"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [Linear(), Gaussian(sigma=9.0)], ids=repr)
def test_rows_of_one_number_each_have_the_products_of_their_shared_features(kernel, dtype):
    rng = np.random.default_rng(4)
    # More entries than a byte counts in the first rows, hardly any in the last, and a level of its own in each.
    A = (rng.random((300, 620)) < np.linspace(0.8, 0.0, 300)[:, None]) * rng.choice([0.25, 0.5, 1.0, 3.0], (300, 1))
    X = sp.csr_array(A)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    assert np.diff(X.indptr).max() > 2 * 255 - 50
    K, W = kernel(A), rng.normal(size=(300, 2))
    near = {"rtol": 0, "atol": (1e-12 if dtype is np.float64 else 1e-5) * max(1.0, np.abs(K).max())}
    tiles = Tiles(kernel.profile, X, dtype=dtype)
    assert tiles.sparse
    assert tiles.counted
    np.testing.assert_allclose(tiles.fill(), K, **near)
    np.testing.assert_allclose(tiles.fill(slice(5, 90), np.arange(250, 290)), K[5:90, 250:290], **near)
    np.testing.assert_allclose(tiles.multiply(None, None, W, np.zeros((300, 2))) / 100, K @ W / 100, **near)
    gram = Gram(kernel, X, storage="streamed", precision=np.dtype(dtype).name)
    np.testing.assert_allclose(gram @ W / 100, K @ W / 100, **near)
    exact = gram.exact_dot(np.arange(40), np.arange(3, 200), W[3:200])
    np.testing.assert_allclose(exact, K[:40, 3:200] @ W[3:200], rtol=0, atol=1e-10 * np.abs(K).max())
    mixed = X.copy()
    mixed.data[::3] *= 1.5
    other = tiles.against(mixed)
    assert not other.counted
    # Sums of 500 numbers in turn round more than counts do.
    near["atol"] *= 1 if dtype is np.float64 else 5
    np.testing.assert_allclose(other.fill(), kernel(mixed.toarray(), A), **near)


def test_exact_products_of_wide_points_equal_dense_algebra():
    X = documents(300, seed=5)
    A = on_used_columns(X)[0]
    gram, v = Gram(Gaussian(sigma=2.0), X, storage="streamed", precision="float32"), np.linspace(-1, 1, 120)
    np.testing.assert_allclose(gram.exact_dot(None, np.arange(120), v), Gaussian(sigma=2.0)(A, A[:120]) @ v, atol=1e-11)


def test_rows_of_many_entries_fill_both_sides_of_the_diagonal():
    X = documents(700, entries=90, seed=3)
    A = on_used_columns(X)[0]
    K = Tiles(Gaussian(sigma=3.0).profile, X, dtype=np.float64).fill()
    np.testing.assert_allclose(K, Gaussian(sigma=3.0)(A), rtol=0, atol=1e-12)
    np.testing.assert_allclose(K, K.T, rtol=1e-14)


@pytest.mark.parametrize(("n", "workers"), [(1100, 1), (330, 2), (600, 2)])
def test_tiles_that_straddle_the_end_of_a_block_are_written_on_both_sides(n, workers):
    X = documents(n, entries=90, seed=n)
    A = on_used_columns(X)[0]
    tiles = Tiles(Linear().profile, X, dtype=np.float64)
    with threads.limit(workers):
        width = tiles.block_width(n if workers == 1 else -(-n // (4 * workers)))
        K = tiles.fill(out=np.full((n, n), np.nan))
    assert width < n
    assert width % TILE, "blocks of whole tiles: no tile straddles an end"
    np.testing.assert_allclose(K, A @ A.T, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(sigma=1.0)], ids=repr)
def test_points_without_any_entry_are_points_at_the_origin(kernel):
    empty = sp.csr_array((5, WIDE))
    np.testing.assert_array_equal(Gram(kernel, empty).dense(), kernel(np.zeros((5, 1))))
    X = documents(6)
    expected = kernel(on_used_columns(X)[0], np.zeros((5, len(np.unique(X.indices)))))
    np.testing.assert_allclose(Gram(kernel, X, empty).dense(), expected, atol=1e-12)


def test_features_are_numbered_by_how_often_they_occur_and_unknown_ones_left_out():
    for d in (50, WIDE):  # found by a table, and by a search
        X = sp.csr_array((np.ones(6), [7, 9, 7, 3, 7, 9], [0, 2, 4, 6]), shape=(3, d))
        numbering = Numbering(X, 0.5)
        assert numbering.size == 3
        other = sp.csr_array((np.array([1.0, 2.0, 3.0]), [3, 8, 7], [0, 1, 3]), shape=(2, d))
        rows, norms = numbering.rows(other, 2.0, np.float64)
        np.testing.assert_array_equal(rows.indptr, [0, 1, 3])
        np.testing.assert_array_equal(rows.heads, [0, 2])  # features 0 and 1 of the new numbers are frequent
        np.testing.assert_array_equal(rows.ends, [1, 2])
        np.testing.assert_array_equal(rows.indices, [2, 0, -1])
        np.testing.assert_array_equal(rows.values, [2.0, 6.0, 4.0])
        np.testing.assert_array_equal(rows.levels, [2.0, np.nan])
        np.testing.assert_array_equal(norms, [4.0, 52.0])


def test_a_few_full_rows_do_not_turn_the_others_dense():
    X = documents(50)
    full = sp.csr_array(np.ones((1, WIDE)))
    assert worth_densifying(full)
    assert not worth_densifying(full, X)
    tiles = Tiles(Linear().profile, full, X, dtype=np.float64)
    assert tiles.sparse
    np.testing.assert_allclose(tiles.fill()[0], np.asarray(X.sum(axis=1)).ravel())
    np.testing.assert_allclose(Tiles(Linear().profile, np.ones((1, WIDE)), X, dtype=np.float64).fill(), tiles.fill())


@pytest.mark.parametrize("access", ["products", "rows", "blocks"])
@pytest.mark.parametrize("kernel", [Linear(), Gaussian(sigma=1.0)], ids=repr)
def test_the_budget_of_wide_points_follows_their_entries(kernel, access):
    budgets = []
    for d in (10_000, WIDE, 2**30):
        gram = Gram(kernel, documents(400, d), access=access, memory="64 MiB")
        budgets.append(gram.plan().bytes)
    assert budgets[2] <= 2 * budgets[0]
    with pytest.raises(BudgetTooSmall):
        Gram(kernel, documents(400), access=access, memory="64 KiB")


def test_products_of_the_linear_kernel_go_through_the_points_where_they_hold_few_entries():
    X = documents(900)
    gram = Gram(Linear(), X)
    assert gram.storage == "lowrank"
    assert gram.plan().operations < 900 * 900
    A = on_used_columns(X)[0]
    v = np.random.default_rng(0).normal(size=900)
    np.testing.assert_allclose(gram @ v, A @ (A.T @ v), atol=1e-9)
    np.testing.assert_allclose(gram.block([3, 1], slice(0, 50)), A[[3, 1]] @ A[:50].T, atol=1e-12)


def test_stored_distances_of_wide_points_follow_their_entries():
    X = documents(120)
    A = on_used_columns(X)[0]
    kept = SquaredDistances(X, memory="16 MiB")
    np.testing.assert_allclose(kept.values, ((A[:, None] - A[None]) ** 2).sum(axis=2), atol=1e-10)
    np.testing.assert_allclose(kept.gram(Gaussian(sigma=2.0)).dense(), Gaussian(sigma=2.0)(A), atol=1e-12)


@pytest.mark.parametrize("outputs", [1, 200])  # through weight vectors, and through the fewer kernel values
def test_products_of_the_linear_kernel_with_one_and_with_many_vectors(outputs):
    X, Z = documents(70, entries=60, seed=1), documents(9, entries=60, seed=2)
    A, B = on_used_columns(X, Z)
    W = np.random.default_rng(0).normal(size=(9, outputs))
    found = Tiles(Linear().profile, X, Z, dtype=np.float64).multiply(None, None, W, np.zeros((70, outputs)))
    np.testing.assert_allclose(found, A @ (B.T @ W), atol=1e-11)
