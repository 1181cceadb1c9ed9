"""A bounded norm: the penalty and the constraint have one solution, and the bound covers the whole ball."""

import math

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp

from mercer.errors import InvalidInput
from mercer.losses import Absolute, Hinge, Square
from mercer.selection.bounds import (
    ball_covering_exponent,
    cover,
    ivanov_bound,
    ivanov_deviation,
    largest_output,
    structural_bound,
    tikhonov_radius,
)
from tests.selection.retraining import gaussian


def problem(n=12):
    random = np.random.default_rng(0)
    K = gaussian(random.standard_normal((n, 2)))
    return K, random.choice([-1.0, 1.0], n)


def constrained(K, y, C):
    """Outputs of min mean (y - f)^2 subject to ||f||^2 <= C, as a cone program: f = L v, ||v|| <= sqrt(C)."""
    n = len(y)
    L = np.linalg.cholesky(K + 1e-12 * np.eye(n))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    A = sp.csc_matrix(np.vstack([np.zeros((1, n)), -np.eye(n)]))
    b = np.concatenate([[math.sqrt(C)], np.zeros(n)])
    P = sp.csc_matrix(np.triu(2 * L.T @ L / n))
    solution = clarabel.DefaultSolver(P, -2 * L.T @ y / n, A, b, [clarabel.SecondOrderConeT(n + 1)], settings).solve()
    return L @ np.array(solution.x)


@pytest.mark.parametrize("lam", [0.01, 0.1, 1.0])
def test_the_penalised_solution_solves_the_constrained_problem_of_its_own_norm(lam):
    K, y = problem()
    c = np.linalg.solve(K + lam * len(y) * np.eye(len(y)), y)
    C = float(c @ K @ c)
    assert constrained(K, y, C) == pytest.approx(K @ c, abs=1e-5)
    assert tikhonov_radius(Square(), lam) >= C
    assert math.sqrt(tikhonov_radius(Square(), lam)) == pytest.approx(largest_output(Square(), lam, 1.0))


def test_some_penalty_solves_the_constrained_problem_and_a_slack_constraint_is_no_penalty():
    K, y = problem()
    low, high = 1e-9, 1e3
    for _ in range(100):  # the norm falls with the penalty
        lam = math.sqrt(low * high)
        c = np.linalg.solve(K + lam * len(y) * np.eye(len(y)), y)
        low, high = (lam, high) if c @ K @ c > 2.0 else (low, lam)
    assert constrained(K, y, 2.0) == pytest.approx(K @ c, abs=1e-5)
    free = float(y @ np.linalg.solve(K, y))
    assert constrained(K, y, 4 * free) == pytest.approx(y, abs=1e-4)


@pytest.mark.parametrize("eps", [0.2, 0.5, 1.5])
def test_a_ball_is_covered_by_no_more_than_its_number(eps):
    random = np.random.default_rng(1)
    w = random.standard_normal((3000, 2))
    w *= np.sqrt(random.uniform(size=(3000, 1))) / np.linalg.norm(w, axis=1, keepdims=True)
    angles = np.linspace(0, 2 * np.pi, 60)
    outputs = 2.0 * w @ np.stack([np.cos(angles), np.sin(angles)])  # kappa = 2, C = 1
    # Centres more than eps apart are no more than the volume allows.
    assert math.log2(len(cover(outputs, eps))) <= ball_covering_exponent(2.0, eps, 2).value
    assert ball_covering_exponent(2.0, 2.0, 2).value == 0.0


@pytest.mark.parametrize("loss", [Square(), Absolute(), Hinge()], ids=lambda loss: type(loss).__name__)
def test_the_largest_deviation_over_the_ball_stays_below_the_bound(loss):
    # f(x) = w x, |w| <= 1, x = +-1 or 0 and y = +-1 with known probabilities.
    random = np.random.default_rng(2)
    w = np.linspace(-1, 1, 201)
    cells = [(x, y) for x in (-1.0, 0.0, 1.0) for y in (-1.0, 1.0)]
    chance = random.dirichlet(np.ones(6))
    table = np.array([loss.value(y, w * x) for x, y in cells])
    n = 200
    bound = ivanov_bound(0.0, loss, 1.0, n, 1.0, d=1)
    assert table.max() <= bound.details["largest"] + 1e-12
    assert np.max(np.abs(np.diff(table)) / np.diff(w)) <= bound.details["sigma"] + 1e-9
    deviations = [np.max(np.abs((random.multinomial(n, chance) / n - chance) @ table)) for _ in range(500)]
    assert np.quantile(deviations, 0.95) <= bound.value
    for eps in (0.1, 0.3, 0.6):
        exponent = ball_covering_exponent(1.0, eps / (4 * bound.details["sigma"]), 1).value
        assert (
            np.mean(np.array(deviations) >= eps) <= ivanov_deviation(exponent, n, eps, bound.details["largest"]).value
        )


def test_the_bound_puts_its_own_probability_at_delta_and_falls_like_the_root():
    bound = ivanov_bound(0.2, Hinge(), 4.0, 1000, 1.0, d=3, delta=0.01)
    eps = bound.details["eps"]
    exponent = ball_covering_exponent(2.0, eps / 4, 3).value
    assert ivanov_deviation(exponent, 1000, eps, 3.0).value == pytest.approx(0.01, rel=1e-6)
    assert bound.value == 0.2 + eps
    gaps = [ivanov_bound(0.0, Hinge(), 4.0, n, 1.0, d=3).value for n in (10**4, 10**6, 10**8)]
    assert 5 < gaps[0] / gaps[1] < 10
    assert 5 < gaps[1] / gaps[2] < 10
    endless = [ivanov_bound(0.0, Hinge(), 1.0, n, 1.0) for n in (10**3, 10**6, 10**9, 10**12)]
    assert [b.value for b in endless] == sorted((b.value for b in endless), reverse=True)
    assert endless[0].vacuous
    assert not endless[-1].vacuous
    assert endless[-1].holds


def test_structural_risk_takes_the_best_ball_and_pays_for_the_choice():
    errors, radii = [0.6, 0.2, 0.19], [0.5, 2.0, 50.0]
    found = structural_bound(errors, radii, Hinge(), 10**5, 1.0, d=2)
    assert found.details["best"] == 1
    assert found.value == min(found.details["values"])
    assert found.value > ivanov_bound(0.2, Hinge(), 2.0, 10**5, 1.0, d=2).value
    assert found.confidence == 0.95
    with pytest.raises(InvalidInput, match="radii"):
        structural_bound(errors, radii[::-1], Hinge(), 100, 1.0)
