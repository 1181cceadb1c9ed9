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
(1998), written out in `from_pairs`.  Where the r_a come from one p, that p is recovered.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer import threads
from mercer.errors import InvalidInput, NotConverged
from mercer.estimation.probability import SMALLEST
from mercer.multiclass import coupling_newton

Array = NDArray[np.float64]

TOLERANCE = 1e-9
MOST_STEPS = 500
MOST_UPDATES = 20_000  # of `from_pairs`


def divergence(code: ArrayLike, r: ArrayLike, p: ArrayLike, weights: ArrayLike | None = None) -> Array:
    """l(p) (n,) for r (n, F) and p (n, k); weights n_a (F,)."""
    M = np.asarray(code)
    r, p = np.clip(np.asarray(r, dtype=np.float64), SMALLEST, 1.0 - SMALLEST), np.asarray(p, dtype=np.float64)
    n_a = np.ones(M.shape[1]) if weights is None else np.asarray(weights, dtype=np.float64)
    plus, minus = p @ (M > 0), p @ (M < 0)
    whole = plus + minus
    terms = r * np.log(r * whole / plus) + (1.0 - r) * np.log((1.0 - r) * whole / minus)
    return np.asarray(terms @ n_a)


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
    _tell(int(np.sum(steps < 0)), len(r), max_steps)
    return theta


def _members(M: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Classes of all machines, positive sides first, and where the sides of each begin and end (F, 3)."""
    sides = [np.flatnonzero(column == sign) for column in np.sign(M).T for sign in (1, -1)]
    ends = np.concatenate([[0], np.cumsum([len(side) for side in sides])])
    table = np.column_stack([ends[:-1:2], ends[1::2], ends[2::2]])
    return np.concatenate(sides).astype(np.intp), np.ascontiguousarray(table, dtype=np.intp)


def _tell(unfinished: int, n: int, max_steps: int) -> None:
    """Warn where some of the n points have not converged."""
    if unfinished:
        warnings.warn(
            f"the coupled probabilities of {unfinished} of {n} points have not converged in {max_steps} steps; "
            f"raise max_steps.",
            NotConverged,
            stacklevel=3,
        )


def from_pairs(
    r: ArrayLike,
    classes: int,
    weights: ArrayLike | None = None,
    *,
    tol: float = TOLERANCE,
    max_steps: int = MOST_UPDATES,
) -> Array:
    """Probabilities (n, k) from r (n, k(k-1)/2), pairs i < j in lexical order (Hastie and Tibshirani 1998):

    p_i <- p_i sum_j n_ij r_ij / sum_j n_ij mu_ij,    mu_ij = p_i / (p_i + p_j).

    Stops where no probability changes by more than `tol` of itself; warns with NotConverged where it does not stop.
    """
    first, second = np.triu_indices(classes, 1)
    r = np.clip(np.asarray(r, dtype=np.float64), SMALLEST, 1.0 - SMALLEST)
    n_ij = np.zeros((classes, classes))
    n_ij[first, second] = 1.0 if weights is None else np.asarray(weights, dtype=np.float64)
    n_ij += n_ij.T
    R = np.zeros((len(r), classes, classes))
    R[:, first, second], R[:, second, first] = r, 1.0 - r
    wins = np.einsum("ij,nij->ni", n_ij, R)
    p = np.full((len(r), classes), 1.0 / classes)
    moving = np.arange(len(r))
    for _ in range(max_steps):
        if moving.size == 0:
            break
        now = p[moving]
        mu = now[:, :, None] / (now[:, :, None] + now[:, None, :])
        fresh = now * wins[moving] / np.einsum("ij,nij->ni", n_ij, mu)
        fresh /= fresh.sum(axis=1, keepdims=True)
        p[moving] = fresh
        moving = moving[np.max(np.abs(fresh - now) / fresh, axis=1) > tol]
    _tell(len(moving), len(r), max_steps)
    return p
