"""Compiled passes of the dual coordinate method over the rows of a thin factor (see `linear_dual`).

The state is s (N,), w = Z's (p,) in float64 whatever the precision of Z (n, p), and the sum of the variables.  A pass
visits points in a given order and minimises exactly over each variable that sits on a point, at most two, with one
product <z_i, w> for both.

Z comes as three arrays: values, columns and starts of its rows where it is sparse (CSR); values (n, p) and two that are
not read where it is dense.  The number of dimensions of values decides at compile time.
"""

from typing import Any

import numpy as np

from mercer.compiled import loop

NONE = -1


@loop
def _product(values: Any, columns: Any, starts: Any, i: Any, w: Any) -> Any:
    """<z_i, w>."""
    total = 0.0
    if values.ndim == 2:
        for j in range(w.shape[0]):
            total += values[i, j] * w[j]
    else:
        for at in range(starts[i], starts[i + 1]):
            total += values[at] * w[columns[at]]
    return total


@loop
def _add(step: Any, values: Any, columns: Any, starts: Any, i: Any, w: Any) -> None:
    """Add step times z_i to w."""
    if values.ndim == 2:
        for j in range(w.shape[0]):
            w[j] += step * values[i, j]
    else:
        for at in range(starts[i], starts[i + 1]):
            w[columns[at]] += step * values[at]


@loop
def squared_norms(values: Any, columns: Any, starts: Any, out: Any) -> None:
    """|z_i|^2 (n,)."""
    for i in range(out.shape[0]):
        total = 0.0
        if values.ndim == 2:
            for j in range(values.shape[1]):
                total += float(values[i, j]) * float(values[i, j])
        else:
            for at in range(starts[i], starts[i + 1]):
                total += float(values[at]) * float(values[at])
        out[i] = total


@loop
def gather(values: Any, columns: Any, starts: Any, c: Any, w: Any) -> None:
    """Set w to Z'c for coefficients c (n,), skipping zeros."""
    w[:] = 0.0
    for i in range(c.shape[0]):
        if c[i] != 0.0:
            _add(c[i], values, columns, starts, i, w)


@loop
def products(values: Any, columns: Any, starts: Any, w: Any, start: Any, stop: Any, out: Any) -> None:
    """out[i] = <z_i, w> for i in start..stop."""
    for i in range(start, stop):
        out[i] = _product(values, columns, starts, i, w)


@loop
def _visit(
    j: Any, value: Any, curve: Any, s: Any, lower: Any, upper: Any, linear: Any, ridge: Any, high: Any, low: Any
) -> Any:
    """Exact step on variable j at kernel value `value`: (step, projected gradient, whether it may leave the pass)."""
    here = s[j]
    gradient = value + linear[j] + ridge[j] * here
    if here <= lower[j] and gradient >= 0.0:
        return 0.0, 0.0, gradient > high
    if here >= upper[j] and gradient <= 0.0:
        return 0.0, 0.0, gradient < low
    curvature = curve + ridge[j]
    far = lower[j] if gradient > 0.0 else upper[j]
    to = min(max(here - gradient / curvature, lower[j]), upper[j]) if curvature > 0.0 else far
    s[j] = to
    return to - here, gradient, False


@loop
def sweep(
    values: Any,
    columns: Any,
    starts: Any,
    norms: Any,
    first: Any,
    second: Any,
    lower: Any,
    upper: Any,
    linear: Any,
    ridge: Any,
    s: Any,
    w: Any,
    order: Any,
    count: Any,
    coupling: Any,
    multiplier: Any,
    target: Any,
    bounds: Any,
    state: Any,
) -> Any:
    """One pass over order[:count]; returns how many points stay.

    Variable j of point i sees <z_i, w> + coupling (sum s - target) - multiplier.  bounds (2,) are the largest and
    smallest gradient beyond which a variable at its bound is left out, points whose variables all are move behind the
    count; bounds become those of this pass.  state (1,) is the sum of the variables.
    """
    high, low = bounds[0], bounds[1]
    largest, smallest = -np.inf, np.inf
    at = 0
    while at < count:
        i = order[at]
        curve = norms[i] + coupling
        value = _product(values, columns, starts, i, w) + coupling * (state[0] - target) - multiplier
        step, projected, leaves = _visit(first[i], value, curve, s, lower, upper, linear, ridge, high, low)
        largest, smallest = max(largest, projected), min(smallest, projected)
        move = step
        if second[i] != NONE:
            step, projected, also = _visit(
                second[i], value + move * curve, curve, s, lower, upper, linear, ridge, high, low
            )
            largest, smallest = max(largest, projected), min(smallest, projected)
            leaves = leaves and also and move == 0.0
            move += step
        if move != 0.0:
            _add(move, values, columns, starts, i, w)
            state[0] += move
        if leaves and move == 0.0:
            count -= 1
            order[at], order[count] = order[count], order[at]
        else:
            at += 1
    bounds[0], bounds[1] = largest, smallest
    return count
