"""Iteratively reweighted least squares: every cost is modelled by a parabola with its own value and slope.

A variable that responds to q_j with r_j gets the weight r_j / q_j, that is D_j = q_j / r_j, and the next point is that
of least squares with these weights; one that does not respond (beyond the margin, inside the tube) has weight zero
(Perez-Cruz, Bousono-Calzon and Artes-Rodriguez 2005; Schoelkopf and Smola 2002, section 10.7.1).  For costs phi with
phi'(q) / q falling, as all of these are, the parabola lies above phi where q keeps its sign, so that the steps need no
second derivative; a line search covers the variables whose q changes sign.
"""

from typing import Any, Unpack

import numpy as np

from mercer.arrays import Array
from mercer.problems.base import Problem
from mercer.problems.program import QuadraticProgram
from mercer.solvers.contract import Acceptance
from mercer.solvers.descent import second_order
from mercer.solvers.descent.run import Limits
from mercer.solvers.descent.second_order import Model
from mercer.solvers.solution import Solution

NAME = "irwls"
ACCEPTS = "support vector problems whose matrix, or its thin factor, fits in memory; no basis functions"
SECTION = "Perez-Cruz et al. 2005; Schoelkopf and Smola 2002, section 10.7.1"


def accepts(problem: Any, *, memory: int | str | None = None) -> Acceptance:
    """Problems whose losses are smooth or can be rounded off, and whose matrix can be factorised."""
    return second_order.accepts(problem, "reweighted least squares", memory)


def model(program: QuadraticProgram, q: Array) -> Model:
    """The costs by parabolas through zero with the slopes at q (N,)."""
    response = program.costs_and_response(q)[1]
    inside = (program.upper > program.lower) & (response != 0.0)
    weights = np.divide(q, response, out=np.ones(program.size), where=inside)
    return Model(inside, weights, np.where(inside, 0.0, response))


def solve(
    problem: Problem, *, tol: float = 1e-6, memory: int | str | None = None, **limits: Unpack[Limits]
) -> Solution:
    """Step to a relative duality gap of `gap_tol`, or of `tol` where that is None."""
    return second_order.descend(problem, NAME, model, tol=tol, memory=memory, **limits)
