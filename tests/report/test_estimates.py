"""Intervals have the coverage they promise, and held-out outputs come from machines that did not see the points."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from mercer.report import bootstrap, held_out, wilson
from mercer.svm import SVC


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@settings(max_examples=30, deadline=None)
def test_wilson_agrees_with_scipy(counts: tuple[int, int]) -> None:
    right, n = counts
    ours, theirs = wilson(right, n), binomtest(right, n).proportion_ci(method="wilson")
    assert ours.low == pytest.approx(theirs.low, abs=1e-12)
    assert ours.high == pytest.approx(theirs.high, abs=1e-12)


def test_wilson_refuses_impossible_counts() -> None:
    with pytest.raises(ValueError, match="0 <= right <= n"):
        wilson(3, 2)


def test_bootstrap_covers_the_true_error_about_as_often_as_it_says() -> None:
    random, covered = np.random.default_rng(0), 0
    for trial in range(40):
        y = random.normal(size=120)
        found = bootstrap(y, y + 0.5 * random.normal(size=120), random_state=trial)["mean squared error"]
        covered += found.low <= 0.25 <= found.high
    assert 34 <= covered <= 40


def test_cross_validated_outputs_equal_explicit_retraining(heart: Any) -> None:
    from sklearn.model_selection import StratifiedKFold

    X, y = heart
    machine = SVC(C=1.0, gamma=0.05).fit(X, y)
    held = held_out(machine, X, y)
    for inside, outside in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        again = SVC(C=1.0, gamma=0.05).fit(X[inside], y[inside])
        np.testing.assert_allclose(held.outputs[outside], again.decision_function(X[outside]))
        np.testing.assert_array_equal(held.predicted[outside], again.predict(X[outside]))


def test_least_squares_uses_its_exact_leave_one_out(lssvc: Any, heart: Any) -> None:
    held = held_out(lssvc, *heart)
    np.testing.assert_array_equal(held.outputs, lssvc.loo_predictions_)
    assert np.mean(held.predicted != held.y) == pytest.approx(lssvc.loo_error_)


def test_little_time_means_a_sample_and_says_so(svc: SVC, heart: Any) -> None:
    held = held_out(svc, *heart, time_limit=1e-6)
    assert len(held.y) < len(heart[1])
    assert "sample" in held.how
