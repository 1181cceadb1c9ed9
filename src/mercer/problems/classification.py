"""Two-class problems: C-SVC, nu-SVC and the squared hinge.

    C-SVC:            min 1/2 ||f0||^2 + sum_i C_i (1 - y_i f_i)_+
    squared hinge:    min 1/2 ||f0||^2 + sum_i C_i (1 - y_i f_i)_+^2
    nu-SVC:           min 1/2 ||f0||^2 - nu (sum_i w_i) rho + sum_i w_i (rho - y_i f_i)_+

with f = f0 + b and signed variables s_i = y_i alpha_i (Rifkin 2002, section 2.2; Schoelkopf and Smola 2002,
section 10.3.2).
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mercer.errors import Infeasible
from mercer.losses import Hinge, SquaredHinge
from mercer.problems.base import (
    Bias,
    Named,
    Problem,
    Vector,
    _only,
    bias_layout,
    checked_size,
    labels,
    positive,
    ridge_of,
    weighted,
)
from mercer.problems.program import GramLike, QuadraticProgram


class SupportVectorClassification(Problem):
    """Hinge loss, box C w_i: s_i = y_i alpha_i between 0 and y_i C w_i, linear term -y."""

    name: ClassVar[str] = "C-SVC"

    def __init__(
        self, gram: GramLike, y: ArrayLike, C: float = 1.0, weights: ArrayLike | None = None, bias: Bias = "free"
    ) -> None:
        n = checked_size(gram)
        self.y = labels(y, n)
        C = positive("C", C)
        self.box = weighted(C, weights, n)
        edge = self.y * self.box
        groups, d, constant = bias_layout(bias, n)
        program = QuadraticProgram(
            gram,
            np.arange(n),
            np.minimum(edge, 0.0),
            np.maximum(edge, 0.0),
            -self.y,
            np.zeros(n),
            groups,
            d,
            None,
            constant,
        )
        super().__init__(gram, C, bias, program)
        self.loss = Hinge()


class SquaredHingeClassification(Problem):
    """Squared hinge: no upper bound, and 1/(2 C w_i) on the diagonal."""

    name: ClassVar[str] = "squared hinge"

    def __init__(
        self, gram: GramLike, y: ArrayLike, C: float = 1.0, weights: ArrayLike | None = None, bias: Bias = "free"
    ) -> None:
        n = checked_size(gram)
        self.y = labels(y, n)
        C = positive("C", C)
        self.box = weighted(C, weights, n)
        ridge, used = ridge_of(self.box, 0.5)
        upper = np.where(used & (self.y > 0), np.inf, 0.0)
        lower = np.where(used & (self.y < 0), -np.inf, 0.0)
        groups, d, constant = bias_layout(bias, n)
        program = QuadraticProgram(gram, np.arange(n), lower, upper, -self.y, ridge, groups, d, None, constant)
        super().__init__(gram, C, bias, program)
        self.loss = SquaredHinge()


class NuClassification(Problem):
    """nu-SVC: nu bounds the weighted share of margin errors from above and of support vectors from below.

    The alphas of each class sum to nu (sum w)/2 with 0 <= alpha_i <= w_i, so that integer weights are repetitions.
    Feasible for nu <= 2 min(w of class +1, w of class -1) / sum w.  The decision function at margin 1 is f / rho.
    """

    name: ClassVar[str] = "nu-SVC"

    def __init__(self, gram: GramLike, y: ArrayLike, nu: float, weights: ArrayLike | None = None) -> None:
        n = checked_size(gram)
        self.y = labels(y, n)
        self.box = weighted(1.0, weights, n)
        edge = self.y * self.box
        self.nu = float(nu)
        lower, upper = np.minimum(edge, 0.0), np.maximum(edge, 0.0)
        total, limit = float(self.box.sum()), 2.0 * min(float(upper.sum()), -float(lower.sum()))
        if not 0.0 < self.nu <= (limit / total) * (1.0 + 1e-12):
            raise Infeasible(
                f"nu = {self.nu:g} is not feasible: it must lie in (0, {limit / total:.6g}], "
                "twice the weighted share of the smaller class"
            )
        half = 0.5 * min(self.nu * total, limit)
        groups = (self.y < 0).astype(np.intp)
        program = QuadraticProgram(
            gram, np.arange(n), lower, upper, np.zeros(n), np.zeros(n), groups, np.array([half, -half])
        )
        super().__init__(gram, 1.0, "free", program)

    def equality_multipliers(self, bias: float, **named: Any) -> Vector:
        """(rho - b, -rho - b)."""
        _only(named, "rho")
        rho = float(named.get("rho", 1.0))
        return np.array([rho - bias, -rho - bias])

    def free_parameters(self, h: Vector, coefficients: Vector) -> tuple[float, Named]:
        """Return b = -(h1 + h2)/2 and rho = (h1 - h2)/2."""
        return -0.5 * float(h[0] + h[1]), {"rho": 0.5 * float(h[0] - h[1])}

    def __repr__(self) -> str:
        return f"NuClassification(n={self.n}, nu={self.nu:g})"
