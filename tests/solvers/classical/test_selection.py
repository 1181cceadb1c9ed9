"""Scores and balanced sets: what they add up to, and that a set can always move (LwK section 10.4.3)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import zoo

from mercer.errors import InvalidInput
from mercer.solvers.classical.dual import ClassicalDual, Given
from mercer.solvers.classical.selection import SCORES, balanced, checked_score, violation_scores
from mercer.solvers.classical.svmlight import steepest
from mercer.solvers.quadratic import interior_point


def somewhere(kind, seed, n=30, bias="free"):
    """A random feasible point of a problem, as the solvers hold it."""
    problem = zoo.case(kind, seed, n=n, bias=bias).problem
    program, rng = problem.program(), np.random.default_rng(seed + 100)
    low, high = np.maximum(program.lower, -3.0), np.minimum(program.upper, 3.0)
    s = np.where(rng.uniform(size=program.size) < 0.4, rng.uniform(low, high), 0.0)
    dual = ClassicalDual(Given(problem, 1e-3, program.project(s)))
    dual.survey()
    return problem, dual


@pytest.mark.parametrize("kind", [zoo.c_svc, zoo.eps_svr, zoo.nu_svc, zoo.nu_svr, zoo.one_class])
@pytest.mark.parametrize("seed", range(4))
def test_the_gap_scores_add_up_to_the_gap_and_the_others_bound_them(kind, seed):
    problem, dual = somewhere(kind, seed)
    program = problem.program()
    certificate = problem.certificate(dual.flat)
    h = certificate.h[program.groups]
    excess = dual.gradient() - h
    up, down = program.upper - dual.flat, dual.flat - program.lower
    gap = violation_scores(excess, up, down, "gap")
    assert gap.sum() == pytest.approx(certificate.gap, rel=1e-9)
    width = program.upper - program.lower
    assert (width * violation_scores(excess, up, down, "gradient") >= gap - 1e-12).all()
    assert (np.abs(excess) * violation_scores(excess, up, down, "multiplier") >= gap - 1e-12).all()


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("kind", [zoo.c_svc, zoo.eps_svr, zoo.nu_svc, zoo.nu_svr, zoo.one_class, zoo.squared_hinge])
@pytest.mark.parametrize("size", [2, 4, 10])
def test_a_balanced_set_always_admits_a_move_that_lowers_the_objective(score, kind, size):
    for seed in range(3):
        _, dual = somewhere(kind, seed)
        V = balanced(dual, size, score)
        assert V.size == np.unique(V).size
        assert V.size <= max(size, 2 * dual.groups)
        G = dual.G.ravel()
        rise, fall = dual.may_rise(), dual.may_fall()
        slopes = [
            G[j] - G[i] for i in V for j in V if rise[i] and fall[j] and dual.group.ravel()[i] == dual.group.ravel()[j]
        ]
        assert max(slopes) == pytest.approx(dual.violation)  # the pair at the thresholds is there
        assert max(slopes) > 0


@pytest.mark.parametrize("score", SCORES)
def test_without_a_sum_the_largest_scores_are_taken(score):
    _, dual = somewhere(zoo.c_svc, 1, bias="none")
    found = violation_scores(dual.G.ravel(), dual.upper.ravel() - dual.flat, dual.flat - dual.lower.ravel(), score)
    V = balanced(dual, 5, score)
    worst = np.argmax(np.where(found > 0, np.abs(dual.G.ravel()), 0.0))
    assert V[0] == worst
    rest = np.delete(found, worst)
    assert sorted(found[V[1:]]) == pytest.approx(sorted(rest)[-4:])


@pytest.mark.parametrize("kind", [zoo.c_svc, zoo.eps_svr, zoo.nu_svc])
def test_all_scores_vanish_at_the_optimum(kind):
    problem = zoo.case(kind, 1, n=30, bias="free").problem
    program, found = problem.program(), interior_point.solve(problem, tol=1e-12)
    s = np.asarray(found.variables)
    h = problem.certificate(s).h[program.groups]
    excess = program.gradient(s) - h
    up, down = program.upper - s, s - program.lower
    assert violation_scores(excess, up, down, "gap").max() < 1e-8
    near = 1e-6
    moved = np.where(up < near, 0.0, up), np.where(down < near, 0.0, down)
    assert violation_scores(excess, *moved, "gradient").max() < 1e-5
    settled = np.where(np.abs(excess) < 1e-5, 0.0, excess)
    assert violation_scores(settled, *moved, "multiplier").max() == 0.0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([2, 4, 6]))
def test_the_gradient_rule_is_the_gradient_score_on_each_side(seed, size):
    """Problem 10.13: the top q/2 of (10.60) on each side of b, as long as both sides have so many violators."""
    _, dual = somewhere(zoo.c_svc, seed)
    V = steepest(dual, size)
    G = dual.G.ravel()
    level = 0.5 * (dual.extremes[0, 0] + dual.extremes[0, 2])
    found = violation_scores(G - level, dual.upper.ravel() - dual.flat, dual.flat - dual.lower.ravel(), "gradient")
    rising, falling = np.flatnonzero((found > 0) & (level > G)), np.flatnonzero((found > 0) & (level < G))
    if min(rising.size, falling.size) < size // 2:
        return
    best = [side[np.argsort(-found[side])[: size // 2]] for side in (rising, falling)]
    assert set(V) == set(np.concatenate(best))


def test_an_unknown_score_is_refused():
    with pytest.raises(InvalidInput, match="gap, gradient, multiplier"):
        checked_score("size")
