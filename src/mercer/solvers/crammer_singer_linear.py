"""Crammer and Singer's machine on the linear kernel, by coordinate ascent in the weight vectors W (k, d).

The method of LIBLINEAR's solver 4 (Keerthi et al. 2008; Fan et al. 2008) with outputs of all classes computed along
memory, points and classes shrunk, and a stop by the duality gap (`mercer.solvers.multiclass_linear`).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.problems.multiclass import CrammerSinger
from mercer.solvers import multiclass_linear
from mercer.solvers.contract import Acceptance
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution


def accepts(problem: Any) -> Acceptance:
    """Crammer-Singer problems on the linear kernel."""
    if isinstance(problem, CrammerSinger):
        return multiclass_linear.accepts(problem)
    return Acceptance(False, f"{type(problem).__name__} is not a Crammer-Singer problem")


def solve(
    problem: CrammerSinger,
    *,
    tol: float = 1e-3,
    start: NDArray[np.float64] | Solution | None = None,
    monitor: Monitor | None = None,
    max_iter: int = -1,
    seed: int = 0,
) -> Solution:
    """Solve to a relative gap of `tol`; `max_iter` bounds the number of passes (-1: no bound).

    The weight vectors (k, d) are among the details of the solution.
    """
    answer = accepts(problem)
    if not answer:
        raise InvalidInput(f"the linear Crammer-Singer solver cannot take this problem: {answer.reason}")
    return multiclass_linear.solve(problem, tol=tol, start=start, monitor=monitor, max_iter=max_iter, seed=seed)
