"""Multi-shift conjugate gradients: every value of C from one Krylov space, at the cost of the hardest one.

With weights scaled out, A = W^1/2 K W^1/2 and s = 1/C, the systems are (A + s I) x = t.  Their Krylov spaces from the
zero start coincide and their residuals stay parallel, r_s = zeta_s r, where r belongs to the smallest shift s_0
(Frommer 2003).  With steps a_l and b_l of the seed and d = s - s_0 >= 0

    zeta_{l+1} = zeta_l zeta_{l-1} a_{l-1} / (a_{l-1} zeta_{l-1} (1 + a_l d) + a_l b_{l-1} (zeta_{l-1} - zeta_l))
    a_s = a_l zeta_{l+1} / zeta_l,     x_s += a_s p_s,
    b_s = b_l (zeta_{l+1} / zeta_l)^2, p_s = zeta_{l+1} r + b_s p_s.

One product with K per step serves all columns and all shifts.  It must begin at zero (residuals are parallel only
then), so there is no warm start; large ridges are done early and are left alone from then on.
"""

from collections.abc import Sequence

import numpy as np

from mercer.arrays import Array
from mercer.errors import InvalidInput
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.contract import Start, require
from mercer.solvers.linear import conjugate_gradient
from mercer.solvers.linear.conjugate_directions import ConjugateDirections
from mercer.solvers.linear.krylov import StoppingRules, relative_norm
from mercer.solvers.linear.system import LinearSystem
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.solution import Solution, Stopped

accepts = conjugate_gradient.accepts


def solve(
    problem: LeastSquares,
    *,
    tol: float | None = 1e-10,
    start: Start = None,
    monitor: Monitor | None = None,
    iterations: int | None = None,
) -> Solution:
    """The path with the problem's own C as its only value; `start` cannot be used and is ignored."""
    del start
    require(accepts(problem))
    return solve_path(problem, [problem.C], tol=tol, monitor=monitor, iterations=iterations)[0]


def solve_path(
    problem: LeastSquares,
    Cs: Sequence[float],
    *,
    tol: float | None = 1e-10,
    residual: float | None = None,
    monitor: Monitor | None = None,
    iterations: int | None = None,
) -> list[Solution]:
    """One Solution for each value in `Cs`, in their order, each to relative gap `tol` or relative `residual`.

    A value whose true gap turns out larger than `tol` is finished by conjugate gradients from where it stands.
    """
    if not len(Cs) or not all(0 < C < np.inf for C in Cs):
        raise InvalidInput(f"Cs must be positive and finite, got {list(Cs)}")
    problems = [problem.with_C(C) for C in Cs]
    systems = [LinearSystem(p) for p in problems]
    family = _Family(systems, tol, residual)
    with listening(monitor) as watch:
        stopped = family.run(systems[0].limit(iterations), watch)
        width = systems[0].T.shape[1]
        products = _kernel_products(systems[0], np.hstack(family.solutions()))
        solutions = []
        for j, (system, Z) in enumerate(zip(systems, family.solutions(), strict=True)):
            HZ = products[:, j * width : (j + 1) * width] + system.ridge[:, None] * Z
            certificate = system.certificate(Z, system.T - HZ)
            ended: Stopped = "converged" if family.done[j] else stopped
            if ended == "converged" and tol is not None and certificate.relative_gap > tol:
                solutions.append(conjugate_gradient.solve(problems[j], tol=tol, start=system.expand(Z), monitor=watch))
                continue
            system.passes = systems[0].passes
            details = {"true_residual": relative_norm(system.T - HZ, system.T)}
            work = {"iterations": int(family.steps[j]), "stopped": ended, "monitor": watch, "details": details}
            solutions.append(system.solution(Z, certificate, "multishift", **work))
    return solutions


def _kernel_products(system: LinearSystem, V: Array) -> Array:
    """K V (n, m), without R, in whatever form the system gives K."""
    return system.dot(V) - system.ridge[:, None] * V


class _Family:
    """The seed's search (n, m) and shifted iterates (S, n, m); scalars of the recurrences are (S, m)."""

    def __init__(self, systems: list[LinearSystem], tol: float | None, residual: float | None) -> None:
        seed = int(np.argmin([s.ridge.max() for s in systems]))
        self.systems, self.seed = systems, systems[seed]
        self.rules = StoppingRules(tol, residual)
        self.root = np.sqrt(self.seed.weights)[:, None]
        shifts = np.array([1.0 / s.problem.C for s in systems])
        self.shift = shifts[seed]
        self.delta = (shifts - self.shift)[:, None]
        S, (n, m) = len(systems), self.seed.T.shape
        self.search = ConjugateDirections(self._product, self.root * self.seed.T)
        self.first = np.sqrt(self.search.energy)
        self.X = np.zeros((S, n, m))
        self.PS = np.repeat(self.search.R[None], S, axis=0)
        self.zeta, self.zeta_before = np.ones((S, m)), np.ones((S, m))
        self.a_before, self.b_before = np.ones(m), np.zeros(m)
        self.done = np.zeros(S, dtype=bool)
        self.steps = np.zeros(S, dtype=np.intp)
        self.iteration = 0

    def solutions(self) -> list[Array]:
        """Z (n, m) of every shift, in the scale of the problem."""
        return [self.root * x for x in self.X]

    def run(self, limit: int, monitor: Monitor) -> Stopped:
        """Step until every shift is done."""
        while True:
            totals = self._check()
            if not monitor.watch(self.iteration, *totals, shifts_left=int((~self.done).sum())):
                return "converged" if self.done.all() else monitor.stopped or "interrupted"
            if self.done.all():
                return "converged"
            if self.iteration >= limit:
                return "iterations"
            self._step()

    def _check(self) -> tuple[float, float]:
        """Mark the shifts that are done; return primal and dual of the last one that is not."""
        totals = (np.nan, np.nan)
        for j in np.flatnonzero(~self.done):
            system = self.systems[j]
            residual = self.zeta[j] * self.search.R
            certificate = system.certificate(self.root * self.X[j], residual / self.root)
            totals = certificate.primal, certificate.dual
            small = np.linalg.norm(residual, axis=0) <= (self.rules.residual or 1e-16) * self.first
            if self.rules.gap_closed(certificate) or small.all():
                self.done[j] = True
        return totals

    def _product(self, V: Array) -> Array:
        """(W^1/2 K W^1/2 + s_0) V."""
        return np.asarray(self.root * _kernel_products(self.seed, self.root * V) + self.shift * V)

    def _step(self) -> None:
        self.search.step()
        a, b = self.search.length, self.search.ratio
        live = np.flatnonzero(~self.done)
        zeta, before, delta = self.zeta[live], self.zeta_before[live], self.delta[live]
        bottom = self.a_before * before * (1 + a * delta) + a * self.b_before * (before - zeta)
        after = np.divide(zeta * before * self.a_before, bottom, out=np.zeros_like(zeta), where=bottom != 0)
        ratio = np.divide(after, zeta, out=np.zeros_like(zeta), where=zeta != 0)
        self.X[live] += (a * ratio)[:, None, :] * self.PS[live]
        self.PS[live] = after[:, None, :] * self.search.R + (b * ratio**2)[:, None, :] * self.PS[live]
        self.zeta_before[live], self.zeta[live] = zeta, after
        self.a_before, self.b_before = a, b
        self.iteration += 1
        self.steps[live] += 1
