"""Uniform stability: how little one point matters, and what that says about the error on new ones.

Tikhonov regularisation without free bias, over n points,

    min (1/n) sum_i V(f(x_i), y_i) + lam ||f||^2,        kappa = sup sqrt(k(x, x)).

A loss is sigma-admissible when it is convex in f and |V(f, y) - V(f', y)| <= sigma |f - f'| over reachable outputs,
|f| <= kappa sqrt(B / lam) with B = sup_y V(0, y).  Then no loss changes by more than beta (Bousquet and Elisseeff 2002;
Rifkin 2002, chapter 5) when one point is

    removed, the factor 1/n kept for the others      beta = sigma^2 kappa^2 / (2 lam n)
    replaced by another one                          beta = sigma^2 kappa^2 / (lam n)

and for a loss between 0 and M, with probability 1 - delta, the risk R and its mean R_n over the training points obey

    remove:     R <= R_n + 2 beta + (4 n beta + M) sqrt(ln(1/delta) / (2n))
    replace:    R <= R_n +   beta + (2 n beta + M) sqrt(ln(1/delta) / (2n)).

The two notions are never mixed; each constant goes with its own bound, and the two then give the same number.  Removing
a point and averaging over the n - 1 others at the same lam doubles the first constant (the thesis uses one constant for
all).  For the square loss sigma is the slope 2a at a = kappa sqrt(B/lam) + sup|y|, not its square.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput
from mercer.losses import Loss
from mercer.selection.bounds.multiclass import checked_code
from mercer.selection.bounds.result import (
    Bound,
    Definition,
    check_confidence,
    check_definition,
    check_positive,
)

Array = NDArray[np.float64]

_NO_BIAS = "no free bias: the theory covers machines whose whole function is penalised"


def tikhonov(C: float, n: int, *, half: bool = False) -> float:
    """The lam of (1/n) sum V + lam ||f||^2 that has the minimiser of C sum V + ||f||^2 / 2 (half: C/2 sum V)."""
    check_positive(C=C, n=n)
    return (2.0 if half else 1.0) / (2.0 * C * n)


def largest_output(loss: Loss, lam: float, kappa: float, targets: float = 1.0) -> float:
    """Bound sup |f| <= kappa sqrt(B / lam) over all training sets with |y| <= targets, B = sup_y V(0, y)."""
    check_positive(lam=lam, kappa=kappa, targets=targets)
    B = float(np.max(loss.value(np.array([-targets, targets]), 0.0)))
    return kappa * float(np.sqrt(B / lam))


def admissible(loss: Loss, lam: float, kappa: float, targets: float = 1.0) -> float:
    """sigma: the largest slope of the loss over reachable outputs."""
    return steepest(loss, largest_output(loss, lam, kappa, targets), targets)


def largest_loss(loss: Loss, lam: float, kappa: float, targets: float = 1.0) -> float:
    """M: the largest loss over reachable outputs."""
    return highest(loss, largest_output(loss, lam, kappa, targets), targets)


def steepest(loss: Loss, end: float, targets: float) -> float:
    """The largest slope of a convex loss over outputs |f| <= end and targets |y| <= targets: both lie at their ends."""
    if np.isfinite(loss.lipschitz):
        return loss.lipschitz
    y, f = np.meshgrid([-targets, targets], [-end, end])
    return float(np.max(np.abs(loss.slope(y, f))))


def highest(loss: Loss, end: float, targets: float) -> float:
    """The largest value of a convex loss over outputs |f| <= end and targets |y| <= targets."""
    y, f = np.meshgrid([-targets, targets], [-end, end])
    return float(np.max(loss.value(y, f)))


def output_stability(
    loss: Loss,
    lam: float,
    n: int,
    kappa: float,
    targets: float = 1.0,
    *,
    definition: Definition = "remove",
    free_bias: bool = False,
) -> Bound:
    """alpha: no output changes by more than sigma kappa^2 / (2 lam n) (remove) or twice that (replace)."""
    check_definition(definition)
    check_positive(n=n)
    sigma = admissible(loss, lam, kappa, targets)
    return Bound.under(
        sigma * kappa**2 / (lam * n) / (2.0 if definition == "remove" else 1.0),
        "the machine minimises (1/n) sum V + lam ||f||^2, V convex, and no target exceeds `targets`",
        "kernel values k(x, x) do not exceed kappa^2",
        (_NO_BIAS, free_bias),
        # Two outputs of any two training sets are no farther apart than this.
        trivial=2.0 * largest_output(loss, lam, kappa, targets),
        details={"sigma": sigma, "definition": definition},
    )


def uniform_stability(
    loss: Loss,
    lam: float,
    n: int,
    kappa: float,
    targets: float = 1.0,
    *,
    definition: Definition = "remove",
    free_bias: bool = False,
) -> Bound:
    """beta: no loss changes by more than sigma times the change of the output."""
    change = output_stability(loss, lam, n, kappa, targets, definition=definition, free_bias=free_bias)
    value = change.details["sigma"] * change.value
    trivial = largest_loss(loss, lam, kappa, targets)
    return Bound(value, change.assumptions, None, trivial, change.failed, change.details)


def stability_bound(
    losses: ArrayLike,
    beta: float,
    largest: float,
    *,
    delta: float = 0.05,
    definition: Definition = "remove",
    free_bias: bool = False,
) -> Bound:
    """Risk of an algorithm of stability beta whose losses (n,) at the training points lie between 0 and `largest`."""
    check_definition(definition)
    check_positive(largest=largest)
    values = np.asarray(losses, dtype=np.float64)
    times = 2.0 if definition == "remove" else 1.0
    return Bound.under(
        float(np.mean(values)) + _excess(times * beta, largest, len(values), delta),
        f"beta is the stability under '{definition}'",
        (f"losses lie between 0 and {largest:g}", bool(np.any((values < 0) | (values > largest)))),
        (_NO_BIAS, free_bias),
        "points are drawn independently of one distribution",
        confidence=check_confidence(delta),
        trivial=largest,
        details={"empirical": float(np.mean(values)), "beta": beta, "definition": definition},
    )


def tikhonov_risk(
    losses: ArrayLike,
    loss: Loss,
    lam: float,
    kappa: float,
    targets: float = 1.0,
    *,
    delta: float = 0.05,
    definition: Definition = "remove",
    free_bias: bool = False,
) -> Bound:
    """Risk of Tikhonov regularisation from its losses (n,) at the training points, constants by the loss."""
    n = len(np.asarray(losses))
    beta = uniform_stability(loss, lam, n, kappa, targets, definition=definition).value
    largest = largest_loss(loss, lam, kappa, targets)
    return stability_bound(losses, beta, largest, delta=delta, definition=definition, free_bias=free_bias)


def bagged_stability(change: float, part: int, n: int, sigma: float = 1.0) -> Bound:
    """Stability beta of the mean of n/p machines trained on disjoint parts of p points each: sigma (p/n) alpha_p.

    change: alpha_p, the most an output of one machine moves when one of its p points is replaced.  The parts are
    fixed and disjoint; nothing is said of bootstrap samples (Rifkin 2002, section 5.3).  The number is vacuous where
    there is one part, which is no better than one machine.
    """
    check_positive(part=part, n=n, sigma=sigma)
    if n % part:
        raise InvalidInput(f"part must divide n into equal parts; {n} points do not make parts of {part}.")
    needs = ("the parts are disjoint and fixed before the data are seen", "the loss is sigma-admissible")
    return Bound(sigma * change * part / n, needs, None, sigma * change)


def subbagged_stability(beta: float, size: int, n: int, *, fresh: bool = False) -> Bound:
    """Stability of the mean over all samples of g of n points, from the stability beta of one machine on g points.

    A point is in the share g/n of the samples.  Where removing it means dropping it from each of them, the mean changes
    by (g/n) beta; where new samples of g points are drawn from the n - 1 others (`fresh`), by twice that, which is
    attained (Evgeniou, Pontil and Elisseeff 2004; Hamers 2004, equation 6.15, states the first for both).  The number
    is vacuous where every sample holds every point.
    """
    check_positive(size=size, n=n)
    if beta < 0.0:
        raise InvalidInput(f"beta = {beta:g} must not be negative: it is the most that an output or a loss can change")
    if size > n:
        raise InvalidInput(f"size: samples of {size} points cannot be drawn from {n} without replacement.")
    removed = "new samples of the same size are drawn" if fresh else "the point is dropped from every sample"
    return Bound(
        (2.0 if fresh else 1.0) * beta * size / n,
        ("the mean is over all samples of this size, without replacement", f"removing a point means that {removed}"),
        None,
        beta,
        details={"share": size / n, "fresh": fresh},
    )


def separating_machines(code: ArrayLike) -> int:
    """G: the largest number of machines that tell two classes apart; 2 for one-versus-all."""
    M = checked_code(code)
    return int(np.max(np.sum(M[:, None] != M[None], axis=2)))


def decision_gaps(code: ArrayLike, labels: ArrayLike, outputs: ArrayLike, loss: Loss) -> Array:
    """Gaps d (n,) = total loss of the true class minus the least total loss of another; positive: an error."""
    M, f = checked_code(code), np.asarray(outputs, dtype=np.float64)
    y = np.asarray(labels, dtype=np.intp)
    totals = np.stack([np.sum(loss.value(1.0, row * f), axis=1) for row in M], axis=1)
    own = np.arange(len(M)) == y[:, None]
    return np.asarray(totals[own] - np.min(np.where(own, np.inf, totals), axis=1))


def ramp(gaps: ArrayLike, gamma: float) -> Array:
    """V_gamma = clip(1 + d/gamma, 0, 1): never below the zero-one loss, of slope 1/gamma in d."""
    check_positive(gamma=gamma)
    return np.clip(1.0 + np.asarray(gaps, dtype=np.float64) / gamma, 0.0, 1.0)


def multiclass_stability(
    code: ArrayLike,
    gaps: ArrayLike,
    beta: float,
    gamma: float,
    *,
    delta: float = 0.05,
    definition: Definition = "remove",
    free_bias: bool = False,
) -> Bound:
    """Error rate of a coded classifier of machines with stability beta, from its decision gaps (n,).

    R <= mean V_gamma + 4 G beta/gamma + (8 n G beta/gamma + 1) sqrt(ln(1/delta)/(2n)) for a beta under removal, half
    the two coefficients for one under replacement (Rifkin 2002, section 5.4, with the ramp put above the
    zero-one loss).
    """
    check_definition(definition)
    M, values = checked_code(code), ramp(gaps, gamma)
    change = 2.0 * separating_machines(M) * beta / gamma
    times = 2.0 if definition == "remove" else 1.0
    return Bound.under(
        float(np.mean(values)) + _excess(times * change, 1.0, len(values), delta),
        ("the code has no zeros", bool(np.any(M == 0))),
        f"beta is the stability of every machine's loss under '{definition}'",
        "gamma is fixed before the data are seen",
        (_NO_BIAS, free_bias),
        "points are drawn independently of one distribution",
        confidence=check_confidence(delta),
        details={"empirical": float(np.mean(values)), "stability": change, "machines": separating_machines(M)},
    )


def _excess(change: float, largest: float, n: int, delta: float) -> float:
    """The excess change + (2 n change + M) sqrt(ln(1/delta)/(2n))."""
    check_confidence(delta)
    return change + (2.0 * n * change + largest) * float(np.sqrt(np.log(1.0 / delta) / (2.0 * n)))
