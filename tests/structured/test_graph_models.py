"""Models on graphs: inference against all structures, features against scores, and what they refuse."""

from itertools import product

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.structured.graphs import Fractional
from mercer.structured.grids import GridModel
from mercer.structured.label_pairs import LabelPairs
from mercer.structured.trees import TreeModel


def tree_data(random):
    X = [
        (random.standard_normal((4, 2)), [(0, 1), (0, 2), (3, 2)], [0, 1, 0]),
        (random.standard_normal((1, 2)), [], []),
        (np.zeros((0, 2)), [], []),
        (random.standard_normal((3, 2)), [(2, 1)], [1]),
    ]
    return TreeModel(["a", "b", "c"], kinds=2), X, [list("abca"), ["b"], [], list("cab")]


def grid_data(random, inference="exact"):
    X = [random.standard_normal((2, 3, 2)), random.standard_normal((1, 1, 2)), random.standard_normal((1, 4, 2))]
    Y = [random.integers(2, size=x.shape[:2]) for x in X]
    return GridModel([0, 1], inference=inference), X, Y


def label_data(random, inference="exact"):
    return LabelPairs(inference), random.standard_normal((3, 2)), random.integers(2, size=(3, 4))


def drawn(kind, seed, inference="exact"):
    random = np.random.default_rng(seed)
    if kind == "tree":
        model, X, Y = tree_data(random)
    else:
        model, X, Y = (grid_data if kind == "grid" else label_data)(random, inference)
    model = model.prepared(X, Y)
    inputs, structures = model.check(X, Y)
    return model, inputs, structures, random.standard_normal(model.size())


def every(model, y):
    """All structures of the shape of y."""
    return [
        np.array(z, dtype=np.intp).reshape(y.shape)
        for z in product(range(2 if model.name != "tree" else 3), repeat=y.size)
    ]


@pytest.mark.parametrize("kind", ["tree", "grid", "labels"])
@pytest.mark.parametrize("seed", range(3))
def test_exact_inference_is_the_best_of_all_structures(kind, seed):
    model, X, Y, w = drawn(kind, seed)
    for x, y in zip(X, Y, strict=True):
        scores = [model.score_of(w, x, z) for z in every(model, y)]
        assert model.score_of(w, x, model.infer(w, x)) == pytest.approx(max(scores), abs=1e-12)
        values = [model.value(w, x, y, z, "margin") for z in every(model, y)]
        found = model.loss_augmented(w, x, y, "margin")
        assert found.bound is None
        assert model.value(w, x, y, found.structure, "margin") == pytest.approx(max(values), abs=1e-12)


@pytest.mark.parametrize("inference", ["messages", "relaxed"])
@pytest.mark.parametrize("kind", ["grid", "labels"])
@pytest.mark.parametrize("seed", range(8))
def test_bounds_of_relaxed_inference_are_never_below_the_maximum(kind, seed, inference):
    model, X, Y, w = drawn(kind, seed, inference)
    for x, y in zip(X, Y, strict=True):
        best = max(model.value(w, x, y, z, "margin") for z in every(model, y))
        found = model.loss_augmented(w, x, y, "margin")
        reached = model.value(w, x, y, found.structure, "margin")
        if found.bound is None:
            assert reached == pytest.approx(best, abs=1e-8)
        else:
            assert found.bound >= best - 1e-9
            assert found.bound >= reached - 1e-9


def test_fractional_structures_are_met_and_have_the_value_of_the_relaxation():
    met = 0
    for seed in range(8):
        model, X, Y, w = drawn("labels", seed, "relaxed")
        for x, y in zip(X, Y, strict=True):
            found = model.loss_augmented(3.0 * w, x, y, "margin")
            if isinstance(found.structure, Fractional):
                met += 1
                assert model.value(3.0 * w, x, y, found.structure, "margin") == pytest.approx(found.bound, abs=1e-7)
    assert met > 0


@pytest.mark.parametrize("kind", ["tree", "grid", "labels"])
def test_features_and_loss_are_linear_in_fractional_structures(kind):
    """Marginals that are whole have the features and the loss of the labels they stand for."""
    model, X, Y, _ = drawn(kind, 1)
    x, y = X[0], Y[0]
    k = 2 if kind != "tree" else 3
    for z in every(model, y)[:20]:
        flat = z.ravel()
        edges = np.stack(np.triu_indices(y.size, 1), axis=1) if kind == "labels" else x.edges
        nodes, pairs = np.eye(k)[flat], np.zeros((len(edges), k, k))
        pairs[np.arange(len(edges)), flat[edges[:, 0]], flat[edges[:, 1]]] = 1.0
        fractional = Fractional(nodes, pairs)
        np.testing.assert_allclose(model.joint_features(x, fractional), model.joint_features(x, z), atol=1e-12)
        assert model.loss(y, fractional) == pytest.approx(model.loss(y, z))


