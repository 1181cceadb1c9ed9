"""The gap-optimal constant: minimise a sum of one-dimensional costs by sorting their break points.

Every support-vector cost, as a function of one free constant h (minus the bias, a margin, the width of a tube), is

    G(h) = -target h + sum_j phi_j(h - e_j),      phi_j(q) = max over lower_j <= s <= upper_j of  q s - ridge_j s^2 / 2.

phi_j is a pair of half-lines when ridge_j = 0, and has a parabola between them otherwise, so that G' is a
non-decreasing function, linear between its break points.  Sorting them gives a minimiser in O(n log n), a weighted
median when there is no ridge (Schoelkopf and Smola 2002, section 10.1.1).  Where a whole interval is optimal its middle
is taken, which is the midpoint rule for a bias that no unbounded support vector determines (Rifkin 2002,
section 2.2.4).

The same function projects onto a box cut by one equality: sum_j clip(s_j + h, lower_j, upper_j) = target is G'(h) = 0
with e = -s and ridge = 1.
"""

from bisect import bisect_left
from collections.abc import Callable

import numpy as np

from mercer.arrays import Vector

# Two partial sums closer than this share of the whole are taken as equal: a flat stretch, not a crossing.
FLAT = 1e-13


def best_threshold(e: Vector, lower: Vector, upper: Vector, ridge: Vector | None, target: float) -> float:
    """A minimiser h of G for costs with break points `e` (n,), boxes `lower`, `upper` (n,) and `ridge` (n,) or None.

    Terms with lower = upper are lines and say nothing about h; an empty or purely linear G gives 0.
    Bounds may be infinite where the ridge is positive.
    """
    moving = upper > lower
    if not moving.all():
        target = target - float(lower[~moving].sum())
        e, lower, upper = e[moving], lower[moving], upper[moving]
        ridge = None if ridge is None else ridge[moving]
    if e.size == 0:
        return 0.0
    if ridge is None or not ridge.any():
        return _weighted_median(e, upper - lower, target - float(lower.sum()))
    return _root_of_slope(e, lower, upper, ridge, target)


def _weighted_median(e: Vector, width: Vector, need: float) -> float:
    """The point where the running sum of `width`, in the order of `e`, reaches `need`."""
    order = np.argsort(e)
    total = np.cumsum(width[order])
    slack = FLAT * float(total[-1])
    if need <= slack:
        return float(e[order[0]])
    if need >= total[-1] - slack:
        return float(e[order[-1]])
    k = int(np.searchsorted(total, need - slack))
    here = float(e[order[k]])
    if total[k] <= need + slack:
        return 0.5 * (here + float(e[order[k + 1]]))
    return here


def _root_of_slope(e: Vector, lower: Vector, upper: Vector, ridge: Vector, target: float) -> float:
    """A zero of G'(h) = -target + sum_j clip((h - e_j) / ridge_j, lower_j, upper_j)."""
    with np.errstate(invalid="ignore"):
        starts = np.where(ridge > 0, e + ridge * lower, e)
        ends = np.where(ridge > 0, e + ridge * upper, e)
    breaks = np.unique(np.concatenate((starts, ends)))
    breaks = breaks[np.isfinite(breaks)]

    def slope(h: float) -> float:
        return float(_response(h, e, lower, upper, ridge, starts, ends).sum()) - target

    low = bisect_left(breaks, 0.0, key=slope)  # the first break point at which the slope is no longer negative
    left = float(breaks[low - 1]) if low > 0 else -np.inf
    right = float(breaks[low]) if low < breaks.size else np.inf
    active = (starts <= left) & (ends >= right) & (ridge > 0)
    density = float((1.0 / ridge[active]).sum())
    if density == 0.0:
        return _flat_choice(left, right, slope)
    done = np.where(starts >= right, lower, upper)[~active]
    h = (target - float(done.sum()) + float((e[active] / ridge[active]).sum())) / density
    return float(min(max(h, left), right))


def _response(h: float, e: Vector, lower: Vector, upper: Vector, ridge: Vector, starts: Vector, ends: Vector) -> Vector:
    """The maximiser s_j of each cost at h, the upper one where h sits on a jump."""
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = (h - e) / ridge
    chosen = np.where(h >= ends, upper, np.where(h <= starts, lower, inside))
    return np.asarray(chosen, dtype=np.float64)


def _flat_choice(left: float, right: float, slope: Callable[[float], float]) -> float:
    """No term bends between two break points: the crossing is the jump at `right`, or a flat stretch up to it."""
    if not np.isfinite(right):
        return left
    if not np.isfinite(left):
        return right
    middle = 0.5 * (left + right)
    return middle if abs(slope(middle)) <= FLAT * max(1.0, abs(slope(left)), abs(slope(right))) else right
