"""Linear programs that minimise a norm of some variables, by HiGHS (Huangfu and Hall 2018).

min  ||a|| + cost'z     subject to   A a + B z <= right,   z >= lower

l1     a = p - m, p, m >= 0:  min sum (p + m) + cost'z          linf     -t <= a_j <= t:  min t + cost'z
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from mercer.arrays import Array

FEASIBLE = 1e-9  # the tolerances of HiGHS


class Optimum(NamedTuple):
    """a (n,), z (k,) and the multipliers (m,) of the rows, which are not negative: all up to tolerances."""

    a: Array
    z: Array
    multipliers: Array


def minimise(
    norm: str, A: Array, B: Any, right: Array, cost: Array, lower: Array, **options: Any
) -> tuple[Optimum | None, Any]:
    """The optimum for A (m, n), B (m, k) dense or sparse, in the norm "l1" or "linf"; None where HiGHS found none.

    Also what HiGHS says of its work.  The simplex method counts its steps, which a limit on them is about.
    """
    m, n = A.shape
    rows = sp.csc_array(A)
    if norm == "l1":
        columns, free = sp.hstack([rows, -rows, sp.csc_array(B)], format="csc"), np.zeros(2 * n)
        objective = np.concatenate((np.ones(2 * n), cost))
    else:
        eye, bound, free = sp.eye_array(n), sp.csc_array(-np.ones((n, 1))), np.append(np.full(n, -np.inf), 0.0)
        blocks = [[rows, None, sp.csc_array(B)], [eye, bound, None], [-eye, bound, None]]
        columns, objective = sp.block_array(blocks, format="csc"), np.concatenate((np.zeros(n), [1.0], cost))
        right = np.concatenate((right, np.zeros(2 * n)))
    lowest = np.concatenate((free, lower))
    exact = {"primal_feasibility_tolerance": FEASIBLE, "dual_feasibility_tolerance": FEASIBLE, **options}
    bounds = np.column_stack((lowest, np.full(lowest.size, np.inf)))
    answer = linprog(objective, columns, right, bounds=bounds, method="highs-ds", options=exact)
    if answer.x is None:
        return None, answer
    x = np.asarray(answer.x, dtype=np.float64)
    a = x[:n] - x[n : 2 * n] if norm == "l1" else x[:n]
    multipliers = -np.asarray(answer.ineqlin.marginals[:m], dtype=np.float64)
    return Optimum(a, x[free.size :], multipliers), answer
