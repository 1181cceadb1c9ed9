"""Binary kernel logistic regression in the dual, two variables at a time.

With y_i = +-1 and f = K s + b, the problem  min 1/2 ||f||^2 + sum_i C_i log(1 + exp(-y_i f_i))  has the dual

    min 1/2 s'Ks + sum_i C_i G(y_i s_i / C_i),     G(t) = t log t + (1 - t) log(1 - t),     sum_i s_i = 0

over 0 < y_i s_i < C_i (Keerthi, Duan, Shevade and Poo 2005).  All variables stay inside their box, at whose ends G is
infinitely steep; those within `EDGE` of an end, where digits end, move away from it only.  At the optimum

    H_i = (K s)_i + y_i log(t_i / (1 - t_i)),      t_i = y_i s_i / C_i

is the same for all points, and equals -b; the pair of the largest and the smallest H moves along its difference to the
minimum, found by Newton's method held inside a bracket.  A step costs two rows of K, as in SMO.

The two outputs of the softmax are -f/2 and f/2, with half the coefficients and, in this formula, twice their C.
"""

import math
from typing import Any, Unpack

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from mercer.arrays import Array
from mercer.compiled import exact_loop
from mercer.problems.certificate import Certificate
from mercer.problems.multinomial import MultinomialLogistic
from mercer.solvers.contract import Acceptance, Limits, Start, starting_coefficients
from mercer.solvers.iteration import Iteration, solved
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution, Stopped

NAME = "logistic_pairs"
ACCEPTS = "logistic regression of two classes with a free bias"
SECTION = "Keerthi, Duan, Shevade and Poo 2005, A fast dual algorithm for kernel logistic regression"
STEPS_AT_ONCE = 4  # pair steps for each point between two looks at the certificate
INNER = 60
BLOCK = 256  # rows of the matrix computed at a time for the working copy
EDGE = 1e-15  # share of C that a variable keeps from its bounds
FIRST = 0.5  # share of C that the variables of the smaller class start from
FAR = 50.0  # beyond the values, where all losses fall or rise together
BIAS_ACCURACY, HALVINGS = 1e-15, 1000
STALLED = 1000  # looks without a smaller gap, which does not fall in every step


def accepts(problem: Any) -> Acceptance:
    """Logistic problems of two classes with a free bias."""
    if not isinstance(problem, MultinomialLogistic):
        return Acceptance(False, f"{type(problem).__name__} is not a logistic problem")
    if problem.k != 2:
        return Acceptance(False, f"the problem has {problem.k} classes, and pairs serve two: Newton's method takes any")
    if problem.bias != "free":
        return Acceptance(False, f"the bias is {problem.bias!r}, and pairs serve a free one: Newton's method takes any")
    return Acceptance(True, "two classes, and a free bias")


def solve(
    problem: MultinomialLogistic, *, tol: float = 1e-6, gap_tol: float | None = None, **limits: Unpack[Limits]
) -> Solution:
    """Solve to a relative gap of `tol`; `max_iter` bounds the number of pair steps (-1: no bound).

    `start`: coefficients (n, 2) or an earlier solution.
    """
    return solved(_Pairs, problem, accepts(problem), tol=tol if gap_tol is None else gap_tol, **limits)


@exact_loop
def _inside(t: float) -> float:
    return min(max(t, EDGE), 1.0 - EDGE)


@exact_loop
def _level(F: float, y: float, s: float, C: float) -> float:
    """H of one point."""
    t = _inside(y * s / C)
    return F + y * math.log(t / (1.0 - t))


@exact_loop
def _move(Fi: float, Fj: float, yi: float, yj: float, si: float, sj: float, Ci: float, Cj: float, bend: float) -> float:
    """The step u that makes s_i + u, s_j - u best: a root of the rising function H_i - H_j, kept in a bracket."""
    low = max((EDGE * Ci if yi > 0 else -(1.0 - EDGE) * Ci) - si, sj - ((1.0 - EDGE) * Cj if yj > 0 else -EDGE * Cj))
    high = min(((1.0 - EDGE) * Ci if yi > 0 else -EDGE * Ci) - si, sj - (EDGE * Cj if yj > 0 else -(1.0 - EDGE) * Cj))
    u = 0.0
    for _ in range(INNER):
        ti, tj = _inside(yi * (si + u) / Ci), _inside(yj * (sj - u) / Cj)
        rise = Fi - Fj + bend * u + yi * math.log(ti / (1.0 - ti)) - yj * math.log(tj / (1.0 - tj))
        if rise > 0.0:
            high = u
        else:
            low = u
        slope = bend + 1.0 / (Ci * ti * (1.0 - ti)) + 1.0 / (Cj * tj * (1.0 - tj))
        ahead = u - rise / slope
        if not low < ahead < high:
            ahead = 0.5 * (low + high)
        if abs(ahead - u) <= 1e-15 * (Ci + Cj):
            return ahead
        u = ahead
    return u


