"""Lee-Lin-Wahba's machine by decomposition.

The dual has n (k - 1) variables in boxes, coupled within a point by their mean; no method of its own was published with
it (Rifkin 2002, section 4.2.1).  A step solves all k - 1 variables of a point at once: a_j = clip(v_j + S/k, 0, C) with
S the sum of the a_j, the root of one decreasing piecewise linear function.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.problems.multiclass import LeeLinWahba
from mercer.solvers import multiclass_decomposition
from mercer.solvers.contract import Acceptance
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution

NAME = "Lee-Lin-Wahba"


def accepts(problem: Any) -> Acceptance:
    """Lee-Lin-Wahba problems on any kernel matrix."""
    if isinstance(problem, LeeLinWahba):
        return multiclass_decomposition.accepts(problem)
    return Acceptance(False, f"{type(problem).__name__} is not a Lee-Lin-Wahba problem")


def solve(
    problem: LeeLinWahba,
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
    bound), `working_set` fixes the number of points worked on at a time.
    """
    answer = accepts(problem)
    if not answer:
        raise InvalidInput(f"{NAME} cannot take this problem: {answer.reason}")
    return multiclass_decomposition.solve(
        problem,
        name=NAME,
        tol=tol,
        start=start,
        monitor=monitor,
        max_iter=max_iter,
        working_set=working_set,
        seed=seed,
    )
