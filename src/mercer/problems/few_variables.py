"""The few variables that a problem minimises over by itself: biases of classes, thresholds between ranks.

Newton's method for a smooth convex function of a handful of variables.  Far from the minimum a step must lower the
value.  Near it, where what the step promises is lost among the digits of the value, it must lower the slope, which has
all of its own digits; the end comes when it no longer does.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mercer import dense
from mercer.arrays import Array, Vector

STEPS = 200
ACCURACY = 1e-13  # share of the scale that slopes may keep
ROUNDING = 1e-12  # a change of the value by this share is seen among its digits
SUFFICIENT = 1e-4  # share of the decrease that the slope promises
SHORTEST = 1e-12  # rate of a step


class Look(NamedTuple):
    """A function at a point: value, slope (k,), regular second derivative (k, k), and what its owner keeps of it."""

    value: float
    slope: Vector
    curvature: Array
    kept: Any = None


def minimiser(look: Callable[[Vector], Look], start: Vector, scale: float) -> tuple[Vector, Look]:
    """The minimiser (k,) of a function whose slopes are of the size `scale`, and the look at it."""
    x, here = start, look(start)
    for _ in range(STEPS):
        if not np.abs(here.slope).max() > ACCURACY * scale:
            break
        ahead = _ahead(look, x, here, scale)
        if ahead is None:
            break
        x, here = ahead
    return x, here


def _ahead(look: Callable[[Vector], Look], x: Vector, here: Look, scale: float) -> tuple[Vector, Look] | None:
    """The point after one step; None where no step gains anything."""
    step = -dense.solve_square(here.curvature, here.slope)
    promised = -float(here.slope @ step)
    if promised <= ROUNDING * (abs(here.value) + scale):
        there = look(x + step)
        return (x + step, there) if np.abs(there.slope).max() < np.abs(here.slope).max() else None
    rate = 1.0
    while rate > SHORTEST:
        there = look(x + rate * step)
        if there.value <= here.value - SUFFICIENT * rate * promised:
            return x + rate * step, there
        rate *= 0.5
    return None
