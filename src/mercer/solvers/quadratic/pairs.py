"""Many small two-class problems at once: one compiled call for each pair of classes, from the points themselves.

    min 1/2 ||f||^2 + sum_i C_i (1 - y_i (f(x_i) + b))_+          over the points of two classes

One-against-one training of k classes makes k (k - 1) / 2 such problems, most of them small and easy.  Points are
sorted by class once, so that a pair of classes is two stretches of the same arrays.  Kernel rows are computed when a
point first takes part in a step or, where values are expensive, in blocks; where the whole matrix is held in the order
of the classes, a pair is two stretches of its rows, and nothing is copied.  The certificate (primal, gap, gap-optimal
bias and multiple) is one more compiled call.  Pairs run side by side on all threads and share points, norms and
parameters.

Sums of float32 values with large coefficients are coarse.  A machine that has to expect so goes on from where it is
with the outputs K c that matter computed again in float64: what is coarse then is only what is added from there on.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from operator import mul
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.compiled import loop
from mercer.gram import RowsOnDemand
from mercer.losses import Hinge
from mercer.problems.certificate import SCALED_FROM, Certificate
from mercer.problems.scale import ENOUGH, EVALUATIONS, NO_LEFT, NO_RIGHT, Tangent, lowest_of_model
from mercer.problems.statement import Costs, stated
from mercer.solvers.quadratic.growing_rows import minimise_on_growing_rows
from mercer.solvers.quadratic.pair_steps import minimise_pairs, minimise_pairs_on_points
from mercer.solvers.quadratic.rooms import BlockRows, PointRows
from mercer.solvers.verification import MEAN_ROUNDING, ROUNDING, mean_bound, negligible

# Fewer kernel values than this in all pairs together are not worth handing to other threads.
HANDED_OVER = 4_000_000
# Machines, and points of each kind in them, whose values are computed again to see how far off those of all are.
SAMPLED_PAIRS = 4
SAMPLED_POINTS = 32
# Errors to expect in the mean, and of their mean with sign, in units of eps sqrt(sum_j s_j^2 k_jj), before one is
# seen.  Too low they cost a second solve of another kind, too high a look at exact values that was not needed.
EXPECTED, EXPECTED_MEAN = 4.0, 1.0
# How often a machine goes on from exact values.
REFINEMENTS = 2
# Margins closer to one than this are on it: they are rounded sums.
ON_MARGIN = 1e-12
# A pair is one compiled call, during which nobody looks at time limits and Ctrl-C.  One that takes more steps than pass
# over so many values, about a second, is left to a solver that looks up meanwhile.
LONGEST_CALL = 500_000_000
DOUBLE = float(np.finfo(np.float64).eps)

Vector = NDArray[np.float64]
Index = NDArray[np.intp]
Stretches = tuple[int, int, int, int]
# K c in float64 at some of the points of a pair, with coefficients c of all its points.
Exact = Callable[[Stretches, Vector, Index], Vector]


class Values(NamedTuple):
    """Where kernel values between points come from: compiled steps with what they read, k_ii (n,), and their type."""

    minimise: Any
    source: Any
    diagonal: Vector
    dtype: Any

    @classmethod
    def of_points(cls, rows: RowsOnDemand, order: Index, largest: int) -> "Values":
        """Rows of the points taken in `order` (n,), each computed when a point first takes part in a step.

        `largest` is the number of points of the largest pair.
        """
        points = PointRows(rows.columns(order), largest, rows.dtype)
        return cls(_minimise_on_points, points, rows.diagonal()[order].astype(np.float64), rows.dtype)

    @classmethod
    def stored(cls, K: NDArray[Any]) -> "Values":
        """A matrix K (n, n) in memory; no part of it is copied."""
        return cls(minimise_pairs, K, np.diagonal(K).astype(np.float64), K.dtype)

    @classmethod
    def growing(cls, rows: BlockRows) -> "Values":
        """Blocks of rows of expensive values, computed when they are needed."""
        return cls(minimise_on_growing_rows, rows, rows.gram.diagonal().astype(np.float64), rows.gram.dtype)


class Effects(NamedTuple):
    """What errors of F = K c do to a machine, where those of point i are up to `unit` size sqrt(k_ii).

    At the points whose F was exact for other coefficients, size^2 = sum_j (s_j - origin_j)^2 k_jj with those as origin;
    at the others it is `whole`, with an origin of zero.  `free` is the sum of box_i sqrt(k_ii) over the `inside` points
    strictly inside their bounds, `norm` that of |s_i| sqrt(k_ii) over the `support`, `crossing` the most that the
    errors of points at a bound can add to the gap by taking them across the margin; `total` and `largest` of |s_i|.
    """

    size: float
    whole: float
    free: float
    norm: float
    crossing: float
    total: float
    largest: float
    inside: int
    support: int


class PairSolution(NamedTuple):
    """One machine: signed coefficients of its points (n,), certificate, steps, violation, K c, C_i and k_ii (n,)."""

    coefficients: Vector
    certificate: Certificate
    steps: int
    violation: float
    values: Vector
    box: Vector
    diagonal: Vector
    effects: Effects

    @property
    def free(self) -> NDArray[np.bool_]:
        """Which points (n,) are strictly inside their bounds."""
        size = np.abs(self.coefficients)
        return (size > 0.0) & (size < self.box)


@loop
def best_bias(F: Any, y: Any, box: Any, t: float) -> Any:
    """The b that makes sum_i C_i (1 - y_i (t F_i + b))_+ smallest: a weighted median of the break points y - t F.

    The slope in b starts at minus the C_i of the positive class and rises by C_i at each break point.  Where it is zero
    between two of them the middle is taken.  As in quicksort, the part that holds the median is cut in three again and
    again, without sorting the rest.
    """
    n = F.shape[0]
    e, weight = np.empty(n), np.empty(n)
    total = need = 0.0
    for k in range(n):
        e[k], weight[k] = y[k] - t * F[k], box[k]
        total += box[k]
        if y[k] > 0:
            need += box[k]
    flat = 1e-12 * total
    first, last = 0, n
    found = e[0]
    while last > first:
        a, b, c = e[first], e[(first + last) // 2], e[last - 1]
        found = max(min(a, b), min(max(a, b), c))
        # below first..low, equal low..at, above high..last
        low, at, high = first, first, last
        below = equal = 0.0
        while at < high:
            if e[at] < found:
                below += weight[at]
                e[low], e[at], weight[low], weight[at] = e[at], e[low], weight[at], weight[low]
                low += 1
                at += 1
            elif e[at] > found:
                high -= 1
                e[high], e[at], weight[high], weight[at] = e[at], e[high], weight[at], weight[high]
            else:
                equal += weight[at]
                at += 1
        if below - need >= -flat and low > first:
            last = low
        elif below + equal - need > flat:
            return found
        elif below + equal - need >= -flat:
            ahead = np.inf
            for k in range(at, n):
                if weight[k] > flat and found < e[k] < ahead:
                    ahead = e[k]
            return 0.5 * (found + ahead) if ahead < np.inf else found
        else:
            need -= below + equal
            first = at
    return found


@loop
def _at_scale(F: Any, y: Any, box: Any, s: Any, t: float) -> tuple[float, float, float, float]:
    """Primal value and gap of the multiple t f with its best bias, that bias, and the slope of the primal in t.

    s sums to zero.  The gap is the sum of (1 - t)^2 s'F / 2 and of non-negative
    terms.  The slope at the best bias is t s'F - sum_i r_i F_i with responses r of the losses that sum to zero, where
    points on the margin, whose responses may be anything in their boxes, make up the sum.
    """
    n = F.shape[0]
    bias = best_bias(F, y, box, t)
    norm = losses = gap = slope = missing = 0.0
    for k in range(n):
        margin = y[k] * (t * F[k] + bias)
        loss = box[k] * max(0.0, 1.0 - margin)
        norm += s[k] * F[k]
        losses += loss
        gap += max(0.0, loss + abs(s[k]) * (margin - 1.0))
        if margin < 1.0 - ON_MARGIN:
            slope -= box[k] * y[k] * F[k]
            missing -= box[k] * y[k]
    for k in range(n):
        if abs(y[k] * (t * F[k] + bias) - 1.0) <= ON_MARGIN:
            response = min(max(missing, min(0.0, box[k] * y[k])), max(0.0, box[k] * y[k]))
            slope -= response * F[k]
            missing -= response
    norm = max(norm, 0.0)
    return 0.5 * t * t * norm + losses, gap + 0.5 * (1.0 - t) ** 2 * norm, bias, t * norm + slope


@loop
def _effects(
    F: Any, y: Any, box: Any, s: Any, origin: Any, sharp: Any, diagonal: Any, bias: float, unit: float
) -> Effects:
    """What errors of F do; at the points marked `sharp` F was exact for the coefficients `origin`."""
    size = whole = 0.0
    for k in range(F.shape[0]):
        moved = s[k] - origin[k]
        size += moved * moved * diagonal[k]
        whole += s[k] * s[k] * diagonal[k]
    size, whole = np.sqrt(size), np.sqrt(whole)
    free = norm = crossing = total = largest = 0.0
    inside = support = 0
    for k in range(F.shape[0]):
        root, amount = np.sqrt(max(0.0, diagonal[k])), abs(s[k])
        norm += amount * root
        total += amount
        largest = max(largest, amount)
        support += amount > 0.0
        if 0.0 < amount < box[k]:
            free += box[k] * root
            inside += 1
        else:
            reach = unit * (size if sharp[k] else whole) * root
            crossing += box[k] * max(0.0, reach - abs(1.0 - y[k] * (F[k] + bias)))
    return Effects(size, whole, free, norm, crossing, total, largest, inside, support)


@loop
def _judged(
    F: Any, y: Any, box: Any, s: Any, origin: Any, sharp: Any, diagonal: Any, unit: float
) -> tuple[float, float, float, Effects]:
    """Primal value and gap of the best multiple, the bias of the function itself, and what errors of F do."""
    primal, gap, bias, slope = _at_scale(F, y, box, s, 1.0)
    if gap > SCALED_FROM * max(abs(primal), abs(primal - gap)):
        primal, gap = _best_multiple(F, y, box, s, primal, gap, slope)
    return primal, gap, bias, _effects(F, y, box, s, origin, sharp, diagonal, bias, unit)


_lowest_of_model = loop(lowest_of_model)


@loop
def _best_multiple(F: Any, y: Any, box: Any, s: Any, primal: float, gap: float, slope: float) -> tuple[float, float]:
    """Primal and gap of the best multiple t f, from those at t = 1 and the slope of the primal there.

    The search of `mercer.problems.scale`, compiled.
    """
    norm = 0.0
    for k in range(F.shape[0]):
        norm += s[k] * F[k]
    t, here, lowest, least = 1.0, primal, primal, gap
    left, right = NO_LEFT, NO_RIGHT
    for _ in range(EVALUATIONS):
        if not norm > 0.0 or slope == 0.0:
            break
        line = Tangent(t, here - 0.5 * norm * t * t, slope - norm * t)
        if slope < 0.0:
            left = line
        else:
            right = line
        before = t
        t, model = _lowest_of_model(norm, left, right)
        if lowest - model <= ENOUGH * least or t == before:
            break
        here, found, _, slope = _at_scale(F, y, box, s, t)
        if found < least:
            lowest, least = here, found
    return lowest, least


@cache
def _units() -> Vector:
    """Linear term, lower and upper bounds (3, 2) of a point of the positive and of the negative class at C = 1."""
    unread: Any = None  # the kernel values are the steps' own matter
    program = stated(unread, Hinge(), np.array([1.0, -1.0]), Costs(np.ones(2), np.ones(2)))
    return np.array((program.linear, program.lower, program.upper))


def _side(y: float, box: Vector, diagonal: Vector) -> Vector:
    """Linear term, bounds, y, C_i and k_ii, (6, n), of points that are all of the class y = 1 or y = -1."""
    linear, lower, upper = _units()[:, 0 if y > 0.0 else 1]
    side = np.empty((6, box.size))
    side[0], side[1], side[2], side[3], side[4], side[5] = linear, lower * box, upper * box, y, box, diagonal
    return side


def _machine(
    values: Values, sides: tuple[Vector, Vector], pair: Stretches, tol: float, most: int, exact: Exact | None
) -> PairSolution:
    """Train one pair and certify it."""
    first, size, second, other = pair
    n, stretches = size + other, (first, size, second)
    points = np.concatenate((sides[0][:, first : first + size], sides[1][:, second : second + other]), axis=1)
    y, box, diagonal = points[3:]
    program = points[0:1], np.zeros((1, n)), points[1:2], points[2:3], np.zeros((1, n), np.intp)
    s, F, origin, sharp = np.zeros(n), np.zeros(n), np.zeros(n), np.ones(n, np.bool_)
    eps, steps, left = float(np.finfo(values.dtype).eps), 0, REFINEMENTS
    while True:
        taken, violation = values.minimise(
            values.source, stretches, diagonal, F, s[None], program, 1, tol, most - steps
        )
        steps += taken
        primal, gap, bias, effects = _judged(F, y, box, s, origin, sharp, diagonal, ROUNDING * eps)
        certificate = Certificate(primal, primal - gap, gap, bias)
        machine = PairSolution(s, certificate, steps, violation, F, box, diagonal, effects)
        if exact is None or values.dtype == np.float64 or not left or steps >= most:
            return machine
        if _doubt(machine, EXPECTED * eps, EXPECTED_MEAN * eps, values.dtype, tol) is not None:
            return machine
        left -= 1
        origin = s.copy()
        # Where errors cannot take a point without coefficient across the margin its output need not be known better.
        near = np.abs(1.0 - y * (F + bias)) <= 2.0 * ROUNDING * eps * effects.whole * np.sqrt(diagonal)
        sharp = (s != 0.0) | near
        F[sharp] = exact(pair, s, np.flatnonzero(sharp))


def _errors(
    machines: Sequence[PairSolution | None], stretches: Sequence[Stretches], exact: Exact, dtype: Any
) -> tuple[float, float]:
    """The errors of K c, and their mean with sign, in the units of `Effects` and beside those of rounding.

    `exact` computes K c of a machine again in float64.  The values of all machines came about in one way, so that a
    sample of a few serves all.  In float64 what rounding lets one expect is enough.
    """
    there = np.flatnonzero(list(map(bool, machines)))
    if dtype == np.float64 or not len(there):
        return 0.0, 0.0
    random = np.random.default_rng(0)
    chosen = random.choice(there, min(len(there), SAMPLED_PAIRS), replace=False).tolist()
    shares = [_sampled_errors(machines[pair], partial(exact, stretches[pair]), random) for pair in chosen]
    errors, energies = map(np.concatenate, zip(*shares))
    free = support = 0
    for machine in filter(None, machines):
        free += machine.effects.inside
        support += machine.effects.support
    return mean_bound(errors, free), mean_bound(energies, support)


def _sampled_errors(
    machine: PairSolution | None, exact: Callable[[Vector, Index], Vector], random: np.random.Generator
) -> tuple[Vector, Vector]:
    """Two samples, in the units of `Effects`, whose means are what the errors e of K c cost the machine:

        sum_i C_i |e_i|  over the free points    in units of size times the sum of C_i sqrt(k_ii) over them
        sum_i s_i e_i    over the support        in units of size times the sum of |s_i| sqrt(k_ii)

    The errors of a point depend on its coefficient: the mean of s_i e_i is not that of e_i.
    """
    assert machine is not None
    s, effects = machine.coefficients, machine.effects
    inside, support = np.flatnonzero(machine.free), np.flatnonzero(s)
    own = random.choice(inside, min(inside.size, SAMPLED_POINTS), replace=False)
    other = random.choice(support, min(support.size, SAMPLED_POINTS), replace=False)
    points = np.concatenate((own, other))
    wrong = exact(s, points) - machine.values[points]
    errors = inside.size * machine.box[own] * np.abs(wrong[: own.size])
    energies = support.size * s[other] * wrong[own.size :]
    free, norm = effects.size * effects.free, effects.size * effects.norm
    return errors / (free or 1.0), energies / (norm or 1.0)  # without a unit there are no costs either


def _doubt(machine: PairSolution, level: float, mean: float, dtype: Any, tol: float) -> tuple[float, float] | None:
    """The largest gap and error of s'Ks / 2 that errors of `level` and signed `mean` allow; None where that is much."""
    size, whole, free, norm, crossing, total, largest, _, _ = machine.effects
    # Every step rounds what it adds to the sums in float64.
    step = largest * norm / total if total > 0.0 else 0.0
    rounded = MEAN_ROUNDING * DOUBLE * (whole + step * math.sqrt(machine.steps))
    point = level * size + rounded
    found = machine.certificate
    # Independent errors of single values, which a sample may miss.
    unseen = 0.5 * float(np.finfo(dtype).eps) * size * whole
    added, energy = point * free + crossing, 0.5 * (mean * size + rounded) * norm + unseen
    if not negligible(point, added + 2.0 * energy, found.gap, found.primal, tol):
        return None
    return found.gap + added, energy


