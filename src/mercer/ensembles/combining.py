"""From the outputs of the members to one: means, votes, and weights that minimise the error of the sum.

Outputs F (q, n, k) of q members at n points; rules that need no training,

    mean       (1/q) sum_j f_j                  median      of the q outputs
    trimmed    mean without the lowest and highest share     vote        mean of the members' decisions

and weighted sums, sum_j beta_j f_j with sum_j beta_j = 1.  With the errors e_j = f_j - y of the members at points and
S = [mean e_i e_j], the squared error of the sum is beta'S beta (Perrone and Cooper 1993; Hamers 2004, section 6.7.2):

    affine     beta = S^-1 1 / (1'S^-1 1), of error 1 / (1'S^-1 1)
    convex     beta >= 0 besides; members of positive weight are the support models

On the points of training S favours members that overfit; it belongs to outputs at points they have not seen.

The Bayesian committee machine (Tresp 2000) joins the posteriors of q Gaussian processes with one prior, each trained on
a part of the data, at a set of test points t:

    C^-1 = -(q - 1) K_tt^-1 + sum_j C_j^-1 ,      f = C sum_j C_j^-1 f_j .
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer import dense
from mercer.errors import InvalidInput
from mercer.solvers.quadratic.convex_weights import convex_weights

Array = NDArray[np.float64]


def mean(F: Array) -> Array:
    """Outputs (n, k), the mean of the members'."""
    return np.asarray(F.mean(axis=0))


def median(F: Array) -> Array:
    """Outputs (n, k), the median of the members', column by column."""
    return np.asarray(np.median(F, axis=0))


def trimmed(F: Array, share: float = 0.1) -> Array:
    """Mean of the members' outputs without the lowest and the highest `share` of them, column by column."""
    if not 0.0 <= share < 0.5:
        raise InvalidInput(f"trim={share:g} must be at least 0 and below 0.5")
    q = len(F)
    cut = int(share * q)
    return np.asarray(np.sort(F, axis=0)[cut : q - cut].mean(axis=0))


def vote(F: Array) -> Array:
    """Share of the votes for each class (n, k); for two classes those for the second less those for the first (n, 1).

    An output of zero votes for the first class, and of equal outputs the first wins, as in `predict`.
    """
    votes = decisions(F).mean(axis=0)
    return np.asarray(votes if F.shape[2] == 1 else 0.5 * (votes + 1.0))


def decisions(F: Array) -> Array:
    """Every member's decision (q, n, k): +1 for the class it predicts and -1 for the others, one column for two."""
    if F.shape[2] == 1:
        return np.where(F > 0, 1.0, -1.0)
    return np.where(np.argmax(F, axis=2)[:, :, None] == np.arange(F.shape[2]), 1.0, -1.0)


RULES: dict[str, Callable[[Array], Array]] = {"mean": mean, "median": median, "trimmed": trimmed, "vote": vote}


def weighted(F: Array, weights: Array) -> Array:
    """sum_j beta_j f_j (n, k); weights (q,), or (q, n) where they depend on the point, as those of a gate do."""
    return np.asarray(np.einsum("jnk,j->nk" if weights.ndim == 1 else "jnk,jn->nk", F, weights))


# Weights that minimise the error -----------------------------------------------------------------------------------


def error_products(F: Array, targets: Array, weights: Array | None = None) -> Array:
    """S (q, q): weighted mean over points, summed over outputs, of the products of the errors f_i - y and f_j - y."""
    E = (F - targets).reshape(len(F), -1)
    w = np.ones(F.shape[1]) if weights is None else weights
    each = np.repeat(w / w.sum(), F.shape[2])
    S = (E * each) @ E.T
    return np.asarray(0.5 * (S + S.T))


def affine(S: ArrayLike, ridge: float = 0.0) -> Array:
    """Weights beta (q,) of the least beta'S beta with sum beta = 1; `ridge` times its mean diagonal is added to S."""
    beta = dense.solve_positive(_ridged(S, ridge), np.ones(len(np.asarray(S))))
    return np.asarray(beta / beta.sum())


def convex(S: ArrayLike, ridge: float = 0.0) -> Array:
    """The same with beta >= 0; members of zero weight are exactly zero."""
    return convex_weights(_ridged(S, ridge))


def learnt(S: ArrayLike, rule: str, ridge: float) -> Array:
    """Weights (q,) by a rule: "affine", "convex", or equal ones by any other."""
    if rule in ("affine", "convex"):
        return (affine if rule == "affine" else convex)(S, ridge)
    return np.full(len(np.asarray(S)), 1.0 / len(np.asarray(S)))


def _ridged(S: ArrayLike, ridge: float) -> Array:
    matrix = np.array(S, dtype=np.float64)
    matrix[np.diag_indices_from(matrix)] += ridge * float(np.mean(np.diagonal(matrix)))
    return matrix


# Members that are Gaussian processes -------------------------------------------------------------------------------


class Posterior(NamedTuple):
    """Mean (t,), or (t, k) of several functions, and covariance (t, t) at t points."""

    mean: Array
    covariance: Array


def bayesian_committee(prior: Array, members: Sequence[Posterior]) -> Posterior:
    """The joint posterior at t points of members with one prior covariance K_tt (t, t)."""
    identity = np.eye(len(prior))
    precision = -(len(members) - 1) * dense.solve_positive(prior, identity)
    right = np.zeros_like(members[0].mean)
    for member in members:
        inverse = dense.solve_positive(member.covariance, identity)
        precision += inverse
        right += inverse @ member.mean
    covariance = dense.solve_positive(0.5 * (precision + precision.T), identity)
    return Posterior(covariance @ right, covariance)
