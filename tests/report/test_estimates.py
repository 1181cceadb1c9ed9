"""Intervals have the coverage they promise, and held-out outputs come from machines that did not see the points."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from mercer.report import bootstrap, held_out, per_class, wilson
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


def test_figures_of_each_class_are_counted() -> None:
    y = np.array(["a"] * 5 + ["b"] * 3)
    predicted = np.array(["a", "a", "a", "b", "c", "b", "a", "b"])
    a, b, c = per_class(y, predicted, np.array(["a", "b", "c"]))
    assert (a.label, a.points, a.precision, a.recall) == ("a", 5, 3 / 4, 3 / 5)
    assert (b.points, b.precision, b.recall) == (3, 2 / 3, 2 / 3)
    assert a.f1 == pytest.approx(2 * a.precision * a.recall / (a.precision + a.recall))
    assert (c.points, c.precision) == (0, 0.0)
    assert np.isnan(c.recall)  # no points of it: not a recall of zero
    never = per_class(y, np.full(8, "a"), np.array(["a", "b"]))[1]
    assert np.isnan(never.precision)
    assert never.recall == 0.0


def test_cross_validated_outputs_equal_explicit_retraining(heart: Any) -> None:
    from sklearn.model_selection import StratifiedKFold

    X, y = heart
    machine = SVC(C=1.0, gamma=0.05).fit(X, y)
    held = held_out(machine, X, y)
    for inside, outside in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        again = SVC(C=1.0, gamma=0.05).fit(X[inside], y[inside])
        np.testing.assert_allclose(held.outputs[outside], again.decision_function(X[outside]))
        np.testing.assert_array_equal(held.predicted[outside], again.predict(X[outside]))


@pytest.mark.parametrize("classes", [2, 4])
def test_ties_of_held_out_outputs_are_broken_as_predict_breaks_them(classes: int) -> None:
    from sklearn.model_selection import StratifiedKFold

    random = np.random.default_rng(5)
    # Two classes: points at 0 have the output 0.  Four: classes without structure have equal votes.
    X, y = random.normal(size=(80, 2)), np.arange(80) % classes
    X[: 40 if classes == 2 else 0] = 0.0
    machine = SVC(kernel="linear", bias="none").fit(X, y)
    held = held_out(machine, X, y)
    for inside, outside in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        np.testing.assert_array_equal(held.predicted[outside], machine.fit(X[inside], y[inside]).predict(X[outside]))


def test_least_squares_uses_its_exact_leave_one_out(lssvc: Any, heart: Any) -> None:
    held = held_out(lssvc, *heart)
    np.testing.assert_array_equal(held.outputs, lssvc.loo_predictions_)
    assert np.mean(held.predicted != held.y) == pytest.approx(lssvc.loo_error_)


def test_little_time_means_a_sample_and_says_so(svc: SVC, heart: Any) -> None:
    held = held_out(svc, *heart, time_limit=1e-6)
    assert len(held.y) < len(heart[1])
    assert "sample" in held.how
