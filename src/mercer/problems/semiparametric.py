"""A kernel expansion plus a few unpenalised basis functions: f = f0 + b + sum_k beta_k psi_k.

Each basis function adds one equality sum_j s_j psi_k(x_point_j) = 0 to the program of the base problem; its multiplier
is -beta_k (Schoelkopf and Smola 2002, section 10.3).
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mercer.errors import InvalidInput
from mercer.problems.base import Named, Problem, Vector
from mercer.problems.program import QuadraticProgram


class Semiparametric(Problem):
    """`base` with the columns of `basis` (n, q) as unpenalised functions."""

    name: ClassVar[str] = "semiparametric"

    def __init__(self, base: Problem, basis: ArrayLike) -> None:
        psi = np.ascontiguousarray(basis, dtype=np.float64)
        if psi.ndim != 2 or psi.shape[0] != base.n:
            raise InvalidInput(f"basis must have shape ({base.n}, q), one row for each point, got {psi.shape}")
        if not np.isfinite(psi).all():
            raise InvalidInput("basis contains NaN or infinite values")
        self.base, self.basis, self.box = base, psi, base.box
        p = base.program()
        program = QuadraticProgram(
            p.gram,
            p.point,
            p.lower,
            p.upper,
            p.linear,
            p.ridge,
            None,
            np.concatenate((p.d, np.zeros(psi.shape[1]))),
            np.vstack((p.equalities, psi[p.point].T)),
            p.constant,
        )
        super().__init__(base.gram, base.C, base.bias, program)
        self.loss = base.loss

    def equality_multipliers(self, bias: float, **named: Any) -> Vector:
        """Those of the base problem, then -beta."""
        beta = np.asarray(named.pop("basis", np.zeros(self.basis.shape[1])), dtype=np.float64)
        return np.concatenate((self.base.equality_multipliers(bias, **named), -beta))

    def free_parameters(self, h: Vector, coefficients: Vector) -> tuple[float, Named]:
        """The base problem's, and "basis": beta (q,)."""
        r = self.base.program().d.size
        bias, named = self.base.free_parameters(h[:r], coefficients)
        return bias, {**named, "basis": -h[r:]}

    def __repr__(self) -> str:
        return f"Semiparametric({self.base!r}, {self.basis.shape[1]} basis functions)"
