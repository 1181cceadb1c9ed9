"""The cumulative model of ordered classes: P(r <= k | x) = F(theta_k - f(x)), f in the space of a kernel.

    P = 1/2 ||f||^2 - C sum_i w_i ln pi_i,     pi_i = F(b_i) - F(a_i),
    b_i = theta_{r_i} - f_i,   a_i = theta_{r_i - 1} - f_i,

with theta_{-1} = -inf, theta_{q-1} = inf (McCullagh 1980; Herbrich, Graepel and Obermayer 2000, section 2.2).  Links:

    logit     F = 1 / (1 + exp(-t))      ln pi = ln F(b) + ln F(-a) + ln(1 - exp(a - b))
    probit    F = normal distribution    ln pi = ln F(b) + ln(1 - F(a)/F(b)), mirrored where a > 0
    cloglog   F = 1 - exp(-exp(t))       ln pi = -exp(a) + ln(1 - exp(exp(a) - exp(b)))

so that no digits are lost in the tails.  -ln pi is convex in (f, theta) for all three, and keeps theta in order by
itself where every rank occurs.  Given f, the q - 1 thresholds are found by Newton's method; the second derivative of
the least over theta is the Schur complement  H_ff - H_ft H_tt^-1 H_tf.
"""

from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit, log_ndtr

from mercer import dense
from mercer.arrays import Vector
from mercer.problems.few_variables import Look, minimiser
from mercer.problems.latent import LatentPoint, LatentProblem, checked_codes, checked_weights, refuse_missing_ranks
from mercer.problems.program import GramLike

Link = Literal["logit", "probit", "cloglog"]

DOUBLINGS = 60
FLATTEST = 1e-14  # share of its trace that the second derivative in the thresholds has at least
LARGEST = 700.0  # exp of more overflows
ROOT = 0.5 * np.log(2.0 * np.pi)


def log_share(link: Link, a: Vector, b: Vector) -> Vector:
    """Ln(F(b) - F(a)) for a < b, either of them perhaps infinite."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore", under="ignore"):
        if link == "logit":
            return np.asarray(log_expit(b) + log_expit(-a) + np.log(-np.expm1(a - b)))
        if link == "probit":
            low, high = np.where(a > 0.0, -b, a), np.where(a > 0.0, -a, b)
            top = log_ndtr(high)
            return np.asarray(top + np.log1p(-np.exp(log_ndtr(low) - top)))
        lower, upper = np.exp(np.minimum(a, LARGEST)), np.exp(np.minimum(b, LARGEST))
        return np.asarray(-lower + np.log(-np.expm1(lower - upper)))


def log_density(link: Link, t: Vector) -> Vector:
    """Ln F'(t); -inf at the ends."""
    with np.errstate(over="ignore"):
        if link == "logit":
            return np.asarray(log_expit(t) + log_expit(-t))
        if link == "probit":
            return np.asarray(-0.5 * t * t - ROOT)
        return np.asarray(np.where(np.isinf(t), -np.inf, t - np.exp(np.minimum(t, LARGEST))))


def bend(link: Link, t: Vector) -> Vector:
    """F''(t) / F'(t) at finite t, zero at the ends."""
    inside = np.where(np.isinf(t), 0.0, t)
    if link == "logit":
        found = -np.tanh(0.5 * inside)
    elif link == "probit":
        found = -inside
    else:
        found = -np.expm1(np.minimum(inside, LARGEST))
    return np.where(np.isinf(t), 0.0, found)


