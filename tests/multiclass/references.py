"""What decoders are held against: their objectives, and the classical iteration for pairs."""

import numpy as np


def divergence(M, r, p, weights=None):
    """l(p) (n,) at the head of `mercer.multiclass.coupling` for a code M, r (n, F) and p (n, k); weights n_a (F,)."""
    plus, minus = p @ (M > 0), p @ (M < 0)
    whole = plus + minus
    terms = r * np.log(r * whole / plus) + (1.0 - r) * np.log((1.0 - r) * whole / minus)
    return terms @ (np.ones(M.shape[1]) if weights is None else weights)


def from_pairs(r, k, weights, tol=1e-12, updates=20_000):
    """Probabilities (n, k) from r (n, k(k-1)/2), pairs i < j in lexical order (Hastie and Tibshirani 1998):

    p_i <- p_i sum_j n_ij r_ij / sum_j n_ij mu_ij,    mu_ij = p_i / (p_i + p_j).
    """
    first, second = np.triu_indices(k, 1)
    n_ij, R = np.zeros((k, k)), np.zeros((len(r), k, k))
    n_ij[first, second] = n_ij[second, first] = weights
    R[:, first, second], R[:, second, first] = r, 1.0 - r
    wins = np.einsum("ij,nij->ni", n_ij, R)
    p = np.full((len(r), k), 1.0 / k)
    for _ in range(updates):
        before = p
        mu = p[:, :, None] / (p[:, :, None] + p[:, None, :])
        p = p * wins / np.einsum("ij,nij->ni", n_ij, mu)
        p = p / p.sum(axis=1, keepdims=True)
        if np.max(np.abs(p - before) / p) <= tol:
            return p
    raise AssertionError("the iteration has not converged")


def continuous_code_objective(M, Z, labels, norm, penalty):
    """The objective of `mercer.multiclass.learnt_decoders.continuous_code` at a code M (k, F), for outputs Z (n, F)."""
    size = {"1": np.abs(M).sum(), "2": np.sum(M**2), "inf": np.abs(M).max()}[norm]
    scores, points = Z @ M.T + 1.0, np.arange(len(labels))
    scores[points, labels] -= 1.0
    return float(penalty * size + np.sum(scores.max(axis=1) - scores[points, labels]))
