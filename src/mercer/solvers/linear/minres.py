"""MINRES on the saddle-point form (Paige and Saunders 1975): the smallest residual in each Krylov space.

Lanczos vectors v_l of A, with b_{l+1} v_{l+1} = A v_l - a_l v_l - b_l v_{l-1}, give a tridiagonal T_l; its QR
factorisation by one new rotation per step turns min |b_1 e_1 - T_l y| into a two-term update of the solution.  The
residual norm is known at every step and never rises.  A may be indefinite, and singular if the system is consistent:
then the answer is the one of least length, so that C = inf (interpolation) works on singular K.

All k outputs run side by side, each with its own Lanczos process, and share each pass over the kernel matrix.
"""

from typing import Any, Unpack

import numpy as np

from mercer.arrays import Array
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.contract import Acceptance, require
from mercer.solvers.linear.saddle_form import LanczosRun, quotient
from mercer.solvers.linear.system import LinearLimits
from mercer.solvers.solution import Solution


def accepts(problem: Any) -> Acceptance:
    """Any least-squares problem, singular ones included."""
    if not isinstance(problem, LeastSquares):
        return Acceptance(False, "MINRES solves least-squares problems only")
    return Acceptance(True, "needs products with the kernel matrix only, definite or not")


def solve(problem: LeastSquares, **limits: Unpack[LinearLimits]) -> Solution:
    """Iterate until the relative duality gap is at most `tol`, or |A u - right| <= `residual` |right|.

    details: "residuals", the largest residual norm after each step over the largest |right|.
    """
    require(accepts(problem))
    return _Minres(problem, **limits).solved()


class _Minres(LanczosRun):
    """QR factorisation of the Lanczos tridiagonal, one rotation (cosine, sine) per step."""

    name = "minres"

    def prepare(self) -> None:
        """No rotation yet; phi_bar is the residual norm."""
        k = len(self.first)
        self.w, self.w_before = np.zeros_like(self.v), np.zeros_like(self.v)
        self.cosine, self.sine = -np.ones(k), np.zeros(k)
        self.d_bar, self.epsilon, self.phi_bar = np.zeros(k), np.zeros(k), self.first.copy()

    def norm(self) -> float:
        """|phi_bar|, the residual norm."""
        return float(np.abs(self.phi_bar).max(initial=0.0))

    def point(self) -> Array:
        """The iterate."""
        return self.U

    def step(self) -> None:
        """Rotate the new column of the tridiagonal and move along its direction."""
        alpha, beta, v = self.lanczos()
        delta = self.cosine * self.d_bar + self.sine * alpha
        g_bar = self.sine * self.d_bar - self.cosine * alpha
        epsilon_before, self.epsilon = self.epsilon, self.sine * beta
        self.d_bar = -self.cosine * beta
        gamma = np.hypot(g_bar, beta)
        self.cosine, self.sine = quotient(g_bar, gamma), quotient(beta, gamma)
        direction = quotient(v - epsilon_before * self.w_before - delta * self.w, gamma)
        self.w, self.w_before = direction, self.w
        self.U = self.U + (self.cosine * self.phi_bar) * direction
        self.phi_bar = np.where(gamma > 0, self.sine * self.phi_bar, self.phi_bar)
