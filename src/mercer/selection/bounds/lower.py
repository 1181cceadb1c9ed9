"""What no method can beat: lower bounds on the risk and on covering numbers.

*Risk* (Smola, Bartlett, Schoelkopf and Schuurmans 2000, theorem 1.3).  For a class of VC dimension h >= 1 and any
method, some distribution makes the risk of what it learns from n points

    R >= inf R + sqrt((c/n) (h + ln(1/delta)))        with probability delta or more,

delta small, for a universal c that the literature leaves open (it is not the c of the upper bound).

With every constant (after Anthony and Bartlett 1999, chapter 5): the labels of one point, or of h shattered ones drawn
equally often, are coins of bias (1 +- a)/2.  From m tosses the sign of a coin is told wrongly with probability at least

    g(m) = (1 - sqrt(1 - exp(-(m + 1) a^2 / (1 - a^2)))) / 4 ,

whatever the rule, half of the coins being of each kind.  One coin: the excess risk is a with probability delta if
g(n) >= delta,

    a^2 / (1 - a^2) = ln(1 / (8 delta (1 - 2 delta))) / (n + 1) .

h coins: g is convex, so that the excess risk has a mean of a g(n/h) or more; it is at most a, and exceeds a t with
probability (g - t)/(1 - t) or more.  Setting that to delta gives the excess a (g(n/h) - delta)/(1 - delta), for the
best a.  The larger of the two is the bound.

*Covers* (theorem 1.4, lower half).  If m >= fat_F(16 eps), log2 N(eps, F, m) >= (log2(e)/8) fat_F(16 eps), even where
functions are compared by their mean distance over the m points.  By the largest distance much more is true: functions
that shatter at a width rho > eps lie 2 rho apart, no two of them in one ball, and log2 N(eps, F, m) >= fat_F(rho).
"""

import math
from typing import Literal

from scipy.optimize import minimize_scalar

from mercer.errors import InvalidInput
from mercer.selection.bounds.result import Bound, check_confidence, check_positive

Distance = Literal["mean", "largest"]

_SOME = "a statement about the worst distribution for the method, not about the one at hand"


def vc_lower_bound(best: float, dimension: float, n: int, *, c: float, delta: float = 0.01) -> Bound:
    """Risk R >= inf R + sqrt((c/n)(h + ln(1/delta))) with probability delta, for some distribution; best: inf R."""
    check_positive(n=n, c=c)
    check_confidence(delta)
    _check_dimension(dimension)
    value = best + math.sqrt(c / n * (dimension + math.log(1.0 / delta)))
    needs = (_SOME, f"the universal constant is at least c = {c:g}, and delta is small")
    return Bound(value, needs, delta, best, side="lower")


def agnostic_lower_bound(dimension: int, n: int, *, delta: float = 0.01) -> Bound:
    """Excess risk R - inf R that some distribution forces on any method with probability delta, every constant known.

    delta must lie below 1/4 for the bound to say anything; details: the excess by one coin and by h coins.
    """
    check_positive(n=n)
    check_confidence(delta)
    _check_dimension(dimension)
    one = many = 0.0
    if delta < 0.25:
        odds = max(math.log(1.0 / (8.0 * delta * (1.0 - 2.0 * delta))), 0.0) / (n + 1.0)
        one = math.sqrt(odds / (1.0 + odds))
        found = minimize_scalar(lambda a: -_excess(a, n / dimension, delta), bounds=(0.0, 1.0), method="bounded")
        many = max(_excess(float(found.x), n / dimension, delta), 0.0)
    needs = (_SOME, "the class shatters some set of h points")
    return Bound(max(one, many), needs, delta, 0.0, details={"one_coin": one, "all_coins": many}, side="lower")


def coin_error(bias: float, tosses: float) -> float:
    """g(m): the least probability with which m tosses mislead about the sign of a coin of bias (1 +- a)/2."""
    if not 0 <= bias < 1:
        raise InvalidInput(f"bias must be at least 0 and less than 1; it is {bias!r}.")
    power = (tosses + 1.0) * bias**2 / (1.0 - bias**2)
    return (1.0 - math.sqrt(-math.expm1(-power))) / 4.0


def covering_floor(fat: float, m: int, *, distance: Distance = "mean") -> Bound:
    """log2 N(eps, F, m) from below: (log2(e)/8) fat with fat = fat_F(16 eps), by the mean or the largest distance.

    distance="largest": fat itself, which may then be fat_F(rho) for any rho > eps; N by the mean distance may be less.
    """
    check_positive(m=m)
    if distance not in ("mean", "largest"):
        raise InvalidInput(f"distance must be 'mean' or 'largest'; it is {distance!r}.")
    value = fat * (math.log2(math.e) / 8.0 if distance == "mean" else 1.0)
    enough = (f"m = {m} is at least the fat-shattering dimension {fat:g}", m < fat)
    return Bound.under(value, enough, trivial=0.0, side="lower")


def _excess(bias: float, tosses: float, delta: float) -> float:
    """The excess a (g - delta)/(1 - delta) that h coins force."""
    return bias * (coin_error(bias, tosses) - delta) / (1.0 - delta)


def _check_dimension(dimension: float) -> None:
    if not dimension >= 1:
        raise InvalidInput(f"dimension must be at least 1; it is {dimension!r}.")
