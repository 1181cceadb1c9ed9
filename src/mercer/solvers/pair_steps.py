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

from mercer.compiled import greater, lesser, loop
from mercer.gram.transform import LINEAR, transform_row

# Rows on demand are d passes over n points, without BLAS: best for few points of few features.
ON_DEMAND_POINTS = 3000
# Up to so many points one product for all rows is cheaper than a few rows one by one.
ALL_ROWS = 256
ON_DEMAND_FEATURES = 300
ON_DEMAND_VALUES = 800_000
# Stands for "may not move"; a number that float32 holds too.
NEVER = 1e30
CHUNK = 64
# A stretch of steps that lowers the objective by less than this share of all that was gained so far is rounding.
NOISE = 1e-13
# A curvature this far below the diagonal is round-off of a flat direction.
FLAT = 1e-12


def on_demand(tiles: Any, n: int) -> bool:
    """Whether problems of n points are best solved from the points, a row at a time, rather than from a matrix."""
    d = tiles.left.d
    few = n <= ON_DEMAND_POINTS and d <= ON_DEMAND_FEATURES and n * d <= ON_DEMAND_VALUES
    return bool(few and not tiles.left.sparse)


@loop
def _lowest_sum(F: Any, offset: Any) -> Any:
    """Smallest F + offset."""
    lowest = 2.0 * NEVER
    for k in range(F.shape[0]):
        lowest = lesser(lowest, F[k] + offset[k])
    return lowest


@loop
def _smallest(F: Any, offset: Any) -> Any:
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
def _highest_gain(F: Any, offset: Any, row: Any, curvature: Any, own: Any, level: Any) -> Any:
    """Largest gain (G_j - level)^2 / eta_j and largest G_j - level."""
    zero = np.float32(0.0)
    two = np.float32(2.0)
    flat = np.float32(FLAT)
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
def _steepest(F: Any, offset: Any, row: Any, curvature: Any, own: Any, level: Any, first: Any) -> Any:
    """Largest gain, its position, and the largest G_j - level, over the points first, first + 1, ...

    `row` holds K between the chosen point and these points, `curvature` their K_kk + r_k, `own` that of the chosen one.
    """
    n = row.shape[0]
    best = np.float32(-1.0)
    start = 0
    widest = -NEVER
    values, offsets, bends = F[first : first + n], offset[first : first + n], curvature[first : first + n]
    for left in range(0, n, CHUNK):
        right = min(n, left + CHUNK)
        gain, wide = _highest_gain(
            values[left:right], offsets[left:right], row[left:right], bends[left:right], own, level
        )
        widest = max(widest, wide)
        if gain > best:
            best = gain
            start = left
    position = start
    value = np.float32(-1.0)
    for k in range(start, min(n, start + CHUNK)):
        rise = max(np.float32(values[k] + offsets[k] - level), np.float32(0.0))
        eta = max(own + bends[k] - np.float32(2.0) * np.float32(row[k]), np.float32(FLAT))
        if rise * rise / eta > value:
            value = rise * rise / eta
            position = k
    return best, first + position, widest


@loop
def _shift(F: Any, row: Any, other: Any, amount: float, first: int) -> None:
    """F[first:] += amount (row - other)."""
    for k in range(row.shape[0]):
        F[first + k] += amount * (np.float64(row[k]) - np.float64(other[k]))


@loop
def _shift_one(F: Any, row: Any, amount: float, first: int) -> None:
    """F[first:] += amount row."""
    for k in range(row.shape[0]):
        F[first + k] += amount * np.float64(row[k])


@loop
def _refresh(linear: Any, ridge: Any, lower: Any, upper: Any, s: Any, group: Any, rise: Any, fall: Any, k: int) -> None:
    """Offsets of point k in each group: the best of its variables that may rise, and that may fall."""
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
def _layer(linear: Any, ridge: Any, bound: Any, s: Any, group: Any, g: int, k: int, offset: float) -> int:
    """The variable of point k in group g that is off its bound and has the given offset."""
    for l in range(s.shape[0]):
        if group[l, k] == g and s[l, k] != bound[l, k] and linear[l, k] + ridge[l, k] * s[l, k] == offset:
            return l
    return 0


