"""The systems of the interior point method where K~ = F F' has a thin factor F (n, p).

By the Sherman-Morrison-Woodbury formula, with D the diagonal of the barrier,

    (F F' + D)^-1 R = D^-1 R - D^-1 F (I + F'D^-1 F)^-1 F'D^-1 R,

so that a factorisation costs n p^2 + p^3 / 3 operations in place of n^3 / 3, and n p numbers in place of n^2
(Schoelkopf and Smola 2002, section 10.3.4, equation 10.55 corrected; Fine and Scheinberg 2001).  Two variables on a
point are reduced to one before, as for the dense matrix.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import dense
from mercer.gram import GramOperator
from mercer.problems.program import QuadraticProgram
from mercer.solvers.quadratic.barrier_system import BarrierSystem

Array = NDArray[np.float64]
Index = NDArray[np.intp]

BLOCK_VALUES = 1 << 21
TINY = 1e-18


class ThinMatrix:
    """F F' by its factor F (n, p)."""

    def __init__(self, F: Array) -> None:
        self.F = F
        self.shape = (len(F), len(F))

    def __matmul__(self, V: Array) -> Array:
        return np.asarray(self.F @ (self.F.T @ V))

    def diagonal(self) -> Array:
        """|f_i|^2 (n,)."""
        return np.asarray(np.einsum("ij,ij->i", self.F, self.F))


def thin_matrix(program: QuadraticProgram) -> ThinMatrix | None:
    """The matrix of a program by its dense factor, where it has one with fewer columns than rows; else None."""
    rank = thin_rank(program)
    if rank is None:
        return None
    factor = _factor(program)
    F = np.empty((program.n, rank))
    F[:, : factor.shape[1]] = factor
    if program.constant:
        F[:, -1] = np.sqrt(program.constant)
    return ThinMatrix(F)


def thin_rank(program: QuadraticProgram) -> int | None:
    """Columns of that factor, the constant of a penalised bias included; None where there is none."""
    factor = _factor(program)
    if not isinstance(factor, np.ndarray):
        return None
    rank = int(factor.shape[1]) + (1 if program.constant else 0)
    return rank if rank < program.n else None


def _factor(program: QuadraticProgram) -> Any:
    """The factor of the program's matrix, dense or CSR, where it is held by one."""
    return program.gram.factor() if isinstance(program.gram, GramOperator) else None


def system_on(K: Any, points: Index | None, place: Index) -> BarrierSystem:
    """The barrier system on some of the points (None: all), whose variables sit at `place` among them."""
    if isinstance(K, ThinMatrix):
        return ThinBarrierSystem(K if points is None else ThinMatrix(K.F[points]), place)
    return BarrierSystem(K if points is None else K[np.ix_(points, points)], place)


class ThinBarrierSystem(BarrierSystem):
    """Solves with P F F'P' + diag(D) for changing D."""

    K: Any

    def __init__(self, K: ThinMatrix, point: Index) -> None:
        count = np.bincount(point, minlength=K.shape[0])
        if count.max(initial=0) > 2:
            K, point = ThinMatrix(K.F[point]), np.arange(point.size)
        super().__init__(K, point)  # type: ignore[arg-type]  # the base only hands K to methods that are replaced here

    def _factor(self) -> None:
        F = self.K.F
        # Less than the rounding of K's diagonal means nothing, and its inverse might overflow.
        self._delta = np.maximum(self._delta, TINY * max(float(self.K.diagonal().max(initial=0.0)), TINY))
        core = np.eye(F.shape[1], order="F")
        step = max(64, BLOCK_VALUES // max(1, F.shape[1]))
        for start in range(0, len(F), step):
            part = F[start : start + step] / np.sqrt(self._delta[start : start + step, None])
            core += part.T @ part
        factor = core.copy(order="F")
        if dense.factorise(factor):
            self._parts, self.method = (factor,), "woodbury"
            return
        # Near the end D^-1 spans more than the digits there are, and rounding hides the identity in the core.
        values, vectors = dense.eigen(core)
        self._parts, self.method = (np.maximum(values, 1.0), vectors), "woodbury, spectral"

    def _apply_inverse(self, R: Array) -> Array:
        scaled = R / self._delta[:, None]
        right = self.K.F.T @ scaled
        if len(self._parts) == 1:
            inner = dense.solve(self._parts[0], right)
        else:
            values, vectors = self._parts
            inner = vectors @ ((vectors.T @ right) / values[:, None])
        return np.asarray(scaled - (self.K.F @ inner) / self._delta[:, None])
