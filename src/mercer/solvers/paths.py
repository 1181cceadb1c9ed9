"""Paths: one kind of problem solved for a row of parameters, each start taken from the solution before.

Going from C to C' the variables are multiplied by C'/C, for another width of the kernel they stay; a start that is
worse than f = 0 in the new problem is rejected (Schoelkopf and Smola 2002, section 10.1.2; `mercer.problems.restart`).
From large C downwards variables at their bounds tend to stay there.

What is known of an optimum R(C) = min over f of R[f, C], R[f, C] = C L[f] + 1/2 ||f||^2, holds every solution of a path
in C to account: for C' > C

    R[f_C, C'] >= R(C') >= R[f_C', C] >= R(C)                    (10.23)
    R(C') <= R[f_C, C'] <= (C'/C) R[f_C, C]                      (10.24)
    (C/C') R(C') <= R(C) <= R(C')                                (10.25)

and, in lambda = 1/(C n), where R is divided by C n, R(lambda') >= R(lambda) for lambda' > lambda (problem 10.3), which
is the left half of (10.25).  With certificates D <= R(C) <= P of two solutions each side becomes a statement about
computed numbers; where one fails, a certificate is wrong, and the path raises instead of going on.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.errors import ContradictoryCertificates, InvalidInput
from mercer.problems import Problem, RegularisedRisk, rescale
from mercer.solvers import catalogue
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.solution import Solution

ROUNDING = 1e-9  # share of the values compared that rounding may take


@dataclass(frozen=True, eq=False)
class SolvedPath:
    """The solutions along a row of values, in the order they were solved.

    warm : whether each began from the solution before; False where there was none or it was worse than f = 0.
    seconds : for each of them, its start included.
    """

    values: tuple[float, ...]
    solutions: tuple[Solution, ...]
    warm: tuple[bool, ...]
    seconds: tuple[float, ...]

    @property
    def iterations(self) -> int:
        """Steps of all solutions together."""
        return sum(solution.iterations for solution in self.solutions)

    @property
    def objectives(self) -> tuple[float, ...]:
        """Primal value of each."""
        return tuple(solution.primal for solution in self.solutions)


def path(
    make: Callable[[float], Problem],
    values: Sequence[float],
    *,
    solver: str = "decomposition",
    warm: bool = True,
    monitor: Monitor | None = None,
    **options: Any,
) -> SolvedPath:
    """Solve make(value) for every value in its order, by any solver of `mercer.solvers.available()`.

    `make` states the problem at a value: of C, of a width, of anything that leaves the number of variables as it is.
    `options` (tol, gap_tol, max_iter) go to the solver.  `warm=False` starts each from nothing, to compare with.
    Problems that differ in C alone are held to the inequalities at the head of this file.
    """
    if not len(values):
        raise InvalidInput("values must hold at least one number")
    listener = listening(monitor)
    solutions: list[Solution] = []
    started, seconds = [], []
    before: Problem | None = None
    for value in values:
        began = time.perf_counter()
        problem = make(float(value))
        module = catalogue.require(solver, problem)
        start = None
        if warm and before is not None:
            start = warm_start(solutions[-1], before, problem)
        solutions.append(module.solve(problem, start=start, monitor=monitor, **options))
        started.append(start is not None)
        seconds.append(time.perf_counter() - began)
        if before is not None and comparable(before, problem):
            hold_to_account(before, solutions[-2], problem, solutions[-1])
        before = problem
        if not listener.go_on():
            break
    reached = len(solutions)
    return SolvedPath(tuple(map(float, values[:reached])), tuple(solutions), tuple(started), tuple(seconds))


def warm_start(solution: Solution, before: Problem, problem: Problem) -> Any:
    """Variables (N,) to begin `problem` from, None where f = 0 is the better start."""
    start = rescale(np.asarray(solution.variables), before, problem)
    return None if np.array_equal(start, problem.program().start()) else start


def comparable(before: Problem, problem: Problem) -> bool:
    """Whether two problems differ in C alone: the same points, targets, loss, bias and weights."""
    return (
        isinstance(before, RegularisedRisk)
        and isinstance(problem, RegularisedRisk)
        and before.gram is problem.gram
        and before.loss == problem.loss
        and before.bias == problem.bias
        and before.basis is None
        and problem.basis is None
        and np.array_equal(before.y, problem.y)
        and np.allclose(before.box / before.C, problem.box / problem.C, rtol=1e-12)
    )


def hold_to_account(one: Problem, at_one: Solution, other: Problem, at_other: Solution) -> None:
    """Raise where the certificates of two problems that differ in C contradict (10.23) to (10.25)."""
    (low, at_low), (high, at_high) = sorted(((one, at_one), (other, at_other)), key=lambda pair: pair[0].C)
    ratio = high.C / low.C
    statements = {
        "(10.23) R(C) <= R[f_C', C]": (at_low.dual, _value(low, at_high)),
        "(10.24) R(C') <= R[f_C, C']": (at_high.dual, _value(high, at_low)),
        "(10.25) R(C) <= R(C')": (at_low.dual, at_high.primal),
        "(10.25) R(C') <= (C'/C) R(C)": (at_high.dual, ratio * at_low.primal),
    }
    for name, (lower, upper) in statements.items():
        if lower > upper + ROUNDING * max(abs(lower), abs(upper)):
            raise ContradictoryCertificates(
                f"{name} does not hold for C = {low.C:g} and C' = {high.C:g}: {lower:.12g} > {upper:.12g}. One of the "
                "two certificates is wrong: is the kernel positive definite, and the matrix the same for both?"
            )


def _value(problem: Problem, solution: Solution) -> float:
    """The objective of `problem` at the function of a solution of another one on the same points."""
    gram: Any = problem.gram
    f0 = solution.details.get("f0")
    if getattr(gram, "dtype", np.float64) != np.float64:  # errors of single precision are no contradictions
        f0 = gram.exact_dot(None, None, solution.coefficients)
    return problem.primal(solution.coefficients, float(solution.bias), f0=f0, **solution.multipliers)
