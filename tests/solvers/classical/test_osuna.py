"""Osuna's decomposition: its two sums, its scan, and that every set raises the dual."""

from itertools import pairwise

import numpy as np
import pytest
from problems import zoo

from mercer.errors import InvalidInput
from mercer.solvers.classical import osuna
from mercer.solvers.classical.dual import Given
from mercer.solvers.classical.osuna import AT_ONCE, Scanning
from mercer.solvers.classical.subset import SubsetDual
from mercer.solvers.quadratic import interior_point

ALL = [zoo.c_svc, zoo.eps_svr, zoo.nu_svc, zoo.nu_svr, zoo.one_class, zoo.squared_hinge]


def scanning(problem, **options):
    settings = {"size": 20, "lookahead": 30, "newlimit": 10, **options}
    dual = Scanning(Given(problem, 1e-3, None), **settings)
    dual.survey()
    return dual


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("bias", ["free", "none"])
def test_small_sets_and_short_scans_reach_the_optimum(kind, bias):
    problem = zoo.case(kind, 1, n=100, bias=bias, C=1.0).problem
    optimum = interior_point.solve(problem, tol=1e-10).primal
    found = osuna.solve(problem, tol=1e-6, size=20, lookahead=15, newlimit=6)
    assert found.converged
    assert found.primal == pytest.approx(optimum, rel=1e-6)
    assert found.details["examined"] >= problem.program().size


@pytest.mark.parametrize("kind", ALL)
def test_the_kept_sum_is_that_of_the_variables_at_their_bounds(kind):
    problem = zoo.case(kind, 2, n=80, bias="free", C=0.5).problem
    dual = scanning(problem)
    for _ in range(4):
        dual.advance(1e-4, 10_000)
        dual.survey()
        at = (dual.flat <= dual.lower.ravel()) | (dual.flat >= dual.upper.ravel())
        bounded = problem.program().coefficients(np.where(at, dual.flat, 0.0))
        assert np.allclose(dual.B, np.asarray(problem.gram.dot(bounded)), atol=1e-10)
        assert np.allclose(dual.F, np.asarray(problem.gram.dot(dual.coefficients())), atol=1e-10)


def test_the_kept_sum_changes_only_when_a_variable_reaches_or_leaves_its_bound():
    problem = zoo.case(zoo.c_svc, 2, n=80, bias="free", C=0.5).problem
    dual = scanning(problem)
    dual.advance(1e-4, 10_000)
    inside = np.flatnonzero((dual.flat > dual.lower.ravel()) & (dual.flat < dual.upper.ravel()))[:2]
    before, changes = dual.B.copy(), dual.bound_changes
    dual.move(inside, dual.flat[inside] + np.array([1e-3, -1e-3]))
    assert np.array_equal(dual.B, before)
    assert dual.bound_changes == changes
    dual.move(inside[:1], dual.upper.ravel()[inside[:1]])
    assert dual.bound_changes == changes + 1
    assert not np.array_equal(dual.B, before)


@pytest.mark.parametrize("kind", ALL)
def test_the_dual_rises_strictly_with_every_set_that_has_a_violator(kind, monkeypatch):
    problem = zoo.case(kind, 3, n=80, bias="free", C=1.0).problem
    values = []
    optimise = SubsetDual.optimise

    def recorded(self, V, aim, most):
        done = optimise(self, V, aim, most)
        if done:
            values.append(-problem.program().objective(self.flat))
        return done

    monkeypatch.setattr(SubsetDual, "optimise", recorded)
    osuna.solve(problem, tol=1e-4, size=20, lookahead=30, newlimit=10)
    assert len(values) > 2
    assert all(later > earlier for earlier, later in pairwise(values))


def test_a_scan_stops_at_lookahead_at_newlimit_or_after_all():
    problem = zoo.case(zoo.c_svc, 4, n=700, bias="free", C=1.0).problem
    dual = scanning(problem, size=60, lookahead=AT_ONCE, newlimit=50)
    dual.W = np.arange(10)
    dual.look(np.arange(700))
    found = dual.scan(1e-3)
    assert 0 < found.size <= 50
    assert dual.examined <= AT_ONCE
    where = dual.next
    assert dual.next == dual.examined  # the next scan goes on from there
    dual.scan(1e-3)
    assert dual.next != where
    before = dual.examined
    assert dual.scan(1e9).size == 0  # nobody violates by so much: all are looked at
    assert dual.examined - before == dual.N


def test_nonsense_is_refused():
    problem = zoo.case(zoo.c_svc, 1, bias="free").problem
    with pytest.raises(InvalidInput, match="newlimit must be"):
        osuna.solve(problem, size=10, newlimit=10)
    with pytest.raises(InvalidInput, match="lookahead must be positive"):
        osuna.solve(problem, lookahead=0)
