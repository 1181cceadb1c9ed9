"""Sequential minimal optimisation on a stored kernel matrix: the loops.

    minimise  1/2 s'Ks + p's + 1/2 sum_i r_i s_i^2     lower <= s <= upper,  sum of s over each group fixed

in signed variables s, several of which may belong to one point (epsilon-insensitive regression has two, one for each
side of the tube).  With F = K s summed over a point's variables, variable (l, k), the l-th of point k, has the gradient

    G_lk = F_k + p_lk + r_lk s_lk.

A step takes the variable i of smallest G among those that may rise and, in the same group, the variable j among those
that may fall which promises the largest decrease (G_j - G_i)^2 / (2 eta), eta = K_ii + K_jj - 2 K_ij + r_i + r_j
(Fan, Chen and Lin 2005, working set selection 2), moves s_i up and s_j down by the same amount, and updates F.  The
largest G_j - G_i is the classical violation of the optimality conditions; the loop ends when it is at most `tol`.
Variables in no group move alone (no bias).

Everything runs over contiguous arrays of length n: for each group `rise` and `fall` hold p + r s of the one variable of
a point that matters there (the smallest that may rise, the largest that may fall), or a huge number of the sign that
keeps the point out.  Points may be two contiguous stretches of a larger matrix, so that
many pairs of classes can be trained on one matrix without a copy.
"""

from typing import Any

import numpy as np

from mercer.compiled import borrowed, given_back, greater, lesser, loop
from mercer.gram import fill_all, fill_row
from mercer.solvers.quadratic.analytic_step import TINY, least_curvature, pair_move, single_length

# Up to so many points one product for all rows is cheaper than a few rows one by one.
ALL_ROWS = 256
# Stands for "may not move"; a number that float32 holds too.
NEVER = 1e30
CHUNK = 64
# A stretch of steps that lowers the objective by less than this share of all that was gained so far is rounding.
NOISE = 1e-13


@loop
def _lowest_sum(F: Any, offset: Any) -> Any:
    """Smallest F + offset."""
    lowest = 2.0 * NEVER
    for k in range(F.shape[0]):
        lowest = lesser(lowest, F[k] + offset[k])
    return lowest


@loop
def smallest(F: Any, offset: Any) -> Any:
    """Value and position of the smallest F + offset."""
    n = F.shape[0]
    best = 2.0 * NEVER
    start = 0
    for left in range(0, n, CHUNK):
        right = min(n, left + CHUNK)
        lowest = _lowest_sum(F[left:right], offset[left:right])
        if lowest < best:
            best = lowest
            start = left
    values, offsets = F[start : start + CHUNK], offset[start : start + CHUNK]
    for k in range(values.shape[0]):
        if values[k] + offsets[k] <= best:
            return best, start + k
    return best, start


@loop
def _highest_gain(F: Any, offset: Any, row: Any, curvature: Any, own: Any, level: Any, flat: Any) -> Any:
    """Largest gain (G_j - level)^2 / eta_j, eta_j >= flat, and largest G_j - level."""
    zero = np.float32(0.0)
    two = np.float32(2.0)
    highest = np.float32(-1.0)
    widest = -NEVER
    for k in range(F.shape[0]):
        slope = F[k] + offset[k] - level
        widest = greater(widest, slope)
        rise = greater(np.float32(slope), zero)
        eta = greater(own + curvature[k] - two * np.float32(row[k]), flat)
        highest = greater(highest, rise * rise / eta)
    return highest, widest


@loop
def _gains(F: Any, offset: Any, row: Any, curvature: Any, own: Any, level: Any, flat: Any, out: Any) -> Any:
    """The gains that `_highest_gain` compares, into out (n,), and the largest of them."""
    zero = np.float32(0.0)
    two = np.float32(2.0)
    highest = np.float32(-1.0)
    for k in range(F.shape[0]):
        rise = greater(np.float32(F[k] + offset[k] - level), zero)
        eta = greater(own + curvature[k] - two * np.float32(row[k]), flat)
        gain = rise * rise / eta
        out[k] = gain
        highest = greater(highest, gain)
    return highest


@loop
def steepest(F: Any, offset: Any, row: Any, curvature: Any, own: Any, level: Any, gains: Any) -> Any:
    """Largest gain, its position, and the largest G_j - level, over a stretch of points.

    `row` holds K between the chosen point and these points, `curvature` their K_kk + r_k, `own` that of the chosen one.
    """
    n = row.shape[0]
    # Computed inside the loop over chunks this doubles the time of a step: the comparison is no vector operation then.
    flat = np.float32(least_curvature(own))
    best = np.float32(-1.0)
    start = 0
    widest = -NEVER
    for left in range(0, n, CHUNK):
        right = min(n, left + CHUNK)
        gain, wide = _highest_gain(
            F[left:right], offset[left:right], row[left:right], curvature[left:right], own, level, flat
        )
        widest = max(widest, wide)
        if gain > best:
            best = gain
            start = left
    stop = min(n, start + CHUNK)
    top = _gains(F[start:stop], offset[start:stop], row[start:stop], curvature[start:stop], own, level, flat, gains)
    for k in range(stop - start):
        if gains[k] >= top:
            return best, start + k, widest
    return best, start, widest


