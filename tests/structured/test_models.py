"""Every model keeps what the protocol promises: its inference is the maximum over all structures."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.errors import InvalidInput
from mercer.structured import Found, Multiclass, SparseVector, StructuredModel
from mercer.structured.looping import LoopedExamples


def points(n=20, d=4, k=3, seed=0):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d)) * (random.random((n, d)) < 0.7)
    return X, random.integers(0, k, n)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_classes_at_once_are_classes_one_by_one(rescaling, form):
    X, y = points()
    losses = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 1.0], [3.0, 1.0, 0.0]])
    model = Multiclass(losses=losses).prepared(form(X), y)
    fast = model.examples(*model.check(form(X), y), rescaling)
    slow = LoopedExamples(model, list(X), list(y), rescaling)
    random = np.random.default_rng(1)
    w, costs = random.standard_normal(model.size()), random.random(len(X))
    one, other = fast.planes(w, costs), slow.planes(w, costs)
    np.testing.assert_allclose(one.v, other.v, atol=1e-12)
    assert one.loss == pytest.approx(other.loss)
    np.testing.assert_allclose(one.bounds, other.bounds, atol=1e-12)
    for i in range(len(X)):
        dense = np.zeros(model.size())
        fast.plane(w, i).v.add_to(dense)
        slow.plane(w, i).v.add_to(dense, -1.0)
        np.testing.assert_allclose(dense, 0.0, atol=1e-12)
        brute = max(model.value(w, X[i], y[i], z, rescaling) for z in range(3))
        assert fast.plane(w, i).bound == pytest.approx(brute, abs=1e-12)


def test_labels_of_any_kind_come_back():
    X, y = points()
    names = np.array(["c", "a", "b"])[y]
    model = Multiclass(labels=["b", "c", "a"]).prepared(X, names)
    _, codes = model.check(X, names)
    assert [model.decoded(code) for code in codes] == list(names)
    with pytest.raises(InvalidInput, match="label 'z'"):
        model.check(X[:1], ["z"])


class Wrong(StructuredModel):
    """Two structures, 0 and 1, with features one wants."""

    name = "wrong"

    def __init__(self, features=None, loss=1.0, found=None):
        self.features, self.given, self.found = features, loss, found

    def size(self):
        return 2

    def joint_features(self, x, y):
        return np.eye(2)[y] if y == 0 or self.features is None else self.features

    def loss(self, y, other):
        return 0.0 if y == other else self.given

    def infer(self, w, x):
        return int(np.argmax(w))

    def loss_augmented(self, w, x, y, rescaling):
        return Found(1) if self.found is None else self.found


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (Wrong(features=np.zeros(3)), "vector of length 2"),
        (Wrong(features=np.array([np.nan, 0.0])), "finite vector"),
        (Wrong(features=SparseVector(np.array([7]), np.array([1.0]))), "vector of length 2"),
        (Wrong(loss=-1.0), "never negative"),
        (Wrong(loss=np.inf), "never negative"),
        (Wrong(), "does not maximise"),
        (Wrong(found=Found(0, -1.0)), "states a bound"),
    ],
)
def test_an_inference_that_cannot_be_right_is_a_clear_error(model, text):
    examples = LoopedExamples(model, [None], [0], "margin")
    with pytest.raises(InvalidInput, match=text):
        examples.plane(np.array([5.0, 0.0]), 0)


def test_a_rescaling_without_inference_and_a_loss_of_the_truth_are_refused():
    with pytest.raises(InvalidInput, match="no loss-augmented inference for rescaling='slack'"):
        LoopedExamples(Wrong(), [None], [0], "slack")
    with pytest.raises(InvalidInput, match="one for each"):
        Wrong().check([1, 2], [0])
