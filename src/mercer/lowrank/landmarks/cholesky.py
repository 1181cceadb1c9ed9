"""Pivots of the incomplete Cholesky factorisation: always the point with the largest residual comes next.

Only the diagonal and the m columns of the pivots are needed: m n kernel values, m^2 n operations, m n numbers (Hamers
2004, section 5.3; Fine and Scheinberg 2001).  For a Gaussian the worst represented point is an outlier, and on real
data such landmarks explain less of the trace than random ones (Rifkin 2002, section 3.7).
"""

import numpy as np

from mercer.errors import InvalidInput
from mercer.lowrank.landmarks.factor import DEPENDENT, Array, Factor
from mercer.lowrank.landmarks.task import Choice, Task, said_of_rows

# Operations until a choice takes some ten seconds; the factor is read from memory once for each landmark.
WORK = 5e10


def pivoted_cholesky(task: Task, tol: float = DEPENDENT, trace_tol: float = 0.0, rows: int | None = None) -> Choice:
    """Points in the order of the pivots.

    Stops before m where the largest residual is at most `tol` times the largest k(x, x), or the residual trace at most
    `trace_tol` times the trace.  rows: look at so many random rows only; None: at all where that is affordable.
    """
    task.need_definite("pivoted_cholesky")
    check_tolerances(tol, trace_tol)
    chosen = task.working_rows(rows, WORK / task.m**2, 8 * task.m)
    factor = Factor(task.gram(chosen, storage="streamed"), task.m, task.weights[chosen], tol)
    factor.grow_by(lambda f: (int(np.argmax(f.left)), None), task.m, trace_tol * factor.trace)
    return Choice(chosen[factor.chosen], details=said_of_rows(task, chosen) | said_of_factor(factor, task.m))


def check_tolerances(tol: float, trace_tol: float) -> None:
    """Both must be shares."""
    for name, value in (("tol", tol), ("trace_tol", trace_tol)):
        if not 0 <= value < 1:
            raise InvalidInput(f"{name} must lie in [0, 1), got {value!r}")


def said_of_factor(factor: Factor, m: int) -> dict[str, object]:
    """The falling trace, the largest residual and how many points fewer than asked for were independent."""
    history: Array = np.array(factor.history)
    said: dict[str, object] = {"history": history, "largest_residual": float(factor.left.max(initial=0.0))}
    if len(factor.chosen) < m:
        said["dropped"] = m - len(factor.chosen)
    return said