@loop
def shift(F: Any, row: Any, other: Any, amount: float) -> None:
    """F += amount (row - other); with a first index to add to k this would not run in vector registers."""
    for k in range(row.shape[0]):
        F[k] += amount * (np.float64(row[k]) - np.float64(other[k]))


@loop
def _shift_one(F: Any, row: Any, amount: float) -> None:
    """F += amount row."""
    for k in range(row.shape[0]):
        F[k] += amount * np.float64(row[k])


@loop
def refresh(program: Any, s: Any, rise: Any, fall: Any, k: int) -> None:
    """Offsets of point k in each group: the best of its variables that may rise, and that may fall."""
    linear, ridge, lower, upper, group = program
    for g in range(rise.shape[0]):
        up, down = NEVER, -NEVER
        for l in range(s.shape[0]):
            if group[l, k] == g:
                base = linear[l, k] + ridge[l, k] * s[l, k]
                if s[l, k] < upper[l, k]:
                    up = min(up, base)
                if s[l, k] > lower[l, k]:
                    down = max(down, base)
        rise[g, k], fall[g, k] = up, down


@loop
def layer_at(linear: Any, ridge: Any, bound: Any, s: Any, group: Any, g: int, k: int, offset: float) -> int:
    """The variable of point k in group g that is off its bound and has the given offset."""
    for l in range(s.shape[0]):
        if group[l, k] == g and s[l, k] != bound[l, k] and linear[l, k] + ridge[l, k] * s[l, k] == offset:
            return l
    return 0


@loop
def _row(K: Any, place: Any, stretches: Any, k: Any) -> Any:
    """The row of local point k: of the stored matrix K, or at its place among the rows computed so far."""
    first, middle, second = stretches
    if place is None:
        return K[first + k] if k < middle else K[second + k - middle]
    return K[place[k]]


def minimise_pairs(
    K: Any, stretches: Any, diagonal: Any, F: Any, s: Any, program: Any, groups: int, tol: float, max_steps: int
) -> tuple[int, float]:
    """Pair steps on a stored matrix K until the violation is at most tol; F (n,) and s (layers, n) change in place.

    `stretches` = (first, middle, second): local point k is matrix row first + k for k < middle and second + k - middle
    from there on.  `program` = (linear, ridge, lower, upper, group), each (layers, n).  Returns the number of steps and
    the last violation seen.  Ends early, with steps < max_steps and a violation above tol, when rounding lets the
    objective fall no further.
    """
    # Called from Python as it is: inside another compiled function its code would be optimised once more.
    return pair_steps(K, None, None, stretches, diagonal, F, s, program, groups, tol, max_steps)


@loop
def minimise_pairs_on_points(
    columns: Any, K: Any, place: Any, stretches: Any, diagonal: Any, F: Any, s: Any, program: Any, groups: int,
    tol: float, max_steps: int,
) -> tuple[int, float]:  # fmt: skip
    """The same from the N points of `RowsOnDemand.columns`: a row is computed when it is first needed.

    It goes to the next free row of K (n, n), whose number `place` (n,) keeps: -1 where there is none.  Points that
    never become support vectors cost nothing but their share of other rows (Rifkin 2002, section 2.4.1).
    """
    n = place.shape[0]
    if n <= ALL_ROWS and place[0] < 0:
        first, middle, second = stretches
        fill_all(columns, first, middle, second, K)
        for k in range(n):
            place[k] = k
    return pair_steps(K, place, columns, stretches, diagonal, F, s, program, groups, tol, max_steps)


