"""Paths in C and in the width: the same optima as from nothing, in fewer steps, held to what is known of them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import Gaussian, Gram
from mercer.errors import ContradictoryCertificates, InvalidInput
from mercer.losses import EpsilonInsensitive, Hinge, SquaredHinge
from mercer.problems import NuClassification, RegularisedRisk, from_C
from mercer.solvers import available, catalogue, path
from mercer.solvers.monitor import Monitor
from mercer.solvers.paths import hold_to_account, warm_start

COSTS = [100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1]


def points(n: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 3))
    return X, np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.6 * random.standard_normal(n) > 0.3, 1.0, -1.0)


X, Y = points()
GRAM = Gram(Gaussian(sigma=1.2), X)


def at_cost(C: float) -> RegularisedRisk:
    return RegularisedRisk(GRAM, Y, Hinge(), C=C)


def at_width(sigma: float) -> RegularisedRisk:
    return RegularisedRisk(Gram(Gaussian(sigma=sigma), X), Y, Hinge(), C=3.0)


ACCEPTING = [name for name in catalogue.NAMES if catalogue.by_name(name).accepts(at_cost(1.0))]


@pytest.mark.parametrize("solver", ACCEPTING)
def test_a_warm_path_has_the_objectives_of_a_cold_one(solver):
    # First order takes ever longer to more digits, the longer the larger C.
    costs, gap = ([1.0, 0.3], 1e-3) if solver == "gradient" else (COSTS[2:5], 1e-5)
    warm = path(at_cost, costs, solver=solver, tol=gap, gap_tol=gap)
    cold = path(at_cost, costs, solver=solver, tol=gap, gap_tol=gap, warm=False)
    for one, other in zip(warm.solutions, cold.solutions):
        assert one.dual <= other.primal * (1.0 + 1e-9)
        assert other.dual <= one.primal * (1.0 + 1e-9)
        assert one.primal == pytest.approx(other.primal, rel=2.0 * gap)


@pytest.mark.parametrize("make", [at_cost, at_width], ids=["C", "sigma"])
def test_warm_starts_take_fewer_steps(make):
    values = COSTS if make is at_cost else list(np.geomspace(2.0, 1.0, 8))
    warm = path(make, values, tol=1e-6)
    cold = path(make, values, tol=1e-6, warm=False)
    assert any(warm.warm)
    assert not any(cold.warm)
    assert warm.iterations < cold.iterations
    np.testing.assert_allclose(warm.objectives, cold.objectives, rtol=1e-5)


@settings(max_examples=15, deadline=None)
@given(
    costs=st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=4),
    loss=st.sampled_from([Hinge(), SquaredHinge(), EpsilonInsensitive(epsilon=0.1)]),
    bias=st.sampled_from(["free", "none", "penalised"]),
    seed=st.integers(0, 20),
)
def test_the_inequalities_hold_on_every_path(costs, loss, bias, seed):
    """(10.23) to (10.25) in C, and problem 10.3 in lambda, on solved values; `path` itself raises where one fails."""
    X, y = points(40, seed)
    gram = Gram(Gaussian(sigma=1.0), X)
    costs = sorted(costs)
    found = path(lambda C: RegularisedRisk(gram, y, loss, C=C, bias=bias), costs, tol=1e-8)
    for (C, one), (more, other) in zip(zip(costs, found.solutions), zip(costs[1:], found.solutions[1:]), strict=False):
        slack = 1e-5 * max(abs(other.primal), 1e-9)
        assert C / more * other.dual <= one.primal + slack
        assert one.dual <= other.primal + slack
        n = len(X)
        small, large = (s.primal * from_C(c, "half lambda", n) for s, c in ((other, more), (one, C)))
        assert small <= large + slack  # R(lambda) rises with lambda


def test_certificates_that_contradict_one_another_are_refused():
    one, other = at_cost(1.0), at_cost(2.0)
    solve = catalogue.by_name("decomposition").solve
    a, b = solve(one, tol=1e-6), solve(other, tol=1e-6)
    hold_to_account(one, a, other, b)
    hold_to_account(other, b, one, a)
    for wrong in (replace(a, dual=2.0 * a.primal), replace(a, dual=1.2 * b.primal)):
        with pytest.raises(ContradictoryCertificates, match=r"\(10\.2[35]\)"):
            hold_to_account(one, wrong, other, b)
    with pytest.raises(ContradictoryCertificates, match=r"\(10\.24\)"):
        hold_to_account(one, a, other, replace(b, dual=2.1 * a.primal))


def test_a_start_that_is_worse_than_nothing_is_rejected():
    """From C to 50 C the scaled variables have a dual value below that of f = 0."""
    solve = catalogue.by_name("decomposition").solve
    one, other = at_cost(0.1), at_cost(50.0)
    solution = solve(one, tol=1e-6)
    scaled = 500.0 * solution.variables
    assert other.dual(scaled) < 0.0
    assert warm_start(solution, one, other) is None
    near = warm_start(solution, one, at_cost(0.12))
    assert at_cost(0.12).dual(near) > 0.0
    assert path(at_cost, [0.1, 50.0], tol=1e-4).warm == (False, False)


def test_problems_that_differ_in_more_than_C_are_not_compared():
    nus = path(lambda nu: NuClassification(GRAM, Y, nu), [0.5, 0.4, 0.3], tol=1e-5)
    assert len(nus.solutions) == 3
    losses = iter([Hinge(), SquaredHinge()])
    path(lambda C: RegularisedRisk(GRAM, Y, next(losses), C=C), [1.0, 2.0], tol=1e-5)


def test_a_monitor_ends_the_path_with_what_was_solved():
    monitor = Monitor(time_limit=1e-9)
    with monitor:
        found = path(at_cost, COSTS, tol=1e-6, monitor=monitor)
    assert 1 <= len(found.solutions) < len(COSTS)
    assert len(found.values) == len(found.solutions) == len(found.seconds)


def test_a_path_of_nothing_and_a_solver_that_does_not_fit_are_refused():
    with pytest.raises(InvalidInput, match="at least one"):
        path(at_cost, [])
    with pytest.raises(InvalidInput, match="not known"):
        path(at_cost, [1.0], solver="guessing")
    assert {entry.name for entry in available()} == set(catalogue.NAMES)
