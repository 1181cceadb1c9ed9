"""Machines that find their own margin or tube: nu-SVC, nu-SVR, one-class, and the hard margin.

    nu-SVC:      min 1/2 ||f0||^2 - nu (sum_i w_i) rho + sum_i w_i (rho - y_i f_i)_+
    nu-SVR:      min 1/2 ||f0||^2 + C nu (sum_i w_i) epsilon + C sum_i w_i (|y_i - f_i| - epsilon)_+ ,    epsilon >= 0
    one-class:   min 1/2 ||f0||^2 - nu (sum_i w_i) rho + sum_i w_i (rho - f0_i)_+
    hard margin: min 1/2 ||f0||^2   subject to   y_i f_i >= 1

They are the perceptron's loss, or the absolute one, moved by a free parameter whose cost is linear: the variables of a
direction then have a fixed sum (Schoelkopf and Smola 2002, sections 10.3 and 10.5, with the signs corrected).
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mercer.arrays import Vector
from mercer.errors import Infeasible
from mercer.losses import Absolute, Perceptron
from mercer.problems.base import Named, Problem, only
from mercer.problems.certificate import Certificate
from mercer.problems.program import GramLike
from mercer.problems.statement import Costs, basis_columns, checked_size, labels, positive, stated, vector

NU_SLACK = 1e-12  # relative: nu = 2 min(...) / sum computed by a user may round up


class _TwoSums(Problem):
    """The rising and the falling variables have sums of their own, with multipliers -b + m and -b - m."""

    margin: ClassVar[str]
    """Name of m, or of -m for the tube of nu-SVR, which is the margin with the opposite sign."""
    sign: ClassVar[float] = 1.0

    def _thresholds(self, bias: float, named: Named) -> Vector:
        only(named, self.margin)
        m = self.sign * float(named.get(self.margin, 1.0 if self.sign > 0.0 else 0.0))
        return np.array([m - bias, -m - bias])

    def _parameters(self, h: Vector, coefficients: Vector) -> tuple[float, Named]:
        return -0.5 * float(h[0] + h[1]), {self.margin: self.sign * 0.5 * float(h[0] - h[1])}


class NuClassification(_TwoSums):
    """nu-SVC: nu bounds the weighted share of margin errors from above and of support vectors from below.

    The alphas of each class sum to nu (sum w)/2 with 0 <= alpha_i <= w_i, so that integer weights are repetitions.
    Feasible for nu <= 2 min(w of class +1, w of class -1) / sum w.  The decision function at margin 1 is f / rho.
    """

    margin = "rho"

    def __init__(
        self,
        gram: GramLike,
        y: ArrayLike,
        nu: float,
        weights: ArrayLike | None = None,
        basis: ArrayLike | None = None,
    ) -> None:
        n = checked_size(gram)
        y, costs, psi = labels(y, n), Costs.of(1.0, weights, n), basis_columns(basis, n)
        self.nu = float(nu)
        classes = float(costs.rising[y > 0].sum()), float(costs.falling[y < 0].sum())
        total, limit = sum(classes), 2.0 * min(classes)
        if not 0.0 < self.nu <= (limit / total) * (1.0 + NU_SLACK):
            raise Infeasible(
                f"nu = {self.nu:g} is not feasible: it must lie in (0, {limit / total:.6g}], "
                "twice the weighted share of the smaller class"
            )
        half = 0.5 * min(self.nu * total, limit)
        super().__init__(stated(gram, Perceptron(), y, costs, (half, -half), basis=psi), y, costs, psi)

    def __repr__(self) -> str:
        return f"NuClassification(n={self.n}, nu={self.nu:g})"


class HardMargin(_TwoSums):
    """The hyperplane of largest margin, for classes that can be separated: C-SVC at C = inf.

    Solved as the shortest vector between the convex hulls of the classes,

        min 1/2 ||f0||^2,    0 <= y_i s_i,    sums +1 and -1 over the classes,

    which needs no C and has no solution but f0 = 0 where the hulls meet.  With rho = half the distance of the classes
    along f0, f0 / rho is feasible for the hard margin, and theta s is feasible for its dual for every theta >= 0:

        2 / ||f0||^2  <=  optimum  <=  ||f0||^2 / (2 rho^2).

    Primal, dual and gap are those; variables and bias are those of f0, as for nu-SVC.
    """

    margin = "rho"
    C = np.inf

    def __init__(self, gram: GramLike, y: ArrayLike, weights: ArrayLike | None = None) -> None:
        n = checked_size(gram)
        y = labels(y, n)
        # How much a point counts makes no difference.
        costs = Costs(*((cost > 0).astype(np.float64) for cost in Costs.of(1.0, weights, n)))
        super().__init__(stated(gram, Perceptron(), y, costs, (1.0, -1.0)), y, costs)

    def certificate(self, s: Vector, f0: Vector | None = None, h: Vector | None = None, **options: Any) -> Certificate:
        """The bounds at the head of this class; `uncertainty` as in `Problem.certificate`."""
        g = self._program.values(self._program.coefficients(s), f0)
        uncertainty = options.get("uncertainty")
        counted = self.box > 0
        low, high = float(g[counted & (self.y > 0)].min()), float(g[counted & (self.y < 0)].max())
        rho, square = 0.5 * (low - high), float(s @ g)
        bias = -0.5 * (low + high)
        if uncertainty is not None:
            rho, square = rho - float(np.max(uncertainty.values)), square + 2.0 * uncertainty.energy
        dual = 2.0 / square if square > 0.0 else np.inf
        primal = 0.5 * square / rho**2 if rho > 0.0 and square > 0.0 else np.inf
        gap = max(primal - dual, 0.0) if np.isfinite(primal) else np.inf
        h = np.array([rho - bias, -rho - bias])
        return Certificate(primal, min(dual, primal), gap, bias, {"rho": rho}, h)

    def __repr__(self) -> str:
        return f"HardMargin(n={self.n})"


class NuRegression(_TwoSums):
    """nu-SVR: the tube's width is found so that at most a share nu of the points lies outside it.

    sum alpha = sum alpha* = C nu (sum w)/2 with boxes C w_i; needs 0 < nu <= 1.
    """

    margin, sign = "epsilon", -1.0

    def __init__(
        self,
        gram: GramLike,
        y: ArrayLike,
        C: float = 1.0,
        nu: float = 0.5,
        weights: ArrayLike | None = None,
        basis: ArrayLike | None = None,
    ) -> None:
        n = checked_size(gram)
        y, psi = vector("y", y, n), basis_columns(basis, n)
        self.C, self.nu = positive("C", C), float(nu)
        if not 0.0 < self.nu <= 1.0:
            raise Infeasible(
                f"nu = {self.nu:g} is not admissible: it must lie in (0, 1], for a larger nu the tube would be negative"
            )
        costs = Costs.of(self.C, weights, n)
        half = 0.5 * self.nu * float(np.minimum(*costs).sum())
        super().__init__(stated(gram, Absolute(), y, costs, (half, -half), basis=psi), y, costs, psi)

    def _best_multipliers(self, g: Vector, s: Vector) -> Vector:
        """The tube may not be negative; for nu <= 1 closing it costs nothing more than a negative one would."""
        h = super()._best_multipliers(g, s)
        if h[1] >= h[0]:
            return h
        if self._program.groups is None:
            return np.concatenate((np.repeat(h[:2].mean(), 2), h[2:]))
        return np.repeat(self._program.in_one_sum().best_multipliers(g), 2)

    def __repr__(self) -> str:
        return f"NuRegression(n={self.n}, C={self.C:g}, nu={self.nu:g})"


class OneClass(Problem):
    """The half-space far from the origin that holds all but a share nu of the points: an estimate of where they are.

    Variables 0 <= s_i <= w_i with sum nu (sum w): nu n times those of the form with box 1/(nu n) and sum 1.  Points
    with f0 < rho are outliers, of weighted share <= nu <= share of support vectors; the decision function is f0 - rho,
    so the bias is -rho.
    """

    def __init__(self, gram: GramLike, nu: float = 0.5, weights: ArrayLike | None = None) -> None:
        n = checked_size(gram)
        self.nu = float(nu)
        if not 0.0 < self.nu <= 1.0:
            raise Infeasible(f"nu = {self.nu:g} is not admissible: it must lie in (0, 1]")
        y, costs = np.ones(n), Costs.of(1.0, weights, n)
        super().__init__(stated(gram, Perceptron(), y, costs, (self.nu * float(costs.rising.sum()),)), y, costs)

    def _thresholds(self, bias: float, named: Named) -> Vector:
        only(named, "rho")
        return np.array([float(named.get("rho", -bias))])

    def _parameters(self, h: Vector, coefficients: Vector) -> tuple[float, Named]:
        return -float(h[0]), {"rho": float(h[0])}

    def __repr__(self) -> str:
        return f"OneClass(n={self.n}, nu={self.nu:g})"
