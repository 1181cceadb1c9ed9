"""Warm starts: carry a solution to other parameters (Schoelkopf and Smola 2002, section 10.1.2).

Going from C to C' the variables are multiplied by C'/C, which keeps the box and homogeneous equalities and tends to
keep the support vectors at their bounds; they are then projected onto the new feasible set.  Where the dual value of
the result is worse than that of the cold start (it may be when C'/C > 2, or after a large change of the kernel), the
cold start is returned instead.
"""

import numpy as np

from mercer.arrays import Vector
from mercer.errors import Infeasible, InvalidInput
from mercer.problems.base import Problem
from mercer.problems.program import QuadraticProgram

STRIP = 1 << 19  # kernel values computed at a time: the support vectors' own matrix may be larger than any budget


def rescale(variables: Vector, old: Problem, new: Problem) -> Vector:
    """A feasible start (N,) for `new` from the variables (N,) of `old`; both problems are on the same points."""
    before, program = old.program(), new.program()
    if variables.shape != (before.size,) or before.size != program.size:
        raise InvalidInput(
            f"a warm start needs the same points and kind of problem: {variables.shape[0]} variables given, "
            f"{before.size} before, {program.size} now"
        )
    cold = program.start()
    rising, falling = (
        np.divide(now, then, out=np.ones_like(now), where=then > 0)[program.point]
        for now, then in zip(new.costs, old.costs)
    )
    try:
        warm = program.project(variables * np.where(variables > 0, rising, falling))
    except Infeasible:  # other equality rows, to which no way was found from here
        return cold
    return warm if value(program, warm) < value(program, cold) else cold


def value(program: QuadraticProgram, s: Vector) -> float:
    """Objective of the program at s (N,), computed on the points with non-zero coefficients only."""
    c = program.coefficients(s)
    support = np.flatnonzero(c)
    out = float(program.linear @ s) + 0.5 * float(program.ridge @ (s * s))
    if support.size:
        own = c[support]
        step = max(1, STRIP // len(support))
        for start in range(0, len(support), step):
            part = slice(start, start + step)
            out += 0.5 * float(own[part] @ np.asarray(program.gram.block(support[part], support) @ own))
        out += 0.5 * program.constant * float(own.sum()) ** 2
    return out
