"""What a fit says of its course, and how it ends when a user has had enough."""

import os
import signal

import numpy as np
import pytest

from mercer.errors import NotConverged
from mercer.machine.callbacks import observed
from mercer.svm import SVC, SVR, NuSVC, OneClassSVM


@pytest.fixture(scope="module")
def hard():
    """Points whose labels are noise: a large C takes minutes."""
    random = np.random.default_rng(0)
    return random.standard_normal((4000, 8)), random.integers(0, 2, 4000)


@pytest.mark.parametrize("machine", [SVC(C=1e6, gamma=1.0, tol=1e-12), SVR(C=1e6, gamma=1.0, tol=1e-12)])
def test_ctrl_c_keeps_the_best_machine_so_far_with_an_honest_gap(hard, machine):
    X, y = hard
    before = signal.getsignal(signal.SIGINT)
    pressed = []

    def press(record, snapshot):
        if not pressed:
            pressed.append(record)
            os.kill(os.getpid(), signal.SIGINT)

    with observed(press), pytest.warns(NotConverged, match="interrupted"):
        machine.fit(X, y)
    assert pressed
    assert machine.stopped_ == "interrupted"
    assert machine.fit_status_ == 1
    assert 0.0 < machine.gap_ <= machine.objective_
    assert machine.gap_ == pytest.approx(machine.objective_ - machine.dual_objective_, rel=1e-6)
    assert np.isfinite(machine.predict(X[:5])).all()
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("machine", [SVC(), SVC(tol=1e-6, gap_tol=1e-6), NuSVC(nu=0.3), SVR(), OneClassSVM()])
def test_history_ends_with_the_certificate_of_the_machine(machine):
    random = np.random.default_rng(1)
    X = random.standard_normal((80, 3))
    y = (X[:, 0] + 0.3 * random.standard_normal(80) > 0).astype(int)
    machine.fit(X, y)
    last = machine.history_[-1]
    assert (last.primal, last.dual) == pytest.approx((machine.objective_, machine.dual_objective_), rel=1e-12)
    assert last.iteration == np.sum(machine.n_iter_)


def test_verbose_prints_the_objective_and_its_gap(capsys):
    random = np.random.default_rng(2)
    X = random.standard_normal((300, 3))
    y = (X[:, 0] > 0).astype(int)
    SVC(verbose=True).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all(line.startswith("[SVC]") and "objective" in line and "gap" in line for line in lines)
    SVC().fit(X, y)
    assert capsys.readouterr().out == ""
