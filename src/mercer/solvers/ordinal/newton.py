"""Newton's method with conjugate gradients for one latent function: orders from pairs, ranks, cumulative models.

At coefficients c, f = K c, slope g and second derivative H of the losses at f, a step delta solves

    delta + H K delta = -g - c,        that is, for u = K delta,  (K^-1 + H) u = -g - c,

symmetric and positive; conjugate gradients preconditioned by K never invert it.  Each iteration costs a product with K
and one with H, which is a sweep over the sorted points where the losses are those of pairs
(`mercer.problems.rank_sweeps`): for linear and low-rank kernels O(n log n), and no pair is ever formed.

Hinges are approached from l_h, h falling to zero: the width is divided once the smooth problem is solved better than
the width is worth.  The certificate is always that of the problem itself (`mercer.problems.latent`).
"""

import time
from typing import Any

import numpy as np

from mercer.errors import InvalidInput
from mercer.problems.certificate import converged
from mercer.problems.latent import LatentProblem, Vector
from mercer.solvers.contract import Acceptance, require
from mercer.solvers.linear.conjugate_directions import ConjugateDirections, over_all
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.solution import Solution, Stopped

NAME = "latent Newton"
INNER_ITERATIONS = 1000
SUFFICIENT = 1e-4  # share of the decrease that the slope promises
FLAT = 0.1  # share of its first slope that the problem may keep along a step
SHORTEST = 1e-12  # rate of a step
PATIENCE = 30  # measurements without half the gap
NARROWER = 0.2  # the factor of one change of the width
LEAST_WIDTH = 1e-13
SOLVED = 0.5  # the width falls once the smooth problem has this share of the gap that the width leaves


def accepts(problem: Any) -> Acceptance:
    """Problems of one latent function on any kernel matrix."""
    if isinstance(problem, LatentProblem):
        return Acceptance(True, "losses of one latent function")
    return Acceptance(False, f"{type(problem).__name__} is not a problem of one latent function")


def solve(
    problem: LatentProblem,
    *,
    tol: float = 1e-3,
    start: Vector | Solution | None = None,
    monitor: Monitor | None = None,
    max_iter: int = -1,
) -> Solution:
    """Solve to a relative gap of `tol`; `max_iter` bounds the number of Newton steps (-1: no bound).

    `start`: coefficients (n,) or an earlier solution, whose width is taken up with it.
    """
    if not tol > 0:
        raise InvalidInput(f"tol must be positive, got {tol}")
    require(accepts(problem), NAME)
    listener = listening(monitor)
    with listener:
        start = listener.resume() if start is None else start
        width = float(start.details.get("width", 1.0)) if isinstance(start, Solution) else 1.0
        first = start.variables if isinstance(start, Solution) else start
        return Newton(problem, tol, first, width, listener).run(max_iter)


