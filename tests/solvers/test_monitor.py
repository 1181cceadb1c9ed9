"""Monitors: history, limits, hooks, checkpoints and Ctrl-C."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from mercer.solvers import SILENT, Monitor, Solution, listening


def solution(iterations=1):
    return Solution(np.ones(2), 0.0, np.ones(2), 1.0, 0.5, 0.5, iterations, "interrupted", 0.0, "test")


def test_history_records_every_watch():
    monitor = Monitor()
    assert monitor.watch(0, 2.0, 1.0, free=3)
    assert monitor.watch(1, 1.5, 1.25)
    assert [record.iteration for record in monitor.history] == [0, 1]
    assert monitor.history[0].gap == 1.0
    assert monitor.history[0].facts == {"free": 3}
    assert monitor.history[0].seconds <= monitor.history[1].seconds
    assert monitor.stopped is None
    quiet = Monitor(history=False)
    quiet.watch(0, 1.0, 0.0)
    assert quiet.history == []


def test_time_limit_stops(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    with Monitor(time_limit=0.02) as monitor:
        assert monitor.watch(0, 1.0, 0.0)
        assert monitor.go_on()
        now[0] += 0.03
        assert not monitor.go_on()
        assert not monitor.watch(1, 1.0, 0.0)
    assert monitor.stopped == "time"


def test_callback_stops_by_returning_true():
    monitor = Monitor(callback=lambda record: record.iteration >= 2)
    assert [monitor.watch(i, 1.0, 0.0) for i in range(3)] == [True, True, False]
    assert monitor.stopped == "interrupted"


def test_hooks_see_the_record_and_can_ask_for_the_present_solution():
    monitor, seen = Monitor(), []

    @monitor.on_step
    def hook(record, snapshot):
        seen.append((record.iteration, snapshot().iterations if snapshot else None))
        return None

    monitor.watch(4, 1.0, 0.0, snapshot=lambda: solution(4))
    monitor.watch(5, 1.0, 0.0)
    assert seen == [(4, 4), (5, None)]
    assert monitor.stopped is None


def test_scikit_learn_callbacks_are_served_through_a_hook():
    """One sub-context for each record; a callback that returns True at its end stops the solver."""
    from sklearn.base import BaseEstimator
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    class Stop:
        def __init__(self):
            self.ends = 0

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            self.ends += 1
            return self.ends >= 3

    class Machine(CallbackSupportMixin, BaseEstimator):
        @with_callbacks
        def fit(self, X=None, y=None):
            context = self._init_callback_context(max_subtasks=None)
            context.call_on_fit_task_begin(estimator=self)
            monitor = Monitor()

            @monitor.on_step
            def step(record, snapshot):
                part = context.subcontext(task_name=f"iteration {record.iteration}")
                part.call_on_fit_task_begin(estimator=self)
                return part.call_on_fit_task_end(estimator=self)

            self.steps_ = 0
            while monitor.watch(self.steps_, 1.0, 0.0) and self.steps_ < 50:
                self.steps_ += 1
            context.call_on_fit_task_end(estimator=self)
            return self

    machine = Machine().set_callbacks(Stop())
    assert machine.fit().steps_ == 2


def test_checkpoint_is_written_when_due_and_when_stopping(tmp_path):
    file = tmp_path / "c.npz"
    monitor = Monitor().checkpoint(file, every=1e9)
    assert monitor.resume() is None
    monitor.watch(0, 1.0, 0.0, snapshot=lambda: solution(0))
    assert not file.exists()
    often = Monitor(checkpoint=file, every=0.0)
    often.watch(1, 1.0, 0.0, snapshot=lambda: solution(1))
    assert often.resume().iterations == 1
    last = Monitor(checkpoint=file, every=1e9, callback=lambda record: True)
    last.watch(2, 1.0, 0.0, snapshot=lambda: solution(2))
    assert last.resume().iterations == 2


def test_first_interrupt_stops_and_the_handler_is_restored():
    before = signal.getsignal(signal.SIGINT)
    with Monitor() as monitor:
        assert signal.getsignal(signal.SIGINT) is not before
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        assert not monitor.go_on()
        assert not monitor.watch(0, 1.0, 0.0)
        assert monitor.stopped == "interrupted"
    assert signal.getsignal(signal.SIGINT) is before


def test_second_interrupt_raises():
    before = signal.getsignal(signal.SIGINT)

    def interrupt_twice():
        with Monitor():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        interrupt_twice()
    assert signal.getsignal(signal.SIGINT) is before


def test_nested_use_installs_one_handler_and_keeps_the_clock():
    before = signal.getsignal(signal.SIGINT)
    with Monitor() as monitor:
        time.sleep(0.005)
        with monitor:
            assert monitor.seconds >= 0.005
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
        assert signal.getsignal(signal.SIGINT) is not before
        assert not monitor.go_on()
    assert signal.getsignal(signal.SIGINT) is before


def test_entering_again_starts_afresh():
    monitor = Monitor(time_limit=0.0)
    with monitor:
        assert not monitor.go_on()
    monitor.time_limit = None
    with monitor:
        assert monitor.go_on()


def test_other_threads_may_watch_and_leave_signals_alone():
    monitor, failures = Monitor(), []

    def work(k):
        try:
            with monitor:
                for i in range(200):
                    monitor.watch(i, 1.0, 0.0, thread=k)
        except Exception as error:
            failures.append(error)

    before = signal.getsignal(signal.SIGINT)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(monitor.history) == 800
    assert signal.getsignal(signal.SIGINT) is before


def test_silent_monitor_always_goes_on_and_keeps_nothing():
    assert listening(None) is SILENT
    with SILENT as monitor:
        assert monitor.watch(0, 1.0, 0.0, snapshot=None, anything=1)
        assert monitor.go_on()
    assert SILENT.history == []
    assert SILENT.resume() is None
    other = Monitor()
    assert listening(other) is other
