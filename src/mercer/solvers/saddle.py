"""The saddle-point form itself, and its direct solution by LDL'.

    A u = [[H, Phi], [Phi', 0]] [c; beta] = [Y; 0],        A symmetric indefinite, (n + q, n + q).

LAPACK's sytrf factors A = L D L' with 1 x 1 and 2 x 2 pivots (Bunch and Kaufman) in (n + q)^3/3 flops.  It asks
nothing of H but that A be regular, so it takes kernels that are only conditionally positive definite, and it serves
as the reference for the elimination the other solvers use (Hamers 2004, equation 3.1).

`SaddleForm` is the same matrix as an operator, for the Krylov methods that take indefinite ones: MINRES and SYMMLQ.
Their iterates meet Phi'c = 0 only in the limit; the certificate moves c to the nearest point that does.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.problems.least_squares import LeastSquares, LeastSquaresCertificate, certify
from mercer.solvers.contract import Acceptance
from mercer.solvers.linear_system import LinearSystem, require
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution

Array = NDArray[np.float64]


def accepts(problem: Any) -> Acceptance:
    """Any least-squares problem whose matrix fits in memory and is regular."""
    if not isinstance(problem, LeastSquares):
        return Acceptance(False, "LDL' solves least-squares problems only")
    return Acceptance(True, "needs a regular matrix, not a definite one")


def solve(
    problem: LeastSquares,
    *,
    tol: float | None = None,
    start: Solution | Array | None = None,
    monitor: Monitor | None = None,
) -> Solution:
    """Solve directly.  `tol` and `start` are taken for the contract's sake: a direct method needs neither."""
    del tol, start
    require(accepts(problem))
    system = LinearSystem(problem, definite=False)
    n, q = system.n, system.q
    A = np.zeros((n + q, n + q), order="F")
    A[:n, :n] = system.matrix()
    A[n:, :n] = system.Phi.T
    right = np.zeros((n + q, system.Y.shape[1]), order="F")
    right[:n] = system.Y
    work = int(lapack.dsytrf_lwork(n + q, lower=1)[0])
    factor, pivots, info = lapack.dsytrf(A, lower=1, lwork=work, overwrite_a=1)
    if info > 0:
        raise NotPositiveDefinite(
            f"the saddle-point matrix is singular (pivot {info}): lower C, drop dependent basis columns, "
            "or use the spectral solver"
        )
    u, info = lapack.dsytrs(factor, pivots, right, lower=1, overwrite_b=1)
    c = np.ascontiguousarray(u[:n])
    form = SaddleForm(system)
    certificate = form.certificate(u)
    if monitor is not None:
        monitor.watch(1, *certificate.total[:2])
    return system.certified(
        form.feasible(c), certificate, "saddle", iterations=1, monitor=monitor, details={"multipliers": u[n:].copy()}
    )


class SaddleForm:
    """A as an operator on u = [c; beta] (n + q, k)."""

    def __init__(self, system: LinearSystem) -> None:
        self.system = system
        self.right = np.vstack([system.Y, np.zeros((system.q, system.Y.shape[1]))])
        self.Q: Array = np.linalg.qr(system.Phi)[0] if system.q else system.Phi

    def dot(self, U: Array) -> Array:
        """A U: one pass over the kernel matrix."""
        system, n = self.system, self.system.n
        return np.vstack([system.dot(U[:n]) + system.Phi @ U[n:], system.Phi.T @ U[:n]])

    def feasible(self, c: Array) -> Array:
        """The nearest c with Phi'c = 0."""
        return np.asarray(c - self.Q @ (self.Q.T @ c))

    def certificate(self, U: Array) -> LeastSquaresCertificate:
        """Certificate of the feasible point nearest to U, by a product with the kernel matrix."""
        return self.system.certify(self.feasible(U[: self.system.n]))

    def certificate_at_zero(self) -> LeastSquaresCertificate:
        """Certificate of c = 0, where no product is needed."""
        system, zero = self.system, np.zeros_like(self.system.Y)
        return certify(zero, zero, system.Y, system.Phi, system.weights, system.problem.C)

    def start(self, start: Solution | Array | None) -> Array:
        """U (n + q, k) to begin from: coefficients and offsets of a solution, or zero."""
        U = np.zeros_like(self.right)
        if start is None:
            return U
        if isinstance(start, Solution):
            coefficients, offsets = start.coefficients, start.multipliers.get("offsets")
        else:
            coefficients, offsets = np.asarray(start, dtype=np.float64), None
        if coefficients.shape != self.system.problem.Y.shape:
            raise InvalidInput(f"start must have coefficients of shape {self.system.problem.Y.shape}")
        U[: self.system.n] = self.system.take(coefficients)
        if offsets is not None and np.shape(offsets) == (self.system.q, U.shape[1]):
            U[self.system.n :] = offsets
        return U


class Milestones:
    """Decides when an indefinite Krylov method computes a certificate: only when its residual estimate is promising.

    The gap is quadratic in the residual, so after a certificate with relative gap g the next one is due when the
    estimate has fallen by sqrt(tol / g).
    """

    def __init__(self, form: SaddleForm, tol: float | None, residual: float | None) -> None:
        self.form, self.tol, self.residual = form, tol, residual
        self.scale = float(np.max(np.linalg.norm(form.right, axis=0), initial=0.0)) or 1.0
        self.certificate = form.certificate_at_zero()
        self.due = np.inf if tol is None else np.sqrt(tol) * self.scale
        self.last = np.inf

    def reached(self, estimate: float, U: Array) -> bool:
        """Whether U, with residual estimate `estimate`, is good enough."""
        if self.residual is not None and estimate <= self.residual * self.scale:
            self.certificate = self.form.certificate(U)
            return True
        if self.tol is None or estimate > self.due:
            return False
        self.certificate = self.form.certificate(U)
        gap = self.certificate.relative_gap
        shrink = np.sqrt(self.tol / gap) if 0 < gap < np.inf else 0.1
        self.due = min(self.due, estimate) * min(0.5, 0.5 * float(shrink))
        self.last = gap
        return bool(gap <= self.tol)
