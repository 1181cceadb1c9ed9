"""One variable after the other: successive over-relaxation and AdaTron, for a penalised bias or none.

Without equalities every variable can move alone.  A sweep visits all of them in turn, each seeing the moves before it,

    s_j <- clip( s_j - step_j (K~ s + linear + ridge s)_j ),

with step_j = omega / (K~_jj + ridge_j) for successive over-relaxation (Mangasarian and Musicant 1999), which converges
for every 0 < omega < 2 and exactly minimises along a variable at omega = 1, and one learning rate for all in AdaTron
(Friess, Cristianini and Campbell 1998; Schoelkopf and Smola 2002, section 10.6.1), which therefore must stay below
2 / max (K~_jj + ridge_j).  Moved all at once from the same gradient (Jacobi) the variables may overshoot together: the
objective then rises, and the run ends "diverged".

Every sweep has a random order of its own: in a fixed order strongly coupled variables undo each other's moves, and
sweeps can be more by a factor of n (Sun and Ye 2021).  On 400 points in 20 dimensions with a wide Gaussian and a
penalised bias the gap after 54 sweeps was 0.06 in the order given and 1e-5 in random orders.
"""

from typing import Any

import numpy as np

from mercer import threads
from mercer.arrays import Array, Index
from mercer.compiled import loop
from mercer.errors import InvalidInput
from mercer.problems.base import Problem
from mercer.problems.program import QuadraticProgram
from mercer.solvers.contract import Acceptance
from mercer.solvers.descent.run import Run
from mercer.solvers.solution import Solution

STRIP_VALUES = 1 << 20  # kernel values fetched at a time
REFRESH = 50  # sweeps after which the gradient is computed anew, free of the rounding of its updates


@loop
def sweep(
    rows: Any, order: Any, point: Any, steps: Any, linear: Any, ridge: Any, lower: Any, upper: Any, s: Any, g: Any
) -> None:
    """Visit the variables `order` (m,), whose kernel rows are given (m, n); s (N,) and g = K~ s (n,) change."""
    for i in range(order.size):
        j = order[i]
        value = s[j] - steps[j] * (g[point[j]] + linear[j] + ridge[j] * s[j])
        value = min(max(value, lower[j]), upper[j])
        change = value - s[j]
        if change != 0.0:
            s[j] = value
            for k in range(g.size):
                g[k] += change * rows[i, k]


def without_equalities(problem: Any, method: str) -> Acceptance:
    """Whether every variable of the problem can move alone."""
    if not isinstance(problem, Problem):
        return Acceptance(False, f"{method} takes support vector problems, not {type(problem).__name__}")
    if problem.program().d.size:
        return Acceptance(
            False,
            "a free bias or margin is an equality, and one variable cannot move alone: use bias='penalised' or 'none'",
        )
    return Acceptance(True, "every variable can move alone")


def second_derivatives(program: QuadraticProgram) -> Array:
    """K~_jj + ridge_j (N,), one where a variable has none and the objective is linear in it."""
    diagonal = np.asarray(program.gram.diagonal(), dtype=np.float64) + program.constant
    found = diagonal[program.point] + program.ridge
    return np.where(found > 0.0, found, 1.0)


def relax(run: Run, steps: Array, *, seed: int = 0, simultaneous: bool = False, **details: Any) -> Solution:
    """Sweep with these steps (N,) until the run ends; an iteration is a sweep over all variables."""
    program, s, random = run.program, run.start(), np.random.default_rng(seed)
    g = program.values(program.coefficients(s))
    with threads.one_blas_thread(), run.monitor:
        while run.goes_on():
            if run.due:
                f0 = program.plain_values(g, s)
                if not run.look(s, f0, merit=program.objective(s, f0)):
                    break
            if simultaneous:
                moved = s - steps * program.gradient(s, program.plain_values(g, s))
                s = np.clip(moved, program.lower, program.upper)
            else:
                _visit_all(program, steps, random.permutation(program.size), s, g)
            if simultaneous or run.iterations % REFRESH == 0:
                g = program.values(program.coefficients(s))
        return run.solution(**details)


def _visit_all(program: QuadraticProgram, steps: Array, order: Index, s: Array, g: Array) -> None:
    """One sweep over the variables in this order (N,); s and g change."""
    height = max(1, STRIP_VALUES // program.n)
    for begin in range(0, program.size, height):
        some = order[begin : begin + height]
        rows = np.ascontiguousarray(program.gram.block(program.point[some], None), dtype=np.float64)
        if program.constant:
            rows = rows + program.constant
        sweep(rows, some, program.point, steps, program.linear, program.ridge, program.lower, program.upper, s, g)


def checked_factor(name: str, value: float, limit: float) -> float:
    """A step factor between zero and the limit at which the method stops to converge."""
    value = float(value)
    if not 0.0 < value < limit:
        raise InvalidInput(f"{name} = {value:.6g} does not make the method converge: it must lie in (0, {limit:.6g})")
    return value