class Newton:
    """The state of one solve: coefficients c (n,), their values f = K c, and the width of the quadratic piece."""

    def __init__(
        self, problem: LatentProblem, tol: float, start: Vector | None, width: float, monitor: Monitor
    ) -> None:
        self.problem, self.tol, self.monitor, self.width = problem, tol, monitor, width
        self.c = np.zeros(problem.n) if start is None else np.array(start, dtype=np.float64)
        if self.c.shape != (problem.n,) or not np.isfinite(self.c).all():
            raise InvalidInput(f"start must hold {problem.n} finite coefficients, got an array of shape {self.c.shape}")
        self.began = time.perf_counter()
        self.steps = self.products = 0
        self.f = self._times(self.c, exact=True) if self.c.any() else np.zeros(problem.n)
        self.exact = True
        self.kept: Vector | None = None  # coefficients to show in the place of c

    def _times(self, v: Vector, exact: bool = False) -> Vector:
        """K v; `exact` computes every value in float64 whatever the precision of the operator."""
        self.products += 1
        gram: Any = self.problem.gram
        if exact and gram.dtype != np.float64 and hasattr(gram, "exact_dot"):
            return np.asarray(gram.exact_dot(None, None, v))
        return np.asarray(gram.dot(v), dtype=np.float64)

    def _measure(self) -> None:
        """Losses, right-hand side c^ - c with its product, primal value and gap."""
        self.point = self.problem.at(self.f, self.width)
        self.right = -self.point.slope - self.c
        self.K_right = self._times(self.right, exact=self.exact)
        self.smooth_gap = 0.5 * max(float(self.right @ self.K_right), 0.0)
        self.gap = self.smooth_gap + self.point.remainder
        self.square = 0.5 * float(self.c @ self.f)
        self.primal = self.square + self.point.loss

    def run(self, max_iter: int) -> Solution:
        """Newton steps until convergence, a limit or an interruption."""
        limit = max_iter if max_iter >= 0 else int(np.iinfo(np.int64).max)
        best, waited = np.inf, 0
        while True:
            self._measure()
            if converged(self.primal, self.primal - self.gap, self.tol, self.gap):
                if self.exact:
                    self._prefer_dual()
                    return self.solution("converged")
                self.f, self.exact = self._times(self.c, exact=True), True
                continue
            waited = 0 if self.gap < 0.5 * best else waited + 1
            best = min(best, self.gap)
            if waited > PATIENCE:
                return self.solution("stalled")
            if self.steps >= limit:
                return self.solution("iterations")
            if not self.monitor.watch(
                self.steps,
                self.primal,
                self.primal - self.gap,
                snapshot=lambda: self.solution("interrupted"),
                products=self.products,
                width=self.width,
            ):
                return self.solution(self.monitor.stopped or "interrupted")
            if self.problem.widths and self.smooth_gap <= SOLVED * self.point.remainder and self.width > LEAST_WIDTH:
                self.width *= NARROWER
                self.f = self._times(self.c)  # sums of steps drift, and the narrower the piece the more it shows
                self.point = self.problem.at(self.f, self.width)
                self.right = -self.point.slope - self.c
                self.K_right = self._times(self.right)
            if not self._step():
                return self.solution("stalled")

    def _direction(self) -> tuple[Vector, Vector]:
        """(delta, K delta) by conjugate gradients, the more exact the nearer the optimum."""
        direction, delta, known = np.zeros(self.problem.n), np.zeros(self.problem.n), [self.K_right]

        def product(p: Vector) -> Vector:
            np.multiply(direction, search.ratio, out=direction)
            np.add(direction, search.R, out=direction)
            return direction + self.point.curvature(p)

        def precondition(r: Vector) -> Vector:
            return known.pop() if known else self._times(r)

        u = np.zeros(self.problem.n)
        search = ConjugateDirections(product, self.right.copy(), u, precondition, over_all)
        target = min(0.1, np.sqrt(self.gap / max(abs(self.primal), 1e-300))) ** 2 * search.energy
        for _ in range(INNER_ITERATIONS):
            search.step()
            delta += search.length * direction
            if not search.curvature > 0 or search.energy <= target or not self.monitor.go_on():
                break
        return delta, u

    def _step(self) -> bool:
        """One Newton step with a line search on the smooth problem; whether it lowered it."""
        delta, change = self._direction()
        rate = self._rate_by_slope(delta, change) if self.problem.widths else self._rate_by_value(delta, change)
        if rate == 0.0:
            return False
        self.c = self.c + rate * delta
        self.f = self.f + rate * change
        self.exact = False
        self.steps += 1
        return True

    def _rate_by_value(self, delta: Vector, change: Vector) -> float:
        """The first of 1, 1/2, 1/4, ... that lowers the smooth problem enough; 0 if none does."""
        slope = -float(delta @ self.K_right)
        straight, bent = float(self.c @ change), float(delta @ change)
        rate = 1.0
        while rate > SHORTEST:
            loss = self.problem.value(self.f + rate * change, self.width)
            gain = rate * straight + 0.5 * rate * rate * bent + loss - self.point.smooth
            if gain <= SUFFICIENT * rate * slope or (rate == 1.0 and abs(gain) <= 1e-13 * abs(self.primal)):
                return rate
            rate *= 0.5
        return 0.0

    def _rate_by_slope(self, delta: Vector, change: Vector) -> float:
        """A rate in (0, 1] at which the smooth problem still falls, or hardly rises, along the step; 0 if none does.

        On narrow pieces the decrease is lost among the digits of the losses, the slope is not.  It increases with the
        rate, so that its zero is found by false position (the Illinois rule halves the side that stays).
        """
        straight, bent = float(self.c @ change), float(delta @ change)

        def slope(rate: float) -> float:
            ahead = self.problem.at(self.f + rate * change, self.width)
            return straight + rate * bent + float(ahead.slope @ change)

        low, below, high, above = 0.0, -float(delta @ self.K_right), 1.0, slope(1.0)
        enough = FLAT * abs(below)
        if above <= enough or not below < 0.0:
            return 1.0 if below < 0.0 else 0.0
        while high - low > SHORTEST:
            rate = high - above * (high - low) / (above - below)
            found = slope(rate)
            if abs(found) <= enough:
                return rate
            if found < 0.0:
                low, below, above = rate, found, 0.5 * above
            else:
                high, above, below = rate, found, 0.5 * below
        return low

    def _prefer_dual(self) -> None:
        """Take c^, which is zero wherever no loss has a slope, in the place of c if it is as good as was asked for."""
        there = self.problem.at(self.f + self.K_right, self.width)
        c = self.c + self.right
        primal, dual = 0.5 * float(c @ (self.f + self.K_right)) + there.loss, self.primal - self.gap
        if primal >= dual and converged(primal, dual, self.tol):
            self.kept, self.f, self.point = c, self.f + self.K_right, there
            self.primal, self.gap = primal, primal - dual

    def solution(self, stopped: Stopped) -> Solution:
        """The present point with its certificate."""
        return Solution(
            self.c.copy() if self.kept is None else self.kept,
            0.0,
            self.c.copy(),
            self.primal,
            self.primal - self.gap,
            self.gap,
            self.steps,
            stopped,
            time.perf_counter() - self.began,
            NAME,
            multipliers={"thresholds": self.point.thresholds},
            history=tuple(self.monitor.history),
            details={"width": self.width, "products": self.products, "f": self.f.copy()},
        )
