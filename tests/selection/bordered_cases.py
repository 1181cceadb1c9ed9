"""Least-squares problems with a border, and their machines trained without some points by a dense solve."""

import numpy as np

BORDERS = {
    "none": lambda X: np.empty((len(X), 0)),
    "free": lambda X: np.ones((len(X), 1)),
    "semiparametric": lambda X: np.column_stack([np.ones(len(X)), X[:, 0]]),
}


def problem(seed, n, d, k=3):
    """Points (n, d), targets (n, k) and weights (n,)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, rng.standard_normal((n, k)), rng.uniform(0.2, 3.0, n)


def without(out, j, K, Y, ridge, weights, P):
    """What the machine trained without the points `out` says about point j: (k,)."""
    k = Y.shape[1]
    keep = np.setdiff1d(np.flatnonzero(weights > 0), out)
    m, q = len(keep), P.shape[1]
    system = np.zeros((m + q, m + q))
    system[:m, :m] = K[np.ix_(keep, keep)] + np.diag(ridge / weights[keep])
    system[:m, m:], system[m:, :m] = P[keep], P[keep].T
    solution = np.linalg.solve(system, np.concatenate([Y[keep], np.zeros((q, k))]))
    return K[j, keep] @ solution[:m] + P[j] @ solution[m:]
