"""Every kind of storage is the same matrix: the one the kernel's own call gives."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import aslinearoperator, cg, eigsh

from mercer.gram import Gram, SquaredDistances
from mercer.kernels import (
    CompactGaussian,
    Custom,
    Exponential,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
    Spectrum,
)

SYMMETRIC = ("dense", "streamed", "cached", "lowrank", "mapped")
RECTANGULAR = ("dense", "streamed", "cached", "mapped")
KERNELS = [
    Gaussian(sigma=1.5),
    Gaussian(sigma=(0.5, 1.0, 2.0, 4.0)),
    Linear(),
    Polynomial(degree=2),
    Matern(nu=1.5),
    Matern(nu=2.5),
    RationalQuadratic(alpha=1.3, sigma=1.1),
    Laplacian(sigma=2.0),
    Gaussian(sigma=1.0) + 0.5 * Linear(),
]


def points(seed, n, d=4):
    return np.random.default_rng(seed).normal(size=(n, d))


def assert_is_matrix(gram, K, tolerance=1e-10):
    """All ways to ask an operator agree with the dense matrix K."""
    n, m = K.shape
    rng = np.random.default_rng(n + 7 * m)
    scale = max(1.0, np.abs(K).max())
    V = rng.normal(size=(m, 3))
    index = rng.integers(0, n, size=min(n, 5))
    columns = rng.integers(0, m, size=min(m, 4))
    near = {"rtol": 0, "atol": tolerance * scale}
    assert gram.shape == (n, m)
    np.testing.assert_allclose(gram.dense(), K, **near)
    np.testing.assert_allclose(gram.rows(index), K[index], **near)
    np.testing.assert_allclose(gram.rows(slice(1, n, 2)), K[1::2], **near)
    np.testing.assert_allclose(gram.block(index, columns), K[np.ix_(index, columns)], **near)
    np.testing.assert_allclose(gram.block(slice(0, n), columns), K[:, columns], **near)
    np.testing.assert_allclose(gram.block(index, slice(1, m)), K[index, 1:], **near)
    wide = {"rtol": 0, "atol": tolerance * scale * m * 3}
    np.testing.assert_allclose(gram.dot(V), K @ V, **wide)
    np.testing.assert_allclose(gram @ V[:, 0], K @ V[:, 0], **wide)
    np.testing.assert_allclose(gram.columns_dot(columns, V[: len(columns)]), K[:, columns] @ V[: len(columns)], **wide)
    W = rng.normal(size=(n, 2))
    np.testing.assert_allclose(gram.T @ W, K.T @ W, **wide)
    np.testing.assert_allclose(gram.H @ W[:, 0], K.T @ W[:, 0], **wide)
    if gram.symmetric:
        np.testing.assert_allclose(gram.diagonal(), np.diagonal(K), **near)
        part = gram.subset(index)
        np.testing.assert_allclose(part.dense(), K[np.ix_(index, index)], **near)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("storage", SYMMETRIC)
def test_every_storage_equals_the_kernel_on_one_set_of_points(kernel, storage):
    X = points(0, 300)
    assert_is_matrix(Gram(kernel, X, storage=storage), kernel(X), 1e-6 if storage == "lowrank" else 1e-10)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("storage", RECTANGULAR)
def test_every_storage_equals_the_kernel_on_two_sets_of_points(kernel, storage):
    X, Z = points(0, 40), points(1, 70)
    assert_is_matrix(Gram(kernel, X, Z, storage=storage), kernel(X, Z))


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 40),
    m=st.integers(1, 40),
    d=st.integers(1, 20),
    storage=st.sampled_from(RECTANGULAR),
    sigma=st.floats(0.1, 10),
)
def test_any_size_and_width_gives_the_kernel_matrix(seed, n, m, d, storage, sigma):
    X, Z = points(seed, n, d), points(seed + 1, m, d)
    kernel = Gaussian(sigma=sigma)
    assert_is_matrix(Gram(kernel, X, Z, storage=storage), kernel(X, Z))
    assert_is_matrix(Gram(kernel, X, storage=storage), kernel(X))


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    density=st.floats(0.0, 0.5),
    d=st.integers(1, 60),
    storage=st.sampled_from(("dense", "streamed", "cached")),
    kernel=st.sampled_from([Gaussian(sigma=0.7), Linear(), Polynomial(degree=2), Laplacian(sigma=2.0)]),
)
def test_sparse_points_with_either_index_type_give_the_dense_matrix(seed, density, d, storage, kernel):
    short = sp.random_array((23, d), density=density, format="csr", rng=seed)
    long = sp.csr_array((short.data, short.indices.astype(np.int64), short.indptr.astype(np.int64)), shape=short.shape)
    K = kernel(short.toarray())
    for X in (short, long, sp.csr_matrix(short), short.tocoo()):
        assert_is_matrix(Gram(kernel, X, storage=storage), K)
    assert_is_matrix(Gram(kernel, short[:7], short.toarray(), storage=storage), K[:7])
    assert_is_matrix(Gram(kernel, short[:7].toarray(), long, storage=storage), K[:7])


def test_high_dimensional_sparse_points_stay_compressed_and_give_the_dense_matrix():
    X = sp.random_array((150, 5000), density=0.01, format="csr", rng=3)
    for kernel in (Gaussian(sigma=2.0), Linear(), Sigmoid(gamma=0.1, offset=0.2)):
        gram = Gram(kernel, X, storage="streamed")
        assert_is_matrix(gram, kernel(X.toarray()))
        assert gram.engine.tiles.left.sparse


def float32_bound(X, sigma):
    """The relative error the documentation states: 4e-6 of the power, and the rounding of the squared distance."""
    squares = ((X - X.mean(axis=0)) ** 2).sum(axis=1)
    return 4e-6 + 3e-7 * (squares[:, None] + squares[None]) / (2 * sigma**2)


def test_float32_gaussian_values_of_standardised_points_are_within_4e_6():
    X = points(6, 400, 8)
    exact = Gaussian(sigma=4.0)(X)
    values = Gram(Gaussian(sigma=4.0), X, precision="float32", storage="dense").dense()
    assert np.abs(values / exact - 1).max() < 4e-6


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
def test_float32_gaussian_values_are_within_the_stated_error(sigma):
    X = points(5, 600, 10)
    exact = Gaussian(sigma=sigma)(X)
    bound = float32_bound(X, sigma)
    for storage in ("dense", "streamed", "cached"):
        single = Gram(Gaussian(sigma=sigma), X, precision="float32", storage=storage)
        values = single.dense()
        assert values.dtype == np.float32
        normal = exact > 1e-37
        assert (np.abs(values - exact) <= bound * exact)[normal].all()
        V = np.random.default_rng(0).normal(size=(600, 2))
        assert np.abs(single.dot(V) - exact @ V).max() < bound.max() * (exact @ np.abs(V)).max()
        assert single.dot(V).dtype == np.float64
        assert single.dot(V.astype(np.float32)).dtype == np.float32


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), shift=st.floats(0, 1e6), d=st.integers(1, 30))
def test_close_points_far_from_the_origin_keep_their_digits(seed, shift, d):
    near = np.random.default_rng(seed).normal(size=(20, d))
    # Shifted points are rounded themselves; what must not be lost is their distance as they stand.
    X = near + shift
    exact = np.exp(-0.5 * ((X[:, None, :] - X[None]) ** 2).sum(-1))
    for precision, tolerance in (("float64", 1e-12), ("float32", float32_bound(X, 1.0).max())):
        gram = Gram(Gaussian(sigma=1.0), X, precision=precision, storage="streamed")
        assert np.abs(gram.dense() - exact).max() < tolerance
        assert np.abs(gram @ np.ones(20) - exact.sum(axis=1)).max() < 20 * tolerance


def test_repeated_points_have_kernel_value_one():
    X = np.repeat(points(0, 3, 5) + 1e5, 100, axis=0)
    for kernel in (Gaussian(sigma=1.0), Exponential(sigma=1.0), Matern(nu=1.5)):
        K = Gram(kernel, X, storage="dense").dense()
        assert np.abs(K[:100, :100] - 1).max() < 1e-6


@pytest.mark.parametrize("kernel", [Exponential(sigma=1.0), Matern(nu=1.5), Matern(nu=2.5)], ids=repr)
@pytest.mark.parametrize("d", [20, 200, 3000])
@pytest.mark.parametrize("compressed", [False, True], ids=["dense rows", "CSR rows"])
def test_the_root_of_a_rounded_distance_does_not_part_a_point_from_its_copies(kernel, compressed, d):
    # |u|^2 / 2 + |v|^2 / 2 - <u, v> is about 1e-15 for u = v, and its root 3e-8 would be what is missing from one.
    X = np.repeat(np.sqrt(20 / d) * points(0, 40, d), 3, axis=0)
    X[2::3, 0] += 1e-4
    if compressed:
        given = sp.csr_array((X.ravel(), np.tile(np.arange(d), 120), np.arange(121) * d), shape=(120, 20 * d))
    else:
        given = X
    K = Gram(kernel, given, storage="dense", precision="float64").dense()
    first, copy, beside = K[::3, ::3], K[::3, 1::3], K[::3, 2::3]
    np.testing.assert_allclose(np.diagonal(first), 1.0, rtol=0, atol=1e-15)
    np.testing.assert_allclose(np.diagonal(copy), 1.0, rtol=0, atol=1e-15)
    # A true distance of 1e-4, a hundred-thousandth of the norms, is still seen: profiles 1 - r, 1 - 3r^2/2, 1 - 5r^2/6.
    fall = {"exponential": 1e-4, "matern32": 1.5e-8, "matern52": 5e-8 / 6}[kernel.profile.name]
    np.testing.assert_allclose(1.0 - np.diagonal(beside), fall, rtol=1e-3)


def test_products_of_many_vectors_and_large_matrices_use_both_sides_of_the_tiles_rightly():
    X = points(2, 1501, 6)
    K = Gaussian(sigma=1.0)(X)
    V = np.random.default_rng(1).normal(size=(1501, 5))
    for precision, tolerance in (("float64", 1e-10), ("float32", 1e-3)):
        gram = Gram(Gaussian(sigma=1.0), X, storage="streamed", precision=precision)
        for k in (1, 2, 5):
            assert np.abs(gram.dot(V[:, :k]) - K @ V[:, :k]).max() < tolerance


@pytest.mark.parametrize("n", [129, 500, 1301])
def test_products_with_compressed_points_use_both_sides_rightly(n):
    X = sp.random_array((n, 700), density=0.02, format="csr", rng=n)
    V = np.random.default_rng(1).normal(size=(n, 3))
    for kernel in (Gaussian(sigma=2.0), Polynomial(degree=2)):
        K = kernel(X)
        for precision, tolerance in (("float64", 1e-12), ("float32", 1e-5)):
            gram = Gram(kernel, X, storage="streamed", precision=precision)
            assert np.abs(gram.dot(V) - K @ V).max() < tolerance * (np.abs(K) @ np.abs(V)).max()


def test_objects_are_evaluated_through_sublists():
    words = ["abracadabra", "cadabra", "bra", "arbadacarba", "kernel", "colonel"] * 4
    kernel = Spectrum(2)
    K = kernel(words)
    for storage in ("dense", "streamed", "cached", "mapped"):
        assert_is_matrix(Gram(kernel, words, storage=storage), K)
        assert_is_matrix(Gram(kernel, words[:5], words, storage=storage), K[:5])


def test_a_python_function_sees_each_pair_of_one_set_once():
    calls = []

    def overlap(a, b):
        calls.append((a, b))
        return float(len(set(a) & set(b)))

    words = ["ab", "bc", "cd", "da"]
    gram = Gram(Custom(overlap), words, storage="dense")
    assert len(calls) == 10
    np.testing.assert_array_equal(gram.dense(), [[len(set(a) & set(b)) for b in words] for a in words])


@pytest.mark.parametrize("storage", ["dense", "streamed", "cached", "mapped"])
def test_with_kernel_is_the_other_kernel_on_the_same_points(storage):
    X = points(0, 50)
    gram = Gram(Gaussian(sigma=1.0), X, storage=storage).with_kernel(Laplacian(sigma=0.5))
    assert gram.storage == storage
    assert_is_matrix(gram, Laplacian(sigma=0.5)(X))


def test_a_given_matrix_is_used_as_it_is():
    X = points(0, 60)
    K = Gaussian(sigma=1.0)(X)
    gram = Gram(Precomputed(), K)
    assert gram.matrix is K or np.shares_memory(gram.matrix, K)
    assert_is_matrix(gram, K)
    assert_is_matrix(Gram(Precomputed(), K[:, :20]), K[:, :20])
    tapered = K * (K > 0.3)
    assert_is_matrix(Gram(Precomputed(), sp.csr_array(tapered)), tapered)


def test_a_square_matrix_that_is_not_symmetric_is_not_called_so():
    K = points(0, 30, 30)
    gram = Gram(Precomputed(), K)
    assert not gram.symmetric
    assert_is_matrix(gram, K)


def test_distances_are_shared_by_all_isotropic_kernels():
    X = points(3, 120, 6)
    for form in (X, sp.csr_array(X)):
        shared = SquaredDistances(form)
        for kernel in (Gaussian(sigma=0.5), Gaussian(sigma=5.0), Matern(nu=2.5), CompactGaussian(sigma=1.0)):
            assert_is_matrix(shared.gram(kernel), kernel(X), 1e-9)
            rows, columns = np.array([70, 3, 41]), np.array([5, 119, 0, 64])
            for some in (columns, slice(7, 31), slice(2, 90, 5)):
                expected = kernel(X)[rows][:, some]
                np.testing.assert_allclose(shared.at(kernel).block(rows, some), expected, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(np.diagonal(SquaredDistances(X).values), 0)


@pytest.mark.parametrize("storage", SYMMETRIC)
def test_conjugate_gradients_of_scipy_solve_with_the_operator(storage):
    X = points(1, 200)
    y = np.sin(X[:, 0])
    K = Gaussian(sigma=1.0)(X)
    gram = Gram(Gaussian(sigma=1.0), X, storage=storage)
    solution, status = cg(gram + aslinearoperator(sp.eye_array(200)), y, rtol=1e-10)
    assert status == 0
    np.testing.assert_allclose(solution, np.linalg.solve(K + np.eye(200), y), atol=1e-7)


def test_largest_eigenvalues_and_complex_vectors_work_through_the_protocol():
    X = points(1, 80)
    K = Gaussian(sigma=1.0)(X)
    gram = Gram(Gaussian(sigma=1.0), X, storage="streamed")
    np.testing.assert_allclose(eigsh(gram, k=3, return_eigenvectors=False), np.linalg.eigvalsh(K)[-3:], rtol=1e-8)
    v = X[:, 0] + 1j * X[:, 1]
    np.testing.assert_allclose(gram @ v, K @ v, atol=1e-10)
    np.testing.assert_allclose((2.0 * gram) @ X, 2.0 * K @ X, atol=1e-10)
    assert gram.T is gram
    assert gram.H is gram


def test_columns_dot_writes_to_the_array_it_is_given():
    X = points(1, 90)
    K = Gaussian(sigma=1.0)(X)
    V = points(2, 4, 2)
    for kind in (np.float64, np.float32):
        out = np.full((90, 2), np.nan, dtype=kind)
        result = Gram(Gaussian(sigma=1.0), X, storage="streamed").columns_dot([3, 1, 1, 80], V, out=out)
        assert result is out
        np.testing.assert_allclose(out, K[:, [3, 1, 1, 80]] @ V, atol=1e-5)


def test_same_threads_same_bits():
    X = points(1, 1000, 9)
    v = points(2, 1000, 1)
    gram = Gram(Gaussian(sigma=1.0), X, storage="streamed", precision="float32")
    first = gram.dot(v)
    assert all(np.array_equal(first, gram.dot(v)) for _ in range(3))


@pytest.mark.parametrize("storage", ["dense", "streamed", "cached", "sparse", "lowrank", "mapped", "precomputed"])
@pytest.mark.parametrize("compressed", [False, True], ids=["dense rows", "CSR rows"])
def test_exact_products_have_float64_digits_whatever_the_precision(storage, compressed):
    rng = np.random.default_rng(5)
    X = np.where(rng.random((90, 7)) < 0.6, rng.normal(size=(90, 7)), 0.0) + (0 if compressed else 3.0)
    special = {"sparse": CompactGaussian(sigma=2.0, theta=9.0), "lowrank": Linear()}
    kernel = special.get(storage, Gaussian(sigma=1.3))
    points = sp.csr_array(X) if compressed else X
    if storage == "precomputed":
        K = Gram(Precomputed(), kernel(X).astype(np.float32))
        reference = kernel(X).astype(np.float32).astype(np.float64)
    else:
        K, reference = Gram(kernel, points, precision="float32", storage=storage, memory="8 MiB"), kernel(X)
    rows, columns = rng.permutation(90)[:31], rng.permutation(90)[:40]
    for V in (rng.normal(size=40), rng.normal(size=(40, 3))):
        expected = reference[np.ix_(rows, columns)] @ V
        np.testing.assert_allclose(K.exact_dot(rows, columns, V), expected, rtol=0, atol=1e-12 * np.abs(V).sum())
    v = rng.normal(size=90)
    np.testing.assert_allclose(K.exact_dot(None, None, v), reference @ v, rtol=0, atol=1e-12 * np.abs(v).sum())


def test_products_of_some_wide_rows_with_the_linear_kernel_go_through_their_weight_vectors():
    rng = np.random.default_rng(6)
    X = sp.random_array((300, 50_000), density=2e-4, format="csr", rng=rng)
    rows, columns, V = rng.permutation(300)[:90], rng.permutation(300)[:120], rng.normal(size=(120, 3))
    expected = (X @ X.T).toarray()[np.ix_(rows, columns)] @ V
    out = np.zeros(expected.shape)
    Gram(Linear(), X, storage="streamed").engine.multiply(rows, columns, V, out)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-12)
