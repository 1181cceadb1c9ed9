"""The search for logistic regression: scores of explicit retraining, by labels or by probabilities, in any memory."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score, log_loss

from mercer import Gaussian, KernelLogistic, TunedLogistic, tune
from mercer.errors import InvalidInput
from mercer.models import load, save
from mercer.selection.scoring import score_of

COSTS, WIDTHS = [0.1, 1.0, 10.0], [0.7, 2.0]


def points(n: int = 90, k: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    y = np.arange(n) % k
    return random.standard_normal((n, 2)) + 1.3 * np.column_stack([y, y % 2]), y


def searched(X, y, **options) -> TunedLogistic:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = TunedLogistic(C=COSTS, sigma=WIDTHS, tol=1e-6, early_stop=False, **options)
        return machine.fit(X, y)


def retrained(X, y, fold, score, weights=None) -> dict[tuple[float, float], float]:
    found = {}
    for C in COSTS:
        for sigma in WIDTHS:
            scores = []
            for f in np.unique(fold):
                inside, outside = fold != f, fold == f
                machine = KernelLogistic(C=C, kernel=Gaussian(sigma), tol=1e-8)
                machine.fit(X[inside], y[inside], None if weights is None else weights[inside])
                scores.append(score(y[outside], machine.predict_proba(X[outside])))
            found[C, sigma] = float(np.mean(scores))
    return found


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("scoring", [None, "accuracy"])
@pytest.mark.parametrize("memory", [None, 1 << 20])
def test_every_score_is_that_of_retraining(k, scoring, memory):
    X, y = points(k=k)
    fold = np.random.default_rng(1).permutation(np.arange(90) % 3)
    machine = searched(X, y, folds=fold, scoring=scoring, memory=memory)
    score = {
        None: lambda truth, p: -log_loss(truth, p, labels=np.arange(k)),
        "accuracy": lambda truth, p: accuracy_score(truth, p.argmax(axis=1)),
    }[scoring]
    expected = retrained(X, y, fold, score)
    for candidate, mean in zip(machine.search_.candidates, machine.search_.mean):
        assert mean == pytest.approx(
            expected[candidate["C"], candidate["sigma"]], abs=2e-3 if scoring is None else 0.012
        )
    best = max(expected, key=lambda pair: expected[pair])
    if scoring is None:
        assert (machine.best_params_["C"], machine.best_params_["sigma"]) == best


def test_the_final_machine_is_the_one_at_the_best_parameters(tmp_path):
    X, y = points()
    found = searched(X, y, folds=3)
    same = KernelLogistic(C=found.best_params_["C"], kernel=Gaussian(found.best_params_["sigma"]), tol=1e-6).fit(X, y)
    np.testing.assert_allclose(found.predict_proba(X), same.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(np.exp(found.predict_log_proba(X)), found.predict_proba(X))
    save(found, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict_proba(X), found.predict_proba(X))
    assert clone(found).get_params() == found.get_params()


def test_tune_knows_logistic_regression():
    X, y = points(60, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = tune(X, y, "logistic", grid={"C": COSTS, "sigma": WIDTHS}, folds=3)
    assert isinstance(found.best_machine, KernelLogistic)
    assert found.best_score < 0.0


def test_scores_of_probabilities_need_probabilities():
    with pytest.raises(InvalidInput, match="neg_log_loss"):
        score_of("neg_log_loss", True)
    p = np.array([[0.8, 0.2], [0.4, 0.6]])
    y = np.array([0, 0])
    assert score_of("neg_brier_score", True, True)(y, p, None) == pytest.approx(-(0.08 + 0.72) / 2.0)
    assert score_of(None, True, True)(y, p, np.array([1.0, 3.0])) == pytest.approx(
        (np.log(0.8) + 3.0 * np.log(0.4)) / 4.0
    )


def test_a_class_that_only_the_held_out_fold_has_gets_no_probability():
    X, y = points(60, 3)
    y[:] = np.arange(60) % 2
    y[:6] = 2
    fold = np.where(np.arange(60) < 6, 0, 1 + np.arange(60) % 2)
    found = searched(X, y, folds=fold)
    assert np.isfinite(found.search_.mean).all()
