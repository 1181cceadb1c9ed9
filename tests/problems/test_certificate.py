"""Certificates: the gap is primal minus dual, bounds the error, and its free parameters are the best ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from mercer.gram import Gram
from mercer.kernels import Linear
from mercer.problems import Bounds, Certificate, HardMargin, best_threshold, converged, relative_gap
from mercer.problems.certificate import gap_text
from mercer.solvers.quadratic import interior_point
from problems.zoo import (
    KINDS,
    Data,
    c_svc,
    case,
    eps_svr,
    feasible_point,
    huber,
    nu_svc,
    nu_svr,
    one_class,
    squared_hinge,
)

IDS = [kind.__name__ for kind in KINDS]


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_gap_is_primal_minus_dual_of_the_textbook_forms(kind):
    for seed in range(6):
        example = case(kind, seed)
        problem, rng = example.problem, np.random.default_rng(seed)
        s = feasible_point(problem, rng)
        certificate = problem.certificate(s)
        a = example.unsigned(s)
        np.testing.assert_allclose(example.A @ a, example.d, atol=1e-9)
        dual = -(0.5 * a @ example.Q @ a + example.c @ a)
        primal = example.primal(problem.coefficients(s), certificate.bias, **certificate.multipliers)
        scale = 1 + abs(primal) + abs(dual)
        assert certificate.primal == pytest.approx(primal, abs=1e-10 * scale)
        assert certificate.dual == pytest.approx(dual, abs=1e-10 * scale)
        assert certificate.gap == pytest.approx(primal - dual, abs=1e-10 * scale)
        assert problem.dual(s) == pytest.approx(dual, abs=1e-10 * scale)


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_gap_bounds_the_distance_to_the_optimum_from_both_sides(kind):
    for seed in (1, 2):
        example = case(kind, seed)
        optimum = -example.optimum()
        for draw in range(10):
            certificate = example.problem.certificate(feasible_point(example.problem, np.random.default_rng(draw)))
            slack = 1e-7 * (1 + abs(optimum))
            assert certificate.dual - slack <= optimum <= certificate.primal + slack
            assert certificate.gap >= 0


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_every_term_of_the_gap_is_non_negative_for_any_multipliers(kind):
    example = case(kind, 3)
    program, rng = example.problem.program(), np.random.default_rng(3)
    for _ in range(5):
        s, h = feasible_point(example.problem, rng), rng.normal(size=program.d.size)
        g = program.values(program.coefficients(s))
        q = program.slack_values(g, h)
        terms = program.costs(q) - q * s + 0.5 * program.ridge * s**2
        assert terms.min() >= -1e-12 * (1 + np.abs(q).max())
        primal, gap = program.evaluate(s, g, h)
        assert primal - gap == pytest.approx(-program.objective(s), abs=1e-9 * (1 + abs(primal)))


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_primal_at_any_point_is_the_written_out_objective(kind):
    example, rng = case(kind, 4), np.random.default_rng(4)
    coefficients, bias = rng.normal(size=example.problem.n), 0.3
    named = {"rho": 0.7} if kind is nu_svc else {}
    if example.problem.bias == "penalised":
        bias = float(coefficients.sum())
    if example.problem.bias == "none":
        bias = 0.0
    if "nu_svr" in kind.__name__:
        named["epsilon"] = 0.2
    if "semiparametric" in kind.__name__:
        named["basis"] = rng.normal(size=2)
    if kind is one_class:
        named, bias = {"rho": 0.7}, -0.7
    expected = example.primal(coefficients, bias, **named)
    assert example.problem.primal(coefficients, bias, **named) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", [c_svc, eps_svr, huber, squared_hinge, nu_svc, nu_svr, one_class])
def test_free_parameters_minimise_the_primal(kind):
    for seed in range(4):
        example = case(kind, seed, bias="free")
        s = feasible_point(example.problem, np.random.default_rng(seed))
        certificate, c = example.problem.certificate(s), example.problem.coefficients(s)
        slack = 1e-9 * (1 + abs(certificate.primal))
        for moved in np.concatenate((np.linspace(-2, 2, 41), [-1e-4, 1e-4])):
            named = dict(certificate.multipliers)
            if kind is one_class:
                named["rho"] = named["rho"] + moved
                assert certificate.primal <= example.primal(c, -named["rho"], **named) + slack
                continue
            assert certificate.primal <= example.primal(c, certificate.bias + moved, **named) + slack
            for name, value in named.items():
                other = named | {name: max(0.0, value + moved) if name == "epsilon" else value + moved}
                assert certificate.primal <= example.primal(c, certificate.bias, **other) + slack


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), bent=st.booleans(), infinite=st.booleans())
def test_best_threshold_minimises_the_sum_of_costs(seed, bent, infinite):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    e = np.round(rng.normal(size=n), 1)
    lower, upper = -rng.integers(0, 3, size=n).astype(float), rng.integers(0, 3, size=n).astype(float)
    ridge = np.where(rng.uniform(size=n) < 0.7, rng.uniform(0.1, 2, size=n), 0.0) if bent else np.zeros(n)
    if infinite and bent:
        upper = np.where((ridge > 0) & (rng.uniform(size=n) < 0.5), np.inf, upper)
        lower = np.where((ridge > 0) & (rng.uniform(size=n) < 0.3), -np.inf, lower)
    target = float(rng.uniform(np.maximum(lower, -3).sum(), np.minimum(upper, 3).sum()))

    def total(h):
        q = h - e
        with np.errstate(divide="ignore", invalid="ignore"):
            inner = np.where(ridge > 0, q / ridge, np.where(q > 0, np.inf, -np.inf))
        s = np.clip(inner, lower, upper)
        return float((q * s - 0.5 * ridge * s * s).sum()) - target * h

    found = total(best_threshold(e, lower, upper, ridge if bent else None, target))
    search = minimize_scalar(total, bounds=(-30, 30), method="bounded", options={"xatol": 1e-10}).fun
    assert found <= min(search, *(total(x) for x in e)) + 1e-9 * (1 + abs(search))


def test_threshold_takes_the_middle_of_a_flat_stretch():
    e, lower, upper = np.array([0.0, 1.0, 3.0, 7.0]), np.zeros(4), np.ones(4)
    assert best_threshold(e, lower, upper, None, 2.0) == 2.0
    assert best_threshold(e, lower, upper, None, 1.5) == 1.0
    assert best_threshold(e, lower, upper, None, 0.0) == 0.0
    assert best_threshold(e, lower, upper, None, 4.0) == 7.0
    assert best_threshold(np.zeros(0), np.zeros(0), np.zeros(0), None, 0.0) == 0.0


def test_points_of_zero_width_do_not_move_the_threshold():
    e = np.array([0.0, 1.0, 3.0])
    with_extra = best_threshold(np.append(e, 2.2), np.zeros(4), np.array([1.0, 1.0, 1.0, 0.0]), None, 2.0)
    assert with_extra == best_threshold(e, np.zeros(3), np.ones(3), None, 2.0) == 2.0


def test_bounds_only_ever_close():
    bounds, rng, before = Bounds(), np.random.default_rng(0), np.inf
    assert bounds.relative_gap == np.inf
    assert not bounds.converged(1.0)
    for _ in range(50):
        dual, primal = 1.0 - rng.exponential(), 1.0 + rng.exponential()
        bounds.update(primal, dual)
        assert bounds.gap <= before
        assert bounds.dual <= 1.0 <= bounds.primal
        before = bounds.gap
    assert bounds.converged(2.0)
    assert "gap" in repr(bounds)


def test_relative_gap_is_the_gap_over_the_larger_objective_and_the_stop_rule_asks_for_it():
    assert converged(1.0, 1.0 - 1e-3, 1.1e-3)
    assert not converged(1.0, 1.0 - 1e-3, 0.9e-3)
    assert converged(0.0, 0.0, 1e-8)
    assert relative_gap(2.0, 1.0) == 0.5
    assert relative_gap(-1.0, -4.0) == 0.75
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(0.0, -1e-9) == 1.0


def test_what_is_not_a_number_is_never_converged():
    for primal, dual, gap in ((np.nan, 1.0, 0.0), (1.0, np.nan, 0.0), (1.0, 1.0, np.nan), (np.nan, np.nan, None)):
        assert np.isnan(relative_gap(primal, dual, gap))
        assert not converged(primal, dual, 1e300, gap)
        assert not Certificate(primal, dual, primal - dual if gap is None else gap, 0.0).converged(1e300)


def test_gaps_are_shown_in_one_form():
    assert gap_text(0.963) == "0.96"
    assert gap_text(3.21e-5) == "3.2e-05"
    assert gap_text(2.5e-28) == gap_text(0.0) == "< 1e-16"
    assert gap_text(np.nan) == "not known"


def test_printed_gap_of_nonlinear_losses_is_not_a_bound_but_the_conjugate_form_is():
    """The textbook's  sum xi C c'(xi) + a (y f - 1)  falls below the true gap for the squared loss."""
    too_small = 0
    for seed in range(60):
        example = case(squared_hinge, seed, bias="free", weighted=False)
        s = feasible_point(example.problem, np.random.default_rng(seed))
        certificate = example.problem.certificate(s)
        f = example.K @ s + certificate.bias
        y, a, C = example.problem.y, np.abs(s), example.problem.C
        xi = np.maximum(0, 1 - y * f)
        printed = float((2 * C * xi**2 + a * (y * f - 1)).sum())
        true = example.primal(s, certificate.bias) - example.problem.dual(s)
        too_small += printed < true - 1e-9
        assert certificate.gap == pytest.approx(true, rel=1e-9)
    assert too_small > 0


@pytest.mark.parametrize("kind", [c_svc, eps_svr, nu_svc, one_class], ids=lambda kind: kind.__name__)
def test_sums_that_miss_their_targets_are_counted_where_values_are_uncertain(kind):
    problem = case(kind, 3, bias="free").problem
    program, rng = problem.program(), np.random.default_rng(0)
    s = feasible_point(problem, rng)
    s = s + 1e-3 * (np.clip(s + 1.0, program.lower, program.upper) - s)  # in the box, with other sums
    missed = program.sums(s) - program.d
    assert np.abs(missed).max() > 1e-5
    h, g = rng.normal(size=program.d.size), program.values(program.coefficients(s))
    plain, none = program.evaluate(s, g, h)[1], np.zeros(program.n)
    assert program.largest_gap(s, g, h, none) == pytest.approx(plain + np.abs(h) @ np.abs(missed), rel=1e-12)


def test_the_tube_of_nu_regression_is_never_negative():
    for seed in range(8):
        r = Data(np.random.default_rng(seed), 20, 1.0, "free", False)
        example = nu_svr(r, nu=1.0)
        s = feasible_point(example.problem, r.rng)
        found = example.problem.certificate(s)
        assert found.multipliers["epsilon"] >= 0.0
        primal = example.primal(example.problem.coefficients(s), found.bias, **found.multipliers)
        assert found.primal == pytest.approx(primal, rel=1e-10)
        assert found.dual <= -example.optimum() + 1e-7 <= found.primal + 2e-7


def test_the_bias_of_a_one_class_machine_is_minus_rho():
    example = case(one_class, 2)
    c, rho = np.random.default_rng(0).uniform(size=30), 0.7
    assert example.problem.primal(c, -rho) == pytest.approx(example.primal(c, -rho, rho=rho), rel=1e-12)
    assert example.problem.primal(c, -rho) == pytest.approx(example.problem.primal(c, 0.0, rho=rho), rel=1e-12)


def test_how_much_a_point_counts_makes_no_difference_to_the_hard_margin():
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    X[:, 0] += y
    gram, weights = Gram(Linear(), X), np.random.default_rng(1).uniform(0.01, 0.05, size=30)
    plain, light = (interior_point.solve(HardMargin(gram, y, w), tol=1e-9) for w in (None, weights))
    assert light.primal == pytest.approx(plain.primal, rel=1e-6)
    weights[np.flatnonzero(plain.coefficients)[0]] = 0.0  # but one that does not count at all is left out
    assert interior_point.solve(HardMargin(gram, y, weights), tol=1e-9).primal < plain.primal
