"""Losses on pairs against all pairs, and the measures of retrieval against scipy and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import kendalltau
from sklearn.metrics import average_precision_score, confusion_matrix, ndcg_score

from mercer.errors import InvalidInput
from mercer.ordinal import metrics
from mercer.selection.bounds.pairs import pair_bound, pair_margin

small = arrays.arrays(np.int64, st.integers(2, 25), elements=st.integers(0, 4))


def brute(y, f, groups=None, w=None):
    """Bad pairs and all pairs of different rank, one by one."""
    groups = np.zeros(len(y)) if groups is None else groups
    w = np.ones(len(y)) if w is None else w
    wrong = total = 0.0
    for i in range(len(y)):
        for j in range(len(y)):
            if y[i] > y[j] and groups[i] == groups[j]:
                total += w[i] * w[j]
                wrong += w[i] * w[j] * (f[i] <= f[j])
    return wrong, total


@settings(deadline=None)
@given(small, st.randoms(use_true_random=False))
def test_sorted_counts_equal_those_of_all_pairs(y, random):
    f = np.array([random.choice([0.0, 0.5, 0.7, 1e-9, 3.0]) for _ in y])
    groups = np.array([random.choice("ab") for _ in y])
    w = np.array([random.choice([0.0, 1.0, 2.5]) for _ in y])
    found = metrics.pair_counts(y, f, groups=groups, sample_weight=w)
    assert found == pytest.approx(brute(y, f, groups, w), abs=1e-12)


@settings(deadline=None)
@given(small, st.integers(0, 1000))
def test_the_confusion_matrix_gives_the_same_counts(y, seed):
    g = np.random.default_rng(seed).integers(0, 5, len(y))
    M = confusion_matrix(y, g, labels=np.arange(5))
    assert metrics.confusion_pair_counts(M) == brute(y, g)


def test_theorem_2_1_holds_with_its_count_corrected():
    random = np.random.default_rng(3)
    y, g = random.integers(0, 4, 30), random.integers(0, 4, 30)
    m = len(y)
    differ = sum(y[i] != y[j] for i in range(m) for j in range(m)) / m**2
    of_pairs = np.mean(
        [np.sign(g[i] - g[j]) != np.sign(y[i] - y[j]) for i in range(m) for j in range(m) if y[i] != y[j]]
    )
    assert metrics.pair_loss(y, g) == pytest.approx(differ * of_pairs, rel=1e-14)
    assert metrics.scaled_pair_loss(y, g) == pytest.approx(of_pairs, rel=1e-14)


def test_a_constant_prediction_has_scaled_loss_one():
    assert metrics.scaled_pair_loss([0, 1, 2], [1.0, 1.0, 1.0]) == 1.0


def test_without_predicted_ties_the_scaled_loss_is_that_of_goodman_and_kruskal():
    random = np.random.default_rng(8)
    y, f = random.integers(0, 4, 40), random.permutation(40)
    signs = [np.sign((y[i] - y[j]) * (f[i] - f[j])) for i in range(40) for j in range(i)]
    gamma = sum(signs) / np.abs(signs).sum()
    assert metrics.scaled_pair_loss(y, f) == pytest.approx((1.0 - gamma) / 2.0, rel=1e-14)


@settings(deadline=None)
@given(small, st.integers(0, 1000))
def test_kendall_tau_is_that_of_scipy(y, seed):
    f = np.random.default_rng(seed).integers(0, 6, len(y)).astype(float)
    assert metrics.kendall_tau(y, f) == pytest.approx(kendalltau(y, f).statistic, abs=1e-12, nan_ok=True)


def test_ndcg_and_map_are_those_of_scikit_learn():
    random = np.random.default_rng(0)
    y, f, groups = random.integers(0, 3, 60), random.standard_normal(60), np.repeat([4, 2, 9], 20)
    parts = [groups == g for g in (2, 4, 9)]
    wanted = np.mean([ndcg_score([2.0 ** y[p] - 1.0], [f[p]], k=10) for p in parts])
    assert metrics.ndcg(y, f, k=10, groups=groups) == pytest.approx(wanted, rel=1e-12)
    wanted = np.mean([average_precision_score(y[p] >= 1, f[p]) for p in parts])
    assert metrics.mean_average_precision(y, f, groups=groups) == pytest.approx(wanted, rel=1e-12)


def test_rank_error_counts_ranks_and_not_labels():
    assert metrics.rank_error([1, 10, 100], [10, 10, 1]) == pytest.approx(1.0)
    assert metrics.rank_error(["low", "high"], ["high", "high"], ["low", "mid", "high"]) == 1.0
    with pytest.raises(InvalidInput, match="not among"):
        metrics.rank_error(["top"], ["low"], ["low", "high"])


def test_a_function_never_has_faults_and_the_cyclic_dice_have():
    f = np.array([0.2, 0.1, 0.1, 4.0])
    faults = metrics.preference_faults(np.sign(f[:, None] - f))
    assert len(faults["asymmetry"]) == len(faults["transitivity"]) == 0
    dice = ([2, 4, 9], [1, 6, 8], [3, 5, 7])
    wins = np.array([[np.mean([a > b for a in one for b in other]) for other in dice] for one in dice])
    assert wins[0, 1] == wins[1, 2] == wins[2, 0] == pytest.approx(5 / 9)
    cyclic = np.where(np.eye(3), 0, np.sign(wins - 0.5))
    assert len(metrics.preference_faults(cyclic)["transitivity"]) == 3
    assert len(metrics.preference_faults(np.ones((2, 2)))["asymmetry"]) > 0


def test_no_pair_is_an_error():
    with pytest.raises(InvalidInput, match="no two points"):
        metrics.scaled_pair_loss([1, 1], [0.0, 1.0])


@pytest.mark.parametrize(("ratio", "pairs"), [(1, 34838), (4, 156071), (16, 691788), (100, 4884300)])
def test_the_pair_bound_says_something_from_these_sizes_on(ratio, pairs):
    D = np.sqrt(ratio)
    assert pair_bound(D, 1.0, pairs, mode="chained").value > 1.0 >= pair_bound(D, 1.0, pairs + 1, mode="chained").value
    disjoint = pair_bound(D, 1.0, 2 * pairs)
    assert disjoint.value == pytest.approx(pair_bound(D, 1.0, pairs + 1, mode="chained").value)
    assert disjoint.holds
    assert not pair_bound(D, 1.0, 100, mode="chained").holds


def test_the_pair_margin_is_the_least_difference_of_pairs():
    random = np.random.default_rng(1)
    y, f = random.integers(0, 4, 40), random.standard_normal(40)
    wanted = min(f[i] - f[j] for i in range(40) for j in range(40) if y[i] > y[j])
    assert pair_margin(y, f) == wanted
