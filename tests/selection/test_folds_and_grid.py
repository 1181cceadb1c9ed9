"""Folds, their working order, and the grid that follows from the data."""

import numpy as np
import pytest
from scipy import sparse

from mercer.errors import InvalidInput
from mercer.kernels import Gaussian, Linear
from mercer.selection.folds import Layout, assign
from mercer.selection.grid import Grid, from_data
from mercer.selection.search import rows_of


def test_every_class_is_dealt_out_evenly() -> None:
    codes = np.repeat(np.arange(3), [50, 31, 7]).astype(np.intp)
    fold = assign(88, 5, codes, 0)
    for c in range(3):
        counts = np.bincount(fold[codes == c], minlength=5)
        assert counts.max() - counts.min() <= 1
    total = np.bincount(fold)
    assert total.max() - total.min() <= 1


def test_there_are_never_more_folds_than_points() -> None:
    assert np.array_equal(np.sort(assign(3, 5, None, 0)), [0, 1, 2])


def test_given_folds_are_taken_by_name() -> None:
    assert np.array_equal(assign(4, np.array([7, 7, 3, 3]), None, 0), [1, 1, 0, 0])


@pytest.mark.parametrize("folds", [1, np.zeros(4), np.zeros(3)])
def test_folds_that_cannot_be_are_refused(folds: object) -> None:
    with pytest.raises(InvalidInput, match="fold"):
        assign(4, folds, None, 0)


def test_the_layout_makes_each_fold_one_stretch_ordered_by_class() -> None:
    codes = np.random.default_rng(0).integers(0, 3, 60).astype(np.intp)
    fold = assign(60, 4, codes, 1)
    layout = Layout.of(fold, codes, 1)
    assert np.array_equal(np.sort(layout.order), np.arange(60))
    for f in range(4):
        rows = layout.rows(f)
        assert (fold[layout.order[rows]] == f).all()
        assert (np.diff(layout.codes[rows]) >= 0).all()
        assert np.array_equal(np.sort(np.concatenate([np.arange(60)[rows], layout.outside(f)])), np.arange(60))


def test_the_grid_scales_with_the_data() -> None:
    X = np.random.default_rng(0).normal(size=(200, 4))
    one = from_data(X, None, Gaussian(1.0), tuned=True)
    ten = from_data(10.0 * X, None, Gaussian(1.0), tuned=True)
    assert one.size == 100
    np.testing.assert_allclose(np.array(ten.sigma), 10.0 * np.array(one.sigma), rtol=1e-6)
    np.testing.assert_allclose(ten.C, one.C, rtol=1e-6)
    assert one.C[0] < 1.0 < one.C[-1]


def test_the_price_of_a_linear_kernel_scales_against_the_data() -> None:
    X = np.random.default_rng(0).normal(size=(200, 4))
    one, ten = (from_data(X * s, None, Linear(), tuned=False) for s in (1.0, 10.0))
    np.testing.assert_allclose(np.array(ten.C), 0.01 * np.array(one.C), rtol=1e-6)
    assert one.sigma == ()


def test_sparse_points_give_the_grid_of_dense_ones() -> None:
    X = np.random.default_rng(0).normal(size=(60, 5)) * (np.random.default_rng(1).random((60, 5)) < 0.5)
    dense, compressed = (from_data(P, None, Gaussian(1.0), tuned=True) for P in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(dense.sigma, compressed.sigma, rtol=1e-6)


def test_equal_points_still_give_a_grid() -> None:
    assert from_data(np.ones((10, 2)), None, Gaussian(1.0), tuned=True).size == 100


def test_given_values_stay() -> None:
    grid = from_data(np.eye(5), None, Gaussian(1.0), tuned=True, C=[3.0, 1.0], sigma=0.5)
    assert grid == Grid((1.0, 3.0), (0.5,))


@pytest.mark.parametrize("C", [[], [0.0, 1.0], [-1.0], [np.inf]])
def test_impossible_values_are_refused(C: list[float]) -> None:
    with pytest.raises(InvalidInput, match="C must hold"):
        Grid(tuple(C))


def test_random_rows_stay_between_the_ends_and_depend_on_the_seed_only() -> None:
    grid = Grid((0.1, 1.0, 10.0), (1.0, 2.0, 4.0))
    rows = rows_of(grid, "random", 3)
    assert rows == rows_of(grid, "random", 3)
    assert rows != rows_of(grid, "random", 4)
    assert all(1.0 <= row.sigma <= 4.0 and len(row.costs) == 3 for row in rows if row.sigma)
    assert all(0.1 <= C <= 10.0 for row in rows for C in row.costs)
