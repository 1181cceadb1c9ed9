"""From a problem to its solution: run the solver that was asked for or that `mercer.planning` chose, and say why.

Where the one chosen comes to the end of its digits, the next one goes on from its point.
"""

import warnings
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.errors import BudgetTooSmall, NotConverged, NotPositiveDefinite
from mercer.planning import Choice, patience, quadratic_solver
from mercer.problems import HardMargin, NuClassification, NuRegression, OneClass, Problem, rescale
from mercer.resources import Resources
from mercer.solvers import catalogue
from mercer.solvers.monitor import Monitor
from mercer.solvers.quadratic import decomposition, interior_point, linear_dual
from mercer.solvers.solution import Solution

INTERIOR_GAP = 1e-9
STALLED_GAP = 1e-5  # at the end of its digits, the method still has answered the question
POLISHING = 1_000_000  # pair steps that may follow it, a few seconds
VANISHING = 1e-12  # a margin below this share of the size of f is rounding: of the radius of the points, a millionth
NEXT = 0.01  # share of a tolerance that the next one may be where it follows from the point found
ROUNDING = 1e-13  # no violation below this share of the size of f can be asked for
SCALELESS = (NuClassification, HardMargin, OneClass)  # no C and no target sets the size of f


class BinaryMachine(NamedTuple):
    """A trained machine: its problem where one was stated, its solution, and the bounds C_i (n,) of its points."""

    problem: Problem | None
    solution: Solution
    box: NDArray[np.float64]


@dataclass(frozen=True)
class WarmStart:
    """The variables (N,) of a solved problem, and the problem without its matrix."""

    problem: Problem
    variables: NDArray[np.float64]

    @classmethod
    def of(cls, problem: Problem, solution: Solution) -> "WarmStart":
        """What a later fit needs of this one."""
        light = copy(problem)
        light._program = replace(problem.program(), gram=None)  # type: ignore[arg-type]  # a start needs no matrix
        light.gram = None  # type: ignore[assignment]  # nor does its problem
        return cls(light, np.asarray(solution.variables))

    def start(self, problem: Problem) -> NDArray[np.float64] | None:
        """A feasible start for `problem`, None when it is of another size or kind."""
        same = type(problem) is type(self.problem) and problem.program().size == self.variables.size
        return rescale(self.variables, self.problem, problem) if same else None


def natural_size(problem: Problem) -> float:
    """The size f would have if all kernel values were those of the diagonal; 0 where the kernel is."""
    program = problem.program()
    return 0.5 * float(np.abs(program.d).sum()) * float(np.mean(np.abs(program.gram.diagonal())))


def margin_of(problem: Problem, solution: Solution) -> tuple[float, float]:
    """The margin rho of a nu-SVC or hard-margin machine, and the size below which it is noise."""
    noise = max(VANISHING * natural_size(problem), float(solution.details.get("violation", 0.0)))
    return float(solution.multipliers["rho"]), noise


def unit_of(problem: Problem, size: float) -> float:
    """The unit in which f is measured: 1 where margin or targets set it, else its natural `size`; never above 1.

    LIBSVM measures the violation of nu-machines in units of kernel values times their number, which says nothing for
    points of small norm.  Its tolerance is kept where it is the stricter one.
    """
    if isinstance(problem, NuRegression):
        return min(1.0, float(problem.y.std())) or 1.0
    if isinstance(problem, SCALELESS):
        return min(1.0, size) or 1.0
    return 1.0


