"""Support vector machines trained again without one point, from where the full machine stands.

A module that studies share; it measures nothing of its own.

Without a point that is no support vector the machine stays the same.  Without support vector i, to first order, the
free variables s_F take over its variable s_i so that their gradients stay equal,

    [[K_FF, 1], [1', 0]] [d; b] = s_i [K_Fi; 1],

from one inverse for all i.  Clipped to its box and brought back to sum zero that is the start of a few hundred pair
steps, a tenth of what training from zero takes, to the same tolerance.  Points of target 0 take no part, but the
outputs there are followed too.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.solvers.quadratic.pair_steps import minimise_pairs

Array = NDArray[np.float64]
TOLERANCE = 1e-3  # largest violation of the optimality conditions, as in SVC
JITTER = 1e-8  # repeated points make K_FF singular; the start need not be exact
STEPS = 10_000_000


class Machine:
    """A machine with free bias on kernel matrix K (n, n), targets t (n,) of +-1 or 0, and cost C."""

    def __init__(self, K: NDArray[Any], t: Array, C: float) -> None:
        self.K, self.t = K, t
        self.lower, self.upper = np.minimum(0.0, C * t), np.maximum(0.0, C * t)
        self.diagonal = np.diagonal(K).astype(np.float64)
        self.s, self.F = np.zeros(len(t)), np.zeros(len(t))
        self._minimise(self.s, self.F, self.lower, self.upper)
        self.support: NDArray[np.intp] = np.flatnonzero(self.s)
        self.free: NDArray[np.intp] = np.flatnonzero((self.s > self.lower) & (self.s < self.upper))
        self._rows = K[self.free].astype(np.float64)
        self._inverse = self._bordered_inverse()

    @property
    def outputs(self) -> Array:
        """Outputs (n,) of the full machine."""
        return self.F + self._bias(self.s, self.F, self.lower, self.upper)

    def without(self, i: int) -> Array:
        """Outputs (n,) at all points of the machine trained without point i."""
        if self.s[i] == 0.0:
            return self.outputs
        lower, upper = self.lower.copy(), self.upper.copy()
        lower[i] = upper[i] = 0.0
        s = self.s.copy()
        s[self.free] += self._taken_over(i)
        s = with_sum_zero(np.clip(s, lower, upper), lower, upper, self.free)
        change = s - self.s
        F = self.F + change[self.free] @ self._rows
        change[self.free] = 0.0
        other = np.flatnonzero(change)
        F += change[other] @ self.K[other]
        self._minimise(s, F, lower, upper)
        return F + self._bias(s, F, lower, upper)

    def _bordered_inverse(self) -> Array:
        m = len(self.free)
        system = np.ones((m + 1, m + 1))
        system[:m, :m] = self._rows[:, self.free] + JITTER * np.eye(m)
        system[m, m] = 0.0
        return np.linalg.inv(system) if m else np.empty((1, 1))

    def _taken_over(self, i: int) -> Array:
        """The change d of the free variables when that of point i goes to zero."""
        m = len(self.free)
        if not m:
            return np.empty(0)
        at = int(np.searchsorted(self.free, i))
        if at < m and self.free[at] == i:
            return -self.s[i] * self._inverse[:m, at] / self._inverse[at, at]
        return self.s[i] * (self._inverse[:m, :m] @ self._rows[:, i] + self._inverse[:m, m])

    def _minimise(self, s: Array, F: Array, lower: Array, upper: Array) -> None:
        """Pair steps on s and F, both overwritten."""
        n = len(s)
        program: Any = (-self.t[None], np.zeros((1, n)), lower[None], upper[None], np.zeros((1, n), np.intp))
        minimise_pairs(self.K, (0, n, n), self.diagonal, F, s[None], program, 1, TOLERANCE, STEPS)

    def _bias(self, s: Array, F: Array, lower: Array, upper: Array) -> float:
        """Mean residual of the free points, else the middle of what the conditions allow; 0 if one sign is missing."""
        residual = self.t - F
        free = (s > lower) & (s < upper)
        if free.any():
            return float(np.mean(residual[free]))
        rise, fall = residual[s < upper], residual[s > lower]
        return 0.5 * float(rise.max() + fall.min()) if len(rise) and len(fall) else 0.0


def with_sum_zero(s: Array, lower: Array, upper: Array, first: NDArray[np.intp]) -> Array:
    """Variables in their box whose sum is zero: the excess is taken off those of `first`, then off the others."""
    excess = float(s.sum())
    room = s - lower if excess > 0 else upper - s
    order = np.concatenate([first, np.delete(np.arange(len(s)), first)])
    before = np.cumsum(room[order]) - room[order]
    moved = np.zeros(len(s))
    moved[order] = np.clip(abs(excess) - before, 0.0, room[order])
    return np.asarray(np.clip(s - np.sign(excess) * moved, lower, upper))
