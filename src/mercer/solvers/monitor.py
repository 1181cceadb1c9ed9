"""The only way a solver talks while it works: progress, history, checkpoints, time limit, interruption.

    with Monitor(time_limit=60, checkpoint="fit.npz") as monitor:
        solution = solve(problem, monitor=monitor)

A solver calls `monitor.watch(iteration, primal, dual, snapshot=...)` every so often and stops, with the best it has,
when the answer is False; `monitor.stopped` then says why.  `snapshot` is a function without arguments that builds the
present Solution; it is called only when a checkpoint is due or a hook asks for it.

Hooks registered with `on_step` get (record, snapshot) and stop the solver by returning True, which is the meaning the
return value of scikit-learn's `on_fit_task_end` has; an adapter opens one sub-context of the estimator's callback
context for each record.

Ctrl-C: inside a `with` block in the main thread the first one asks the solver to stop, the second raises
KeyboardInterrupt.  The handler that was there before is restored on leaving.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Literal

from mercer import writing
from mercer.solvers.solution import Record, Solution

Snapshot = Callable[[], Solution]
Hook = Callable[[Record, Snapshot | None], bool | None]

SECONDS_BETWEEN_REPORTS = 0.2  # of solvers nobody watches step by step


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, met where there was no solution to give yet; outside the monitor it is a plain KeyboardInterrupt."""


class Monitor:
    """Watches one or more solves, from any number of threads."""

    def __init__(
        self,
        *,
        time_limit: float | None = None,
        callback: Callable[[Record], bool | None] | None = None,
        hooks: Iterable[Hook] = (),
        history: bool = True,
        checkpoint: str | os.PathLike[str] | None = None,
        every: float = 60.0,
        catch_interrupt: bool = True,
    ) -> None:
        self.time_limit = time_limit
        self.history: list[Record] = []
        self.stopped: Literal["time", "interrupted"] | None = None
        self._hooks = list(hooks)
        if callback is not None:
            self._hooks.append(lambda record, _: callback(record))
        self._keep = history
        self._checkpoint = None if checkpoint is None else Path(checkpoint)
        self._every = every
        self._catch = catch_interrupt
        self._lock = threading.RLock()
        self._began = self._saved = time.perf_counter()
        self._depth = 0
        self._interrupts = 0
        self._previous: Any = None

    @property
    def seconds(self) -> float:
        """Time since the monitor was made or last entered."""
        return time.perf_counter() - self._began

    @property
    def has_callbacks(self) -> bool:
        """Whether a hook wants to hear of every step a solver can tell of."""
        return bool(self._hooks)

    def on_step(self, hook: Hook) -> Hook:
        """Register a hook; also usable as a decorator."""
        self._hooks.append(hook)
        return hook

    def checkpoint(self, path: str | os.PathLike[str], every: float = 60.0) -> "Monitor":
        """Save the present solution to `path` whenever `every` seconds have passed."""
        self._checkpoint, self._every = Path(path), every
        return self

    def resume(self) -> Solution | None:
        """The solution of an earlier run's checkpoint, or None when there is none."""
        if self._checkpoint is None or not self._checkpoint.exists():
            return None
        return Solution.load(self._checkpoint)

    def watch(
        self, iteration: int, primal: float, dual: float, *, snapshot: Snapshot | None = None, **facts: Any
    ) -> bool:
        """Take note of an iterate; True: go on, False: stop."""
        now = time.perf_counter()
        record = Record(iteration, now - self._began, primal, dual, primal - dual, facts)
        with self._lock:
            if self._keep:
                self.history.append(record)
            for hook in self._hooks:
                if hook(record, snapshot):
                    self.stopped = self.stopped or "interrupted"
            if self._interrupts:
                self.stopped = "interrupted"
            elif self.time_limit is not None and now - self._began >= self.time_limit:
                self.stopped = self.stopped or "time"
            if self._checkpoint is not None and snapshot is not None:
                self._save_when_due(now, snapshot)
            return self.stopped is None

    def due(self, reported: float) -> bool:
        """Whether to call `watch` again after a report at time `reported`: a record costs a certificate."""
        return self.has_callbacks or time.perf_counter() - reported >= SECONDS_BETWEEN_REPORTS

    def go_on(self) -> bool:
        """Whether to go on, without a record: for tight loops between two `watch` calls."""
        if self._interrupts:
            self.stopped = "interrupted"
        elif self.time_limit is not None and self.seconds >= self.time_limit:
            self.stopped = self.stopped or "time"
        return self.stopped is None

    def poll(self) -> None:
        """Raise Interrupted where Ctrl-C was pressed: for work that has no solution to give before its end."""
        if self._interrupts:
            self.stopped = "interrupted"
            raise Interrupted

    def _save_when_due(self, now: float, snapshot: Snapshot) -> None:
        assert self._checkpoint is not None
        if now - self._saved >= self._every or self.stopped is not None:
            with writing.keeping_on():
                snapshot().save(self._checkpoint)
            self._saved = time.perf_counter()

    def __enter__(self) -> "Monitor":
        with self._lock:
            self._depth += 1
            if self._depth > 1:
                return self
            self._began = self._saved = time.perf_counter()
            self.stopped, self._interrupts = None, 0
            if self._catch and threading.current_thread() is threading.main_thread():
                before = signal.getsignal(signal.SIGINT)
                if before is not None:  # None: set by foreign code that Python could not restore
                    signal.signal(signal.SIGINT, self._on_interrupt)
                    self._previous = before
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._restore()
        if self._depth == 0 and kind is Interrupted:
            # Python ends a process with the status of an interrupted one for this very class alone.
            raise KeyboardInterrupt from None

    def _restore(self) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
            self._previous = None

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        self._interrupts += 1
        if self._interrupts > 1:
            self._restore()
            raise KeyboardInterrupt


class Silent(Monitor):
    """A monitor nobody listens to: `watch` says "go on" at the cost of a call."""

    def due(self, reported: float) -> bool:
        """Never."""
        return False

    def watch(
        self, iteration: int, primal: float, dual: float, *, snapshot: Snapshot | None = None, **facts: Any
    ) -> bool:
        """Go on."""
        return True

    def go_on(self) -> bool:
        """Go on."""
        return True

    def __enter__(self) -> "Monitor":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class Asking(Monitor):
    """A monitor of one solve within a larger work, which alone knows whether to go on; it keeps no history."""

    def __init__(self, go_on: Callable[[], bool]) -> None:
        super().__init__(history=False, catch_interrupt=False)
        self._ask = go_on

    def watch(
        self, iteration: int, primal: float, dual: float, *, snapshot: Snapshot | None = None, **facts: Any
    ) -> bool:
        """Whether the larger work goes on."""
        return self.go_on()

    def go_on(self) -> bool:
        """Whether the larger work goes on."""
        if not self._ask():
            self.stopped = "interrupted"
        return self.stopped is None


SILENT = Silent(history=False, catch_interrupt=False)


def listening(monitor: Monitor | None) -> Monitor:
    """The monitor given, or the silent one."""
    return SILENT if monitor is None else monitor
