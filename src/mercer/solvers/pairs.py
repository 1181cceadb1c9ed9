"""Many small two-class problems at once: one compiled call for each pair of classes, from the points themselves.

    min 1/2 ||f||^2 + sum_i C_i (1 - y_i (f(x_i) + b))_+          over the points of two classes

One-against-one training of k classes makes k (k - 1) / 2 such problems, most of them small and easy.  Points are
sorted by class once, so that a pair of classes is two stretches of the same arrays; kernel rows are computed when a
point first takes part in a step; the certificate (primal, gap, gap-optimal bias) is computed in the same call.  Pairs
run side by side on all threads and share points, norms and parameters; nothing of size n^2 is ever formed.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.compiled import loop
from mercer.gram.tiles import Tiles
from mercer.solvers.pair_steps import minimise_pairs_on_points

# Fewer kernel values than this in all pairs together are not worth handing to other threads.
HANDED_OVER = 4_000_000


class PairSolution(NamedTuple):
    """One machine: signed coefficients of its points (n,), bias, certificate, steps and the last violation."""

    coefficients: NDArray[np.float64]
    bias: float
    primal: float
    gap: float
    steps: int
    violation: float


@loop
def _best_bias(F: Any, y: Any, box: Any, order: Any) -> Any:
    """The b that makes sum_i C_i (1 - y_i (F_i + b))_+ smallest; `order` sorts the break points y - F."""
    n = F.shape[0]
    slope = 0.0
    total = 0.0
    for k in range(n):
        total += box[k]
        if y[k] > 0:
            slope -= box[k]
    flat = 1e-12 * total
    for at in range(n):
        k = order[at]
        slope += box[k]
        if slope > flat:
            return y[k] - F[k]
        if slope >= -flat:
            ahead = at + 1
            while ahead < n and box[order[ahead]] <= flat:
                ahead += 1
            end = order[ahead] if ahead < n else k
            return 0.5 * (y[k] - F[k] + y[end] - F[end])
    return y[order[n - 1]] - F[order[n - 1]]


@loop
def _certificate(F: Any, y: Any, box: Any, s: Any, order: Any) -> tuple[float, float, float]:
    """Primal value, gap as a sum of non-negative terms, and bias."""
    bias = _best_bias(F, y, box, order)
    primal = 0.0
    gap = 0.0
    for k in range(F.shape[0]):
        margin = y[k] * (F[k] + bias)
        loss = box[k] * max(0.0, 1.0 - margin)
        primal += 0.5 * s[k] * F[k] + loss
        gap += max(0.0, loss + abs(s[k]) * (margin - 1.0))
    return primal, gap, bias


def best_bias(F: Any, y: Any, box: Any) -> float:
    """The b that makes sum_i C_i (1 - y_i (F_i + b))_+ smallest; the middle where a whole interval does."""
    return float(_best_bias(F, y, box, np.argsort(y - F)))


@loop
def _train(
    UT: Any,
    norms: Any,
    diagonal: Any,
    code: int,
    parameters: Any,
    box: Any,
    first: int,
    middle: int,
    second: int,
    n: int,
    tol: float,
    max_steps: int,
) -> tuple[Any, Any, Any, Any, int, float]:
    """One pair, the points first.. (positive, `middle` of them) against second..: s, F, y, box, steps, violation."""
    y = np.empty(n)
    own_box = np.empty(n)
    own_diagonal = np.empty(n)
    for k in range(n):
        at = first + k if k < middle else second + k - middle
        y[k] = 1.0 if k < middle else -1.0
        own_box[k] = box[at]
        own_diagonal[k] = diagonal[at]
    s = np.zeros((1, n))
    F = np.zeros(n)
    linear = np.empty((1, n))
    lower = np.empty((1, n))
    upper = np.empty((1, n))
    for k in range(n):
        linear[0, k] = -y[k]
        lower[0, k] = min(0.0, y[k] * own_box[k])
        upper[0, k] = max(0.0, y[k] * own_box[k])
    ridge = np.zeros((1, n))
    group = np.zeros((1, n), np.intp)
    steps, violation = minimise_pairs_on_points(
        UT, norms, code, parameters, first, middle, second, own_diagonal, F, s, linear, ridge, lower, upper, group, 1,
        tol, max_steps,
    )  # fmt: skip
    return s[0], F, y, own_box, steps, violation


def _machine(*task: Any) -> PairSolution:
    """Train one pair and certify it; sorting is NumPy's, whose compiled twin takes seconds to build."""
    s, F, y, box, steps, violation = _train(*task)
    primal, gap, bias = _certificate(F, y, box, s, np.argsort(y - F))
    return PairSolution(s, bias, primal, gap, steps, violation)


def solve_pairs(
    tiles: Tiles,
    order: NDArray[np.intp],
    stretches: list[tuple[int, int, int, int]],
    box: NDArray[np.float64],
    tol: float,
    max_steps: int = -1,
    go_on: Callable[[], bool] = lambda: True,
) -> list[PairSolution | None]:
    """Train every pair of `stretches` (first, size, second, size) of the points taken in `order` (n,).

    `box` (n,) holds C_i in that order.  The points of the first stretch are the positive class; coefficients come in
    the order of the two stretches.  `go_on` is asked before each pair; those it forbids come back as None.
    """
    points = tiles.left
    UT = np.ascontiguousarray(points.U[order].T)
    norms, diagonal = points.a[order], tiles.diagonal()[order].astype(np.float64)
    limit = max_steps if max_steps >= 0 else np.iinfo(np.int64).max
    tasks = [
        (UT, norms, diagonal, tiles.code, tiles.parameters, box, a, size, b, size + other, tol, limit)
        for a, size, b, other in stretches
    ]
    # Large pairs first, so that no thread is left with one at the end.
    sequence = sorted(range(len(tasks)), key=lambda task: -tasks[task][9])
    results: list[PairSolution | None] = [None] * len(tasks)

    def train(some: list[int]) -> None:
        for task in some:
            if go_on():
                results[task] = _machine(*tasks[task])

    # Every hand-over waits for the interpreter's lock: a few of them for many pairs, none for little work.
    values = sum(task[9] ** 2 for task in tasks)
    parts = min(len(tasks), 4 * threads.count()) if values > HANDED_OVER else 1
    threads.run(train, [(sequence[part::parts],) for part in range(parts)])
    return results
