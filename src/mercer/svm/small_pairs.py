"""Small two-class machines of an SVC, trained from their points in one call each.

Points are put in the order of their classes once; a pair of classes is then two stretches of the same arrays.  Where
kernel values are cheap a compiled loop computes a row when it first needs it; where they are expensive, blocks of rows
come from the Gram operator.  Machines whose values turn out too coarse, and larger pairs, are left to the general
solver.
"""

import time
from collections.abc import Callable
from functools import partial
from itertools import accumulate, combinations

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.gram import RowsOnDemand
from mercer.machine.training_set import TrainingSet
from mercer.solvers.monitor import Monitor
from mercer.solvers.quadratic.pair_steps import ALL_ROWS
from mercer.solvers.quadratic.pairs import PairSolution, Stretches, Values, solve_pairs
from mercer.solvers.quadratic.rooms import BlockRows
from mercer.solvers.solution import Record, Solution, Stopped
from mercer.svm.solving import BinaryMachine

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
) -> dict[int, BinaryMachine]:
    """The machine of every pair that is small enough, by its number among the pairs i < j of `classes`.

    codes and box (n,) belong to the training points at `index` (None: all).  Coefficients come in the order of class i,
    then class j; for two classes in the order of the points.
    """
    counts = np.bincount(codes, minlength=classes).tolist()
    if training.kind != "features" or training.kernel.profile is None:
        return {}
    starts = [0, *accumulate(counts)]
    features = np.shape(training.points)[1]
    small: dict[int, Stretches] = {}
    rest: dict[int, Stretches] = {}
    for pair, (i, j) in enumerate(combinations(range(classes), 2)):
        size = counts[i] + counts[j]
        if counts[i] and counts[j] and size <= STORED_POINTS:
            suits = RowsOnDemand.suit(size, features)
            (small if suits else rest)[pair] = (starts[i], counts[i], starts[j], counts[j])
    if not small and not (rest and classes > 2):
        return {}
    order = np.argsort(codes, kind="stable")
    members = order if index is None else index[order]
    own_box = box[order]
    rows = RowsOnDemand.of(training.kernel, training.points, training.resources.precision) if small else None
    if rows is None:
        small, rest = {}, small | rest
    began = time.perf_counter()
    kept: dict[int, PairSolution | None] = {}
    if rows is not None:
        stretches = list(small.values())
        exact = partial(_exact_values, rows.exact_dot, members)
        found = solve_pairs(_values(rows, members, stretches), stretches, own_box, tol, max_iter, monitor.go_on, exact)
        kept |= zip(small, found)
    if rest and classes > 2:
        stretches = list(rest.values())
        largest = max(s[1] + s[3] for s in stretches)
        workers = min(threads.count(), training.resources.budget // (2 * largest**2 * training.itemsize))
        if workers:
            gram = training.streamed(members)
            exact = partial(_exact_values, gram.exact_dot, np.arange(len(members)))
            values = Values.growing(BlockRows(gram, largest))
            found = solve_pairs(values, stretches, own_box, tol, max_iter, monitor.go_on, exact, workers)
            kept |= zip(rest, found)
    seconds = (time.perf_counter() - began) / max(1, len(kept))
    results: dict[int, BinaryMachine] = {}
    for pair, machine in kept.items():
        if machine is None:
            continue
        coefficients, pair_box = machine.coefficients, machine.box
        if classes == 2:
            coefficients, pair_box = np.empty_like(coefficients), box
            coefficients[order] = machine.coefficients
        results[pair] = BinaryMachine(None, _solution(machine, coefficients, tol, max_iter, seconds), pair_box)
    return results


def _values(rows: RowsOnDemand, members: Index, stretches: list[Stretches]) -> Values:
    """Where small pairs of the points `members` have their kernel values from."""
    largest = max(s[1] + s[3] for s in stretches)
    if len(stretches) > 1 and len(members) <= SHARED_POINTS and largest <= ALL_ROWS:
        # Pairs this small need all their values, and every class is in several pairs: compute each value once.
        return Values.stored(rows.block(members, members))
    return Values.of_points(rows, members, largest)


def _exact_values(exact_dot: ExactDot, members: Index, pair: Stretches, c: Vector, some: Index) -> Vector:
    """K c in float64 at `some` of the points of a pair, which are two stretches of `members`."""
    first, size, second, other = pair
    own = np.concatenate([members[first : first + size], members[second : second + other]])
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
