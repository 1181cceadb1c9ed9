"""Which points to work on next: the loops over all variables between two working sets.

The variables of a group are optimal when no variable that may rise has a smaller gradient than one that may fall.  With
theta, the median gradient of the group's free variables, as the present guess of the multiplier, a variable violates
when it may rise and G < theta, or may fall and G > theta.  As in `mercer.solvers.quadratic.pair_steps`, `program` is
(linear, ridge, lower, upper, group), each (layers, n).
"""

from typing import Any

import numpy as np

from mercer.arrays import Array
from mercer.compiled import loop
from mercer.problems.program import QuadraticProgram

FEW = 0.25  # share of those on the other side


@loop
def survey(F: Any, s: Any, program: Any, G: Any, extremes: Any) -> None:
    """Gradients G (layers, n), and for each group in extremes (groups, 4): the smallest gradient among variables that
    may rise, its position in G, the largest among those that may fall, its position.
    """
    linear, ridge, lower, upper, group = program
    layers, n = s.shape
    for g in range(extremes.shape[0]):
        extremes[g, 0], extremes[g, 1], extremes[g, 2], extremes[g, 3] = np.inf, -1.0, -np.inf, -1.0
    for l in range(layers):
        for k in range(n):
            value = F[k] + linear[l, k] + ridge[l, k] * s[l, k]
            G[l, k] = value
            g = group[l, k]
            if g < 0:
                continue
            if value < extremes[g, 0] and s[l, k] < upper[l, k]:
                extremes[g, 0], extremes[g, 1] = value, l * n + k
            if value > extremes[g, 2] and s[l, k] > lower[l, k]:
                extremes[g, 2], extremes[g, 3] = value, l * n + k


@loop
def free_gradients(G: Any, s: Any, program: Any, g: int, out: Any) -> int:
    """Gradients of the variables of group g that are strictly inside their box, into out; returns how many."""
    _, _, lower, upper, group = program
    layers, n = s.shape
    count = 0
    for l in range(layers):
        for k in range(n):
            if group[l, k] == g and lower[l, k] < s[l, k] < upper[l, k]:
                out[count] = G[l, k]
                count += 1
    return count


@loop
def violators(G: Any, s: Any, program: Any, theta: Any, slack: float, out: Any, sides: Any) -> tuple[int, float]:
    """Points with a variable that violates by more than `slack`, into out (n,); their number and the worst violation.

    Variables in no group are compared with theta = 0.  `sides` (groups, 2) counts the variables of each group that
    violate below its level, which must rise, and above it, which must fall.
    """
    _, _, lower, upper, group = program
    layers, n = s.shape
    sides[:] = 0
    count = 0
    worst = 0.0
    for k in range(n):
        found = False
        for l in range(layers):
            g = group[l, k]
            level = theta[g] if g >= 0 else 0.0
            excess = G[l, k] - level
            below = excess < -slack and s[l, k] < upper[l, k]
            if below or (excess > slack and s[l, k] > lower[l, k]):
                found = True
                worst = max(worst, abs(excess))
                if g >= 0:
                    sides[g, 0 if below else 1] += 1
        if found:
            out[count] = k
            count += 1
    return count, worst


@loop
def counterparts(G: Any, s: Any, program: Any, theta: Any, sides: Any, out: Any) -> int:
    """Points with a free variable on the side of a group's level that few violate on, into out (n,); how many.

    A sum is fixed: what violators on one side gain or lose others must take up, and where all sides are even there are
    violators enough for it.
    """
    _, _, lower, upper, group = program
    layers, n = s.shape
    count = 0
    for k in range(n):
        for l in range(layers):
            g = group[l, k]
            if g < 0 or not lower[l, k] < s[l, k] < upper[l, k]:
                continue
            excess = G[l, k] - theta[g]
            few_above, few_below = sides[g, 1] < FEW * sides[g, 0], sides[g, 0] < FEW * sides[g, 1]
            if (few_above and excess >= 0.0) or (few_below and excess <= 0.0):
                out[count] = k
                count += 1
                break
    return count


def largest_violation(program: QuadraticProgram, s: Array, f: Array) -> float:
    """Largest violation of the optimality conditions at feasible s (N,), f = K s (n,), for one fixed sum or none."""
    gradient = program.gradient(s, f)
    up, down = gradient[s < program.upper], gradient[s > program.lower]
    if program.d.size:
        return float(down.max(initial=-np.inf) - up.min(initial=np.inf)) if up.size and down.size else 0.0
    return max(float(down.max(initial=0.0)), float(-up.min(initial=0.0)))