@loop
def _fill_row(
    UT: Any, a: Any, k: int, first: int, middle: int, second: int, code: int, parameters: Any, row: Any
) -> None:
    """Kernel values of local point k with all local points, into row (n,); UT (d, N) holds the points in columns."""
    n = row.shape[0]
    own = first + k if k < middle else second + k - middle
    row[:] = 0
    head, tail = row[:middle], row[middle:]
    for f in range(UT.shape[0]):
        weight = UT[f, own]
        line = UT[f, first : first + middle]
        for j in range(middle):
            head[j] += weight * line[j]
        line = UT[f, second : second + n - middle]
        for j in range(n - middle):
            tail[j] += weight * line[j]
    if code != LINEAR:
        transform_row(code, parameters, head, a[own], a[first : first + middle])
        transform_row(code, parameters, tail, a[own], a[second : second + n - middle])


@loop
def _fill_all(UT: Any, a: Any, first: int, middle: int, second: int, code: int, parameters: Any, K: Any) -> None:
    """All kernel values between the local points, into K (n, n), by one product."""
    n = K.shape[0]
    points = np.empty((UT.shape[0], n), UT.dtype)
    norms = np.empty(n, UT.dtype)
    # Element by element: assignments of slices take seconds to compile.
    for k in range(n):
        at = first + k if k < middle else second + k - middle
        norms[k] = a[at]
        for f in range(UT.shape[0]):
            points[f, k] = UT[f, at]
    np.dot(points.T, points, K)
    if code != LINEAR:
        for k in range(n):
            transform_row(code, parameters, K[k], norms[k], norms)


@loop
def minimise_pairs(
    K: Any,
    first: int,
    middle: int,
    second: int,
    diagonal: Any,
    F: Any,
    s: Any,
    linear: Any,
    ridge: Any,
    lower: Any,
    upper: Any,
    group: Any,
    groups: int,
    tol: float,
    max_steps: int,
) -> tuple[int, float]:
    """Pair steps on a stored matrix K until the violation is at most tol; F (n,) and s (layers, n) change in place.

    Local point k is matrix row first + k for k < middle and second + k - middle from there on.
    Returns the number of steps and the last violation seen.  Ends early, with steps < max_steps and a violation above
    tol, when rounding lets the objective fall no further.
    """
    known = np.empty(0, np.bool_)
    points = K[:0]
    norms = K[0, :0]
    nothing = np.empty(0)
    return _pair_steps(
        K, known, points, norms, LINEAR, nothing, first, middle, second, diagonal, F, s, linear, ridge, lower, upper,
        group, groups, tol, max_steps,
    )  # fmt: skip


@loop
def minimise_pairs_on_points(
    UT: Any,
    norms: Any,
    code: int,
    parameters: Any,
    first: int,
    middle: int,
    second: int,
    diagonal: Any,
    F: Any,
    s: Any,
    linear: Any,
    ridge: Any,
    lower: Any,
    upper: Any,
    group: Any,
    groups: int,
    tol: float,
    max_steps: int,
) -> tuple[int, float]:
    """The same from points UT (d, N) and half norms (N,) of a fused kernel: a row is computed when it is first needed.

    Points that never become support vectors cost nothing but their share of other rows (Rifkin 2002, section 2.4.1).
    """
    n = s.shape[1]
    K = np.empty((n, n), UT.dtype)
    known = np.zeros(n, np.bool_)
    if n <= ALL_ROWS:
        _fill_all(UT, norms, first, middle, second, code, parameters, K)
        known[:] = True
    return _pair_steps(
        K, known, UT, norms, code, parameters, first, middle, second, diagonal, F, s, linear, ridge, lower, upper,
        group, groups, tol, max_steps,
    )  # fmt: skip


