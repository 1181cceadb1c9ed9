"""Multinomial kernel logistic regression by Newton's method with conjugate gradients.

With p the softmax of f = K c + b, c^ = C (Y - p) and W the second derivative of the losses, a Newton step (delta, beta)
solves

    delta + W (K delta + 1 beta') = c^ - c,      1'W (K delta + 1 beta') = 1'c^        (the second with a free bias)

that is, for u = K delta, the symmetric positive system (K^-1 + W) u + W 1 beta' = c^ - c, which conjugate gradients
solve preconditioned by K, and 1/s for beta (`mercer.solvers.primal_newton`).  One product of K with n k numbers in each
iteration serves all classes at once.  The duality gap of an iterate is 1/2 tr((c - c^)'K (c - c^)).
"""

from typing import Any, Unpack

import numpy as np

from mercer.arrays import Array
from mercer.problems.certificate import Certificate
from mercer.problems.multinomial import MultinomialLogistic, softmax
from mercer.solvers.contract import Acceptance, Limits, Start
from mercer.solvers.iteration import solved
from mercer.solvers.monitor import Monitor
from mercer.solvers.primal_newton import PrimalNewton
from mercer.solvers.solution import Solution, Stopped


def accepts(problem: Any) -> Acceptance:
    """Multinomial logistic problems on any kernel matrix."""
    if isinstance(problem, MultinomialLogistic):
        return Acceptance(True, "smooth losses")
    return Acceptance(False, f"{type(problem).__name__} is not a multinomial logistic problem")


def solve(problem: MultinomialLogistic, *, tol: float = 1e-6, **limits: Unpack[Limits]) -> Solution:
    """Solve to a relative gap of `tol`; `max_iter` bounds the number of Newton steps (-1: no bound).

    `start`: coefficients (n, k) or an earlier solution.
    """
    return solved(Newton, problem, accepts(problem), tol=tol, **limits)


class Newton(PrimalNewton):
    """Coefficients c (n, k), their values f = (K + constant) c and the bias b (k,)."""

    name = "Newton conjugate gradient"
    inner_iterations = 500
    patience = 16

    def __init__(self, problem: MultinomialLogistic, tol: float, start: Start, monitor: Monitor) -> None:
        super().__init__(problem, (problem.n, problem.k), tol, start, monitor)
        self.free = problem.bias == "free"
        self.b = np.zeros(problem.k)
        diagonal = float(np.mean(np.asarray(problem.gram.diagonal(), dtype=np.float64)))
        self.bias_weight = 1.0 / diagonal if diagonal > 0 else 1.0

    def times(self, V: Array, exact: bool = False) -> Array:
        """(K + constant) V."""
        return np.asarray(self.problem.values(V, super().times(V, exact)))

    def measure(self) -> None:
        """Best bias, right-hand side c^ - c with its product, primal value and gap."""
        p = self.problem
        if self.free:
            self.b = p.best_bias(self.f, self.b)
        f = self.f + self.b
        self.right = p.stationary(f) - self.c
        self.K_right = self.times(self.right, exact=self.exact)
        self.gap = 0.5 * max(float(np.vdot(self.right, self.K_right)), 0.0)
        self.loss = float(p.box @ p.losses(f))
        self.primal = 0.5 * float(np.vdot(self.c, self.f)) + self.loss

    def step(self) -> bool:
        """One Newton step with a line search on the primal; whether it lowered it."""
        problem, n, q = self.problem, len(self.c), 1 if self.free else 0
        f = self.f + self.b
        p = softmax(f)

        def bend(P: Array) -> Array:
            bent = problem.curvature(p, P[:n] + P[n:].sum(axis=0))
            return np.vstack([bent, bent.sum(axis=0, keepdims=True)[:q]])

        asked = (self.right + self.c).sum(axis=0)  # sum_i c^_i, of which the rest is sum_i c_i
        delta, X = self.direction(np.vstack([self.right, asked[None][:q]]), self.K_right, bend)
        K_delta, beta = X[:n], X[n:].sum(axis=0)
        # d/dt of P at 0: delta'K(c - c^) - beta'sum c^.
        slope = -float(np.vdot(delta, self.K_right)) - float(beta @ asked)
        straight, bent = float(np.vdot(self.c, K_delta)), float(np.vdot(delta, K_delta))
        change = K_delta + beta
        rate = self.falling_rate(
            slope, straight, bent, lambda rate: float(problem.box @ problem.losses(f + rate * change)) - self.loss
        )
        if rate == 0.0:
            return False
        self.b = self.b + rate * beta
        self.move(rate, delta, K_delta)
        return True

    def solution(self, stopped: Stopped) -> Solution:
        """The present point with its certificate."""
        bias = self.c.sum(axis=0) if self.problem.bias == "penalised" else self.b
        certificate = Certificate(self.primal, self.primal - self.gap, self.gap, np.array(bias))
        f0 = self.f - self.problem.constant * self.c.sum(axis=0)
        return self.certified(stopped, certificate, self.c.copy(), self.c.copy(), f0=f0, products=self.products)
