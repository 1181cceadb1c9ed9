"""One-class problem: the half-space far from the origin that holds all but a share nu of the points.

    min 1/2 ||f0||^2 - nu (sum_i w_i) rho + sum_i w_i (rho - f0_i)_+

Variables 0 <= s_i <= w_i with sum nu (sum w): nu n times those of the form with box 1/(nu n) and sum 1.  Points with
f0 < rho are outliers; the decision function is f0 - rho, so the bias is -rho.
(Schoelkopf and Smola 2002, section 10.5 and Table of section 10.3; rho = h.)
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mercer.errors import Infeasible
from mercer.problems.base import Named, Problem, Vector, _only, checked_size, weighted
from mercer.problems.program import GramLike, QuadraticProgram


class OneClass(Problem):
    """Estimate of the support of a distribution: weighted outlier share <= nu <= share of support vectors."""

    name: ClassVar[str] = "one-class"

    def __init__(self, gram: GramLike, nu: float = 0.5, weights: ArrayLike | None = None) -> None:
        n = checked_size(gram)
        self.nu = float(nu)
        if not 0.0 < self.nu <= 1.0:
            raise Infeasible(f"nu = {self.nu:g} is not admissible: it must lie in (0, 1]")
        self.box = weighted(1.0, weights, n)
        total = np.array([self.nu * float(self.box.sum())])
        zero = np.zeros(n)
        program = QuadraticProgram(gram, np.arange(n), zero, self.box, zero, zero, np.zeros(n, dtype=np.intp), total)
        super().__init__(gram, 1.0, "free", program)

    def equality_multipliers(self, bias: float, **named: Any) -> Vector:
        """rho, or minus the bias when only that is given."""
        _only(named, "rho")
        return np.array([float(named.get("rho", -bias))])

    def free_parameters(self, h: Vector, coefficients: Vector) -> tuple[float, Named]:
        """Return rho = h, bias = -rho."""
        return -float(h[0]), {"rho": float(h[0])}

    def __repr__(self) -> str:
        return f"OneClass(n={self.n}, nu={self.nu:g})"
