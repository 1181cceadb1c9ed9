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

import math
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


# What is known of the minimum before it lies between two tangents.
NO_LEFT, NO_RIGHT = Tangent(-math.inf, 0.0, 0.0), Tangent(math.inf, 0.0, 0.0)


def best_scale(norm: float, first: Tangent, tangent_at: Callable[[float], Tangent], dual: float) -> float:
    """The t with the smallest phi found, `first` being the tangent at t = 1; `dual` is a lower bound on every phi."""
    if not norm > 0.0:
        return 1.0

    def phi(line: Tangent) -> float:
        return 0.5 * norm * line.t**2 + line.value

    best, lowest = 1.0, phi(first)
    left, right, line = NO_LEFT, NO_RIGHT, first
    for _ in range(EVALUATIONS):
        slope = norm * line.t + line.slope
        if phi(line) < lowest:
            best, lowest = line.t, phi(line)
        if slope == 0.0:
            break
        left, right = (line, right) if slope < 0.0 else (left, line)
        t, model = lowest_of_model(norm, left, right)
        if lowest - model <= ENOUGH * max(lowest - dual, 0.0) or t == line.t:
            break
        line = tangent_at(t)
    return best


def lowest_of_model(norm: float, left: Tangent, right: Tangent) -> tuple[float, float]:
    """Where norm t^2 / 2 plus the higher of the lines is smallest, kept near what is known; and a bound on phi.

    It is written so that it can be compiled into loops over many machines.
    """
    left_bottom, right_bottom = max(0.0, -left.slope / norm), max(0.0, -right.slope / norm)
    left_lowest = 0.5 * norm * left_bottom**2 + left.value + left.slope * (left_bottom - left.t)
    right_lowest = 0.5 * norm * right_bottom**2 + right.value + right.slope * (right_bottom - right.t)
    if right.t == math.inf:
        return min(left_bottom, FARTHEST * max(left.t, 1e-3)), left_lowest
    if left.t == -math.inf:
        far = right_bottom > 0.0 or right.t > 1e-3
        return max(right_bottom, right.t / FARTHEST) if far else 0.0, right_lowest
    t, value = left_bottom, left_lowest
    if right.slope > left.slope:
        apart = left.value - left.slope * left.t - (right.value - right.slope * right.t)
        crossing = apart / (right.slope - left.slope)
        if left_bottom > crossing and right_bottom >= crossing:
            t, value = right_bottom, right_lowest
        elif left_bottom > crossing:
            t, value = crossing, 0.5 * norm * crossing**2 + left.value + left.slope * (crossing - left.t)
    return min(max(t, left.t), right.t), value
