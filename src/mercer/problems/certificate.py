"""How far a point is from optimal: primal value, dual value, and the gap between them.

For every feasible dual point D <= optimum <= P, so P - D bounds the error of both.  The gap is summed term by term in
its conjugate (Fenchel-Young) form, each term non-negative, and is therefore accurate even when it is many orders of
magnitude below P and D; the dual value is the primal minus that gap (Schoelkopf and Smola 2002, section 10.1.1; the
form printed there for nonlinear losses is not a bound and is not used).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from mercer.arrays import Vector

# A relative gap below this is lost in the rounding of the two objectives.
ROUNDING = 1e-16
# Relative gaps above this are worth the search for the best multiple of the function (`mercer.problems.scale`).
SCALED_FROM = 1e-3


def relative_gap(primal: float, dual: float, gap: float | None = None) -> float:
    """(P - D) / max(|P|, |D|), the one definition in mercer; 0 when P = D = 0, nan when a value is.

    Where both are positive, as for every machine with a loss and a norm, it is the share of the objective that may be
    missing: `gap_ / objective_`.
    """
    gap = primal - dual if gap is None else gap
    scale = max(abs(primal), abs(dual))
    if math.isnan(gap) or math.isnan(primal) or math.isnan(dual):
        return math.nan
    if gap <= 0.0:
        return 0.0
    return gap / scale if scale > 0.0 else math.inf


def gap_text(relative: float) -> str:
    """A relative gap for a reader: two digits, and no digits below the rounding of the objective itself."""
    if math.isnan(relative):
        return "not known"
    return f"{relative:.2g}" if relative >= ROUNDING else f"< {ROUNDING:.0e}"


def converged(primal: float, dual: float, tol: float, gap: float | None = None) -> bool:
    """Whether the relative gap is at most `tol`; never where it is not a number."""
    return relative_gap(primal, dual, gap) <= tol


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """How far the products K c behind a certificate may be off."""

    values: Vector
    """Bounds (n,): at each point, and for points strictly inside their bounds in the mean over those."""
    energy: float
    """Bound on the error of c'Kc / 2."""
    level: float = 0.0
    """Mean error of the points that matter, for kernel values of one."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """Primal and dual value at one dual-feasible point, and the free parameters that make the primal smallest.

    Every problem has its certificates in this form; those with several outputs are sums over them.
    """

    primal: float
    dual: float
    gap: float
    bias: float | Vector = 0.0
    """The free bias: one number, or one for each output (k,)."""
    multipliers: Mapping[str, float | Vector] = field(default_factory=dict)
    """Named free parameters besides the bias: "rho", "epsilon", "basis", "offsets"."""
    h: Vector = field(default_factory=partial(np.zeros, 0))
    """Multipliers (r,) of the equalities of the quadratic program."""
    scale: float = 1.0
    """The primal value is that of the function times this factor, with free parameters of its own."""
    rounding: float = 0.0
    """Gaps below this cannot be told from none; they count as closed, and are stated all the same."""
    arithmetic: float = 0.0
    """The part of the gap that is due to the uncertainty of the values it was computed from."""
    outputs: Mapping[str, Vector] = field(default_factory=dict)
    """"primal", "dual" and "gap" of each output (k,), where a problem is a sum of problems with one output."""

    @classmethod
    def of_outputs(cls, outputs: Mapping[str, Vector], multipliers: Mapping[str, float | Vector]) -> "Certificate":
        """The certificate of a sum of problems, from "primal", "dual" and "gap" (k,) of each."""
        primal, dual, gap = (float(outputs[name].sum()) for name in ("primal", "dual", "gap"))
        return cls(primal, dual, gap, multipliers=multipliers, outputs=outputs)

    def widened(self, largest_gap: float, energy: float) -> "Certificate":
        """The certificate that still holds when the values it was computed from are off.

        `largest_gap` is the largest gap that errors of the values allow at the given c'Kc / 2, whose own error is at
        most `energy`: it lowers the dual value, and adds to the gap twice, once for each of the two objectives.
        """
        gap, dual = largest_gap + 2.0 * energy, self.dual - energy
        return replace(self, primal=dual + gap, dual=dual, gap=gap, arithmetic=gap - self.gap)

    def without_noise(self) -> "Certificate":
        """No gap where the objective itself cannot be told from zero."""
        if max(abs(self.primal), abs(self.dual)) > self.rounding:
            return self
        return replace(self, dual=self.primal, gap=0.0, arithmetic=0.0)

    @property
    def relative_gap(self) -> float:
        """(P - D) / max(|P|, |D|)."""
        return relative_gap(self.primal, self.dual, self.gap)

    def converged(self, tol: float) -> bool:
        """Whether the relative gap is at most `tol`, or lost in rounding."""
        lost = self.gap <= self.rounding and math.isfinite(self.primal) and math.isfinite(self.dual)
        return lost or converged(self.primal, self.dual, tol, self.gap)


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
        """(P - D) / max(|P|, |D|)."""
        return relative_gap(self.primal, self.dual) if np.isfinite(self.gap) else float("inf")

    def converged(self, tol: float) -> bool:
        """Whether the relative gap is at most `tol`."""
        return bool(np.isfinite(self.gap)) and converged(self.primal, self.dual, tol)

    def __repr__(self) -> str:
        return f"Bounds(primal={self.primal:.9g}, dual={self.dual:.9g}, gap={self.gap:.3g})"
