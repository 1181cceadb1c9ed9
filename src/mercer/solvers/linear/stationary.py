"""Stationary iterations on H Z = T: Jacobi, Gauss-Seidel, SOR, SSOR and their block forms.

With H cut into p x p blocks, all columns of T in the same sweep (one consultation of H; Hamers 2004, section 3.4),

    SOR     Z_i <- Z_i + w H_ii^-1 (T_i - sum_j H_ij Z_j)      for i = 1 .. p, each using what is already new
    SSOR    the same sweep forward, then backward i = p .. 1
    Jacobi  the same with the old Z throughout (damped where w < 1).

w = 1 is Gauss-Seidel; block size 1 the classical methods; one block a direct solve.  For symmetric positive definite
H, SOR and SSOR converge exactly for 0 < w < 2, at the rate of the spectral radius of the iteration matrix
(D + wL)^-1 ((1 - w)D - wU), H = L + D + U (equation 3.7, sign corrected).  Jacobi converges only where
rho(I - D^-1 H) < 1, which kernel matrices rarely satisfy: divergence is detected and reported.

The stopping rule of the family is the increment, max |Z - Z before| < `increment`; it costs nothing but claims too
much where the rate is slow, so the duality gap is computed as well, at sweeps spaced further and further apart.
`passes` counts consultations of H: SSOR reads it twice per iteration, the turn reusing the last block.
"""

from typing import Any, Literal, Unpack

import numpy as np

from mercer import dense
from mercer.arrays import Array
from mercer.compiled import loop
from mercer.errors import InvalidInput
from mercer.problems.certificate import Certificate
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.contract import Start, require
from mercer.solvers.linear import conjugate_gradient
from mercer.solvers.linear.acceleration import Anchor, GravesMorris, Mode
from mercer.solvers.linear.preconditioners import factored_blocks
from mercer.solvers.linear.system import LinearIteration, LinearLimits, LinearSystem
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution, Stopped

Method = Literal["jacobi", "sor", "ssor"]


accepts = conjugate_gradient.accepts


def solve(
    problem: LeastSquares,
    *,
    tol: float | None = 1e-8,
    start: Start = None,
    monitor: Monitor | None = None,
    method: Method = "ssor",
    omega: float = 1.0,
    block: int = 1,
    acceleration: Mode = "restart",
    anchor: Anchor = "corrected",
    increment: float | None = None,
    iterations: int = 100_000,
    stored: bool | None = None,
) -> Solution:
    """Sweep until the relative duality gap is at most `tol` or the increment rule holds, whichever is asked first.

    `block` is the block size.  `stored`: keep H (n, n) in memory, else compute its rows anew in every sweep; by
    default it is kept up to n = 8,000 where the budget of the kernel matrix allows.  A diverging iteration ends as
    "stalled" with details["diverged"] True and the best iterate seen.
    """
    require(accepts(problem))
    if not 0 < omega < 2:
        raise InvalidInput(f"omega must lie strictly between 0 and 2, where the method converges; got {omega}")
    if block < 1:
        raise InvalidInput(f"block must be at least 1, got {block}")
    if method not in ("jacobi", "sor", "ssor"):
        raise InvalidInput(f'method must be "jacobi", "sor" or "ssor", got {method!r}')
    if tol is None and increment is None:
        raise InvalidInput("tol and increment are both None: nothing would end the iteration")
    system = LinearSystem(problem)
    sweeps = Sweeps(system, method, omega, block, _worth_storing(system) if stored is None else stored)
    limits: LinearLimits = {"tol": tol, "start": start, "monitor": monitor, "iterations": iterations}
    return _Run(sweeps, GravesMorris(acceleration, anchor), increment, **limits).solved()


def _worth_storing(system: LinearSystem) -> bool:
    """Whether H is small enough to be kept, and fits in the budget of the Gram operator where it has one."""
    plan = getattr(system.problem.gram, "plan", None)
    return system.n <= 8000 and (plan is None or 8 * system.n**2 <= plan().budget)