@exact_loop
def _steps(K: Any, y: Any, C: Any, s: Any, F: Any, H: Any, most: int, spread: float) -> int:
    """Pair steps on the points of positive C until all H are within `spread`; returns how many."""
    n = y.shape[0]
    for step in range(most):
        i = j = -1
        for k in range(n):
            t = y[k] * s[k] / C[k]
            empty, full = t <= 2.0 * EDGE, t >= 1.0 - 2.0 * EDGE
            if (not empty if y[k] > 0.0 else not full) and (i < 0 or H[k] > H[i]):
                i = k
            if (not full if y[k] > 0.0 else not empty) and (j < 0 or H[k] < H[j]):
                j = k
        if i < 0 or j < 0 or H[i] - H[j] <= spread:
            return step
        bend = max(K[i, i] + K[j, j] - 2.0 * K[i, j], 0.0)
        u = _move(F[i], F[j], y[i], y[j], s[i], s[j], C[i], C[j], bend)
        if u == 0.0:
            return step
        s[i] += u
        s[j] -= u
        for k in range(n):
            change = u * (K[k, i] - K[k, j])
            F[k] += change
            H[k] += change
        H[i], H[j] = _level(F[i], y[i], s[i], C[i]), _level(F[j], y[j], s[j], C[j])
    return most


class _Pairs(Iteration):
    """The state of one solve: signed variables s, F = K s and H on the points of positive weight."""

    name = NAME

    def __init__(self, problem: MultinomialLogistic, tol: float, start: Start, monitor: Monitor) -> None:
        super().__init__(problem, tol, start, monitor)
        self.used = np.flatnonzero(problem.box > 0.0)
        self.y = np.where(problem.y[self.used] == 1, 1.0, -1.0)
        self.C = 2.0 * problem.box[self.used]
        self.K = self._matrix()
        self.s = self._middle() if self.initial is None else self._near(self.initial)
        self._refresh()

    def _matrix(self) -> Array:
        """K of the points in use; steps need its columns in no order that could be foreseen."""
        m = len(self.used)
        K = np.empty((m, m))
        for first in range(0, m, BLOCK):
            rows = self.used[first : first + BLOCK]
            K[first : first + BLOCK] = self.problem.gram.block(rows, self.used)
        return K

    def _middle(self) -> Array:
        """Inside the box, with the sum zero: the same share of C in each class but for the balance of their sums."""
        sums = [float(self.C[self.y == sign].sum()) for sign in (1.0, -1.0)]
        share = np.where(self.y > 0, min(sums) / sums[0], min(sums) / sums[1])
        return np.asarray(FIRST * self.y * self.C * share)

    def _near(self, start: Array) -> Array:
        """The start drawn a little inside the box, and towards the first one until the sum is zero again."""
        s = 2.0 * starting_coefficients(start, (self.problem.n, 2))[self.used, 1]
        t = np.clip(self.y * s / self.C, 1e-6, 1.0 - 1e-6)
        s = self.y * t * self.C
        excess = float(s.sum())
        room = np.where(excess > 0, np.where(self.y > 0, t, 1.0 - t), np.where(self.y > 0, 1.0 - t, t)) * self.C
        return np.asarray(s - excess * room / room.sum()) if room.sum() > abs(excess) else self._middle()

    def _refresh(self) -> None:
        """F and H from nothing: what was only ever updated drifts."""
        self.F = self.K @ self.s
        t = np.clip(self.y * self.s / self.C, EDGE, 1.0 - EDGE)
        self.H = self.F + self.y * np.log(t / (1.0 - t))

    def coefficients(self) -> Array:
        """Coefficients (n, 2) of the two outputs."""
        c = np.zeros((self.problem.n, 2))
        c[self.used, 1] = 0.5 * self.s
        c[:, 0] = -c[:, 1]
        return c

    def _bias(self) -> float:
        """The best bias at these values: where the slope of the losses, which rises with it, changes its sign."""

        def slope(b: float) -> float:
            return float((self.C * self.y) @ expit(-self.y * (self.F + b)))

        return float(brentq(slope, -self.F.max() - FAR, -self.F.min() + FAR, xtol=BIAS_ACCURACY, maxiter=HALVINGS))

    def run(self, limit: int) -> Stopped:
        """Pair steps until the gap of the primal problem is small, a limit or an interruption."""
        waited, best = 0, math.inf
        spread = 1e-2 * float(np.abs(self.H - self.H.mean()).max()) or 1e-6
        while True:
            b = self._bias()
            self.certificate: Certificate = self.problem.certificate(
                self.coefficients(), bias=np.array([-0.5 * b, 0.5 * b])
            )
            gap = self.certificate.gap
            waited = 0 if gap < 0.9 * best else waited + 1
            best = min(best, gap)
            go_on = self.tell(self.certificate.primal, self.certificate.dual)
            if self.certificate.converged(self.tol):
                return "converged"
            if not go_on:
                return self.halted()
            if self.iterations >= limit:
                return "iterations"
            if waited > STALLED:
                return "stalled"
            most = min(limit - self.iterations, STEPS_AT_ONCE * len(self.used))
            done = int(_steps(self.K, self.y, self.C, self.s, self.F, self.H, most, spread))
            self.iterations += done
            if done < most:
                spread *= 0.1
            self._refresh()

    def solution(self, stopped: Stopped) -> Solution:
        """The present point with its certificate."""
        c = self.coefficients()
        return self.certified(stopped, self.certificate, c, c)
