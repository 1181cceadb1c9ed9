"""Crammer and Singer's machine by decomposition.

The dual has one block of k variables for each point and nothing that couples the blocks but the kernel (Crammer and
Singer 2001; Fukumizu's slides; Rifkin 2002, section 4.2.1).  A step projects on a simplex, exactly, by `threshold`:
"sort" in O(k log k), or "fixed point", a contraction.  `greed` = 1 steps on the worst point of the working set; a
smaller number on all points within that factor of the worst before violations are looked at again: the look costs k
values for each point, a step only as many as there are classes that change, two or three.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.problems.multiclass import CrammerSinger
from mercer.solvers import multiclass_decomposition
from mercer.solvers.contract import Acceptance
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution

NAME = "Crammer-Singer"


def accepts(problem: Any) -> Acceptance:
    """Crammer-Singer problems on any kernel matrix."""
    if isinstance(problem, CrammerSinger):
        return multiclass_decomposition.accepts(problem)
    return Acceptance(False, f"{type(problem).__name__} is not a Crammer-Singer problem")


def solve(
    problem: CrammerSinger,
    *,
    tol: float = 1e-3,
    start: NDArray[np.float64] | Solution | None = None,
    monitor: Monitor | None = None,
    max_iter: int = -1,
    working_set: int | None = None,
    threshold: Literal["sort", "fixed point"] = "sort",
    greed: float = multiclass_decomposition.GREED,
    seed: int = 0,
) -> Solution:
    """Solve to a relative gap of `tol`.

    `start`: variables a (n, k) or an earlier solution.  `max_iter` bounds the number of steps on a point (-1: no
    bound), `working_set` fixes the number of points worked on at a time.
    """
    answer = accepts(problem)
    if not answer:
        raise InvalidInput(f"{NAME} cannot take this problem: {answer.reason}")
    if threshold not in ("sort", "fixed point"):
        raise InvalidInput(f'threshold must be "sort" or "fixed point", got {threshold!r}')
    return multiclass_decomposition.solve(
        problem,
        name=NAME,
        tol=tol,
        start=start,
        monitor=monitor,
        max_iter=max_iter,
        working_set=working_set,
        fixed_point=threshold == "fixed point",
        greed=greed,
        seed=seed,
    )
