"""Which machine for data of a size: least squares while exact leave-one-out is cheap, support vectors beyond.

Least squares choose C and the kernel's width by exact leave-one-out, n^3 operations for each width and no grid.
Support vector machines keep only some of the points, and are tuned by cross-validation on shared kernel values.
"""

from typing import Literal

from mercer.planning.choice import Choice

Target = Literal["classification", "regression"]

# Points up to which exact leave-one-out over C and width is a matter of seconds.
LEAST_SQUARES_POINTS = 1500


def machine_for(
    target: Target, n: int, *, outputs: int = 1, probability: bool = False, cross_validated: bool = False
) -> Choice:
    """The machine, "svc", "lssvc", "svr" or "lssvr", for n points with so many targets each.

    `probability`: probabilities are wanted; `cross_validated`: the search is to be one by cross-validation.
    """
    letter = "c" if target == "classification" else "r"
    if probability:
        return Choice("sv" + letter, "probabilities come from support vector machines")
    if cross_validated:
        return Choice("sv" + letter, "cross-validation was asked for, which support vector machines are tuned by")
    if outputs > 1:
        return Choice("lssv" + letter, f"{outputs} targets share one factorisation: least squares")
    if n <= LEAST_SQUARES_POINTS:
        reason = f"{n} points are at most {LEAST_SQUARES_POINTS}: least squares, tuned by exact leave-one-out"
        return Choice("lssv" + letter, reason)
    reason = f"{n} points are more than {LEAST_SQUARES_POINTS}: a support vector machine, which keeps only some of them"
    return Choice("sv" + letter, reason)
