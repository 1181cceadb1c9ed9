"""Sequential minimal optimisation for least squares: two coefficients at a time (Keerthi and Shevade 2003).

The dual max y'c - 1/2 c'Hc with 1'c = 0 has the gradient g = y - Hc; at the optimum all g_i equal the bias.  Take

    i = argmax g,  j = argmin g,     t = (g_i - g_j) / (H_ii + H_jj - 2 H_ij),
    c_i += t,  c_j -= t,             g -= t (H_i - H_j).

Without bias (or with a penalised one) there is no constraint and one coefficient moves alone: greedy Gauss-Seidel,
i = argmax g_i^2 / H_ii, t = g_i / H_ii.  Memory O(n) and one or two rows of the matrix per step; the number of steps
grows strongly with C, and conjugate gradients need far fewer passes (Hamers 2004, section 3.5.6).

The gap 1/2 sum (g_i - b)^2 / R_ii, b the weighted mean of g, is looked at every n steps; before it is believed, g is
computed anew from c.
"""

from typing import Any, Unpack

import numpy as np

from mercer.arrays import Array
from mercer.compiled import loop
from mercer.problems.certificate import Certificate
from mercer.problems.least_squares import LeastSquares, certify
from mercer.solvers.contract import Acceptance, Start, require
from mercer.solvers.linear import conjugate_gradient
from mercer.solvers.linear.system import LinearIteration, LinearLimits, LinearSystem
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution, Stopped


def accepts(problem: Any) -> Acceptance:
    """Least-squares problems without a basis."""
    answer = conjugate_gradient.accepts(problem)
    if answer and problem.columns.shape[1] > (1 if problem.bias == "free" else 0):
        return Acceptance(False, "pair steps keep one equality only: drop basis, or use another least-squares solver")
    return answer


def solve(
    problem: LeastSquares,
    *,
    tol: float | None = 1e-8,
    start: Start = None,
    monitor: Monitor | None = None,
    iterations: int = 10_000_000,
    stored: bool | None = None,
) -> Solution:
    """Step until the relative duality gap of all outputs together is at most `tol`.

    `iterations` limits the steps of each output.  `stored`: keep H (n, n), else fetch rows as they are needed; by
    default it is kept up to n = 8,000.  details["steps"] (k,) are the pair steps of each output.
    """
    require(accepts(problem))
    system = LinearSystem(problem)
    stored = system.n <= 8000 if stored is None else stored
    tol = 1e-8 if tol is None else tol
    return _Run(system, stored, tol=tol, start=start, monitor=monitor, iterations=iterations).solved()


class _Run(LinearIteration):
    """Coefficients c (n, k) and gradients g = y - Hc (n, k)."""

    name = "least_squares_smo"

    def __init__(self, system: LinearSystem, stored: bool, **limits: Unpack[LinearLimits]) -> None:
        super().__init__(system, **limits)
        self.paired = system.q == 1
        self.diagonal = system.diagonal()
        self.H = system.matrix() if stored else None
        Z = system.start(self.given)
        c, _ = system.eliminate(Z) if Z[:, : system.q].any() or system.q == 0 else (Z[:, system.q :], None)
        self.c = np.asfortranarray(c - c.mean(axis=0) if self.paired else c)
        self.steps = np.zeros(c.shape[1], dtype=np.int64)
        self.refresh()

    def refresh(self) -> None:
        """Compute g from its definition."""
        product = self.system.dot(np.ascontiguousarray(self.c)) if self.c.any() else 0.0
        self.g = np.asfortranarray(self.system.Y - product)

    def certificate(self) -> Certificate:
        """Certificate from the present g: O(n k)."""
        system = self.system
        f = system.Y - self.g - system.ridge[:, None] * self.c
        return certify(self.c, f, system.Y, system.Phi, system.weights, system.problem.C)

    def run(self, limit: int) -> Stopped:
        """Sweep all outputs in batches of n steps."""
        believed, tol = np.inf, self.tol
        while True:
            certificate = self.certificate()
            go_on = self.tell(certificate.primal, certificate.dual)
            if certificate.relative_gap <= tol:
                self.refresh()
                if self.certificate().relative_gap <= tol:
                    return "converged"
                if certificate.relative_gap >= believed:
                    return "stalled"
                believed = certificate.relative_gap
            if not go_on:
                return self.halted()
            if (self.steps >= limit).all():
                return "iterations"
            # Outputs whose share of the gap is small already are left alone.
            scale = max(abs(certificate.primal), abs(certificate.dual))
            for output in np.flatnonzero(certificate.outputs["gap"] > 0.5 * tol * scale / len(self.steps)):
                done = self._batch(int(output), min(max(self.system.n, 100), limit - int(self.steps[output])))
                self.steps[output] += done
                self.iterations += done

    def solution(self, stopped: Stopped) -> Solution:
        """The present coefficients, certified by a product."""
        c = np.ascontiguousarray(self.c)
        spent = self.spent(stopped, steps=self.steps.copy())
        return self.system.certified(c, self.system.certify(c), self.name, **spent)

    def _batch(self, output: int, steps: int) -> int:
        c, g = self.c[:, output], self.g[:, output]
        if self.H is not None:
            return int((pair_steps if self.paired else single_steps)(self.H, c, g, steps))
        for step in range(steps):
            if not self._fetched_step(c, g):
                return step
        return steps

    def _fetched_step(self, c: Array, g: Array) -> bool:
        """One step with rows computed for it alone."""
        if not self.paired:
            i = int(np.argmax(g**2 / self.diagonal))
            row = self.system.rows(np.array([i], dtype=np.intp))[0]
            t = g[i] / self.diagonal[i]
            c[i] += t
            g -= t * row
            return bool(t != 0)
        i, j = int(np.argmax(g)), int(np.argmin(g))
        if g[i] == g[j]:
            return False
        rows = self.system.rows(np.array([i, j], dtype=np.intp))
        t = (g[i] - g[j]) / (rows[0, i] + rows[1, j] - 2 * rows[0, j])
        c[i] += t
        c[j] -= t
        g -= t * (rows[0] - rows[1])
        return True


@loop
def pair_steps(H: Any, c: Any, g: Any, steps: Any) -> Any:
    """Up to `steps` maximal-violating-pair steps on c and g (n,), in place; returns how many were taken."""
    n = len(g)
    for step in range(steps):
        i = 0
        j = 0
        for p in range(1, n):
            if g[p] > g[i]:
                i = p
            if g[p] < g[j]:
                j = p
        if g[i] == g[j]:
            return step
        t = (g[i] - g[j]) / (H[i, i] + H[j, j] - 2.0 * H[i, j])
        c[i] += t
        c[j] -= t
        first = H[i]
        second = H[j]
        for p in range(n):
            g[p] -= t * (first[p] - second[p])
    return steps


@loop
def single_steps(H: Any, c: Any, g: Any, steps: Any) -> Any:
    """Up to `steps` greedy steps of one coefficient on c and g (n,), in place; returns how many were taken."""
    n = len(g)
    for step in range(steps):
        i = 0
        best = 0.0
        for p in range(n):
            gain = g[p] * g[p] / H[p, p]
            if gain > best:
                best = gain
                i = p
        if best == 0.0:
            return step
        t = g[i] / H[i, i]
        c[i] += t
        row = H[i]
        for p in range(n):
            g[p] -= t * row[p]
    return steps
