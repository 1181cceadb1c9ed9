"""Points left out of rounds are looked at again: the optimum is that of a search that leaves nothing out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer.gram import Gram
from mercer.kernels import Gaussian
from mercer.losses import EpsilonInsensitive, Hinge, SquaredHinge
from mercer.problems import RegularisedRisk
from mercer.solvers.monitor import SILENT, Monitor
from mercer.solvers.quadratic import decomposition, shrinking
from mercer.solvers.quadratic.decomposition import GroupSums
from mercer.solvers.working_sets import Search


def problem_of(loss, n=5000, C=5.0, **given):
    random = np.random.default_rng(2)
    X = random.normal(size=(n, 6))
    y = X[:, 0] * X[:, 1] + 0.2 * random.normal(size=n)
    if not isinstance(loss, EpsilonInsensitive):
        y = np.where(y > 0, 1.0, -1.0)
    return RegularisedRisk(Gram(Gaussian(sigma=1.5), X, access="rows"), y, loss, C, **given)


def searched(problem, shrinks, tol=1e-3):
    strategy = GroupSums(problem, tol, None, shrinks=shrinks)
    solution = Search(strategy, tol=tol, gap_tol=None, monitor=SILENT, seed=0).run()
    return strategy, solution


LOSSES = [Hinge(), SquaredHinge(), EpsilonInsensitive(0.3)]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
def test_the_optimum_is_that_of_a_search_that_leaves_nothing_out(loss, bias):
    problem = problem_of(loss, bias=bias)
    _, plain = searched(problem, shrinks=False)
    strategy, found = searched(problem, shrinks=True)
    assert found.stopped == plain.stopped == "converged"
    assert found.details["violation"] <= 1e-3
    assert abs(found.dual - plain.dual) <= found.gap + plain.gap
    assert strategy.focus is None
    assert_allclose(found.details["f0"], strategy.gram.exact_dot(None, None, found.coefficients), atol=2e-3)


def test_fewer_kernel_values_are_computed():
    problem = problem_of(Hinge(), n=12_000, C=1.0)
    _, plain = searched(problem, shrinks=False)
    _, found = searched(problem, shrinks=True)
    assert found.details["kernel_values"] < 0.95 * plain.details["kernel_values"]


def test_all_outputs_are_there_whenever_somebody_asks():
    problem = problem_of(Hinge())
    strategy = GroupSums(problem, 1e-3, None, shrinks=True)
    search = Search(strategy, tol=1e-3, gap_tol=None, monitor=SILENT, seed=0)
    seen = []
    survey = strategy.survey

    def watched():
        survey()
        if strategy.focus is not None:
            value = strategy.objective()
            missed = strategy.focus.missed.copy()
            exact = strategy.gram.exact_dot(None, None, strategy.coefficients())
            assert_allclose(strategy.expansion(), exact, atol=2e-3)
            assert_array_equal(strategy.focus.missed, missed)
            whole = 0.5 * strategy.coefficients() @ exact + np.vdot(strategy.linear, strategy.s)
            assert value == pytest.approx(whole, rel=1e-5)
            seen.append(np.count_nonzero(missed))

    strategy.survey = watched
    search.run()
    assert seen
    assert max(seen) > 0


class Reporting(Monitor):
    """Asks for a report in some of the rounds, as the clock of a busy machine would."""

    def __init__(self, rounds):
        super().__init__(catch_interrupt=False)
        self.rounds, self.asked = rounds, 0

    def due(self, reported):
        self.asked += 1
        return self.asked in self.rounds


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_reports_change_nothing_of_what_comes_out(loss):
    """When a report is due is a matter of the clock: the same problem must give the same bits all the same."""
    found = []
    for rounds in ((), range(3, 100, 2), range(100)):
        strategy = GroupSums(problem_of(loss), 1e-3, None, shrinks=True)
        listener = Reporting(rounds)
        solution = Search(strategy, tol=1e-3, gap_tol=None, monitor=listener, seed=0).run()
        found.append((solution, len(listener.history)))
    (plain, silent), *others = found
    for other, heard in others:
        assert heard > silent
        assert_array_equal(other.variables, plain.variables)
        assert_array_equal(other.details["f0"], plain.details["f0"])
        assert (other.primal, other.dual) == (plain.primal, plain.dual)
        assert other.details["kernel_values"] == plain.details["kernel_values"]


def test_points_that_may_move_are_those_inside_the_interval_of_violating_pairs():
    G = np.array([[-2.0, -0.5, 0.5, 2.0, -2.0, 2.0, 0.0]])
    s = np.array([[0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.5]])
    program = (np.zeros((1, 7)), np.zeros((1, 7)), np.zeros((1, 7)), np.ones((1, 7)), np.zeros((1, 7), np.intp))
    extremes = np.array([[-1.0, 0.0, 1.0, 0.0]])  # smallest gradient that may rise, largest that may fall
    out = np.empty(7, np.intp)
    count = shrinking.may_move(G, s, program, extremes, 2.0, out)
    # May rise below 1: 0, 1 and 6; may fall above -1: 2, 3 and 6.  At the upper bound below, or the lower above: never.
    assert out[:count].tolist() == [0, 1, 2, 3, 6]


def test_a_limited_memory_or_stored_values_leave_nothing_out():
    random = np.random.default_rng(0)
    X = random.normal(size=(5000, 100))
    gram = Gram(Gaussian(sigma=1.0), X, access="rows")
    assert shrinking.can_shrink(gram, 5000)
    assert not shrinking.can_shrink(gram, 1000)
    assert not shrinking.can_shrink(Gram(Gaussian(sigma=1.0), X[:4200], storage="dense"), 4200)
    tight = Gram(Gaussian(sigma=1.0), X, access="rows", memory="9 MiB")
    assert not shrinking.can_shrink(tight, 5000)


def test_searches_to_a_gap_leave_nothing_out(monkeypatch):
    seen = []
    monkeypatch.setattr(decomposition, "Active", lambda *given: seen.append(given))
    decomposition.solve(problem_of(Hinge()), tol=1e-3, gap_tol=1e-3)
    assert not seen
