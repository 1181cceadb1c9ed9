"""The engine of working sets solves whatever states its violations, its inner step and its certificate."""

import numpy as np
import pytest

from mercer.gram import Gram
from mercer.kernels import Gaussian
from mercer.losses import Hinge
from mercer.problems import RegularisedRisk
from mercer.problems.certificate import Certificate, Uncertainty
from mercer.solvers import Monitor, working_sets
from mercer.solvers.monitor import SILENT
from mercer.solvers.quadratic import decomposition, interior_point
from mercer.solvers.verification import predicted, sampled
from mercer.solvers.working_sets import Patience, Search


class NewtonInABox:
    """A new machine in a few lines: minimise 1/2 c'Kc - y'c, 0 <= y c <= C, by projected Newton steps on a set."""

    name = "Newton in a box"
    largest_set = 512
    finishes = False
    exact = True

    def __init__(self, gram, y, C):
        self.gram, self.y, self.C, self.n = gram, y, C, len(y)
        self.diagonal = np.asarray(gram.diagonal(), dtype=np.float64)
        self.c, self.F = np.zeros(self.n), np.zeros(self.n)
        self.violation, self.kernel_values, self.sets = np.inf, 0, []

    def _inside(self, alpha):
        return (alpha > 0.0) & (alpha < self.C)

    def survey(self):
        slope, alpha = self.y * self.F - 1.0, self.y * self.c
        self.each = np.maximum(np.where(alpha < self.C, -slope, 0.0), np.where(alpha > 0.0, slope, 0.0))
        self.violation = float(self.each.max())

    def distances(self):
        return (self.violation,)

    def objective(self):
        return 0.5 * self.c @ self.F - self.y @ self.c

    def violators(self):
        return np.flatnonzero(self.each > 0.1 * self.violation)

    def counterparts(self):
        return np.empty(0, dtype=np.intp)

    def worst(self):
        return np.array([self.each.argmax()])

    def free(self, points):
        return self._inside((self.y * self.c)[points])

    def at_once(self):
        return False

    def goes_whole(self, short, steps):
        return False

    def solve(self, W, tol, most):
        W = np.arange(self.n) if W is None else W
        self.sets.append(W.size)
        Q = self.y[W, None] * np.asarray(self.gram.block(W, W), dtype=np.float64) * self.y[W]
        alpha, slope = self.y[W] * self.c[W], self.y[W] * self.F[W] - 1.0
        start, steps, left = alpha.copy(), 0, np.inf
        while steps < most:
            moves = np.where(slope < 0.0, alpha < self.C, alpha > 0.0)
            left = float(np.abs(slope[moves]).max(initial=0.0))
            if left <= tol or steps == 100:
                break
            newton = np.linalg.solve(Q[np.ix_(moves, moves)] + 1e-3 * np.eye(moves.sum()), slope[moves])
            for rate in 0.5 ** np.arange(30):
                along = np.zeros(W.size)
                along[moves] = np.clip(alpha[moves] - rate * newton, 0.0, self.C) - alpha[moves]
                if slope @ along + 0.5 * along @ Q @ along < 1e-4 * slope @ along:
                    break
            alpha, slope = alpha + along, slope + Q @ along
            steps += 1
        change = self.y[W] * (alpha - start)
        self.c[W] += change
        self.F += self.gram.columns_dot(W, change)
        self.kernel_values += W.size * (W.size + self.n)
        return steps, left

    def settle(self):
        return False

    def certificate(self, aim=None, uncertainty: Uncertainty | None = None):
        slope, alpha = self.y * self.F - 1.0, self.y * self.c
        terms = self.C * np.maximum(-slope, 0.0) + alpha * slope
        primal = 0.5 * self.c @ self.F + self.C * np.maximum(-slope, 0.0).sum()
        found = Certificate(primal, primal - terms.sum(), terms.sum())
        if uncertainty is None:
            return found
        return found.widened(found.gap + self.C * uncertainty.values.sum(), uncertainty.energy)

    def predicted(self, steps, dtype):
        return predicted(self.c, self.diagonal, self._inside(self.y * self.c), steps, dtype)

    def sampled(self, seed):
        return sampled(self.gram, self.c, self.F, self.diagonal, self._inside(self.y * self.c), seed)

    def recompute(self):
        self.F = np.asarray(self.gram.exact_dot(None, None, self.c))

    def use(self, gram):
        self.gram = gram

    def coefficients(self):
        return self.c.copy()

    def variables(self):
        return self.c.copy()

    def expansion(self):
        return self.F.copy()

    def facts(self):
        return {"sets": len(self.sets)}


def data(n=300, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * random.normal(size=n) > 0, 1.0, -1.0)


