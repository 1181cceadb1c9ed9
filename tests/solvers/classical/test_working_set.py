"""Algorithm 10.2: the optimum with any size, score and inner solver; what holds after each subset solve."""

from itertools import pairwise

import numpy as np
import pytest
from problems import zoo

from mercer.errors import InvalidInput
from mercer.solvers.classical import working_set
from mercer.solvers.classical.dual import Given
from mercer.solvers.classical.selection import SCORES, balanced
from mercer.solvers.classical.subset import SubsetDual
from mercer.solvers.classical.working_set import FixedSize
from mercer.solvers.quadratic import interior_point

ALL = [zoo.c_svc, zoo.eps_svr, zoo.nu_svc, zoo.nu_svr, zoo.one_class]


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("size", [2, 10, 50, 100])
def test_every_size_reaches_the_optimum_of_the_interior_point_to_1e_6(kind, size):
    problem = zoo.case(kind, 1, n=120, bias="free", C=1.0).problem
    optimum = interior_point.solve(problem, tol=1e-10).primal
    found = working_set.solve(problem, tol=1e-6, size=size)
    assert found.converged
    assert found.dual == pytest.approx(optimum, rel=1e-6)
    assert found.primal == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("score", SCORES)
def test_every_score_reaches_the_optimum(kind, score):
    for bias in ("free", "none"):
        problem = zoo.case(kind, 2, n=60, bias=bias, C=1.0).problem
        optimum = interior_point.solve(problem, tol=1e-10).primal
        found = working_set.solve(problem, tol=1e-6, size=8, score=score)
        assert found.converged
        assert found.primal == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("inner", ["interior_point", "decomposition", "chunking"])
@pytest.mark.parametrize("kind", ALL)
def test_any_solver_serves_inside(kind, inner):
    problem = zoo.case(kind, 3, n=50, bias="free", C=1.0).problem
    optimum = interior_point.solve(problem, tol=1e-10).primal
    found = working_set.solve(problem, tol=1e-6, size=12, inner=inner)
    assert found.converged
    assert found.primal == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("score", SCORES)
def test_the_objective_falls_strictly_with_every_set(kind, score, monkeypatch):
    problem = zoo.case(kind, 4, n=60, bias="free", C=1.0).problem
    values = [problem.program().objective(problem.program().start())]
    optimise = SubsetDual.optimise

    def recorded(self, V, aim, most):
        done = optimise(self, V, aim, most)
        values.append(problem.program().objective(self.flat))
        return done

    monkeypatch.setattr(SubsetDual, "optimise", recorded)
    working_set.solve(problem, tol=1e-4, size=6, score=score)
    assert len(values) > 3
    assert all(later < earlier for earlier, later in pairwise(values))


@pytest.mark.parametrize("kind", ALL)
def test_after_a_subset_is_solved_its_own_conditions_hold(kind):
    """Problem 10.11: with b adjusted the terms of the working set vanish."""
    problem = zoo.case(kind, 5, n=60, bias="free", C=1.0).problem
    dual = FixedSize(Given(problem, 1e-3, None), size=10, score="gap", sticky=0)
    for _ in range(5):
        dual.survey()
        V = balanced(dual, 10, "gap")
        before = problem.program().objective(dual.flat)
        dual.optimise(V, 1e-10, 100_000)
        G, group = dual.gradient(V), dual.group.ravel()[V]
        rise, fall = dual.may_rise()[V], dual.may_fall()[V]
        for g in range(dual.groups):
            low = G[(group == g) & rise].min(initial=np.inf)
            high = G[(group == g) & fall].max(initial=-np.inf)
            assert high - low <= 1e-9
        assert problem.program().objective(dual.flat) <= before
        assert problem.program().violation(dual.flat)[1] < 1e-12 * max(1.0, np.abs(dual.flat).sum())


def test_nonsense_is_refused():
    problem = zoo.case(zoo.c_svc, 1, bias="free").problem
    with pytest.raises(InvalidInput, match="size must be at least 2"):
        working_set.solve(problem, size=1)
    with pytest.raises(InvalidInput, match="score must be one of"):
        working_set.solve(problem, score="largest")
    with pytest.raises(InvalidInput, match="'guess' is not known"):
        working_set.solve(problem, inner="guess")
