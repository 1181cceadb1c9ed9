"""Maximal margin perceptron: the nearest points of two hulls, found by looking at one point at a time.

As in the perceptron the points are visited in turn, and only those that are wrong change anything: a point i of class k
is wrong when it lies nearer to the other class, along the present vector f0, than the point u_k that stands for its
class, by more than a share of the squared length that falls from round to round.  Then u_k moves towards it, or takes
over the weight of the worst point of its class, whichever makes f0 shorter by more.  Once no point is wrong by epsilon
the margin is within epsilon of the largest, after finitely many updates (Kowalczyk 2000; Schlesinger and Kozinec).
"""

from typing import Any, Unpack

import numpy as np

from mercer import threads
from mercer.arrays import Array
from mercer.problems.base import Problem
from mercer.solvers.contract import Acceptance, require
from mercer.solvers.descent.run import Limits, Run
from mercer.solvers.geometric import hulls
from mercer.solvers.geometric.hulls import Hulls
from mercer.solvers.solution import Solution

NAME = "maximal_margin_perceptron"
ACCEPTS = "the hard margin, and squared_hinge with a free bias"
SECTION = "Kowalczyk 2000; Schoelkopf and Smola 2002, section 10.7.1"

FIRST, SMALLER, LAST = 0.5, 0.5, 1e-15  # epsilon, as a share of the squared length, from round to round


def accepts(problem: Any) -> Acceptance:
    """Problems that are a shortest vector between whole hulls."""
    return hulls.accepts(problem, "the maximal margin perceptron", reduced=False)


def solve(problem: Problem, *, tol: float = 1e-3, **limits: Unpack[Limits]) -> Solution:
    """Update to a relative duality gap of `gap_tol`, or of `tol` where that is None; an iteration is an update."""
    require(accepts(problem), NAME)
    run = Run(problem, NAME, tol=tol, **limits)
    with threads.one_blas_thread(), run.monitor:
        between = Hulls(problem, run.given)
        epsilon, place = FIRST, 0
        while run.goes_on():
            if run.due and not run.look(*between.answer(), epsilon=epsilon):
                break
            i = next_wrong(between, epsilon, place)
            if i is None:
                epsilon *= SMALLER
                if run.look(*between.answer(), epsilon=epsilon) and epsilon < LAST:
                    run.stopped = "stalled"
                continue
            update(between, i)
            place = i + 1
        return run.solution(epsilon=epsilon, updates=between.steps)


def standing(between: Hulls) -> Array:
    """<f0, u_k> of the point that stands for each hull (r,), in the units of the gradient."""
    weighted = between.s * between.gradient()
    sums = np.bincount(between.group, weights=weighted, minlength=between.program.d.size)
    return np.asarray(sums / between.program.d)


def next_wrong(between: Hulls, epsilon: float, place: int) -> int | None:
    """The first point from `place` on, round the end, that is wrong by more than epsilon times the squared length."""
    d, group = between.program.d, between.group
    short = np.sign(d)[group] * (standing(between)[group] - between.gradient())
    movable = between.program.upper > between.program.lower
    wrong = np.flatnonzero(movable & (short > epsilon * between.squared_length / np.abs(d).sum()))
    if not wrong.size:
        return None
    return int(wrong[np.searchsorted(wrong, place) % wrong.size])


def update(between: Hulls, i: int) -> None:
    """Move towards point i, or exchange it for the worst point of its class, whichever gains more."""
    program, G, s = between.program, between.gradient(), between.s
    own = between.group == between.group[i]
    sign = float(np.sign(program.d[between.group[i]]))
    j = int(np.where(own & (s != 0.0), sign * G, -np.inf).argmax())
    row = np.asarray(between.cache.row(i), dtype=np.float64)
    curvature = max(float(between.diagonal[i] + between.diagonal[j] - 2.0 * row[j]), 0.0)
    slope, room = sign * float(G[j] - G[i]), abs(float(s[j]))
    t = min(slope / curvature, room) if curvature > 0.0 else room
    swapped = t * slope - 0.5 * t * t * curvature
    corner = np.where(own, 0.0, s)
    corner[i] = program.d[between.group[i]]
    values = np.asarray(program.gram.dot(corner), dtype=np.float64)
    change = corner - s
    moved = float(change @ (values - between.g + program.ridge * change))
    fall = -float(change @ G)
    best = min(1.0, fall / moved) if moved > 0.0 else 1.0
    if swapped > best * fall - 0.5 * best * best * moved:
        between.exchange(i, j) if sign > 0.0 else between.exchange(j, i)
    else:
        between.towards(corner, values)
