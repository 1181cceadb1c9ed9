"""Least squares by Cholesky factorisation: one factor H = L L', then two triangular solves per column.

T = [Phi, Y] (n, q + k) holds the unpenalised columns and every output, so bias, semiparametric part and all outputs
share one factorisation of n^3/3 flops (Hamers 2004, sections 3.2 and 3.3.2).  Time does not depend on cond(H);
accuracy does: the relative error is about cond(H) times 1e-16.

Storage is one n x n array.  LAPACK's potrf writes L over one triangle of H and leaves the other alone, so K survives
in that other triangle and the certificate is a true product with it, not a restatement of the solve.
"""

from typing import Any

import numpy as np

from mercer import dense
from mercer.arrays import Array
from mercer.errors import NotPositiveDefinite
from mercer.problems.least_squares import LeastSquares, certify
from mercer.solvers.contract import Acceptance, Start, require
from mercer.solvers.linear.system import LinearSystem
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution


def accepts(problem: Any) -> Acceptance:
    """Any least-squares problem whose n x n matrix fits in memory."""
    if not isinstance(problem, LeastSquares):
        return Acceptance(False, "Cholesky solves least-squares problems only")
    return Acceptance(True, "one factorisation serves every output")


def solve(
    problem: LeastSquares,
    *,
    tol: float | None = None,
    start: Start = None,
    monitor: Monitor | None = None,
    keep_factor: bool = False,
    condition: bool = False,
) -> Solution:
    """Solve exactly.  `tol` and `start` are taken for the contract's sake: a direct method needs neither.

    `keep_factor`: details["factor"] is (L, True) as scipy.linalg.cho_solve takes it, L (n, n) Fortran-ordered; its
    strict upper triangle holds kernel values and is not part of the factor.  Rows are the points of positive weight,
    details["active"] their indices (None when all).  `condition`: details["condition"] estimates cond_1(H).
    `variables` of the solution is Z = [eta, nu] (n, q + k), H Z = [Phi, Y].
    """
    del tol, start
    require(accepts(problem))
    system = LinearSystem(problem)
    H = system.matrix()
    diagonal = np.array(H.diagonal())
    size = one_norm(H) if condition else 0.0
    L = factorise(H, None if monitor is None else monitor.poll)
    Z = dense.solve(L, system.T)
    c, _ = system.eliminate(Z)
    if system.projection is None:
        values = _kernel_product(L, diagonal, c) - system.ridge[:, None] * c
        certificate = certify(c, values, system.Y, system.Phi, system.weights, problem.C)
    else:
        certificate = system.certify(c)
    details: dict[str, Any] = {"active": system.active}
    if keep_factor:
        details["factor"] = (L, True)
    if condition:
        details["condition"] = dense.condition(L, size)
    return system.exact(c, certificate, "cholesky", monitor, variables=np.ascontiguousarray(Z), details=details)


def factorise(H: Array, poll: dense.Poll | None = None) -> Array:
    """L with H = L L' in the lower triangle of a Fortran-ordered view of H (n, n), which it overwrites.

    The strict upper triangle of the view keeps the values of H.  `poll` is called between block columns.
    """
    L: Array = H.T
    if not dense.factorise(L, poll):
        raise NotPositiveDefinite(
            "K + ridge is not positive definite to working precision: lower C, or use the spectral solver, which takes "
            "singular matrices, or check the kernel"
        )
    return L


def _kernel_product(L: Array, diagonal: Array, c: Array) -> Array:
    """H c (n, k) from the triangle of H that the factorisation left alone and the saved diagonal (n,)."""
    # The diagonal of that triangle is already L's.
    return np.asarray(dense.symmetric_product(L, c, lower=False) + (diagonal - L.diagonal())[:, None] * c)


def one_norm(H: Array, block: int = 512) -> float:
    """The largest absolute row sum of H, computed in blocks of rows."""
    sums = [np.abs(H[i : i + block]).sum(axis=1).max() for i in range(0, H.shape[0], block)]
    return float(max(sums))
