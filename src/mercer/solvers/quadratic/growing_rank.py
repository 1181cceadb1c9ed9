"""Interior point on a low rank that grows while variables settle at their bounds.

K~ is replaced by the first columns of its pivoted Cholesky factor, which the interior point method works with at
n p^2 operations; then variables that lie at a bound, farthest from where they would leave it, are fixed there, and the
same memory holds a factor of higher rank for the points that are left (Schoelkopf and Smola 2002, section 10.3.4).
The fixed ones act on the others through their true kernel values, and once the rank is that of the points left, the
program on these is exact.  Fixed variables that would rather move come back.

The approximate variables are feasible, so that with their true values K c they have a certificate of the problem as
stated: as low-rank K_r <= K, the objective at them with K is above the minimum with K, and the minimum with K_r below.
"""

import warnings
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from mercer import dense, threads
from mercer.errors import NotConverged
from mercer.gram import LowRankGram
from mercer.problems.base import Problem
from mercer.problems.program import QuadraticProgram
from mercer.solvers.contract import Acceptance, require
from mercer.solvers.descent.run import Limits, Run
from mercer.solvers.quadratic import interior_point
from mercer.solvers.solution import Solution

Array = NDArray[np.float64]
Index = NDArray[np.intp]

NAME = "low_rank_interior_point"
ACCEPTS = "boxes and fixed sums of groups of variables, with a positive definite kernel"
SECTION = "Schoelkopf and Smola 2002, section 10.3.4"

FIRST_RANK, FACTOR = 50, 2  # of the factor, and by how much it grows from round to round
KEPT = 2.0  # variables that stay in play for each one that is inside its bounds
DIGITS = 1e-14  # of the trace that the factor leaves out: then it is the matrix
ACCURACY = 1e-9  # relative gap of the programs inside


def accepts(problem: Any) -> Acceptance:
    """Programs whose equalities are sums, with finite bounds or ridges, and a positive definite kernel."""
    if not isinstance(problem, Problem):
        return Acceptance(False, f"it takes support vector problems, not {type(problem).__name__}")
    if problem.program().groups is None:
        return Acceptance(False, "basis functions are equality rows: use interior_point")
    kernel = getattr(problem.gram, "kernel", None)
    if kernel is not None and not getattr(kernel, "positive_definite", True):
        return Acceptance(False, f"{kernel!r} need not be positive definite, and has no Cholesky factor")
    return Acceptance(True, "the factor grows as variables settle")


def solve(
    problem: Problem,
    *,
    tol: float = 1e-6,
    rank: int = FIRST_RANK,
    **limits: Unpack[Limits],
) -> Solution:
    """Solve to a relative duality gap of `gap_tol`, or of `tol`, with the true kernel; an iteration is a factor."""
    require(accepts(problem), NAME)
    program = problem.program()
    run = Run(problem, NAME, tol=tol, **limits)
    s = run.start()
    active = np.flatnonzero(program.upper > program.lower)
    ranks: list[int] = []
    with threads.blas_threads(program.n), run.monitor:
        run.look(s)
        while run.stopped is None and run.goes_on() and active.size:
            s, used, exact = _round(program, s, active, rank)
            ranks.append(used)
            g = program.values(program.coefficients(s))
            run.look(s, g - program.constant * float(s.sum()) if program.constant else g, rank=used)
            if run.stopped is None:
                active = _in_play(program, s, g, active if not exact else None)
                rank *= FACTOR
        return run.solution(ranks=tuple(ranks))


def _round(program: QuadraticProgram, s: Array, active: Index, rank: int) -> tuple[Array, int, bool]:
    """The minimum over the active variables with a factor of this rank; whether the factor is the matrix."""
    points, place = np.unique(program.point[active], return_inverse=True)
    rest = s.copy()
    rest[active] = 0.0
    outside = program.values(program.coefficients(rest))
    G, left = _factor(program.gram, points, min(rank, points.size))
    assert program.groups is not None
    inner = QuadraticProgram(
        LowRankGram.from_factors(G),
        place.astype(np.intp),
        program.lower[active],
        program.upper[active],
        program.linear[active] + outside[program.point[active]],
        program.ridge[active],
        program.groups[active],
        program.d - program.sums(rest),
        None,
        program.constant,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)  # the certificate is that of the outer problem
        found = interior_point.solve(inner, tol=ACCURACY)
    after = rest.copy()
    after[active] = found.variables
    return program.project(after), G.shape[1], left <= DIGITS or G.shape[1] == points.size


def _factor(gram: Any, points: Index, rank: int) -> tuple[Array, float]:
    """The first columns (m, rank) of the pivoted Cholesky factor on some points, and the share of the trace left."""

    def row(i: int, out: Array) -> None:
        out[...] = np.asarray(gram.block(points[i : i + 1], points))[0]

    factor = dense.PartialCholesky(np.asarray(gram.diagonal(), dtype=np.float64)[points], row, rank, np.float64)
    trace = float(factor.left.sum())
    factor.grow_largest(rank, DIGITS * trace, 0.0)
    return np.ascontiguousarray(factor.V.T), max(0.0, float(factor.left.sum())) / max(trace, np.finfo(float).tiny)


def _in_play(program: QuadraticProgram, s: Array, g: Array, before: Index | None) -> Index:
    """The variables for the next round: those inside their bounds, those that violate, and the nearest to either.

    `before` are those of this round while the factor was not yet the matrix: only then are more of them let go.
    """
    q = program.slack_values(g, program.best_multipliers(g)) - program.ridge * s
    movable = program.upper > program.lower
    inside = movable & (program.lower < s) & (s < program.upper)
    # How far a variable at a bound is from wanting to leave it; negative where it does.
    distance = np.where(s >= program.upper, q, -q)
    must = inside | (movable & ~inside & (distance < 0.0))
    wanted = int(KEPT * np.count_nonzero(must)) + 2 * program.d.size
    order = np.argsort(np.where(must, -np.inf, np.where(movable, distance, np.inf)), kind="stable")
    chosen = order[: min(wanted, int(np.count_nonzero(movable)))]
    if before is not None and chosen.size > before.size:
        return np.union1d(np.flatnonzero(must), before)
    return np.sort(chosen)
