"""Conjugate gradients on H Z = T, all columns side by side: one pass over the kernel matrix serves them all.

Each column z minimises J(z) = 1/2 z'Hz - t'z over the Krylov space of its residual r = t - Hz,

    a = r'y / p'Hp,   z += a p,   r -= a Hp,   b = r'y / (r'y before),   p = y + b p,     y = M^-1 r

with M = I or a preconditioner (Hamers 2004, section 3.5; Rifkin 2002, appendix C).  In exact arithmetic it ends after
as many steps as H has distinct eigenvalues in t: at most rank(X) + 1 for the linear kernel.  H is only ever
multiplied, so the matrix need not be stored: streamed Gram operators and the linear kernel on sparse data, X(X'v),
work as they are.

`refresh` recomputes r from its definition every so many steps, as Rifkin's listing does every 50; it breaks conjugacy
on ill-conditioned matrices and is off by default.  Drift of r is handled at the end instead (see `descent`).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NotPositiveDefinite
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.contract import Acceptance
from mercer.solvers.descent import Descent, StoppingRules
from mercer.solvers.linear_system import LinearSystem, require
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.preconditioners import Preconditioner
from mercer.solvers.solution import Solution

Array = NDArray[np.float64]


def accepts(problem: Any) -> Acceptance:
    """Any least-squares problem with a positive ridge."""
    if not isinstance(problem, LeastSquares):
        return Acceptance(False, "conjugate gradients solve least-squares problems only")
    if np.isinf(problem.C):
        return Acceptance(False, "C = inf leaves no ridge and no gap to stop on: use minres or spectral")
    return Acceptance(True, "needs products with the kernel matrix only")


def solve(
    problem: LeastSquares,
    *,
    tol: float | None = 1e-10,
    start: Solution | Array | None = None,
    monitor: Monitor | None = None,
    residual: float | None = None,
    decrease: float | None = None,
    iterations: int | None = None,
    refresh: int | None = None,
    preconditioner: Preconditioner | None = None,
) -> Solution:
    """Iterate until the relative duality gap is at most `tol`, or a rule of `StoppingRules` holds in every column.

    `tol=None` asks the other rules only.  details: "steps" (q + k,) products spent on each column, "residuals" the
    largest relative residual after each step, "objectives" J of each column after each step, "true_residual" and
    "recursive_residual" at the end.
    """
    require(accepts(problem))
    system = LinearSystem(problem)
    state = _Columns(system, system.start(start, monitor), StoppingRules(tol, residual, decrease))
    state.precondition, state.refresh = preconditioner, refresh
    with listening(monitor) as watch:
        return state.solve(10 * system.n + 100 if iterations is None else iterations, watch)


class _Columns(Descent):
    """One conjugate-gradient iteration per column; a column that is done is frozen."""

    name = "conjugate_gradient"
    precondition: Preconditioner | None = None
    refresh: int | None = None

    def __init__(self, system: LinearSystem, Z: Array, rules: StoppingRules) -> None:
        super().__init__(system, Z, rules)
        self.steps = np.zeros(Z.shape[1], dtype=np.intp)

    def _preconditioned(self, R: Array) -> Array:
        return R if self.precondition is None else self.precondition(R)

    def restart(self) -> None:
        """Search along the (preconditioned) residual."""
        Y = self._preconditioned(self.R)
        self.P = Y.copy()
        self.rho = np.sum(self.R * Y, axis=0)

    def step(self) -> None:
        """One product with the columns still at work."""
        live = np.flatnonzero(~self.done)
        P = self.P[:, live]
        HP = self.system.dot(P)
        curvature = np.sum(P * HP, axis=0)
        if (curvature < 0).any():
            raise NotPositiveDefinite(
                "K + ridge has a negative eigenvalue: lower C or use the saddle or spectral solver"
            )
        a = np.divide(self.rho[live], curvature, out=np.zeros(len(live)), where=curvature > 0)
        self.Z[:, live] += a * P
        self.steps[live] += 1
        if self.refresh and (self.iteration + 1) % self.refresh == 0:
            R = self.system.T[:, live] - self.system.dot(self.Z[:, live])
        else:
            R = self.R[:, live] - a * HP
        Y = self._preconditioned(R)
        rho = np.sum(R * Y, axis=0)
        b = np.divide(rho, self.rho[live], out=np.zeros(len(live)), where=self.rho[live] > 0)
        self.R[:, live] = R
        self.P[:, live] = Y + b * P
        self.rho[live] = rho
        # Where p'Hp or r'y underflows, or rounding is all that is left, the column has nothing more to give.
        self.done |= (self.rho <= 1e-300) | (np.linalg.norm(self.R, axis=0) <= 1e-17 * self.rules.first)

    def details(self) -> dict[str, Array | NDArray[np.intp]]:
        """Products spent per column, and the residual the recursion believed in."""
        norms = np.linalg.norm(self.system.T, axis=0)
        believed = np.linalg.norm(self.R, axis=0) / np.where(norms > 0, norms, 1.0)
        return {"steps": self.steps, "recursive_residual": believed}
