"""Rows under a byte budget: the values, what is counted, what leaves first, and what a cut row still serves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import BudgetTooSmall
from mercer.gram import Gram
from mercer.kernels import Gaussian
from mercer.losses import Hinge
from mercer.problems import RegularisedRisk
from mercer.solvers import by_name
from mercer.solvers.classical.row_cache import RowCache

N = 40
X = np.random.default_rng(0).normal(size=(N, 3))
K = Gaussian(sigma=1.5)(X)
ROW = 8 * N


def streamed():
    return Gram(Gaussian(sigma=1.5), X, storage="streamed", precision="float64")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, N - 1), min_size=1, max_size=60), st.integers(2, N), st.sampled_from([0.0, 1.0]))
def test_rows_are_those_of_the_matrix_whatever_left_before(requests, slots, constant):
    cache = RowCache(streamed(), constant, memory=slots * ROW)
    for i in requests:
        assert np.allclose(cache.row(i), K[i] + constant, atol=1e-12)
        assert cache.report().held <= slots
        assert cache.report().bytes <= slots * ROW


def test_the_least_recently_used_row_leaves_first():
    cache = RowCache(streamed(), memory=3 * ROW)
    for i in (0, 1, 2, 0, 3):  # 1 was used longest ago
        cache.row(i)
    assert [bool(cache.slot_of[i] >= 0) for i in range(4)] == [True, False, True, True]


def test_hits_misses_and_evaluations_are_counted():
    cache = RowCache(streamed(), memory=3 * ROW)
    for i in (0, 1, 0, 0, 1):
        cache.row(i)
    report = cache.report()
    assert (report.hits, report.misses) == (3, 2)
    assert report.rate == 0.6
    assert cache.evaluations == 2 * N


def test_a_held_row_serves_as_a_column():
    cache = RowCache(streamed(), memory=3 * ROW)
    cache.row(7)
    before = cache.evaluations
    assert cache.value(3, 7) == pytest.approx(K[3, 7])
    assert cache.value(7, 3) == pytest.approx(K[3, 7])
    assert cache.evaluations == before
    assert cache.value(3, 4) == pytest.approx(K[3, 4])
    assert cache.evaluations == before + 1


def test_entries_that_other_rows_have_are_not_computed_again_once_those_are_many():
    cache = RowCache(streamed(), memory=N * ROW)
    for i in range(N):
        cache.row(i)
    held_first = N // 2
    assert cache.evaluations == held_first * N + sum(N - i for i in range(held_first, N))
    assert np.allclose(cache.rows[cache.slot_of], K, atol=1e-12)


def test_blocks_take_what_is_held_and_compute_the_rest():
    cache = RowCache(streamed(), memory=4 * ROW)
    cache.provide(np.array([2, 5]))
    before = cache.evaluations
    rows, columns = np.array([2, 9, 5]), np.array([1, 3, 30])
    assert np.allclose(cache.block(rows, columns), K[np.ix_(rows, columns)])
    assert cache.evaluations == before + 3


@pytest.mark.parametrize("slots", [2, 5, N])
@pytest.mark.parametrize("constant", [0.0, 2.0])
def test_products_do_not_depend_on_what_is_held(slots, constant):
    cache = RowCache(streamed(), constant, memory=slots * ROW)
    points = np.array([3, 8, 13, 21, 34])
    change = np.arange(1.0, 6.0)
    cache.row(8)
    assert np.allclose(cache.dot(points, change), (K + constant)[:, points] @ change)


def test_cut_rows_leave_room_for_more_and_come_back_whole():
    cache = RowCache(streamed(), memory=4 * ROW)
    cache.provide(np.array([0, 1, 2]))
    room = cache.buffer
    left = np.arange(0, N, 4)
    cache.restrict(left)
    assert cache.buffer is room  # in the same bytes
    assert np.allclose(cache.rows[cache.slot_of[[0, 1, 2]]], K[:3, left])
    assert cache.slots == 16  # rows a quarter as long
    assert cache.report().held == 3
    before = cache.evaluations
    assert np.allclose(cache.row(1), K[1, left])
    assert cache.evaluations == before
    assert np.allclose(cache.row(20), K[20, left])
    assert cache.value(20, 8) == pytest.approx(K[20, 8])
    assert cache.value(21, 22) == pytest.approx(K[21, 22])  # in no row that is held
    assert np.allclose(cache.dot(np.array([5, 6]), np.ones(2)), K[left][:, [5, 6]].sum(axis=1))
    cache.restore()
    assert np.allclose(cache.row(1), K[1])
    assert cache.slots == 4


def test_a_matrix_that_is_held_as_a_whole_is_used_in_place():
    gram = Gram(Gaussian(sigma=1.5), X, storage="dense", precision="float64")
    cache = RowCache(gram)
    assert np.shares_memory(cache.rows, gram.held_values())
    assert np.allclose(cache.row(4), K[4])
    assert cache.evaluations == N * N


def test_a_budget_below_two_rows_is_refused():
    with pytest.raises(BudgetTooSmall, match="2 rows"):
        RowCache(streamed(), memory=ROW)
    with pytest.raises(BudgetTooSmall, match="raise memory"):
        RowCache(streamed(), memory=2 * ROW).provide(np.arange(3))


@pytest.mark.parametrize("solver", ["svmlight", "svmtorch", "working_set", "osuna"])
def test_the_answer_is_the_same_with_and_without_a_cache(solver):
    rng = np.random.default_rng(1)
    points = rng.normal(size=(150, 3))
    y = np.where(points[:, 0] + 0.5 * rng.normal(size=150) > 0, 1.0, -1.0)
    found = []
    for memory in (16 * 150 * 8, 150 * 150 * 8):
        gram = Gram(Gaussian(sigma=1.0), points, storage="streamed", precision="float64")
        found.append(by_name(solver).solve(RegularisedRisk(gram, y, Hinge(), 1.0), tol=1e-5, memory=memory))
    few, many = found
    assert few.dual == pytest.approx(many.dual, rel=1e-7)
    assert np.abs(few.coefficients - many.coefficients).max() < 1e-4
    assert few.details["cache_rate"] <= many.details["cache_rate"]
    assert few.details["kernel_values"] > many.details["kernel_values"]
