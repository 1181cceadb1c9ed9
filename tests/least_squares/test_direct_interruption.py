"""Ctrl-C in least squares: direct solvers look up between their pieces, and give what they have or raise.

The signal is sent by the process to itself from inside a named step, so that nothing depends on how fast a machine is.
"""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from mercer import LSSVC, LSSVR, Gaussian, dense
from mercer.dense import positive
from mercer.errors import NotConverged
from mercer.selection import descent, regularisation_path

X = np.random.default_rng(0).normal(size=(300, 3))
Y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
KERNEL = Gaussian(sigma=1.0)


def press():
    os.kill(os.getpid(), signal.SIGINT)


def pressed_at(monkeypatch, place, name, call, meanwhile=0.0):
    """Press Ctrl-C at the given call of a function (from 1); returns the list of its calls."""
    calls, original = [], getattr(place, name)

    def wrapped(*arguments, **options):
        calls.append(time.monotonic())
        if len(calls) == call:
            press()
            time.sleep(meanwhile)
        return original(*arguments, **options)

    monkeypatch.setattr(place, name, wrapped)
    return calls


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    before = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) is before


def test_a_factorisation_is_left_between_block_columns(monkeypatch):
    monkeypatch.setattr(positive, "COLUMNS", 32)
    calls = pressed_at(monkeypatch, positive, "_factorise_column", 3)
    with pytest.raises(KeyboardInterrupt):
        LSSVR(kernel=KERNEL, solver="cholesky").fit(X, Y)
    assert len(calls) == 3 < 300 // 32


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_factor_in_pieces_is_the_factor(monkeypatch, order, dtype):
    monkeypatch.setattr(positive, "COLUMNS", 64)
    matrix = np.array(KERNEL(X) + 0.1 * np.eye(300), dtype=dtype, order=order)
    factor, asked = matrix.copy(order="K"), []
    assert dense.factorise(factor, lambda: asked.append(1))
    assert len(asked) == 5
    reference = np.linalg.cholesky(matrix.astype(np.float64))
    np.testing.assert_allclose(np.tril(factor), reference, atol=1e-12 if dtype == np.float64 else 2e-4)
    np.testing.assert_array_equal(np.triu(factor, 1), np.triu(matrix, 1))
    matrix[200, 200] = -1.0
    assert not dense.factorise(matrix, lambda: None)


@pytest.mark.parametrize(
    "solver, routine", [("spectral", "diagonalise"), ("saddle", "factorise_indefinite")], ids=["spectral", "saddle"]
)
def test_one_long_call_is_not_waited_for(monkeypatch, solver, routine):
    calls = pressed_at(monkeypatch, dense, routine, 1, meanwhile=20.0)
    with pytest.raises(KeyboardInterrupt):
        LSSVR(kernel=KERNEL, solver=solver).fit(X, Y)
    assert time.monotonic() - calls[0] < 10.0


@pytest.mark.parametrize("method, values", [("spectral", 101), ("tridiagonal", 20), ("cholesky", 2)])
def test_a_path_that_is_interrupted_gives_the_best_c_so_far(monkeypatch, method, values):
    costs = np.geomspace(1e-2, 1e3, values)
    whole = LSSVR(C=costs, kernel=KERNEL).fit(X, Y)
    calls = pressed_at(monkeypatch, regularisation_path, "summarise", values // 2)
    with pytest.warns(NotConverged, match="interrupted"):
        machine = LSSVR(C=costs, kernel=KERNEL).fit(X, Y)
    reached = len(calls)
    assert whole.path_.method == machine.path_.method == method
    assert machine.stopped_ == "interrupted"
    assert reached < values
    whole_path = whole.path_.loo
    assert costs[np.argmin(whole_path[:reached])] == machine.C_
    np.testing.assert_allclose(machine.path_.loo[:reached], whole_path[:reached], rtol=1e-8)
    assert np.isnan(machine.path_.loo[reached:]).all()
    fixed = LSSVR(C=machine.C_, kernel=KERNEL).fit(X, Y)
    np.testing.assert_allclose(machine.predict(X), fixed.predict(X), atol=1e-8)


@pytest.mark.parametrize("routine, values", [("diagonalise", 101), ("tridiagonalise", 20)])
def test_ctrl_c_before_the_first_value_of_a_path_is_raised(monkeypatch, routine, values):
    calls = pressed_at(monkeypatch, dense, routine, 1, meanwhile=20.0)
    with pytest.raises(KeyboardInterrupt):
        LSSVC(C=np.geomspace(1e-2, 1e3, values), kernel=KERNEL).fit(X, Y > 0)
    assert time.monotonic() - calls[0] < 10.0


def test_a_search_over_widths_stops_between_evaluations(monkeypatch):
    calls = pressed_at(monkeypatch, descent, "evaluate", 3)
    with pytest.warns(NotConverged, match="interrupted"):
        machine = LSSVR(C="loo", kernel=Gaussian(sigma="loo")).fit(X, Y)
    assert machine.stopped_ == "interrupted"
    assert len(calls) == 3
    assert np.isfinite(machine.loo_residuals_).all()


def test_a_time_limit_ends_a_path_with_what_it_has():
    with pytest.warns(NotConverged, match="time limit"):
        machine = LSSVR(C="loo", kernel=KERNEL, max_time=1e-9).fit(X, Y)
    assert machine.stopped_ == "time"
    assert np.isfinite(machine.path_.loo).sum() == 1


def test_a_process_that_is_interrupted_ends_at_once():
    program = textwrap.dedent(
        """
        import time
        import numpy as np
        from mercer import LSSVC
        from mercer.dense import positive

        original, positive.COLUMNS = positive._factorise_column, 16

        def slow(*arguments):
            print("column", flush=True)
            time.sleep(0.5)
            return original(*arguments)

        positive._factorise_column = slow
        X = np.random.default_rng(0).normal(size=(2000, 3))
        LSSVC(solver="cholesky").fit(X, X[:, 0] > 0)
        print("done", flush=True)
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "column\n"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=50)  # all 125 columns would take longer
    finally:
        process.kill()
    assert process.returncode in (-signal.SIGINT, 130)
    assert "done" not in output
    assert "KeyboardInterrupt" in errors or "Interrupted" in errors


@pytest.mark.parametrize("caught", [False, True], ids=["raised", "caught"])
def test_a_process_does_not_end_under_a_call_that_was_left_alone(caught):
    """The end of a process stops the threads of BLAS, and a call that waits for them then may wait for ever.

    One that Ctrl-C ends is killed by the signal, before libraries are unloaded, and need not wait.
    """
    program = textwrap.dedent(
        f"""
        import atexit, os, signal, threading, time
        import numpy as np

        def last():  # registered first, called last
            print(*(thread.name for thread in threading.enumerate() if thread.name == "mercer-apart"), flush=True)

        atexit.register(last)
        from mercer import LSSVC, dense

        def pressed(A):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep({3.0 if caught else 100.0})

        dense.tridiagonalise = pressed
        X = np.random.default_rng(0).normal(size=(200, 3))
        try:
            LSSVC(C=np.geomspace(0.1, 10.0, 20)).fit(X, X[:, 0] > 0)
        except KeyboardInterrupt:
            if not {caught}:
                raise
        """
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ended.stdout.strip() == ("" if caught else "mercer-apart"), ended.stderr
    assert ended.returncode == (0 if caught else -signal.SIGINT), ended.stderr
