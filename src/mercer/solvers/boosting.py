"""Boosting: coordinate descent on a loss of the margin, a weak learner choosing the coordinate.

AdaBoost (Freund and Schapire 1997).  With a distribution D over n points, a learner that is asked for a small weighted
error answers g, of error eps = sum D_i 1{g(x_i) != y_i} on all points, and

    alpha = 1/2 (ln((1 - eps)/eps) + ln(k - 1)),       D_i <- D_i exp(-+alpha) / Z,     - where g is right,

for k classes (Zhu, Zou, Rosset and Hastie 2009; for k = 2 the last term is zero).  f = sum alpha_t g_t / sum alpha_t.
For two classes the share of training errors is at most the product of Z_t = 2 sqrt(eps_t (1 - eps_t)), and g errs on
exactly half of the next distribution.

Arc-gv (Breiman 1999) takes instead, with rho the smallest margin y f so far,

    alpha = 1/2 ln((1 + r)/(1 - r)) - 1/2 ln((1 + rho)/(1 - rho)),     r = 1 - 2 eps,

and so drives the smallest margin to the largest there is.

LogitBoost (Friedman, Hastie and Tibshirani 2000) takes Newton steps on the logistic loss: with p = 1/(1 + exp(-2F)) and
y* = 0 or 1, a regression fits z = (y* - p)/(p(1 - p)) with weights p(1 - p), and F <- F + f/2.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from mercer.arrays import Array, Index, Mask
from mercer.solvers.monitor import Monitor, listening

Method = Literal["adaboost", "arc-gv"]
# From the distribution D (n,) to a hypothesis and the classes (n,) it gives the points; None where it found none.
Learn = Callable[[Array], tuple[Any, Index] | None]
# From targets z (n,) and weights (n,) to a function and its values (n,).
Regress = Callable[[Array, Array], tuple[Any, Array]]

LARGEST_RESPONSE = 4.0  # of z, as its authors advise
SMALLEST_WEIGHT = 1e-10  # of a point in the regressions of LogitBoost


class Round(NamedTuple):
    """A hypothesis with its weight alpha, its weighted error eps and the normaliser Z of its update."""

    hypothesis: Any
    alpha: float
    error: float
    normaliser: float


@dataclass(frozen=True)
class Boosted:
    """What boosting ended with.

    distribution (n,) is that after the last round.  `stopped`: "rounds", "perfect" (a hypothesis without error, whose
    weight is that of half the lightest point), "weak" (no better than chance, or than the margin so far; it is left
    out unless it is the first) or "interrupted".
    """

    rounds: Sequence[Round]
    distribution: Array
    stopped: str

    @property
    def alphas(self) -> Array:
        """Weights alpha (T,)."""
        return np.array([one.alpha for one in self.rounds])


def boost(
    learn: Learn,
    codes: Index,
    classes: int,
    rounds: int,
    *,
    method: Method = "adaboost",
    start: Array | None = None,
    monitor: Monitor | None = None,
) -> Boosted:
    """Boost a learner on points of classes 0..k-1 (n,), from the distribution `start` (n,), by default uniform.

    The monitor hears after every round of the product of the Z_t, the exponential loss that is minimised.
    """
    monitor = listening(monitor)
    n = len(codes)
    D = np.full(n, 1.0 / n) if start is None else start / start.sum()
    found: list[Round] = []
    sums, total, loss, stopped = np.zeros(n), 0.0, 1.0, "rounds"
    for number in range(rounds):
        answer = learn(D)
        if answer is None:
            stopped = "weak"
            break
        hypothesis, given = answer
        sign = np.where(given == codes, 1.0, -1.0)
        error = float(D[sign < 0].sum())
        perfect = not np.any(sign < 0)
        alpha = _alpha(0.5 * float(D.min()) if perfect else error, classes)
        if method == "arc-gv" and total > 0.0:
            alpha -= np.arctanh(np.clip(float(np.min(sums)) / total, -1.0 + 1e-12, 1.0 - 1e-12))
        if not alpha > 0.0:
            stopped = "weak"
            if not found:
                found.append(Round(hypothesis, 1.0, error, 1.0))
            break
        D = D * np.exp(-alpha * sign)
        normaliser = float(D.sum())
        D /= normaliser
        found.append(Round(hypothesis, alpha, error, normaliser))
        sums += alpha * sign
        total += alpha
        loss *= normaliser
        going = monitor.watch(number + 1, loss, 0.0, error=error)
        if perfect or not going:
            stopped = "perfect" if perfect else "interrupted"
            break
    return Boosted(found, D, stopped)


def _alpha(error: float, classes: int) -> float:
    """1/2 (ln((1 - eps)/eps) + ln(k - 1)), negative where the hypothesis is no better than chance."""
    with np.errstate(divide="ignore"):
        return float(0.5 * (np.log1p(-error) - np.log(error) + np.log(classes - 1.0)))


def logit_boost(
    regress: Regress,
    positive: Mask,
    rounds: int,
    *,
    start: Array | None = None,
    monitor: Monitor | None = None,
) -> Boosted:
    """LogitBoost of two classes; F is the sum of alpha f with alpha = 1/2, and 2F the log-odds of the positive class.

    Every round's `error` is the share of training errors of F, its normaliser the weighted mean logistic loss.
    """
    monitor = listening(monitor)
    n = len(positive)
    w = np.full(n, 1.0 / n) if start is None else start / start.sum()
    F, found, stopped = np.zeros(n), [], "rounds"
    for number in range(rounds):
        p = 1.0 / (1.0 + np.exp(-2.0 * F))
        curvature = np.maximum(p * (1.0 - p), SMALLEST_WEIGHT)
        z = np.clip((positive - p) / curvature, -LARGEST_RESPONSE, LARGEST_RESPONSE)
        function, values = regress(z, w * curvature)
        F = F + 0.5 * values
        error = float(w[(F > 0) != positive].sum())
        loss = float(w @ np.logaddexp(0.0, np.where(positive, -2.0, 2.0) * F))
        found.append(Round(function, 0.5, error, loss))
        if not monitor.watch(number + 1, loss, 0.0, error=error):
            stopped = "interrupted"
            break
    return Boosted(found, w, stopped)
