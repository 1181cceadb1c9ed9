"""Cutting planes and working sets over pairs: the optimum of a general solver on explicit pairs, and true bounds."""

import numpy as np
import pytest
from problems import zoo
from scipy.optimize import linprog

from mercer import Gaussian, Linear, Precomputed
from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.problems.normed_pairs import NormedPairs
from mercer.problems.rank_thresholds import RankThresholds
from mercer.problems.ranking import RankedPairs
from mercer.solvers.monitor import Monitor
from mercer.solvers.ordinal import newton, one_slack, pairs


def ranked(n=24, q=3, seed=0, noise=0.6):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 2))
    y = np.digitize(X[:, 0] + noise * random.standard_normal(n), np.linspace(-0.6, 0.6, q - 1))
    y[:q] = np.arange(q)
    return X, y


def matrix(X):
    return Gram(Gaussian(1.2), X, precision="float64")


def incidence(y, groups, keep=lambda higher, lower: True):
    """A (m, n): one row for each pair, +1 at the point of higher rank and -1 at the other."""
    rows = []
    for i in range(len(y)):
        for j in range(len(y)):
            if y[i] > y[j] and groups[i] == groups[j] and keep(y[i], y[j]):
                rows.append(np.zeros(len(y)))
                rows[-1][i], rows[-1][j] = 1.0, -1.0
    return np.array(rows)


def optimum(K, A, costs, loss):
    """The dual on explicit pairs, without an equality, by a conic solver."""
    Q, upper = A @ K @ A.T, np.array(costs)
    if loss == "squared_hinge":
        Q, upper = Q + np.diag(0.5 / upper), np.full(len(upper), np.inf)
    return -zoo.table_optimum(Q, -np.ones(len(A)), np.zeros((0, len(A))), np.zeros(0), upper)


@pytest.mark.parametrize("solver", [one_slack, pairs])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("queries", [1, 3])
def test_both_reach_the_optimum_of_explicit_pairs(solver, loss, queries):
    X, y = ranked()
    groups, w = np.arange(len(y)) % queries, np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    K, A = matrix(X), incidence(y, groups)
    costs = 0.3 * np.array([w[row == 1.0][0] * w[row == -1.0][0] for row in A])
    solution = solver.solve(RankedPairs(K, y, 0.3, w, loss, groups), tol=1e-7)
    wanted = optimum(np.asarray(K.dense()), A, costs, loss)
    assert solution.stopped == "converged"
    assert solution.primal == pytest.approx(wanted, rel=1e-6)
    assert solution.dual <= wanted * (1 + 1e-9)
    assert solution.primal >= wanted * (1 - 1e-9)
    f = np.asarray(K.dense()) @ solution.coefficients
    np.testing.assert_allclose(solution.details["f"], f, atol=1e-8)


def test_small_working_sets_reach_the_same_optimum():
    X, y = ranked(n=120, q=4)
    problem = RankedPairs(matrix(X), y, 0.02, None, "hinge")
    whole = pairs.solve(problem, tol=1e-7)
    parts = pairs.solve(problem, tol=1e-7, working_set=40)
    assert parts.stopped == "converged"
    assert parts.details["rounds"] > whole.details["rounds"]
    assert parts.primal == pytest.approx(whole.primal, rel=1e-6)


def test_values_in_float32_are_certified_in_float64():
    X, y = ranked(n=60)
    exact = pairs.solve(RankedPairs(matrix(X), y, 0.1, None, "hinge"), tol=1e-9)
    coarse = pairs.solve(RankedPairs(Gram(Gaussian(1.2), X, precision="float32"), y, 0.1, None, "hinge"), tol=1e-6)
    assert coarse.stopped == "converged"
    assert coarse.dual <= exact.primal * (1 + 1e-12)
    assert coarse.primal >= exact.dual * (1 - 1e-12)


def test_free_pairs_have_a_difference_of_one():
    X, y = ranked(n=40)
    solution = pairs.solve(RankedPairs(matrix(X), y, 0.2, None, "hinge"), tol=1e-10)
    f, free = solution.details["f"], solution.details["free_pairs"]
    assert len(free)
    assert (y[free[:, 0]] > y[free[:, 1]]).all()
    np.testing.assert_allclose(f[free[:, 0]] - f[free[:, 1]], 1.0, atol=1e-3)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_solutions_of_newton_are_starts(loss):
    X, y = ranked(n=60)
    problem = RankedPairs(matrix(X), y, 0.1, None, loss)
    known = newton.solve(problem, tol=1e-8)
    assert pairs.solve(problem, tol=1e-6, start=known).iterations < 0.2 * pairs.solve(problem, tol=1e-6).iterations
    assert one_slack.solve(problem, tol=1e-3, start=known).primal <= known.primal * (1 + 1e-12)


