"""Multilabel problems: unlinked yes-or-no questions, kept apart from classes that compete."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
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


def test_one_label_for_each_point_is_one_versus_all(problem):
    X, Y, Z = problem
    y = np.array(["one", "two", "three", "four"])[Y[:, 0] + 2 * Y[:, 1]]
    for base in (SVC(tol=1e-8), LSSVC(C=5.0), LogisticRegression(tol=1e-8)):
        machine = Multilabel(base).fit(X, y)
        reference = OneVsRestClassifier(base).fit(X, y)
        assert machine.classes_.tolist() == reference.classes_.tolist() == ["four", "one", "three", "two"]
        assert machine.n_labels_ == 4
        assert machine.decision_function(Z) == pytest.approx(reference.decision_function(Z), abs=1e-5)
        assert machine.predict(Z).tolist() == reference.predict(Z).tolist()
        assert machine.predict(Z).shape == (40,)
        assert not machine.multilabel_


def test_a_column_of_other_labels_than_0_and_1_is_a_vector_of_classes(problem):
    X, Y, Z = problem
    y = Y[:, 0] + 2 * Y[:, 1]
    with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
        column = Multilabel().fit(X, y[:, None])
    assert np.array_equal(column.predict(Z), Multilabel().fit(X, y).predict(Z))


def test_two_classes_are_one_machine_whatever_they_are_called(problem):
    X, Y, Z = problem
    column = Multilabel().fit(X, Y[:, :1])
    for low, high in ((-1, 1), (1, 2), (False, True), ("no", "yes")):
        machine = Multilabel().fit(X, np.where(Y[:, 0] == 1, high, low))
        assert machine.n_labels_ == 1
        assert machine.classes_.tolist() == [low, high]
        assert machine.decision_function(Z) == pytest.approx(column.decision_function(Z)[:, 0])
        assert machine.predict(Z).tolist() == [high if there else low for there in column.predict(Z)[:, 0]]


def test_classes_whose_points_all_have_weight_zero_do_not_exist(problem):
    X, _, Z = problem
    y = np.arange(80) % 4
    machine = Multilabel().fit(X, y, sample_weight=(y != 1).astype(float))
    assert machine.classes_.tolist() == [0, 2, 3]
    assert machine.decision_function(Z) == pytest.approx(
        Multilabel().fit(X[y != 1], y[y != 1]).decision_function(Z), abs=1e-3
    )
    with pytest.raises(InvalidInput, match="number of classes"):
        Multilabel().fit(X, np.ones(80))


def test_the_labels_of_a_matrix_are_the_numbers_of_its_columns(problem):
    X, Y, _ = problem
    assert Multilabel().fit(X, Y).classes_.tolist() == [0, 1, 2]
    assert Multilabel().fit(X, Y[:, :1]).classes_.tolist() == [0, 1]
    assert Multilabel().fit(X, Y).multilabel_


def test_columns_of_anything_but_0_and_1_are_refused(problem):
    X, Y, _ = problem
    with pytest.raises(InvalidInput, match="0 and 1 only"):
        Multilabel().fit(X, 2 * Y)
    with pytest.raises(InvalidInput, match="0 and 1 only"):
        Multilabel().fit(X, csr_matrix(2 * Y[:, :1]))
    with pytest.raises(InvalidInput, match="sample_weight"):
        Multilabel(KNeighborsClassifier()).fit(X, Y, sample_weight=np.ones(len(X)))


def test_its_tags_say_classes_and_labels():
    tags = Multilabel().__sklearn_tags__()
    assert tags.classifier_tags.multi_label
    assert tags.classifier_tags.multi_class
    assert tags.target_tags.single_output
    assert tags.target_tags.multi_output
