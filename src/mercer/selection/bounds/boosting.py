"""What the weighted errors of boosting say about its margins.

AdaBoost with hypotheses g_t of weighted errors eps_t < 1/2 ends with f = sum alpha_t g_t / sum alpha_t.  The share of
training points of margin y f <= rho is at most (Schapire, Freund, Bartlett and Lee 1998; Theorem 1.12 of Smola,
Bartlett, Schoelkopf and Schuurmans 2000)

    R_rho(f) <= 2^T prod_t sqrt(eps_t^(1 - rho) (1 - eps_t)^(1 + rho)) ,

and at rho = 0 that is the bound prod_t 2 sqrt(eps_t (1 - eps_t)) on the training error.  Where eps_t <= 1/2 - 2 rho,
the right side is below (1 - rho^2)^(T/2), which falls below any share after (2/rho^2) ln(1/share) rounds.  Nothing is
said about new points: the margins enter bounds on the risk of convex combinations.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput
from mercer.selection.bounds.result import Bound, check_positive


def boosted_margin_error(errors: ArrayLike, rho: float = 0.0) -> Bound:
    """Bound on the share of training points of margin at most rho, from the weighted errors (T,) of AdaBoost."""
    eps: NDArray[np.float64] = np.asarray(errors, dtype=np.float64)
    if not 0.0 <= rho < 1.0:
        raise InvalidInput(f"rho = {rho:g} must be at least 0 and below 1")
    if eps.size == 0 or np.any((eps < 0.0) | (eps > 1.0)):
        raise InvalidInput("errors must hold at least one weighted error, each from 0 to 1")
    with np.errstate(divide="ignore"):
        logarithm = np.sum(np.log(2.0) + 0.5 * ((1.0 - rho) * np.log(eps) + (1.0 + rho) * np.log1p(-eps)))
    return Bound.under(
        float(np.exp(logarithm)),
        "the hypotheses answer +-1 and are weighed by AdaBoost, alpha = 1/2 ln((1 - eps)/eps)",
        ("every weighted error is below 1/2", bool(np.any(eps >= 0.5))),
        trivial=1.0,
        details={"rounds": len(eps), "rho": rho},
    )


def boosting_rounds(rho: float, share: float) -> int:
    """Rounds after which no more than `share` of the points have margin rho, if every error is at most 1/2 - 2 rho."""
    check_positive(rho=rho, share=share)
    if not (rho < 0.25 and share < 1.0):
        raise InvalidInput(f"rho = {rho:g} must be below 1/4 and share = {share:g} below 1")
    return int(np.ceil(2.0 / rho**2 * np.log(1.0 / share)))
