"""One variable more at a time than there are equalities: semiparametric machines without a factorisation."""

from dataclasses import replace

import numpy as np
import pytest
from problems.zoo import KINDS, c_svc, case, gaussian

from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import Precomputed
from mercer.losses import Hinge
from mercer.problems import RegularisedRisk
from mercer.solvers import Monitor
from mercer.solvers.classical import smo, tuples
from mercer.solvers.monitor import SILENT
from mercer.svm import SVR

ROWS = [kind for kind in KINDS if "semiparametric" in kind.__name__]
ALL = pytest.mark.parametrize("kind", ROWS, ids=[kind.__name__ for kind in ROWS])


def pairs_as_rows(n=20, seed=0):
    """C-SVC with its sum stated as a general row, and as a group."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    problem = RegularisedRisk(Gram(Precomputed(), gaussian(X)), y, Hinge(), 1.5)
    program = problem.program()
    return replace(program, groups=None, rows=program.equalities), problem


@ALL
def test_the_optimum_is_that_of_an_independent_interior_point_code(kind):
    for seed in range(4):
        stated = case(kind, seed, n=25)
        found = tuples.solve(stated.problem, tol=1e-6)
        optimum = -stated.optimum()
        assert found.converged
        assert found.dual == pytest.approx(optimum, rel=1e-7, abs=1e-7)
        assert found.primal == pytest.approx(optimum, rel=1e-5, abs=1e-5)
        assert found.dual <= optimum + 1e-8 * abs(optimum)
        assert found.primal >= optimum - 1e-8 * abs(optimum)
        box, equality = stated.problem.program().violation(found.variables)
        assert box == 0.0
        assert equality < 1e-9


@ALL
def test_a_step_moves_at_most_one_variable_more_than_there_are_equalities(kind):
    problem = case(kind, 1, n=25).problem
    program = problem.program()
    run = tuples.Tuples(problem, 1e-3, None, SILENT)
    for _ in range(15):
        e = run.steepest()
        assert 0 < np.count_nonzero(e) <= program.d.size + 1
        assert np.abs(program.equalities @ e).max() < 1e-12
        assert np.abs(e).sum() == pytest.approx(1.0)
        assert (e[run.s >= program.upper] <= 0).all()
        assert (e[run.s <= program.lower] >= 0).all()
        before = program.objective(run.s)
        run.step(e)
        assert program.objective(run.s) < before, "the objective falls"
        assert pytest.approx(np.asarray(program.gram.dense()) @ program.coefficients(run.s), abs=1e-10) == run.F


@ALL
def test_the_multipliers_prove_the_violation(kind):
    """G - A'h is at least -v where a variable may rise and at most v where it may fall, and v is the slope of e."""
    problem = case(kind, 2, n=25).problem
    program = problem.program()
    run = tuples.Tuples(problem, 1e-3, None, SILENT)
    for _ in range(10):
        e = run.steepest()
        v, G = 0.5 * run.violation, run.gradient()
        assert -G @ e == pytest.approx(v)
        reduced = G - program.equalities.T @ run.h
        assert reduced[run.s < program.upper].min() >= -v - 1e-9
        assert reduced[run.s > program.lower].max() <= v + 1e-9
        run.step(e)


def test_with_one_equality_it_is_the_maximal_violating_pair():
    for seed in range(4):
        rows, problem = pairs_as_rows(seed=seed)
        for steps in (1, 2, 5, 12):
            ours = tuples.solve(rows, tol=1e-9, max_iter=steps)
            pair = smo.solve(problem, tol=1e-9, max_iter=steps, selection="maximal_pair")
            assert ours.variables == pytest.approx(pair.variables, abs=1e-10)
        exact = tuples.solve(rows, tol=1e-6)
        assert exact.dual == pytest.approx(smo.solve(problem, tol=1e-6).dual, rel=1e-8)


def test_it_goes_on_from_a_start_to_a_gap_and_ends_where_it_is_told():
    problem = case(ROWS[1], 0, n=25).problem
    part = tuples.solve(problem, max_iter=20)
    assert part.stopped == "iterations"
    assert part.iterations == 20
    whole = tuples.solve(problem, start=part, gap_tol=1e-5)
    assert whole.relative_gap <= 1e-5
    with Monitor(callback=lambda record: record.iteration >= 7) as monitor:
        ended = tuples.solve(problem, tol=1e-9, monitor=monitor)
    assert ended.stopped == "interrupted"
    assert ended.gap == pytest.approx(ended.primal - ended.dual)


def test_sums_over_groups_are_refused_and_the_remedy_is_named():
    with pytest.raises(InvalidInput, match="'smo'"):
        tuples.solve(case(c_svc, 0).problem)
    with pytest.raises(InvalidInput, match="tol"):
        tuples.solve(case(ROWS[0], 0).problem, tol=0.0)


def test_a_machine_with_basis_functions_reaches_it_by_name():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(40, 1))
    y = np.sin(2 * X[:, 0]) + X[:, 0]

    def line(Z):
        return Z

    ours = SVR(solver="tuples", basis=line, tol=1e-5).fit(X, y)
    exact = SVR(basis=line, tol=1e-5).fit(X, y)
    assert ours.objective_ == pytest.approx(exact.objective_, rel=1e-5)
