"""Pruning keeps a machine on fewer points."""

from itertools import pairwise

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.kernels import Gaussian
from mercer.least_squares import LSSVC, LSSVR, prune


def wave(seed=0, n=120):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 1))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(n)


def test_pruned_machine_is_the_machine_trained_on_the_points_kept():
    X, y = wave()
    w = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    machine = LSSVR(C=10.0, kernel=Gaussian(sigma=0.7)).fit(X, y, sample_weight=w)
    pruned = machine.prune()
    assert len(pruned.support_) < len(X)
    again = LSSVR(C=10.0, kernel=Gaussian(sigma=0.7))
    again.fit(X[pruned.support_], y[pruned.support_], sample_weight=w[pruned.support_])
    np.testing.assert_allclose(pruned.predict(X), again.predict(X), atol=1e-10)
    assert len(pruned.dual_coef_) == len(pruned.support_)
    assert len(machine.dual_coef_) == len(X)


def test_rounds_drop_a_fraction_each_and_their_errors_are_honest():
    X, y = wave(2)
    machine = LSSVR(C=10.0, kernel=Gaussian(sigma=0.7)).fit(X, y)
    pruned = machine.prune(fraction=0.1, slack=0.1)
    sizes = [step.points for step in pruned.pruning_]
    assert sizes[0] == 120
    assert all(b == int(a * 0.9) for a, b in pairwise(sizes))
    dropped = np.setdiff1d(np.arange(120), pruned.support_)
    residuals = np.concatenate([pruned.loo_residuals_, y[dropped] - pruned.predict(X[dropped])])
    assert pruned.pruning_[-1].error == pytest.approx(np.mean(residuals**2), rel=1e-9)
    assert pruned.pruning_[-1].error <= 1.1 * min(step.error for step in pruned.pruning_)


def test_the_first_round_drops_the_smallest_coefficients():
    X, y = wave(3)
    machine = LSSVR(C=10.0, kernel=Gaussian(sigma=0.7)).fit(X, y)
    pruned = prune(machine, fraction=0.05, keep=114)
    smallest = np.argsort(np.abs(machine.dual_coef_))[:6]
    assert set(smallest) == set(range(120)) - set(pruned.support_)


def test_classifier_and_precomputed_matrix():
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, 90)
    X = rng.standard_normal((90, 2)) + 3 * np.column_stack([y == 1, y == 2])
    machine = LSSVC(C=1.0, kernel=Gaussian(sigma=1.0)).fit(X, y)
    pruned = machine.prune(fraction=0.2)
    assert pruned.score(X, y) >= machine.score(X, y) - 0.05
    K = Gaussian(sigma=1.0)(X)
    given = LSSVC(C=1.0, kernel="precomputed").fit(K, y).prune(fraction=0.2)
    np.testing.assert_array_equal(given.support_, pruned.support_)
    np.testing.assert_allclose(given.decision_function(K), pruned.decision_function(X), atol=1e-9)


def test_bad_fraction_is_named():
    X, y = wave(5, n=10)
    with pytest.raises(InvalidInput, match="fraction"):
        LSSVR().fit(X, y).prune(fraction=1.0)


def test_weights_count_in_every_round_of_pruning():
    X, y = wave(5, 60)
    w = np.random.default_rng(6).choice([0.1, 1.0, 8.0], len(X))
    machine = LSSVR(C=4.0, kernel=Gaussian(sigma=0.7)).fit(X, y, sample_weight=w)
    pruned = prune(machine, fraction=0.1, slack=10.0, keep=48)

    def trained(on):
        return LSSVR(C=4.0, kernel=Gaussian(sigma=0.7)).fit(X[on], y[on], sample_weight=w[on])

    used = np.arange(60)
    for step, size in zip(pruned.pruning_, (60, 54, 48), strict=True):
        used = np.sort(used[np.argsort(np.abs(trained(used).dual_coef_))[-size:]])
        residuals = y - trained(used).predict(X)
        for i in used:  # points still used count with the machine that is trained without them
            residuals[i] = y[i] - trained(used[used != i]).predict(X[i : i + 1])[0]
        assert (step.points, step.error) == (size, pytest.approx(w @ residuals**2 / w.sum(), rel=1e-8))
    np.testing.assert_array_equal(pruned.support_, used)


@pytest.mark.parametrize(
    ("bias", "basis", "sizes"),
    [("none", None, [24, 12, 6, 3, 1]), ("free", None, [24, 12, 6, 3, 2]), ("free", np.square, [24, 12, 6, 3])],
)
def test_pruning_ends_one_point_above_the_functions_outside_the_penalty(bias, basis, sizes):
    X, y = wave(7, 24)
    machine = LSSVR(C=10.0, kernel=Gaussian(sigma=0.7), bias=bias, basis=basis).fit(X, y)
    pruned = machine.prune(fraction=0.5, slack=np.inf)
    assert [step.points for step in pruned.pruning_] == sizes
    residuals = y - pruned.predict(X)
    P = np.hstack([np.ones_like(X), X**2])[:, : sizes[-1] - 1]
    for i in pruned.support_:  # without it there are as many points as functions, or no point at all
        rest = pruned.support_[pruned.support_ != i]
        residuals[i] = y[i] - P[i] @ np.linalg.solve(P[rest], y[rest])
    assert pruned.pruning_[-1].error == pytest.approx(np.mean(residuals**2), rel=1e-8)
