"""Newton's method with conjugate gradients for one latent function: orders from pairs, ranks, cumulative models.

At coefficients c, f = K c, slope g and second derivative H of the losses at f, a step delta solves

    delta + H K delta = -g - c

by conjugate gradients (`mercer.solvers.primal_newton`).  Each iteration costs a product with K and one with H, which is
a sweep over the sorted points where the losses are those of pairs (`mercer.problems.rank_sweeps`): for linear and
low-rank kernels O(n log n), and no pair is ever formed.

Hinges are approached from l_h, h falling to zero: the width is divided once the smooth problem is solved better than
the width is worth.  The certificate is always that of the problem itself (`mercer.problems.latent`).
"""

from typing import Any, Unpack

from mercer.arrays import Vector
from mercer.problems.certificate import Certificate, converged
from mercer.problems.latent import LatentPoint, LatentProblem
from mercer.solvers.contract import Acceptance, Limits, Start
from mercer.solvers.iteration import solved
from mercer.solvers.monitor import Monitor
from mercer.solvers.primal_newton import SHORTEST, PrimalNewton
from mercer.solvers.solution import Solution, Stopped

NAME = "latent Newton"
WIDTH = 1.0  # of the quadratic piece at first
FLAT = 0.1  # share of its first slope that the problem may keep along a step
NARROWER = 0.2  # the factor of one change of the width
LEAST_WIDTH = 1e-13
SOLVED = 0.5  # the width falls once the smooth problem has this share of the gap that the width leaves


def accepts(problem: Any) -> Acceptance:
    """Problems of one latent function on any kernel matrix."""
    if isinstance(problem, LatentProblem):
        return Acceptance(True, "losses of one latent function")
    return Acceptance(False, f"{type(problem).__name__} is not a problem of one latent function")


def solve(problem: LatentProblem, *, tol: float = 1e-3, **limits: Unpack[Limits]) -> Solution:
    """Solve to a relative gap of `tol`; `max_iter` bounds the number of Newton steps (-1: no bound).

    `start`: coefficients (n,) or an earlier solution, whose width is taken up with it.
    """
    return solved(Newton, problem, accepts(problem), tol=tol, **limits)


class Newton(PrimalNewton):
    """Coefficients c (n,), their values f = K c, and the width of the quadratic piece."""

    name = NAME
    inner_iterations = 1000
    patience = 30

    def __init__(self, problem: LatentProblem, tol: float, start: Start, monitor: Monitor) -> None:
        super().__init__(problem, (problem.n,), tol, start, monitor)
        self.width = width_of(self.given)
        self.kept: Vector | None = None  # coefficients to show in the place of c

    def measure(self) -> None:
        """Losses, right-hand side c^ - c with its product, primal value and gap."""
        self._look(self.exact)
        self.smooth_gap = 0.5 * max(float(self.right @ self.K_right), 0.0)
        self.gap = self.smooth_gap + self.point.remainder
        self.primal = 0.5 * float(self.c @ self.f) + self.point.loss

    def _look(self, exact: bool) -> None:
        """Losses at f, and the right-hand side with its product."""
        self.point: LatentPoint = self.problem.at(self.f, self.width)
        self.right = -self.point.slope - self.c
        self.K_right = self.times(self.right, exact=exact)

    def facts(self) -> dict[str, Any]:
        """Also the width."""
        return {**super().facts(), "width": self.width}

    def step(self) -> bool:
        """One Newton step with a line search on the smooth problem; whether it lowered it."""
        if self.problem.widths and self.smooth_gap <= SOLVED * self.point.remainder and self.width > LEAST_WIDTH:
            self.width *= NARROWER
            self.f = self.times(self.c)  # sums of steps drift, and the narrower the piece the more it shows
            self._look(exact=False)
        delta, change = self.direction(self.right.copy(), self.K_right, self.point.curvature)
        rate = self._rate_by_slope(delta, change) if self.problem.widths else self._rate_by_value(delta, change)
        if rate == 0.0:
            return False
        self.move(rate, delta, change)
        return True

    def _rate_by_value(self, delta: Vector, change: Vector) -> float:
        """A rate that lowers the smooth problem enough; 0 if none does."""
        return self.falling_rate(
            -float(delta @ self.K_right), float(self.c @ change), float(delta @ change),
            lambda rate: self.problem.value(self.f + rate * change, self.width) - self.point.smooth,
        )  # fmt: skip

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

    def settle(self) -> None:
        """Take c^, which is zero wherever no loss has a slope, in the place of c if it is as good as was asked for."""
        there = self.problem.at(self.f + self.K_right, self.width)
        c = self.c + self.right
        primal, dual = 0.5 * float(c @ (self.f + self.K_right)) + there.loss, self.primal - self.gap
        if primal >= dual and converged(primal, dual, self.tol):
            self.kept, self.f, self.point = c, self.f + self.K_right, there
            self.primal, self.gap = primal, primal - dual

    def solution(self, stopped: Stopped) -> Solution:
        """The present point with its certificate."""
        thresholds = {"thresholds": self.point.thresholds}
        certificate = Certificate(self.primal, self.primal - self.gap, self.gap, multipliers=thresholds)
        shown = self.c.copy() if self.kept is None else self.kept
        return self.certified(stopped, certificate, shown, self.c.copy(), f=self.f.copy(), **self.facts())


def width_of(given: Start) -> float:
    """The width of the quadratic piece that a solution ended with."""
    return float(given.details.get("width", WIDTH)) if isinstance(given, Solution) else WIDTH
