import numpy as np
import pytest

from mercer.machine import pairwise


@pytest.fixture
def machines():
    """Four classes, six pair machines with random sparse coefficients on 25 points."""
    random = np.random.default_rng(0)
    codes = random.permutation(np.repeat(np.arange(4), [8, 5, 9, 3]))
    members, coefficients = [], []
    for i in range(4):
        for j in range(i + 1, 4):
            points = np.concatenate([np.flatnonzero(codes == i), np.flatnonzero(codes == j)])
            members.append(points)
            coefficients.append(random.normal(size=len(points)) * (random.random(len(points)) < 0.6))
    return codes, members, coefficients


def test_layout_evaluates_to_the_sums_of_every_machine(machines):
    codes, members, coefficients = machines
    K = np.random.default_rng(1).normal(size=(7, len(codes)))
    intercept = np.arange(6.0)
    expected = np.stack([K[:, m] @ c + b for m, c, b in zip(members, coefficients, intercept)], axis=1)
    support, counts, dual = pairwise.lay_out(codes, coefficients, 4)
    products = [K[:, support[block]] @ dual[:, block].T for block in pairwise.blocks_of(counts)]
    np.testing.assert_allclose(pairwise.gather(products, intercept), expected, atol=1e-13)


def test_layout_stores_each_support_vector_once_in_the_order_of_its_class(machines):
    codes, members, coefficients = machines
    support, counts, dual = pairwise.lay_out(codes, coefficients, 4)
    used = set(np.concatenate([m[c != 0] for m, c in zip(members, coefficients)]))
    assert set(support) == used
    assert len(support) == len(used) == dual.shape[1]
    np.testing.assert_array_equal(codes[support], np.repeat(np.arange(4), counts))
    assert all(np.all(np.diff(support[block]) > 0) for block in pairwise.blocks_of(counts))


def test_weight_vectors_are_those_of_the_machines(machines):
    codes, members, coefficients = machines
    X = np.random.default_rng(2).normal(size=(len(codes), 3))
    support, counts, dual = pairwise.lay_out(codes, coefficients, 4)
    expected = np.stack([c @ X[m] for m, c in zip(members, coefficients)])
    np.testing.assert_allclose(pairwise.primal_weights(dual, X[support], counts), expected, atol=1e-13)


def test_vote_counts_wins_and_gives_a_tie_to_the_first_class():
    random = np.random.default_rng(3)
    values = random.normal(size=(200, 10))
    i, j = pairwise.pairs_of(5)
    wins = np.zeros((200, 5), int)
    for row in range(200):
        for pair in range(10):
            wins[row, i[pair] if values[row, pair] > 0 else j[pair]] += 1
    np.testing.assert_array_equal(pairwise.vote(values, 5), wins.argmax(axis=1))
    assert pairwise.vote(np.array([[1.0, -1.0, 1.0]]), 3)[0] == 0
