"""The warm path of C: each of its points is the solution of the problem on its own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC, SVR

from mercer.gram import StoredStretches
from mercer.losses import Hinge
from mercer.problems.statement import Costs, stated
from mercer.solvers.monitor import Asking
from mercer.solvers.quadratic.cost_path import cost_path, next_cost
from mercer.solvers.working_sets import WHOLE

TOL = 1e-6


def points(n: int = 240, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    return X, np.where(X[:, 0] + 0.7 * random.normal(size=n) > 0, 1.0, -1.0)


def kernel(X: np.ndarray, gamma: float) -> np.ndarray:
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(-1)).astype(np.float32)


def walk(K, held, linear, lower, upper, costs, tol=TOL):
    layers, n = linear.shape
    state, F = np.zeros((layers, n)), np.zeros(n)
    c, b, facts = np.zeros((len(costs), n)), np.zeros(len(costs)), np.zeros((len(costs), 2))
    end = cost_path(
        K, (0, held.start, held.stop), linear, lower, upper, np.asarray(costs), tol, 10**9, state, F, 0.0, c, b, facts
    )
    return c, b, facts, end


def classes(y):
    return -y[None], np.minimum(y, 0.0)[None], np.maximum(y, 0.0)[None]


def objective(K, y, c):
    return 0.5 * c @ K @ c - y @ c


@pytest.mark.parametrize("costs", [np.geomspace(0.05, 100.0, 6), np.geomspace(100.0, 0.05, 6)], ids=["up", "down"])
@pytest.mark.parametrize("held", [slice(0, 60), slice(90, 150), slice(180, 240)])
def test_the_path_equals_separate_fits_of_scikit_learn(held: slice, costs: np.ndarray) -> None:
    X, y = points()
    K = kernel(X, 0.5)
    inside = np.r_[0 : held.start, held.stop : 240]
    c, b, facts, _ = walk(K, held, *classes(y[inside]), costs)
    part = K[np.ix_(inside, inside)].astype(float)
    for i, C in enumerate(costs):
        peer = SVC(C=C, kernel="precomputed", tol=TOL).fit(part, y[inside])
        theirs = np.zeros(len(inside))
        theirs[peer.support_] = peer.dual_coef_[0]
        assert objective(part, y[inside], c[i]) == pytest.approx(objective(part, y[inside], theirs), rel=1e-5)
        assert facts[i, 1] <= TOL
        values = K[held][:, inside].astype(float) @ c[i] + b[i]
        np.testing.assert_allclose(
            values, peer.decision_function(K[held][:, inside].astype(float)), atol=2e-4 * C + 2e-4
        )


def by_working_sets(K, held, y, costs, tol, go_on=lambda: True):
    """The path of a classifier by warm starts of the engine."""
    stretches = StoredStretches(K, (0, held.start, held.stop), len(y))
    unit = stated(stretches, Hinge(), y, Costs(np.ones(len(y)), np.ones(len(y))))
    state, F, now, found = np.zeros((1, len(y))), np.zeros(len(y)), 0.0, []
    for C in costs:
        found.append(next_cost(unit, state, F, now, float(C), tol, Asking(go_on)))
        np.testing.assert_array_equal(found[-1].coefficients, state[0])
        now = float(C)
    return found


@pytest.mark.parametrize("costs", [[0.1, 1.0, 30.0], [30.0, 1.0, 0.1]], ids=["up", "down"])
def test_working_sets_reach_the_solution_of_steps_on_all_points(costs) -> None:
    X, y = points(2200, 1)
    K = kernel(X, 2.0)
    held = slice(500, 600)
    inside = np.r_[0:500, 600:2200]
    assert len(inside) > WHOLE
    found = by_working_sets(K, held, y[inside], costs, 1e-4)
    part = K[np.ix_(inside, inside)].astype(float)
    for one, C in zip(found, costs):
        assert one.complete
        assert one.violation <= 1e-4
        peer = SVC(C=C, kernel="precomputed", tol=1e-4).fit(part, y[inside])
        theirs = np.zeros(len(inside))
        theirs[peer.support_] = peer.dual_coef_[0]
        assert objective(part, y[inside], one.coefficients) == pytest.approx(
            objective(part, y[inside], theirs), rel=1e-5
        )
        values = K[held][:, inside].astype(float) @ one.coefficients + one.bias
        np.testing.assert_allclose(values, peer.decision_function(K[held][:, inside].astype(float)), atol=2e-3)


def test_working_sets_end_a_path_where_no_variable_is_bounded() -> None:
    X, y = points(1600, 4)
    small, large = by_working_sets(kernel(X, 50.0), slice(0, 100), y[100:], [0.1, 1000.0], 1e-4)
    assert not small.ended
    assert large.ended
    assert np.abs(large.coefficients).max() < 1000.0


def test_a_path_by_working_sets_stops_when_told_to() -> None:
    X, y = points(1600, 4)
    (found,) = by_working_sets(kernel(X, 2.0), slice(0, 100), y[100:], [10.0], 1e-6, go_on=lambda: False)
    assert not found.complete
    assert not found.ended


@settings(deadline=None)  # the first example compiles
@given(st.integers(0, 10_000))
def test_stretches_are_the_part_of_the_matrix_they_stand_for(seed: int) -> None:
    random = np.random.default_rng(seed)
    size, (a, b) = 30, np.sort(random.choice(20, 2))
    K = random.normal(size=(size, size))
    K = (K + K.T).astype(random.choice([np.float32, np.float64]))
    inside = np.r_[0:a, b:size]
    n = len(inside)
    gram, part = StoredStretches(K, (0, int(a), int(b)), n), K[np.ix_(inside, inside)]
    np.testing.assert_array_equal(gram.dense(), part)
    np.testing.assert_array_equal(gram.diagonal(), np.diagonal(part))
    v, some = random.normal(size=n), random.permutation(n)[: n // 2]
    np.testing.assert_allclose(gram.dot(v), part.astype(float) @ v, atol=1e-12)
    np.testing.assert_allclose(gram.columns_dot(some, v[some]), part[:, some].astype(float) @ v[some], atol=1e-12)


def test_a_path_ends_where_no_variable_is_bounded_and_is_constant_from_there() -> None:
    X, y = points(120)
    K = kernel(X, 20.0)
    costs = np.array([0.1, 10.0, 100.0, 1000.0])
    c, b, facts, end = walk(K, slice(100, 120), *classes(y[:100]), costs)
    assert end == 10.0
    assert np.array_equal(c[1], c[3])
    assert b[1] == b[3]
    assert np.abs(c[1]).max() < 10.0
    assert facts[2, 0] == 0


def test_a_warm_path_takes_fewer_steps_than_cold_starts() -> None:
    X, y = points(400, 2)
    K = kernel(X, 0.5)
    costs = np.geomspace(0.05, 100.0, 8)
    _, _, warm, _ = walk(K, slice(0, 80), *classes(y[80:]), costs, 1e-3)
    cold = sum(walk(K, slice(0, 80), *classes(y[80:]), [C], 1e-3)[2][0, 0] for C in costs)
    assert warm[:, 0].sum() < cold


def test_regression_is_the_same_path_with_two_variables_a_point() -> None:
    X, _ = points(150, 3)
    t = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=150)
    K = kernel(X, 0.5)
    y, zero, one = t[30:], np.zeros(120), np.ones(120)
    costs = [0.1, 1.0, 10.0]
    linear, lower, upper = np.stack([0.1 - y, -0.1 - y]), np.stack([zero, -one]), np.stack([one, zero])
    c, b, _, _ = walk(K, slice(0, 30), linear, lower, upper, costs)
    for i, C in enumerate(costs):
        peer = SVR(C=C, epsilon=0.1, kernel="precomputed", tol=TOL).fit(K[30:, 30:].astype(float), y)
        values = K[:30, 30:].astype(float) @ c[i] + b[i]
        np.testing.assert_allclose(values, peer.predict(K[:30, 30:].astype(float)), atol=1e-3)
