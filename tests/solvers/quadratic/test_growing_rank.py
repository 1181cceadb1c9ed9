"""Interior point on a growing rank: the optimum with the true kernel, and the bounds on the way there."""

import warnings

import numpy as np
import pytest

from mercer.gram import Gram, LowRankGram
from mercer.kernels import Gaussian, Sigmoid
from mercer.losses import Hinge
from mercer.problems import RegularisedRisk
from mercer.solvers import Monitor
from mercer.solvers.quadratic import interior_point
from mercer.solvers.quadratic.growing_rank import _factor, accepts, solve
from tests.problems.zoo import KINDS, case, semiparametric_svc


@pytest.mark.parametrize("kind", KINDS)
def test_the_optimum_of_the_true_kernel_is_reached_from_a_rank_of_five(kind):
    for seed in range(3):
        instance = case(kind, seed)
        if not accepts(instance.problem):
            continue
        found, value = solve(instance.problem, tol=1e-7, rank=5, max_iter=100), -instance.optimum()
        assert found.converged
        assert found.dual <= value + 1e-7 * abs(value)
        assert found.primal >= value - 1e-7 * abs(value)
        assert found.details["ranks"][0] <= 5


def overlapping(n=300):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    y = np.where(X[:, 0] + 0.4 * rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y, Gram(Gaussian(sigma=2.0), X)


def test_the_full_rank_is_the_exact_method_at_once():
    _, y, gram = overlapping(80)
    problem = RegularisedRisk(gram, y, Hinge(), 1.0)
    found = solve(problem, tol=1e-8, rank=80)
    assert found.iterations == 1
    assert found.primal == pytest.approx(interior_point.solve(problem, tol=1e-10).primal, rel=1e-8)


@pytest.mark.parametrize("rank", [3, 10, 30])
def test_the_minimum_with_a_low_rank_is_below_the_exact_one_and_the_true_value_at_its_point_above(rank):
    _, y, gram = overlapping()
    G, _ = _factor(gram, np.arange(300), rank)
    exact = RegularisedRisk(gram, y, Hinge(), 1.0)
    low = RegularisedRisk(LowRankGram.from_factors(G), y, Hinge(), 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        s = interior_point.solve(low, tol=1e-9).variables
        best = interior_point.solve(exact, tol=1e-10).variables
    optimum = exact.program().objective(best)
    assert low.program().objective(s) <= optimum + 1e-9 * abs(optimum)
    assert exact.program().objective(s) >= optimum - 1e-9 * abs(optimum)


def test_the_rank_grows_and_stays_far_below_the_number_of_points():
    _, y, gram = overlapping(400)
    monitor = Monitor(callback=lambda record: False)
    found = solve(RegularisedRisk(gram, y, Hinge(), 1.0), tol=1e-7, rank=8, monitor=monitor)
    ranks = found.details["ranks"]
    assert found.converged
    assert ranks[0] == 8
    assert max(ranks) < 200
    best = np.minimum.accumulate([record.primal for record in monitor.history])
    assert best[-1] <= best[0]


def test_limits_are_kept_and_other_problems_refused():
    X, y, gram = overlapping(100)
    few = solve(RegularisedRisk(gram, y, Hinge(), 1.0), tol=1e-10, rank=2, max_iter=1)
    assert few.stopped == "iterations"
    assert 0.0 < few.gap < np.inf
    assert not accepts(case(semiparametric_svc, 0).problem)
    assert not accepts(RegularisedRisk(Gram(Sigmoid(), X), y, Hinge()))
    assert not accepts("a string")
