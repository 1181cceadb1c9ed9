"""All descent solvers reach the optimum of an independent interior point code, each within its own certificate."""

import warnings

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.gram import Gram, LowRankGram
from mercer.kernels import Linear
from mercer.losses import Hinge, SquaredHinge
from mercer.problems import NuClassification, RegularisedRisk
from mercer.solvers import Monitor, available, by_name
from mercer.solvers.quadratic import interior_point
from tests.problems.zoo import KINDS, c_svc, case, eps_svr, huber, semiparametric_svc, squared_hinge

NAMES = ("gradient", "lagrangian", "newton", "irwls", "sor", "adatron")
# Gap that each reaches on all the problems it accepts within the iterations allowed here.
REACHED = {"gradient": 1e-3, "lagrangian": 1e-8, "newton": 1e-8, "irwls": 1e-5, "sor": 1e-7, "adatron": 1e-7}


def optimum(problem):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return interior_point.solve(problem, tol=1e-10)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_accepted_problem_is_solved_within_the_certificate(kind, name):
    module = by_name(name)
    for seed in (0, 1, 2):
        instance = case(kind, seed)
        if not module.accepts(instance.problem):
            continue
        value = -instance.optimum()
        found = module.solve(instance.problem, tol=REACHED[name], max_iter=30_000)
        assert found.stopped == "converged"
        assert found.relative_gap <= REACHED[name]
        assert found.dual <= value + 1e-7 * abs(value)
        assert found.primal >= value - 1e-7 * abs(value)
        written = instance.primal(found.coefficients, found.bias, **found.multipliers)
        assert written >= found.primal - 1e-9 * abs(value)  # a certificate may be that of a multiple of the function
        if found.relative_gap < 1e-4:
            assert written == pytest.approx(found.primal, rel=1e-9)
        assert max(instance.problem.program().violation(found.variables)) <= 1e-9 * (1 + np.abs(found.variables).sum())


def test_each_is_in_the_catalogue_and_says_where_it_comes_from():
    listed = {record.name: record for record in available()}
    for name in NAMES:
        assert "19" in listed[name].section or "20" in listed[name].section
        assert listed[name].accepts


def test_the_squared_hinge_with_penalised_bias_is_one_problem_to_all_of_them():
    """Row 4 of the acceptance matrix: Lagrangian = interior point = gradient = Newton."""
    problem = case(squared_hinge, 5, n=40, bias="penalised", C=2.0, weighted=False).problem
    reference = optimum(problem)
    for name in NAMES:
        found = by_name(name).solve(problem, tol=REACHED[name], max_iter=30_000)
        assert found.primal == pytest.approx(reference.primal, rel=1.1 * REACHED[name] + 1e-10)


def test_huber_by_its_ridge_is_huber_by_descent():
    """Row 5 of the acceptance matrix: the diagonal of the dual and the loss of the primal are one problem."""
    problem = case(huber, 2, n=40, bias="free").problem
    reference = optimum(problem)
    for name, tol in (("gradient", 1e-5), ("newton", 1e-9), ("irwls", 1e-6)):
        assert by_name(name).solve(problem, tol=tol).primal == pytest.approx(reference.primal, rel=1.1 * tol)


@pytest.mark.parametrize("name", NAMES)
def test_a_warm_start_at_the_optimum_is_seen_at_once(name):
    problem = case(squared_hinge, 2, n=30, bias="none").problem
    start = optimum(problem)
    assert by_name(name).solve(problem, tol=1e-5, start=start).iterations <= 1


@pytest.mark.parametrize("name", NAMES)
def test_limits_and_callbacks_end_a_run_with_a_certificate(name):
    problem = case(c_svc, 0, n=40, C=30.0, bias="none").problem
    if name == "lagrangian":
        problem = case(squared_hinge, 0, n=40, C=30.0, bias="none").problem
    few = by_name(name).solve(problem, tol=1e-12, max_iter=2)
    assert few.stopped == "iterations"
    assert few.iterations == 2
    assert 0.0 < few.gap < np.inf
    monitor = Monitor(callback=lambda record: record.iteration >= 2)
    stopped = by_name(name).solve(problem, tol=1e-12, monitor=monitor)
    assert stopped.stopped == "interrupted"
    assert stopped.history


