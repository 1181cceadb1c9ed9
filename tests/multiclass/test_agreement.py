"""Paired tests, intervals and the sides machines take, against counting and resampling by hand."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy.stats import binomtest

from mercer.errors import InvalidInput
from mercer.multiclass.agreement import (
    agreement,
    bootstrap_interval,
    compare,
    mcnemar,
    rate_interval,
    reverse_distribution,
    siding_with_the_error,
)


def test_agreement_counts_identical_predictions():
    found = agreement({"a": [1, 2, 3, 1], "b": [1, 2, 2, 1], "c": [1, 1, 3, 1]})
    assert found.between("a", "b") == 0.75
    assert found.between("b", "c") == 0.5
    assert found.all == 0.5
    np.testing.assert_array_equal(found.pairs, found.pairs.T)
    with pytest.raises(InvalidInput, match="one length"):
        agreement({"a": [1, 2], "b": [1]})


@pytest.mark.parametrize("b, c", [(0, 0), (0, 5), (3, 3), (4, 9), (17, 40)])
def test_mcnemar_is_the_exact_binomial_test(b, c):
    n = b + c
    by_hand = min(1.0, 2 * sum(comb(n, k) for k in range(min(b, c) + 1)) / 2**n)
    assert mcnemar(b, c) == pytest.approx(by_hand)
    assert mcnemar(b, c) == mcnemar(c, b)
    if n:
        assert mcnemar(b, c) == pytest.approx(binomtest(b, n).pvalue)


def test_the_interval_is_that_of_resampled_points():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    first = np.where(rng.uniform(size=300) < 0.8, y, 0)
    second = np.where(rng.uniform(size=300) < 0.7, y, 1)
    found = compare(y, first, second)
    assert found.difference == pytest.approx(np.mean(first != y) - np.mean(second != y))
    index = rng.integers(0, 300, (4000, 300))
    by_hand = np.mean(first[index] != y[index], axis=1) - np.mean(second[index] != y[index], axis=1)
    np.testing.assert_allclose([found.low, found.high], np.quantile(by_hand, [0.025, 0.975]), atol=0.01)
    turned = compare(y, second, first)
    assert turned.difference == -found.difference
    assert turned.won == pytest.approx(1 - found.won)
    assert turned.p == found.p
    assert "against" in str(found)


def test_the_interval_covers_the_true_difference_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    covered = 0
    for seed in range(200):
        kinds = rng.multinomial(400, [0.06, 0.03, 0.91])
        low, high = bootstrap_interval(int(kinds[1]), int(kinds[0]), 400, draws=2000, seed=seed)
        covered += low <= 0.03 <= high
    assert 0.88 <= covered / 200 <= 0.99


def test_equal_schemes_do_not_differ():
    found = compare([0, 1, 2], [0, 1, 1], [0, 1, 1])
    assert (found.difference, found.low, found.high, found.p, found.won, found.same) == (0.0, 0.0, 0.0, 1.0, 0.5, 1.0)


def test_rate_interval_is_clopper_pearson():
    low, high = rate_interval(157, 2000)
    exact = binomtest(157, 2000).proportion_ci(method="exact")
    assert (low, high) == pytest.approx((exact.low, exact.high))
    assert rate_interval(0, 10)[0] == 0.0
    assert rate_interval(10, 10)[1] == 1.0


def test_sides_are_counted_over_separating_machines_only():
    rng = np.random.default_rng(2)
    classes = 4
    pairs = np.zeros((classes, 6))
    for column, (a, b) in enumerate(combinations(range(classes), 2)):
        pairs[a, column], pairs[b, column] = 1, -1
    sparse = rng.choice([-1.0, 0.0, 1.0], (classes, 15))
    for M in (pairs, sparse):
        truth = rng.integers(0, classes, 50)
        chosen = (truth + rng.integers(1, classes, 50)) % classes
        f = rng.standard_normal((50, M.shape[1]))
        e = siding_with_the_error(M, f, truth, chosen)
        for n in range(50):
            used = [a for a in range(M.shape[1]) if M[truth[n], a] * M[chosen[n], a] == -1]
            if not used:
                assert np.isnan(e[n])
                continue
            assert e[n] == pytest.approx(np.mean([np.sign(f[n, a]) == M[chosen[n], a] for a in used]))
    # One pair, one machine: e is 0 or 1.
    assert set(siding_with_the_error(pairs, f[:, :6], truth, chosen)) <= {0.0, 1.0}
    with pytest.raises(InvalidInput, match="errors only"):
        siding_with_the_error(pairs, np.zeros((1, 6)), [0], [0])


def test_reverse_distribution_counts_values_at_or_above():
    values = [0.0, 0.5, 0.5, 1.0, np.nan]
    np.testing.assert_allclose(reverse_distribution(values, [0.0, 0.5, 0.7, 1.0]), [1.0, 0.75, 0.25, 0.25])
    assert np.isnan(reverse_distribution([np.nan], [0.5])).all()
