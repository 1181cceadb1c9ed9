"""Successive over-relaxation (Mangasarian and Musicant 1999); see `mercer.solvers.descent.relaxation`."""

from typing import Any, Unpack

from mercer.problems.base import Problem
from mercer.solvers.contract import Acceptance, require
from mercer.solvers.descent.relaxation import checked_factor, relax, second_derivatives, without_equalities
from mercer.solvers.descent.run import Limits, Run
from mercer.solvers.solution import Solution

NAME = "sor"
ACCEPTS = "support vector problems with bias 'penalised' or 'none'"
SECTION = "Mangasarian and Musicant 1999; Schoelkopf and Smola 2002, section 10.7.1"

# Chosen; on the 400 points of `relaxation` 48 sweeps against 63 at 1 (hinge, gap 1e-5), and 18 against 20 (its square).
OMEGA = 1.3


def accepts(problem: Any) -> Acceptance:
    """Problems without equalities."""
    return without_equalities(problem, "successive over-relaxation")


def solve(
    problem: Problem,
    *,
    tol: float = 1e-3,
    omega: float = OMEGA,
    simultaneous: bool = False,
    seed: int = 0,
    **limits: Unpack[Limits],
) -> Solution:
    """Sweep over the variables to a relative duality gap of `gap_tol`, or of `tol` where that is None.

    omega : the relaxation factor, in (0, 2); simultaneous : move all variables from one gradient (Jacobi's method,
    which need not converge); seed : of the order of visits.
    """
    require(accepts(problem), NAME)
    steps = checked_factor("omega", omega, 2.0) / second_derivatives(problem.program())
    return relax(Run(problem, NAME, tol=tol, **limits), steps, seed=seed, simultaneous=simultaneous, omega=omega)
