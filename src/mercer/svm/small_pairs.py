"""Small two-class machines of an SVC, trained from their points in one compiled call each.

Points are put in the order of their classes once; a pair of classes is then two stretches of the same arrays, or of the
rows of a matrix that all pairs share where values are expensive.  Larger pairs are left to the general solver.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import accumulate, combinations

import numpy as np
from numpy.typing import NDArray

from mercer.machine.training_set import TrainingSet
from mercer.problems import Problem
from mercer.solvers.monitor import Monitor
from mercer.solvers.quadratic.pair_steps import ALL_ROWS
from mercer.solvers.quadratic.pairs import PairSolution, Start, Stretches, certified, solve_pairs, solve_stored_pairs
from mercer.solvers.solution import Record, Solution, Stopped

Vector = NDArray[np.float64]
Index = NDArray[np.intp]

ExactDot = Callable[[Index, Index, Vector], Vector]

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
    if training.kind != "features" or training.kernel.profile is None:
        return {}
    if sum(sorted(filter(None, counts))[:2]) > STORED_POINTS:
        return {}
    rows = training.rows_on_demand()
    starts = [0, *accumulate(counts)]
    stretches = {
        pair: (starts[i], counts[i], starts[j], counts[j])
        for pair, (i, j) in enumerate(combinations(range(classes), 2))
        if counts[i] and counts[j]
    }
    order = np.argsort(codes, kind="stable")
    members = order if index is None else index[order]
    own_box = box[order]
    small = {} if rows is None else {pair: s for pair, s in stretches.items() if rows.suit(s[1] + s[3])}
    began = time.perf_counter()
    machines: dict[int, PairSolution | None] = {}
    if small and rows is not None:
        several = len(small) > 1 and len(members) <= SHARED_POINTS
        if several and max(s[1] + s[3] for s in small.values()) <= ALL_ROWS:
            # Pairs this small need all their values, and every class is in several pairs: compute each value once.
            K = rows.block(members, members)
            found = solve_stored_pairs(K, list(small.values()), own_box, tol, max_iter, monitor.go_on)
        else:
            found = solve_pairs(rows, members, list(small.values()), own_box, tol, max_iter, monitor.go_on)
        machines |= dict(zip(small, found))
    rest = {p: s for p, s in stretches.items() if p not in small and s[1] + s[3] <= STORED_POINTS}
    if rest and classes > 2 and index is None:
        training.share(codes)
        matrix = training.by_class
        if matrix is not None:
            found = solve_stored_pairs(matrix, list(rest.values()), own_box, tol, max_iter, monitor.go_on)
            machines |= dict(zip(rest, found))
    exact_dot = training.exact_dot if rows is None else rows.exact_dot
    kept = _confirmed(exact_dot, members, stretches, machines, training.resources.precision, tol)
    coarse = [pair for pair in small if machines.get(pair) is not None and kept[pair] is None]
    finer = training.rows_on_demand("float64") if coarse and training.resources.precision != "float64" else None
    if finer is not None:
        some = {pair: stretches[pair] for pair in coarse}
        starts = [_start(exact_dot, members, stretches[pair], machines[pair]) for pair in coarse]
        spent = max(machine.steps for machine in machines.values() if machine is not None)
        left = max_iter if max_iter < 0 else max(0, max_iter - spent)
        found = solve_pairs(finer, members, list(some.values()), own_box, tol, left, monitor.go_on, starts)
        again = {pair: _after(machines[pair], machine) for pair, machine in zip(some, found)}
        kept |= _confirmed(exact_dot, members, stretches, again, "float64", tol)
    seconds = (time.perf_counter() - began) / max(1, len(machines))
    results: dict[int, tuple[Problem | None, Solution, Vector]] = {}
    for pair, machine in kept.items():
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


def _confirmed(
    exact_dot: ExactDot,
    points: Index,
    stretches: Mapping[int, Stretches],
    machines: Mapping[int, PairSolution | None],
    precision: str,
    tol: float,
) -> dict[int, PairSolution | None]:
    """The machines, trained on values of `precision`, whose certificates hold in exact arithmetic, else None.

    `exact_dot` computes K[rows][:, columns] c again in float64; `points` (n,) are the training points in the order of
    their classes.
    """
    exact = [
        partial(_exact_values, exact_dot, points, stretches[pair], machine.coefficients if machine else np.empty(0))
        for pair, machine in machines.items()
    ]
    found = certified(list(machines.values()), exact, precision, tol)
    return dict(zip(machines, found))


def _exact_values(
    exact_dot: ExactDot, points: Index, pair: Stretches, c: Vector, some: Index | slice = slice(None)
) -> Vector:
    """K c in float64 at `some` of the points of a pair."""
    first, size, second, other = pair
    own = np.concatenate([points[first : first + size], points[second : second + other]])
    support = np.flatnonzero(c)
    return exact_dot(own[some], own[support], c[support])


def _start(exact_dot: ExactDot, points: Index, pair: Stretches, machine: PairSolution | None) -> Start:
    """Where finer values go on from: the coefficients that coarse ones gave, and what they are worth exactly."""
    assert machine is not None
    return machine.coefficients, _exact_values(exact_dot, points, pair, machine.coefficients)


def _after(before: PairSolution | None, machine: PairSolution | None) -> PairSolution | None:
    """A machine that went on from another one, with the steps of both."""
    if before is None or machine is None:
        return machine
    return machine._replace(steps=before.steps + machine.steps)


def _solution(machine: PairSolution, coefficients: Vector, tol: float, max_iter: int, seconds: float) -> Solution:
    """A pair's machine as any solver would give it."""
    stopped: Stopped = "converged"
    if machine.violation > tol:
        stopped = "iterations" if 0 <= max_iter <= machine.steps else "stalled"
    details, found = {"violation": machine.violation}, machine.certificate
    return Solution.certified(
        found,
        coefficients,
        coefficients,
        solver=NAME,
        iterations=machine.steps,
        stopped=stopped,
        seconds=seconds,
        history=[Record(machine.steps, seconds, found.primal, found.dual, found.gap, details)],
        details=details,
    )
