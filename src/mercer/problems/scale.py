"""The gap-optimal multiple of a function: minimise the primal over t in t f.

The primal point of a certificate may be any function.  A machine that is right up to a factor, f = (1 - tol) f*, pays
C times the missing margin at every point and shows a gap of most of its objective when C is large; t f with t a little
above one does not.  As a function of t the primal is

    phi(t) = norm t^2 / 2 + psi(t),     norm = ||f||^2,    psi(t) = min over the free parameters of the losses at t f,

with psi convex, and linear between break points for losses without a ridge.  Its tangents and the quadratic term, which
is known, give a model that lies below phi; the next t is the model's minimiser between the two nearest tangents, so
that a kink is met exactly when the tangents on both its sides are known.  Every t gives a valid bound: the search may
stop at any time.
"""

from collections.abc import Callable
from typing import NamedTuple

# The search ends when no more than this share of the present gap can still be gained.
ENOUGH = 0.05
EVALUATIONS = 40
# While the minimum is bracketed on one side only, t changes by at most this factor.
FARTHEST = 4.0


class Tangent(NamedTuple):
    """Value and slope of psi at t."""

    t: float
    value: float
    slope: float

    def at(self, t: float) -> float:
        """The line at t."""
        return self.value + self.slope * (t - self.t)


def best_scale(norm: float, first: Tangent, tangent_at: Callable[[float], Tangent], dual: float) -> float:
    """The t with the smallest phi found, `first` being the tangent at t = 1; `dual` is a lower bound on every phi."""
    if not norm > 0.0:
        return 1.0

    def phi(line: Tangent) -> float:
        return 0.5 * norm * line.t**2 + line.value

    best, lowest = 1.0, phi(first)
    left: Tangent | None = None
    right: Tangent | None = None
    line = first
    for _ in range(EVALUATIONS):
        slope = norm * line.t + line.slope
        if phi(line) < lowest:
            best, lowest = line.t, phi(line)
        if slope == 0.0:
            break
        left, right = (line, right) if slope < 0.0 else (left, line)
        t, model = _minimiser(norm, left, right)
        if lowest - model <= ENOUGH * max(lowest - dual, 0.0) or t == line.t:
            break
        line = tangent_at(t)
    return best


def _minimiser(norm: float, left: Tangent | None, right: Tangent | None) -> tuple[float, float]:
    """Where norm t^2 / 2 plus the higher of the lines is smallest, kept near what is known; and a bound on phi."""

    def bottom(line: Tangent) -> tuple[float, float]:
        t = max(0.0, -line.slope / norm)
        return t, 0.5 * norm * t**2 + line.at(t)

    if right is None:
        assert left is not None
        t, value = bottom(left)
        return min(t, FARTHEST * max(left.t, 1e-3)), value
    if left is None:
        t, value = bottom(right)
        return max(t, right.t / FARTHEST) if t > 0.0 or right.t > 1e-3 else 0.0, value
    if right.slope > left.slope:
        crossing = (left.at(0.0) - right.at(0.0)) / (right.slope - left.slope)
        ends = [bottom(left), bottom(right)]
        if ends[0][0] <= crossing:
            t, value = ends[0]
        elif ends[1][0] >= crossing:
            t, value = ends[1]
        else:
            t, value = crossing, 0.5 * norm * crossing**2 + left.at(crossing)
    else:
        t, value = bottom(left)
    return min(max(t, left.t), right.t), value
