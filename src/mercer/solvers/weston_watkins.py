"""Weston-Watkins' machine by decomposition, and Bredensteiner-Bennett's, which is the same machine.

The dual has n (k - 1) variables in boxes, for which no decomposition was known when it was published (Rifkin 2002,
section 4.2.1).  A step solves all k - 1 variables of a point at once: a_j = clip(v_j - S, 0, C) with S the sum of the
a_j, the root of one decreasing piecewise linear function.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.problems.multiclass import BredensteinerBennett, WestonWatkins
from mercer.solvers import multiclass_decomposition
from mercer.solvers.contract import Acceptance
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution

NAME = "Weston-Watkins"


def accepts(problem: Any) -> Acceptance:
    """Weston-Watkins and Bredensteiner-Bennett problems on any kernel matrix."""
    if isinstance(problem, WestonWatkins):
        return multiclass_decomposition.accepts(problem)
    if isinstance(problem, BredensteinerBennett):
        return Acceptance(True, "equivalent to a Weston-Watkins problem")
    return Acceptance(False, f"{type(problem).__name__} is not a Weston-Watkins problem")


def solve(
    problem: WestonWatkins | BredensteinerBennett,
    *,
    tol: float = 1e-3,
    start: NDArray[np.float64] | Solution | None = None,
    monitor: Monitor | None = None,
    max_iter: int = -1,
    working_set: int | None = None,
    seed: int = 0,
) -> Solution:
    """Solve to a relative gap of `tol`.

    `start`: variables a (n, k) or an earlier solution.  `max_iter` bounds the number of steps on a point (-1: no
    bound), `working_set` fixes the number of points worked on at a time.  Values of a Bredensteiner-Bennett problem are
    those of its own objective.
    """
    answer = accepts(problem)
    if not answer:
        raise InvalidInput(f"{NAME} cannot take this problem: {answer.reason}")
    scale = problem.scale if isinstance(problem, BredensteinerBennett) else 1.0
    found = multiclass_decomposition.solve(
        problem.equivalent if isinstance(problem, BredensteinerBennett) else problem,
        name=NAME,
        tol=tol,
        start=start,
        monitor=monitor,
        max_iter=max_iter,
        working_set=working_set,
        seed=seed,
    )
    return replace(found, primal=scale * found.primal, dual=scale * found.dual, gap=scale * found.gap)
