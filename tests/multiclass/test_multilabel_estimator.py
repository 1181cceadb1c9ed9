"""Multilabel as scikit-learn's tools see it, and labels whose machines choose for themselves."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB

from mercer import LSSVC, SVC, Gaussian
from mercer.errors import InvalidInput
from mercer.multiclass import Multilabel

BASES = [LSSVC(C=5.0, kernel=Gaussian(2.0)), SVC(tol=1e-8), LogisticRegression(tol=1e-8), GaussianNB()]


@pytest.fixture(scope="module")
def problem():
    random = np.random.default_rng(0)
    X = random.normal(size=(90, 4))
    return X[:60], (X[:60, :3] + 0.3 * random.normal(size=(60, 3)) > 0.2).astype(int), X[60:]


@pytest.mark.parametrize("base", BASES, ids=lambda base: type(base).__name__)
def test_names_and_number_of_features_are_kept_and_checked(problem, base):
    X, Y, Z = problem
    frame = pd.DataFrame(X, columns=list("abcd"))
    machine = clone(Multilabel(base)).fit(frame, y=pd.DataFrame(Y))
    assert machine.n_features_in_ == 4
    assert list(machine.feature_names_in_) == list("abcd")
    assert machine.predict(frame).shape == (60, 3)
    with pytest.raises(ValueError, match="feature names"):
        machine.predict(frame[["d", "c", "b", "a"]])
    with pytest.raises(ValueError, match="3 features"):
        Multilabel(base).fit(X, Y).predict(Z[:, :3])
    with pytest.raises(NotFittedError):
        Multilabel(base).predict(Z)


@pytest.mark.parametrize("base", BASES, ids=lambda base: type(base).__name__)
def test_scores_by_ranking_and_by_labels_work_in_cross_validation(problem, base):
    X, Y, _ = problem
    for scoring in ("roc_auc", "f1_macro", "accuracy"):
        scores = cross_val_score(Multilabel(base), X, Y, cv=3, scoring=scoring, error_score="raise")
        assert scores.mean() > (0.3 if scoring == "accuracy" else 0.7)


def test_a_grid_over_the_base_finds_its_parameters(problem):
    X, Y, _ = problem
    search = GridSearchCV(Multilabel(LSSVC()), {"base__C": [1e-6, 10.0]}, cv=3, scoring="f1_micro").fit(X, Y)
    assert search.best_params_ == {"base__C": 10.0}


@pytest.mark.parametrize("base", BASES, ids=lambda base: type(base).__name__)
def test_one_label_is_a_column_and_a_binary_machine(problem, base):
    X, Y, Z = problem
    found = Multilabel(base).fit(X, Y[:, :1]).predict(Z)
    assert found.shape == (30, 1)
    assert np.array_equal(found[:, 0], clone(base).fit(X, Y[:, 0]).predict(Z))


@pytest.mark.parametrize("base", BASES, ids=lambda base: type(base).__name__)
def test_points_of_weight_zero_take_no_part_even_if_only_they_have_a_label(problem, base):
    X, Y, Z = problem
    weights = (Y[:, 0] == 0).astype(float)
    weighted = Multilabel(base).fit(X, Y, sample_weight=weights)
    left = Multilabel(base).fit(X[weights > 0], Y[weights > 0])
    assert not weighted.predict(Z)[:, 0].any()
    assert weighted.decision_function(Z) == pytest.approx(left.decision_function(Z), abs=1e-3)
    with pytest.raises(InvalidInput, match="negative"):
        Multilabel(base).fit(X, Y, sample_weight=-weights)


def test_parameters_are_chosen_for_each_label(problem):
    X, Y, Z = problem
    base = LSSVC(C="loo", kernel=Gaussian(2.0))
    machine = Multilabel(base).fit(X, Y)
    for label, own in enumerate(machine.machines_):
        alone = clone(base).fit(X, 2 * Y[:, label] - 1)
        assert own.C_ == alone.C_
        assert machine.decision_function(Z)[:, label] == pytest.approx(alone.decision_function(Z))
