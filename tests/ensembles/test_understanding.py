"""Identities and bounds of averaging, against enumeration of all training sets and brute force."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.ensembles import bias_variance, efron_stein, gain
from mercer.errors import InvalidInput
from mercer.selection.bounds import bagged_stability, coefficient_change, subbagged_stability


@given(q=st.integers(1, 6), n=st.integers(1, 20), seed=st.integers(0, 1000))
def test_members_err_by_the_ensemble_and_their_spread(q, n, seed):
    random = np.random.default_rng(seed)
    F, y, beta = random.standard_normal((q, n)), random.standard_normal(n), random.dirichlet(np.ones(q))
    found = gain(F, y, beta)
    assert found.members == pytest.approx(found.ensemble + found.spread)
    assert found.members == pytest.approx(sum(b * np.mean((f - y) ** 2) for b, f in zip(beta, F)))
    assert found.ensemble <= found.members + 1e-12


def test_weights_must_add_to_one():
    with pytest.raises(InvalidInput, match="beta"):
        gain(np.ones((2, 3)), np.ones(3), [0.5, 0.6])


@given(seed=st.integers(0, 1000))
def test_bias_and_variance_of_a_weighted_sum_are_those_of_the_sum_itself(seed):
    random = np.random.default_rng(seed)
    F = random.standard_normal((200, 3, 4)) + random.standard_normal((200, 1, 4))  # members that are correlated
    truth, beta = random.standard_normal(4), np.array([0.6, 0.7, -0.3])
    found = bias_variance(F, truth, beta)
    total = np.einsum("j,rjn->rn", beta, F)
    np.testing.assert_allclose(found.bias, total.mean(axis=0) - truth)
    np.testing.assert_allclose(found.variance, total.var(axis=0))
    np.testing.assert_allclose(found.error, found.bias**2 + found.variance)
    ordered = sum(
        beta[j] * beta[i] * np.mean((F[:, j] - F[:, j].mean(0)) * (F[:, i] - F[:, i].mean(0)), axis=0)
        for j, i in product(range(3), repeat=2)
        if i != j
    )
    alone = sum(beta[j] ** 2 * F[:, j].var(axis=0) for j in range(3))
    np.testing.assert_allclose(found.variance, alone + ordered)


def ridge(X: np.ndarray, y: np.ndarray, ridge: float, x: np.ndarray) -> np.ndarray:
    """Outputs of Gaussian kernel ridge regression, (points of x,)."""
    if len(X) == 0:
        return np.zeros(len(x))
    K = np.exp(-0.5 * (X[:, None] - X[None]) ** 2)
    return np.exp(-0.5 * (x[:, None] - X[None]) ** 2) @ np.linalg.solve(K + ridge * np.eye(len(X)), y)


@pytest.mark.parametrize("penalty", [0.01, 1.0])
@pytest.mark.parametrize("N", [2, 3])
def test_the_sandwich_holds_exactly_over_all_training_sets(N, penalty):
    """Points are drawn from five: all 5^N training sets are there, and means are expectations."""
    X, y = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]), np.array([0.3, -1.0, 2.0, 0.5, -0.7])
    x, truth = np.array([-1.5, 0.2, 3.0]), np.array([0.1, 0.8, -0.3])
    sets = [np.array(one) for one in product(range(5), repeat=N)]
    full = np.array([ridge(X[one], y[one], penalty, x) for one in sets])
    left = np.array([[ridge(X[np.delete(one, i)], y[np.delete(one, i)], penalty, x) for i in range(N)] for one in sets])
    found = efron_stein(full, left, truth)
    np.testing.assert_allclose(found.single - found.bag, full.var(axis=0), atol=1e-12)
    assert np.all(found.bag <= found.single + 1e-12)
    assert np.all(found.single <= found.upper + 1e-12)


def test_the_printed_bound_of_bagging_is_exceeded():
    """N beta/4 with beta the largest change of an output is no bound: three points of value +-10 and their sum."""
    sets = np.array(list(product((-10.0, 10.0), repeat=3)))
    full = sets.sum(axis=1)[:, None]
    left = np.stack([full - sets[:, [i]] for i in range(3)], axis=1)
    found = efron_stein(full, left, np.zeros(1))
    beta = 10.0
    assert found.single[0] - found.bag[0] > 3 * beta / 4
    assert found.single[0] <= found.upper[0] + 1e-9


# Stability ---------------------------------------------------------------------------------------------------------


def steep(x: np.ndarray, y: np.ndarray) -> float:
    """Least squares on a line through zero with slope at most one: its output at 1 (unstable for any number)."""
    return float(np.clip(x @ y / max(x @ x, 1e-12), -1.0, 1.0))


@pytest.mark.parametrize("n", [8, 16, 32])
def test_the_mean_over_disjoint_parts_is_stable_where_its_members_are_not(n):
    part = 4
    x, y = np.zeros(n), np.zeros(n)
    x[0], y[0] = 1.0, 1.0  # the point that is replaced
    other = y.copy()
    other[0] = 0.0
    parts = np.arange(n).reshape(-1, part)
    change = abs(np.mean([steep(x[p], y[p]) for p in parts]) - np.mean([steep(x[p], other[p]) for p in parts]))
    assert abs(steep(x, y) - steep(x, other)) == 1.0  # one machine on all points
    bound = bagged_stability(1.0, part, n)
    assert change == pytest.approx(bound.value)  # attained


def test_the_mean_over_all_samples_is_stable_by_the_share_of_the_samples():
    """All samples of 3 of 6 points, brute force over removals: dropped from each, g/n; drawn anew, up to twice that."""
    random = np.random.default_rng(0)
    for _ in range(20):
        y = random.choice([-1.0, 1.0], 6)

        def machine(rows, y=y) -> float:
            """Sign of the sum of the targets: one point can change it by at most 2."""
            return float(np.sign(y[list(rows)].sum()))

        samples = list(combinations(range(6), 3))
        mean = np.mean([machine(rows) for rows in samples])
        for i in range(6):
            dropped = np.mean([machine([r for r in rows if r != i]) for rows in samples])
            fresh = np.mean([machine(rows) for rows in combinations([r for r in range(6) if r != i], 3)])
            beta = max(abs(machine(rows) - machine([r for r in rows if r != i])) for rows in samples if i in rows)
            assert abs(mean - dropped) <= subbagged_stability(beta, 3, 6).value + 1e-12
            assert abs(mean - fresh) <= subbagged_stability(2.0, 3, 6, fresh=True).value + 1e-12


def test_new_samples_attain_twice_the_share():
    """A machine that knows whether it saw point 0: dropping it changes g/n of the samples, and so does drawing anew
    where the machine without it answers the opposite of what it answers on the sample with the point dropped."""

    def machine(rows) -> float:
        return 1.0 if 0 in rows else -1.0 if len(rows) == 3 else 0.0

    samples = list(combinations(range(6), 3))
    mean = np.mean([machine(rows) for rows in samples])
    dropped = np.mean([machine([r for r in rows if r != 0]) for rows in samples])
    fresh = np.mean([machine(rows) for rows in combinations(range(1, 6), 3)])
    assert abs(mean - dropped) == pytest.approx(subbagged_stability(1.0, 3, 6).value)
    assert abs(mean - fresh) == pytest.approx(subbagged_stability(1.0, 3, 6, fresh=True).value)


def test_stability_of_samples_refuses_nonsense():
    with pytest.raises(InvalidInput, match="size"):
        subbagged_stability(1.0, 7, 6)
    with pytest.raises(InvalidInput, match="beta"):
        subbagged_stability(-1.0, 2, 6)
    assert subbagged_stability(1.0, 6, 6).vacuous


# Perturbation ------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 100_000), size=st.floats(0.01, 2.0), regularisation=st.sampled_from([0.01, 0.1, 1.0]))
def test_coefficients_move_no_further_than_the_bound(seed, size, regularisation):
    random = np.random.default_rng(seed)
    X = random.standard_normal((8, 2))
    moved = X.copy()
    moved[0] += size * random.standard_normal(2)

    def system(points: np.ndarray) -> np.ndarray:
        squares = np.sum((points[:, None] - points[None]) ** 2, axis=2)
        return np.exp(-0.5 * squares) + regularisation * np.eye(8)

    H, dH = system(X), system(moved) - system(X)
    y, dy = random.standard_normal(8), np.r_[random.standard_normal(), np.zeros(7)]
    a = np.linalg.solve(H, y)
    change = np.linalg.norm(np.linalg.solve(H + dH, y + dy) - a) / np.linalg.norm(a)
    bound = coefficient_change(H, dH, y, dy)
    assert change <= bound.value * (1 + 1e-9)
    assert bound.details["kappa"] == pytest.approx(np.linalg.cond(H))
    assert bound.holds == (np.linalg.norm(dH, 2) < 1 / np.linalg.norm(np.linalg.inv(H), 2))


def test_more_regularisation_means_more_stability():
    random = np.random.default_rng(0)
    A = random.standard_normal((6, 6))
    K, dH, y = A @ A.T, 1e-3 * np.eye(6), np.ones(6)
    bounds = [coefficient_change(K + r * np.eye(6), dH, y, 0.1 * y).value for r in (0.1, 1.0, 10.0)]
    assert bounds == sorted(bounds, reverse=True)
