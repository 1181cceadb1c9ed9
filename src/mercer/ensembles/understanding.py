"""Why and when averaging helps: gain, bias and variance of weighted sums, and the bound by stability.

Gain (Krogh and Vedelsby 1995; Breiman 1996).  With weights beta, sum beta = 1, and f = sum_j beta_j f_j, at every point

    sum_j beta_j (f_j - y)^2 - (f - y)^2 = sum_j beta_j (f_j - f)^2 ,

so that with no negative weight the ensemble errs no more than its members on average.

Bias and variance (Hamers 2004, section 6.6).  Over random training sets the sum has

    bias      sum_j beta_j bias_j
    variance  beta' Cov beta,      Cov_jl = Cov(f_j, f_l),

and mean squared error = bias^2 + variance (+ noise of y).

Sandwich (Efron and Stein 1981).  A machine trained on D = N independent points and the ideal bag E_D f_D obey

    MSE(bag) <= MSE(one) = MSE(bag) + Var_D f_D <= MSE(bag) + sum_i E (f_D - f_{D without i})^2 ,

which leaves little to gain for stable machines.  (Hamers 2004, equation 6.11, has N beta/4 for the last term, which can
be exceeded.)
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput

Array = NDArray[np.float64]


class Gain(NamedTuple):
    """Mean squared errors: of the members, weighted; of the ensemble; and the spread of the members around it."""

    members: float
    ensemble: float
    spread: float


def gain(F: ArrayLike, y: ArrayLike, beta: ArrayLike | None = None) -> Gain:
    """What averaging gains for outputs F (q, n) at targets y (n,): members = ensemble + spread.

    beta (q,) of sum one, by default equal.
    """
    outputs, targets = np.asarray(F, dtype=np.float64), np.asarray(y, dtype=np.float64)
    weights = _weights(len(outputs), beta)
    mean = weights @ outputs
    members = float(np.mean(weights @ (outputs - targets) ** 2))
    return Gain(members, float(np.mean((mean - targets) ** 2)), float(np.mean(weights @ (outputs - mean) ** 2)))


@dataclass(frozen=True)
class BiasVariance:
    """Over training sets, at n points: biases (q, n) and covariances (q, q, n) of q members, and of their sum.

    bias (n,) and variance (n,) are those of the weighted sum, error (n,) its mean squared distance from the truth.
    """

    member_bias: Array
    covariance: Array
    bias: Array
    variance: Array
    error: Array


def bias_variance(F: ArrayLike, truth: ArrayLike, beta: ArrayLike | None = None) -> BiasVariance:
    """Bias and variance of q members and their weighted sum, from outputs F (r, q, n) over r training sets.

    truth (n,) is E[y|x]; beta (q,) of sum one, by default equal.  Moments are those of the r sets themselves, so that
    error = bias^2 + variance holds to rounding.
    """
    outputs, target = np.asarray(F, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    weights = _weights(outputs.shape[1], beta)
    mean = outputs.mean(axis=0)
    around = outputs - mean
    covariance = np.einsum("rjn,rln->jln", around, around) / len(outputs)
    biases = mean - target
    return BiasVariance(
        biases,
        covariance,
        weights @ biases,
        np.einsum("j,jln,l->n", weights, covariance, weights),
        np.mean((np.einsum("j,rjn->rn", weights, outputs) - target) ** 2, axis=0),
    )


class Sandwich(NamedTuple):
    """Mean squared errors (n,) of the ideal bag and of one machine, and the upper bound of the latter by stability."""

    bag: Array
    single: Array
    upper: Array


def efron_stein(full: ArrayLike, left_out: ArrayLike, truth: ArrayLike) -> Sandwich:
    """The sandwich at n points, from machines on r training sets of N points.

    full (r, n): outputs of machines on all N points; left_out (r, N, n): of those without each of them; truth (n,).
    Means over the r sets stand for expectations: with few of them the upper bound holds up to their sampling error.
    """
    f, without = np.asarray(full, dtype=np.float64), np.asarray(left_out, dtype=np.float64)
    target = np.asarray(truth, dtype=np.float64)
    bag = (f.mean(axis=0) - target) ** 2
    single = np.mean((f - target) ** 2, axis=0)
    changes = np.mean(np.sum((f[:, None] - without) ** 2, axis=1), axis=0)
    return Sandwich(bag, single, bag + changes)


def _weights(q: int, beta: ArrayLike | None) -> Array:
    weights = np.full(q, 1.0 / q) if beta is None else np.asarray(beta, dtype=np.float64)
    if weights.shape != (q,) or not np.isclose(weights.sum(), 1.0):
        raise InvalidInput(f"beta must hold a weight for each of the {q} members, of sum one")
    return weights
