"""Class probabilities from binary ones: the Bradley-Terry model for pairs and for any code.

Machine a of a code M gives r_a, the probability of its positive side I_a+ (classes with M_ra = +1) among the classes
it knows.  With q_a+ and q_a- the sums of p over its two sides and q_a = q_a+ + q_a-, the model says r_a = q_a+ / q_a,
and p minimises the weighted divergence

    l(p) = sum_a n_a [ r_a log(r_a / (q_a+/q_a)) + (1 - r_a) log((1 - r_a) / (q_a-/q_a)) ] .

Newton's method finds it in the logarithms of p (see `coupling_newton`).  The classical way updates all p_s at once
(Huang, Weng and Lin 2006), a minorise-maximise step that never raises l:

    p_s <- p_s [ sum_{a: s in I_a+} n_a r_a/q_a+ + sum_{a: s in I_a-} n_a (1 - r_a)/q_a- ] / sum_{a: s in I_a} n_a/q_a

and p is scaled to sum one.  Where some r_a lie near 0 or 1 and contradict the others it needs many thousands of steps;
its fixed points are the ones found here.  With the code of all pairs that is the iteration of Hastie and Tibshirani
(1998).  Where the r_a come from one p, that p is recovered.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer import threads
from mercer.errors import InvalidInput, NotConverged
from mercer.machine.probability import SMALLEST
from mercer.solvers.multiclass import coupling_newton

Array = NDArray[np.float64]

TOLERANCE = 1e-9
MOST_STEPS = 500


def from_code(
    code: ArrayLike,
    r: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    tol: float = TOLERANCE,
    max_steps: int = MOST_STEPS,
    start: ArrayLike | None = None,
) -> Array:
    """Probabilities (n, k) from r (n, F); weights n_a (F,) count the points behind each machine.

    Stops where a step changes no probability by more than `tol` of itself, or by no more than rounding errors do; warns
    with NotConverged where `max_steps` are not enough.  start: probabilities (n, k) to begin with, equal ones by
    default.  A class whose best probability is zero gets a number below 1e-9 of that of its company in any machine.
    """
    M = np.asarray(code)
    r = np.clip(np.asarray(r, dtype=np.float64), SMALLEST, 1.0 - SMALLEST)
    n_a = np.ones(M.shape[1]) if weights is None else np.asarray(weights, dtype=np.float64)
    # A machine with one side, or without points, says nothing about p.
    told = np.any(M > 0, axis=0) & np.any(M < 0, axis=0) & (n_a > 0)
    if not np.all(np.any(M[:, told] != 0, axis=1)):
        raise InvalidInput("code must give every class to some machine that has two sides and a positive weight.")
    M, r, n_a = M[:, told], np.ascontiguousarray(r[:, told]), n_a[told] / np.max(n_a)
    p = np.full((len(r), len(M)), 1.0 / len(M)) if start is None else np.array(start, dtype=np.float64)
    theta: Array = np.log(np.maximum(p, np.finfo(np.float64).tiny))
    steps = np.zeros(len(r), dtype=np.intp)
    given = (theta, r, n_a, *_members(M), tol, max_steps, steps)
    threads.run(coupling_newton.minimise, [(*given, *part) for part in threads.split(len(r))])
    if unfinished := int(np.sum(steps < 0)):
        warnings.warn(
            f"the coupled probabilities of {unfinished} of {len(r)} points have not converged in {max_steps} steps; "
            "raise max_steps.",
            NotConverged,
            stacklevel=2,
        )
    return theta


def _members(M: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Classes of all machines, positive sides first, and where the sides of each begin and end (F, 3)."""
    sides = [np.flatnonzero(column == sign) for column in np.sign(M).T for sign in (1, -1)]
    ends = np.concatenate([[0], np.cumsum([len(side) for side in sides])])
    table = np.column_stack([ends[:-1:2], ends[1::2], ends[2::2]])
    return np.concatenate(sides).astype(np.intp), np.ascontiguousarray(table, dtype=np.intp)
