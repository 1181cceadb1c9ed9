"""What is lost where an expansion keeps its newest terms only (Schoelkopf and Smola 2002, proposition 10.8).

The coefficient of a term born at step i is at most Lambda_i S, S the largest |dc/dg|, and every later step s multiplies
it by 1 - lambda Lambda_s.  With R the largest sqrt(k(x, x)), all terms born up to step t - tau are together no longer
than

    S R sum_{i <= t - tau} Lambda_i prod_{s = i+1..t} (1 - lambda Lambda_s)
        =  S R / lambda (prod_{s > t - tau} (1 - lambda Lambda_s) - prod_{s = 1..t} (1 - lambda Lambda_s))

because lambda Lambda_i = 1 - (1 - lambda Lambda_i) makes the sum collapse.  For a constant Lambda that is less than the
printed S R (1 - lambda Lambda)^tau / lambda, which also says how many terms are enough for a given error.
"""

import math

from mercer.errors import InvalidInput


def forgotten(regularisation: float, since_cut: float, since_start: float, slope: float, radius: float) -> float:
    """Bound on the norm of all terms up to a cut, of a positive regularisation.

    `since_cut` and `since_start` are the logarithms of the product of 1 - lambda Lambda_s over the steps after the cut,
    and over all steps.
    """
    return slope * radius / regularisation * (math.exp(since_cut) - math.exp(since_start))


def terms_for(error: float, *, rate: float, regularisation: float, slope: float = 1.0, radius: float = 1.0) -> int:
    """Newest terms that hold f up to `error` in norm, for steps of the constant size `rate`."""
    if not error > 0.0:
        raise InvalidInput(f"error must be positive, got {error:g}")
    if not 0.0 < regularisation * rate < 1.0:
        raise InvalidInput(
            f"terms are forgotten only where 0 < regularisation * rate < 1, got {regularisation * rate:g}"
        )
    whole = slope * radius / regularisation
    return 0 if error >= whole else math.ceil(math.log(error / whole) / math.log1p(-regularisation * rate))
