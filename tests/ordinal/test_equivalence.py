"""Learning whether two points belong to the same class."""

import numpy as np
import pytest
from problems import zoo

from mercer import Gaussian, Linear
from mercer.errors import InvalidInput
from mercer.ordinal.equivalence import learn_equivalence, sampled_pairs


def classes(n=60, k=3, seed=0):
    """Classes that differ in two of four features."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % k
    angle = 2.0 * np.pi * y / k
    X = np.column_stack((np.cos(angle), np.sin(angle), np.zeros(n), np.zeros(n)))
    return X + random.normal(0.0, [0.2, 0.2, 1.0, 1.0], (n, 4)), np.array(["a", "b", "c", "d", "e"])[y]


def test_the_optimum_is_that_of_a_general_solver_on_squared_products_of_differences():
    X, y = classes(16)
    found = learn_equivalence(X, y, Gaussian(1.5), C=0.7, tol=1e-7)
    K = zoo.gaussian(X, 1.5)
    rows, t = [], []
    for i in range(16):
        for j in range(i):
            row = np.zeros(16)
            row[i], row[j] = (1.0, -1.0) if (i + j) % 2 else (-1.0, 1.0)  # a pair has no orientation
            rows.append(row)
            t.append(1.0 if y[i] == y[j] else -1.0)
    A, t = np.array(rows), np.array(t)
    Q = np.outer(t, t) * (A @ K @ A.T) ** 2
    wanted = -zoo.table_optimum(Q, -np.ones(len(t)), t[None], np.zeros(1), np.full(len(t), 0.7))
    assert found.solution.stopped == "converged"
    assert found.solution.primal == pytest.approx(wanted, rel=1e-6)
    assert found.solution.dual <= wanted * (1 + 1e-8)


def test_the_function_is_symmetric_and_constant_where_both_points_are_one():
    X, y = classes()
    found = learn_equivalence(X, y, Gaussian(1.5))
    g = found.values(X, X)
    np.testing.assert_allclose(g, g.T, atol=1e-9)
    np.testing.assert_allclose(np.diag(g), found.bias, atol=1e-9)
    chosen = sampled_pairs(y)[0]
    f = found.solution.details["f0"] + found.bias
    np.testing.assert_allclose(g[chosen[:, 0], chosen[:, 1]], f, atol=1e-5 * np.abs(g).max())


def test_classes_are_told_apart_and_so_are_classes_never_seen():
    X, y = classes(200, 5)
    seen = np.isin(y, ["a", "b", "c"])
    found = learn_equivalence(X[seen], y[seen], Linear(), C=0.1)
    new, truth = classes(150, 3, seed=1)
    assert np.mean(learn_equivalence(*classes(200, 3), Linear(), C=0.1).predict(new) == truth) > 0.9
    g, same = found.values(X[~seen], X[~seen]), y[~seen][:, None] == y[~seen]
    apart = ~np.eye(len(g), dtype=bool)
    assert np.mean(g[same & apart][:, None] > g[~same]) > 0.9


def test_samples_hold_both_kinds():
    y = np.repeat([0, 1], [5, 95])
    pairs, t = sampled_pairs(y, 300)
    assert len(pairs) == 300
    assert (t == 1.0).sum() == 150
    np.testing.assert_array_equal(y[pairs[:, 0]] == y[pairs[:, 1]], t == 1.0)
    rare = sampled_pairs(np.arange(60) // 2, 300)[1]
    assert (rare == 1.0).sum() == 30
    assert len(rare) == 300
    assert len(sampled_pairs(y, 10_000)[0]) == 100 * 99 // 2
    for labels in (np.zeros(5), np.arange(5)):
        with pytest.raises(InvalidInput, match="give both"):
            sampled_pairs(labels)
    with pytest.raises(InvalidInput, match="X must be"):
        learn_equivalence(np.zeros(5), y[:5], Linear())
