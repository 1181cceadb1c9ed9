"""Certificates: the gap is primal minus dual, bounds the error, and its free parameters are the best ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from mercer.problems import Bounds, best_threshold, converged, relative_gap
from problems.zoo import KINDS, c_svc, case, eps_svr, feasible_point, huber, nu_svc, nu_svr, one_class, squared_hinge

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
    named = {"rho": 0.7} if kind in (nu_svc,) else {"epsilon": 0.2} if kind is nu_svr else {}
    if example.problem.bias == "penalised":
        bias = float(coefficients.sum())
    if example.problem.bias == "none":
        bias = 0.0
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


def test_stop_rule_is_relative_to_the_mean_of_primal_and_dual():
    assert converged(1.0, 1.0 - 1e-3, 1.1e-3)
    assert not converged(1.0, 1.0 - 1e-3, 0.9e-3)
    assert converged(0.0, 0.0, 1e-8)
    assert relative_gap(2.0, 1.0) == pytest.approx(1 / 1.5)
    assert relative_gap(0.0, 0.0) == 0.0


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
