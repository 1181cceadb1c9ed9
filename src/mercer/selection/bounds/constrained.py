"""Uniform convergence over a ball of functions: what a bounded norm says about the risk (Ivanov regularisation).

min R_n(f) subject to ||f||^2 <= C.  With kappa = sup sqrt(k(x, x)), outputs stay within kappa sqrt(C); let the loss be
sigma-Lipschitz there and lie between 0 and M.  Over the whole ball (Rifkin 2002, chapter 5, where the exponent has
lost its minus sign),

    P( sup |R - R_n| >= eps ) <= 2 N(eps/(4 sigma)) exp(-n eps^2 / (2 M^2)),

N the number of balls, by the largest difference over all points, that hold the class: inside one of them R - R_n varies
by eps/2, and Hoeffding's inequality does the rest at its centre; in d dimensions N(eps) <= (1 + 2 kappa sqrt(C)/eps)^d.
Where the kernel has no finite dimension the points themselves are used (see `margin`),

    P( sup |R - R_n| >= eps ) <= 4 N(eps/(8 sigma), F, 2n) exp(-n eps^2 / (32 M^2)),

with log2 N from the fat-shattering dimension (kappa sqrt(C)/rho)^2.  The bound is R <= R_n + eps at the eps that makes
the right side delta; up to logarithms it falls like n^(-1/2) in d dimensions and n^(-1/4) without.

A Tikhonov solution f of R_n + lam ||f||^2 solves Ivanov's problem with C = ||f||^2; that C depends on the data.  Known
beforehand is ||f||^2 <= B/lam, B = sup_y V(0, y): the bound with that C holds for it too (`tikhonov_radius`).
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq

from mercer.errors import InvalidInput
from mercer.losses import Loss
from mercer.selection.bounds.margin import covering_exponent, fat_shattering
from mercer.selection.bounds.result import Bound, check_confidence, check_positive
from mercer.selection.bounds.stability import highest, steepest


def ball_covering_exponent(radius: float, eps: float, d: int) -> Bound:
    """log2 N(eps) <= d log2(1 + 2 radius/eps) for a ball of that radius in d dimensions, by its own norm.

    By the largest difference of outputs: radius = kappa sqrt(C).
    """
    check_positive(radius=radius, eps=eps, d=d)
    value = 0.0 if eps >= radius else d * math.log2(1.0 + 2.0 * radius / eps)
    return Bound(value, ("the kernel has at most d features",), None, math.inf)


def ivanov_deviation(exponent: float, n: int, eps: float, largest: float) -> Bound:
    """P(sup |R - R_n| >= eps) <= 2 N exp(-n eps^2/(2 M^2)), exponent = log2 N(eps/(4 sigma)), M = largest loss."""
    check_positive(n=n, eps=eps, largest=largest)
    power = math.log(2.0) + exponent * math.log(2.0) - n * eps**2 / (2.0 * largest**2)
    needs = ("points are drawn independently of one distribution", "no loss lies outside 0 .. largest")
    return Bound(math.exp(min(power, 700.0)), needs, None)


def tikhonov_radius(loss: Loss, lam: float, targets: float = 1.0) -> float:
    """C = B/lam, which ||f||^2 cannot exceed at the minimum of R_n + lam ||f||^2 without free bias."""
    check_positive(lam=lam, targets=targets)
    return float(np.max(loss.value(np.array([-targets, targets]), 0.0))) / lam


def ivanov_bound(
    error: float,
    loss: Loss,
    C: float,
    n: int,
    kappa: float,
    *,
    targets: float = 1.0,
    d: int | None = None,
    delta: float = 0.05,
) -> Bound:
    """Risk R <= R_n + eps of every f with ||f||^2 <= C, for targets |y| <= targets; error: R_n, the mean loss of f.

    d: the number of features of the kernel, None where it has infinitely many.  details: eps, sigma, largest loss.
    """
    check_positive(C=C, n=n, kappa=kappa, targets=targets)
    confidence = check_confidence(delta)
    radius = kappa * math.sqrt(C)
    sigma, largest = steepest(loss, radius, targets), highest(loss, radius, targets)

    def power(eps: float) -> float:
        """The logarithm of the right side, less that of delta."""
        if d is not None:
            balls = ball_covering_exponent(radius, eps / (4.0 * sigma), d).value
            return math.log(2.0 / delta) + balls * math.log(2.0) - n * eps**2 / (2.0 * largest**2)
        balls = _sample_exponent(radius, eps / (8.0 * sigma), n).value
        return math.log(4.0 / delta) + balls * math.log(2.0) - n * eps**2 / (32.0 * largest**2)

    high = largest
    while power(high) > 0:
        high *= 2.0
    low = high
    while power(low) <= 0:
        low /= 2.0
    eps = float(brentq(power, low, high, xtol=1e-12 * high))
    few = d is None and bool(_sample_exponent(radius, eps / (8.0 * sigma), n).failed)
    return Bound.under(
        error + eps,
        "points are drawn independently of one distribution",
        "C is fixed before the data are seen, and f has no free bias",
        ("2n is at least the fat-shattering dimension", few),
        confidence=confidence,
        trivial=largest,
        details={"eps": eps, "sigma": sigma, "largest": largest},
    )


def structural_bound(
    errors: Sequence[float],
    radii: Sequence[float],
    loss: Loss,
    n: int,
    kappa: float,
    *,
    targets: float = 1.0,
    d: int | None = None,
    delta: float = 0.05,
) -> Bound:
    """Structural risk minimisation: the least `ivanov_bound` over balls C_1 < C_2 < ..., each with its share of delta.

    errors: the mean loss of the function chosen from each ball; details: the number of the best ball, and all values.
    """
    if not len(radii) or len(radii) != len(errors) or np.any(np.diff(radii) <= 0):
        raise InvalidInput("radii must rise, and there must be one error for each of them.")
    share = check_confidence(delta) and delta / len(radii)
    found = [
        ivanov_bound(error, loss, C, n, kappa, targets=targets, d=d, delta=share)
        for error, C in zip(errors, radii, strict=True)
    ]
    best = int(np.argmin([bound.value for bound in found]))
    chosen = found[best]
    details = {**chosen.details, "best": best, "values": [bound.value for bound in found]}
    return Bound(chosen.value, chosen.assumptions, 1.0 - delta, chosen.trivial, chosen.failed, details)


def _sample_exponent(radius: float, eps: float, n: int) -> Bound:
    """log2 N(eps, F, 2n) of functions between -radius and radius."""
    return covering_exponent(fat_shattering(radius, eps / 4.0).value, eps, 2 * n, 2.0 * radius)