@loop
def _pair_steps(
    K: Any,
    known: Any,
    UT: Any,
    norms: Any,
    code: int,
    parameters: Any,
    first: int,
    middle: int,
    second: int,
    diagonal: Any,
    F: Any,
    s: Any,
    linear: Any,
    ridge: Any,
    lower: Any,
    upper: Any,
    group: Any,
    groups: int,
    tol: float,
    max_steps: int,
) -> tuple[int, float]:
    """Pair steps on rows of K: those of a stored matrix where `known` is empty, else local rows filled on demand."""
    n = s.shape[1]
    lazy = known.shape[0] > 0
    # Points up to `cut` lie in a row from `left` on, the others from `right` on; a row made here is one stretch.
    cut = n if lazy else middle
    left = 0 if lazy else first
    right = second
    rise = np.empty((groups, n))
    fall = np.empty((groups, n))
    curvature = np.empty(n, np.float32)
    for k in range(n):
        _refresh(linear, ridge, lower, upper, s, group, rise, fall, k)
        curvature[k] = diagonal[k] + ridge[0, k]
    steps = 0
    violation = 0.0
    stretch = 10 * n + 10_000
    gained = gained_before = 0.0
    while True:
        violation = -1.0
        i = j = g = 0
        level = 0.0
        for h in range(groups):
            lowest, at = _smallest(F, rise[h])
            if lowest > 0.5 * NEVER:
                continue
            if lazy and not known[at]:
                _fill_row(UT, norms, at, first, middle, second, code, parameters, K[at])
                known[at] = True
            row = K[at] if lazy else K[first + at] if at < middle else K[second + at - middle]
            own = curvature[at]
            gain, partner, widest = _steepest(F, fall[h], row[left : left + cut], curvature, own, lowest, 0)
            if n > cut:
                beyond = row[right : right + n - cut]
                other_gain, other, wide = _steepest(F, fall[h], beyond, curvature, own, lowest, cut)
                if other_gain > gain:
                    gain, partner = other_gain, other
                widest = max(widest, wide)
            if widest > violation:
                violation = widest
                i, j, g, level = at, partner, h, lowest
        if violation <= tol or steps >= max_steps:
            break
        li = _layer(linear, ridge, upper, s, group, g, i, rise[g, i])
        lj = _layer(linear, ridge, lower, s, group, g, j, fall[g, j])
        if lazy and not known[j]:
            _fill_row(UT, norms, j, first, middle, second, code, parameters, K[j])
            known[j] = True
        row = K[i] if lazy else K[first + i] if i < middle else K[second + i - middle]
        other_row = K[j] if lazy else K[first + j] if j < middle else K[second + j - middle]
        shared = row[left + j] if j < cut else row[right + j - cut]
        bends = diagonal[i] + ridge[li, i] + diagonal[j] + ridge[lj, j]
        eta = max(bends - 2.0 * shared, FLAT)
        slope = F[j] + fall[g, j] - level
        room_up = upper[li, i] - s[li, i]
        room_down = s[lj, j] - lower[lj, j]
        step = min(slope / eta, room_up, room_down)
        s[li, i] = upper[li, i] if step >= room_up else s[li, i] + step
        s[lj, j] = lower[lj, j] if step >= room_down else s[lj, j] - step
        _shift(F, row[left : left + cut], other_row[left : left + cut], step, 0)
        if n > cut:
            _shift(F, row[right : right + n - cut], other_row[right : right + n - cut], step, cut)
        _refresh(linear, ridge, lower, upper, s, group, rise, fall, i)
        _refresh(linear, ridge, lower, upper, s, group, rise, fall, j)
        gained += step * (slope - 0.5 * eta * step)
        steps += 1
        if steps % stretch == 0:
            if gained - gained_before <= NOISE * gained:
                break
            gained_before = gained
    return steps, max(violation, 0.0)


@loop
def minimise_singles(
    K: Any,
    diagonal: Any,
    F: Any,
    s: Any,
    linear: Any,
    ridge: Any,
    lower: Any,
    upper: Any,
    tol: float,
    max_steps: int,
) -> tuple[int, float]:
    """One-variable steps for problems without equality: the variable of largest gain G^2 / (2 (K_kk + r)) moves.

    F (n,) and s (layers, n) are updated in place.  Returns the number of steps and the largest |G| of a variable that
    may follow it.
    """
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
                    gain = G * G / max(diagonal[k] + ridge[l, k], FLAT)
                    if gain > best:
                        best, at, layer, slope = gain, k, l, G
        if violation <= tol or steps >= max_steps:
            break
        step = -slope / max(diagonal[at] + ridge[layer, at], FLAT)
        moved = min(max(s[layer, at] + step, lower[layer, at]), upper[layer, at])
        if moved == s[layer, at]:
            break
        _shift_one(F, K[at], moved - s[layer, at], 0)
        s[layer, at] = moved
        steps += 1
    return steps, violation