class Sweeps:
    """One iteration of the chosen method on Z (n, m), in place."""

    def __init__(self, system: LinearSystem, method: Method, omega: float, block: int, stored: bool) -> None:
        self.system, self.method, self.omega = system, method, omega
        self.H = system.matrix() if stored else None
        self.single = block == 1 and stored
        self.T = np.ascontiguousarray(system.T.T)
        if not self.single:
            self.blocks = factored_blocks(system, block)
        self.passes_each = 2 if method == "ssor" else 1

    def apply(self, Z: Array) -> Array:
        """The next iterate."""
        if self.method == "jacobi":
            return self._jacobi(Z)
        if self.single and self.H is not None:
            rows = np.ascontiguousarray(Z.T)
            sweep(self.H, self.T, rows, self.omega, 0)
            if self.method == "ssor":
                sweep(self.H, self.T, rows, self.omega, 1)
            return np.ascontiguousarray(rows.T)
        order = list(range(len(self.blocks)))
        for i in order + order[::-1] if self.method == "ssor" else order:
            begin, end, factor = self.blocks[i]
            left = self.system.T[begin:end] - self._rows(begin, end) @ Z
            Z[begin:end] += self.omega * dense.solve(factor, left)
        return Z

    def _jacobi(self, Z: Array) -> Array:
        R = self.system.T - (self.system.dot(Z) if self.H is None else self.H @ Z)
        if self.single and self.H is not None:
            return np.asarray(Z + self.omega * R / self.H.diagonal()[:, None])
        out = Z.copy()
        for begin, end, factor in self.blocks:
            out[begin:end] += self.omega * dense.solve(factor, R[begin:end])
        return out

    def _rows(self, begin: int, end: int) -> Array:
        if self.H is not None:
            return self.H[begin:end]
        return self.system.rows(np.arange(begin, end, dtype=np.intp))


@loop
def sweep(H: Any, T: Any, Z: Any, omega: Any, backward: Any) -> None:
    """One pass of successive over-relaxation over the rows of H (n, n), forward or backward, on Z' (m, n)."""
    m, n = T.shape
    for step in range(n):
        i = n - 1 - step if backward else step
        row = H[i]
        scale = omega / row[i]
        for column in range(m):
            z = Z[column]
            total = 0.0
            for j in range(n):
                total += row[j] * z[j]
            z[i] += scale * (T[column, i] - total)


class _Run(LinearIteration):
    """Iterates, their increments and the certificates taken on the way; `gap` and `increment` end it."""

    def __init__(
        self, sweeps: Sweeps, accelerate: GravesMorris, increment: float | None, **limits: Unpack[LinearLimits]
    ) -> None:
        super().__init__(sweeps.system, **limits)
        self.sweeps, self.name, self.accelerate, self.increment = sweeps, sweeps.method, accelerate, increment
        self.Z = self.estimate = self.system.start(self.given)
        self.increments: list[float] = []
        self.smallest = np.inf
        self.diverged = False
        self.best: tuple[float, Array, Certificate] | None = None

    def certify(self) -> Certificate:
        """Certificate of the present estimate, by one product."""
        return self.system.certificate(self.estimate, self.system.T - self.system.dot(self.estimate))

    def remember(self, certificate: Certificate) -> None:
        """Keep the present estimate where its gap is the smallest so far."""
        gap = certificate.gap
        if self.best is None or gap < self.best[0]:
            self.best = gap, self.estimate.copy(), certificate

    def run(self, limit: int) -> Stopped:
        """Sweep until a rule holds."""
        due = 0
        while True:
            if self.iterations >= due and self.gap is not None:
                certificate = self.certify()
                self.remember(certificate)
                due = self.iterations + 1 + self.iterations // 4
                go_on = self.tell(certificate.primal, certificate.dual)
                if certificate.relative_gap <= self.gap:
                    return "converged"
            else:
                go_on = self.monitor.go_on()
            if self._falls_apart():
                self.diverged = True
                return "stalled"
            if self.increment is not None and self.increments and self.increments[-1] < self.increment:
                return "converged"
            if not go_on:
                return self.halted()
            if self.iterations >= limit:
                return "iterations"
            self._step()

    def _step(self) -> None:
        before = self.Z.copy()
        swept = self.sweeps.apply(self.Z)
        self.increments.append(float(np.max(np.abs(swept - before))))
        self.smallest = min(self.smallest, self.increments[-1])
        self.Z, self.estimate = self.accelerate.push(swept)
        self.iterations += 1

    def _falls_apart(self) -> bool:
        """Increments that grew a thousandfold over their smallest, or are no longer numbers."""
        if not self.increments:
            return False
        last = self.increments[-1]
        return not np.isfinite(last) or last > 1e3 * max(self.smallest, 1e-12 * self.increments[0])

    def solution(self, stopped: Stopped) -> Solution:
        """The best point seen where the run diverged, else the last."""
        if self.diverged and self.best is not None:
            _, Z, certificate = self.best
        else:
            if not np.isfinite(self.estimate).all():
                self.estimate = np.zeros_like(self.estimate)
            Z, certificate = self.estimate.copy(), self.certify()
        sweeps = self.iterations * self.sweeps.passes_each
        spent = self.spent(stopped, increments=np.array(self.increments), sweeps=sweeps, diverged=self.diverged)
        return self.system.solution(Z, certificate, self.name, **spent)