def test_the_constraint_of_the_source_is_that_of_both_orientations():
    """Without a bias at C equals every pair in both orientations at C / 2 with the equality of the source."""
    X, y = ranked(n=14)
    K, A = np.asarray(matrix(X).dense()), incidence(y, np.zeros(14))
    free = optimum(K, A, np.full(len(A), 0.4), "hinge")
    both, t = np.vstack((A, A)), np.repeat([1.0, -1.0], len(A))
    upper = np.full(len(both), 0.2)
    tied = -zoo.table_optimum(both @ K @ both.T, -np.ones(len(both)), t[None], np.zeros(1), upper)
    assert tied == pytest.approx(free, rel=1e-7)


def test_a_constant_in_the_kernel_changes_no_difference():
    X, y = ranked(n=30)
    K = np.asarray(matrix(X).dense())
    one, other = (newton.solve(RankedPairs(Gram(Precomputed(), M), y, 0.3), tol=1e-12) for M in (K, K + 7.0))
    f, g = one.details["f"], other.details["f"]
    np.testing.assert_allclose(np.subtract.outer(g, g), np.subtract.outer(f, f), atol=1e-6)


def test_a_hard_margin_is_that_of_neighbouring_ranks_alone():
    X = np.random.default_rng(3).standard_normal((24, 2))
    X = X[np.abs(np.abs(X[:, 0]) - 0.5) > 0.15]
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    K = Gram(Linear(), X, precision="float64")
    A = incidence(y, np.zeros(len(y)), keep=lambda higher, lower: higher == lower + 1)
    wanted = optimum(np.asarray(K.dense()), A, np.full(len(A), 1e4), "hinge")
    found = newton.solve(RankedPairs(K, y, 1e4, None, "hinge"), tol=1e-8)
    assert found.primal == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("queries", [1, 2])
def test_a_norm_of_the_coefficients_is_a_linear_program(norm, queries):
    X, y = ranked(n=20)
    gram, groups = matrix(X), np.arange(20) % queries
    K, A, n = np.asarray(gram.dense()), incidence(y, groups), 20
    rows = np.hstack((-A @ K, A @ K, np.zeros((len(A), 1)), -np.eye(len(A))))
    cost = np.concatenate((np.full(2 * n, float(norm == "l1")), [float(norm == "linf")], np.full(len(A), 0.3)))
    if norm == "linf":
        limit = np.hstack((np.eye(n), np.eye(n), -np.ones((n, 1)), np.zeros((n, len(A)))))
        rows = np.vstack((rows, limit))
    right = np.concatenate((-np.ones(len(A)), np.zeros(len(rows) - len(A))))
    wanted = linprog(cost, rows, right).fun
    solution = one_slack.solve(NormedPairs(gram, y, 0.3, None, norm, groups), tol=1e-6)
    assert solution.stopped == "converged"
    assert solution.primal == pytest.approx(wanted, rel=2e-6)
    assert solution.dual <= wanted * (1 + 1e-9)
    assert solution.primal >= wanted * (1 - 1e-9)


def test_limits_end_a_search_with_bounds_that_hold():
    X, y = ranked(n=60)
    problem = RankedPairs(matrix(X), y, 1.0, None, "hinge")
    wanted = newton.solve(problem, tol=1e-9)
    for solver in (one_slack, pairs):
        short = solver.solve(problem, tol=1e-6, max_iter=3)
        assert short.stopped == "iterations"
        assert short.dual <= wanted.primal <= wanted.dual * (1 + 1e-6) <= short.primal * (1 + 1e-6)
        assert solver.solve(problem, tol=1e-12, monitor=Monitor(time_limit=1e-9)).stopped == "time"


def test_what_cannot_be_solved_is_refused(monkeypatch):
    X, y = ranked()
    for solver in (one_slack, pairs):
        with pytest.raises(InvalidInput, match="not an order from pairs"):
            solver.solve(RankThresholds(matrix(X), y))
        with pytest.raises(InvalidInput, match="tol must be positive"):
            solver.solve(RankedPairs(matrix(X), y), tol=0.0)
        with pytest.raises(InvalidInput, match="finite coefficients"):
            solver.solve(RankedPairs(matrix(X), y), start=np.zeros(3))
    with pytest.raises(InvalidInput, match="not a problem of one latent function"):
        newton.solve(NormedPairs(matrix(X), y))
    with pytest.raises(InvalidInput, match="norm must be"):
        NormedPairs(matrix(X), y, norm="l3")
    monkeypatch.setattr(pairs, "available", lambda: 1000)
    with pytest.raises(InvalidInput, match="solver='newton'"):
        pairs.solve(RankedPairs(matrix(X), y))
