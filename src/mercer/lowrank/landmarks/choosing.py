"""One call for all ways of choosing landmarks: `choose(Gaussian(sigma=2.0), X, 500, method="uniform", seed=0)`.

Random rows are the default: they cost nothing, and for learning little is gained by others (Hamers 2004, section
5.2.2; Rifkin 2002, section 3.7).  Costlier ones pay where m must be small.
"""

import inspect
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.gram import check_points, size, take
from mercer.kernels.base import Kernel
from mercer.kernels.custom import Precomputed
from mercer.lowrank.landmarks import centres, entropy, factor, greedy, kernel_pca, sampling, supervised
from mercer.lowrank.landmarks.measures import measured, quadratic_entropy, said_of_measure
from mercer.lowrank.landmarks.task import Choice, Landmarks, LandmarkTask
from mercer.resources import budget

METHODS: dict[str, Callable[..., Choice]] = {
    "uniform": sampling.uniform,
    "leverage": sampling.leverage,
    "kmeans": centres.kmeans,
    "kmeans++": centres.kmeans_plus_plus,
    "pivoted_cholesky": factor.pivoted_cholesky,
    "sparse_greedy": greedy.sparse_greedy,
    "trace_greedy": greedy.trace_greedy,
    "feature_vectors": greedy.feature_vectors,
    "entropy": entropy.entropy,
    "orthogonal_least_squares": supervised.orthogonal_least_squares,
    "kernel_pca": kernel_pca.kernel_pca,
}
SUPERVISED = frozenset({"orthogonal_least_squares"})  # those that need y


def choose(
    kernel: Kernel,
    X: Any,
    m: int,
    *,
    method: str = "uniform",
    y: Any = None,
    seed: Any = None,
    weights: Any = None,
    memory: int | float | str | None = None,
    measure: bool | int | None = None,
    **options: Any,
) -> Landmarks:
    """Choose m landmarks of the points X.

    Parameters
    ----------
    kernel :
        a mercer kernel on points (not `Precomputed`).
    X :
        (n, d) dense or CSR, or a list of n objects for kernels on objects.
    m :
        how many; more than there are points of positive weight means all of them.
    method :
        a name in `METHODS`; its function says which `options` it takes.
    y :
        (n,) or (n, k) numbers, for supervised methods.
    seed :
        an integer, a `numpy.random.Generator` or None; the same seed gives the same landmarks.
    weights :
        (n,) sample weights, zero or above.  A whole weight counts as so many copies of the point; a point of weight
        zero is never chosen.
    memory :
        most bytes to allocate (a number, or text like "512 MiB"); None: a quarter of what is free.
    measure :
        on how many random rows to measure the residual trace; True all, False none, None as many as are cheap, and
        none where m is above 4096.
    **options :
        what the method takes besides, by name.

    Returns
    -------
    Landmarks : fewer than m where the method reveals the rank and finds no more independent points.

    """
    task, measuring = _stated(kernel, X, m, y, weights, memory, seed)
    function = _known(method, options)
    start = time.perf_counter()
    choice = function(task, **options)
    points = take(task.X, choice.index) if choice.index is not None else choice.points
    seconds = time.perf_counter() - start
    residual, rows = measured(kernel, task.X, points, task.weights, measuring, measure, memory)
    diagonal = np.asarray(kernel.diagonal(task.X), dtype=np.float64)
    return Landmarks(
        points=points,
        index=choice.index,
        method=method,
        residual_trace=residual,
        residual_rows=rows,
        trace=float(task.weights @ diagonal),
        entropy=quadratic_entropy(kernel, points, memory),
        seconds=seconds,
        details=_said(choice, task, m, size(points)) | said_of_measure(kernel, rows, task.n),
    )


def _said(choice: Choice, task: LandmarkTask, asked: int, got: int) -> dict[str, Any]:
    """The method's own words, and the number asked for where there are fewer."""
    few: dict[str, Any] = {}
    if asked > task.m:
        few["asked"] = f"{asked} landmarks of {task.m} points of positive weight"
    if got < task.m:
        few["dropped"] = task.m - got
    return choice.details | few


def _known(method: str, options: dict[str, Any]) -> Callable[..., Choice]:
    """The function of a method, once it is sure to take the options."""
    if method not in METHODS:
        raise InvalidInput(f"method={method!r} is not known; choose one of {', '.join(METHODS)}")
    function = METHODS[method]
    taken = [name for name in inspect.signature(function).parameters if name != "task"]
    for name in options:
        if name not in taken:
            raise InvalidInput(
                f"method={method!r} takes no option {name!r}; it takes {', '.join(taken) if taken else 'none'}"
            )
    return function


def _stated(
    kernel: Kernel, X: Any, m: int, y: Any, weights: Any, memory: int | float | str | None, seed: Any
) -> tuple[LandmarkTask, np.random.Generator]:
    """The task with everything checked, and the source of chance for the measurements."""
    if not isinstance(kernel, Kernel):
        raise InvalidInput(f"kernel={kernel!r} is no kernel; give a mercer kernel such as Gaussian(sigma=1.0)")
    if isinstance(kernel, Precomputed):
        raise InvalidInput("landmarks are points: a precomputed matrix has none; give the kernel and the points")
    if isinstance(m, bool) or not isinstance(m, (int, np.integer)) or m < 1:
        raise InvalidInput(f"m must be a whole number of at least 1, got {m!r}")
    points = check_points(X, "X", objects=kernel.objects)
    n = size(points)
    w = _weights(weights, n)
    active = np.flatnonzero(w > 0).astype(np.intp)
    choosing, measuring = np.random.default_rng(seed).spawn(2)
    task = LandmarkTask(kernel, points, min(int(m), len(active)), active, w, _targets(y, n), choosing, budget(memory))
    return task, measuring


def _weights(weights: Any, n: int) -> NDArray[np.float64]:
    """Sample weights (n,): given, or all 1."""
    if weights is None:
        return np.ones(n)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (n,):
        raise InvalidInput(f"weights of shape {w.shape} do not fit {n} points; give one weight for each")
    if not np.isfinite(w).all() or (w < 0).any() or not w.any():
        raise InvalidInput("weights must be finite, zero or above, and not all zero")
    return w


def _targets(y: Any, n: int) -> NDArray[np.float64] | None:
    """Targets (n, k), or None."""
    if y is None:
        return None
    try:
        targets = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("y must be numbers; code classes as -1 and +1, or as one such column for each") from None
    if targets.ndim not in (1, 2) or len(targets) != n:
        raise InvalidInput(f"y of shape {targets.shape} does not fit {n} points; give ({n},) or ({n}, k)")
    if not np.isfinite(targets).all():
        raise InvalidInput("y contains NaN or infinite values; drop those rows")
    return np.ascontiguousarray(targets.reshape(n, -1))
