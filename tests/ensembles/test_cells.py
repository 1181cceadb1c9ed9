"""Claims about cells of the input space."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.ensembles.cells import LEAST_SHARE, RULES, Cells, grow

rules = pytest.mark.parametrize("rule", RULES)


def points(n: int = 500, d: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


def cut(X: object, size: int = 60, overlap: float = 0.5, rule: str = "k-means", seed: int = 1) -> Cells:
    return grow(X, size, overlap, rule, np.random.default_rng(seed))


@given(
    n=st.integers(1, 300),
    size=st.integers(5, 80),
    rule=st.sampled_from(RULES),
    grain=st.sampled_from([0.0, 1.0]),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_every_point_is_in_one_cell_and_is_found_there_again(n, size, rule, grain, seed):
    X = points(n, 2, seed)
    X = np.round(X / grain) * grain if grain else X  # with many copies, and ties at every plane
    cells = cut(X, size, 0.5, rule, seed)
    np.testing.assert_array_equal(np.sort(np.concatenate(cells.own)), np.arange(n))
    found = cells.tree.cell_of(X)
    for j, own in enumerate(cells.own):
        assert (found[own] == j).all()


@rules
def test_no_cell_holds_more_points_than_allowed_nor_a_sliver(rule):
    cells = cut(points(2000), 100, 0.0, rule)
    sizes = np.array([len(own) for own in cells.own])
    assert sizes.max() <= 100
    assert sizes.min() >= LEAST_SHARE * 100 - 1


@rules
def test_points_around_a_cell_are_outside_it_and_as_many_as_asked_for(rule):
    cells = cut(points(), 60, 0.5, rule)
    for own, around in zip(cells.own, cells.around):
        assert len(np.unique(around)) == len(around) == int(0.5 * len(own))
        assert not np.intersect1d(own, around).size


def test_points_around_half_a_space_are_those_nearest_to_the_plane():
    X = points(100)
    cells = cut(X, 80, 0.3)
    assert cells.tree.count == 2
    w, t = cells.tree.directions[0], cells.tree.thresholds[0]
    assert np.linalg.norm(w) == pytest.approx(1.0)
    for own, other, around in zip(cells.own, cells.own[::-1], cells.around):
        nearest = other[np.argsort(np.abs(X[other] @ w - t))[: int(0.3 * len(own))]]
        np.testing.assert_array_equal(np.sort(around), np.sort(nearest))


def test_clusters_far_apart_are_told_apart():
    X = points(300)
    X[:150] += 50.0
    cells = cut(X, 200, 0.0)
    assert sorted(sorted(own) for own in cells.own) == [list(range(150)), list(range(150, 300))]


@rules
def test_sparse_points_have_the_cells_of_dense_ones(rule):
    X = np.where(points(300, 6) > 0.5, points(300, 6, 1), 0.0)
    dense, sparse = cut(X, 50, 0.5, rule), cut(sp.csr_array(X), 50, 0.5, rule)
    np.testing.assert_array_equal(sparse.tree.cell_of(sp.csr_array(X)), sparse.tree.cell_of(X))
    np.testing.assert_allclose(sparse.tree.directions, dense.tree.directions, atol=1e-9)


@rules
def test_copies_of_one_point_stay_together(rule):
    cells = cut(np.ones((200, 3)), 20, 0.5, rule)
    assert cells.tree.count == 1
    assert len(cells.own[0]) == 200


def test_few_points_are_one_cell():
    cells = cut(points(40), 60)
    assert cells.tree.count == 1
    np.testing.assert_array_equal(cells.tree.cell_of(points(7)), np.zeros(7))


@rules
def test_the_same_seed_gives_the_same_cells(rule):
    first, second = cut(points(), rule=rule), cut(points(), rule=rule)
    np.testing.assert_array_equal(first.tree.directions, second.tree.directions)
    assert not np.array_equal(first.tree.directions, cut(points(), rule=rule, seed=2).tree.directions)
