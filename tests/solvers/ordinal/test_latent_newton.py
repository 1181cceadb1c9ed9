"""Problems of one latent function: sweeps against all pairs, optima against a general solver on explicit pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import zoo

from mercer import Gaussian
from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.problems.cumulative import Cumulative, bend, log_density, log_share
from mercer.problems.rank_thresholds import RankThresholds
from mercer.problems.ranking import RankedPairs
from mercer.solvers.ordinal import newton


def ranked(n=24, q=3, seed=0, noise=0.6):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 2))
    y = np.digitize(X[:, 0] + noise * random.standard_normal(n), np.linspace(-0.6, 0.6, q - 1))
    y[:q] = np.arange(q)
    return X, y


def matrix(X):
    return Gram(Gaussian(1.2), X)


def pairs_of(y, groups):
    """All (i, j) with y_i > y_j in one group."""
    return [(i, j) for i in range(len(y)) for j in range(len(y)) if y[i] > y[j] and groups[i] == groups[j]]


def hinge_of_pairs(f, y, groups, w, loss, width):
    """Value, slope and second derivative by all pairs."""
    n = len(y)
    value, slope, H = 0.0, np.zeros(n), np.zeros((n, n))
    for i, j in pairs_of(y, groups):
        z, weight, e = 1.0 - f[i] + f[j], w[i] * w[j], np.zeros(n)
        e[i], e[j] = -1.0, 1.0
        if loss == "squared_hinge":
            parts = (z * z, 2 * z, 2.0) if z > 0 else (0.0, 0.0, 0.0)
        elif z > width:
            parts = (z - width / 2, 1.0, 0.0)
        else:
            parts = (z * z / (2 * width), z / width, 1.0 / width) if z > 0 else (0.0, 0.0, 0.0)
        value += weight * parts[0]
        slope += weight * parts[1] * e
        H += weight * parts[2] * np.outer(e, e)
    return value, slope, H


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["hinge", "squared_hinge"]), st.integers(2, 30), st.booleans())
def test_sweeps_equal_all_pairs_to_1e_10(seed, loss, n, rounded):
    random = np.random.default_rng(seed)
    y, groups = random.integers(0, 5, n), random.integers(0, 3, n)
    y[:2], groups[:2] = (0, 1), 0
    groups = np.unique(groups, return_inverse=True)[1]
    f, w, v = 2.0 * random.standard_normal(n), random.uniform(0.1, 2.0, n), random.standard_normal(n)
    f = np.round(f, 1) if rounded else f  # differences of exactly one
    problem = RankedPairs(Gram(Gaussian(1.0), np.zeros((n, 1))), y, 0.7, w, loss, groups)
    value, slope, H = hinge_of_pairs(f, y, groups, w, loss, 0.25)
    point = problem.at(f, 0.25)
    scale = 1.0 + abs(value)
    assert point.smooth == pytest.approx(0.7 * value, abs=1e-10 * scale)
    assert problem.value(f, 0.25) == point.smooth
    np.testing.assert_allclose(point.slope, 0.7 * slope, atol=1e-10 * scale)
    if not rounded:  # at a corner the second derivative is that of one side
        np.testing.assert_allclose(point.curvature(v), 0.7 * H @ v, atol=1e-10 * scale)
    assert abs(point.slope.sum()) <= 1e-10 * scale


def optimum_of_pairs(K, y, C, loss, groups):
    """The dual on explicit pairs, without an equality, by a conic solver."""
    found = pairs_of(y, groups)
    A = np.zeros((len(found), len(y)))
    for row, (i, j) in enumerate(found):
        A[row, i], A[row, j] = 1.0, -1.0
    Q = A @ K @ A.T
    upper = np.full(len(found), C)
    if loss == "squared_hinge":
        Q += np.eye(len(found)) / (2.0 * C)
        upper[:] = np.inf
    return -zoo.table_optimum(Q, -np.ones(len(found)), np.zeros((0, len(found))), np.zeros(0), upper)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [0.05, 2.0])
@pytest.mark.parametrize("queries", [1, 3])
def test_the_optimum_is_that_of_a_general_solver_on_explicit_pairs(loss, C, queries):
    X, y = ranked()
    groups = np.arange(len(y)) % queries
    K = matrix(X)
    solution = newton.solve(RankedPairs(K, y, C, None, loss, groups), tol=1e-8)
    assert solution.stopped == "converged"
    wanted = optimum_of_pairs(np.asarray(K.dense()), y, C, loss, groups)
    assert solution.primal == pytest.approx(wanted, rel=1e-6)
    assert solution.dual <= wanted * (1 + 1e-7)
    assert solution.primal >= wanted * (1 - 1e-7)
    assert abs(solution.coefficients.sum()) <= 1e-7 * np.abs(solution.coefficients).sum()


def test_the_order_in_which_points_are_given_changes_nothing():
    """A pair has no orientation of its own: points in any order, and ranks counted in any way, give one function."""
    X, y = ranked()
    mixed = np.random.default_rng(4).permutation(len(y))
    one = newton.solve(RankedPairs(matrix(X), y, 0.3), tol=1e-12)
    other = newton.solve(RankedPairs(matrix(X[mixed]), 10 * y[mixed] + 3, 0.3), tol=1e-12)
    np.testing.assert_allclose(other.coefficients, one.coefficients[mixed], atol=1e-6)
    turned = newton.solve(RankedPairs(matrix(X), y.max() - y, 0.3), tol=1e-12)
    np.testing.assert_allclose(turned.coefficients, -one.coefficients, atol=1e-6)


def optimum_of_thresholds(K, y, C, kind):
    """Support vector ordinal regression as a quadratic program in (L'c, b, slacks), K = L L', by cvxopt."""
    from cvxopt import matrix as dense
    from cvxopt import solvers as cvxopt_solvers

    n, q = len(y), int(y.max()) + 1
    terms = [(i, j) for j in range(q - 1) for i in range(n) if kind == "implicit" or y[i] in (j, j + 1)]
    size = n + q - 1 + len(terms)
    P, c = np.zeros((size, size)), np.zeros(size)
    P[:n, :n] = np.eye(n)
    L = np.linalg.cholesky(K + 1e-12 * np.eye(n))
    c[n + q - 1 :] = C
    rows, bounds = [], []
    for t, (i, j) in enumerate(terms):
        s = 1.0 if y[i] > j else -1.0
        row = np.zeros(size)
        row[:n], row[n + j], row[n + q - 1 + t] = -s * L[i], s, -1.0
        rows.append(row)
        bounds.append(-1.0)
        row = np.zeros(size)
        row[n + q - 1 + t] = -1.0
        rows.append(row)
        bounds.append(0.0)
    for j in range(q - 2):
        row = np.zeros(size)
        row[n + j], row[n + j + 1] = 1.0, -1.0
        if kind == "explicit":
            rows.append(row)
            bounds.append(0.0)
    options = {"show_progress": False, "abstol": 1e-10, "reltol": 1e-10, "feastol": 1e-10}
    found = cvxopt_solvers.qp(dense(P), dense(c), dense(np.array(rows)), dense(np.array(bounds)), options=options)
    return found["primal objective"]


@pytest.mark.parametrize("kind", ["implicit", "explicit"])
@pytest.mark.parametrize("noise", [0.5, 50.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_thresholds_are_those_of_a_general_solver_and_in_order(kind, noise, seed):
    X, y = ranked(q=4, noise=noise, seed=seed)
    K = matrix(X)
    solution = newton.solve(RankThresholds(K, y, 0.5, thresholds=kind), tol=1e-8)
    assert solution.stopped == "converged"
    assert solution.primal == pytest.approx(optimum_of_thresholds(np.asarray(K.dense()), y, 0.5, kind), rel=1e-6)
    assert (np.diff(solution.multipliers["thresholds"]) >= 0.0).all()


def test_two_ranks_are_the_binary_machine():
    from mercer import SVC

    X, y = ranked(q=2)
    solution = newton.solve(RankThresholds(matrix(X), y, 1.5), tol=1e-9)
    binary = SVC(C=1.5, kernel=Gaussian(1.2), tol=1e-9).fit(X, y)
    assert solution.primal == pytest.approx(binary.objective_, rel=1e-6)
    np.testing.assert_allclose(
        solution.details["f"] - solution.multipliers["thresholds"][0], binary.decision_function(X), atol=1e-3
    )


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
def test_links_are_distributions_and_stable_in_their_tails(link):
    from scipy.integrate import quad
    from scipy.special import expit, ndtr

    F = {"logit": expit, "probit": ndtr, "cloglog": lambda t: -np.expm1(-np.exp(t))}[link]
    a, b = np.array([-3.0, -1.0, 0.2]), np.array([-2.0, 0.5, 1.0])
    np.testing.assert_allclose(np.exp(log_share(link, a, b)), F(b) - F(a), rtol=1e-12)
    area = quad(lambda t: float(np.exp(log_density(link, np.array([t])))[0]), -40, 40)[0]
    assert area == pytest.approx(1.0, abs=1e-7)
    t = np.array([-1.5, 0.1, 1.2])
    numeric = (np.exp(log_density(link, t + 1e-5)) - np.exp(log_density(link, t - 1e-5))) / 2e-5
    np.testing.assert_allclose(bend(link, t), numeric / np.exp(log_density(link, t)), rtol=1e-6)
    far = log_share(link, np.array([30.0, -40.0]), np.array([31.0, -39.0]))
    assert np.isfinite(far[1])
    assert far[1] < -38.0
    assert np.isfinite(far[0]) or link == "cloglog"


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
def test_the_cumulative_optimum_is_that_of_a_general_minimiser(link):
    from scipy.optimize import minimize

    X, y = ranked(n=40)
    gram = Gram(Gaussian(1.2), X)
    solution = newton.solve(Cumulative(gram, y, 0.8, link=link), tol=1e-10)
    L = np.linalg.cholesky(np.asarray(gram.dense()) + 1e-12 * np.eye(40))

    def objective(v):
        theta = np.array([v[40], v[40] + np.exp(v[41])])
        edges = np.concatenate(([-np.inf], theta, [np.inf]))
        f = L @ v[:40]
        return 0.5 * v[:40] @ v[:40] - 0.8 * log_share(link, edges[y] - f, edges[y + 1] - f).sum()

    found = minimize(objective, np.zeros(42), method="BFGS", options={"gtol": 1e-6, "maxiter": 2000})
    assert solution.primal == pytest.approx(found.fun, rel=1e-6)
    assert solution.dual <= found.fun * (1 + 1e-9)
    assert (np.diff(solution.multipliers["thresholds"]) > 0.0).all()


@pytest.mark.parametrize("kind", ["logit", "probit", "cloglog", "implicit", "explicit"])
def test_slopes_and_curvatures_are_those_of_differences(kind):
    """Of the least over the thresholds, which are found again at every f."""
    X, y = ranked(n=30)
    random = np.random.default_rng(5)
    f, v = random.standard_normal(30), random.standard_normal(30)
    if kind in ("implicit", "explicit"):
        problem = RankThresholds(matrix(X), y, 0.7, None, "squared_hinge", kind)
    else:
        problem = Cumulative(matrix(X), y, 0.7, link=kind)
    point, step = problem.at(f, 1.0), 1e-5
    numeric = (problem.value(f + step * v, 1.0) - problem.value(f - step * v, 1.0)) / (2 * step)
    assert point.slope @ v == pytest.approx(numeric, rel=1e-6)
    numeric = (problem.at(f + step * v, 1.0).slope - problem.at(f - step * v, 1.0).slope) / (2 * step)
    np.testing.assert_allclose(point.curvature(v), numeric, atol=1e-5)


def test_one_rank_and_ranks_with_holes_are_refused():
    K = matrix(np.zeros((3, 1)))
    with pytest.raises(InvalidInput, match="nothing to order"):
        RankedPairs(K, [1, 1, 1])
    with pytest.raises(InvalidInput, match="nothing to order"):
        RankedPairs(K, [0, 1, 2], queries=[0, 1, 2])
    for kind in (RankThresholds, Cumulative):
        with pytest.raises(InvalidInput, match="without holes"):
            kind(K, [0, 2, 2])
