"""SVMLight's direction against brute force, its final check, and SVMTorch's rule for the two sides of a tube."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import zoo

from mercer.errors import InvalidInput
from mercer.solvers.classical import svmlight, svmtorch
from mercer.solvers.classical.dual import Given
from mercer.solvers.classical.subset import SubsetDual
from mercer.solvers.classical.svmlight import SteepestDirection, steepest
from mercer.solvers.classical.svmtorch import OneSideOfTheTube
from mercer.solvers.quadratic import interior_point


def state(problem, size=4, kind=SteepestDirection):
    program, rng = problem.program(), np.random.default_rng(7)
    s = program.project(np.where(rng.uniform(size=program.size) < 0.5, rng.uniform(program.lower, program.upper), 0.0))
    dual = kind(Given(problem, 1e-3, s), size=size, looks=None, final_check=True)
    dual.survey()
    return dual


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([2, 4]))
def test_the_direction_is_the_steepest_of_all_with_so_many_entries(seed, size):
    dual = state(zoo.case(zoo.c_svc, seed, n=8, bias="free").problem, size)
    G, rise, fall = dual.G.ravel(), dual.may_rise(), dual.may_fall()
    best = 0.0
    for half in range(1, size // 2 + 1):
        for up in combinations(np.flatnonzero(rise), half):
            rest = [j for j in np.flatnonzero(fall) if j not in up]
            for down in combinations(rest, half):
                best = max(best, float(G[list(down)].sum() - G[list(up)].sum()))
    V = steepest(dual, size)
    assert V.size <= size
    # Members alternate: one that rises, one that falls.
    assert float(G[V[1::2]].sum() - G[V[::2]].sum()) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("size", [2, 10, 40])
@pytest.mark.parametrize("kind", [zoo.c_svc, zoo.eps_svr, zoo.nu_svc, zoo.nu_svr, zoo.one_class])
@pytest.mark.parametrize("solver", [svmlight, svmtorch])
def test_every_size_reaches_the_optimum(solver, kind, size):
    problem = zoo.case(kind, 1, n=80, bias="free", C=1.0).problem
    optimum = interior_point.solve(problem, tol=1e-10).primal
    found = solver.solve(problem, tol=1e-6, size=size, looks=2)
    assert found.converged
    assert found.primal == pytest.approx(optimum, rel=1e-6)


def test_without_the_final_check_the_certificate_tells_what_was_missed():
    missed = []
    for seed in range(12):
        problem = zoo.case(zoo.eps_svr, seed, n=80, bias="free", C=5.0).problem
        checked = svmlight.solve(problem, tol=1e-5, size=2, looks=1)
        unchecked = svmlight.solve(problem, tol=1e-5, size=2, looks=1, final_check=False)
        assert checked.details["violation_of_all"] <= 1e-5
        assert unchecked.primal >= checked.dual - 1e-9
        assert unchecked.gap >= 0.0
        missed.append(unchecked.details["violation_of_all"])
    assert max(missed) > 1e-4  # it does happen, and it is told


def test_svmtorch_never_has_both_sides_of_a_tube(monkeypatch):
    problem = zoo.case(zoo.eps_svr, 2, n=80, bias="free", C=1.0).problem
    optimise = SubsetDual.optimise

    def watched(self, V, aim, most):
        assert np.unique(self.point(V)).size == V.size
        done = optimise(self, V, aim, most)
        assert not (self.s != 0.0).all(axis=0).any()
        return done

    monkeypatch.setattr(SubsetDual, "optimise", watched)
    found = svmtorch.solve(problem, tol=1e-5, size=6)
    assert found.converged


def test_svmtorch_takes_the_side_that_must_return_to_zero_first():
    problem = zoo.case(zoo.eps_svr, 3, n=20, bias="free", C=1.0).problem
    dual = state(problem, 2, OneSideOfTheTube)
    dual.flat[:] = 0.0
    dual.flat[dual.n] = dual.lower.ravel()[dual.n] / 2  # alpha* of point 0
    dual.F[:] = 0.0
    dual.F[0] = -50.0  # the point wants to rise most
    dual.thresholds()
    assert dual.n in dual.choose()
    assert 0 not in dual.choose()


@pytest.mark.parametrize("solver", [svmlight, svmtorch])
def test_odd_sets_are_refused(solver):
    with pytest.raises(InvalidInput, match="size must be even"):
        solver.solve(zoo.case(zoo.c_svc, 1).problem, size=3)
