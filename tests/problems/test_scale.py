"""The primal point of a certificate is the best multiple of the function."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mercer import SVC, SVR
from mercer.gram import Gram
from mercer.kernels import Gaussian
from mercer.losses import Hinge
from mercer.problems import RegularisedRisk
from mercer.problems.scale import Tangent, best_scale
from mercer.solvers.quadratic import decomposition
from problems.zoo import KINDS, case, feasible_point

IDS = [kind.__name__ for kind in KINDS]


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_scaled_primal_is_a_bound_and_closes_most_of_what_any_multiple_closes(kind):
    for seed in range(4):
        example = case(kind, seed)
        problem, program = example.problem, example.problem.program()
        s = feasible_point(problem, np.random.default_rng(seed))
        c = program.coefficients(s)
        plain, scaled = problem.certificate(s), problem.certificate(s, aim=0.0)
        optimum = -example.optimum()
        slack = 1e-7 * (1 + abs(optimum))
        assert scaled.dual - slack <= optimum <= scaled.primal + slack
        assert scaled.dual == pytest.approx(plain.dual, abs=1e-9 * (1 + abs(plain.dual)))
        assert scaled.gap <= plain.gap
        assert (scaled.bias, scaled.primal - scaled.dual) == (plain.bias, pytest.approx(scaled.gap))
        # Any multiple, by a search that knows nothing of tangents; with general rows the multipliers move along.
        g = program.values(c)

        def primal(t, program=program, g=g, c=c, h=plain.h):
            own = t * h if program.groups is None else program.best_multipliers(t * g)
            return program.primal(t * c, own)

        grid = np.concatenate((np.geomspace(1e-3, 10, 60), [0.0]))
        start = grid[np.argmin([primal(t) for t in grid])]
        best = minimize_scalar(primal, bounds=(0.7 * start, 1.4 * start + 1e-3), method="bounded").fun
        assert scaled.gap <= 1.1 * (min(best, plain.primal) - plain.dual) + slack


def test_a_kink_is_met_exactly():
    """psi falls steeply to t = 1.001 and is flat from there on, as for separable points at a large C."""
    lines = [(0.0, 0.0), (-1e8, 1.001)]

    def tangent(t):
        slope, foot = max(lines, key=lambda line: line[0] * (t - line[1]))
        return Tangent(t, slope * (t - foot), slope)

    assert best_scale(1.0, tangent(1.0), tangent, 0.5) == pytest.approx(1.001, abs=1e-9)


@pytest.mark.parametrize("C", [1e4, 1e6, 1e9])
def test_separable_points_have_a_small_gap_at_any_large_C(C):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = np.sign(X[:, 0] + 0.3 * X[:, 1])
    X[:, 0] += 0.3 * y
    for solver in ("auto", "interior_point"):
        machine = SVC(C=C, solver=solver).fit(X, y)
        assert machine.stopped_ == "converged"
        assert machine.gap_ <= 1e-3 * machine.objective_
    whole = decomposition.solve(RegularisedRisk(Gram(Gaussian(sigma=1.5), X), y, Hinge(), C))
    assert whole.relative_gap <= 2e-3


def test_the_gap_tolerance_is_met_with_the_best_multiple():
    """At C = 1e6 the function itself has a gap of most of the objective long after its best multiple is close."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2500, 4))
    y = np.sign(X[:, 0])
    X[:, 0] += 0.5 * y
    machine = SVC(C=1e6, gamma=0.2, gap_tol=5e-3, tol=1e-3, solver="decomposition").fit(X, y)
    assert machine.stopped_ == "converged"
    assert machine.gap_ <= 5e-3 * machine.objective_


def test_regression_has_a_small_gap_at_a_large_C():
    rng = np.random.default_rng(1)
    X = rng.uniform(-3, 3, size=(150, 1))
    y = np.sin(X[:, 0])
    machine = SVR(C=1e6, epsilon=0.1, gamma=1.0).fit(X, y)
    assert machine.gap_ <= 1e-2 * machine.objective_
