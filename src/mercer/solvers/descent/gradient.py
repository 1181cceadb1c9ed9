"""Steepest descent on the primal objective, in function space and in coefficient space.

With r(q) the response of the losses, r_j in the slopes of phi_j at q_j = (A'h)_j - f0_j - linear_j, and h the best
multipliers of f0 (the bias, for which r satisfies A r = d), the gradient of the primal objective in the space of the
kernel is f0 - sum_j r_j k(x_j, .), so that a step of length t is

    function space        s <- s + t (r - s)                the coefficients move towards the response
    coefficient space     c <- c + t K~ (r - c)             the same direction, preconditioned by K~

(Schoelkopf and Smola 2002, section 10.6.1, equations 10.94 to 10.98 with the lost 1/m restored; here in units of C,
where lambda = 1).  For convex losses and any subgradient

    P(f) - min P  <=  1/2 ||gradient||^2  =  1/2 (r - s)' K~ (r - s)

(theorem 10.5, whose printed constant is too small by lambda), which is reported with every iterate.

A step in function space with 0 <= t <= 1 is a convex combination of feasible points: every iterate is feasible for the
dual, where the method is that of conditional gradients and its gap the duality gap (Bach 2015).  Where all losses are
smooth t minimises P along the line, and P falls in every step.  Where they have kinks steepest descent can stop short
of the optimum, and t minimises the dual objective instead, which converges at the rate of 1/iterations.  In coefficient
space the losses must be smooth.
"""

from collections.abc import Callable
from typing import Any, Literal, Unpack

from mercer import threads
from mercer.arrays import Array
from mercer.errors import InvalidInput
from mercer.problems.base import Problem
from mercer.problems.program import QuadraticProgram
from mercer.solvers.contract import Acceptance, require
from mercer.solvers.descent.run import Limits, Run, around_zero, bounded_or_smooth
from mercer.solvers.solution import Solution

Space = Literal["function", "coefficients"]

NAME = "gradient"
ACCEPTS = "support vector problems whose losses are bounded or smooth; any bias; no basis functions"
SECTION = "Schoelkopf and Smola 2002, section 10.6.1"

LENGTH = 1e-3  # share of a step length to which it is found
DOUBLINGS = 60  # of the longest step tried in coefficient space


def accepts(problem: Any) -> Acceptance:
    """Programs whose variables are bounded or have a ridge, and whose equalities are sums."""
    answer = bounded_or_smooth(problem, "gradient descent", ", where it has no gradient: give a finite C")
    if answer and smooth(problem.program()):
        return Acceptance(True, "smooth losses: P falls in every step")
    return answer


def smooth(program: QuadraticProgram) -> bool:
    """Whether all losses have a gradient everywhere."""
    return bool((program.ridge[program.upper > program.lower] > 0.0).all())


def solve(
    problem: Problem,
    *,
    tol: float = 1e-3,
    space: Space = "function",
    step: float | None = None,
    **limits: Unpack[Limits],
) -> Solution:
    """Descend to a relative duality gap of `gap_tol`, or of `tol` where that is None.

    step : a fixed length in place of the line search; one that is too large is found out, and the run ends "diverged".
    """
    require(accepts(problem), NAME)
    if space not in ("function", "coefficients"):
        raise InvalidInput(f"space must be 'function' or 'coefficients', got {space!r}")
    if step is not None and not step > 0.0:
        raise InvalidInput(f"step must be positive, got {step}")
    program = problem.program()
    if space == "coefficients" and not smooth(program):
        raise InvalidInput(
            "space='coefficients' needs a smooth loss, such as the squared hinge or Huber's: with kinks use 'function'"
        )
    run = Run(problem, NAME, tol=tol, **limits)
    s = run.start()
    with threads.one_blas_thread(), run.monitor:
        (_in_function_space if space == "function" else _in_coefficient_space)(run, s, step)
        return run.solution(space=space)


def response(program: QuadraticProgram, g: Array) -> tuple[float, Array]:
    """P without the norm, and the response r (N,) with A r = d, at g = K~ c (n,) and its best multipliers."""
    h = program.best_multipliers(g)
    q = program.slack_values(g, h)
    phi, r = program.costs_and_response(q)
    program.share_ties(q, r)
    return float(phi.sum()) - (float(program.d @ h) if h.size else 0.0), program.project(r)


def _in_function_space(run: Run, s: Array, step: float | None) -> None:
    program = run.program
    g = program.values(program.coefficients(s))
    while run.goes_on():
        costs, r = response(program, g)
        toward = r - s
        moved = program.coefficients(toward)
        change = program.values(moved)
        primal = 0.5 * float(program.coefficients(s) @ g) + costs
        bound = 0.5 * float(moved @ change)
        if run.due:
            feasible = s if step is None or step <= 1.0 else program.project(s)
            values = program.plain_values(g, feasible) if feasible is s else None
            if not run.look(feasible, values, merit=_merit(program, s, g, primal, step), bound=bound):
                break
        if step is not None:
            t = step
        elif smooth(program):
            t = _longest(_slope_along(program, program.coefficients(s), g, moved, change), 1.0)
        else:
            t = _dual_step(program, s, g, toward, 2.0 * bound)
        s, g = s + t * toward, g + t * change


def _in_coefficient_space(run: Run, s: Array, step: float | None) -> None:
    program = run.program
    c = program.coefficients(s)
    g = program.values(c)
    while run.goes_on():
        costs, r = response(program, g)
        answer = program.coefficients(r)
        values = program.values(answer)
        if run.due:
            primal = 0.5 * float(c @ g) + costs
            difference = c - answer
            bound = 0.5 * float(difference @ (g - values))
            if not run.look(r, program.plain_values(values, r), merit=primal, bound=bound):
                break
        toward = values - g
        change = program.values(toward)
        t = step if step is not None else _expanded(_slope_along(program, c, g, toward, change))
        c, g = c + t * toward, g + t * change


def _merit(program: QuadraticProgram, s: Array, g: Array, primal: float, step: float | None) -> float:
    """What a step lowers: P by the line search on it and by a fixed step that is small enough, else minus D."""
    if step is not None or smooth(program):
        return primal
    return program.objective(s, program.plain_values(g, s))


def _slope_along(
    program: QuadraticProgram, c: Array, g: Array, moved: Array, change: Array
) -> Callable[[float], float]:
    """Slope of P in t at c + t moved (n,) with the best multipliers there; g = K~ c, change = K~ moved."""

    def slope(t: float) -> float:
        _, r = response(program, g + t * change)
        return float(change @ (c + t * moved - program.coefficients(r)))

    return slope


def _longest(slope: Callable[[float], float], most: float) -> float:
    """The step length in (0, most] at which a convex function with this slope is smallest."""
    if slope(most) <= 0.0:
        return most
    low, high = around_zero(slope, most, LENGTH)
    return low if low > 0.0 else high


def _expanded(slope: Callable[[float], float]) -> float:
    """The same without a known longest step."""
    most = 1.0
    for _ in range(DOUBLINGS):
        if slope(most) > 0.0:
            break
        most *= 2.0
    return _longest(slope, most)


def _dual_step(program: QuadraticProgram, s: Array, g: Array, toward: Array, energy: float) -> float:
    """The step in [0, 1] towards the response at which the dual objective is best."""
    gradient = program.gradient(s, program.plain_values(g, s))
    curvature = energy + float(program.ridge @ (toward * toward))
    gain = -float(gradient @ toward)
    return min(1.0, gain / curvature) if curvature > 0.0 else 1.0
