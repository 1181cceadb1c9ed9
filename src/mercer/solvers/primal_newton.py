"""Newton's method with conjugate gradients on a primal of smooth losses, whatever the outputs are.

At coefficients c, values f = K c and second derivative H of the losses at f, a step delta solves

    delta + H K delta = c^ - c,        that is, for u = K delta,  (K^-1 + H) u = c^ - c,

with c^ minus the slope of the losses: symmetric and positive.  Conjugate gradients preconditioned by K never invert it,
for the residuals whose combination is delta are known (`direction`).  Free biases are further rows of the system, on
which K has no part.  The duality gap of an iterate holds 1/2 (c - c^)'K (c - c^), the squared length of the right-hand
side, which comes with the first product.

c and f are (n,) or (n, k); what the losses are, subclasses say.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.arrays import Array
from mercer.problems.certificate import converged
from mercer.solvers.contract import Start, starting_coefficients
from mercer.solvers.iteration import Iteration
from mercer.solvers.linear.conjugate_directions import ConjugateDirections, over_all
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Stopped
from mercer.solvers.verification import exact_product

SUFFICIENT = 1e-4  # share of the decrease that the slope promises
SHORTEST = 1e-12  # rate of a step
ROUNDING = 1e-13  # a change of the objective by this share is none


class PrimalNewton(Iteration):
    """The state of one solve: coefficients c, their values f, primal value and gap of the last measurement."""

    inner_iterations = 0
    patience = 0
    """Measurements without half the gap."""
    bias_weight = 1.0
    """Of the rows of biases in the preconditioner."""

    def __init__(self, problem: Any, shape: tuple[int, ...], tol: float, start: Start, monitor: Monitor) -> None:
        super().__init__(problem, tol, start, monitor)
        self.c = np.zeros(shape) if self.initial is None else starting_coefficients(self.initial, shape)
        self.products = 0
        self.f = self.times(self.c, exact=True) if self.c.any() else np.zeros(shape)
        self.exact = True
        self.primal = self.gap = np.inf

    def times(self, V: Array, exact: bool = False) -> Array:
        """K V; `exact` computes every value in float64 whatever the precision of the operator."""
        self.products += 1
        gram = self.problem.gram
        return exact_product(gram, V) if exact else np.asarray(gram.dot(V), dtype=np.float64)

    @abstractmethod
    def measure(self) -> None:
        """`right` = c^ - c with its product `K_right`, primal value and gap."""

    @abstractmethod
    def step(self) -> bool:
        """One Newton step with a line search; whether it lowered the objective."""

    def settle(self) -> None:
        """What is left to do at a point that is good enough."""

    def facts(self) -> dict[str, Any]:
        """What the monitor hears besides the values."""
        return {"products": self.products}

    def run(self, limit: int) -> Stopped:
        """Newton steps until convergence, a limit or an interruption."""
        best, waited = np.inf, 0
        while True:
            self.measure()
            if converged(self.primal, self.primal - self.gap, self.tol, self.gap):
                if self.exact:
                    self.settle()
                    return "converged"
                self.f, self.exact = self.times(self.c, exact=True), True
                continue
            waited = 0 if self.gap < 0.5 * best else waited + 1
            best = min(best, self.gap)
            if waited > self.patience:
                return "stalled"
            if self.iterations >= limit:
                return "iterations"
            if not self.tell(self.primal, self.primal - self.gap):
                return self.halted()
            if not self.step():
                return "stalled"

    def direction(self, R: Array, K_right: Array, bend: Callable[[Array], Array]) -> tuple[Array, Array]:
        """The step delta, and K delta with the steps of the biases below it: the more exact the nearer the optimum.

        R has c^ - c in its first n rows and what the biases miss in the others; `bend` applies the second derivative.
        """
        n, known = len(self.c), [K_right]
        D, delta, X = np.zeros_like(self.c), np.zeros_like(self.c), np.zeros_like(R)

        def product(P: Array) -> Array:
            np.multiply(D, search.ratio, out=D)
            np.add(D, search.R[:n], out=D)
            bent = bend(P)
            bent[:n] += D
            return bent

        def precondition(R: Array) -> Array:
            values = known.pop() if known else self.times(R[:n])
            return np.concatenate([values, R[n:] / self.bias_weight])

        search = ConjugateDirections(product, R, X, precondition, over_all)
        target = min(0.1, np.sqrt(self.gap / max(abs(self.primal), 1e-300))) ** 2 * search.energy
        for _ in range(self.inner_iterations):
            search.step()
            delta += search.length * D
            if not search.curvature > 0 or search.energy <= target or not self.monitor.go_on():
                break
        return delta, X

    def falling_rate(self, slope: float, straight: float, bent: float, gain: Callable[[float], float]) -> float:
        """The first of 1, 1/2, 1/4, ... that lowers the objective enough; 0 if none does.

        The objective begins with `slope` along a step; its square changes by rate straight + rate^2 bent / 2, and its
        losses by gain(rate).
        """
        rate = 1.0
        while rate > SHORTEST:
            change = rate * straight + 0.5 * rate * rate * bent + gain(rate)
            if change <= SUFFICIENT * rate * slope or (rate == 1.0 and abs(change) <= ROUNDING * abs(self.primal)):
                return rate
            rate *= 0.5
        return 0.0

    def move(self, rate: float, delta: Array, K_delta: Array) -> None:
        """Take this share of a step."""
        self.c, self.f = self.c + rate * delta, self.f + rate * K_delta
        self.exact = False
        self.iterations += 1
