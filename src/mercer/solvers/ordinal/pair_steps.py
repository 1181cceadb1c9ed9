"""Compiled loops over the dual variables of ranked pairs; see `mercer.solvers.ordinal.pairs`.

`order` (n, 2) holds query and rank of every point; pair (i, j) exists where i and j share a query, i has the higher
rank and both have weight.  alpha (n, n) holds the variables, that of the pair in row i and column j.
"""

from typing import Any

import numpy as np

from mercer.arrays import Array
from mercer.compiled import loop


@loop
def violation_of(z: float, alpha: float, cost: float, squared: bool) -> float:
    """How far a variable is from its optimality condition, with the sign of the step that it wants."""
    if squared:
        slope = z - alpha / (2.0 * cost)
        return slope if slope > 0.0 or alpha > 0.0 else 0.0
    if z > 0.0:
        return z if alpha < cost else 0.0
    return z if alpha > 0.0 else 0.0


@loop
def missing_of(z: float, alpha: float, cost: float, squared: bool) -> float:
    """Loss plus conjugate minus product: what the pair adds to the gap, never negative."""
    if squared:
        above = max(z, 0.0)
        return cost * above * above - alpha * z + alpha * alpha / (4.0 * cost)
    return (cost - alpha) * z if z > 0.0 else -alpha * z


@loop
def survey(
    f: Array, order: Any, w: Array, C: float, squared: bool, alpha: Array, error: Array, psi: Array, free: Any
) -> tuple[float, float, float]:
    """Loss, gap, and the largest gap if values f are off by at most `error` (n,).

    Violations psi (n,) and whether a point has a variable inside its bounds, free (n,), are written.
    """
    n = f.shape[0]
    psi[:] = 0.0
    free[:] = False
    loss, gap, widest = 0.0, 0.0, 0.0
    for i in range(n):
        for j in range(n):
            cost = C * w[i] * w[j]
            if order[i, 0] != order[j, 0] or order[i, 1] <= order[j, 1] or cost == 0.0:
                continue
            z, a = 1.0 - f[i] + f[j], alpha[i, j]
            above = max(z, 0.0)
            loss += cost * above * above if squared else cost * above
            gap += missing_of(z, a, cost, squared)
            off = error[i] + error[j]
            widest += max(missing_of(z - off, a, cost, squared), missing_of(z + off, a, cost, squared))
            wrong = abs(violation_of(z, a, cost, squared))
            psi[i] = max(psi[i], wrong)
            psi[j] = max(psi[j], wrong)
            if a > 0.0 and (squared or a < cost):
                free[i] = free[j] = True
    return loss, gap, widest


@loop
def begin(f: Array, order: Any, w: Array, C: float, squared: bool, width: float, alpha: Array) -> None:
    """Variables that are the slopes of the losses at f, hinges with a quadratic piece of this width."""
    n = f.shape[0]
    for i in range(n):
        for j in range(n):
            if order[i, 0] == order[j, 0] and order[i, 1] > order[j, 1]:
                cost, z = C * w[i] * w[j], max(1.0 - f[i] + f[j], 0.0)
                alpha[i, j] = 2.0 * cost * z if squared else cost * min(z / width, 1.0)


@loop
def minimise(
    K: Any, f: Array, order: Any, w: Array, C: float, squared: bool, alpha: Array, share: float, tol: float, most: int
) -> tuple[int, float]:
    """Steps on one pair at a time, each exact, until no violation passes tol; number of steps, and what is left.

    A pass over all pairs steps on those whose violation is at least `share` of the largest of the last pass.
    """
    m, steps, worst = f.shape[0], 0, np.inf
    least = 0.0
    while True:
        worst = 0.0
        for i in range(m):
            for j in range(m):
                cost = C * w[i] * w[j]
                if order[i, 0] != order[j, 0] or order[i, 1] <= order[j, 1] or cost == 0.0:
                    continue
                wrong = violation_of(1.0 - f[i] + f[j], alpha[i, j], cost, squared)
                worst = max(worst, abs(wrong))
                bent = K[i, i] + K[j, j] - 2.0 * K[i, j] + (0.5 / cost if squared else 0.0)
                if abs(wrong) <= max(tol, least) or steps >= most:
                    continue
                a = alpha[i, j] + wrong / bent if bent > 0.0 else (np.inf if wrong > 0.0 else 0.0)
                a = max(a, 0.0) if squared else min(max(a, 0.0), cost)
                change = a - alpha[i, j]
                alpha[i, j] = a
                for k in range(m):
                    f[k] += change * (K[i, k] - K[j, k])
                steps += 1
        if worst <= tol or steps >= most:
            return steps, worst
        least = share * worst
