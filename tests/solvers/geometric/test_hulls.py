"""Nearest points of hulls: the optimum of a conic solver, whole and reduced hulls, and squared slacks as hulls."""

import numpy as np
import pytest
from sklearn.svm import SVC as LibSVC

from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import Gaussian, Linear
from mercer.losses import Hinge, SquaredHinge
from mercer.problems import HardMargin, NuClassification, OneClass, RegularisedRisk
from mercer.solvers import by_name
from mercer.solvers.geometric import maximal_margin_perceptron, nearest_point
from tests.problems.zoo import case, nu_svc, one_class, squared_hinge

NAMES = ("nearest_point", "maximal_margin_perceptron")


def apart(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=d)
    X = rng.normal(size=(n, d))
    y = np.where(X @ direction > 0, 1.0, -1.0)
    return X + 0.2 * y[:, None] * direction, y


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", [nu_svc, one_class, squared_hinge])
def test_the_optimum_is_reached_within_the_certificate(kind, name):
    for seed in range(5):
        instance = case(kind, seed, bias="free")
        module = by_name(name)
        if not module.accepts(instance.problem):
            continue
        found, value = module.solve(instance.problem, tol=1e-7, max_iter=100_000), -instance.optimum()
        assert found.converged
        assert found.dual <= value + 1e-7 * abs(value)
        assert found.primal >= value - 1e-7 * abs(value)


@pytest.mark.parametrize("name", NAMES)
def test_the_hard_margin_is_that_of_libsvm(name):
    X, y = apart()
    reference = LibSVC(kernel="linear", C=1e8, tol=1e-9).fit(X, y)
    found = by_name(name).solve(HardMargin(Gram(Linear(), X), y), tol=1e-8)
    w = X.T @ found.coefficients / found.multipliers["rho"]
    np.testing.assert_allclose(w, reference.coef_[0], rtol=1e-3)
    assert found.bias / found.multipliers["rho"] == pytest.approx(reference.intercept_[0], abs=1e-3)


def test_the_distance_of_the_hulls_is_two_over_the_norm_and_support_vectors_are_enough():
    """A8 and A10 of the chapter on large margins."""
    X, y = apart(seed=3)
    found = nearest_point.solve(HardMargin(Gram(Linear(), X), y), tol=1e-10)
    w = X.T @ found.coefficients / found.multipliers["rho"]
    assert found.details["length"] == pytest.approx(2.0 / np.linalg.norm(w), rel=1e-6)
    values = y * (X @ w + found.bias / found.multipliers["rho"])
    assert values.min() == pytest.approx(1.0, abs=1e-6)
    kept = np.flatnonzero(found.coefficients)
    assert kept.size < 20
    again = nearest_point.solve(HardMargin(Gram(Linear(), X[kept]), y[kept]), tol=1e-10)
    np.testing.assert_allclose(X[kept].T @ again.coefficients, X.T @ found.coefficients, rtol=1e-5)


def test_forces_and_torques_are_in_balance():
    """C4: in any dimension (sum alpha y x) w' is symmetric, and hard-margin alphas sum to the squared norm."""
    X, y = apart(seed=5)
    found = nearest_point.solve(HardMargin(Gram(Linear(), X), y), tol=1e-12)
    rho, s = found.multipliers["rho"], found.coefficients
    alpha = np.abs(s) / rho
    w = X.T @ s / rho
    moment = np.outer((alpha * y) @ X, w)
    np.testing.assert_allclose(moment, moment.T, atol=1e-10 * np.abs(moment).max())
    assert alpha.sum() == pytest.approx(2.0 / rho)


def test_steps_to_corners_and_exchanges_find_the_same_vector():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 2))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=80) > 0, 1.0, -1.0)
    gram = Gram(Gaussian(sigma=1.0), X)
    for problem in (NuClassification(gram, y, 0.3), OneClass(gram, 0.2)):
        one = nearest_point.solve(problem, tol=1e-8)
        two = nearest_point.solve(problem, tol=1e-3, step="corner", max_iter=20_000)
        assert two.converged
        assert two.primal == pytest.approx(one.primal, rel=2e-3)


@pytest.mark.parametrize("step", ["exchange", "corner"])
def test_the_vector_gets_shorter_in_every_step(step):
    from mercer.solvers.geometric.hulls import Hulls

    X, y = apart(n=40, seed=2)
    between = Hulls(NuClassification(Gram(Gaussian(sigma=1.0), X), y, 0.4), None)
    length = between.squared_length
    move = nearest_point.exchange if step == "exchange" else nearest_point.to_corner
    for _ in range(60):
        fall = move(between)
        after = between.squared_length
        assert after == pytest.approx(length - 2.0 * fall, abs=1e-10 * length)
        assert after <= length
        assert max(between.program.violation(between.s)) <= 1e-9
        length = after


def test_updates_of_the_maximal_margin_perceptron_are_mistakes_only():
    X, y = apart(n=50, seed=4)
    found = maximal_margin_perceptron.solve(HardMargin(Gram(Linear(), X), y), tol=1e-6)
    assert found.details["updates"] <= found.iterations
    assert np.count_nonzero(found.coefficients) < 50


def test_a_warm_start_is_taken_up():
    problem = case(squared_hinge, 0, bias="free").problem
    first = nearest_point.solve(problem, tol=1e-6)
    assert nearest_point.solve(problem, tol=1e-5, start=first).iterations <= 1


@pytest.mark.parametrize("name", NAMES)
def test_other_problems_are_refused(name):
    gram = Gram(Linear(), np.array([[0.0], [1.0]]))
    module = by_name(name)
    for problem in (
        RegularisedRisk(gram, [-1, 1], Hinge()),
        RegularisedRisk(gram, [1, 1], SquaredHinge()),
        RegularisedRisk(gram, [-1, 1], SquaredHinge(), bias="none"),
        "a string",
    ):
        assert not module.accepts(problem)
    with pytest.raises(InvalidInput, match="hulls"):
        module.solve(RegularisedRisk(gram, [-1, 1], Hinge()))
    with pytest.raises(InvalidInput, match="step"):
        nearest_point.solve(HardMargin(gram, [-1, 1]), step="sideways")
