"""What all problems share: certificates from the quadratic program, and the free parameters of the machine.

A problem is data: it states its quadratic program once and says how the multipliers of the equalities translate into
the bias, a margin or a tube, and the coefficients of basis functions.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.arrays import Vector
from mercer.errors import Infeasible, InvalidInput
from mercer.losses import Loss
from mercer.problems.certificate import Certificate, Uncertainty, converged
from mercer.problems.program import QuadraticProgram
from mercer.problems.statement import Bias, Costs

Named = dict[str, float | Vector]


class Problem:
    """A quadratic program over a Gram matrix (n, n), with targets y (n,), costs (n,) each, and basis (n, q) or None."""

    loss: Loss | None = None
    """Cost of one point; None where a free parameter (rho, epsilon) is part of it."""
    C: float = 1.0
    bias: Bias = "free"

    def __init__(self, program: QuadraticProgram, y: Vector, costs: Costs, basis: Vector | None = None) -> None:
        self._program, self.gram = program, program.gram
        self.y, self.costs, self.basis = y, costs, basis

    @property
    def box(self) -> Vector:
        """The most a point may weigh, (n,): C w_i."""
        return np.maximum(*self.costs)

    @property
    def n(self) -> int:
        """Number of points."""
        return int(self.gram.shape[0])

    def program(self) -> QuadraticProgram:
        """The quadratic program of this problem in signed variables."""
        return self._program

    def coefficients(self, s: Vector) -> Vector:
        """Expansion coefficients (n,) of the signed variables s (N,)."""
        return self._program.coefficients(s)

    def primal(
        self, coefficients: ArrayLike, bias: float = 0.0, *, f0: Vector | None = None, **multipliers: Any
    ) -> float:
        """Primal objective at any coefficients (n,) and free parameters; `f0` = K @ coefficients if known."""
        c = np.asarray(coefficients, dtype=np.float64)
        return self._program.primal(c, self.equality_multipliers(bias, **multipliers), f0)

    def dual(self, s: Vector, f0: Vector | None = None) -> float:
        """Dual objective at signed variables s (N,)."""
        return -self._program.objective(s, f0)

    def certificate(
        self,
        s: Vector,
        f0: Vector | None = None,
        h: Vector | None = None,
        *,
        aim: float | None = None,
        uncertainty: Uncertainty | None = None,
    ) -> Certificate:
        """Primal, dual and gap at dual-feasible s (N,), O(n log n) when f0 = K @ coefficients (n,) is given.

        Slacks are the smallest feasible ones, the bias and its companions make the gap smallest.  `h` (r,) proposes
        multipliers of the equalities; the better of these and the computed ones is kept.  Where the relative gap is
        above `aim`, the primal value is that of the best multiple of the function (`mercer.problems.scale`); bias and
        multipliers stay those of the function itself.  With `uncertainty` the values are bounds for all f0 within it.
        """
        program = self._program
        c = program.coefficients(s)
        g = program.values(c, f0)
        chosen = self._best_multipliers(g, s)
        primal, gap = program.evaluate(s, g, chosen, c)
        if h is not None:
            other = program.evaluate(s, g, h, c)
            if other[0] < primal:
                (primal, gap), chosen = other, h
        bias, named = self.free_parameters(chosen, c)
        scale, scaled = 1.0, chosen
        if aim is not None and not converged(primal, primal - gap, aim, gap):
            t, other_h = program.best_scale(s, g, chosen, c)
            other = program.evaluate(s, g, other_h, c, t)
            if other[1] < gap:
                (primal, gap), scale, scaled = other, t, other_h
        found = Certificate(primal, primal - gap, gap, bias, named, chosen, scale, program.rounding)
        if uncertainty is not None:
            largest = program.largest_gap(s, g, scaled, uncertainty.values, scale)
            found = found.widened(largest, uncertainty.energy)
        return found.without_noise()

    def _best_multipliers(self, g: Vector, s: Vector) -> Vector:
        return self._program.best_multipliers(g, s)

    def equality_multipliers(self, bias: float, **named: Any) -> Vector:
        """Multipliers h (r,) of the program's equalities that stand for these free parameters."""
        if self.basis is None:
            return self._thresholds(bias, named)
        beta = np.asarray(named.pop("basis", np.zeros(self.basis.shape[1])), dtype=np.float64)
        return np.concatenate((self._thresholds(bias, named), -beta))

    def free_parameters(self, h: Vector, coefficients: Vector) -> tuple[float, Named]:
        """Bias and named parameters, "basis" (q,) among them, for multipliers h (r,) and coefficients (n,)."""
        if self.basis is None:
            return self._parameters(h, coefficients)
        sums = h.size - self.basis.shape[1]
        bias, named = self._parameters(h[:sums], coefficients)
        return bias, {**named, "basis": -h[sums:]}

    def _thresholds(self, bias: float, named: Named) -> Vector:
        """Multipliers of the fixed sums."""
        only(named)
        return np.array([-bias]) if self.bias == "free" else np.zeros(0)

    def _parameters(self, h: Vector, coefficients: Vector) -> tuple[float, Named]:
        """Bias and named parameters for the multipliers of the fixed sums."""
        if self.bias == "free":
            return -float(h[0]), {}
        return (float(coefficients.sum()) if self.bias == "penalised" else 0.0), {}


class PlainProgram(Problem):
    """Any quadratic program as a problem; its free parameters are the multipliers "h" (r,) themselves."""

    bias = "none"

    def __init__(self, program: QuadraticProgram) -> None:
        sizes = {v.shape for v in (program.point, program.lower, program.upper, program.linear, program.ridge)}
        if sizes != {(program.size,)} or program.equalities.shape != (program.d.size, program.size):
            raise InvalidInput("the parts of the quadratic program differ in their number of variables or equalities")
        if not (program.lower <= program.upper).all():
            raise Infeasible("a lower bound of the quadratic program lies above its upper bound")
        if (np.isinf(program.upper - program.lower) & (program.ridge <= 0)).any():
            raise InvalidInput(
                "a variable with an infinite bound needs a positive ridge: bound it, or use a squared loss"
            )
        span = np.zeros(program.n)
        ends = np.minimum(np.maximum(-program.lower, program.upper), np.finfo(np.float64).max)
        np.maximum.at(span, program.point, ends)
        super().__init__(program, np.zeros(program.n), Costs(span, span))

    def _thresholds(self, bias: float, named: Named) -> Vector:
        only(named, "h")
        return np.asarray(named.get("h", np.zeros(self._program.d.size)), dtype=np.float64)

    def _parameters(self, h: Vector, coefficients: Vector) -> tuple[float, Named]:
        return 0.0, {"h": h}

    def __repr__(self) -> str:
        return f"PlainProgram(n={self.n}, {self._program.size} variables)"


def only(named: Mapping[str, Any], *allowed: str) -> None:
    """Refuse free parameters that a problem does not have."""
    unknown = set(named) - set(allowed)
    if unknown:
        raise InvalidInput(f"this problem has no free parameter {sorted(unknown)}; it has {['bias', *allowed]}")
