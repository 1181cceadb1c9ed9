"""Decoders learnt on unseen outputs: weights are copies, copies are left out together, and units do not matter."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from mercer import LSSVC, SVC, Gaussian
from mercer.errors import NotConverged
from mercer.machine import probability
from mercer.machine.repeated_rows import distinct
from mercer.multiclass import OutputCode, learnt_decoders

pytestmark = pytest.mark.filterwarnings("ignore::mercer.errors.Advice")


@pytest.fixture(scope="module")
def iris():
    # The sample holds a point twice; what follows asks for distinct ones.
    X, y = load_iris(return_X_y=True)
    rows = np.sort(np.unique(X, axis=0, return_index=True)[1])[::2]
    return X[rows], y[rows]


def test_copies_share_a_fold_and_neither_order_nor_number_changes_it(iris):
    X, labels = iris
    random = np.random.default_rng(0)
    counts = random.integers(1, 4, size=len(X))
    rows = random.permutation(np.repeat(np.arange(len(X)), counts))
    folds = []
    for index in (np.arange(len(X)), rows):
        found = distinct(X[index], labels[index], None, ordered=True)
        dealt = probability.folds(labels[index][found.first], 5, np.random.RandomState(3))
        folds.append(dealt[found.point(len(index))])
    assert np.array_equal(folds[0][rows], folds[1])
    assert all(np.ptp(np.bincount(folds[0][labels == c], minlength=5)) <= 1 for c in range(3))


@pytest.mark.parametrize(
    "base", [LSSVC(kernel=Gaussian(1.0)), SVC(tol=1e-10), GaussianNB()], ids=lambda b: type(b).__name__
)
@pytest.mark.parametrize("decoder", ["stacking", "continuous", "bradley-terry"])
@pytest.mark.parametrize("code", ["ova", "ava"])
def test_a_weight_is_so_many_copies(iris, base, decoder, code):
    X, y = iris
    counts = np.random.default_rng(1).integers(0, 3, size=len(X))
    machine = OutputCode(base, code, decoder, random_state=0)
    weighted = machine.fit(X, y, sample_weight=counts).decision_function(X)
    copied = machine.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts)).decision_function(X)
    # The continuous code is solved to a gap of 1e-6, whose root the code may be off.
    assert weighted == pytest.approx(copied, abs=5e-3 if decoder == "continuous" else 1e-5)


class Scaled(ClassifierMixin, BaseEstimator):
    """Naive Bayes whose outputs come in another unit."""

    def __init__(self, unit=1.0):
        self.unit = unit

    def fit(self, X, y):
        self.machine_ = GaussianNB().fit(X, y)
        self.classes_ = self.machine_.classes_
        return self

    def decision_function(self, X):
        p = np.clip(self.machine_.predict_proba(X)[:, 1], 1e-9, 1 - 1e-9)
        return self.unit * (np.log(p) - np.log1p(-p))


@pytest.mark.parametrize(("decoder", "norm"), [("stacking", "2"), ("continuous", "2"), ("continuous", "1")])
def test_the_unit_of_the_outputs_does_not_matter(iris, decoder, norm):
    X, y = iris
    one, other = (
        OutputCode(Scaled(unit), "ava", decoder, norm=norm, random_state=0).fit(X, y).decision_function(X)
        for unit in (1.0, 1e6)
    )
    assert np.array_equal(one.argmax(axis=1), other.argmax(axis=1))
    assert one == pytest.approx(other, abs=2e-3)


@pytest.mark.parametrize("decoder", ["bradley-terry", "stacking"])
@pytest.mark.parametrize("code", ["ova", "ava"])
def test_copies_of_unequal_weight_are_one_point_of_the_sum_of_their_weights(iris, code, decoder):
    X, y = iris
    own = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    twice = np.concatenate([np.arange(len(y)), np.arange(0, len(y), 3)])
    parts = own[twice]
    parts[: len(y) : 3] *= 0.25
    parts[len(y) :] *= 0.75
    machines = [
        OutputCode(LSSVC(C=2.0, kernel=Gaussian(1.0)), code, decoder, random_state=0).fit(X[rows], y[rows], weights)
        for rows, weights in ((np.arange(len(y)), own), (twice, parts))
    ]
    learnt = [m.sigmoids_ if decoder == "bradley-terry" else m.combiner_ for m in machines]
    np.testing.assert_allclose(learnt[1], learnt[0], rtol=1e-6, atol=1e-8)


def test_a_continuous_code_that_would_take_for_ever_is_kept_as_it_is_and_says_so(monkeypatch):
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, size=60)
    Z = 1e6 * (random.normal(size=(60, 3)) + np.eye(3)[labels])
    monkeypatch.setattr(learnt_decoders, "MOST_VISITS", 50)
    with pytest.warns(NotConverged, match="relative duality gap"):
        M = learnt_decoders.continuous_code(Z, labels, 3)
    assert np.isfinite(M).all()
