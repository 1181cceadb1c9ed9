"""Compiled steps of the machines with one problem for all classes (`mercer.problems.multiclass`).

One step optimises all variables a_p (k,) of a point p exactly.  With A = K_pp, B the outputs at p without p's own part:

    Weston-Watkins, Lee-Lin-Wahba     a_j = clip(v_j + slope S, 0, C),   S = sum_j a_j
        v_j = (margin - B_y + B_j)/A, slope = -1         v_j = (margin + B_j)/A, slope = 1/k
    Crammer-Singer                    a_r = (D_r - theta)_+,   sum_r a_r = C,   D = (B - margin e_y)/A + C e_y

S is the root of a decreasing piecewise linear function, theta the threshold of a projection on a simplex: by a sort
(here a heap, of which only the largest few are taken) or by Fukumizu's fixed point theta <- mean(max(theta, D)) - C/k.
"""

from typing import Any

import numpy as np

from mercer.compiled import borrowed, greater, lesser, loop

# The same numbers as in `mercer.problems.multiclass`; compiled code reads them as constants.
WESTON_WATKINS, CRAMMER_SINGER, LEE_LIN_WAHBA = 0, 1, 2
BARRED = 1e30  # added to the gradient of a variable that may not move


@loop
def _sift(heap: Any, at: int, size: int) -> None:
    """Let heap[at] sink to its place among the first `size` entries, the largest on top."""
    value = heap[at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= value:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = value


@loop
def threshold_by_sorting(D: Any, total: float) -> Any:
    """The theta with sum_r (D_r - theta)_+ = total; D (k,) is overwritten."""
    size = D.shape[0]
    for at in range(size // 2 - 1, -1, -1):
        _sift(D, at, size)
    cumulated = 0.0
    theta = 0.0
    taken = 0
    while size > 0 and (taken == 0 or D[0] > theta):
        cumulated += D[0]
        taken += 1
        theta = (cumulated - total) / taken
        size -= 1
        D[0] = D[size]
        _sift(D, 0, size)
    return theta


@loop
def threshold_by_fixed_point(D: Any, total: float) -> Any:
    """The same theta by a contraction of factor at most 1 - 1/k, started at the largest D."""
    k = D.shape[0]
    theta = D[0]
    for r in range(1, k):
        theta = max(theta, D[r])
    small = 1e-14 * max(total, abs(theta))
    for _ in range(200 * k):
        mean = 0.0
        for r in range(k):
            mean += max(theta, D[r])
        mean = (mean - total) / k
        step = theta - mean
        theta = mean
        if step <= small:
            break
    return theta


@loop
def balanced_sum(v: Any, own: int, slope: float, bound: float, guess: float) -> Any:
    """The S with S = sum over j != own of clip(v_j + slope S, 0, bound): Newton's method inside a bracket."""
    k = v.shape[0]
    low, high = 0.0, (k - 1) * bound
    S = min(max(guess, low), high)
    for _ in range(200):
        excess = -S
        steepness = -1.0
        for j in range(k):
            if j != own:
                value = v[j] + slope * S
                if value >= bound:
                    excess += bound
                elif value > 0.0:
                    excess += value
                    steepness += slope
        if excess > 0.0:
            low = S
        elif excess < 0.0:
            high = S
        else:
            break
        step = S - excess / steepness
        if not low < step < high:
            # The root lies at an end of the bracket as far as rounding can tell, or Newton's method went astray.
            if abs(step - S) <= 4e-16 * max(abs(S), abs(excess)):
                break
            step = 0.5 * (low + high)
            if step <= low or step >= high:
                break
        if abs(step - S) <= 2e-16 * abs(S):
            S = step
            break
        S = step
    return S


@loop
def best_variables(
    code: int, A: float, bound: float, y: int, margin: float, f: Any, a: Any, fixed_point: bool, work: Any, out: Any
) -> None:
    """The best a_p (k,) into `out`, all other points held; f (k,) are the outputs at p, a (k,) the present variables.

    For Crammer-Singer f has the margin subtracted at the own class.
    """
    k = f.shape[0]
    if code == CRAMMER_SINGER:
        for r in range(k):
            work[r] = f[r] / A + a[r]
            out[r] = work[r]
        theta = threshold_by_fixed_point(work, bound) if fixed_point else threshold_by_sorting(work, bound)
        for r in range(k):
            out[r] = max(out[r] - theta, 0.0)
        return
    total = 0.0
    for r in range(k):
        total += a[r]
    if code == WESTON_WATKINS:
        slope = -1.0
        shift = (margin - f[y]) / A + total
    else:
        slope = 1.0 / k
        shift = margin / A - total / k
    for r in range(k):
        work[r] = f[r] / A + shift + a[r]
    S = balanced_sum(work, y, slope, bound, total)
    for r in range(k):
        out[r] = min(max(work[r] + slope * S, 0.0), bound)
    out[y] = 0.0


@loop
def coefficient_change(code: int, y: int, before: Any, after: Any, out: Any) -> bool:
    """Change (k,) of the expansion coefficients of a point whose variables go from `before` to `after`."""
    k = before.shape[0]
    total = 0.0
    moved = False
    for r in range(k):
        change = after[r] - before[r]
        out[r] = -change
        if r != y:
            total += change
            moved = moved or change != 0.0
    if code == LEE_LIN_WAHBA:
        for r in range(k):
            out[r] += total / k
    else:
        out[y] = total
    return moved


@loop
def violation_of(code: int, y: int, margin: float, bound: float, f: Any, a: Any) -> Any:
    """How far the variables of one point are from optimal, in units of the outputs; f as in `best_variables`."""
    k = f.shape[0]
    if code == CRAMMER_SINGER:
        highest = f[0]
        lowest = BARRED
        for r in range(k):
            highest = max(highest, f[r])
            if a[r] > 0.0:
                lowest = min(lowest, f[r])
        return highest - lowest
    worst = 0.0
    shift = margin - f[y] if code == WESTON_WATKINS else margin
    for r in range(k):
        if r != y:
            d = shift + f[r]
            if d > worst and a[r] < bound:
                worst = d
            if -d > worst and a[r] > 0.0:
                worst = -d
    return worst


@loop
def loss_and_gap(code: int, y: int, margin: float, bound: float, f: Any, a: Any) -> tuple[float, float]:
    """Loss of one point, and its part of the gap; f as in `best_variables`."""
    loss = 0.0
    gap = 0.0
    if code == CRAMMER_SINGER:
        highest = f[0]
        for r in range(f.shape[0]):
            highest = max(highest, f[r])
        for r in range(f.shape[0]):
            gap += a[r] * (highest - f[r])
        return bound * (highest - f[y]), gap
    shift = margin - f[y] if code == WESTON_WATKINS else margin
    for r in range(f.shape[0]):
        if r != y:
            d = shift + f[r]
            loss += bound * max(d, 0.0)
            gap += (bound - a[r]) * max(d, 0.0) + a[r] * max(-d, 0.0)
    return loss, gap


@loop
def survey(code: int, margin: float, F: Any, a: Any, y: Any, box: Any, first: int, last: int, psi: Any) -> Any:
    """Violations psi of the points first..last, and the sums (loss, gap, c'f) over them; F (n, k) are the outputs."""
    k = F.shape[1]
    a = borrowed(a)
    f = np.empty(k)
    loss = 0.0
    gap = 0.0
    product = 0.0
    for i in range(first, last):
        own = y[i]
        bound = box[i]
        total = 0.0
        mean = 0.0
        for r in range(k):
            f[r] = F[i, r]
            mean += f[r]
            if r != own:
                total += a[i, r]
                product -= a[i, r] * f[r]
        product += total * (mean / k if code == LEE_LIN_WAHBA else f[own])
        if code == CRAMMER_SINGER:
            f[own] -= margin
        of_loss, of_gap = loss_and_gap(code, own, margin, bound, f, a[i])
        loss += of_loss
        gap += of_gap
        psi[i] = violation_of(code, own, margin, bound, f, a[i])
    return loss, gap, product


@loop
def _mark(code: int, y: int, bound: float, a: Any, i: int, rise: Any, fall: Any) -> None:
    """Which variables of point i may rise and fall: 0, or a bar so high that they are never the extreme."""
    for r in range(a.shape[1]):
        rise[r, i] = 0.0 if code == CRAMMER_SINGER or a[i, r] < bound else BARRED
        fall[r, i] = 0.0 if a[i, r] > 0.0 else BARRED
    if code != CRAMMER_SINGER:
        rise[y, i] = BARRED
        fall[y, i] = BARRED


@loop
def _scan(
    code: int, margin: float, G: Any, shared: Any, y: Any, rise: Any, fall: Any, up: Any, down: Any, psi: Any
) -> Any:
    """Violations psi (m,) of all points of a working set from their outputs G (k, m) + shared (m,); the largest."""
    k, m = G.shape
    for i in range(m):
        up[i] = G[0, i] - rise[0, i]
        down[i] = G[0, i] + fall[0, i]
    for r in range(1, k):
        for i in range(m):
            up[i] = greater(up[i], G[r, i] - rise[r, i])
            down[i] = lesser(down[i], G[r, i] + fall[r, i])
    worst = 0.0
    for i in range(m):
        if code == CRAMMER_SINGER:
            psi[i] = up[i] - down[i]
        else:
            shift = margin - G[y[i], i] if code == WESTON_WATKINS else margin + shared[i]
            psi[i] = max(shift + up[i], -shift - down[i], 0.0)
        worst = max(worst, psi[i])
    return worst


@loop
def gather(matrix: Any, points: Any, first: int, last: int, out: Any) -> None:
    """Rows first..last of matrix[points][:, points] into `out` (m, m)."""
    for i in range(first, last):
        row = matrix[points[i]]
        for j in range(points.shape[0]):
            out[i, j] = row[points[j]]


@loop
def _add_multiple(step: float, row: Any, out: Any) -> None:
    """Add step row (m,) to `out` (m,); all three are of one precision."""
    for i in range(row.shape[0]):
        out[i] += step * row[i]


@loop
def minimise_points(
    K: Any, constant: float, diagonal: Any, G: Any, a: Any, y: Any, box: Any, code: int, margin: float, greed: float,
    fixed_point: bool, tol: float, max_steps: int,
) -> tuple[int, float]:  # fmt: skip
    """Steps on a working set of m points until no violation exceeds `tol`: number of steps and last violation.

    K (m, m) with `constant` added to its values; G (k, m) outputs (Crammer-Singer: less the margin at the own class)
    and a (m, k) variables are updated.  After each scan of all violations the points within `greed` of the worst are
    visited: 1 is the greedy method, a smaller number scans less often.  A step of Lee-Lin-Wahba changes all outputs by
    the same amount and a few by more; the common part is kept apart until the end.

    Everything of length m is kept in the precision of G: adding rows of K to it is nearly all the work.
    """
    k, m = G.shape
    G, a = borrowed(G), borrowed(a)
    rise, fall = np.empty((k, m), G.dtype), np.empty((k, m), G.dtype)
    up, down, psi = np.empty(m, G.dtype), np.empty(m, G.dtype), np.empty(m, G.dtype)
    shared, row, step = np.zeros(m, G.dtype), np.empty(m, G.dtype), np.empty(k, G.dtype)
    f, work, new, change = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    for i in range(m):
        _mark(code, y[i], box[i], a, i, rise, fall)
    steps = 0
    while True:
        worst = _scan(code, margin, G, shared, y, rise, fall, up, down, psi)
        if worst <= tol or steps >= max_steps:
            break
        level = max(greed * worst, tol)
        before = steps
        for p in range(m):
            if psi[p] < level:
                continue
            for r in range(k):
                f[r] = G[r, p] + shared[p]
            if violation_of(code, y[p], margin, box[p], f, a[p]) < level:
                continue
            best_variables(code, diagonal[p], box[p], y[p], margin, f, a[p], fixed_point, work, new)
            if not coefficient_change(code, y[p], a[p], new, change):
                continue
            for i in range(m):
                row[i] = K[p, i] + constant
            if code == LEE_LIN_WAHBA:
                common = change[y[p]]
                for r in range(k):
                    change[r] -= common
                step[0] = common
                _add_multiple(step[0], row, shared)
            for r in range(k):
                a[p, r] = new[r]
                step[r] = change[r]
                if step[r] != 0.0:
                    _add_multiple(step[r], row, G[r])
            _mark(code, y[p], box[p], a, p, rise, fall)
            steps += 1
            if steps >= max_steps:
                break
        if steps == before:
            break
    if code == LEE_LIN_WAHBA:
        for r in range(k):
            for i in range(m):
                G[r, i] += shared[i]
    return steps, worst
