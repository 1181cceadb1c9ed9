"""Inference on graphs: exact on forests, and never below the best labelling elsewhere."""

from itertools import product

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.problems.forests import forest
from mercer.problems.networks import Network, network
from mercer.solvers.structured.inference import infer

RING = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]


def drawn(seed, T, k, edges, strength=1.0):
    random = np.random.default_rng(seed)
    edges = np.array(edges, dtype=np.intp).reshape(-1, 2)
    pairwise = strength * random.standard_normal((max(1, len(edges)), k, k))
    return network(random.standard_normal((T, k)), pairwise, edges, np.arange(len(edges)))


def random_tree(random, T):
    edges = [(t, int(random.integers(t))) if random.integers(2) else (int(random.integers(t)), t) for t in range(1, T)]
    names = random.permutation(T)
    return names[np.array(edges, dtype=np.intp).reshape(-1, 2)]


def brute_force(given):
    """The largest score of all labellings, added up one term after another."""
    k = given.unary.shape[1]
    return max(
        sum(given.unary[t, y[t]] for t in range(given.nodes))
        + sum(given.pairwise[p, y[a], y[b]] for (a, b), p in zip(given.edges.tolist(), given.tables, strict=True))
        for y in product(range(k), repeat=given.nodes)
    )


@pytest.mark.parametrize("seed", range(12))
def test_trees_are_solved_exactly(seed):
    random = np.random.default_rng(seed)
    T = int(random.integers(1, 8))
    edges = random_tree(random, T)
    if seed % 3 == 0:
        edges = edges[::2]  # a forest
    given = drawn(seed, T, 3, edges)
    found = infer(given)
    assert found.exact
    assert found.value == found.bound == pytest.approx(brute_force(given), abs=1e-12)
    assert given.score(found.labels) == pytest.approx(found.value, abs=1e-12)


def test_a_graph_without_nodes_has_the_empty_labelling():
    found = infer(drawn(0, 0, 3, []))
    assert found.labels.shape == (0,)
    assert found.value == found.bound == 0.0


def test_of_equally_good_labels_the_smallest_is_taken():
    flat = network(np.zeros((4, 3)), np.zeros((1, 3, 3)), np.array([(0, 1), (1, 2), (1, 3)]))
    assert infer(flat).labels.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("method", ["exact", "relaxed", "messages"])
@pytest.mark.parametrize("seed", range(6))
def test_bounds_hold_and_labels_have_the_score_stated_on_cyclic_graphs(method, seed):
    given = drawn(seed, 5, 3, [*RING, (1, 4), (4, 3)], strength=2.0)
    best, found = brute_force(given), infer(given, method)
    assert given.score(found.labels) == pytest.approx(found.value, abs=1e-12)
    assert found.value <= best + 1e-9
    assert found.bound >= best - 1e-9
    if found.exact:
        assert found.value == pytest.approx(best, abs=1e-8)
    assert found.exact or method != "exact"


@pytest.mark.parametrize("seed", range(4))
def test_the_integer_programme_equals_enumeration(seed):
    edges = [(r * 4 + c, r * 4 + c + 1) for r in range(2) for c in range(3)] + [(c, 4 + c) for c in range(4)]
    given = drawn(seed, 8, 3, edges, strength=2.0)  # 6,561 labellings: beyond those looked at one by one
    found = infer(given, "exact")
    assert found.exact
    assert found.value == pytest.approx(brute_force(given), abs=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_messages_and_the_linear_programme_bound_a_grid_alike(seed):
    """Fixed points of message passing need not be optimal, but the relaxation is never above them."""
    rows, columns, random = 5, 6, np.random.default_rng(seed)
    node = np.arange(rows * columns).reshape(rows, columns)
    across = np.stack((node[:, :-1].ravel(), node[:, 1:].ravel()), axis=1)
    down = np.stack((node[:-1].ravel(), node[1:].ravel()), axis=1)
    attractive = np.stack([0.8 * np.eye(3), 0.5 * np.eye(3)])
    tables = np.repeat([0, 1], [len(across), len(down)])
    given = network(random.standard_normal((node.size, 3)), attractive, np.concatenate((across, down)), tables)
    linear, messages = infer(given, "relaxed"), infer(given, "messages")
    assert messages.bound >= linear.bound - 1e-7
    assert messages.bound - linear.bound <= 0.02 * linear.bound
    assert messages.value <= linear.bound + 1e-9


def test_a_frustrated_triangle_has_fractional_marginals_and_says_so():
    """Three nodes that all want to differ: the relaxation takes halves and a score no labelling has."""
    differ = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    given = network(np.zeros((3, 2)), differ, np.array([(0, 1), (1, 2), (2, 0)]))
    relaxed = infer(given, "relaxed")
    assert relaxed.fractional
    assert not relaxed.exact
    assert relaxed.bound == pytest.approx(3.0)
    assert brute_force(given) == 2.0
    np.testing.assert_allclose(relaxed.node_marginals, 0.5, atol=1e-7)
    assert infer(given, "messages").bound >= 2.0


def test_whole_relaxed_binary_labels_belong_to_a_best_labelling():
    """Roof duality: of two labels, one that is not fractional is right."""
    seen = 0
    for seed in range(20):
        edges = [(a, b) for b in range(6) for a in range(b)]
        given = drawn(seed, 6, 2, edges, strength=0.7)
        relaxed = infer(given, "relaxed")
        scores = {y: given.score(np.array(y)) for y in product(range(2), repeat=6)}
        best = max(scores.values())
        whole = np.abs(relaxed.node_marginals - np.round(relaxed.node_marginals)).max(axis=1) < 1e-6
        seen += int(relaxed.fractional and whole.any())
        assert any(
            score > best - 1e-9 and (np.array(y)[whole] == relaxed.labels[whole]).all() for y, score in scores.items()
        )
    assert seen > 0


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ([(0, 1), (1, 2), (2, 0)], "close a cycle"),
        ([(0, 1), (1, 0)], "close a cycle"),
        ([(1, 1)], "with itself"),
        ([(0, 3)], "nodes 0 to 2"),
        ([(0.5, 1)], "whole numbers"),
        ([0, 1], "shape"),
    ],
)
def test_what_is_not_a_forest_is_refused(edges, words):
    with pytest.raises(InvalidInput, match=words):
        forest(3, edges)


def test_wrong_scores_and_methods_are_refused_by_name():
    with pytest.raises(InvalidInput, match="pairwise"):
        network(np.zeros((3, 2)), np.zeros((1, 3, 3)), np.array([(0, 1)]))
    with pytest.raises(InvalidInput, match="tables"):
        network(np.zeros((3, 2)), np.zeros((2, 2, 2)), np.array([(0, 1)]), np.array([2]))
    given = Network(np.zeros((1, 2)), np.zeros((1, 2, 2)), np.zeros((0, 2), dtype=np.intp), np.zeros(0, dtype=np.intp))
    with pytest.raises(InvalidInput, match="inference must be one of"):
        infer(given, "guess")
