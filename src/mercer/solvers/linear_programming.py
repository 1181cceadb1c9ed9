"""Linear-programming machines by HiGHS, with a certificate of mercer's own.

For each norm the problem of `mercer.problems.linear_program` becomes a linear program with one row for each mistake,

    l1     a = p - m, p, m >= 0:  min sum (p + m) + sum C xi          linf     -t <= a_j <= t:  min t + sum C xi
    y_i (K a + b)_i + xi_i >= 1     for labels          |y_i - (K a + b)_i| - xi_i <= epsilon     for real targets

and the multipliers of those rows are the dual variables delta (Huangfu and Hall 2018).  What HiGHS returns is feasible
up to its tolerances only: delta is put into its box, onto its equality, and made smaller until the constraint of the
dual norm holds in float64, and primal and dual value are computed from there.
"""

import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from mercer.arrays import Array
from mercer.errors import BudgetTooSmall
from mercer.problems.linear_program import LinearProgram
from mercer.resources import available, parse, show
from mercer.solvers.contract import Acceptance, require
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.solution import Solution, Stopped

NAME = "linear programming"
FEASIBLE = 1e-9  # the tolerances of HiGHS
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
        K = np.asarray(problem.gram.dense(), dtype=np.float64)
        answer = _linprog(problem, K, max_iter, max_time)
        stopped: Stopped = "converged" if answer.status == 0 else ("iterations" if max_time is None else "time")
        if answer.x is None:
            a, bias, delta = np.zeros(problem.n), problem.best_constant(), np.zeros(problem.n)
        else:
            a, bias, delta = _read(problem, answer)
        found = _certified(problem, a, bias, delta, int(answer.nit), stopped, began)
        watch.watch(int(answer.nit), found.primal, found.dual)
        if found.stopped == "converged" and found.relative_gap > tol:
            found = _certified(problem, a, bias, delta, int(answer.nit), "stalled", began)
    return found


def _linprog(problem: LinearProgram, K: Array, max_iter: int, max_time: float | None) -> Any:
    n, y, norm = problem.n, problem.y, problem.norm
    used = np.flatnonzero(problem.costs > 0)
    if problem.loss.classification:
        rows = -y[used, None] * np.column_stack((K[used], np.ones(used.size)))
        right, slack = -np.ones(used.size), problem.costs[used]
    else:
        one = np.column_stack((K[used], np.ones(used.size)))
        rows = np.vstack((-one, one))
        epsilon = float(getattr(problem.loss, "epsilon", 0.0))
        right = np.concatenate((epsilon - y[used], epsilon + y[used]))
        slack = np.concatenate((problem.costs[used], problem.costs[used]))
    mistakes = -sp.eye_array(right.size, format="csc")
    values, bias = rows[:, :n], rows[:, n:]
    if norm == "l1":
        A = sp.hstack([sp.csc_array(values), sp.csc_array(-values), sp.csc_array(bias), mistakes], format="csc")
        cost = np.concatenate((np.ones(2 * n), [0.0], slack))
        bounds = np.zeros((cost.size, 2))
        bounds[:, 1] = np.inf
        bounds[2 * n, 0] = -np.inf
    else:
        eye, column = sp.eye_array(n), sp.csc_array(-np.ones((n, 1)))
        above = sp.csc_array((right.size, 1))
        A = sp.block_array(
            [
                [sp.csc_array(values), above, sp.csc_array(bias), mistakes],
                [eye, column, None, None],
                [-eye, column, None, None],
            ],
            format="csc",
        )
        cost = np.concatenate((np.zeros(n), [1.0, 0.0], slack))
        right = np.concatenate((right, np.zeros(2 * n)))
        bounds = np.zeros((cost.size, 2))
        bounds[:, 0], bounds[:, 1] = -np.inf, np.inf
        bounds[n + 2 :, 0] = 0.0
    options: dict[str, Any] = {"primal_feasibility_tolerance": FEASIBLE, "dual_feasibility_tolerance": FEASIBLE}
    if max_iter >= 0:
        options["maxiter"] = max_iter
    if max_time is not None:
        options["time_limit"] = max_time
    # The simplex method counts its steps, which a limit on them is about.
    return linprog(cost, A, right, bounds=bounds, method="highs-ds", options=options)


def _read(problem: LinearProgram, answer: Any) -> tuple[Array, float, Array]:
    """Coefficients (n,), bias and multipliers (n,) of what HiGHS found."""
    n, used = problem.n, np.flatnonzero(problem.costs > 0)
    x = np.asarray(answer.x, dtype=np.float64)
    a, bias = (x[:n] - x[n : 2 * n], x[2 * n]) if problem.norm == "l1" else (x[:n], x[n + 1])
    beta = -np.asarray(answer.ineqlin.marginals, dtype=np.float64)
    delta = np.zeros(n)
    if problem.loss.classification:
        delta[used] = problem.y[used] * beta[: used.size]
    else:
        delta[used] = beta[: used.size] - beta[used.size : 2 * used.size]
    return a, float(bias), delta


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
