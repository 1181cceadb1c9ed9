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
from mercer.gram import GramOperator, RowsOnDemand
from mercer.machine.training_set import TrainingSet
from mercer.planning import seconds_on_factor
from mercer.solvers.monitor import Monitor
from mercer.solvers.quadratic.pair_steps import ALL_ROWS
from mercer.solvers.quadratic.pairs import Exact, PairSolution, Stretches, Values, solve_pairs
from mercer.solvers.quadratic.rooms import BlockRows
from mercer.solvers.solution import Record, Solution, Stopped
from mercer.svm.solving import BinaryMachine

Vector = NDArray[np.float64]
Index = NDArray[np.intp]

ExactDot = Callable[[Index, Index, Vector], Vector]

NAME = "pairs"
# Pairs of more points are better solved by working sets.
STORED_POINTS = 6000
# Steps times points a second, about: where a thin factor is there pairs may take as long by steps as they would by it.
STEPPED = 2e9
# Small pairs of so many points in all share one matrix.
SHARED_POINTS = 2048
# The share of the memory that a matrix for all pairs may take where values are expensive.
SHARE_OF_SHARED = 0.5


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
    longest = None
    if training.by_factor:  # many pairs take a few steps only
        largest = max(size + other for _, size, _, other in (*small.values(), *rest.values()))
        longest = int(STEPPED * seconds_on_factor(largest, features))
    solve = partial(solve_pairs, box=own_box, tol=tol, max_steps=max_iter, go_on=monitor.go_on, longest=longest)
    if rows is not None:
        stretches = list(small.values())
        exact = partial(_exact_values, rows.exact_dot, members)
        kept |= zip(small, solve(_values(rows, members, stretches), stretches, exact=exact))
    if rest and classes > 2:
        kept |= zip(rest, _expensive_pairs(training, members, list(rest.values()), solve))
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


def _expensive_pairs(
    training: TrainingSet, members: Index, pairs: list[Stretches], solve: Callable[..., list[PairSolution | None]]
) -> list[PairSolution | None]:
    """The machines of pairs whose values come in blocks of rows, or from one matrix where they need most of it.

    How many rows a pair needs is seen at the largest ones.
    """
    n, sizes = len(members), np.array([size + other for _, size, _, other in pairs])
    largest = int(sizes.max())
    workers = min(threads.count(), training.resources.budget // (2 * largest**2 * training.itemsize))
    if not workers:
        return [None] * len(pairs)
    most = SHARE_OF_SHARED * training.resources.budget / n**2  # bytes for a value of a matrix of all points

    def exact(gram: GramOperator) -> Exact:
        return partial(_exact_values, gram.exact_dot, np.arange(n))

    def on_matrix(gram: GramOperator, some: list[Stretches]) -> list[PairSolution | None]:
        return solve(Values.stored(gram.block(None, None)), some, exact=exact(gram))

    if largest <= ALL_ROWS and most >= np.dtype(np.float64).itemsize:
        # Their steps take no time, and from values in float64 none have to be taken again.
        return on_matrix(training.streamed(members, "float64"), pairs)
    gram = training.streamed(members)
    rows = BlockRows(gram, largest)
    on_rows = partial(solve, Values.growing(rows), exact=exact(gram), workers=workers)
    if np.sum(sizes**2) <= n**2 or most < training.itemsize:
        return on_rows(pairs)
    order = np.argsort(-sizes, kind="stable")
    first, others = order[:workers], order[workers:]
    found: dict[int, PairSolution | None] = dict(zip(first, on_rows([pairs[at] for at in first])))
    needed = rows.filled / np.sum(sizes[first] ** 2) * np.sum(sizes[others] ** 2)
    rest = [pairs[at] for at in others]
    found |= zip(others, on_matrix(gram, rest) if needed > n**2 else on_rows(rest))
    return [found[at] for at in range(len(pairs))]


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
