"""Chunking: exact, with minima that never rise, in whatever order violators come; and its sibling with gradients."""

from itertools import pairwise

import numpy as np
import pytest
from problems import zoo

from mercer.errors import BudgetTooSmall, InvalidInput
from mercer.gram import Gram
from mercer.kernels import Gaussian
from mercer.losses import EpsilonInsensitive, Hinge
from mercer.problems import NuClassification, OneClass, RegularisedRisk
from mercer.solvers.classical import chunking, pcg_chunking
from mercer.solvers.classical.chunking import few
from mercer.solvers.quadratic import interior_point

BOTH = [chunking, pcg_chunking]
IDS = ["pairs", "gradients"]


def points(n=240, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.4 * rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y, np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n)


def stated(kind, X, y, t):
    gram = Gram(Gaussian(sigma=1.5), X, precision="float64")
    if kind == "svc":
        return RegularisedRisk(gram, y, Hinge(), 1.0)
    if kind == "svr":
        return RegularisedRisk(gram, t, EpsilonInsensitive(0.2), 1.0)
    return OneClass(gram, 0.2) if kind == "one class" else NuClassification(gram, y, 0.3)


KINDS = ["svc", "svr", "one class", "nu"]


@pytest.mark.parametrize("solver", BOTH, ids=IDS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [5, 60, 1000])
def test_the_hypothesis_is_that_of_training_on_all_points(solver, kind, size):
    problem = stated(kind, *points())
    whole = interior_point.solve(problem, tol=1e-10)
    found = solver.solve(problem, tol=1e-8, size=size)
    assert found.converged
    assert found.primal == pytest.approx(whole.primal, rel=1e-7)
    values = [np.asarray(problem.gram.dot(s.coefficients)) + float(s.bias) for s in (found, whole)]
    assert np.abs(values[0] - values[1]).max() < 1e-3 * max(1.0, np.abs(values[1]).max())


@pytest.mark.parametrize("solver", BOTH, ids=IDS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_minimum_never_rises_from_chunk_to_chunk(solver, kind):
    found = solver.solve(stated(kind, *points()), tol=1e-5, size=10)
    minima = found.details["minima"]
    assert len(minima) > 2
    slack = 1e-12 * abs(minima[-1])
    assert all(later <= earlier + slack for earlier, later in pairwise(minima))


@pytest.mark.parametrize("solver", BOTH, ids=IDS)
def test_an_adversarial_order_ends_at_the_same_optimum(solver):
    """One class after the other, the easiest points first: early chunks have one class only."""
    X, y, t = points()
    order = np.lexsort((-np.abs(X[:, 0]), y))
    problem = stated("svc", X[order], y[order], t[order])
    optimum = interior_point.solve(problem, tol=1e-10).primal
    for size in (2, 20):
        found = solver.solve(problem, tol=1e-6, size=size, order="given")
        assert found.converged
        assert found.primal == pytest.approx(optimum, rel=1e-7)


@pytest.mark.parametrize("kind", KINDS[:2])
def test_the_support_vectors_alone_give_the_solution_of_all_points(kind):
    X, y, t = points()
    found = chunking.solve(stated(kind, X, y, t), tol=1e-7)
    kept = np.flatnonzero(found.coefficients)
    assert kept.size < len(X)
    again = chunking.solve(stated(kind, X[kept], y[kept], t[kept]), tol=1e-7)
    assert again.dual == pytest.approx(found.dual, rel=1e-8)
    assert np.abs(again.coefficients - found.coefficients[kept]).max() < 1e-4


def test_no_chunk_is_larger_than_the_variables_that_are_not_zero_and_those_that_join():
    found = chunking.solve(stated("svc", *points()), tol=1e-4, size=10)
    assert found.details["largest_chunk"] <= np.count_nonzero(found.variables) + 40


def test_a_chunk_that_does_not_fit_is_refused_with_a_remedy():
    with pytest.raises(BudgetTooSmall, match="working_set"):
        chunking.solve(stated("svc", *points()), memory="10 KiB")


def test_a_start_of_few_variables_is_feasible():
    for kind in (zoo.one_class, zoo.nu_svc, zoo.nu_svr, zoo.c_svc):
        for seed in range(4):
            program = zoo.case(kind, seed, n=30).problem.program()
            s = few(program)
            assert program.violation(s) == pytest.approx((0.0, 0.0), abs=1e-12 * max(1.0, np.abs(s).sum()))
            assert np.count_nonzero(s) <= np.count_nonzero(program.start())


def test_nonsense_is_refused():
    problem = stated("svc", *points(20))
    with pytest.raises(InvalidInput, match="order must be"):
        chunking.solve(problem, order="random")
    with pytest.raises(InvalidInput, match="size must be at least 2"):
        chunking.solve(problem, size=1)
