"""Linear-programming machines by HiGHS, with a certificate of mercer's own.

The problem of `mercer.problems.linear_program` becomes a linear program (`mercer.solvers.norm_programs`) with one row
for each mistake,

    y_i (K a + b)_i + xi_i >= 1     for labels          |y_i - (K a + b)_i| - xi_i <= epsilon     for real targets

and the multipliers of those rows are the dual variables delta (Huangfu and Hall 2018).  What HiGHS returns is feasible
up to its tolerances only: delta is put into its box, onto its equality, and made smaller until the constraint of the
dual norm holds in float64, and primal and dual value are computed from there.
"""

import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.arrays import Array
from mercer.errors import BudgetTooSmall
from mercer.problems.linear_program import LinearProgram
from mercer.resources import available, parse, show
from mercer.solvers.contract import Acceptance, require
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.norm_programs import minimise
from mercer.solvers.solution import Solution, Stopped

NAME = "linear programming"
BYTES = 64  # for each kernel value: the matrix, its copies with both signs, and the copies of HiGHS
SHARE = 0.7  # of the free memory, where no budget is stated


def accepts(problem: Any) -> Acceptance:
    """Linear programs."""
    if not isinstance(problem, LinearProgram):
        return Acceptance(False, f"HiGHS solves linear programs, not {type(problem).__name__}")
    return Acceptance(True, f"a linear program of {problem.n} points")


def solve(
    problem: LinearProgram,
    *,
    tol: float = 1e-6,
    start: Solution | None = None,
    monitor: Monitor | None = None,
    max_iter: int = -1,
    max_time: float | None = None,
    memory: int | str | None = None,
) -> Solution:
    """Solve, and certify to a relative gap of `tol`; a `start` that has that gap already is the answer."""
    require(accepts(problem), NAME)
    began, watch = time.perf_counter(), listening(monitor)
    need, have = BYTES * problem.n**2, int(SHARE * available()) if memory is None else parse(memory)
    if need > have:
        raise BudgetTooSmall(
            f"a linear program of {problem.n} points needs {show(need)}, the budget is {show(have)}: raise memory, or "
            "train on fewer points"
        )
    with watch:
        if start is not None and start.coefficients.shape == (problem.n,):
            known = _certified(problem, start.coefficients, float(start.bias), start.variables, 0, "converged", began)
            if known.relative_gap <= tol:
                watch.watch(0, known.primal, known.dual)
                return known
        limits = {"maxiter": max_iter if max_iter >= 0 else None, "time_limit": max_time}
        read, answer = _minimise(problem, {name: limit for name, limit in limits.items() if limit is not None})
        stopped: Stopped = "converged" if answer.status == 0 else ("iterations" if max_time is None else "time")
        a, bias, delta = read or (np.zeros(problem.n), problem.best_constant(), np.zeros(problem.n))
        found = _certified(problem, a, bias, delta, int(answer.nit), stopped, began)
        watch.watch(int(answer.nit), found.primal, found.dual)
        if found.stopped == "converged" and found.relative_gap > tol:
            found = _certified(problem, a, bias, delta, int(answer.nit), "stalled", began)
    return found


def _minimise(problem: LinearProgram, options: dict[str, Any]) -> tuple[tuple[Array, float, Array] | None, Any]:
    """Coefficients (n,), bias and multipliers (n,), None where HiGHS found none, and what it says of its work."""
    used = np.flatnonzero(problem.costs > 0)
    K, y, slack = np.asarray(problem.gram.dense(), dtype=np.float64)[used], problem.y[used], problem.costs[used]
    # A row for each mistake: sign (K a + b) - xi <= right.
    if problem.loss.classification:
        sign, rows, right = -y, -y[:, None] * K, -np.ones(used.size)
    else:
        epsilon = float(getattr(problem.loss, "epsilon", 0.0))
        sign, rows, right = (
            np.repeat((-1.0, 1.0), used.size),
            np.vstack((-K, K)),
            np.concatenate((epsilon - y, epsilon + y)),
        )
        slack = np.concatenate((slack, slack))
    others = sp.hstack([sp.csc_array(sign[:, None]), -sp.eye_array(right.size)], format="csc")
    cost, lower = np.append(0.0, slack), np.append(-np.inf, np.zeros(right.size))
    found, answer = minimise(problem.norm, rows, others, right, cost, lower, **options)
    if found is None:
        return None, answer
    delta = np.zeros(problem.n)
    delta[used] = (-sign * found.multipliers).reshape(-1, used.size).sum(axis=0)
    return (found.a, float(found.z[0]), delta), answer


class _Exact:
    """Products with kernel values computed in float64, whatever the operator holds."""

    def __init__(self, gram: Any) -> None:
        self.gram = gram

    def dot(self, v: Array) -> Array:
        """K v (n,)."""
        support = np.flatnonzero(v)
        if hasattr(self.gram, "exact_dot"):
            return np.asarray(self.gram.exact_dot(None, support, v[support]), dtype=np.float64)
        return np.asarray(self.gram.dot(v), dtype=np.float64)


def _certified(
    problem: LinearProgram, a: Array, bias: float, delta: Array, iterations: int, stopped: Stopped, began: float
) -> Solution:
    exact: Any = _Exact(problem.gram)
    delta = problem.feasible(delta, exact)
    certificate = problem.certificate(a, bias, delta, exact.dot(a))
    return Solution.certified(
        certificate,
        a,
        delta,
        solver=NAME,
        iterations=iterations,
        stopped=stopped,
        seconds=time.perf_counter() - began,
        details={"reason": "HiGHS, the dual simplex method"},
    )
