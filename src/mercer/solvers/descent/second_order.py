"""Steps of second order on the primal objective: what Newton's method and reweighted least squares share.

The primal objective P(f0, h) = 1/2 ||f0||^2 - d'h + sum_j phi_j(q_j), q = A'h - K~ s - linear, is modelled by a
quadratic whose response to q_j is q_j / D_j for the variables j of a set J and the fixed value r_j elsewhere.  Its
minimum solves

    (K~_JJ + diag(D_J)) s_J - A_J'h = -linear_J - K~_JB r_B,      A_J s_J = d - A_B r_B,

one factorisation of the size of J, by the thin factor of K~ where it has one.  P is then minimised along the line to
that point, so that it falls in every step.

Losses with kinks (the hinge, the tube) have no second derivative where it matters.  They are given a ridge, which makes
them Huber's, and the ridge is lowered until the certificate, which is that of the problem as stated, is good enough
(Chapelle 2007).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Unpack

import numpy as np

from mercer import dense, threads
from mercer.arrays import Array, Mask
from mercer.problems.base import Problem
from mercer.problems.program import QuadraticProgram
from mercer.solvers.contract import Acceptance, require
from mercer.solvers.descent.run import Limits, Run, around_zero, bounded_or_smooth
from mercer.solvers.quadratic.interior_point import fits
from mercer.solvers.quadratic.thin_barrier import matrix_of, system_on
from mercer.solvers.solution import Solution

# Width in q over which a kink is rounded off, in units of the largest |linear|: at first, and from one round to the
# next.  Below the last one the rounding of q is larger.
FIRST_WIDTH, NARROWER, LAST_WIDTH = 0.1, 0.1, 1e-13
# A round is over when the gap of the rounded program is below this share of what the rounding has changed, or when P
# falls by no more than the numerical noise of a sum.
SETTLED, NOISE = 0.5, 1e-15
LENGTH = 1e-6  # share of a step length to which it is found


class Model(NamedTuple):
    """The quadratic model of the costs: variables in `inside` respond by q / D, the others by `fixed`, each (N,)."""

    inside: Mask
    D: Array
    fixed: Array


Modelling = Callable[[QuadraticProgram, Array], Model]


def accepts(problem: Any, method: str, memory: int | str | None = None) -> Acceptance:
    """Programs whose equalities are sums, with bounded or smooth losses, and a matrix that can be factorised."""
    answer = bounded_or_smooth(problem, method, ": give a finite C, or use interior_point")
    return fits(problem.program(), memory) if answer else answer


def descend(
    problem: Problem, name: str, modelling: Modelling, *, tol: float, memory: int | str | None, **limits: Unpack[Limits]
) -> Solution:
    """Minimise a model after the other until the run ends; an iteration is a factorisation."""
    require(accepts(problem, name, memory), name)
    run = Run(problem, name, tol=tol, **limits)
    program = run.program
    with threads.blas_threads(program.n), run.monitor:
        point = _Point(program, matrix_of(program), run.start())
        for rounded in _rounded(program):
            if not _minimise(run, rounded, point, modelling):
                break
        return run.solution(ridge=float(rounded.ridge.max(initial=0.0)))


def _rounded(program: QuadraticProgram) -> Any:
    """The program itself where it is smooth, else programs with ever narrower roundings of its kinks."""
    moving = program.upper > program.lower
    kinked = moving & (program.ridge == 0.0)
    if not kinked.any():
        yield program
        return
    scale = float(np.abs(program.linear[moving]).max(initial=0.0)) or _typical(program)
    span = np.where(kinked, program.upper - program.lower, 1.0)
    width = FIRST_WIDTH
    while width >= LAST_WIDTH:
        yield replace(program, ridge=np.where(kinked, width * scale / span, program.ridge))
        width *= NARROWER


def _typical(program: QuadraticProgram) -> float:
    """The size of f0 where no target sets it, as for nu-machines."""
    diagonal = np.asarray(program.gram.diagonal(), dtype=np.float64)
    return float(np.abs(program.d).sum()) * float(np.abs(diagonal).mean()) or 1.0


class _Point:
    """Coefficients s (N,), their values g = K~ s (n,) and the multipliers h (r,)."""

    def __init__(self, program: QuadraticProgram, K: Any, s: Array) -> None:
        self.K, self.s = K, s
        self.g = np.asarray(K @ program.coefficients(s))
        self.h = program.best_multipliers(self.g)


def _minimise(run: Run, program: QuadraticProgram, point: _Point, modelling: Modelling) -> bool:
    """Steps on one smooth program; whether the next one is to follow."""
    while run.goes_on():
        s = run.program.project(point.s)
        g = np.asarray(point.K @ program.coefficients(s))
        gap = program.evaluate(s, g, program.best_multipliers(g))[1]
        settled = gap <= SETTLED * 0.5 * float((program.ridge - run.program.ridge) @ (s * s))
        if (run.due or settled) and not run.look(s, program.plain_values(g, s)):
            return False
        if settled:
            return True
        model = modelling(program, program.slack_values(point.g, point.h))
        if not (program.equalities[:, model.inside].any(axis=1)).all():
            # Without a variable inside, the cost is straight along the multiplier of that sum: take the best one.
            point.h = program.best_multipliers(point.g)
            model = modelling(program, program.slack_values(point.g, point.h))
        target, h = _target(program, point, model)
        before = _value(program, point.s, point.g, point.h)
        ds, dh = target - point.s, h - point.h
        dg = np.asarray(point.K @ program.coefficients(ds))
        t = _best_step(program, point, ds, dg, dh)
        point.s, point.g, point.h = point.s + t * ds, point.g + t * dg, point.h + t * dh
        if before - _value(program, point.s, point.g, point.h) <= NOISE * abs(before):
            # Nothing is left to gain on this program: the certificate decides, then the next program.
            point.g = np.asarray(point.K @ program.coefficients(point.s))
            return run.look(run.program.project(point.s))
    return False


def _target(program: QuadraticProgram, point: _Point, model: Model) -> tuple[Array, Array]:
    """The minimum (s (N,), h (r,)) of the model."""
    s, J = model.fixed.copy(), np.flatnonzero(model.inside)
    s[J] = 0.0
    A = program.equalities
    if J.size == 0:
        return s, program.best_multipliers(np.asarray(point.K @ program.coefficients(s)))
    points, place = np.unique(program.point[J], return_inverse=True)
    system = system_on(point.K, None if points.size == program.n else points, place.astype(np.intp))
    system.factor(model.D[J])
    outside = np.asarray(point.K @ program.coefficients(s))
    right = -program.linear[J] - outside[program.point[J]]
    rows = A[:, J]
    found = system.solve(np.column_stack((right, rows.T)))
    x, half = found[:, 0], found[:, 1:]
    lack = program.d - A @ s - rows @ x
    # A group without a variable inside leaves its multiplier open: that of least norm moves nothing.
    h = point.h
    if h.size:
        h = h + np.asarray(dense.least_squares(rows @ half, lack - rows @ (half @ h), 1e-13))
    s[J] = x + half @ h
    return s, h


def _value(program: QuadraticProgram, s: Array, g: Array, h: Array) -> float:
    """P at coefficients s."""
    phi = program.costs(program.slack_values(g, h))
    return 0.5 * float(program.coefficients(s) @ g) + float(phi.sum()) - float(program.d @ h)


def _best_step(program: QuadraticProgram, point: _Point, ds: Array, dg: Array, dh: Array) -> float:
    """The step length t in (0, 1] at which P is smallest along the line; 1 where it falls there or only noise rises.

    A whole step is exact where the model is; one that rounding cuts by a millionth leaves as much of the way to go.
    """
    dc = program.coefficients(ds)
    dq = program.slack_values(dg, dh) + program.linear
    q = program.slack_values(point.g, point.h)

    def slope(t: float) -> float:
        response = program.costs_and_response(q + t * dq)[1]
        return float(dc @ (point.g + t * dg)) + float(dq @ response) - float(program.d @ dh)

    if slope(1.0) <= LENGTH * abs(slope(0.0)):
        return 1.0
    low, high = around_zero(slope, 1.0, LENGTH)
    return 0.5 * (low + high)