@loop
def pair_steps(
    K: Any, place: Any, columns: Any, stretches: Any, diagonal: Any, F: Any, s: Any, program: Any, groups: int,
    tol: float, max_steps: int,
) -> tuple[int, float]:  # fmt: skip
    """Pair steps on rows of K: those of a stored matrix where `place` is None, else the rows computed so far.

    Rows that are not there yet are computed from `columns`; where there are none, their points do not take part.  What
    is None is known when this is compiled: the steps on a stored matrix hold no code that computes rows.
    """
    first, middle, second = stretches
    K, F = borrowed(K), borrowed(F)
    linear, ridge, lower, upper, group = program
    n = s.shape[1]
    # Points up to `cut` lie in a row from `left` on, the others from `right` on; a row made here is one stretch.
    left, cut, right = first, middle, second
    used: Any = np.int64(0)
    if place is not None:
        left, cut, right = 0, n, n
        for k in range(n):
            used = max(used, place[k] + 1)
    offsets, bends, room = np.empty((2, groups, n)), np.empty(n, np.float32), np.empty(CHUNK, np.float32)
    rise, fall = borrowed(offsets[0]), borrowed(offsets[1])
    curvature, gains = borrowed(bends), borrowed(room)
    for k in range(n):
        refresh(program, s, rise, fall, k)
        curvature[k] = diagonal[k] + ridge[0, k]
        if columns is None and place is not None and place[k] < 0:
            for h in range(groups):
                rise[h, k], fall[h, k] = NEVER, -NEVER
    nowhere: Any = np.int64(0)  # from a bare 0 all that takes a position would be compiled twice
    steps = 0
    violation = 0.0
    stretch = 10 * n + 10_000
    # What a start has gained already counts: from an optimum there is nothing but rounding left to gain.
    gained = 0.0
    for k in range(n):
        for l in range(s.shape[0]):
            gained -= s[l, k] * (0.5 * F[k] + linear[l, k] + 0.5 * ridge[l, k] * s[l, k])
    gained = gained_before = abs(gained)
    while True:
        violation = -1.0
        i = j = g = nowhere
        level = 0.0
        for h in range(groups):
            lowest, at = smallest(F, rise[h])
            if lowest > 0.5 * NEVER:
                continue
            if columns is not None and place[at] < 0:
                fill_row(columns, at, first, middle, second, K[used])
                place[at] = used
                used += 1
            row = _row(K, place, stretches, at)
            own = curvature[at]
            down = fall[h]
            near = row[left : left + cut]
            gain, partner, widest = steepest(F[:cut], down[:cut], near, curvature[:cut], own, lowest, gains)
            if n > cut:
                beyond = row[right : right + n - cut]
                other_gain, other, wide = steepest(F[cut:], down[cut:], beyond, curvature[cut:], own, lowest, gains)
                if other_gain > gain:
                    gain, partner = other_gain, cut + other
                widest = max(widest, wide)
            if widest > violation:
                violation = widest
                i, j, g, level = at, partner, h, lowest
        if violation <= tol or steps >= max_steps:
            break
        li = layer_at(linear, ridge, upper, s, group, g, i, rise[g, i])
        lj = layer_at(linear, ridge, lower, s, group, g, j, fall[g, j])
        if columns is not None and place[j] < 0:
            fill_row(columns, j, first, middle, second, K[used])
            place[j] = used
            used += 1
        row, other_row = _row(K, place, stretches, i), _row(K, place, stretches, j)
        shared = row[left + j] if j < cut else row[right + j - cut]
        bend, other_bend = diagonal[i] + ridge[li, i], diagonal[j] + ridge[lj, j]
        room_up = upper[li, i] - s[li, i]
        room_down = s[lj, j] - lower[lj, j]
        step, won = pair_move(F[j] + fall[g, j], level, bend, other_bend, shared, room_up, room_down)
        s[li, i] = upper[li, i] if step >= room_up else s[li, i] + step
        s[lj, j] = lower[lj, j] if step >= room_down else s[lj, j] - step
        shift(F[:cut], row[left : left + cut], other_row[left : left + cut], step)
        if n > cut:
            shift(F[cut:], row[right : right + n - cut], other_row[right : right + n - cut], step)
        refresh(program, s, rise, fall, i)
        refresh(program, s, rise, fall, j)
        gained += won
        steps += 1
        if steps % stretch == 0:
            if gained - gained_before <= NOISE * gained:
                break
            gained_before = gained
    given_back(offsets)
    given_back(bends)
    given_back(room)
    return steps, max(violation, 0.0)


@loop
def minimise_singles(
    K: Any, diagonal: Any, F: Any, s: Any, program: Any, tol: float, max_steps: int
) -> tuple[int, float]:
    """One-variable steps for problems without equality: the variable of largest gain G^2 / (2 (K_kk + r)) moves.

    F (n,) and s (layers, n) are updated in place.  Returns the number of steps and the largest |G| of a variable that
    may follow it.
    """
    linear, ridge, lower, upper, _ = program
    layers, n = s.shape
    steps = 0
    violation = 0.0
    while True:
        best = 0.0
        violation = 0.0
        at = layer = 0
        slope = 0.0
        for l in range(layers):
            for k in range(n):
                G = F[k] + linear[l, k] + ridge[l, k] * s[l, k]
                if (G < 0.0 and s[l, k] < upper[l, k]) or (G > 0.0 and s[l, k] > lower[l, k]):
                    violation = max(violation, abs(G))
                    gain = G * G / max(diagonal[k] + ridge[l, k], TINY)
                    if gain > best:
                        best, at, layer, slope = gain, k, l, G
        if violation <= tol or steps >= max_steps:
            break
        own = s[layer, at]
        bend = diagonal[at] + ridge[layer, at]
        moved = own + single_length(slope, bend, upper[layer, at] - own, own - lower[layer, at])
        moved = min(max(moved, lower[layer, at]), upper[layer, at])
        if moved == own:
            break
        _shift_one(F, K[at], moved - s[layer, at])
        s[layer, at] = moved
        steps += 1
    return steps, violation
