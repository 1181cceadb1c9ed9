"""Nearest points of two hulls: the shortest vector, by exchanging weight between the worst points of a class.

With G = (K + R) s, the vector between the hulls of `mercer.solvers.geometric.hulls` can be made shorter exactly when a
variable j that may fall has a larger gradient than a variable i of the same hull that may rise, G_j > G_i.  The step
moves weight from the worst j to the worst i of the hull where they differ most, as far as the vector gets shorter
(Mitchell, Dem'yanov and Malozemov 1974; the rule of Keerthi et al. 2000).  With step="corner" the whole hull moves
towards its farthest corner instead
(Gilbert 1966), which is slower near the end.
"""

from typing import Any, Unpack

import numpy as np

from mercer import threads
from mercer.arrays import Array
from mercer.errors import InvalidInput
from mercer.problems.base import Problem
from mercer.solvers.contract import Acceptance, require
from mercer.solvers.descent.run import Limits, Run
from mercer.solvers.geometric import hulls
from mercer.solvers.geometric.hulls import Hulls
from mercer.solvers.solution import Solution

NAME = "nearest_point"
ACCEPTS = "the hard margin, squared_hinge with a free bias, nu-SVC and one-class"
SECTION = "Keerthi et al. 2000; Bennett and Bredensteiner 2000"

STEPS = ("exchange", "corner")


def accepts(problem: Any) -> Acceptance:
    """Problems that are a shortest vector between hulls, whole or reduced."""
    return hulls.accepts(problem, "the nearest-point method")


def solve(problem: Problem, *, tol: float = 1e-3, step: str = "exchange", **limits: Unpack[Limits]) -> Solution:
    """Shorten the vector to a relative duality gap of `gap_tol`, or of `tol` where that is None."""
    require(accepts(problem), NAME)
    if step not in STEPS:
        raise InvalidInput(f"step must be 'exchange' or 'corner', got {step!r}")
    run = Run(problem, NAME, tol=tol, **limits)
    with threads.one_blas_thread(), run.monitor:
        between = Hulls(problem, run.given)
        while run.goes_on():
            if run.due and not run.look(*between.answer(), length=between.squared_length**0.5):
                break
            if (exchange(between) if step == "exchange" else to_corner(between)) <= 0.0:
                between.refresh()
                if run.look(*between.answer()):
                    run.stopped = "stalled"
        report = between.cache.report()
        return run.solution(cache_rate=report.rate, length=between.squared_length**0.5)


def exchange(between: Hulls) -> float:
    """One exchange in the hull whose worst points differ most; what 1/2 ||f0||^2 falls by."""
    program, G, s = between.program, between.gradient(), between.s
    best, pair = 0.0, None
    for k in range(program.d.size):
        own = between.group == k
        rising = np.where(own & (s < program.upper), G, np.inf)
        falling = np.where(own & (s > program.lower), G, -np.inf)
        i, j = int(rising.argmin()), int(falling.argmax())
        if falling[j] - rising[i] > best:
            best, pair = float(falling[j] - rising[i]), (i, j)
    return 0.0 if pair is None else between.exchange(*pair)


def corner_of(between: Hulls, k: int) -> Array:
    """The feasible point (N,) whose part in hull k is as far against f0 as can be; the others stay as they are."""
    program = between.program
    own = np.flatnonzero(between.group == k)
    target = float(program.d[k])
    bound = (program.upper if target > 0.0 else program.lower)[own]
    order = np.argsort(between.gradient()[own] * np.sign(target), kind="stable")
    before = np.concatenate(([0.0], np.cumsum(np.abs(bound[order]))[:-1]))
    corner = between.s.copy()
    corner[own[order]] = np.sign(target) * np.clip(abs(target) - before, 0.0, np.abs(bound[order]))
    return corner


def to_corner(between: Hulls) -> float:
    """One step of the hull that gains most towards its corner; what 1/2 ||f0||^2 falls by."""
    G, s = between.gradient(), between.s
    corners = [corner_of(between, k) for k in range(between.program.d.size)]
    best = max(corners, key=lambda corner: float(G @ (s - corner)))
    return between.towards(best, np.asarray(between.program.gram.dot(best), dtype=np.float64))
