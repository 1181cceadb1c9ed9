"""Fits that would run for long look at their limits, on every path, and end with an honest certificate."""

import os
import signal
import time
import warnings

import numpy as np
import pytest
from sklearn.svm import SVC as Peer

from mercer import SVC, Gaussian, NuSVR
from mercer.errors import NotConverged
from mercer.solvers import working_sets
from mercer.solvers.quadratic import pairs
from mercer.solvers.working_sets import Search

random = np.random.default_rng(0)
X = random.normal(size=(400, 3))
OVERLAPPING = np.where(X[:, 0] + random.normal(size=400) > 0, 1, -1)
CLASSES = np.digitize(X[:, 0] + random.normal(size=400), [-0.5, 0.5])


@pytest.mark.parametrize("C", [1e6, 1e8, 1e12])
@pytest.mark.parametrize("y", [OVERLAPPING, CLASSES], ids=["two classes", "pairs"])
def test_steps_are_bounded_at_any_c(C, y):
    with pytest.warns(NotConverged):
        machine = SVC(C=C, gamma=0.05, max_iter=5000).fit(X, y)
    assert machine.stopped_ == "iterations"
    assert np.max(machine.n_iter_) <= 5000
    assert machine.gap_ > 0.0
    assert machine.objective_ - machine.dual_objective_ == pytest.approx(machine.gap_, rel=1e-6)


@pytest.mark.parametrize("C", [1e6, 1e8, 1e12])
@pytest.mark.parametrize("y", [OVERLAPPING, CLASSES], ids=["two classes", "pairs"])
def test_a_pair_too_long_for_one_call_is_solved_by_one_that_looks_up(monkeypatch, C, y):
    monkeypatch.setattr(pairs, "LONGEST_CALL", 400 * 2000)  # two thousand steps
    with pytest.warns(NotConverged, match="time limit"):
        machine = SVC(C=C, gamma=0.05, tol=1e-9, max_time=0.05, solver="decomposition").fit(X, y)
    assert machine.stopped_ == "time"
    assert np.isfinite(machine.gap_)
    monkeypatch.setattr(pairs, "LONGEST_CALL", 1)  # no step at all: a fit like any other
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small = SVC(C=1.0).fit(X, y)
    assert small.objective_ - small.gap_ <= SVC(C=1.0).fit(X, y).objective_


def test_ctrl_c_ends_a_pair_that_would_take_long(monkeypatch):
    monkeypatch.setattr(pairs, "LONGEST_CALL", 400 * 2000)
    looks = []

    def press(search):
        """Ctrl-C at the third look at the monitor, then the look itself."""
        looks.append(search.steps)
        if len(looks) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return look(search)

    look = Search._report
    monkeypatch.setattr(Search, "_report", press)
    monkeypatch.setattr(working_sets, "VALUES_PER_SLICE", 400 * 1000)
    with pytest.warns(NotConverged, match="interrupted"):
        machine = SVC(C=1e8, gamma=0.05, tol=1e-13, solver="decomposition").fit(X, OVERLAPPING)
    assert machine.stopped_ == "interrupted"
    assert len(looks) == 3
    assert machine.n_iter_ == looks[-1]
    assert np.isfinite(machine.gap_)


def test_votes_of_pairs_that_tie_are_those_of_scikit_learn():
    # All pair values are the intercepts at a row of zeros, which are made 0: `predict` votes for the second class of
    # each pair and `decision_function` for the first, in both libraries.
    K = X @ X.T
    mine, peer = (machine.fit(K, CLASSES) for machine in (SVC(kernel="precomputed"), Peer(kernel="precomputed")))
    for machine in (mine, peer):
        machine._intercept_ = np.zeros(3)
    row = np.zeros((1, 400))
    assert mine.predict(row) == peer.predict(row) == [2]
    np.testing.assert_array_equal(mine.decision_function(row), peer.decision_function(row))
    assert mine.decision_function(row).argmax() == 0


def test_small_targets_cost_nu_regression_what_a_large_c_does():
    # min ||w||^2 / 2 + C (losses) at targets s y is s^2 times the same with C / s at y: the stopping rule follows the
    # targets, so that the steps are those of the larger C, and not those of a finer tolerance.
    target, scale = np.sin(X[:, 0]) + 0.2 * np.random.default_rng(1).normal(size=400), 1e-2
    small, large = NuSVR(C=1.0).fit(X, scale * target), NuSVR(C=1.0 / scale).fit(X, target)
    assert small.stopped_ == large.stopped_ == "converged"
    assert 0.5 < small.n_iter_ / large.n_iter_ < 2.0
    # Both certificates enclose one optimum.
    assert scale**2 * large.dual_objective_ <= small.objective_
    assert small.dual_objective_ <= scale**2 * large.objective_


@pytest.mark.filterwarnings("ignore::mercer.errors.NotConverged")
def test_the_time_limit_holds_for_the_fewest_points():
    """A step costs more than its row of four values; five million of them took seconds between two looks."""
    points, y = np.array([[0.0], [0.0], [20.0], [-30.0]]), np.array([3.7e-6, 8.4e-6, 7.8e-5, 1.2e-5])
    weights = np.array([0.523, 1.235, 0.637, 2.906])
    options = {"C": 1e4, "nu": 0.1, "kernel": Gaussian(sigma=1.0), "solver": "decomposition"}
    NuSVR(**options, max_iter=1).fit(points, y, sample_weight=weights)  # compiled before the clock runs
    began = time.perf_counter()
    machine = NuSVR(**options, max_time=0.1).fit(points, y, sample_weight=weights)
    assert machine.stopped_ == "time"
    assert time.perf_counter() - began < 1.0
