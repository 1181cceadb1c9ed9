"""The state that classical solvers share: outputs from differences, thresholds, shrinking, and the engine around it."""

import signal
from itertools import pairwise

import numpy as np
import pytest
from problems import zoo

from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import Gaussian
from mercer.losses import Hinge
from mercer.problems import RegularisedRisk
from mercer.solvers import Monitor, by_name, catalogue
from mercer.solvers.classical import dual as dual_module
from mercer.solvers.classical import svmlight
from mercer.solvers.classical.dual import ClassicalDual, Given

CLASSICAL = [name for name, module in catalogue.MODULES.items() if module.startswith("classical.")]
MINE = ["chunking", "osuna", "pcg_chunking", "svmlight", "svmtorch", "working_set"]


def labelled(n=300, seed=0, precision="float64"):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    return RegularisedRisk(Gram(Gaussian(sigma=1.5), X, precision=precision), y, Hinge(), 1.0)


def state(problem, **options):
    return ClassicalDual(Given(problem, 1e-3, None, **options))


@pytest.mark.parametrize("bias", zoo.BIASES)
def test_outputs_follow_any_sequence_of_moves(bias):
    problem = zoo.case(zoo.eps_svr, 3, n=30, bias=bias).problem
    program, dual = problem.program(), state(problem)
    rng = np.random.default_rng(0)
    for _ in range(200):
        some = rng.choice(dual.N, 4, replace=False)
        dual.move(some, rng.uniform(program.lower[some], program.upper[some]))
    assert np.abs(dual._f0() - np.asarray(program.gram.dot(problem.coefficients(dual.flat)))).max() < 1e-8
    assert np.allclose(dual.gradient(), program.gradient(dual.flat))
    assert dual.objective() == pytest.approx(program.objective(dual.flat))


def test_drift_of_outputs_stays_below_1e_8_and_a_refresh_takes_it_away(monkeypatch):
    problem = labelled(100, precision="float64")
    dual = state(problem)
    rng = np.random.default_rng(1)
    for _ in range(3000):
        pair = rng.choice(100, 2, replace=False)
        dual.move(pair, rng.uniform(problem.program().lower[pair], problem.program().upper[pair]))
    exact = np.asarray(problem.gram.dot(dual.coefficients()))
    assert 0.0 < np.abs(dual.F - exact).max() < 1e-8
    assert dual.updates == 6000
    dual.recompute()
    assert dual.updates == 0
    assert np.abs(dual.F - exact).max() < 1e-12
    refreshed = []
    monkeypatch.setattr(dual_module, "REFRESH", 50)
    monkeypatch.setattr(ClassicalDual, "recompute", lambda self: refreshed.append(self) or setattr(self, "updates", 0))
    svmlight.solve(labelled(100))
    assert len(refreshed) >= 2


def test_thresholds_are_the_extremes_of_those_that_may_move():
    problem = zoo.case(zoo.nu_svc, 2, n=40).problem
    dual = state(problem)
    violation = dual.thresholds()
    program = problem.program()
    G = program.gradient(dual.flat)
    widest = []
    for g in range(2):
        own = program.groups == g
        low = G[own & (dual.flat < program.upper)].min()
        high = G[own & (dual.flat > program.lower)].max()
        assert dual.extremes[g, 0] == pytest.approx(low)
        assert dual.extremes[g, 2] == pytest.approx(high)
        widest.append(high - low)
    assert violation == pytest.approx(max(widest))


def test_shrunk_variables_stay_and_come_back_with_right_outputs():
    problem = labelled(120)
    dual = state(problem, memory=40 * 120 * 8)
    rng = np.random.default_rng(2)
    dual.move(np.arange(60), rng.uniform(problem.program().lower[:60], problem.program().upper[:60]))
    out = np.zeros(120, dtype=bool)
    out[::3] = True
    before = dual.objective()
    dual.shrink(out)
    kept = dual.flat[out].copy()
    left = np.flatnonzero(~out)
    lower, upper = dual._program()[2].ravel(), dual._program()[3].ravel()
    assert (lower[out] == upper[out]).all()
    assert not dual.may_rise()[out].any()
    dual.move(left[:10], np.zeros(10))
    assert np.allclose(dual.F[left], np.asarray(problem.gram.dot(dual.coefficients()))[left])
    assert dual.objective() == pytest.approx(problem.program().objective(dual.flat))
    assert dual.objective() != before
    dual.unshrink()
    assert np.array_equal(dual.flat[out], kept)
    assert np.allclose(dual.F, np.asarray(problem.gram.dot(dual.coefficients())))


