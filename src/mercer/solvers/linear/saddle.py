"""The saddle-point form itself, and its direct solution by LDL'.

    A u = [[H, Phi], [Phi', 0]] [c; beta] = [Y; 0],        A symmetric indefinite, (n + q, n + q).

LAPACK's sytrf factors A = L D L' with 1 x 1 and 2 x 2 pivots (Bunch and Kaufman) in (n + q)^3/3 flops.  It asks
nothing of H but that A be regular, so it takes kernels that are only conditionally positive definite, and it serves
as the reference for the elimination the other solvers use (Hamers 2004, equation 3.1).
"""

from typing import Any

import numpy as np

from mercer import dense, threads
from mercer.errors import NotPositiveDefinite
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.contract import Acceptance, Start, require
from mercer.solvers.linear.saddle_form import SaddleForm
from mercer.solvers.linear.system import LinearSystem
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution


def accepts(problem: Any) -> Acceptance:
    """Any least-squares problem whose matrix fits in memory and is regular."""
    if not isinstance(problem, LeastSquares):
        return Acceptance(False, "LDL' solves least-squares problems only")
    return Acceptance(True, "needs a regular matrix, not a definite one")


def solve(
    problem: LeastSquares,
    *,
    tol: float | None = None,
    start: Start = None,
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
    right = np.zeros((n + q, system.Y.shape[1]))
    right[:n] = system.Y
    pivots = threads.apart(lambda: dense.factorise_indefinite(A), None if monitor is None else monitor.poll)
    if pivots is None:
        raise NotPositiveDefinite(
            "the saddle-point matrix is singular: lower C, drop dependent basis columns, or use the spectral solver"
        )
    u = dense.solve_indefinite(A, pivots, right)
    c = np.ascontiguousarray(u[:n])
    form = SaddleForm(system)
    details = {"multipliers": u[n:].copy()}
    return system.exact(form.feasible(c), form.certificate(u), "saddle", monitor, details=details)
