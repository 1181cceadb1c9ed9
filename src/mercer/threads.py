"""Threads: how many, how work is split over them, and how BLAS is kept from adding its own.

Tiles of a kernel matrix are computed by compiled loops that release the interpreter lock, one Python thread to a
core, each calling BLAS on one thread.  Results never depend on which thread ran first: every task writes to a place
of its own.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from threading import Lock, local
from typing import Any, TypeVar

T = TypeVar("T")

_lock = Lock()
_pools: dict[int, ThreadPoolExecutor] = {}
_here = local()
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


@contextmanager
def limit(most: int | None) -> Iterator[None]:
    """Let this thread use `most` threads; None changes nothing, and -1 - m stands for all but m (as in joblib)."""
    before = getattr(_here, "most", None)
    if most is not None:
        _here.most = max(1, most if most > 0 else count() + 1 + most)
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
    return [(a, b) for a, b in pairwise(borders) if b > a]


def _forget_pools() -> None:
    """A forked child has none of its parent's threads."""
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


def run(function: Callable[..., T], tasks: Sequence[tuple[Any, ...]]) -> list[T]:
    """Call `function` on each tuple of arguments, side by side; the results come in the order of the tasks."""
    workers = min(count(), len(tasks))
    if workers <= 1:
        return [function(*arguments) for arguments in tasks]
    with _lock:
        pool = _pools.get(workers)
        if pool is None:
            pool = _pools[workers] = ThreadPoolExecutor(workers, thread_name_prefix="mercer")
    futures = [pool.submit(_inside, function, arguments) for arguments in tasks]
    try:
        return [future.result() for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        raise


@cache
def _blas_libraries() -> list[Any]:
    """Controllers of the BLAS libraries loaded by NumPy and SciPy."""
    import numpy  # noqa: F401 - loads its BLAS, so that the scan finds it
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return [c for c in ThreadpoolController().lib_controllers if c.user_api == "blas"]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS at one thread; nested uses cost nothing, and the last one out restores what was set before."""
    global _blas_depth
    with _lock:
        if _blas_depth == 0:
            _blas_restore[:] = [(c, n) for c in _blas_libraries() if (n := c.get_num_threads()) != 1]
            for controller, _ in _blas_restore:
                controller.set_num_threads(1)
        _blas_depth += 1
    try:
        yield
    finally:
        with _lock:
            _blas_depth -= 1
            if _blas_depth == 0:
                for controller, threads in _blas_restore:
                    controller.set_num_threads(threads)
                _blas_restore.clear()