def search(strategy, monitor=SILENT, tol=1e-6, gap_tol=None):
    return Search(strategy, tol=tol, gap_tol=gap_tol, monitor=monitor, seed=0)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("working_set", [60, None])
def test_a_strategy_of_its_own_is_solved_to_a_certified_optimum(precision, working_set):
    X, y = data()
    gram = Gram(Gaussian(sigma=0.5), X, precision=precision, access="rows")
    strategy = NewtonInABox(gram, y, 2.0)
    found = search(strategy).run(working_set=working_set)
    stated = RegularisedRisk(Gram(Gaussian(sigma=0.5), X, precision="float64"), y, Hinge(), 2.0, bias="none")
    exact = interior_point.solve(stated)
    assert found.converged
    assert found.solver == "Newton in a box"
    assert found.dual <= exact.primal * (1 + 1e-12)
    assert found.primal >= exact.dual * (1 - 1e-12)
    assert found.primal == pytest.approx(exact.primal, rel=1e-5)
    # The certificate is that of the stated problem, in float64, whatever the steps were computed in.
    assert stated.primal(found.coefficients) <= found.primal * (1 + 1e-12)
    assert stated.dual(found.variables) >= found.dual * (1 - 1e-12)
    assert len(strategy.sets) > 1
    assert max(strategy.sets) <= (working_set or 300)


def test_it_stops_at_a_relative_gap_where_the_violation_has_no_tolerance():
    X, y = data()
    found = search(NewtonInABox(Gram(Gaussian(), X), y, 2.0), tol=None, gap_tol=1e-3).run()
    assert found.converged
    assert 0.0 < found.relative_gap <= 1e-3


def test_limits_interruptions_and_checkpoints_are_the_engines(tmp_path):
    X, y = data()
    gram = Gram(Gaussian(), X)
    assert search(NewtonInABox(gram, y, 2.0)).run(max_iter=3, working_set=50).stopped == "iterations"
    seen = []
    monitor = Monitor(callback=lambda record: len(seen.append(record) or seen) >= 4)
    monitor.checkpoint(tmp_path / "point.npz", every=0.0)
    with monitor:
        found = search(NewtonInABox(gram, y, 2.0), monitor).run(working_set=50)
    assert found.stopped == "interrupted"
    assert [record.iteration for record in found.history[:4]] == [record.iteration for record in seen]
    saved = monitor.resume()
    assert saved is not None
    np.testing.assert_array_equal(saved.variables, found.variables)
    assert saved.gap > 0.0


def test_free_points_that_crowd_a_set_make_it_grow(monkeypatch):
    monkeypatch.setattr(working_sets, "WORKING_SET", 40)
    X, y = data()
    strategy = NewtonInABox(Gram(Gaussian(sigma=0.2), X), y, 1e3)
    assert search(strategy, tol=1e-4).run().converged
    assert max(strategy.sets) > 40


@pytest.mark.parametrize("objective", [np.nan, np.inf, -np.inf])
def test_there_is_no_patience_with_what_is_not_a_number(objective):
    assert Patience(np.float64).exhausted((1.0,), objective)


def test_patience_ends_where_neither_violation_nor_objective_moves():
    patience = Patience(np.float64)
    assert not any(patience.exhausted((1.0,), -1.0) for _ in range(working_sets.PATIENCE))
    assert not patience.exhausted((0.5,), -1.0)  # the violation has fallen: everything begins anew
    assert not any(patience.exhausted((0.5,), -1.0) for _ in range(working_sets.PATIENCE))
    assert not patience.exhausted((0.5,), -1.1)  # and so it does when the objective falls
    assert [patience.exhausted((0.5,), -1.1) for _ in range(working_sets.PATIENCE + 1)][-1]


def test_float32_that_cannot_reach_the_tolerance_becomes_float64():
    X, y = data()
    strategy = NewtonInABox(Gram(Gaussian(sigma=0.5), X, precision="float32", access="rows"), y, 10.0)
    found = search(strategy, tol=1e-10).run(working_set=100)
    assert found.details["float64_passes"] > 0
    assert found.details["violation"] <= 1e-8


def test_steps_on_all_points_that_move_only_noise_end_between_the_slices_of_a_monitor(monkeypatch):
    monkeypatch.setattr(working_sets, "VALUES_PER_SLICE", 0)
    random = np.random.default_rng(0)
    X = random.normal(size=(1350, 4))
    y = np.where(X[:, 0] + 0.5 * random.normal(size=1350) > 0, 1.0, -1.0)
    gram = Gram(Gaussian(sigma=3.0), X, storage="dense", precision="float32")
    found = decomposition.solve(RegularisedRisk(gram, y, Hinge(), 100.0), tol=1e-11, monitor=Monitor(time_limit=60.0))
    assert found.stopped == "stalled"
    assert found.details["violation"] < 1e-8
