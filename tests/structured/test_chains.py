"""Chains: the dynamic programmes are the maximum over all labellings, and all sequences at once are each alone."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.errors import InvalidInput
from mercer.structured import Chain
from mercer.structured.looping import LoopedExamples

LENGTHS = (3, 1, 0, 4, 2)


def sequences(k=3, d=2, seed=0, lengths=LENGTHS):
    random = np.random.default_rng(seed)
    X = [random.standard_normal((T, d)) * (random.random((T, d)) < 0.8) for T in lengths]
    return X, [random.integers(0, k, T) for T in lengths]


def labellings(k, T):
    return [np.array(y, dtype=np.intp) for y in product(range(k), repeat=T)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("loss", ["hamming", "zero-one"])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_inference_is_the_maximum_over_all_labellings(seed, loss, rescaling):
    X, Y = sequences(seed=seed)
    model = Chain([0, 1, 2], loss=loss).prepared(X, Y)
    w = np.random.default_rng(seed).standard_normal(model.size())
    for x, y in zip(*model.check(X, Y)):
        every = labellings(3, len(y))
        best = max(model.score_of(w, x, z) for z in every)
        assert model.score_of(w, x, model.infer(w, x)) == pytest.approx(best, abs=1e-12)
        highest = max(model.value(w, x, y, z, rescaling) for z in every)
        found = model.loss_augmented(w, x, y, rescaling).structure
        assert model.value(w, x, y, found, rescaling) == pytest.approx(highest, abs=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize(("loss", "rescaling"), [("hamming", "margin"), ("hamming", "slack"), ("zero-one", "margin")])
def test_all_sequences_at_once_are_each_alone(form, loss, rescaling):
    X, Y = sequences()
    model = Chain([0, 1, 2], loss=loss).prepared(X, Y)
    fast = model.examples(*model.check([form(x) for x in X], Y), rescaling)
    slow = LoopedExamples(model, *model.check(X, Y), rescaling)
    random = np.random.default_rng(5)
    w, costs = random.standard_normal(model.size()), random.random(len(X))
    one, other = fast.planes(w, costs), slow.planes(w, costs)
    np.testing.assert_allclose(one.v, other.v, atol=1e-12)
    np.testing.assert_allclose(one.bounds, other.bounds, atol=1e-12)
    assert one.loss == pytest.approx(other.loss)
    for i in range(len(X)):
        for augmented in (True, False):
            a, b = fast.plane(w, i, augmented=augmented), slow.plane(w, i, augmented=augmented)
            dense = np.zeros(model.size())
            a.v.add_to(dense)
            b.v.add_to(dense, -1.0)
            np.testing.assert_allclose(dense, 0.0, atol=1e-12)
            assert (a.loss, a.bound) == pytest.approx((b.loss, b.bound), abs=1e-12)


def test_ties_go_to_the_first_labels_and_cost_nothing():
    X, Y = [np.ones((3, 2))], [np.array([2, 2, 2])]
    model = Chain([0, 1, 2]).prepared(X, Y)
    inputs, labels = model.check(X, Y)
    np.testing.assert_array_equal(model.infer(np.zeros(model.size()), inputs[0]), [0, 0, 0])
    assert model.examples(inputs, labels, "margin").planes(np.zeros(model.size()), np.ones(1)).bounds == [3.0]


def test_empty_sequences_have_an_empty_answer():
    X, Y = sequences()
    model = Chain().prepared(X, Y)
    inputs, _ = model.check([np.empty((0, 2)), [], X[0]])
    found = model.predict(np.ones(model.size()), inputs)
    assert [len(y) for y in found] == [0, 0, 3]
    with pytest.raises(InvalidInput, match="nothing to learn from"):
        Chain().prepared([[], []], [[], []])


def test_texts_as_labels_come_back():
    X, _ = sequences(lengths=(2, 1))
    model = Chain().prepared(X, [["B", "I"], ["O"]])
    _, codes = model.check(X, [["B", "I"], ["O"]])
    assert [list(model.decoded(y)) for y in codes] == [["B", "I"], ["O"]]


@pytest.mark.parametrize(
    ("X", "Y", "text"),
    [
        ([np.ones((2, 2))], [[0, 1], [0]], "1 sequences and Y 2"),
        ([np.ones((2, 2))], [[0]], r"Y\[0\] has shape \(1,\) for a sequence of 2"),
        ([np.ones((2, 2)), np.ones((1, 2))], [[0, 1], [7]], r"Y\[1\] has the label 7"),
        ([np.ones((1, 3))], [[0]], "sequence 0 of X has 3 features"),
        ([np.full((1, 2), np.nan)], [[0]], "sequence 0 of X.*NaN"),
    ],
)
def test_sequences_that_do_not_fit_are_clear_errors(X, Y, text):
    model = Chain([0, 1], features=2)
    with pytest.raises(InvalidInput, match=text):
        model.check(X, Y)


def test_a_model_needs_two_labels_and_a_loss_it_knows():
    with pytest.raises(InvalidInput, match="two different labels"):
        Chain().prepared([np.ones((2, 2))], [[1, 1]])
    with pytest.raises(InvalidInput, match="hamming, zero-one"):
        Chain(loss="edit").prepared([np.ones((2, 2))], [[1, 0]])
