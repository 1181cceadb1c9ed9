"""The kernel perceptron and the Bayes point: mistake bounds, the middle of version space, copies and files."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Perceptron

from mercer import BayesPointMachine, Gaussian, KernelPerceptron, Linear, Nystrom
from mercer.errors import Infeasible, InvalidInput, NotConverged
from mercer.gram import Gram
from mercer.models import load, save
from mercer.problems import HardMargin
from mercer.solvers.geometric import perceptron
from mercer.solvers.quadratic import interior_point

BOTH = (
    KernelPerceptron(kernel=Gaussian(sigma=0.7)),
    BayesPointMachine(kernel=Gaussian(sigma=0.7), softness=0.0, max_iter=300),
)


def apart(n=60, d=2, seed=0, gap=0.15):
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=d)
    direction /= np.linalg.norm(direction)
    X = rng.normal(size=(n, d))
    y = np.where(X @ direction + 0.2 > 0, 1.0, -1.0)
    return X + gap * y[:, None] * direction, y


def three_classes(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * 0.3 + np.repeat([[0, 0], [2, 0], [0, 2]], n // 3, axis=0)
    return X, np.repeat(["a", "b", "c"], n // 3)


# The perceptron ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_updates_stay_below_the_bound_of_the_maximal_margin_and_of_its_own_separation(seed):
    """A5: at most (b*^2 + 1)(R^2 + 1) / rho^2 updates, for the hyperplane of largest margin, w* of norm one."""
    X, y = apart(seed=seed)
    gram = Gram(Linear(), X)
    found = perceptron.solve(gram, y, max_epochs=-1)
    assert found.stopped == "converged"
    best = interior_point.solve(HardMargin(gram, y), tol=1e-9)
    w, b = X.T @ best.coefficients, best.bias
    size = np.linalg.norm(w)
    rho, b = (y * (X @ w + b)).min() / size, b / size
    radius = (X**2).sum(axis=1).max()
    assert found.updates <= (b**2 + 1) * (radius + 1) / rho**2
    assert found.updates <= perceptron.mistake_bound(gram, y, found.coefficients)


def test_both_parts_of_the_proof_hold_at_every_update():
    """<(w, b), (w*, b*)> >= j rho and ||(w, b)||^2 <= j (R^2 + 1) after j updates."""
    X, y = apart(seed=3)
    Z = np.column_stack((X, np.ones(len(X))))
    best = interior_point.solve(HardMargin(Gram(Linear(), X), y), tol=1e-9)
    star = np.append(X.T @ best.coefficients, best.bias)
    rho, radius = (y * (Z @ star)).min(), (Z**2).sum(axis=1).max()
    v, updates, changed = np.zeros(3), 0, True
    while changed:
        changed = False
        for x, label in zip(Z, y):
            if label * (v @ x) <= 0:
                v, updates, changed = v + label * x, updates + 1, True
                assert v @ star >= updates * rho * (1 - 1e-9)
                assert v @ v <= updates * radius * (1 + 1e-9)
    found = perceptron.solve(Gram(Linear(), X), y, max_epochs=-1)
    assert found.updates == updates
    np.testing.assert_allclose(np.append(X.T @ found.coefficients, found.coefficients.sum()), v, atol=1e-9)


def test_it_is_the_perceptron_of_scikit_learn_in_the_same_order():
    X, y = apart(seed=1)
    ours = KernelPerceptron(kernel="linear").fit(X, y)
    theirs = Perceptron(shuffle=False, tol=None, max_iter=200, eta0=1.0).fit(X, y)
    np.testing.assert_allclose(ours.coef_[0], theirs.coef_[0], atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-9)


def test_the_size_of_the_steps_changes_nothing_but_the_scale():
    X, y = apart(seed=2)
    gram = Gram(Linear(), X)
    one, ten = (perceptron.solve(gram, y, sizes=np.full(60, size)) for size in (1.0, 10.0))
    np.testing.assert_allclose(10.0 * one.coefficients, ten.coefficients)
    assert one.updates == ten.updates


def test_a_margin_is_kept_and_an_average_separates_no_worse_than_the_points_allow():
    X, y = apart(seed=4)
    wide = KernelPerceptron(kernel="linear", margin=2.0).fit(X, y)
    assert (y * wide.decision_function(X)).min() > 2.0
    assert wide.n_iter_ <= wide.mistake_bounds_[0]
    average = KernelPerceptron(kernel="linear", average=True, shuffle=True, random_state=0).fit(X, y)
    assert np.mean(average.predict(X) == y) > 0.9


def test_classes_that_cannot_be_separated_end_at_the_guard():
    X = np.array([[0.0], [0.0], [1.0]])
    with pytest.warns(NotConverged):
        found = KernelPerceptron(kernel="linear", max_iter=20).fit(X, [0, 1, 1])
    assert found.stopped_ == "iterations"
    assert found.mistake_bounds_[0] == np.inf


# The Bayes point ---------------------------------------------------------------------------------------------------


def brute_force(X, y, draws=400_000, seed=0):
    """The mean of unit vectors (w, b) drawn evenly from the sphere that separate the points."""
    Z = np.column_stack((X, np.ones(len(X))))
    v = np.random.default_rng(seed).normal(size=(draws, Z.shape[1]))
    v /= np.linalg.norm(v, axis=1)[:, None]
    inside = v[((y[:, None] * (Z @ v.T)) > 0).all(axis=0)]
    assert len(inside) > 300
    mean = inside.mean(axis=0)
    return mean / np.linalg.norm(mean)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_billiard_finds_the_centre_of_mass_of_version_space(seed):
    X, y = apart(n=12, seed=seed, gap=0.3)
    centre = brute_force(X, y)
    found = BayesPointMachine(kernel="linear", softness=0.0, max_iter=30_000, random_state=0).fit(X, y)
    ours = np.append(found.coef_[0], found.intercept_)
    ours /= np.linalg.norm(ours)
    assert ours @ centre > 1 - 2e-3
    assert (found.predict(X) == y).all()


def test_perceptrons_on_average_are_nearer_to_the_centre_than_one_alone():
    distances = []
    for seed in range(6):
        X, y = apart(n=12, seed=seed, gap=0.3)
        centre = brute_force(X, y)
        ends = []
        for members in (1, 60):
            machine = BayesPointMachine(
                kernel="linear", softness=0.0, method="perceptrons", members=members, random_state=1
            )
            ours = np.append(machine.fit(X, y).coef_[0], machine.intercept_)
            ends.append(1.0 - ours @ centre / np.linalg.norm(ours))
        distances.append(ends)
    alone, together = np.mean(distances, axis=0)
    assert together < alone


def test_softness_lets_any_classes_be_separated():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.integers(0, 2, 40)
    X[1], y[:2] = X[0], (0, 1)
    with pytest.raises(Infeasible, match="softness"):
        BayesPointMachine(kernel="linear", softness=0.0).fit(X[:4], [0, 1, 0, 1])
    found = BayesPointMachine(kernel=Gaussian(sigma=1.0), softness=1.0, max_iter=500, random_state=0).fit(X, y)
    assert found.stopped_ == "converged"
    assert np.mean(found.predict(X) == y) > 0.6


# Both --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", BOTH, ids=lambda m: type(m).__name__)
def test_three_classes_copies_files_and_attributes(machine, tmp_path):
    X, y = three_classes()
    found = clone(machine).set_params(random_state=0).fit(X, y)
    assert (found.predict(X) == y).all()
    assert np.isnan([found.objective_, found.dual_objective_, found.gap_]).all()
    assert found.stopped_ == "converged"
    assert len(found.solution_) == 3
    assert "kernel matrix" in str(found.plan_)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.decision_function(X), found.decision_function(X))
    save(found, tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.decision_function(X), found.decision_function(X))
    assert repr(again.get_params()) == repr(found.get_params())
    np.testing.assert_array_equal(again.n_iter_, found.n_iter_)


@pytest.mark.parametrize("machine", BOTH, ids=lambda m: type(m).__name__)
def test_weight_zero_is_left_out_and_the_seed_decides(machine):
    X, y = apart(n=40)
    weights = np.where(np.arange(40) % 4 == 0, 0.0, 1.0)
    machine = clone(machine).set_params(random_state=3)
    one = clone(machine).fit(X, y, sample_weight=weights).decision_function(X)
    two = clone(machine).fit(X[weights > 0], y[weights > 0]).decision_function(X)
    np.testing.assert_allclose(one, two, rtol=1e-9)
    np.testing.assert_array_equal(two, clone(machine).fit(X[weights > 0], y[weights > 0]).decision_function(X))


@pytest.mark.parametrize("machine", BOTH, ids=lambda m: type(m).__name__)
def test_bad_input_is_refused_and_approximations_work(machine):
    X, y = apart(n=40)
    with pytest.raises(InvalidInput, match="classes"):
        clone(machine).fit(X, np.zeros(40))
    low = clone(machine).set_params(approximation=Nystrom(30), random_state=0).fit(X, y)
    assert np.mean(low.predict(X) == y) > 0.9