class Cumulative(LatentProblem):
    """The problem for `ranks` (n,) from 0 to q - 1, every one of which occurs."""

    def __init__(
        self,
        gram: GramLike,
        ranks: ArrayLike,
        C: float = 1.0,
        weights: ArrayLike | None = None,
        link: Link = "logit",
    ) -> None:
        super().__init__(gram)
        self.ranks, self.link = checked_codes(ranks, self.n), link
        self.w = C * checked_weights(C, weights, self.n)
        self.counts = np.bincount(self.ranks, weights=self.w)
        self.q = len(self.counts)
        refuse_missing_ranks(self.counts)
        self._last: Vector | None = None  # thresholds to begin from

    def _ends(self, f: Vector, theta: Vector) -> tuple[Vector, Vector]:
        edges = np.concatenate(([-np.inf], theta, [np.inf]))
        return edges[self.ranks] - f, edges[self.ranks + 1] - f

    def losses(self, f: Vector, theta: Vector) -> float:
        """-sum_i C_i ln pi_i; infinite where thresholds are out of order."""
        if not (np.diff(theta) > 0.0).all():
            return float("inf")
        with np.errstate(over="ignore"):
            value = -float(self.w @ log_share(self.link, *self._ends(f, theta)))
        return value if np.isfinite(value) else float("inf")

    def _look(self, f: Vector, theta: Vector) -> Look:
        """The losses as a function of the thresholds.

        Kept are the slopes of -ln pi in the two ends (n,), times the weights, and the second derivatives (n, 3): bb,
        aa, ab.  The value is infinite where thresholds are out of order.
        """
        if not (np.diff(theta) > 0.0).all():
            return Look(np.inf, np.full(self.q - 1, np.nan), np.eye(self.q - 1))
        a, b = self._ends(f, theta)
        with np.errstate(over="ignore"):
            share = log_share(self.link, a, b)
            value = -float(self.w @ share)
            high, low = np.exp(log_density(self.link, b) - share), np.exp(log_density(self.link, a) - share)
        bb = high * high - high * bend(self.link, b)
        aa = low * low + low * bend(self.link, a)
        second = self.w[:, None] * np.column_stack((np.maximum(bb, 0.0), np.maximum(aa, 0.0), -high * low))
        high, low = -self.w * high, self.w * low
        value = value if np.isfinite(value) else np.inf
        return Look(value, self._in_thresholds(high, low), self._threshold_matrix(second), (high, low, second))

    def _in_thresholds(self, above: Vector, below: Vector) -> Vector:
        """Sums (q - 1,) of what points have at their upper and at their lower threshold."""
        upper = np.bincount(self.ranks, weights=above, minlength=self.q)[: self.q - 1]
        return np.asarray(upper + np.bincount(self.ranks, weights=below, minlength=self.q)[1:])

    def _threshold_matrix(self, second: NDArray[np.float64]) -> NDArray[np.float64]:
        """H_tt (q - 1, q - 1), of which neighbours alone are not zero, made regular."""
        H = np.diag(self._in_thresholds(second[:, 0], second[:, 1]))
        H += (FLATTEST * np.trace(H) + np.finfo(np.float64).tiny) * np.eye(self.q - 1)
        cross = np.bincount(self.ranks, weights=second[:, 2], minlength=self.q)[1 : self.q - 1]
        place = np.arange(self.q - 2)
        H[place, place + 1] = H[place + 1, place] = cross
        return H

    def best_thresholds(self, f: Vector) -> tuple[Vector, Look]:
        """The thresholds (q - 1,) that minimise the losses at f (n,), and the look at them."""
        theta = self._last
        if theta is None or not np.isfinite(self.losses(f, theta)):
            shares = np.cumsum(self.counts)[:-1] / self.counts.sum()
            theta = float(np.average(f, weights=self.w)) + np.log(shares / (1.0 - shares))
            spread = 1.0 + float(np.ptp(f))
            for _ in range(DOUBLINGS):  # values so far apart that no thresholds will do have infinite losses
                if np.isfinite(self.losses(f, theta)):
                    break
                theta, spread = theta * 0.5 + spread * np.linspace(-1.0, 1.0, self.q + 1)[1:-1], 2.0 * spread
        theta, found = minimiser(partial(self._look, f), theta, float(self.w.sum()))
        self._last = theta
        return theta, found

    def at(self, f: Vector, width: float) -> LatentPoint:
        """The losses at latent values f (n,), at their best thresholds."""
        theta, found = self.best_thresholds(f)
        high, low, second = found.kept
        bb, aa, ab = second.T
        own = bb + aa + 2.0 * ab

        def curvature(v: Vector) -> Vector:
            mixed = self._in_thresholds((bb + ab) * v, (aa + ab) * v)
            moved = np.concatenate(([0.0], dense.solve_square(found.curvature, mixed), [0.0]))
            return np.asarray(own * v - (bb + ab) * moved[self.ranks + 1] - (aa + ab) * moved[self.ranks])

        return LatentPoint(found.value, found.value, -(high + low), 0.0, curvature, theta)

    def value(self, f: Vector, width: float) -> float:
        """The losses at f (n,), at their best thresholds."""
        return self.best_thresholds(f)[1].value
