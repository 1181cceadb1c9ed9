"""Multilabel problems: unlinked yes-or-no questions, kept apart from classes that compete."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from mercer import LSSVC, SVC, Gaussian
from mercer.errors import InvalidInput
from mercer.multiclass import Multilabel


@pytest.fixture(scope="module")
def problem():
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 4))
    return X[:80], (X[:80, :3] + 0.1 * random.normal(size=(80, 3)) > 0.3).astype(int), X[80:]


@pytest.mark.parametrize(
    "base", [LSSVC(C=5.0, kernel=Gaussian(2.0)), SVC(tol=1e-8), LogisticRegression(), GaussianNB()]
)
def test_every_label_is_its_own_binary_machine(problem, base):
    X, Y, Z = problem
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=len(X))
    machine = Multilabel(base).fit(X, Y, sample_weight=weights)
    for label in range(3):
        alone = base.fit(X, 2 * Y[:, label] - 1, sample_weight=weights)
        if hasattr(alone, "decision_function"):
            assert machine.decision_function(Z)[:, label] == pytest.approx(alone.decision_function(Z), abs=1e-6)
        assert np.array_equal(machine.predict(Z)[:, label], (alone.predict(Z) > 0).astype(int))


def test_points_may_have_no_label_or_all(problem):
    X, Y, _ = problem
    found = Multilabel(LSSVC(C=100.0)).fit(X, Y).predict(X)
    assert {0, 3} <= set(found.sum(axis=1))
    assert np.mean(found == Y) > 0.9


def test_a_label_that_is_always_or_never_there_is_answered_so(problem):
    X, Y, Z = problem
    Y = np.column_stack([Y[:, 0], np.ones(len(Y)), np.zeros(len(Y))])
    for base in (SVC(), LSSVC()):
        found = Multilabel(base).fit(X, csr_matrix(Y)).predict(Z)
        assert found[:, 1].all()
        assert not found[:, 2].any()


def test_classes_are_sent_to_the_other_estimator(problem):
    X, Y, _ = problem
    with pytest.raises(InvalidInput, match="OutputCode"):
        Multilabel().fit(X, Y[:, 0])
    with pytest.raises(InvalidInput, match="0 and 1 only"):
        Multilabel().fit(X, 2 * Y)
    with pytest.raises(InvalidInput, match="sample_weight"):
        Multilabel(KNeighborsClassifier()).fit(X, Y, sample_weight=np.ones(len(X)))


def test_its_tags_say_multilabel():
    tags = Multilabel().__sklearn_tags__()
    assert tags.classifier_tags.multi_label
    assert not tags.classifier_tags.multi_class
