"""Kernel AdaTron (Friess, Cristianini and Campbell 1998); see `mercer.solvers.descent.relaxation`."""

from typing import Any, Unpack

import numpy as np

from mercer.problems.base import Problem
from mercer.solvers.contract import Acceptance, require
from mercer.solvers.descent.relaxation import checked_factor, relax, second_derivatives, without_equalities
from mercer.solvers.descent.run import Limits, Run
from mercer.solvers.solution import Solution

NAME = "adatron"
ACCEPTS = "support vector problems with bias 'penalised' or 'none'"
SECTION = "Friess, Cristianini and Campbell 1998; Schoelkopf and Smola 2002, section 10.6.1"


def accepts(problem: Any) -> Acceptance:
    """Problems without equalities."""
    return without_equalities(problem, "AdaTron")


def solve(
    problem: Problem, *, tol: float = 1e-3, rate: float | None = None, seed: int = 0, **limits: Unpack[Limits]
) -> Solution:
    """Sweep over the variables to a relative duality gap of `gap_tol`, or of `tol` where that is None.

    rate : one learning rate for all variables, below 2 / max (k(x, x) + ridge); None is half that limit.
    seed : of the order of visits.
    """
    require(accepts(problem), NAME)
    largest = float(second_derivatives(problem.program()).max())
    rate = 1.0 / largest if rate is None else checked_factor("rate", rate, 2.0 / largest)
    steps = np.full(problem.program().size, rate)
    return relax(Run(problem, NAME, tol=tol, **limits), steps, seed=seed, rate=rate)
