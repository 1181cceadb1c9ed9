"""How far a point is from optimal: primal value, dual value, and the gap between them.

For every feasible dual point D <= optimum <= P, so P - D bounds the error of both.  The gap is summed term by term in
its conjugate (Fenchel-Young) form, each term non-negative, and is therefore accurate even when it is many orders of
magnitude below P and D; the dual value is the primal minus that gap (Schoelkopf and Smola 2002, section 10.1.1; the
form printed there for nonlinear losses is not a bound and is not used).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def relative_gap(primal: float, dual: float, gap: float | None = None) -> float:
    """Gap over the mean size of primal and dual: 2 (P - D) / (|P| + |D|), 0 when P = D = 0."""
    gap = primal - dual if gap is None else gap
    scale = 0.5 * (abs(primal) + abs(dual))
    if gap <= 0.0:
        return 0.0
    return gap / scale if scale > 0.0 else float("inf")


def converged(primal: float, dual: float, tol: float) -> bool:
    """The stop rule gap <= tol (|P| + |D|) / 2, all in one scale."""
    return primal - dual <= 0.5 * tol * (abs(primal) + abs(dual))


@dataclass(frozen=True, eq=False)
class Certificate:
    """Primal and dual value at one dual-feasible point, and the free parameters that make the primal smallest."""

    primal: float
    dual: float
    gap: float
    bias: float
    multipliers: Mapping[str, float | Vector] = field(default_factory=dict)
    """Named free parameters besides the bias: "rho", "epsilon", "basis"."""
    h: Vector = field(default_factory=lambda: np.zeros(0))
    """Multipliers (r,) of the equalities of the quadratic program."""

    @property
    def relative_gap(self) -> float:
        """2 (P - D) / (|P| + |D|)."""
        return relative_gap(self.primal, self.dual, self.gap)

    def converged(self, tol: float) -> bool:
        """Whether gap <= tol (|P| + |D|) / 2."""
        return self.gap <= 0.5 * tol * (abs(self.primal) + abs(self.dual))


class Bounds:
    """The best bounds seen so far: min of all primal values >= optimum >= max of all dual values.

    The gap of single iterates goes up and down; these two running values only ever close.
    """

    __slots__ = ("dual", "primal")

    def __init__(self, primal: float = float("inf"), dual: float = float("-inf")) -> None:
        self.primal = primal
        self.dual = dual

    def update(self, primal: float, dual: float) -> "Bounds":
        """Take in one iterate's values."""
        self.primal = min(self.primal, primal)
        self.dual = max(self.dual, dual)
        return self

    @property
    def gap(self) -> float:
        """Distance between the bounds, never below zero."""
        return max(0.0, self.primal - self.dual)

    @property
    def relative_gap(self) -> float:
        """2 (P - D) / (|P| + |D|)."""
        return relative_gap(self.primal, self.dual) if np.isfinite(self.gap) else float("inf")

    def converged(self, tol: float) -> bool:
        """Whether gap <= tol (|P| + |D|) / 2."""
        return bool(np.isfinite(self.gap)) and converged(self.primal, self.dual, tol)

    def __repr__(self) -> str:
        return f"Bounds(primal={self.primal:.9g}, dual={self.dual:.9g}, gap={self.gap:.3g})"
