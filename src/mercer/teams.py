"""Teams: compiled loops that run side by side on the same arrays and meet after every few microseconds.

Handing a task to a thread costs some ten microseconds, too much for work that is divided anew in each step of a loop.
The members of a team run the *same* loop instead, each on its own part of the arrays, and meet to exchange a record of
a few numbers: each writes its record and then its epoch, and reads those of the others once their epochs are there.
All members see the same records and take the same decisions, so that no one leads and all end together.

A member that waits long lets other threads of the machine run: a team on busy cores is slow, and never stuck.
"""

import os
import time
from collections.abc import Callable
from threading import Event, Lock
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from mercer import threads
from mercer.compiled import loop

RECORD = 8  # numbers of a record, which fill a line of the cache: the epoch and seven others
PATIENT = 2000  # looks at an epoch before the others of the machine get the core
ASSEMBLED = 2e-3  # seconds that a team waits for members that are busy elsewhere
YIELDS = os.name == "posix"


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def _publish(typingctx: Any, records: Any, line: Any, epoch: Any) -> Any:
    """Write `epoch` to the head of a line of `records` after all that was written before."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _head(context, builder, signature, arguments)
        builder.store_atomic(arguments[2], place, ordering="release", align=8)
        return context.get_dummy_value()

    return types.void(records, types.int64, types.int64), code


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def _seen(typingctx: Any, records: Any, line: Any) -> Any:
    """The epoch at the head of a line of `records`; what its writer wrote before is seen too."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _head(context, builder, signature, arguments)
        return builder.load_atomic(place, ordering="acquire", align=8)

    return types.int64(records, types.int64), code


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def _let_others_run(typingctx: Any) -> Any:
    """Give the core to another thread that waits for it."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if YIELDS:
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), code


def _head(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Address of the first number of a line, as an integer."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    at = builder.mul(arguments[1], ir.Constant(ir.IntType(64), RECORD))
    return builder.bitcast(builder.gep(array.data, [at]), ir.IntType(64).as_pointer())


@loop
def meet(records: Any, phase: int, me: int, epoch: int) -> None:
    """Show the record records[phase, me, 1:] to the team, and wait until the others have shown theirs.

    records (phases, members, RECORD); epochs rise by one with every meeting of a phase.  A record may be written again
    after the next meeting of another phase, when all have read it.
    """
    members = records.shape[1]
    first = phase * members
    _publish(records, first + me, epoch)
    for other in range(members):
        looks = 0
        while _seen(records, first + other) < epoch:
            looks += 1
            if looks % PATIENT == 0:
                _let_others_run()


class Team:
    """Threads that run one loop together: up to `most`, and those that are busy elsewhere are done without."""

    def __init__(self, most: int) -> None:
        self._lock, self._ready = Lock(), Event()
        self._present, self._closed = 1, False
        self._task: Callable[[int], Any] | None = None
        self._joining = threads.started(self._join, min(most, threads.count()) - 1)

    def _join(self) -> None:
        """What the other threads do: be there in time, wait for the task, take part in it."""
        with self._lock:
            if self._closed:
                return
            me = self._present
            self._present += 1
        self._ready.wait()
        if self._task is not None:
            self._task(me)

    def run(self, function: Callable[..., Any], phases: int, *arguments: Any) -> Any:
        """Call function(me, records, *arguments) on every member; the answer of the first, which is this thread."""
        try:
            until = time.perf_counter() + ASSEMBLED
            while self._present <= len(self._joining) and time.perf_counter() < until:
                time.sleep(0)
            with self._lock:
                self._closed = True
            records = np.zeros((phases, self._present, RECORD))
            self._task = lambda me: function(me, records, *arguments)
            self._ready.set()
            return function(0, records, *arguments)
        finally:
            self._closed = True
            self._ready.set()
            for one in self._joining:
                if not one.cancel():
                    one.result()
