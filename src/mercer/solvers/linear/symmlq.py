"""SYMMLQ on the saddle-point form (Paige and Saunders 1975): Lanczos with an LQ factorisation.

Where MINRES takes the QR factorisation of the Lanczos tridiagonal T_l, SYMMLQ solves T_l y = b_1 e_1 through
T_l = L_l Q_l, L_l lower triangular with three diagonals.  The directions w stay orthonormal, so the steps never shrink
by cancellation, and the error (not the residual) falls monotonically towards the solution.  The system must be
consistent.  At the end the iterate moves to the Galerkin point, that of conjugate gradients, when its residual is the
smaller one.

All k outputs run side by side, each with its own Lanczos process, and share each pass over the kernel matrix.
"""

from typing import Unpack

import numpy as np

from mercer.arrays import Array
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.contract import require
from mercer.solvers.linear import minres
from mercer.solvers.linear.saddle_form import LanczosRun, quotient
from mercer.solvers.linear.system import LinearLimits
from mercer.solvers.solution import Solution

accepts = minres.accepts


def solve(problem: LeastSquares, **limits: Unpack[LinearLimits]) -> Solution:
    """Iterate until the relative duality gap is at most `tol`, or |A u - right| <= `residual` |right|.

    details: "residuals", the smaller residual norm of the LQ and the Galerkin point after each step over |right|.
    """
    require(accepts(problem))
    return _Symmlq(problem, **limits).solved()


class _Symmlq(LanczosRun):
    """LQ factorisation of the Lanczos tridiagonal, one rotation per step; U is the LQ point."""

    name = "symmlq"

    def prepare(self) -> None:
        """The first Lanczos step; `rights` are the two live entries of the right-hand side of L z = b_1 e_1."""
        alpha, beta, v = self.lanczos()
        self.w = v.copy()
        self.g_bar, self.d_bar = alpha, beta.copy()
        self.rights = self.first.copy(), np.zeros_like(self.first)
        self.sines = self.first.copy()

    def _norms(self) -> tuple[Array, Array]:
        """Residual norms (k,) of the LQ point and of the Galerkin point."""
        galerkin = np.abs(quotient(self.sines * self.beta, self.g_bar))
        lost = (self.g_bar == 0) & (self.sines != 0)
        return np.hypot(*self.rights), np.where(lost, np.inf, galerkin)

    def norm(self) -> float:
        """The smaller of the two, column by column."""
        return float(np.minimum(*self._norms()).max(initial=0.0))

    def point(self) -> Array:
        """The LQ point, moved to the Galerkin point in the columns where that has the smaller residual."""
        lq, galerkin = self._norms()
        move = np.where(galerkin <= lq, quotient(self.rights[0], self.g_bar), 0.0)
        return np.asarray(self.U + move * self.w)

    def step(self) -> None:
        """A rotation annihilates the entry to the right of the diagonal; one more entry of z is known."""
        beta_before = self.beta
        alpha, beta, v = self.lanczos()
        gamma = np.hypot(self.g_bar, beta_before)
        cosine, sine = quotient(self.g_bar, gamma), quotient(beta_before, gamma)
        delta = cosine * self.d_bar + sine * alpha
        self.g_bar = sine * self.d_bar - cosine * alpha
        self.d_bar = -cosine * beta
        z = quotient(self.rights[0], gamma)
        self.U = self.U + (z * cosine) * self.w + (z * sine) * v
        self.w = sine * self.w - cosine * v
        self.rights = self.rights[1] - delta * z, -sine * beta * z
        self.sines = self.sines * sine
