"""Models through a kernel: the feature map is exact with all points, and nothing else of the model changes."""

import numpy as np
import pytest

from mercer import Gaussian, Nystrom, RandomFourier
from mercer.errors import InvalidInput
from mercer.structured.graphs import GraphModel
from mercer.structured.grids import GridModel
from mercer.structured.label_pairs import LabelPairs
from mercer.structured.trees import TreeModel
from mercer.structured.with_kernel import WithKernel

KERNEL = Gaussian(sigma=1.5)


def trees(seed=0):
    random = np.random.default_rng(seed)
    X = [(random.standard_normal((T, 2)), [(t - 1, t) for t in range(1, T)]) for T in (3, 1, 0, 4)]
    return X, [np.arange(len(x[0])) % 2 for x in X]


def test_with_all_points_the_features_have_the_kernel_as_their_products():
    X, Y = trees()
    model = WithKernel(TreeModel(), KERNEL).prepared(X, Y)
    inputs, _ = model.check(X)
    features, points = (
        np.concatenate([x.points for x in graphs if len(x.points)])
        for graphs in (inputs, TreeModel([0, 1], features=2).check(X)[0])
    )
    np.testing.assert_allclose(features @ features.T, KERNEL(points, points), atol=1e-10)


def test_scores_are_expansions_on_the_landmarks():
    X, Y = trees()
    model = WithKernel(TreeModel(), KERNEL, Nystrom(4)).prepared(X, Y)
    w = np.random.default_rng(1).standard_normal(model.size())
    new = [(np.random.default_rng(2).standard_normal((1, 2)), [])]
    graph = model.check(new)[0][0]
    W, _ = model.model.weights(w)
    expansion = model.feature_map.expansion(W)
    expected = np.asarray(KERNEL(new[0][0], expansion.points)) @ expansion.coefficients
    scores = [model.score_of(w, graph, np.array([j])) for j in range(2)]
    np.testing.assert_allclose(scores, expected[0], atol=1e-10)


@pytest.mark.parametrize("inside", [TreeModel(), GridModel(), LabelPairs()])
def test_the_model_inside_says_all_else(inside):
    random = np.random.default_rng(0)
    if isinstance(inside, TreeModel):
        X, Y = trees()
    elif isinstance(inside, GridModel):
        X = [random.standard_normal((2, 2, 3)) for _ in range(3)]
        Y = [random.integers(2, size=(2, 2)) for _ in X]
    else:
        X, Y = random.standard_normal((5, 3)), random.integers(2, size=(5, 3))
    model = WithKernel(inside, KERNEL, Nystrom(3)).prepared(X, Y)
    inputs, structures = model.check(X, Y)
    w = random.standard_normal(model.size())
    assert model.size() == model.model.size()
    for x, y in zip(inputs, structures, strict=True):
        assert model.infer(w, x).shape == y.shape
        assert model.largest_loss(y) == y.size
        assert model.loss_augmented(w, x, y, "margin").structure is not None
    again = WithKernel.from_state(model.state())
    others, _ = again.check(X)
    for x, other in zip(inputs, others, strict=True):
        np.testing.assert_array_equal(model.infer(w, x), again.infer(w, other))


def test_what_cannot_be_is_refused():
    X, Y = trees()
    with pytest.raises(InvalidInput, match="kernel must be"):
        WithKernel(TreeModel(), "gaussian").prepared(X, Y)
    model = WithKernel(TreeModel(), KERNEL, Nystrom(4)).prepared(X, Y)
    with pytest.raises(InvalidInput, match="made for 2"):
        model.check([(np.zeros((2, 3)), [])])
    with pytest.raises(InvalidInput, match="same number of features"):
        model.prepared([(np.zeros((0, 2)), [])], [[]])
    fourier = WithKernel(TreeModel(), KERNEL, RandomFourier(4)).prepared(X, Y)
    assert isinstance(fourier.model, GraphModel)
    with pytest.raises(InvalidInput, match="cannot be stored"):
        fourier.state()
