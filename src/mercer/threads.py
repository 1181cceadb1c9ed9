"""Threads: how many, how work is split over them, and how BLAS is kept from adding its own.

Tiles of a kernel matrix are computed by compiled loops that release the interpreter lock, one Python thread to a
core, each calling BLAS on one thread.  Results never depend on which thread ran first: every task writes to a place
of its own.
"""

import atexit
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from itertools import pairwise, starmap
from threading import Condition, Lock, Thread, local
from typing import Any, TypeVar

T = TypeVar("T")

POLLED = 0.05  # seconds between two looks at whether to wait on
# Points up to which dense linear algebra runs on one thread of BLAS: several gain little there, and where the cores are
# shared each call waits, spinning, for the last of them (ten times the processor time was seen at 1,600 points).
ONE_THREAD = 2000

_lock = Lock()
_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}
_here = local()
_left_alone: list[Thread] = []
_blas_depth = 0
_blas_restore: list[tuple[Any, int]] = []


def count() -> int:
    """Number of threads to use: MERCER_NUM_THREADS, else the cores this process may run on."""
    if getattr(_here, "inside", False):
        return 1
    most = getattr(_here, "most", None)
    if most is not None:
        return int(most)
    asked = os.environ.get("MERCER_NUM_THREADS")
    if asked:
        return max(1, int(asked))
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # A joblib worker process announces its share of the cores in these variables.
    for name in ("LOKY_MAX_CPU_COUNT", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdigit() and int(value) > 0:
            available = min(available, int(value))
    return max(1, available)


def limit(most: int | None) -> AbstractContextManager[None]:
    """Let this thread use `most` threads; None changes nothing, and -1 - m stands for all but m (as in joblib)."""
    return nullcontext() if most is None else _limited(max(1, most if most > 0 else count() + 1 + most))


@contextmanager
def _limited(most: int) -> Iterator[None]:
    before = getattr(_here, "most", None)
    _here.most = most
    try:
        yield
    finally:
        _here.most = before


def split(n: int, parts: int | None = None, step: int = 1) -> list[tuple[int, int]]:
    """Cut 0..n into at most `parts` ranges of near equal length whose borders are multiples of `step`."""
    parts = count() if parts is None else parts
    units = -(-n // step)
    parts = max(1, min(parts, units))
    borders = [min(n, step * (units * p // parts)) for p in range(parts + 1)]
    return list(pairwise(borders)) if n > 0 else []


def _forget_pools() -> None:
    """A forked child has none of its parent's threads, one of which may have held the lock."""
    global _lock
    _lock = Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)


def _inside(function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    """Run a task so that what it calls does not split its work again."""
    _here.inside = True
    try:
        return function(*arguments)
    finally:
        _here.inside = False


def run(
    function: Callable[..., T],
    tasks: Sequence[tuple[Any, ...]],
    most: int | None = None,
    *,
    executor: Executor | None = None,
    go_on: Callable[[T], bool] | None = None,
) -> list[T]:
    """Call `function` on each tuple of arguments, side by side; the results come in the order of the tasks.

    `most` tasks run at a time where it is given, because more of them would not fit in memory; where that is one, the
    task has all threads to itself.  An `executor` runs the tasks in the place of mercer's threads: processes or a
    cluster take functions and arguments that can be pickled.  `go_on` hears of every result in the order of the tasks;
    where it answers False the tasks that have not begun are left out, and the results so far are all there is.
    """
    workers = min(len(tasks), len(tasks) if most is None else most)
    workers = min(workers, count()) if workers > 1 else 1
    if executor is None and workers == 1:
        results: Iterator[T] = starmap(function, tasks)
        return list(results) if go_on is None else _until(results, go_on)
    if executor is not None:
        futures = [executor.submit(function, *arguments) for arguments in tasks]
    else:
        pool = _pool(workers, getattr(_here, "lane", 0))
        futures = [pool.submit(_inside, function, arguments) for arguments in tasks]
    try:
        results = map(Future.result, futures)
        return list(results) if go_on is None else _until(results, go_on)
    finally:
        for future in futures:  # those that have ended do not mind
            future.cancel()


def started(function: Callable[[], T], times: int) -> list[Future[T]]:
    """Have other threads call `function`, so many `times`, and do not wait for them; one that is busy begins later."""
    if times < 1:
        return []
    pool = _pool(count(), getattr(_here, "lane", 0))
    return [pool.submit(_inside, function, ()) for _ in range(times)]


def _pool(workers: int, lane: int) -> ThreadPoolExecutor:
    """Threads that stay for the next call; each lane of `run_by_work` has its own."""
    with _lock:
        found = _pools.get((workers, lane))
        if found is None:
            found = _pools[workers, lane] = ThreadPoolExecutor(workers, thread_name_prefix="mercer")
        return found


def run_by_work(
    function: Callable[..., T], tasks: Sequence[tuple[Any, ...]], work: Sequence[float], most: int | None = None
) -> list[T]:
    """Call `function` on each tuple of arguments, side by side, with threads shared out in proportion to the `work`.

    A task that is half of all the work has half of the threads for what it splits itself, small ones have one each; the
    largest begin first, and at most `most` run at a time.  So one large problem among many small ones does not keep a
    single thread busy while all others wait.  The shares follow from the work and the number of threads alone.
    """
    total = count()
    if len(tasks) <= 1 or total == 1 or most == 1:
        return [function(*arguments) for arguments in tasks]
    shares = _shares(work, total)
    largest_first = sorted(range(len(tasks)), key=lambda number: -work[number])
    if max(shares) == 1:
        found = run(function, [tasks[number] for number in largest_first], most)
        return [found[place] for place in sorted(range(len(tasks)), key=largest_first.__getitem__)]
    free = _FreeThreads(total, len(tasks) if most is None else most)
    lanes = _pool(total, -1)
    futures: dict[int, Future[T]] = {}
    try:
        for number in largest_first:
            lane = free.take(shares[number])
            futures[number] = lanes.submit(_in_lane, function, tasks[number], free, lane, shares[number])
        return [futures[number].result() for number in range(len(tasks))]
    finally:
        for future in futures.values():  # those that have ended do not mind
            future.cancel()


def _shares(work: Sequence[float], total: int) -> list[int]:
    """Threads of each task: its part of the work, at least one."""
    unit = sum(work) / total or 1.0
    return [min(total, max(1, round(one / unit))) for one in work]


class _FreeThreads:
    """Threads that no task has, and the lanes that tasks run in, at most `lanes` at a time."""

    def __init__(self, total: int, lanes: int) -> None:
        self.threads, self.lanes = total, list(range(min(total, lanes), 0, -1))
        self.changed = Condition()

    def take(self, share: int) -> int:
        """Wait for so many threads; the number of the lane that has them."""
        with self.changed:
            self.changed.wait_for(lambda: self.threads >= share and self.lanes)
            self.threads -= share
            return self.lanes.pop()

    def give_back(self, lane: int, share: int) -> None:
        """The task in this lane has ended."""
        with self.changed:
            self.threads += share
            self.lanes.append(lane)
            self.changed.notify()


def _in_lane(function: Callable[..., T], arguments: tuple[Any, ...], free: _FreeThreads, lane: int, share: int) -> T:
    """Run a task that may use `share` threads."""
    _here.inside, _here.most, _here.lane = share == 1, share, lane
    try:
        return function(*arguments)
    finally:
        _here.inside, _here.most, _here.lane = False, None, 0
        free.give_back(lane, share)


def _until(results: Iterator[T], go_on: Callable[[T], bool]) -> list[T]:
    """The results, up to the first one after which `go_on` answers False."""
    found: list[T] = []
    for result in results:
        found.append(result)
        if not go_on(result):
            break
    return found


def apart(function: Callable[[], T], poll: Callable[[], None] | None) -> T:
    """Call `function` on a thread of its own and wait for it, calling `poll` meanwhile; without `poll`, just call it.

    For one long call that lets other threads run and cannot be cut into pieces.  Where `poll` raises, the caller goes
    on at once and the thread is left to finish alone: what it works on must not be used again.
    """
    if poll is None:
        return function()
    answers: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(function())
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=work, daemon=True, name="mercer-apart")
    thread.start()
    try:
        while thread.is_alive():
            thread.join(POLLED)
            poll()
    except BaseException:
        _left_alone.append(thread)
        raise
    if errors:
        raise errors[0]
    return answers[0]


@atexit.register
def _wait_for_those_left_alone() -> None:
    """Let calls that were left alone end before the process does.

    Its end stops the threads of BLAS; a call that waits for them may then never return, and nor does the process.  A
    process that Ctrl-C ends need not wait: Python has it killed by the signal before libraries are unloaded.
    """
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        return
    for thread in _left_alone:
        thread.join()


@cache
def _blas_libraries() -> list[Any]:
    """Controllers of the BLAS libraries loaded by NumPy and SciPy."""
    import numpy  # noqa: F401 - loads its BLAS, so that the scan finds it
    from threadpoolctl import ThreadpoolController

    import mercer.dense  # noqa: F401 - and that of SciPy

    return [c for c in ThreadpoolController().lib_controllers if c.user_api == "blas"]


def _set_blas_threads(numbers: list[tuple[Any, int]], at: int | None = None) -> None:
    """Set the number of threads of each library, to its own or to one `at` for all, from whichever thread is here.

    From version 3.7 on threadpoolctl obeys only the first thread that set a number and ignores all others in silence.
    Here the first who enters and the last who leaves may be any two threads, under the lock of this module.
    """
    for controller, number in numbers:
        free = getattr(controller, "clear_controlling_thread", None)
        if free is not None:
            free(force=True)
        controller.set_num_threads(number if at is None else at)
        if free is not None:
            free(force=True)


def blas_threads(n: int) -> AbstractContextManager[None]:
    """Hold BLAS at one thread where matrices of n points are small, or one thread is all that may be used.

    The number is the same for the whole process, and results of BLAS depend on it in their last digits.  Work of more
    points gets what is set, which is one while another thread holds it there.
    """
    return one_blas_thread() if n <= ONE_THREAD or count() == 1 else nullcontext()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS at one thread; nested uses cost nothing, and the last one out restores what was set before."""
    global _blas_depth
    with _lock:
        if _blas_depth == 0:
            for controller in _blas_libraries():
                if (number := controller.get_num_threads()) != 1:
                    _blas_restore.append((controller, number))
            _set_blas_threads(_blas_restore, at=1)
        _blas_depth += 1
    try:
        yield
    finally:
        with _lock:
            _blas_depth -= 1
            if _blas_depth == 0:
                _set_blas_threads(_blas_restore)
                _blas_restore.clear()
