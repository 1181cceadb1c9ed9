"""The step on two variables, in closed form, and the step on one: what every sequential method ends in.

Move s_i up and s_j down by t >= 0, which keeps their sum.  With the slope G_j - G_i > 0 and the curvature
eta = K_ii + K_jj - 2 K_ij + r_i + r_j the objective falls by

    t (G_j - G_i) - t^2 eta / 2,     best at  t = (G_j - G_i) / eta,  cut off where a variable reaches its bound

(Schoelkopf and Smola 2002, lemma 10.3 and proposition 10.4, with the signs corrected; Platt 1999).  A flat direction,
eta = 0, as between two copies of a point, goes all the way to a bound.  A variable that comes this close to its bound
is put on it: rounding would leave it "free" and unable to move (Rifkin 2002, section 2.3.2).
"""

import numpy as np

from mercer.compiled import loop, rounded

# A curvature this far below the diagonal is round-off of a flat direction; where the diagonal is zero, the curvature is
# exact, and the second number keeps the division finite in float32 too.
FLAT = 1e-12
TINY = 1e-30
SNAP = 1e-12  # of the width of the box


@loop
def least_curvature(own: float) -> float:
    """The least curvature a step is divided by, for K_ii + r (+ K_jj + r) of `own`."""
    return max(FLAT * abs(own), TINY)


@loop
def pair_length(slope: float, bends: float, shared: float, room_up: float, room_down: float) -> float:
    """How far s_i rises and s_j falls, for a slope G_j - G_i > 0.

    `bends` is K_ii + r_i + K_jj + r_j, `shared` is K_ij, the rooms are the distances to the bounds.
    """
    eta = max(bends - 2.0 * shared, least_curvature(bends))
    return min(slope / eta, room_up, room_down)


@loop
def pair_move(
    height: float, level: float, own: float, other: float, shared: float, room_up: float, room_down: float
) -> tuple[float, float]:
    """The length of a step and what it gains, with the same bits whatever loop it is part of.

    `height` is the gradient of s_j and `level` that of s_i; `own` is K_ii + r_i, `other` K_jj + r_j.
    """
    slope = rounded(rounded(height) - rounded(level))
    bends = rounded(own + other)
    eta = rounded(max(bends - rounded(2.0 * shared), least_curvature(bends)))
    step = min(rounded(slope / eta), room_up, room_down)
    return step, rounded(step * rounded(slope - rounded(rounded(0.5 * eta) * step)))


@loop
def single_length(slope: float, bend: float, room_up: float, room_down: float) -> float:
    """How far a variable with gradient `slope` and curvature K_ii + r_i = `bend` moves alone; negative: down."""
    return min(max(-slope / max(bend, TINY), -room_down), room_up)


@loop
def snapped(value: float, lower: float, upper: float) -> float:
    """The value, or the bound that it has all but reached."""
    width = upper - lower
    reach = SNAP * width if width < np.inf else SNAP * max(abs(value), TINY)
    if value <= lower + reach:
        return lower
    if value >= upper - reach:
        return upper
    return value
