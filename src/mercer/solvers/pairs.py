"""Many small two-class problems at once: one compiled call for each pair of classes, from the points themselves.

    min 1/2 ||f||^2 + sum_i C_i (1 - y_i (f(x_i) + b))_+          over the points of two classes

One-against-one training of k classes makes k (k - 1) / 2 such problems, most of them small and easy.  Points are
sorted by class once, so that a pair of classes is two stretches of the same arrays; kernel rows are computed when a
point first takes part in a step; the certificate (primal, gap, gap-optimal bias) is computed in the same call.  Pairs
run side by side on all threads and share points, norms and parameters.  Where values are dear and the whole matrix is
held in the order of the classes, a pair is two stretches of its rows, and nothing is copied.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.compiled import loop
from mercer.gram.tiles import Tiles
from mercer.solvers.pair_steps import minimise_pairs, minimise_pairs_on_points

# Fewer kernel values than this in all pairs together are not worth handing to other threads.
HANDED_OVER = 4_000_000


Stretches = tuple[int, int, int, int]


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
def _pair_arrays(diagonal: Any, box: Any, first: int, middle: int, second: int, n: int) -> Any:
    """Labels, box, diagonal, linear term and bounds of a pair: `middle` points from first.. against second.."""
    y = np.empty(n)
    own_box = np.empty(n)
    own_diagonal = np.empty(n)
    linear = np.empty((1, n))
    lower = np.empty((1, n))
    upper = np.empty((1, n))
    for k in range(n):
        at = first + k if k < middle else second + k - middle
        y[k] = 1.0 if k < middle else -1.0
        own_box[k] = box[at]
        own_diagonal[k] = diagonal[at]
        linear[0, k] = -y[k]
        lower[0, k] = min(0.0, y[k] * own_box[k])
        upper[0, k] = max(0.0, y[k] * own_box[k])
    return y, own_box, own_diagonal, linear, lower, upper


@loop
def _train(
    UT: Any,
    norms: Any,
    code: int,
    parameters: Any,
    diagonal: Any,
    box: Any,
    first: int,
    middle: int,
    second: int,
    n: int,
    tol: float,
    max_steps: int,
) -> tuple[Any, Any, Any, Any, int, float]:
    """One pair from its points: s, F, y, box, steps, violation."""
    y, own_box, own_diagonal, linear, lower, upper = _pair_arrays(diagonal, box, first, middle, second, n)
    s, F = np.zeros((1, n)), np.zeros(n)
    steps, violation = minimise_pairs_on_points(
        UT, norms, code, parameters, first, middle, second, own_diagonal, F, s, linear, np.zeros((1, n)), lower, upper,
        np.zeros((1, n), np.intp), 1, tol, max_steps,
    )  # fmt: skip
    return s[0], F, y, own_box, steps, violation


@loop
def _train_stored(
    K: Any,
    diagonal: Any,
    box: Any,
    first: int,
    middle: int,
    second: int,
    n: int,
    tol: float,
    max_steps: int,
) -> tuple[Any, Any, Any, Any, int, float]:
    """One pair from two stretches of a stored matrix: s, F, y, box, steps, violation."""
    y, own_box, own_diagonal, linear, lower, upper = _pair_arrays(diagonal, box, first, middle, second, n)
    s, F = np.zeros((1, n)), np.zeros(n)
    steps, violation = minimise_pairs(
        K, first, middle, second, own_diagonal, F, s, linear, np.zeros((1, n)), lower, upper,
        np.zeros((1, n), np.intp), 1, tol, max_steps,
    )  # fmt: skip
    return s[0], F, y, own_box, steps, violation


def _machine(train: Any, task: tuple[Any, ...]) -> PairSolution:
    """Train one pair and certify it; sorting is NumPy's, whose compiled twin takes seconds to build."""
    s, F, y, box, steps, violation = train(*task)
    primal, gap, bias = _certificate(F, y, box, s, np.argsort(y - F))
    return PairSolution(s, bias, primal, gap, steps, violation)


def solve_pairs(
    tiles: Tiles,
    order: NDArray[np.intp],
    stretches: list[Stretches],
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
    diagonal = tiles.diagonal()[order].astype(np.float64)
    common = (UT, points.a[order], tiles.code, tiles.parameters, diagonal, box)
    return _run(_train, common, stretches, tol, max_steps, go_on)


def solve_stored_pairs(
    K: NDArray[Any],
    stretches: list[Stretches],
    box: NDArray[np.float64],
    tol: float,
    max_steps: int = -1,
    go_on: Callable[[], bool] = lambda: True,
) -> list[PairSolution | None]:
    """The same for points whose kernel matrix K (n, n) is in memory; no part of it is copied."""
    common = (K, np.diagonal(K).astype(np.float64), box)
    return _run(_train_stored, common, stretches, tol, max_steps, go_on)


def _run(
    train: Any,
    common: tuple[Any, ...],
    stretches: list[Stretches],
    tol: float,
    max_steps: int,
    go_on: Callable[[], bool],
) -> list[PairSolution | None]:
    """All pairs, side by side."""
    limit = max_steps if max_steps >= 0 else int(np.iinfo(np.int64).max)
    sizes = [size + other for _, size, _, other in stretches]
    # Large pairs first, so that no thread is left with one at the end.
    sequence = sorted(range(len(sizes)), key=lambda pair: -sizes[pair])
    results: list[PairSolution | None] = [None] * len(sizes)

    def run(some: list[int]) -> None:
        for pair in some:
            first, size, second, _ = stretches[pair]
            if go_on():
                results[pair] = _machine(train, (*common, first, size, second, sizes[pair], tol, limit))

    # Every hand-over waits for the interpreter's lock: a few of them for many pairs, none for little work.
    parts = min(len(sizes), 4 * threads.count()) if sum(n * n for n in sizes) > HANDED_OVER else 1
    threads.run(run, [(sequence[part::parts],) for part in range(parts)])
    return results
