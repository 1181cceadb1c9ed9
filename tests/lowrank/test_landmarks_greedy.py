"""Partial Cholesky factors and the greedy choices made with them, against dense algebra."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import BudgetTooSmall, InvalidInput, NotPositiveDefinite
from mercer.gram import Gram
from mercer.kernels import Gaussian, Linear, Polynomial, Sigmoid
from mercer.lowrank import choose
from mercer.lowrank.landmarks.factor import Factor
from mercer.lowrank.landmarks.greedy import CANDIDATES, Gains

KERNEL = Gaussian(sigma=1.2)


def points(n=80, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def nystrom(K, index):
    """K~ of the landmarks at `index`, by the pseudo-inverse."""
    A = K[:, index]
    return A @ np.linalg.pinv(K[np.ix_(index, index)], hermitian=True) @ A.T


def gains(K, index, weights):
    """What each point takes off sum_i w_i (K - K~)_ii, by forming K~ with it; minus infinity for the chosen ones."""
    before = weights @ np.diag(K - nystrom(K, index))
    after = [weights @ np.diag(K - nystrom(K, [*index, j])) for j in range(len(K))]
    return np.where(np.isin(np.arange(len(K)), index), -np.inf, before - np.array(after))


# Pivoted Cholesky ----------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 50), sigma=st.floats(0.3, 3.0), m=st.integers(1, 30))
@settings(max_examples=20, deadline=None)
def test_the_factor_is_the_nystrom_matrix_of_its_pivots_with_a_semidefinite_residual(seed, sigma, m):
    X = points(40, 2, seed)
    kernel = Gaussian(sigma=sigma)
    factor = Factor(Gram(kernel, X), m, np.ones(40), tol=1e-9)
    factor.grow_by(lambda f: (int(np.argmax(f.left)), None), m, 0.0)
    K, approximation = kernel(X), factor.V.T @ factor.V
    # Pivots fall to 1e-9, so that the inverse of their matrix, and with it the reference, loses as many digits.
    np.testing.assert_allclose(approximation, nystrom(K, factor.chosen), atol=1e-6)
    np.testing.assert_allclose(factor.left, np.diag(K - approximation), atol=1e-12)
    assert np.linalg.eigvalsh(K - approximation).min() >= -1e-10
    assert factor.trace == pytest.approx(np.trace(K - approximation), abs=1e-12)
    error = K - approximation
    norms = np.linalg.norm(error, 2), np.linalg.norm(error), np.trace(error)
    assert (np.diff(norms) >= -1e-12).all()


def test_pivots_are_those_of_the_textbook_loop():
    X, kernel = points(), Polynomial(degree=3, offset=1.0)
    chosen = choose(kernel, X, 15, method="pivoted_cholesky")
    K = kernel(X)
    left, G, pivots = np.diag(K).copy(), np.zeros((80, 0)), []
    for _ in range(15):
        j = int(np.argmax(left))
        g = (K[:, j] - G @ G[j]) / np.sqrt(left[j])
        G, left = np.column_stack([G, g]), left - g**2
        left[j] = 0.0
        pivots.append(j)
    assert chosen.index.tolist() == pivots


@pytest.mark.parametrize("tol", [1e-1, 1e-3])
def test_pivoted_cholesky_stops_when_the_largest_residual_is_below_the_tolerance(tol):
    X = points()
    chosen = choose(KERNEL, X, 80, method="pivoted_cholesky", tol=tol)
    left = np.diag(KERNEL(X) - nystrom(KERNEL(X), chosen.index))
    assert left.max() <= tol + 1e-9
    assert chosen.details["largest_residual"] == pytest.approx(left.max(), abs=1e-9)
    one_fewer = chosen.index[:-1]
    assert np.diag(KERNEL(X) - nystrom(KERNEL(X), one_fewer)).max() > tol
    assert chosen.details["dropped"] == 80 - len(chosen)


def test_a_share_of_the_trace_ends_the_choice():
    X = points()
    chosen = choose(KERNEL, X, 80, method="pivoted_cholesky", trace_tol=0.05)
    history = chosen.details["history"]
    assert history[-1] <= 0.05 * 80 < history[-2]
    assert chosen.residual_trace == pytest.approx(history[-1], rel=1e-8)


def test_dependent_points_are_dropped_and_said():
    X = points(60, 4)
    for method in ("pivoted_cholesky", "sparse_greedy", "trace_greedy", "feature_vectors", "kernel_pca"):
        chosen = choose(Linear(), X, 10, method=method, seed=0)
        assert len(chosen) == 4, method
        assert chosen.details["dropped"] == 6
        assert chosen.residual_trace == pytest.approx(0.0, abs=1e-9)


def test_m_equal_to_n_leaves_nothing():
    X = points(30, 5)
    for method in ("pivoted_cholesky", "sparse_greedy", "trace_greedy", "feature_vectors"):
        chosen = choose(KERNEL, X, 30, method=method, seed=0)
        assert chosen.explained == pytest.approx(1.0, abs=1e-12)


# Greedy choices -------------------------------------------------------------------------------------------------------


def test_the_number_of_candidates_is_that_of_the_95_percent_rule():
    assert CANDIDATES == 59
    assert 1 - 0.95**59 >= 0.95 > 1 - 0.95**58


@pytest.mark.parametrize("weighted", [False, True])
def test_gains_of_all_points_equal_what_their_addition_takes_off_the_trace(weighted):
    X = points(50)
    weights = np.random.default_rng(1).uniform(0.2, 3.0, 50) if weighted else np.ones(50)
    kernel = Polynomial(degree=2, offset=1.0)
    for k in (KERNEL, kernel):
        factor = Factor(Gram(k, X), 6, weights)
        tracker = Gains(factor)
        for _ in range(5):
            expected = gains(k(X), factor.chosen, weights)
            best = np.isfinite(expected)
            np.testing.assert_allclose(tracker.values()[best], expected[best], rtol=1e-6)
            before = factor.trace
            j, column = tracker.pick(factor)
            factor.grow(j, column)
            assert j == int(np.argmax(expected))
            assert before - factor.trace == pytest.approx(expected[j], rel=1e-8)


def test_the_residual_trace_falls_and_stays_above_the_tail_of_the_spectrum():
    X = points(120, 4)
    tail = np.cumsum(np.linalg.eigvalsh(KERNEL(X)))[::-1]  # tail[t]: the sum of the n - t smallest eigenvalues
    for method in ("pivoted_cholesky", "sparse_greedy", "trace_greedy"):
        history = choose(KERNEL, X, 40, method=method, seed=0).details["history"]
        assert (np.diff(history) < 0).all()
        assert (history >= tail[: len(history)] - 1e-9).all()
    for method in ("uniform", "kmeans", "kmeans++", "leverage", "kernel_pca", "entropy", "feature_vectors"):
        assert choose(KERNEL, X, 40, method=method, seed=0).residual_trace >= tail[40]


def test_59_candidates_come_close_to_all_and_leave_one_far_behind():
    X = points(600, 8)
    kernel = Gaussian(sigma=2.0)  # the setting of the scratch check: exp(-|x - z|^2 / 8), 100 basis functions
    traces = {
        candidates: choose(kernel, X, 100, method="sparse_greedy", candidates=candidates, seed=0).residual_trace
        for candidates in (1, 10, 59, 600)
    }
    assert traces[1] > traces[10] > traces[59] > traces[600]
    assert traces[59] < 1.04 * traces[600]
    assert traces[1] > 1.12 * traces[59]


def test_sparse_greedy_with_all_candidates_is_trace_greedy():
    X = points(70)
    every = choose(KERNEL, X, 12, method="sparse_greedy", candidates=70, seed=3)
    full = choose(KERNEL, X, 12, method="trace_greedy")
    np.testing.assert_array_equal(every.index, full.index)
    np.testing.assert_allclose(every.details["history"], full.details["history"], rtol=1e-10)


@pytest.mark.parametrize("method", ["sparse_greedy", "trace_greedy"])
def test_each_greedy_landmark_takes_most_off_the_weighted_trace(method):
    X = points(50)
    weights = np.random.default_rng(7).choice([0.05, 1.0, 20.0], 50)
    options = {"candidates": 50} if method == "sparse_greedy" else {}
    chosen = choose(KERNEL, X, 8, method=method, weights=weights, seed=0, **options)
    K = KERNEL(X)
    for at, j in enumerate(chosen.index):
        before = chosen.index[:at]
        left = [weights @ np.diag(K - nystrom(K, [*before, i])) if i not in before else np.inf for i in range(50)]
        assert j == int(np.argmin(left))


def test_trace_greedy_explains_more_than_uniform_and_pivots():
    X = points(300, 3)
    traces = {m: choose(KERNEL, X, 25, method=m, seed=0).residual_trace for m in ("trace_greedy", "uniform")}
    assert traces["trace_greedy"] < traces["uniform"]


# Feature vectors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["global", "worst"])
def test_fitness_is_one_minus_the_mean_residual_for_a_kernel_with_unit_diagonal(rule):
    X = points(90)
    chosen = choose(KERNEL, X, 20, method="feature_vectors", rule=rule)
    assert chosen.details["fitness"] == pytest.approx(1 - chosen.residual_trace / 90, abs=1e-10)
    assert (np.diff(chosen.details["history"]) > 0).all()


@pytest.mark.parametrize("rule", ["global", "worst"])
def test_fitness_is_the_mean_share_within_the_span_for_any_kernel(rule):
    X = points(60)
    kernel = Polynomial(degree=3, offset=1.0)
    chosen = choose(kernel, X, 8, method="feature_vectors", rule=rule)
    K = kernel(X)
    fitness = np.diag(nystrom(K, chosen.index)) / np.diag(K)
    assert chosen.details["fitness"] == pytest.approx(fitness.mean(), abs=1e-9)
    # The last point was chosen by the rule: no other would have done better, or was worse represented.
    earlier = list(chosen.index[:-1])
    if rule == "global":
        best = np.argmax(gains(K, earlier, 1 / np.diag(K)))
    else:
        best = np.argmin(np.diag(nystrom(K, earlier)) / np.diag(K))
    assert best == chosen.index[-1]


def test_feature_vectors_stop_at_the_fitness_asked_for():
    chosen = choose(KERNEL, points(90), 90, method="feature_vectors", fitness=0.9)
    assert chosen.details["history"][-1] >= 0.9 > chosen.details["history"][-2]


# Weights, rows, budgets, bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["pivoted_cholesky", "trace_greedy", "feature_vectors"])
def test_whole_weights_count_as_copies(method):
    X = points(40)
    counts = np.random.default_rng(2).integers(1, 4, 40)
    weighted = choose(KERNEL, X, 10, method=method, weights=counts.astype(float))
    copies = choose(KERNEL, np.repeat(X, counts, axis=0), 10, method=method)
    np.testing.assert_allclose(weighted.points, copies.points)
    assert weighted.residual_trace == pytest.approx(copies.residual_trace, rel=1e-9)
    assert weighted.trace == pytest.approx(copies.trace)


@pytest.mark.parametrize(
    "method",
    ["pivoted_cholesky", "sparse_greedy", "trace_greedy", "feature_vectors", "kernel_pca", "orthogonal_least_squares"],
)
def test_a_costly_method_can_look_at_some_rows_only_and_says_so(method):
    X = points(200)
    chosen = choose(KERNEL, X, 10, method=method, rows=50, seed=0, y=X[:, 0])
    assert chosen.details["rows"] == 50
    assert "50 random rows of 200" in chosen.details["note"]
    assert chosen.residual_rows == 200


def test_a_budget_too_small_names_a_workable_one():
    X = points(20_000)
    with pytest.raises(BudgetTooSmall, match="give at least"):
        choose(KERNEL, X, 500, method="pivoted_cholesky", memory="1 MiB")
    assert choose(KERNEL, X, 100, method="pivoted_cholesky", memory="8 MiB").details["rows"] == 4 * 2**20 // 800


def test_a_kernel_that_is_not_positive_definite_is_refused_by_factoring_methods_only():
    X = points(40)
    with pytest.raises(NotPositiveDefinite, match="use method='uniform'"):
        choose(Sigmoid(), X, 5, method="pivoted_cholesky")
    chosen = choose(Sigmoid(), X, 5, method="uniform", seed=0)
    assert np.isnan(chosen.residual_trace)
    assert "not positive definite" in chosen.details["measure"]


@pytest.mark.parametrize(
    "method, option",
    [
        ("pivoted_cholesky", {"tol": -1.0}),
        ("pivoted_cholesky", {"rows": 0}),
        ("sparse_greedy", {"candidates": 0}),
        ("trace_greedy", {"trace_tol": 2.0}),
        ("feature_vectors", {"rule": "best"}),
        ("feature_vectors", {"fitness": 0.0}),
        ("entropy", {"proposals": -1}),
        ("kmeans", {"iterations": -1}),
        ("kmeans++", {"rows": 0}),
        ("leverage", {"ridge": 0.0}),
        ("leverage", {"pilot": 0}),
        ("kernel_pca", {"tol": -1.0}),
        ("orthogonal_least_squares", {"tol": 0.0}),
    ],
)
def test_senseless_options_are_refused(method, option):
    X = points(30)
    with pytest.raises(InvalidInput, match=next(iter(option))):
        choose(KERNEL, X, 5, method=method, y=X[:, 0], **option)
