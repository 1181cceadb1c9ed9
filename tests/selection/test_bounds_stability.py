"""Stability constants are attained but never exceeded, and each goes with its own bound."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mercer.errors import InvalidInput
from mercer.losses import Absolute, EpsilonInsensitive, Exponential, Hinge, Logistic, Square, SquaredHinge
from mercer.selection.bounds import (
    admissible,
    bagged_stability,
    decision_gaps,
    largest_loss,
    largest_output,
    multiclass_stability,
    one_versus_all,
    output_stability,
    ramp,
    separating_machines,
    stability_bound,
    tikhonov,
    tikhonov_risk,
    uniform_stability,
)
from tests.selection.retraining import gaussian, noisy, train


def slope_at_one_point(y, loss, lam, factor):
    """Minimiser w of factor * sum loss(y, w) + lam w^2: all points at x = 1 under the linear kernel."""
    return minimize_scalar(
        lambda w: factor * np.sum(loss.value(y, w)) + lam * w * w,
        bounds=(-3, 3),
        method="bounded",
        options={"xatol": 1e-12},
    ).x


def test_the_constants_are_attained_and_refitting_with_the_smaller_mean_doubles_the_first():
    y, lam = np.array([1.0, 1.0, 1.0, 1.0, 1.0, -1.0]), 1.0
    loss, n = Hinge(), 6
    whole = slope_at_one_point(y, loss, lam, 1 / n)
    removed = slope_at_one_point(y[:-1], loss, lam, 1 / n)
    refitted = slope_at_one_point(y[:-1], loss, lam, 1 / (n - 1))
    replaced = slope_at_one_point(np.ones(6), loss, lam, 1 / n)
    remove = uniform_stability(loss, lam, n, 1.0).value
    replace = uniform_stability(loss, lam, n, 1.0, definition="replace").value
    assert abs(removed - whole) / remove == pytest.approx(1.0, abs=1e-4)
    assert abs(refitted - whole) / remove == pytest.approx(2.0, abs=1e-4)
    assert abs(replaced - whole) / replace == pytest.approx(1.0, abs=1e-4)


def test_both_notions_with_their_own_constants_give_one_number():
    losses = np.full(50, 0.2)
    numbers = [
        tikhonov_risk(losses, Hinge(), 0.5, 1.0, definition=definition).value for definition in ("remove", "replace")
    ]
    assert numbers[0] == pytest.approx(numbers[1])
    by_hand = 0.2 + 2 * 0.02 + (4 * 50 * 0.02 + 1 + np.sqrt(2)) * np.sqrt(np.log(20) / 100)
    assert numbers[0] == pytest.approx(by_hand)


def test_sigma_is_the_largest_slope_over_reachable_outputs():
    for loss in (Hinge(), Absolute(), EpsilonInsensitive(0.2), Logistic()):
        assert admissible(loss, 0.3, 1.0) == 1.0
    # lam = 9: the squared end (a^2 = 1.78), which the thesis takes, lies below the true slope 2a = 2.67.
    assert admissible(Square(), 9.0, 1.0) == pytest.approx(8 / 3)
    assert largest_loss(Square(), 9.0, 1.0) == pytest.approx(16 / 9)
    for loss in (Square(), SquaredHinge(), Exponential()):
        end = largest_output(loss, 0.7, 1.3)
        grid = np.linspace(-end, end, 2001)
        for y in (-1.0, 1.0):
            slopes = np.abs(np.diff(loss.value(y, grid)) / np.diff(grid))
            assert slopes.max() <= admissible(loss, 0.7, 1.3) + 1e-9
            assert loss.value(y, grid).max() <= largest_loss(loss, 0.7, 1.3) + 1e-9


def regularised(K, y, lam):
    return np.linalg.solve(K + lam * len(y) * np.eye(len(y)), y)


@pytest.mark.parametrize("lam", [0.05, 0.5, 3.0])
def test_no_replacement_or_removal_changes_a_least_squares_output_by_more(lam):
    rng = np.random.default_rng(0)
    n = 12
    X = rng.standard_normal((n + 6, 2))
    K = gaussian(X)
    y = rng.choice([-1.0, 1.0], n + 6)
    train_index = np.arange(n)
    f = K[:, train_index] @ regularised(K[:n, :n], y[:n], lam)
    assert np.max(np.abs(f)) <= largest_output(Square(), lam, 1.0)
    replace = output_stability(Square(), lam, n, 1.0, definition="replace").value
    for i, new in product(range(n), range(n, n + 6)):
        index = np.where(train_index == i, new, train_index)
        other = K[:, index] @ regularised(K[np.ix_(index, index)], y[index], lam)
        assert np.max(np.abs(other - f)) <= replace
        change = np.abs((1 - y * other) ** 2 - (1 - y * f) ** 2)
        assert change.max() <= uniform_stability(Square(), lam, n, 1.0, definition="replace").value


@pytest.mark.parametrize("C", [0.05, 1.0])
def test_no_removal_changes_a_support_vector_machine_by_more(C):
    _, K, y = noisy(1, n=12)
    n = len(y)
    lam = tikhonov(C, n)
    alpha, _ = train(K, y, C, "none")
    f = K @ (alpha * y)
    assert np.sqrt((alpha * y) @ K @ (alpha * y)) <= np.sqrt(1.0 / lam) + 1e-6
    allowed = uniform_stability(Hinge(), lam, n, 1.0).value
    for i in range(n):
        keep = np.arange(n) != i
        a, _ = train(K[np.ix_(keep, keep)], y[keep], C, "none")  # the same C: the factor 1/n is kept
        other = K[:, keep] @ (a * y[keep])
        assert np.max(np.abs(other - f)) <= allowed + 1e-6
        assert np.max(np.abs(Hinge().value(y, other) - Hinge().value(y, f))) <= allowed + 1e-6


def constrained_line(x, y):
    """Least squares under |w| <= 1 (Ivanov regularisation)."""
    return float(np.clip(x @ y / (x @ x), -1, 1)) if x @ x > 0 else 0.0


@pytest.mark.parametrize("n", [5, 50, 500])
def test_a_constraint_is_not_stable_where_a_penalty_is(n):
    x = np.zeros(n)
    x[-1] = 1.0
    low, high = np.zeros(n), np.zeros(n)
    high[-1] = 1.0
    assert abs(constrained_line(x, high) - constrained_line(x, low)) == 1.0
    lam = 0.5
    change = (x @ high) / (x @ x + lam * n)
    assert change == pytest.approx(1 / (1 + lam * n))
    assert change <= output_stability(Square(), lam, n, 1.0, definition="replace").value


def test_bagging_makes_an_unstable_line_stable_at_the_stated_rate():
    part = 4
    for n in (8, 32, 128):
        x, y = np.zeros(n), np.zeros(n)
        x[-1] = 1.0
        changed = y.copy()
        changed[-1] = 1.0

        def bagged(targets, x=x, n=n):
            return np.mean([constrained_line(x[i : i + part], targets[i : i + part]) for i in range(0, n, part)])

        # One line moves by 1 and the bound is attained.
        assert abs(bagged(changed) - bagged(y)) == pytest.approx(bagged_stability(1.0, part, n).value)
    assert bagged_stability(0.5, 4, 32, sigma=2.0).value == pytest.approx(0.125)
    assert bagged_stability(0.5, 32, 32).vacuous
    assert not bagged_stability(0.5, 16, 32).vacuous
    with pytest.raises(InvalidInput, match="part"):
        bagged_stability(1.0, 5, 32)


def complete(classes):
    return np.array([(1.0, *column) for column in product([-1.0, 1.0], repeat=classes - 1)])[:-1].T


def test_machines_that_separate_two_classes_are_two_for_one_versus_all_and_half_of_a_complete_code():
    for classes in (3, 4, 6):
        assert separating_machines(one_versus_all(classes)) == 2
        assert separating_machines(complete(classes)) == 2 ** (classes - 2)


@pytest.mark.parametrize("name", ["one versus all", "complete"])
def test_no_replacement_changes_the_ramp_by_more_than_the_multiclass_stability(name):
    M = one_versus_all(4) if name == "one versus all" else complete(4)
    rng = np.random.default_rng(2)
    n, lam, gamma = 16, 0.8, 2.0
    labels = rng.integers(0, 4, n + 4)
    X = rng.standard_normal((n + 4, 2)) + 0.5 * labels[:, None]
    K = gaussian(X)

    def ramps(index):
        c = regularised(K[np.ix_(index, index)], M[labels[index]], lam)
        f = K[:, index] @ c
        gaps = decision_gaps(M, labels, f, Square())
        wrong = np.argmin([((1 - row * f) ** 2).sum(axis=1) for row in M], axis=0) != labels
        assert np.all(ramp(gaps, gamma) >= wrong)
        return ramp(gaps, gamma), f

    base = np.arange(n)
    first, f = ramps(base)
    beta = uniform_stability(Square(), lam, n, 1.0, definition="replace").value
    bound = multiclass_stability(M, np.zeros(n), beta, gamma, definition="replace")
    for i, new in product(range(n), range(n, n + 4)):
        other, _ = ramps(np.where(base == i, new, base))
        assert np.max(np.abs(other - first)) <= bound.details["stability"]
    if name == "one versus all":
        own = np.arange(4) == labels[:, None]
        rivals = np.max(np.where(own, -np.inf, f), axis=1)
        np.testing.assert_allclose(decision_gaps(M, labels, f, Square()), -4 * (f[own] - rivals))


def test_multiclass_bound_falls_with_n_and_favours_one_versus_all():
    def value(M, n, definition="remove"):
        beta = uniform_stability(Square(), 5.0, n, 1.0, definition=definition).value
        return multiclass_stability(M, np.full(n, -10.0), beta, 4.0, definition=definition).value

    values = [value(one_versus_all(4), n) for n in (100, 1000, 10_000, 10**6)]
    assert values == sorted(values, reverse=True)
    assert value(one_versus_all(4), 1000) <= value(complete(4), 1000)
    assert value(one_versus_all(4), 1000) == pytest.approx(value(one_versus_all(4), 1000, "replace"))
    assert multiclass_stability(one_versus_all(3), np.full(10, -9.0), 0.5, 1.0).vacuous
    pairs = np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0]])
    assert "zeros" in multiclass_stability(pairs, np.zeros(3), 0.1, 1.0).failed[0]


def test_risk_of_a_stable_machine_stays_below_its_bound_in_simulation():
    rng = np.random.default_rng(3)
    lam, n = 2.0, 40
    X_new = rng.uniform(-1, 1, 4000)
    y_new = np.where(rng.uniform(size=4000) < (1 + X_new) / 2, 1.0, -1.0)
    for _ in range(20):
        x = rng.uniform(-1, 1, n)
        y = np.where(rng.uniform(size=n) < (1 + x) / 2, 1.0, -1.0)
        w = x @ y / (x @ x + lam * n)
        bound = tikhonov_risk((y - w * x) ** 2, Square(), lam, 1.0)
        assert np.mean((y_new - w * X_new) ** 2) <= bound.value


def test_refusals_and_failed_assumptions():
    with pytest.raises(InvalidInput, match="definition"):
        uniform_stability(Hinge(), 1.0, 10, 1.0, definition="swap")
    with pytest.raises(InvalidInput, match="delta"):
        stability_bound([0.1], 0.1, 1.0, delta=0.0)
    with pytest.raises(InvalidInput, match="lam"):
        largest_output(Hinge(), 0.0, 1.0)
    assert not stability_bound([0.1, 2.0], 0.1, 1.0).holds
    assert "free bias" in stability_bound([0.1], 0.1, 1.0, free_bias=True).failed[0]
    assert "free bias" in uniform_stability(Hinge(), 1.0, 10, 1.0, free_bias=True).failed[0]
    assert uniform_stability(Hinge(), 1e-4, 10, 1.0).vacuous
    assert not uniform_stability(Hinge(), 1.0, 10, 1.0).vacuous
    assert output_stability(Hinge(), 1e-4, 10, 1.0).vacuous
    assert tikhonov(2.0, 10) == 0.025
    assert tikhonov(2.0, 10, half=True) == 0.05
