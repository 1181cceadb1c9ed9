"""The row cache: the same values with and without it, never more than it may hold, the oldest rows out first."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.gram import Gram, cost
from mercer.kernels import Gaussian, Laplacian

KERNEL = Gaussian(sigma=1.0)
X = np.random.default_rng(0).normal(size=(200, 4))
K = KERNEL(X)


def cached(slots, points=X, kernel=Laplacian(sigma=1.0)):  # noqa: B008 - kernels are immutable
    """A cache of exactly `slots` rows; the kernel is evaluated by calls, so that every evaluation can be seen."""
    task = Gram(kernel, points, storage="streamed").engine.task(10**9)
    fixed = cost.smallest_budget("cached", task) - cost.row_bytes(task)
    gram = Gram(kernel, points, storage="cached", memory=fixed + slots * cost.row_bytes(task))
    assert gram.report().slots == slots
    return gram


@settings(max_examples=25, deadline=None)
@given(
    slots=st.integers(1, 30),
    requests=st.lists(st.lists(st.integers(0, 199), min_size=1, max_size=12), min_size=1, max_size=12),
)
def test_any_sequence_of_requests_gives_the_rows_without_a_cache(slots, requests):
    gram = cached(slots)
    exact = Laplacian(sigma=1.0)(X)
    for index in requests:
        np.testing.assert_array_equal(gram.rows(index), exact[index])
        np.testing.assert_array_equal(gram.block(index, index[::-1]), exact[np.ix_(index, index[::-1])])
        np.testing.assert_allclose(gram.columns_dot(index, np.ones(len(index))), exact[:, index].sum(axis=1))
        report = gram.report()
        assert report.held <= report.slots == slots
        assert report.bytes <= slots * 200 * 8
    np.testing.assert_allclose(gram @ X, exact @ X, atol=1e-10)


def test_hits_and_misses_are_counted():
    gram = cached(50)
    gram.rows([1, 2, 3])
    gram.rows([2, 3, 4, 5])
    report = gram.report()
    assert (report.hits, report.misses, report.held) == (2, 5, 5)
    assert report.rate == pytest.approx(2 / 7)
    gram.forget()
    report = gram.report()
    assert (report.hits, report.misses, report.held) == (0, 0, 0)


def test_the_least_recently_used_row_leaves_first():
    gram = cached(3)
    for i in (0, 1, 2, 0, 3):  # 1 is the oldest when 3 comes
        gram.row(i)
    before = gram.report()
    gram.row(0), gram.row(2), gram.row(3)
    assert gram.report().misses == before.misses
    gram.row(1)
    assert gram.report().misses == before.misses + 1


def test_a_row_that_is_held_serves_as_a_column(monkeypatch):
    gram = cached(20)
    gram.rows([5, 9])
    asked = []
    fill = gram.engine.fill
    monkeypatch.setattr(
        gram.engine, "fill", lambda rows, columns, out: (asked.append(columns), fill(rows, columns, out))
    )
    exact = Laplacian(sigma=1.0)(X)
    np.testing.assert_array_equal(gram.block([0, 1, 2], [9, 5]), exact[np.ix_([0, 1, 2], [9, 5])])
    assert not asked
    np.testing.assert_array_equal(gram.block([0, 5, 2], [9, 7]), exact[np.ix_([0, 5, 2], [9, 7])])
    assert len(asked) == 1
    np.testing.assert_array_equal(asked[0], [7])


def test_a_tenth_of_the_matrix_answers_most_requests_of_a_small_working_set():
    gram = cached(20)
    rng = np.random.default_rng(1)
    for _ in range(300):
        gram.rows(rng.integers(0, 18, size=2))
    assert gram.report().rate > 0.9


def test_threads_that_share_a_cache_all_get_right_rows():
    gram = Gram(KERNEL, X, storage="cached", memory=1_500_000)

    def ask(seed):
        rng = np.random.default_rng(seed)
        for _ in range(40):
            index = rng.integers(0, 200, size=5)
            if np.abs(gram.rows(index) - K[index]).max() > 1e-12:
                return False
            if np.abs(gram.columns_dot(index, np.ones(5)) - K[:, index].sum(axis=1)).max() > 1e-11:
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(8)))
    report = gram.report()
    assert report.hits + report.misses >= 8 * 40 * 5
    assert report.held <= report.slots


def test_a_function_cache_updated_by_differences_stays_exact_and_is_refreshed():
    """f += K (c_new - c_old) over many changes of a few coefficients; then from scratch."""
    gram = Gram(KERNEL, X, storage="cached")
    rng = np.random.default_rng(3)
    c, f = np.zeros(200), np.zeros(200)
    for _ in range(500):
        index = rng.choice(200, 2, replace=False)
        new = rng.normal(size=2)
        f += gram.columns_dot(index, new - c[index])
        c[index] = new
    assert np.abs(f - K @ c).max() < 1e-8
    np.testing.assert_allclose(gram.dot(c), K @ c, atol=1e-11)


def test_rows_that_were_forgotten_are_computed_again():
    gram, exact = cached(10), Laplacian(sigma=1.0)(X)
    gram.rows(np.arange(10))
    gram.forget()
    assert gram.report().held == 0
    gram.rows(np.arange(20, 30))  # in the places that the first ten had
    np.testing.assert_array_equal(gram.rows(np.arange(10)), exact[:10])
