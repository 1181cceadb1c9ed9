"""Bounds on the risk of ordering a pair wrongly, for functions that order their sample without a mistake.

Herbrich, Graepel and Obermayer 2000 (theorem 2.2) chain n objects to n - 1 pairs of neighbours and treat these as
independent; neighbouring pairs share an object, and are not.  The n // 2 disjoint pairs are.  The margin is the least
f(x_i) - f(x_j) over pairs with y_i > y_j for ||w|| = 1, and the diameter of the data takes the place of their radius:
k = fat(rho/8) = 64 (D/rho)^2.
"""

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from mercer.errors import InvalidInput
from mercer.selection.bounds.margin import fat_margin_bound, fat_shattering
from mercer.selection.bounds.result import Bound, check_positive

_CHAINED = "neighbouring pairs of a chain are independent, though they share an object"


def pair_margin(y: ArrayLike, f: ArrayLike) -> float:
    """The least f_i - f_j over the pairs with y_i > y_j: what is lowest in a rank less what is highest below it."""
    ranks, values = np.unique(np.asarray(y), return_inverse=True)[1], np.asarray(f, dtype=np.float64)
    q = int(ranks.max()) + 1
    if q < 2:
        raise InvalidInput("one rank only: there is no pair with a margin")
    highest, lowest = np.full(q, -np.inf), np.full(q, np.inf)
    np.maximum.at(highest, ranks, values)
    np.minimum.at(lowest, ranks, values)
    return float(np.min(lowest[1:] - np.maximum.accumulate(highest)[:-1]))


def pair_bound(
    diameter: float, rho: float, n: int, *, delta: float = 0.05, mode: Literal["disjoint", "chained"] = "disjoint"
) -> Bound:
    """Risk of ordering a pair wrongly from n ranked objects, all pairs ordered with margin rho by a unit vector.

    "disjoint" counts the n // 2 pairs without a common object; "chained", as printed, n - 1 pairs.
    """
    check_positive(diameter=diameter, rho=rho, n=n - 1)
    if mode not in ("disjoint", "chained"):
        raise InvalidInput(f"mode must be 'disjoint' or 'chained'; it is {mode!r}")
    pairs = n // 2 if mode == "disjoint" else n - 1
    found = fat_margin_bound(fat_shattering(diameter, rho / 8.0).value, pairs, delta=delta)
    if mode == "disjoint":
        return found
    needs, failed = (*found.assumptions, _CHAINED), (*found.failed, _CHAINED)
    return replace(found, assumptions=needs, failed=failed, details={**found.details, "pairs": pairs})
