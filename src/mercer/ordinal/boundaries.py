"""Thresholds between ranks on the values of a given function (Herbrich, Graepel and Obermayer 2000, section 2.4).

    theta_k  minimises  E_k(theta) = weight of {r <= k, f >= theta}  +  weight of {r > k, f < theta},

and lies in the middle of the values it parts.  Where the function separates the ranks at k this is the middle of the
closest objects of both sides, the rule of the source.  Elsewhere the source takes a pair with a free dual variable;
often there is none, and all that there are have the same distance, one.  E_k always has a minimum; the smallest one
grows with k, because E_{k+1} - E_k never increases with theta, and the sum of all E_k is the sum of absolute errors in
the rank: these thresholds minimise it.

`free_pair_boundaries` is the rule of the source all the same, with what it leaves open decided: the mean of the middles
of all free pairs of neighbouring ranks, the threshold above where there is none, and each raised to the one below it
where they are out of order.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput
from mercer.problems.latent import refuse_missing_ranks


class Boundaries(NamedTuple):
    """Thresholds (q - 1,), never decreasing; how many had no free pair, and how many were out of order before."""

    thresholds: NDArray[np.float64]
    without_pair: int
    out_of_order: int


def rank_boundaries(values: ArrayLike, ranks: ArrayLike, weights: ArrayLike | None = None) -> NDArray[np.float64]:
    """Thresholds (q - 1,), in order, for values (n,) of points with ranks (n,) from 0 to q - 1."""
    f, r = np.asarray(values, dtype=np.float64), np.asarray(ranks, dtype=np.intp)
    w = np.ones(len(f)) if weights is None else np.asarray(weights, dtype=np.float64)
    present = np.bincount(r, weights=w)
    refuse_missing_ranks(present)
    order = np.argsort(f, kind="stable")
    f, r, w = f[order], r[order], w[order]
    last = np.concatenate((np.flatnonzero(f[1:] != f[:-1]), [len(f) - 1]))  # of equal values: nothing parts them
    edges = f[last]
    middles = np.concatenate(([edges[0] - 1.0], 0.5 * (edges[1:] + edges[:-1]), [edges[-1] + 1.0]))
    found = np.empty(len(present) - 1)
    for k in range(len(found)):
        low = np.where(r <= k, w, 0.0)
        wrong = np.concatenate(([0.0], np.cumsum(w - low)[last])) + low.sum()
        wrong -= np.concatenate(([0.0], np.cumsum(low)[last]))
        # Sums of weights that are no whole numbers differ in their last digits.
        found[k] = middles[np.flatnonzero(wrong <= wrong.min() + 1e-12 * w.sum())[0]]
    return found


def free_pair_boundaries(values: ArrayLike, ranks: ArrayLike, pairs: ArrayLike) -> Boundaries:
    """Thresholds from the free pairs (m, 2) of a machine, points of higher rank first, for values (n,) and ranks (n,).

    A machine of pairs with the hinge and solver="working_sets" has them in `solution_.details["free_pairs"]`.
    """
    f, r = np.asarray(values, dtype=np.float64), np.asarray(ranks, dtype=np.intp)
    free = np.asarray(pairs, dtype=np.intp)
    if free.ndim != 2 or free.shape[1] != 2 or (r[free[:, 0]] <= r[free[:, 1]]).any():
        raise InvalidInput("pairs must be an array (m, 2) of points, that of higher rank first")
    found = rank_boundaries(f, r)
    middles, lower = 0.5 * (f[free[:, 0]] + f[free[:, 1]]), r[free[:, 1]]
    neighbours = r[free[:, 0]] == lower + 1
    has = np.isin(np.arange(len(found)), lower[neighbours])
    for k in np.flatnonzero(has):
        found[k] = middles[neighbours & (lower == k)].mean()
    ordered = np.maximum.accumulate(found)
    return Boundaries(ordered, int((~has).sum()), int((ordered > found).sum()))
