"""Convex duals that are not quadratic: a quadratic model in every iteration, solved by the interior point method.

    minimise   1/2 s' K~ s + linear' s + sum_j psi_j(s_j)      subject to   A s = d,   lower <= s <= upper

with psi convex and twice differentiable inside its box, as the conjugates of smooth losses are (logistic, Huber).  At a
point s the sum is replaced by its second-order expansion, which is a ridge and a linear term; the minimum of that
quadratic program gives the direction, and a line search on the objective itself the step (Schoelkopf and Smola 2002,
problem 10.9).  With multipliers h and r = K~ s + linear + psi'(s) - A'h = z - w, z, w >= 0, the dual value

    -1/2 s' K~ s + sum_j (psi_j(s_j) - psi'_j(s_j) s_j) + d'h + lower'z - upper'w

is a lower bound on the minimum, whatever s and h are (problem 10.8), and the distance to it ends the iteration.
"""

import time
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from mercer.problems.certificate import relative_gap
from mercer.problems.program import QuadraticProgram
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.quadratic import interior_point
from mercer.solvers.solution import Solution, Stopped

Array = NDArray[np.float64]

NAME = "convex dual"
INSIDE = 0.99  # share of the way to a bound that a step may go: psi may be infinitely steep there
SHORTEST = 1e-12
STEPS = 100
FALL = 1e-4  # share of the fall that the slope promises which a step must bring
ENDS = 1e-300


class Separable(Protocol):
    """Psi by value, slope and second derivative, (N,) each, inside the box."""

    def value(self, s: Array, /) -> Array:
        """Psi_j(s_j)."""

    def slope(self, s: Array, /) -> Array:
        """psi'_j(s_j)."""

    def curvature(self, s: Array, /) -> Array:
        """psi''_j(s_j)."""


@dataclass(frozen=True, eq=False)
class Entropy:
    """The conjugate of the logistic loss, C (t log t + (1 - t) log (1 - t)) with t = s / bound between 0 and 1."""

    bound: Array
    """C_i y_i (N,)."""

    def _share(self, s: Array) -> Array:
        return np.clip(s / self.bound, ENDS, 1.0 - np.finfo(np.float64).epsneg)

    def value(self, s: Array) -> Array:
        """The entropy, with a minus."""
        t = self._share(s)
        return np.asarray(np.abs(self.bound) * (xlogy(t, t) + xlogy(1.0 - t, 1.0 - t)))

    def slope(self, s: Array) -> Array:
        """sign(y) log(t / (1 - t))."""
        t = self._share(s)
        return np.asarray(np.sign(self.bound) * (np.log(t) - np.log1p(-t)))

    def curvature(self, s: Array) -> Array:
        """1 / (C t (1 - t))."""
        t = self._share(s)
        return np.asarray(1.0 / (np.abs(self.bound) * t * (1.0 - t)))


def objective(program: QuadraticProgram, psi: Separable, s: Array) -> float:
    """The value at s (N,)."""
    return program.objective(s) + float(psi.value(s).sum())


def dual_value(program: QuadraticProgram, psi: Separable, s: Array, h: Array) -> float:
    """The lower bound at the head of this file, for s (N,) inside the box and any h (r,)."""
    c = program.coefficients(s)
    g = program.values(c)
    slope = psi.slope(s) + program.ridge * s
    residual = -program.slack_values(g, h) + slope
    z, w = np.maximum(residual, 0.0), np.maximum(-residual, 0.0)
    with np.errstate(invalid="ignore"):
        ends = np.where(z > 0.0, program.lower * z, 0.0) - np.where(w > 0.0, program.upper * w, 0.0)
    curved = float((psi.value(s) + 0.5 * program.ridge * s * s - slope * s).sum())
    return -0.5 * float(c @ g) + curved + float(program.d @ h) + float(ends.sum())


def solve(
    program: QuadraticProgram,
    psi: Separable,
    *,
    tol: float = 1e-8,
    start: Array | None = None,
    monitor: Monitor | None = None,
    max_iter: int = STEPS,
) -> Solution:
    """Minimise to a relative gap of `tol` from a point strictly inside the box; its coefficients are the machine's.

    `primal` and `dual` are those of a machine: minus the lower bound, and minus the objective.
    """
    began, watch = time.perf_counter(), listening(monitor)
    s = program.project(0.5 * (program.lower + program.upper)) if start is None else np.array(start, dtype=np.float64)
    h, bound, iterations = np.zeros(program.d.size), -np.inf, 0
    stopped: Stopped = "iterations"
    with watch:
        for iterations in range(max(max_iter, 0) + 1):
            value = objective(program, psi, s)
            bound = max(bound, dual_value(program, psi, s, h)) if iterations else bound
            if np.isfinite(bound) and relative_gap(-bound, -value) <= tol:
                stopped = "converged"
                break
            if iterations and not watch.watch(iterations, -bound, -value):
                stopped = watch.stopped or "interrupted"
                break
            if iterations == max_iter:
                break
            curvature = psi.curvature(s)
            model = replace(
                program, linear=program.linear + psi.slope(s) - curvature * s, ridge=program.ridge + curvature
            )
            target = interior_point.solve(model, tol=min(1e-9, tol))
            h = np.asarray(target.multipliers["h"], dtype=np.float64)
            after = _step(program, psi, s, target.variables - s, value)
            if after is None:
                bound = max(bound, dual_value(program, psi, s, h))
                stopped = "converged" if relative_gap(-bound, -value) <= tol else "stalled"
                break
            s = after
    value = objective(program, psi, s)
    return Solution(
        program.coefficients(s), -float(h[0]) if h.size else 0.0, s, -bound, -value, value - bound, iterations, stopped,
        time.perf_counter() - began, NAME, {"h": h}, tuple(watch.history),
    )  # fmt: skip


def _step(program: QuadraticProgram, psi: Separable, s: Array, toward: Array, value: float) -> Array | None:
    """The point along the direction that lowers the objective enough; None where none does."""
    with np.errstate(divide="ignore", invalid="ignore"):
        above, below = (program.upper - s) / toward, (program.lower - s) / toward
        room = np.where(toward > 0.0, above, np.where(toward < 0.0, below, np.inf))
    t = min(1.0, INSIDE * float(np.nanmin(room)))
    slope = float((program.gradient(s) + psi.slope(s)) @ toward)
    while t > SHORTEST:
        if objective(program, psi, s + t * toward) <= value + FALL * t * slope:
            return np.asarray(s + t * toward)
        t *= 0.5
    return None