@pytest.mark.parametrize("name", MINE)
def test_float32_values_end_with_a_certificate_that_holds_in_float64(name):
    problem = labelled(300, seed=3, precision="float32")
    exact = labelled(300, seed=3)
    found = by_name(name).solve(problem, tol=1e-4)
    optimum = by_name("interior_point").solve(exact).primal
    assert found.converged
    assert found.dual <= optimum <= found.primal
    direct = exact.certificate(np.asarray(found.variables))
    assert found.gap >= direct.gap * (1 - 1e-9)


@pytest.mark.parametrize("name", MINE)
def test_limits_end_with_the_best_so_far_and_its_certificate(name):
    problem = labelled(300)
    optimum = by_name("interior_point").solve(problem).primal
    few = by_name(name).solve(problem, tol=1e-6, max_iter=5)
    assert few.stopped == "iterations"
    late = by_name(name).solve(problem, tol=1e-9, monitor=Monitor(time_limit=0.0))
    assert late.stopped == "time"
    for found in (few, late):
        assert found.dual <= optimum <= found.primal
        assert problem.program().violation(found.variables)[0] == 0.0


@pytest.mark.parametrize("name", MINE)
def test_a_warm_start_at_the_optimum_needs_next_to_nothing(name):
    problem = labelled(300)
    cold = by_name(name).solve(problem, tol=1e-4)
    warm = by_name(name).solve(problem, tol=1e-3, start=cold)
    assert warm.converged
    assert warm.iterations == 0
    assert warm.dual == pytest.approx(cold.dual, rel=1e-9)


@pytest.mark.parametrize("name", MINE)
def test_history_falls_towards_the_optimum_and_a_callback_may_stop(name):
    problem = labelled(200)
    seen = []
    found = by_name(name).solve(problem, tol=1e-3, monitor=Monitor(callback=lambda record: seen.append(record)))
    assert len(seen) >= 2
    duals = [record.dual for record in seen]
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(duals))
    assert found.history[-1].dual == found.dual
    stopped = by_name(name).solve(problem, tol=1e-9, monitor=Monitor(callback=lambda record: True))
    assert stopped.stopped == "interrupted"


def test_ctrl_c_ends_with_the_best_so_far():
    problem = labelled(200)
    with Monitor(callback=lambda record: signal.raise_signal(signal.SIGINT)) as monitor:
        found = svmlight.solve(problem, tol=1e-9, monitor=monitor)
    assert found.stopped == "interrupted"
    assert np.isfinite(found.gap)


def test_a_checkpoint_is_taken_up(tmp_path):
    problem = labelled(200)
    path = tmp_path / "fit.npz"
    early = Monitor(checkpoint=path, every=0.0, callback=lambda record: record.iteration > 100)
    first, seen = svmlight.solve(problem, tol=1e-6, monitor=early), []
    assert first.stopped == "interrupted"
    again = svmlight.solve(problem, tol=1e-6, monitor=Monitor(checkpoint=path, callback=seen.append))
    assert again.converged
    assert seen[0].dual == pytest.approx(first.dual, rel=1e-9)


@pytest.mark.parametrize("name", CLASSICAL)
def test_nonsense_is_refused(name):
    module, problem = by_name(name), labelled(20)
    if module.accepts(problem):
        with pytest.raises(InvalidInput, match="tol must be positive"):
            module.solve(problem, tol=0.0)
        with pytest.raises(InvalidInput, match="start has shape"):
            module.solve(problem, start=np.zeros(3))
    assert "quadratic programs" in module.accepts("no problem").reason


@pytest.mark.parametrize("name", MINE)
def test_a_gap_may_be_asked_for_in_place_of_a_violation(name):
    found = by_name(name).solve(labelled(150), tol=0.1, gap_tol=1e-6)
    assert found.converged
    assert found.relative_gap <= 1e-6