def solve(
    problem: Problem,
    *,
    solver: str,
    tol: float,
    gap_tol: float | None,
    max_iter: int,
    resources: Resources,
    start: WarmStart | None,
    monitor: Monitor | None,
) -> Solution:
    """Solve one problem of the zoo by the solver asked for; "auto" leaves it to `mercer.planning`.

    The decision values of nu-SVC and of the hard margin are f / rho: they are solved until the violation is at most
    `tol` in the unit of rho, again from where they are if need be.
    """
    asked = solver != "auto"
    choice = Choice.asked("solver", solver) if asked else quadratic_solver(problem, resources, bounded=max_iter >= 0)
    if asked and solver != "interior_point":  # which itself says what it lacks, memory or a convex matrix
        catalogue.require(solver, problem)
    automatic = not asked and problem.basis is None

    margin = isinstance(problem, (NuClassification, HardMargin)) and gap_tol is None

    def run(tolerance: float, first: Any, left: int) -> Solution:
        of_margin = (tol, max(NEXT * tolerance, floor)) if margin else None
        found = _run(problem, choice, automatic, tolerance, gap_tol, left, resources, first, monitor, of_margin)
        own = max_iter < 0 and found.stopped == "iterations"  # no bound of the user's: all that could be tried was
        return replace(found, stopped="stalled") if own else found

    begin = None if start is None else start.start(problem)
    size = natural_size(problem) if isinstance(problem, SCALELESS) else 0.0
    floor = ROUNDING * size
    tolerance = max(tol * unit_of(problem, size), floor)
    found = run(tolerance, begin, max_iter)
    if not margin:
        return found
    while found.converged and tolerance > floor and found.details.get("violation", 0.0) > 0.0:
        wanted = max(tol * min(1.0, float(found.multipliers["rho"])), floor)
        if found.details["violation"] <= wanted:
            break
        tolerance = max(wanted, NEXT * tolerance)  # rho itself is not known better than the last tolerance
        # More steps than this would follow numerical noise: rho is too small for tol.
        most = patience(problem) or max(POLISHING, found.iterations // 2)
        left = most if max_iter < 0 else max(max_iter - found.iterations, 0)
        found = _after(found, run(tolerance, found.variables, left))
    return found


def _run(
    problem: Problem,
    choice: Choice,
    automatic: bool,
    tol: float,
    gap_tol: float | None,
    max_iter: int,
    resources: Resources,
    first: Any,
    monitor: Monitor | None,
    of_margin: tuple[float, float] | None = None,
) -> Solution:
    """One run of one solver, and of the next one where the first was mercer's choice and ends before the optimum."""
    options: dict[str, Any] = {"gap_tol": gap_tol, "monitor": monitor, "start": first}
    if choice.name not in ("decomposition", "interior_point"):
        module = catalogue.by_name(choice.name)
        return _because(module.solve(problem, tol=tol, max_iter=max_iter, **options), choice.reason)
    if choice.name == "decomposition":
        most = patience(problem) if automatic and max_iter < 0 else None
        steps = max_iter if most is None else most
        found = decomposition.solve(problem, tol=tol, max_iter=steps, of_margin=of_margin, **options)
        if most is None or found.stopped != "iterations":
            return _because(found, choice.reason)
        second = Choice("interior_point", f"{most} pair steps did not reach the optimum")
        return _after(found, _run(problem, second, True, tol, gap_tol, max_iter, resources, found.variables, monitor))
    try:
        # Nobody asked for more digits than tol has: they serve to tell who is at a bound.
        factor = problem.gram.factor() if hasattr(problem.gram, "factor") else None
        violation = tol if automatic and gap_tol is None and factor is not None else None
        found = _interior_point(problem, gap_tol, max_iter, resources, first, monitor, violation)
        found = _because(found, choice.reason)
    except (NotPositiveDefinite, BudgetTooSmall) as error:
        if isinstance(error, BudgetTooSmall) and problem.basis is not None:
            raise BudgetTooSmall(
                f"basis functions need the interior point method: {str(error).partition(':')[0]}; raise memory, give "
                "approximation=Nystrom(...), or use LSSVR or LSSVC, which take a basis at any size"
            ) from None
        if not automatic:
            raise
        return _because(decomposition.solve(problem, tol=tol, max_iter=max_iter, **options), "any kernel matrix")
    if not automatic or found.stopped != "stalled":
        return found
    most = POLISHING if max_iter < 0 and np.isfinite(found.primal) else max_iter
    return _polished(problem, found, tol, gap_tol, most, monitor)


def _polished(
    problem: Problem, found: Solution, tol: float, gap_tol: float | None, most: int, monitor: Monitor | None
) -> Solution:
    """Go on from where the interior point method has come to the end of its digits; the better of the two."""
    first = found.variables if np.isfinite(found.primal) else None
    options: dict[str, Any] = {"tol": tol, "gap_tol": gap_tol, "start": first, "monitor": monitor}
    reason = "the interior point method came to the end of its digits"
    if linear_dual.accepts(problem):
        return _because(linear_dual.solve(problem, max_iter=most, **options), reason)
    other = _because(decomposition.solve(problem, max_iter=most, **options), reason)
    return found if found.gap < other.gap else other


def _interior_point(
    problem: Problem,
    gap_tol: float | None,
    max_iter: int,
    resources: Resources,
    first: Any,
    monitor: Monitor | None,
    violation: float | None,
) -> Solution:
    """It converges in the gap, and ten more digits cost it a few iterations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)  # said once, for all machines, by the estimator
        found = interior_point.solve(
            problem,
            tol=INTERIOR_GAP if gap_tol is None else gap_tol,
            start=first,
            monitor=monitor,
            max_iter=max_iter,
            memory=resources.memory,
            violation=violation,
        )
    if found.stopped == "stalled" and _answered(found, gap_tol):
        return replace(found, stopped="converged")
    return found


def _answered(found: Solution, gap_tol: float | None) -> bool:
    """Whether a method at the end of its digits has answered the question."""
    return found.relative_gap <= (STALLED_GAP if gap_tol is None else gap_tol)


def _after(before: Solution, found: Solution) -> Solution:
    """The solution that went on from another one, with the steps, the time and the history of both."""
    later = (
        record._replace(iteration=record.iteration + before.iterations, seconds=record.seconds + before.seconds)
        for record in found.history
    )
    return replace(
        found,
        iterations=found.iterations + before.iterations,
        seconds=found.seconds + before.seconds,
        history=(*before.history, *later),
    )


def _because(found: Solution, reason: str) -> Solution:
    """The solution, with the reason for its solver."""
    return replace(found, details={**found.details, "reason": reason})
