"""Conjugate gradients on H Z = T, all columns side by side: one pass over the kernel matrix serves them all.

Each column z minimises J(z) = 1/2 z'Hz - t'z over the Krylov space of its residual r = t - Hz by the recursion of
`conjugate_directions` (Hamers 2004, section 3.5; Rifkin 2002, appendix C).  In exact arithmetic it ends after as many
steps as H has distinct eigenvalues in t: at most rank(X) + 1 for the linear kernel.  H is only ever multiplied, so the
matrix need not be stored: streamed Gram operators and the linear kernel on sparse data, X(X'v), work as they are.

`refresh` recomputes r from its definition every so many steps, as Rifkin's listing does every 50; it breaks conjugacy
on ill-conditioned matrices and is off by default.  Drift of r is handled at the end instead (see `descent`).
"""

from typing import Any, Unpack

import numpy as np

from mercer.arrays import Array, Index
from mercer.errors import NotPositiveDefinite
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.contract import Acceptance, require
from mercer.solvers.linear.conjugate_directions import ConjugateDirections
from mercer.solvers.linear.krylov import Descent, Limits
from mercer.solvers.linear.preconditioners import Preconditioner
from mercer.solvers.solution import Solution


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
    refresh: int | None = None,
    preconditioner: Preconditioner | None = None,
    **limits: Unpack[Limits],
) -> Solution:
    """Iterate until the relative duality gap is at most `tol`, or a rule of `StoppingRules` holds in every column.

    `tol=None` asks the other rules only.  details: "steps" (q + k,) products spent on each column, "residuals" the
    largest relative residual after each step, "objectives" J of each column after each step, "true_residual" and
    "recursive_residual" at the end.
    """
    require(accepts(problem))
    return _Columns(problem, preconditioner, refresh, **limits).solved()


class _Columns(Descent):
    """One conjugate-gradient iteration per column; a column that is done is frozen."""

    name = "conjugate_gradient"

    def __init__(
        self,
        problem: LeastSquares,
        precondition: Preconditioner | None,
        refresh: int | None,
        **limits: Unpack[Limits],
    ) -> None:
        super().__init__(problem, **limits)
        self.precondition, self.refresh = precondition, refresh
        self.steps = np.zeros(self.Z.shape[1], dtype=np.intp)

    def restart(self) -> None:
        """Search along the (preconditioned) residual."""
        self.live = np.arange(self.Z.shape[1])
        # Weights stand in for a preconditioner: those that count repeated rows cost no more steps than the rows.
        precondition = self.precondition or (None if self.system.uniform else self._balanced)
        self.search = ConjugateDirections(self.system.dot, self.R.copy(), self.Z.copy(), precondition)

    def _balanced(self, V: Array) -> Array:
        """V, larger where the ridge is smaller."""
        return self.system.balance**2 * V

    def step(self) -> None:
        """One product with the columns still at work."""
        if self.done[self.live].any():
            going = np.flatnonzero(~self.done[self.live])
            self.live = self.live[going]
            self.search.keep(going)
        fresh = self.refresh and (self.iterations + 1) % self.refresh == 0
        self.search.step(self._true_residual if fresh else None)
        if (self.search.curvature < 0).any():
            raise NotPositiveDefinite(
                "K + ridge has a negative eigenvalue: lower C or use the saddle or spectral solver"
            )
        self.Z[:, self.live], self.R[:, self.live] = self.search.X, self.search.R
        self.steps[self.live] += 1
        # Where p'Hp or r'y underflows, or rounding is all that is left, the column has nothing more to give.
        small = np.linalg.norm(self.search.R, axis=0) <= 1e-17 * self.rules.first[self.live]
        self.done[self.live] |= (self.search.energy <= 1e-300) | small

    def _true_residual(self) -> Array:
        """T - H Z of the columns still at work."""
        assert self.search.X is not None
        return np.asarray(self.system.T[:, self.live] - self.system.dot(self.search.X))

    def details(self) -> dict[str, Array | Index]:
        """Products spent per column, and the residual the recursion believed in."""
        norms = np.linalg.norm(self.system.T, axis=0)
        believed = np.linalg.norm(self.R, axis=0) / np.where(norms > 0, norms, 1.0)
        return {"steps": self.steps, "recursive_residual": believed}
