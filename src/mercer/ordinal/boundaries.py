"""Thresholds between ranks on the values of a given function (Herbrich, Graepel and Obermayer 2000, section 2.4).

    theta_k  minimises  E_k(theta) = weight of {r <= k, f >= theta}  +  weight of {r > k, f < theta},

and lies in the middle of the values it parts.  Where the function separates the ranks at k this is the middle of the
closest objects of both sides, the rule of the source.  Elsewhere the source takes a pair with a free dual variable;
often there is none, and all that there are have the same distance, one.  E_k always has a minimum; the smallest one
grows with k, because E_{k+1} - E_k never increases with theta, and the sum of all E_k is the sum of absolute errors in
the rank: these thresholds minimise it.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.problems.latent import refuse_missing_ranks


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
