"""Class probabilities from binary ones: the Bradley-Terry model for pairs and for any code.

Machine a of a code M gives r_a, the probability of its positive side I_a+ (classes with M_ra = +1) among the classes
it knows.  With q_a+ and q_a- the sums of p over its two sides and q_a = q_a+ + q_a-, the model says r_a = q_a+ / q_a,
and p minimises the weighted divergence

    l(p) = sum_a n_a [ r_a log(r_a / (q_a+/q_a)) + (1 - r_a) log((1 - r_a) / (q_a-/q_a)) ] .

All p_s are updated at once (Huang, Weng and Lin 2006), a minorise-maximise step that never raises l:

    p_s <- p_s [ sum_{a: s in I_a+} n_a r_a/q_a+ + sum_{a: s in I_a-} n_a (1 - r_a)/q_a- ] / sum_{a: s in I_a} n_a/q_a

and p is scaled to sum one.  With the code of all pairs that is the iteration of Hastie and Tibshirani (1998), written
out in `from_pairs`.  Where the r_a come from one p, that p is recovered.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.estimation.probability import SMALLEST

Array = NDArray[np.float64]

TOLERANCE = 1e-9
MOST_STEPS = 5000


def divergence(code: ArrayLike, r: ArrayLike, p: ArrayLike, weights: ArrayLike | None = None) -> Array:
    """l(p) (n,) for r (n, F) and p (n, k); weights n_a (F,)."""
    M = np.asarray(code)
    r, p = np.clip(np.asarray(r, dtype=np.float64), SMALLEST, 1.0 - SMALLEST), np.asarray(p, dtype=np.float64)
    n_a = np.ones(M.shape[1]) if weights is None else np.asarray(weights, dtype=np.float64)
    plus, minus = p @ (M > 0), p @ (M < 0)
    mu = plus / (plus + minus)
    terms = r * np.log(r / mu) + (1.0 - r) * np.log((1.0 - r) / (1.0 - mu))
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

    Stops where no probability changes by more than `tol` of itself plus `tol`.
    """
    M = np.asarray(code)
    up, down = (M > 0).astype(np.float64), (M < 0).astype(np.float64)
    r = np.clip(np.asarray(r, dtype=np.float64), SMALLEST, 1.0 - SMALLEST)
    n_a = np.ones(M.shape[1]) if weights is None else np.asarray(weights, dtype=np.float64) / np.max(weights)
    k = len(M)
    p = np.full((len(r), k), 1.0 / k) if start is None else np.array(start, dtype=np.float64)
    wins, losses = n_a * r, n_a * (1.0 - r)
    moving = np.arange(len(r))
    for _ in range(max_steps):
        if moving.size == 0:
            break
        now = p[moving]
        plus, minus = now @ up, now @ down
        gain = (wins[moving] / plus) @ up.T + (losses[moving] / minus) @ down.T
        fresh = now * gain / ((n_a / (plus + minus)) @ (up + down).T)
        fresh = np.maximum(fresh / fresh.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        p[moving] = fresh
        moving = moving[np.max(np.abs(fresh - now) - tol * fresh, axis=1) > tol]
    return p


def from_pairs(
    r: ArrayLike,
    classes: int,
    weights: ArrayLike | None = None,
    *,
    tol: float = TOLERANCE,
    max_steps: int = MOST_STEPS,
) -> Array:
    """Probabilities (n, k) from r (n, k(k-1)/2), pairs i < j in lexical order (Hastie and Tibshirani 1998):

    p_i <- p_i sum_j n_ij r_ij / sum_j n_ij mu_ij,    mu_ij = p_i / (p_i + p_j).
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
    for _ in range(max_steps):
        mu = p[:, :, None] / (p[:, :, None] + p[:, None, :])
        fresh = p * wins / np.einsum("ij,nij->ni", n_ij, mu)
        fresh /= fresh.sum(axis=1, keepdims=True)
        moved = float(np.max(np.abs(fresh - p), initial=0.0))
        p = fresh
        if moved <= tol:
            break
    return p
