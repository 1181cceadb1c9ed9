"""Newton's method on the primal objective, with a line search.

The response r_j of a loss to q_j is q_j / ridge_j inside the box of the variable and constant outside: those inside are
modelled exactly, the others are fixed where they are.  For a smooth loss l this is

    s <- (diag(C l'') K + I)^-1 C (l'' K s - l')

(Schoelkopf and Smola 2002, problem 10.17, with lambda m = 1/C; Chapelle 2007), and it ends in finitely many steps,
because the losses are quadratic in pieces.
"""

from typing import Any, Unpack

from mercer.arrays import Array
from mercer.problems.base import Problem
from mercer.problems.program import QuadraticProgram
from mercer.solvers.contract import Acceptance
from mercer.solvers.descent import second_order
from mercer.solvers.descent.run import Limits
from mercer.solvers.descent.second_order import Model
from mercer.solvers.solution import Solution

NAME = "newton"
ACCEPTS = "support vector problems whose matrix, or its thin factor, fits in memory; no basis functions"
SECTION = "Schoelkopf and Smola 2002, problem 10.17; Chapelle 2007"


def accepts(problem: Any, *, memory: int | str | None = None) -> Acceptance:
    """Problems whose losses are smooth or can be rounded off, and whose matrix can be factorised."""
    return second_order.accepts(problem, "Newton's method", memory)


def model(program: QuadraticProgram, q: Array) -> Model:
    """The costs by their second derivatives at q (N,)."""
    response = program.costs_and_response(q)[1]
    inside = (program.lower < response) & (response < program.upper)
    return Model(inside, program.ridge, response)


def solve(
    problem: Problem, *, tol: float = 1e-8, memory: int | str | None = None, **limits: Unpack[Limits]
) -> Solution:
    """Step to a relative duality gap of `gap_tol`, or of `tol` where that is None."""
    return second_order.descend(problem, NAME, model, tol=tol, memory=memory, **limits)
