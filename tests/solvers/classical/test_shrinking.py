"""Look counts and sticky flags, and that shrinking changes no answer."""

import numpy as np
import pytest
from problems import zoo

from mercer.solvers.classical import svmlight, working_set
from mercer.solvers.classical.shrinking import MOST, LookCounts, StickyFlags


def test_a_variable_is_ripe_after_so_many_content_looks_in_a_row():
    counts = LookCounts(4, looks=3)
    content = np.array([True, True, False, False])
    assert not counts.look(content).any()
    assert not counts.look(np.array([True, False, False, False])).any()  # the second starts again
    assert counts.look(content).tolist() == [True, False, False, False]
    counts.forget()
    assert not counts.look(content).any()


def test_no_more_than_a_share_of_those_left_leaves_at_a_look():
    counts = LookCounts(10, looks=1)
    ripe = counts.look(np.ones(10, dtype=bool))
    assert np.count_nonzero(ripe) == int(MOST * 10)
    again = counts.look(np.ones(10, dtype=bool), ripe)
    assert not (again & ripe).any()
    assert np.count_nonzero(again) == int(MOST * 5)


def test_a_flag_sticks_for_so_many_rounds():
    flags = StickyFlags(2, length=2)
    judged, nobody = np.array([True, False]), np.zeros(2, dtype=bool)
    flags.round(judged)
    seen = [flags.stuck.tolist()]
    for _ in range(3):
        flags.round(nobody)
        seen.append(flags.stuck.tolist())
    assert seen == [[True, False], [True, False], [False, False], [False, False]]
    flags.round(judged)
    flags.release()
    assert not flags.stuck.any()


@pytest.mark.parametrize("kind", [zoo.c_svc, zoo.eps_svr, zoo.nu_svc, zoo.nu_svr, zoo.one_class])
@pytest.mark.parametrize("looks", [1, 3])
def test_shrinking_does_not_change_the_objective(kind, looks):
    for seed in range(3):
        problem = zoo.case(kind, seed, n=60, bias="free").problem
        with_it = svmlight.solve(problem, tol=1e-6, size=4, looks=looks)
        without = svmlight.solve(problem, tol=1e-6, size=4, shrinking=False)
        assert with_it.converged
        assert with_it.dual == pytest.approx(without.dual, rel=1e-8, abs=1e-8)
        assert with_it.details["violation"] <= 1e-6  # of all variables, looked at again


@pytest.mark.parametrize("sticky", [1, 5])
def test_sticky_flags_do_not_change_the_objective(sticky):
    problem = zoo.case(zoo.c_svc, 1, n=60, bias="free").problem
    plain = working_set.solve(problem, tol=1e-6, size=6)
    flagged = working_set.solve(problem, tol=1e-6, size=6, sticky=sticky)
    assert flagged.converged
    assert flagged.dual == pytest.approx(plain.dual, rel=1e-8)
