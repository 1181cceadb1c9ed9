"""Multinomial kernel logistic regression by Newton's method with conjugate gradients.

With p the softmax of f = K c + b, c^ = C (Y - p) and W the second derivative of the losses, a Newton step (delta, beta)
solves

    delta + W (K delta + 1 beta') = c^ - c,      1'W (K delta + 1 beta') = 1'c^        (the second with a free bias)

that is, for u = K delta, the symmetric positive system (K^-1 + W) u + W 1 beta' = c^ - c.  Conjugate gradients on it,
preconditioned by K (and 1/s for beta), never invert K: with p = K d, the direction d takes part in the recursion.  One
product of K with n k numbers in each iteration serves all classes at once.  The duality gap of an
iterate, 1/2 tr((c - c^)'K (c - c^)), is the squared length of the right-hand side and comes with the first product.
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.problems.certificate import converged
from mercer.problems.multinomial import MultinomialLogistic, softmax
from mercer.solvers.contract import Acceptance, require, variables_of
from mercer.solvers.linear.conjugate_directions import ConjugateDirections, over_all
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.solution import Solution, Stopped

Array = NDArray[np.float64]

NAME = "Newton conjugate gradient"
INNER_ITERATIONS = 500
PATIENCE = 4
SUFFICIENT = 1e-4


def accepts(problem: Any) -> Acceptance:
    """Multinomial logistic problems on any kernel matrix."""
    if isinstance(problem, MultinomialLogistic):
        return Acceptance(True, "smooth losses")
    return Acceptance(False, f"{type(problem).__name__} is not a multinomial logistic problem")


def solve(
    problem: MultinomialLogistic,
    *,
    tol: float = 1e-6,
    start: Array | Solution | None = None,
    monitor: Monitor | None = None,
    max_iter: int = -1,
) -> Solution:
    """Solve to a relative gap of `tol`; `max_iter` bounds the number of Newton steps (-1: no bound).

    `start`: coefficients (n, k) or an earlier solution.
    """
    if not tol > 0:
        raise InvalidInput(f"tol must be positive, got {tol}")
    require(accepts(problem), NAME)
    listener = listening(monitor)
    with listener:
        first = variables_of(start, listener)
        return Newton(problem, tol, first, listener).run(max_iter)


class Newton:
    """The state of one solve: coefficients c (n, k), their values f0 = (K + constant) c and the bias b (k,)."""

    def __init__(self, problem: MultinomialLogistic, tol: float, start: Array | None, monitor: Monitor) -> None:
        self.problem, self.tol, self.monitor = problem, tol, monitor
        self.free = problem.bias == "free"
        shape = (problem.n, problem.k)
        self.c = np.zeros(shape) if start is None else np.array(start, dtype=np.float64)
        if self.c.shape != shape or not np.isfinite(self.c).all():
            raise InvalidInput(f"start must hold finite coefficients of shape {shape}, got {self.c.shape}")
        self.began = time.perf_counter()
        self.steps = self.products = 0
        self.b = np.zeros(problem.k)
        self.f0 = self._times(self.c, exact=True) if self.c.any() else np.zeros(shape)
        diagonal = float(np.mean(np.asarray(problem.gram.diagonal(), dtype=np.float64)))
        self.bias_weight = 1.0 / diagonal if diagonal > 0 else 1.0
        self.exact = True

    def _times(self, V: Array, exact: bool = False) -> Array:
        """(K + constant) V; `exact` computes every value in float64 whatever the precision of the operator."""
        self.products += 1
        gram: Any = self.problem.gram
        if exact and gram.dtype != np.float64 and hasattr(gram, "exact_dot"):
            return self.problem.values(V, gram.exact_dot(None, None, V))
        return self.problem.values(V)

    def _measure(self) -> None:
        """Best bias, right-hand side c^ - c with its product, primal value and gap."""
        p = self.problem
        if self.free:
            self.b = p.best_bias(self.f0, self.b)
        f = self.f0 + self.b
        self.right = p.stationary(f) - self.c
        self.K_right = self._times(self.right, exact=self.exact)
        self.square = max(float(np.vdot(self.right, self.K_right)), 0.0)
        self.gap = 0.5 * self.square
        self.loss = float(p.box @ p.losses(f))
        self.primal = 0.5 * float(np.vdot(self.c, self.f0)) + self.loss

    def _small(self) -> bool:
        """Whether the relative gap is at most `tol`."""
        return converged(self.primal, self.primal - self.gap, self.tol, self.gap)

    def run(self, max_iter: int) -> Solution:
        """Newton steps until convergence, a limit or an interruption."""
        limit = max_iter if max_iter >= 0 else int(np.iinfo(np.int64).max)
        best, waited = np.inf, 0
        while True:
            self._measure()
            if self._small():
                if self.exact:
                    return self.solution("converged")
                self.f0, self.exact = self._times(self.c, exact=True), True
                continue
            waited = 0 if self.gap < 0.5 * best else waited + 1
            best = min(best, self.gap)
            if waited > PATIENCE * 4:
                return self.solution("stalled")
            if self.steps >= limit:
                return self.solution("iterations")
            if not self.monitor.watch(
                self.steps,
                self.primal,
                self.primal - self.gap,
                snapshot=lambda: self.solution("interrupted"),
                products=self.products,
            ):
                return self.solution(self.monitor.stopped or "interrupted")
            if not self._step():
                return self.solution("stalled")

    def _direction(self) -> tuple[Array, Array, Array]:
        """(delta, K delta, beta) by conjugate gradients, the more exact the nearer the optimum."""
        problem, q = self.problem, 1 if self.free else 0
        p = softmax(self.f0 + self.b)
        D, delta, known = np.zeros_like(self.right), np.zeros_like(self.right), [self.K_right]

        def product(P: Array) -> Array:
            np.multiply(D, search.ratio, out=D)
            np.add(D, search.R[: problem.n], out=D)
            bent = problem.curvature(p, P[: problem.n] + P[problem.n :].sum(axis=0))
            return np.vstack([D + bent, bent.sum(axis=0, keepdims=True)[:q]])

        def precondition(R: Array) -> Array:
            values = known.pop() if known else self._times(R[: problem.n])
            return np.vstack([values, R[problem.n :] / self.bias_weight])

        # The rest of sum_i c^_i is sum_i c_i.
        R = np.vstack([self.right, (self.right + self.c).sum(axis=0, keepdims=True)[:q]])
        X = np.zeros_like(R)
        search = ConjugateDirections(product, R, X, precondition, over_all)
        target = min(0.1, np.sqrt(self.gap / max(abs(self.primal), 1e-300))) ** 2 * search.energy
        for _ in range(INNER_ITERATIONS):
            search.step()
            delta += search.length * D
            if not search.curvature > 0 or search.energy <= target or not self.monitor.go_on():
                break
        return delta, X[: problem.n], X[problem.n :].sum(axis=0)

    def _step(self) -> bool:
        """One Newton step with a line search on the primal; whether it lowered it."""
        delta, K_delta, beta = self._direction()
        p = self.problem
        # d/dt of P at 0: delta'K(c - c^) - beta'sum c^.
        slope = -float(np.vdot(delta, self.K_right)) - float(beta @ (self.right + self.c).sum(axis=0))
        straight, bent = float(np.vdot(self.c, K_delta)), float(np.vdot(delta, K_delta))
        change = K_delta + beta
        f = self.f0 + self.b
        rate = 1.0
        while rate > 1e-12:
            loss = float(p.box @ p.losses(f + rate * change))
            gain = rate * straight + 0.5 * rate * rate * bent + loss - self.loss
            if gain <= SUFFICIENT * rate * slope or (rate == 1.0 and abs(gain) <= 1e-13 * abs(self.primal)):
                break
            rate *= 0.5
        else:
            return False
        self.c = self.c + rate * delta
        self.f0 = self.f0 + rate * K_delta
        self.b = self.b + rate * beta
        self.exact = False
        self.steps += 1
        return True

    def solution(self, stopped: Stopped) -> Solution:
        """The present point with its certificate."""
        bias = self.c.sum(axis=0) if self.problem.bias == "penalised" else self.b
        return Solution(
            self.c.copy(),
            np.array(bias),
            self.c.copy(),
            self.primal,
            self.primal - self.gap,
            self.gap,
            self.steps,
            stopped,
            time.perf_counter() - self.began,
            NAME,
            history=tuple(self.monitor.history),
            details={"f0": self.f0 - self.problem.constant * self.c.sum(axis=0), "products": self.products},
        )
