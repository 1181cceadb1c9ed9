"""Warm starts: carry a solution to other parameters (Schoelkopf and Smola 2002, section 10.1.2).

Going from C to C' the variables are multiplied by C'/C, which keeps the box and homogeneous equalities and tends to
keep the support vectors at their bounds; they are then projected onto the new feasible set.  Where the dual value of
the result is worse than that of the cold start (it may be when C'/C > 2, or after a large change of the kernel), the
cold start is returned instead.
"""

import numpy as np

from mercer.errors import InvalidInput
from mercer.problems.base import Problem, Vector
from mercer.problems.program import QuadraticProgram


def rescale(variables: Vector, old: Problem, new: Problem) -> Vector:
    """A feasible start (N,) for `new` from the variables (N,) of `old`; both problems are on the same points."""
    before, program = old.program(), new.program()
    if variables.shape != (before.size,) or before.size != program.size:
        raise InvalidInput(
            f"a warm start needs the same points and kind of problem: {variables.shape[0]} variables given, "
            f"{before.size} before, {program.size} now"
        )
    ratio = np.divide(new.box, old.box, out=np.ones_like(new.box), where=old.box > 0)
    cold = program.start()
    if program.groups is None and (before.d != 0).any():
        return cold
    warm = program.project(variables * ratio[program.point])
    return warm if value(program, warm) < value(program, cold) else cold


def value(program: QuadraticProgram, s: Vector) -> float:
    """Objective of the program at s (N,), computed on the points with non-zero coefficients only."""
    c = program.coefficients(s)
    support = np.flatnonzero(c)
    out = float(program.linear @ s) + 0.5 * float(program.ridge @ (s * s))
    if support.size:
        own = c[support]
        out += 0.5 * float(own @ np.asarray(program.gram.block(support, support) @ own))
        out += 0.5 * program.constant * float(own.sum()) ** 2
    return out