def _minimise_on_points(rows: PointRows, stretches: tuple[int, int, int], diagonal: Vector, *rest: Any) -> Any:
    """Pair steps on rows that are computed one by one in the room of this thread."""
    return minimise_pairs_on_points(rows.columns, *rows.rooms.of(stretches, len(diagonal)), stretches, diagonal, *rest)


def solve_pairs(
    values: Values,
    stretches: list[Stretches],
    box: Vector,
    tol: float,
    max_steps: int = -1,
    go_on: Callable[[], bool] = lambda: True,
    exact: Exact | None = None,
    workers: int | None = None,
    longest: int | None = None,
) -> list[PairSolution | None]:
    """Train every pair of `stretches` (first, size, second, size) of the points, so many `workers` at a time.

    `box` (n,) holds C_i.  The points of the first stretch are the positive class; coefficients come in the order of the
    two stretches.  `go_on` is asked before each pair; those it forbids come back as None, and so do those that take
    longer than `longest` steps times points.  Where `exact` can compute K c again, certificates hold in exact
    arithmetic, and machines whose values are too coarse for that come back as None, too.
    """
    limit = max_steps if max_steps >= 0 else int(np.iinfo(np.int64).max)
    sizes = [size + other for _, size, _, other in stretches]
    # Large pairs first, so that no thread is left with one at the end.
    sequence = sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True)
    results: list[PairSolution | None] = [None] * len(sizes)
    sides = _side(1.0, box, values.diagonal), _side(-1.0, box, values.diagonal)

    def run(some: list[int]) -> None:
        for pair in some:
            if not go_on():
                continue
            most = min(limit, (LONGEST_CALL if longest is None else longest) // sizes[pair])
            machine = _machine(values, sides, stretches[pair], tol, most, exact)
            if machine.steps < most or most == limit or machine.violation <= tol:
                results[pair] = machine

    # Every hand-over waits for the interpreter's lock: a few of them for many pairs, none for little work.
    if len(sizes) > 1 and sum(map(mul, sizes, sizes)) > HANDED_OVER:
        parts = min(len(sizes), 4 * threads.count())
        threads.run(run, [(sequence[part::parts],) for part in range(parts)], workers)
    else:
        run(sequence)
    if exact is not None:
        level, mean = _errors(results, stretches, exact, values.dtype)
        for pair, found in enumerate(results):
            doubt = None if found is None else _doubt(found, level, mean, values.dtype, tol)
            if found is not None and doubt is not None:
                found = found._replace(certificate=found.certificate.widened(*doubt))
            results[pair] = None if doubt is None else found
    return results
