"""SVMTorch: decomposition for regression with one side of the tube at a time (Collobert and Bengio 2001).

A point of a regression problem has two variables, alpha_i for values below the tube and alpha*_i for values above it,
of which at most one differs from zero at the optimum and in every iterate that starts so.  The working set therefore
never holds both: of the two it takes the one whose gradient is farther on the side in question, so that alpha* returns
to zero before alpha rises.  Gradients choose (score 10.60), in pairs; variables at a bound for `looks` looks are shrunk
(Schoelkopf and Smola 2002, problem 10.12).  SVMTorch works on two variables at a time; ten cost fewer looks at all
points, and two may be asked for.

On problems with one variable for each point this is SVMLight.
"""

from typing import Unpack

import numpy as np

from mercer.arrays import Index
from mercer.solvers.classical.dual import GROUP_SUMS, Limits, Stated, accepts, descend
from mercer.solvers.classical.svmlight import LOOKS, SteepestDirection, steepest
from mercer.solvers.solution import Solution

__all__ = ["ACCEPTS", "NAME", "SECTION", "accepts", "solve"]

NAME = "svmtorch"
ACCEPTS = GROUP_SUMS + "; made for regression"
SECTION = "Collobert and Bengio 2001; Schoelkopf and Smola 2002, section 10.4.3 and problem 10.12"
SIZE = 10


def solve(
    problem: Stated,
    *,
    size: int = SIZE,
    looks: int = LOOKS,
    shrinking: bool = True,
    final_check: bool = True,
    **limits: Unpack[Limits],
) -> Solution:
    """Solve to a violation of at most `tol`, or to a relative gap of `gap_tol`; parameters as in `svmlight`."""
    return descend(
        OneSideOfTheTube, problem, size=size, looks=looks if shrinking else None, final_check=final_check, **limits
    )


class OneSideOfTheTube(SteepestDirection):
    """Rounds of SVMTorch."""

    name = NAME

    def choose(self) -> Index:
        """The steepest direction without a second variable of a point, unless both of a point move to zero together."""
        V = steepest(self, self.size)
        _, first = np.unique(self.point(V), return_index=True)
        return V[np.sort(first)] if first.size > 1 else V