@pytest.mark.parametrize("name", NAMES)
def test_other_problems_are_refused_with_the_reason(name):
    module = by_name(name)
    assert not module.accepts("a string")
    with_basis = case(semiparametric_svc, 0).problem
    assert not module.accepts(with_basis)
    with pytest.raises(InvalidInput, match="cannot take this problem"):
        module.solve(with_basis)


@pytest.mark.parametrize("name", ["lagrangian", "sor", "adatron"])
def test_a_free_bias_is_refused_where_variables_must_move_alone(name):
    answer = by_name(name).accepts(case(squared_hinge, 0, bias="free").problem)
    assert not answer
    assert "bias" in answer.reason


@pytest.mark.parametrize("name", ["lagrangian", "newton", "irwls"])
def test_a_thin_factor_gives_the_same_machine_without_the_matrix(name):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 4))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=120) > 0, 1.0, -1.0)
    for gram in (Gram(Linear(), X), LowRankGram.from_factors(X)):
        problem = RegularisedRisk(gram, y, SquaredHinge(), 2.0, None, "penalised")
        dense = RegularisedRisk(Gram(Linear(), X, storage="dense"), y, SquaredHinge(), 2.0, None, "penalised")
        found = by_name(name).solve(problem, tol=1e-9)
        assert found.primal == pytest.approx(optimum(dense).primal, rel=2e-9)
        np.testing.assert_allclose(X.T @ found.coefficients, X.T @ optimum(dense).coefficients, atol=1e-3)


def test_points_of_weight_zero_and_duplicates_do_no_harm():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(8, 2)), 2, axis=0)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    y[1], y[0] = -y[0], y[0]
    weights = np.where(np.arange(16) < 12, 1.0, 0.0)
    for bias, names in (("free", ("gradient", "newton", "irwls")), ("none", NAMES)):
        problem = RegularisedRisk(Gram(Linear(), X), y, SquaredHinge(), 1.0, weights, bias)
        reference = optimum(problem)
        for name in names:
            found = by_name(name).solve(problem, tol=1e-4, max_iter=20_000)
            assert found.primal == pytest.approx(reference.primal, rel=1.1e-4)
            assert not found.coefficients[12:].any()


def test_one_point_and_one_class_have_their_optimum():
    one = Gram(Linear(), np.array([[2.0]]))
    for name in NAMES:
        found = by_name(name).solve(RegularisedRisk(one, [1], SquaredHinge(), 1.0, None, "none"), tol=1e-8)
        # min 1/2 w^2 + (1 - 2 w)_+^2 has w = 4/9.
        assert 2.0 * found.coefficients[0] == pytest.approx(4 / 9, rel=1e-4)
    same = Gram(Linear(), np.array([[1.0], [2.0]]))
    for name in ("gradient", "newton", "irwls"):
        found = by_name(name).solve(RegularisedRisk(same, [1, 1], Hinge(), 1.0), tol=1e-8)
        assert not found.coefficients.any()
        assert found.bias == pytest.approx(1.0, abs=1e-6)


def test_targets_inside_the_tube_need_no_function():
    problem = case(eps_svr, 0, n=20, bias="none").problem
    quiet = RegularisedRisk(problem.gram, 0.01 * problem.y, problem.loss, 1.0, None, "none")
    for name in ("gradient", "newton", "irwls", "sor", "adatron"):
        assert not by_name(name).solve(quiet, tol=1e-6).coefficients.any()


def test_nu_problems_go_to_those_that_keep_two_sums():
    gram = case(c_svc, 0).problem.gram
    y = case(c_svc, 0).problem.y
    problem = NuClassification(gram, y, 0.4)
    assert [name for name in NAMES if by_name(name).accepts(problem)] == ["gradient", "newton", "irwls"]
