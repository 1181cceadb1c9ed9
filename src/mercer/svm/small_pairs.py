"""Small two-class machines of an SVC, trained from their points in one compiled call each (`mercer.solvers.pairs`).

Points are put in the order of their classes once; a pair of classes is then two stretches of the same arrays.  Pairs
with more points than the loops are made for are left to the general solver.
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.estimation.pairwise import pairs_of
from mercer.estimation.training import TrainingSet
from mercer.problems import Problem
from mercer.solvers.monitor import Monitor
from mercer.solvers.pair_steps import ON_DEMAND_POINTS, on_demand
from mercer.solvers.pairs import PairSolution, solve_pairs
from mercer.solvers.solution import Solution, Stopped

Vector = NDArray[np.float64]
Index = NDArray[np.intp]

NAME = "pairs from points"


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
    counts = np.bincount(codes, minlength=classes)
    if np.sort(counts[counts > 0])[:2].sum() > ON_DEMAND_POINTS:
        return {}
    tiles = training.tiles()
    if tiles is None:
        return {}
    starts = np.concatenate([[0], np.cumsum(counts)])
    chosen, stretches = [], []
    for pair, (i, j) in enumerate(zip(*pairs_of(classes))):
        if counts[i] and counts[j] and on_demand(tiles, int(counts[i] + counts[j])):
            chosen.append(pair)
            stretches.append((int(starts[i]), int(counts[i]), int(starts[j]), int(counts[j])))
    if not chosen or not monitor.go_on():
        return {}
    began = time.perf_counter()
    order = np.argsort(codes, kind="stable")
    sorted_box = box[order]
    machines = solve_pairs(
        tiles, order if index is None else index[order], stretches, sorted_box, tol, max_iter, monitor.go_on
    )
    seconds = (time.perf_counter() - began) / len(chosen)
    found: dict[int, tuple[Problem | None, Solution, Vector]] = {}
    for pair, (a, size, b, other), machine in zip(chosen, stretches, machines):
        if machine is None:
            continue
        own = np.concatenate([sorted_box[a : a + size], sorted_box[b : b + other]])
        coefficients = machine.coefficients
        if classes == 2:
            coefficients, own = np.empty_like(coefficients), box
            coefficients[order] = machine.coefficients
        found[pair] = None, _solution(machine, coefficients, tol, max_iter, seconds), own
    return found


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
        details=details,
    )
