"""Clusters as landmarks: k-means++ and k-means, against scikit-learn and plain definitions."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans

from mercer.errors import InvalidInput
from mercer.kernels import Custom, Gaussian
from mercer.lowrank import choose
from mercer.lowrank.landmarks import centres
from mercer.lowrank.landmarks.centres import moved, nearest_centres, spread_out

KERNEL = Gaussian(sigma=1.0)


def clusters(n=600, k=8, spread=0.05, seed=0):
    rng = np.random.default_rng(seed)
    middles = 10 * rng.normal(size=(k, 3))
    labels = np.arange(n) % k
    return middles[labels] + spread * rng.normal(size=(n, 3))


def inertia(X, centres):
    return np.sum(np.min(np.sum((X[:, None] - centres) ** 2, axis=2), axis=1))


def test_one_row_of_every_tight_cluster_is_taken():
    X = clusters()
    for seed in range(5):
        chosen = choose(KERNEL, X, 8, method="kmeans++", seed=seed)
        assert sorted(chosen.index % 8) == list(range(8))


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_are_drawn_in_proportion_to_their_squared_distance(sparse):
    X = np.array([[0.0], [1.0], [3.0]])
    U = sp.csr_array(X) if sparse else X
    draws = [tuple(spread_out(U, np.array([1.0, 1.0, 1.0]), 2, np.random.default_rng(s))) for s in range(1200)]
    after_first = [second for first, second in draws if first == 0]
    assert np.mean(np.array(after_first) == 2) == pytest.approx(0.9, abs=0.04)


def test_comparisons_left_out_change_no_distance():
    X = np.random.default_rng(0).normal(size=(500, 2))
    taken = spread_out(X, np.ones(500), 60, np.random.default_rng(1))
    # The same draws with all distances formed anew.
    rng, expected = np.random.default_rng(1), []
    mass = np.ones(500)
    for _ in range(60):
        sums = np.cumsum(mass)
        expected.append(int(np.searchsorted(sums, rng.random() * sums[-1], side="right")))
        mass = np.min(np.sum((X[:, None] - X[expected]) ** 2, axis=2), axis=1)
    assert taken.tolist() == expected


@pytest.mark.parametrize("sparse", [False, True])
def test_copies_are_never_taken_twice(sparse):
    X = np.repeat(np.random.default_rng(0).normal(size=(10, 30)), 5, axis=0) + 3.0
    for method in ("kmeans++", "kmeans"):
        chosen = choose(Gaussian(sigma=5.0), sp.csr_array(X) if sparse else X, 20, method=method, seed=0)
        assert len(chosen) == 10
        assert chosen.details["dropped"] == 10


def test_kmeans_finds_the_middles_of_clusters():
    X = clusters()
    chosen = choose(KERNEL, X, 8, method="kmeans", seed=0)
    assert chosen.index is None
    means = np.array([X[k::8].mean(axis=0) for k in range(8)])
    order = np.argmin(np.sum((chosen.points[:, None] - means) ** 2, axis=2), axis=1)
    np.testing.assert_allclose(chosen.points, means[order], atol=1e-12)
    assert chosen.details["inertia"] == pytest.approx(inertia(X, chosen.points), rel=1e-9)


def test_kmeans_is_as_good_as_scikit_learn_from_the_same_kind_of_start():
    X = np.random.default_rng(0).normal(size=(1500, 3))
    ours = np.median([choose(KERNEL, X, 30, method="kmeans", seed=s).details["inertia"] for s in range(5)])
    theirs = np.median([KMeans(30, n_init=1, random_state=s, max_iter=30).fit(X).inertia_ for s in range(5)])
    assert ours <= 1.05 * theirs


def test_a_centre_moved_by_batches_is_the_mean_of_all_rows_it_was_given(monkeypatch):
    monkeypatch.setattr(centres, "BATCH", 50)
    monkeypatch.setattr(centres, "WHOLE_ROWS", 10)
    rng = np.random.default_rng(4)
    X, w = rng.normal(size=(200, 3)) + np.linspace(0, 5, 200)[:, None], rng.uniform(0.1, 2.0, 200)
    chosen = choose(KERNEL, X, 1, method="kmeans", weights=w, seed=0, measure=False)
    assert chosen.details["batches"] == 4
    np.testing.assert_allclose(chosen.points, np.average(X, axis=0, weights=w)[None, :], rtol=1e-12)


def test_large_data_go_through_batches_to_nearly_the_same_error():
    X = np.random.default_rng(0).normal(size=(60_000, 3))
    chosen = choose(KERNEL, X, 50, method="kmeans", seed=0, measure=False)
    assert chosen.details["batches"] == 8
    assert "batches of 8192 random rows" in chosen.details["note"]
    whole = KMeans(50, n_init=1, random_state=0, max_iter=30).fit(X).inertia_
    assert inertia(X, chosen.points) <= 1.08 * whole


def test_weights_count_as_copies_in_the_means():
    rng = np.random.default_rng(0)
    X, counts = rng.normal(size=(200, 2)), rng.integers(1, 4, 200)
    start = X[:6]
    labels, distances = nearest_centres(X, start)
    weighted, _ = moved(X, counts.astype(float), labels, start, np.zeros(6))
    copies = np.repeat(np.arange(200), counts)
    repeated, _ = moved(X[copies], np.ones(len(copies)), labels[copies], start, np.zeros(6))
    np.testing.assert_allclose(weighted, repeated, rtol=1e-12)
    np.testing.assert_allclose(distances, np.min(np.sum((X[:, None] - start) ** 2, axis=2), axis=1), atol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_centre_that_is_given_nothing_stays_where_it_is(sparse):
    X = np.random.default_rng(0).normal(size=(40, 2))
    start = np.array([[0.0, 0.0], [50.0, -60.0], [-70.0, 80.0]])
    U, centres = (sp.csr_array(X), sp.csr_array(start)) if sparse else (X, start)
    labels, _ = nearest_centres(U, centres)
    assert not labels.any()
    # One of the two that are left alone has been given points before, the other never.
    found, counts = moved(U, np.ones(40), labels, centres, np.array([0.0, 0.0, 5.0]))
    expected = np.vstack([X.mean(axis=0), start[1:]])
    np.testing.assert_allclose(found.toarray() if sparse else found, expected, rtol=1e-12)
    np.testing.assert_array_equal(counts, [40.0, 0.0, 5.0])


def test_two_batches_give_the_mean_of_both():
    X = np.random.default_rng(0).normal(size=(100, 2))
    start, labels = np.zeros((1, 2)), np.zeros(100, dtype=np.intp)
    once, counts = moved(X[:30], np.ones(30), labels[:30], start, np.zeros(1))
    twice, counts = moved(X[30:], np.ones(70), labels[30:], once, counts)
    np.testing.assert_allclose(twice[0], X.mean(axis=0), atol=1e-14)
    assert counts[0] == 100


def test_features_are_scaled_as_the_kernel_scales_them():
    X = np.random.default_rng(0).normal(size=(300, 2)) * [1.0, 1000.0]
    scaled = Gaussian(sigma=(1.0, 1000.0))
    for method in ("kmeans", "kmeans++"):
        here = choose(scaled, X, 12, method=method, seed=0)
        there = choose(KERNEL, X / [1.0, 1000.0], 12, method=method, seed=0)
        np.testing.assert_allclose(here.points / [1.0, 1000.0], there.points, rtol=1e-9)


def test_half_a_million_points_go_through_a_sample():
    X = np.random.default_rng(0).normal(size=(500_000, 4)).astype(np.float32)
    chosen = choose(KERNEL, X, 500, method="kmeans++", seed=0, measure=False)
    assert chosen.details["rows"] == 10_000
    assert "10000 random rows of 500000" in chosen.details["note"]
    assert chosen.seconds < 5.0


def test_objects_have_no_means():
    kernel = Custom(lambda a, b: float(len(set(a) & set(b))))
    words = ["kernel", "matrix", "landmark", "point"]
    with pytest.raises(InvalidInput, match="X holds objects"):
        choose(kernel, words, 2, method="kmeans")
    assert len(choose(kernel, words, 2, seed=0)) == 2
