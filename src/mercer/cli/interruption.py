"""Ctrl-C: what is still done and why, and an end at once when it is pressed again.

The first Ctrl-C asks the solver to stop (`mercer.solvers.monitor`); what it has reached becomes the model.  Where that
takes longer than `PATIENCE`, a line says what is still being done.  The second one stops the solver that works then,
and the process ends with the best machine there is: by itself, or a moment later from here, whatever the main thread
is doing.

Python runs its signal handlers in the main thread only, between two of its instructions, and a call of compiled code
can last minutes.  A thread of its own therefore hears of signals through `signal.set_wakeup_fd`.
"""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from mercer.cli import exits
from mercer.cli.output import say

PATIENCE = 1.5
GRACE = 1.0  # with a machine that can be written
GRACE_FOR_A_MACHINE = 10.0  # without one yet: the solver may still hand over what it has reached
CLOSE = b"\0"


class Listener:
    """Hears Ctrl-C at once; `doing` says what is being done, `reached` whether there is a machine, `keep` writes it."""

    def __init__(self, doing: Callable[[], str], reached: Callable[[], bool], keep: Callable[[], str]) -> None:
        self.count = 0
        self._doing, self._reached, self._keep = doing, reached, keep
        self._deadline: float | None = None
        self._ears, self._mouth = socket.socketpair()
        self._thread = threading.Thread(target=self._listen, name="mercer-interruption", daemon=True)
        self._before = -1

    def __enter__(self) -> "Listener":
        self._mouth.setblocking(False)
        self._before = signal.set_wakeup_fd(self._mouth.fileno(), warn_on_full_buffer=False)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._before)
        self._mouth.send(CLOSE)
        self._thread.join()
        self._mouth.close()
        self._ears.close()

    def _listen(self) -> None:
        while True:
            left = None if self._deadline is None else max(0.01, self._deadline - time.monotonic())
            self._ears.settimeout(left)
            try:
                heard = self._ears.recv(64)
            except TimeoutError:
                self._deadline = None
                self._due()
                continue
            if CLOSE in heard:
                return
            for number in heard:
                if number == signal.SIGINT:
                    self._interrupted()

    def _interrupted(self) -> None:
        self.count += 1
        wait = PATIENCE if self.count == 1 else GRACE
        if self.count == 2 and not self._reached():
            wait = GRACE_FOR_A_MACHINE
            say(f"ending; the solver has {wait:g} s to hand over what it has reached, a third Ctrl-C waits for nothing")
        self._deadline = time.monotonic() + wait

    def _due(self) -> None:
        """The time is over in which the main thread could have ended by itself."""
        if self.count == 1:
            say(f"interrupted; still {self._doing()}. Ctrl-C again ends at once with what there is.")
            return
        say(f"interrupted; {self._keep() if self._reached() else 'nothing was written'}")
        leave(exits.INTERRUPTED)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C off while a result is written: it takes moments, and half of it would be of no use."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def leave(code: int) -> None:
    """End the process without waiting for threads that still compute."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
