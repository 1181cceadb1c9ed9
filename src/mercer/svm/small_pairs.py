"""Small two-class machines of an SVC, trained from their points in one compiled call each (`mercer.solvers.pairs`).

Points are put in the order of their classes once; a pair of classes is then two stretches of the same arrays, or of the
rows of a matrix that all pairs share where values are dear.  Larger pairs are left to the general solver.
"""

import time
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.estimation.pairwise import pairs_of
from mercer.estimation.training import TrainingSet
from mercer.problems import Problem
from mercer.solvers.monitor import Monitor
from mercer.solvers.pair_steps import ALL_ROWS, on_demand
from mercer.solvers.pairs import PairSolution, solve_pairs, solve_stored_pairs
from mercer.solvers.solution import Record, Solution, Stopped

Vector = NDArray[np.float64]
Index = NDArray[np.intp]

NAME = "pairs"
# Pairs of more points are better solved by working sets.
STORED_POINTS = 6000
# Small pairs of so many points in all share one matrix.
SHARED_POINTS = 2048


def train_pairs(
    training: TrainingSet,
    codes: Index,
    classes: int,
    box: Vector,
    index: Index | None,
    tol: float,
    max_iter: int,
    monitor: Monitor,
) -> dict[int, tuple[Problem | None, Solution, Vector]]:
    """Solutions and box of every pair that is small enough, by its number among the pairs i < j of `classes`.

    codes and box (n,) belong to the training points at `index` (None: all).  Coefficients come in the order of class i,
    then class j; for two classes in the order of the points.
    """
    counts = np.bincount(codes, minlength=classes).tolist()
    if sum(sorted(count for count in counts if count)[:2]) > STORED_POINTS:
        return {}
    tiles = training.tiles()
    if tiles is None:
        return {}
    starts = [0, *accumulate(counts)]
    stretches = {
        pair: (starts[i], counts[i], starts[j], counts[j])
        for pair, (i, j) in enumerate(zip(*(side.tolist() for side in pairs_of(classes))))
        if counts[i] and counts[j]
    }
    order = np.argsort(codes, kind="stable")
    own_box = box[order]
    small = {pair: s for pair, s in stretches.items() if on_demand(tiles, s[1] + s[3])}
    began = time.perf_counter()
    machines: dict[int, PairSolution | None] = {}
    if small:
        points = order if index is None else index[order]
        largest = max(s[1] + s[3] for s in small.values())
        if len(small) > 1 and largest <= ALL_ROWS and len(points) <= SHARED_POINTS:
            # Pairs this small need all their values, and every class is in several pairs: compute each value once.
            K = tiles.fill(points, points, np.empty((len(points), len(points)), tiles.dtype))
            found = solve_stored_pairs(K, list(small.values()), own_box, tol, max_iter, monitor.go_on)
        else:
            found = solve_pairs(tiles, points, list(small.values()), own_box, tol, max_iter, monitor.go_on)
        machines |= dict(zip(small, found))
    rest = {p: s for p, s in stretches.items() if p not in small and s[1] + s[3] <= STORED_POINTS}
    if rest and classes > 2 and index is None:
        training.share(codes)
        matrix = training.by_class
        if matrix is not None:
            found = solve_stored_pairs(matrix, list(rest.values()), own_box, tol, max_iter, monitor.go_on)
            machines |= dict(zip(rest, found))
    seconds = (time.perf_counter() - began) / max(1, len(machines))
    results: dict[int, tuple[Problem | None, Solution, Vector]] = {}
    for pair, machine in machines.items():
        if machine is None:
            continue
        a, size, b, other = stretches[pair]
        pair_box = np.concatenate([own_box[a : a + size], own_box[b : b + other]])
        coefficients = machine.coefficients
        if classes == 2:
            coefficients, pair_box = np.empty_like(coefficients), box
            coefficients[order] = machine.coefficients
        results[pair] = None, _solution(machine, coefficients, tol, max_iter, seconds), pair_box
    return results


def _solution(machine: PairSolution, coefficients: Vector, tol: float, max_iter: int, seconds: float) -> Solution:
    """A pair's machine as any solver would give it."""
    stopped: Stopped = "converged"
    if machine.violation > tol:
        stopped = "iterations" if 0 <= max_iter <= machine.steps else "stalled"
    details: dict[str, Any] = {"violation": machine.violation}
    return Solution(
        coefficients,
        machine.bias,
        coefficients,
        machine.primal,
        machine.primal - machine.gap,
        machine.gap,
        machine.steps,
        stopped,
        seconds,
        NAME,
        history=[Record(machine.steps, seconds, machine.primal, machine.primal - machine.gap, machine.gap, details)],
        details=details,
    )
