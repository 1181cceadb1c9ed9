"""Bounds of statistical learning theory with their constants: VC dimension, margins, fat shattering, the perceptron.

F = {x -> <w, x> : ||w|| <= 1, ||x|| <= R}; margins y f(x); R_rho = share of the n points with y f(x) < rho;
probability 1 - delta (Smola, Bartlett, Schoelkopf and Schuurmans 2000, chapter 1; Herbrich, Graepel and Obermayer
2000).

    fat_F(rho) <= (R/rho)^2,        log2 N(eps, F, m) <= 3 fat_F(eps/4) log2^2(4 e B m / eps)  for F into [0, B]
    R_rho = 0:   R <= (2/n) (log2 N(rho/2, F, 2n) + log2(2/delta))
    else         R <= R_rho + sqrt((8/n) (ln N(rho/2, F, 2n) + ln(2/delta))).

Together: log2 N <= 192 (R/rho)^2 log2^2(32 e R n / rho), which needs 2n >= 64 (R/rho)^2.  Theorems whose constant the
literature leaves open take it as the argument c and have no default.  Most of these numbers exceed 1 for any n below a
hundred thousand; they are given all the same, and called vacuous.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from mercer.errors import InvalidInput
from mercer.selection.bounds.result import Bound, check_confidence, check_positive

_DRAWN = "points are drawn independently of one distribution"
_BALL = "every point, new ones too, has norm at most R, and ||w|| <= 1"
_FIXED_RHO = "rho is fixed before the data are seen"


def margin_error(y: ArrayLike, f: ArrayLike, rho: float) -> float:
    """R_rho: the share of points with y f < rho."""
    return float(np.mean(np.asarray(y, dtype=np.float64) * np.asarray(f, dtype=np.float64) < rho))


def perceptron_mistakes(R: float, rho: float, bias: float = 0.0) -> Bound:
    """Updates of the perceptron: (b^2 + 1)(R^2 + 1) / rho^2, if y (<w, x> + b) >= rho for some unit vector w."""
    check_positive(R=R, rho=rho)
    value = (bias**2 + 1.0) * (R**2 + 1.0) / rho**2
    return Bound(value, ("the classes are separated with margin rho", "every point has norm at most R"), None, math.inf)


def margin_dimension(R: float, rho: float, d: int | None = None) -> Bound:
    """VC dimension of hyperplanes through 0 that keep margin rho on all points: min(R^2/rho^2, d) + 1."""
    check_positive(R=R, rho=rho)
    value = (R / rho) ** 2 if d is None else min((R / rho) ** 2, float(d))
    needs = ("all points, new ones too, lie at margin rho or more: not a capacity to use in the VC bound",)
    return Bound(value + 1.0, needs, None, math.inf if d is None else d + 1.0)


def fat_shattering(R: float, rho: float) -> Bound:
    """fat_F(rho) <= (R/rho)^2; attained by orthogonal vectors of length R."""
    check_positive(R=R, rho=rho)
    return Bound((R / rho) ** 2, (_BALL,), None, math.inf)


def fat_shattering_absolute(R: float, eps: float, d: int, *, c: float) -> Bound:
    """fat(eps) <= c (R/eps)^2 ln(2d + 2) for ||w||_1 <= R and |x_i| <= 1: linear-programming machines."""
    check_positive(R=R, eps=eps, d=d, c=c)
    needs = ("||w||_1 <= R, and no feature exceeds 1 in size", f"the universal constant is at most c = {c:g}")
    return Bound(c * (R / eps) ** 2 * math.log(2 * d + 2), needs, None, math.inf)


def covering_exponent(fat: float, eps: float, m: int, B: float) -> Bound:
    """log2 N(eps, F, m) <= 3 fat_F(eps/4) log2^2(4 e B m / eps) for F into [0, B]; fat = fat_F(eps/4)."""
    check_positive(eps=eps, m=m, B=B)
    value = 3.0 * fat * math.log2(4.0 * math.e * B * m / eps) ** 2
    return Bound.under(value, (f"m = {m} is at least fat(eps/4) = {fat:g}", m < fat), trivial=math.inf)


def covered_margin(error: float, exponent: float, n: int, *, delta: float = 0.05) -> Bound:
    """Risk from the margin error R_rho and log2 N(rho/2, F, 2n); the faster rate where there is no margin error."""
    check_positive(n=n)
    confidence = check_confidence(delta)
    if error == 0:
        value = 2.0 / n * (exponent + math.log2(2.0 / delta))
    else:
        value = error + math.sqrt(8.0 / n * (exponent * math.log(2.0) + math.log(2.0 / delta)))
    return Bound(value, (_FIXED_RHO, _DRAWN), confidence, details={"margin_error": error, "exponent": exponent})


def margin_bound(error: float, R: float, rho: float, n: int, *, delta: float = 0.05) -> Bound:
    """Risk of a linear function of unit norm from its margin error R_rho, every constant known."""
    check_positive(R=R, rho=rho, n=n)
    cover = covering_exponent(fat_shattering(R, rho / 8.0).value, rho / 2.0, 2 * n, 2.0 * R)
    found = covered_margin(error, cover.value, n, delta=delta)
    assumptions, failed = (*found.assumptions, *cover.assumptions, _BALL), cover.failed
    return Bound(found.value, assumptions, found.confidence, 1.0, failed, found.details)


def uniform_margin_bound(error: float, R: float, rho: float, n: int, *, c: float, delta: float = 0.05) -> Bound:
    """Risk for every rho <= R at once: (c/n) ((R/rho)^2 ln^2(R n/rho) + ln(1/delta)), or R_rho plus its root.

    Only R/rho counts: the literature's ln^2(n/rho) depends on the unit in which points are measured.
    """
    check_positive(R=R, rho=rho, n=n, c=c)
    confidence = check_confidence(delta)
    term = c / n * ((R / rho) ** 2 * math.log(R * n / rho) ** 2 + math.log(1.0 / delta))
    value = term if error == 0 else error + math.sqrt(term)
    least = ("rho is at most R, as every margin is", rho > R)
    constant = f"the universal constant is at most c = {c:g}"
    return Bound.under(max(value, 1.0) if rho > R else value, _BALL, _DRAWN, least, constant, confidence=confidence)


def fat_margin_bound(k: float, n: int, *, delta: float = 0.05) -> Bound:
    """Risk without margin error: (2/n) (k log2(8en/k) log2(32n) + log2(8n/delta)), k = fat(rho/8) <= e n.

    Shawe-Taylor, Bartlett, Williamson and Anthony 1998.  For preferences learnt from n + 1 ranked objects the same
    number, at n = objects - 1, bounds the risk of ordering a pair wrongly, with the diameter of the data in the place
    of R (Herbrich, Graepel and Obermayer 2000).
    """
    check_positive(k=k, n=n)
    confidence = check_confidence(delta)
    value = 2.0 / n * (k * math.log2(8.0 * math.e * n / k) * math.log2(32.0 * n) + math.log2(8.0 * n / delta))
    return Bound.under(
        max(value, 1.0) if k > math.e * n else value,
        "there is no training error, and k = fat(rho/8) at the margin rho that is reached",
        ("k is at most e n", k > math.e * n),
        _DRAWN,
        confidence=confidence,
        details={"k": k},
    )


def vc_bound(error: float, dimension: float, n: int, *, c: float, delta: float = 0.05) -> Bound:
    """Risk R <= R_n + sqrt((c/n)(h + ln(1/delta))) for every function of a class of VC dimension h."""
    check_positive(dimension=dimension, n=n, c=c)
    value = error + math.sqrt(c / n * (dimension + math.log(1.0 / delta)))
    return Bound(value, (_DRAWN, f"the universal constant is at most c = {c:g}"), check_confidence(delta))


def vapnik_bound(error: float, dimension: float, n: int, *, delta: float = 0.05) -> Bound:
    """Risk R <= R_n + sqrt((h (ln(2n/h) + 1) + ln(4/delta)) / n), every constant known (Vapnik 1995)."""
    check_positive(dimension=dimension, n=n)
    confidence = check_confidence(delta)
    # ln of the growth function at 2n, Sauer's bound or that of all labellings.
    growth = 2.0 * n * math.log(2.0)
    if 2 * n > dimension:
        growth = min(growth, dimension * (math.log(2.0 * n / dimension) + 1.0))
    value = error + math.sqrt((growth + math.log(4.0 / delta)) / n)
    return Bound(value, (_DRAWN, "the class has VC dimension at most h and is fixed before the data"), confidence)


def convex_combination(error: float, dimension: float, rho: float, n: int, *, c: float, delta: float = 0.05) -> Bound:
    """Risk of a convex combination of functions of VC dimension h, however many: a bound for boosting.

    R <= R_rho + sqrt((c/n) (h ln^2(n/h) / rho^2 + ln(1/delta))) for every rho > 0.
    """
    check_positive(dimension=dimension, rho=rho, n=n, c=c)
    if n <= dimension:
        raise InvalidInput(f"n must exceed the VC dimension {dimension:g}; it is {n}.")
    value = error + math.sqrt(c / n * (dimension * math.log(n / dimension) ** 2 / rho**2 + math.log(1.0 / delta)))
    return Bound(value, (_DRAWN, f"the universal constant is at most c = {c:g}"), check_confidence(delta))


def regression_deviation(exponent: float, n: int, eps: float) -> Bound:
    """P(sup over F of |R - R_n| >= eps) <= 4 N(eps/16, F, 2n) exp(-eps^2 n / 32), F into [0, 1], squared loss.

    exponent: log2 N(eps/16, F, 2n).
    """
    check_positive(n=n, eps=eps)
    power = math.log(4.0) + exponent * math.log(2.0) - eps**2 * n / 32.0
    return Bound(math.exp(min(power, 700.0)), (_DRAWN, "outputs and targets lie between 0 and 1"), None)
