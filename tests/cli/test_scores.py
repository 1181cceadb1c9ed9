"""Scores and paired tests against scipy, scikit-learn and the formulas written out."""

import numpy as np
import pytest
from scipy.stats import binomtest, t
from sklearn.metrics import (
    balanced_accuracy_score,
    f1_score,
    mean_absolute_error,
    precision_recall_fscore_support,
    r2_score,
    roc_auc_score,
)

from mercer.cli import paired, scores


def test_wilson_is_scipys_interval() -> None:
    for hits, n in ((0, 5), (3, 10), (80, 100), (7, 7)):
        expected = binomtest(hits, n).proportion_ci(method="wilson")
        assert scores.wilson(hits, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_class_scores_are_those_of_scikit_learn() -> None:
    random = np.random.default_rng(0)
    y, values = random.integers(0, 2, 200), random.normal(size=200)
    values += y
    predicted = (values > 0.5).astype(int)
    facts = scores.of_classes(y, predicted, np.array([0, 1]), values)
    assert facts["accuracy"] == np.mean(y == predicted)
    assert facts["balanced accuracy"] == pytest.approx(balanced_accuracy_score(y, predicted))
    assert facts["macro f1"] == pytest.approx(f1_score(y, predicted, average="macro"))
    assert facts["auc"] == pytest.approx(roc_auc_score(y, values))
    assert facts["auc interval"][0] < facts["auc"] < facts["auc interval"][1]


@pytest.mark.parametrize("levels", [1, 2, 5])
def test_the_area_under_the_curve_counts_ties_by_halves(levels: int) -> None:
    random = np.random.default_rng(0)
    y = random.integers(0, 2, 300)
    values = np.floor(random.uniform(0.0, levels, 300)) + (levels > 2) * y
    pairs = values[y == 1][:, None] - values[y == 0]
    found = scores.area(values, y == 1)
    assert found is not None
    assert found[0] == pytest.approx(roc_auc_score(y, values))
    assert found[0] == pytest.approx(np.mean((pairs > 0) + 0.5 * (pairs == 0)))
    assert levels > 1 or found[0] == 0.5


def test_figures_of_each_class_are_those_of_scikit_learn() -> None:
    random = np.random.default_rng(0)
    names = np.array(["ant", "bee", "cow", "dog"])
    y = names[random.integers(0, 3, 150)]
    predicted = np.where(random.random(150) < 0.6, y, names[random.integers(1, 4, 150)])
    assert "dog" not in y
    assert "dog" in predicted
    facts = scores.of_classes(y, predicted, names)
    precision, recall, f1, points = precision_recall_fscore_support(y, predicted, labels=names, zero_division=0.0)
    for k, name in enumerate(names):
        found = facts["classes"][name]
        assert found["points"] == points[k]
        assert found["precision"] == pytest.approx(precision[k])
        assert found["recall"] == pytest.approx(recall[k])
    assert facts["macro f1"] == pytest.approx(f1.mean())


def test_numbers_have_the_scores_of_scikit_learn_and_intervals_around_them() -> None:
    random = np.random.default_rng(0)
    y = random.normal(size=(300, 2))
    predicted = y + 0.3 * random.normal(size=y.shape)
    facts = scores.of_numbers(y, predicted)
    assert facts["r2"] == pytest.approx(r2_score(y, predicted))
    assert facts["mae"] == pytest.approx(mean_absolute_error(y, predicted))
    for name in ("r2", "rmse", "mae"):
        low, high = facts[f"{name} interval"]
        assert low < facts[name] < high
    assert scores.of_numbers(np.ones(5), np.zeros(5))["r2"] is None


def test_the_corrected_t_is_its_formula() -> None:
    d = np.array([0.02, 0.01, 0.03, -0.01, 0.02])
    found = paired.corrected_t(d, 0.25)
    value = d.mean() / np.sqrt((1 / 5 + 0.25) * d.var(ddof=1))
    assert found.t == pytest.approx(value)
    assert found.p == pytest.approx(2 * t.sf(value, 4))
    assert found.d == pytest.approx(d.mean() / d.std(ddof=1))
    half = t.ppf(0.975, 4) * np.sqrt((1 / 5 + 0.25) * d.var(ddof=1))
    assert (found.low, found.high) == pytest.approx((d.mean() - half, d.mean() + half))


def test_mcnemar_counts_disagreements_only() -> None:
    first = np.array([True] * 12 + [False] * 3 + [True] * 20)
    second = np.array([False] * 12 + [True] * 3 + [True] * 20)
    assert paired.mcnemar(first, second) == (12, 3, pytest.approx(binomtest(12, 15).pvalue))
    assert paired.mcnemar(first, first)[2] == 1.0


def test_holm_never_lowers_a_p_value_and_keeps_their_order() -> None:
    assert paired.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
