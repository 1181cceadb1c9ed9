"""Small two-class machines of an SVC, trained from their points in one call each.

Points are put in the order of their classes once; a pair of classes is then two stretches of the same arrays.  Where
kernel values are cheap a compiled loop computes a row when it first needs it; where they are expensive, blocks of rows
come from the Gram operator.  Machines whose values turn out too coarse, and larger pairs, are left to the general
solver.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import accumulate, combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.gram import RowsOnDemand
from mercer.machine.training_set import TrainingSet
from mercer.problems import Problem
from mercer.solvers.monitor import Monitor
from mercer.solvers.quadratic.pair_steps import ALL_ROWS
from mercer.solvers.quadratic.pairs import (
    PairSolution,
    Stretches,
    certified,
    solve_growing_pairs,
    solve_pairs,
    solve_stored_pairs,
)
from mercer.solvers.quadratic.rooms import BlockRows
from mercer.solvers.solution import Record, Solution, Stopped

Vector = NDArray[np.float64]
Index = NDArray[np.intp]

ExactDot = Callable[[Index, Index, Vector], Vector]
Solve = Callable[..., list[PairSolution | None]]

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
    starts = [0, *accumulate(counts)]
    stretches = {
        pair: (starts[i], counts[i], starts[j], counts[j])
        for pair, (i, j) in enumerate(combinations(range(classes), 2))
        if counts[i] and counts[j]
    }
    order = np.argsort(codes, kind="stable")
    members = order if index is None else index[order]
    own_box = box[order]
    features = np.shape(training.points)[1]
    small = {pair: s for pair, s in stretches.items() if RowsOnDemand.suit(s[1] + s[3], features)}
    rows = training.rows_on_demand() if small else None
    if rows is None:
        small = {}
    rest = {pair: s for pair, s in stretches.items() if pair not in small and s[1] + s[3] <= STORED_POINTS}
    began = time.perf_counter()
    kept: dict[int, PairSolution | None] = {}
    if small and rows is not None:
        solve = _from_rows(rows, members, list(small.values()))
        at_members = partial(_at_members, rows.exact_dot, members)
        kept |= _solved(solve, at_members, small, own_box, rows.dtype, tol, max_iter, monitor)
    if rest and classes > 2:
        largest = max(s[1] + s[3] for s in rest.values())
        workers = min(threads.count(), training.resources.budget // (2 * largest**2 * training.itemsize))
        if workers:
            gram = training.streamed(members)
            solve = partial(solve_growing_pairs, BlockRows(gram, largest), most=workers)
            kept |= _solved(solve, gram.exact_dot, rest, own_box, gram.dtype, tol, max_iter, monitor)
    seconds = (time.perf_counter() - began) / max(1, len(kept))
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


def _from_rows(rows: RowsOnDemand, members: Index, stretches: list[Stretches]) -> Solve:
    """How small pairs of the points `members` are solved."""
    if len(stretches) > 1 and len(members) <= SHARED_POINTS and max(s[1] + s[3] for s in stretches) <= ALL_ROWS:
        # Pairs this small need all their values, and every class is in several pairs: compute each value once.
        return partial(solve_stored_pairs, rows.block(members, members))
    return partial(solve_pairs, rows, members)


def _at_members(exact_dot: ExactDot, members: Index, rows: Index, columns: Index, c: Vector) -> Vector:
    """`exact_dot` for positions among `members`."""
    return exact_dot(members[rows], members[columns], c)


def _solved(
    solve: Solve,
    exact_dot: ExactDot,
    stretches: Mapping[int, Stretches],
    box: Vector,
    dtype: Any,
    tol: float,
    max_iter: int,
    monitor: Monitor,
) -> dict[int, PairSolution | None]:
    """The machines of all pairs whose certificates hold in exact arithmetic, None in the place of the others.

    `exact_dot` computes K[rows][:, columns] c in float64, whatever the `dtype` of the values that machines are trained
    on; points are in the order of their classes.
    """
    exact, pairs = partial(_exact_values, exact_dot), list(stretches.values())
    found = solve(pairs, box, tol, max_iter, monitor.go_on, None if np.dtype(dtype) == np.float64 else exact)
    return dict(zip(stretches, certified(found, pairs, exact, dtype, tol)))


def _exact_values(exact_dot: ExactDot, pair: Stretches, c: Vector, some: Index) -> Vector:
    """K c in float64 at `some` of the points of a pair."""
    first, size, second, other = pair
    own = np.concatenate([np.arange(first, first + size), np.arange(second, second + other)])
    support = np.flatnonzero(c)
    return exact_dot(own[some], own[support], c[support])


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