def test_a_tree_scores_its_nodes_and_edges():
    """Written out for one labelling; the second kind of edge has a table of its own."""
    model, X, _, w = drawn("tree", 4)
    W, A = model.weights(w)
    x, y = X[0], np.array([2, 0, 1, 1])
    by_hand = sum(x.points[t] @ W[:, y[t]] for t in range(4)) + A[0, 2, 0] + A[1, 2, 1] + A[0, 1, 1]
    assert model.score_of(w, x, y) == pytest.approx(by_hand)


def test_a_grid_has_edges_across_and_down():
    model, X, _, w = drawn("grid", 4)
    W, A = model.weights(w)
    y = np.array([[0, 1, 1], [1, 0, 1]])
    by_hand = np.einsum("tj,tj->", X[0].points @ W, np.eye(2)[y.ravel()])
    by_hand += sum(A[0, y[r, c], y[r, c + 1]] for r in range(2) for c in range(2))
    by_hand += sum(A[1, y[0, c], y[1, c]] for c in range(3))
    assert model.score_of(w, X[0], y) == pytest.approx(by_hand)
    assert model.infer(w, X[0]).shape == (2, 3)


@pytest.mark.parametrize("kind", ["tree", "grid", "labels"])
def test_ties_are_broken_the_same_way_every_time(kind):
    model, X, _, w = drawn(kind, 0)
    for x in X:
        np.testing.assert_array_equal(model.infer(0.0 * w, x), model.infer(0.0 * w, x))
        assert not model.infer(0.0 * w, x).any()


@pytest.mark.parametrize("kind", ["tree", "grid", "labels"])
def test_a_model_is_rebuilt_from_its_state(kind):
    model, X, Y, w = drawn(kind, 0)
    again = type(model).from_state(model.state())
    assert again.size() == model.size()
    for x, y in zip(X, Y, strict=True):
        np.testing.assert_array_equal(again.infer(w, x), model.infer(w, x))
        np.testing.assert_array_equal(again.decoded(y), model.decoded(y))


def test_trees_that_are_none_are_refused():
    model, X, Y = tree_data(np.random.default_rng(0))
    ready, points = model.prepared(X, Y), np.zeros((3, 2))
    for x, words in [
        ((points, [(0, 1), (1, 2), (2, 0)]), "input 0 of X: the edges close a cycle"),
        ((points, [(0, 3)]), "nodes 0 to 2"),
        ((points, [(0, 1)], [2]), "kinds must be"),
        (points, "given as"),
        ((np.zeros((3, 5)), []), "5 features"),
        ((np.full((3, 2), np.nan), []), "NaN"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            ready.check([x])
    with pytest.raises(InvalidInput, match="shape"):
        ready.check([(points, [])], [["a"]])
    with pytest.raises(InvalidInput, match="does not know"):
        ready.check([(points, [])], [["a", "b", "z"]])
    with pytest.raises(InvalidInput, match="give one for each"):
        ready.check([(points, [])], [])
    with pytest.raises(InvalidInput, match="two different labels"):
        TreeModel().prepared([(points, [])], [["a", "a", "a"]])


def test_grids_and_indicators_of_wrong_shape_are_refused():
    model, X, Y = grid_data(np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="rows, columns"):
        model.prepared([np.zeros((2, 2))], [np.array([[0, 1], [1, 0]])])
    with pytest.raises(InvalidInput, match="needs labels of shape"):
        model.prepared(X, Y).check(X[:1], [Y[0].T])
    with pytest.raises(InvalidInput, match="inference must be"):
        GridModel(inference="guess").prepared(X, Y)
    with pytest.raises(InvalidInput, match="zeros and ones"):
        LabelPairs("exact", 2, 2).check(np.zeros((2, 2)), [[0, 1], [2, 0]])
    with pytest.raises(InvalidInput, match="indicators"):
        LabelPairs().prepared(np.zeros((2, 2)), [0, 1])
