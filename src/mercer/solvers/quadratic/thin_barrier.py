"""The systems of the interior point method where K~ = F F' has a thin factor F (n, p).

By the Sherman-Morrison-Woodbury formula, with D the diagonal of the barrier,

    (F F' + D)^-1 R = D^-1 R - D^-1 F (I + F'D^-1 F)^-1 F'D^-1 R,

so that a factorisation costs n p^2 + p^3 / 3 operations in place of n^3 / 3, and n p numbers in place of n^2
(Schoelkopf and Smola 2002, section 10.3.4, equation 10.55 corrected; Fine and Scheinberg 2001).  Two variables on a
point are reduced to one before, as for the dense matrix.

F is read in blocks of rows, four passes for a step, and may lie on disk: memory is p^2 and a block (Ferris and Munson
2002).  Where there is room its numbers are turned into float64 once, not in each pass.  Near the end D^-1 can span more
than the digits there are, and the core is not positive definite any more.  A factor in memory then goes to the product
form of `mercer.solvers.quadratic.product_form`, which divides by no small number; one on disk to the eigenvectors of
the core.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import dense
from mercer.problems.program import QuadraticProgram
from mercer.solvers.linear.woodbury import factor_of
from mercer.solvers.quadratic.barrier_system import BarrierSystem
from mercer.solvers.quadratic.convexity import convex_matrix
from mercer.solvers.quadratic.product_form import ProductForm

Array = NDArray[np.float64]
Index = NDArray[np.intp]

BLOCK_VALUES = 1 << 21
TINY = 1e-18


class ThinMatrix:
    """F F' + constant by its factor F (m, p), dense, CSR or in a file, of which the points `rows` (n,) count."""

    def __init__(self, F: Any, constant: float = 0.0, rows: Index | None = None) -> None:
        self.factor, self.constant, self.rows = F, constant, rows
        n = int(F.shape[0]) if rows is None else len(rows)
        self.shape = (n, n)
        self.rank = int(F.shape[1]) + (1 if constant else 0)

    @property
    def on_disk(self) -> bool:
        """Whether the factor is a file that is read as it is needed."""
        return isinstance(self.factor, np.memmap) or isinstance(getattr(self.factor, "base", None), np.memmap)

    def at(self, rows: Index) -> "ThinMatrix":
        """The matrix on some of the points; nothing is copied."""
        return ThinMatrix(self.factor, self.constant, rows if self.rows is None else self.rows[rows])

    @property
    def wide_bytes(self) -> float:
        """Bytes of the factor in float64, and of a part of its rows; infinite where it is sparse or lies on disk."""
        return np.inf if self.on_disk or sp.issparse(self.factor) else 2 * 8.0 * self.shape[0] * self.rank

    def wide(self) -> "ThinMatrix":
        """The same matrix, whose blocks are parts of one array in float64."""
        return WideThinMatrix(np.concatenate([block for _, block in self.blocks()]))

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """The rows of the factor in float64, with the column of the constant, a block at a time."""
        step = max(64, BLOCK_VALUES // max(1, self.rank))
        for start in range(0, self.shape[0], step):
            part = slice(start, min(start + step, self.shape[0]))
            block = self.factor[part if self.rows is None else self.rows[part]]
            block = np.asarray(block.toarray() if sp.issparse(block) else block, dtype=np.float64)
            if self.constant:
                block = np.hstack((block, np.full((len(block), 1), np.sqrt(self.constant))))
            yield part, block

    def __matmul__(self, V: Array) -> Array:
        return self.expand(self.contract(V))

    def contract(self, V: Array) -> Array:
        """F'V, (p,) or (p, k)."""
        out = np.zeros((self.rank, *V.shape[1:]))
        for part, block in self.blocks():
            out += block.T @ V[part]
        return out

    def expand(self, W: Array) -> Array:
        """F W, (n,) or (n, k)."""
        out = np.empty((self.shape[0], *W.shape[1:]))
        for part, block in self.blocks():
            out[part] = block @ W
        return out

    def diagonal(self) -> Array:
        """|f_i|^2 (n,)."""
        out = np.empty(self.shape[0])
        for part, block in self.blocks():
            out[part] = np.einsum("ij,ij->i", block, block)
        return out


class WideThinMatrix(ThinMatrix):
    """F F' by its factor F (n, p), an array in float64; the column of the constant is among the p."""

    def at(self, rows: Index) -> ThinMatrix:
        """The matrix on some of the points, whose rows are copied once."""
        return WideThinMatrix(self.factor[rows])


def matrix_of(program: QuadraticProgram, spare: float = 0.0) -> Any:
    """K~ by its thin factor where it has one, else dense (n, n) and shown to be positive semidefinite.

    The factor is held in float64 where `spare` bytes, more than it needs otherwise, are enough for that.
    """
    if thin_rank(program) is None:
        return convex_matrix(program)
    thin = ThinMatrix(_factor(program), program.constant)
    return thin.wide() if thin.wide_bytes <= spare else thin


def thin_rank(program: QuadraticProgram) -> int | None:
    """Columns of that factor, the constant of a penalised bias included; None where there is none, or no thin one."""
    factor = _factor(program)
    if factor is None:
        return None
    rank = int(factor.shape[1]) + (1 if program.constant else 0)
    return rank if rank < program.n else None


def thin_bytes(program: QuadraticProgram, rank: int) -> int:
    """Bytes that steps with such a factor take: the core and its copies, blocks, and the factor where it is held."""
    held = 0 if ThinMatrix(_factor(program)).on_disk else 2 * program.n * rank
    return 8 * (held + 3 * rank * rank + 2 * min(BLOCK_VALUES, program.n * rank))


def _factor(program: QuadraticProgram) -> Any:
    """The factor of the program's matrix, dense or CSR, where it has one at hand."""
    return factor_of(program.gram)


def system_on(K: Any, points: Index | None, place: Index) -> BarrierSystem:
    """The barrier system on some of the points (None: all), whose variables sit at `place` among them."""
    if isinstance(K, ThinMatrix):
        return ThinBarrierSystem(K if points is None else K.at(points), place)
    return BarrierSystem(K if points is None else K[np.ix_(points, points)], place)


class ThinBarrierSystem(BarrierSystem):
    """Solves with P F F'P' + diag(D) for changing D."""

    K: Any

    def __init__(self, K: ThinMatrix, point: Index) -> None:
        count = np.bincount(point, minlength=K.shape[0])
        if count.max(initial=0) > 2:
            K, point = K.at(point), np.arange(point.size)
        super().__init__(K, point)  # type: ignore[arg-type]  # the base only hands K to methods that are replaced here
        self._floor = TINY * max(float(K.diagonal().max(initial=0.0)), TINY)

    def _factor(self) -> None:
        # Less than the rounding of K's diagonal means nothing, and its inverse might overflow.
        self._delta = np.maximum(self._delta, self._floor)
        core = np.eye(self.K.rank, order="F")
        for part, block in self.K.blocks():
            block = block / np.sqrt(self._delta[part, None])
            core += block.T @ block
        factor = core.copy(order="F")
        if dense.factorise(factor):
            self._parts, self.method = (factor,), "woodbury"
        elif self.K.on_disk:
            # Rounding hides the identity in the core.
            values, vectors = dense.eigen(core)
            self._parts, self.method = (np.maximum(values, 1.0), vectors), "woodbury, spectral"
        else:
            self._product, self.method = ProductForm(self.K.blocks(), self._delta, self.K.rank), "product form"

    def _apply_inverse(self, R: Array) -> Array:
        if self.method == "product form":
            return self._product.solve(R)
        scaled = R / self._delta[:, None]
        right = self.K.contract(scaled)
        if len(self._parts) == 1:
            inner = dense.solve(self._parts[0], right)
        else:
            values, vectors = self._parts
            inner = vectors @ ((vectors.T @ right) / values[:, None])
        return np.asarray(scaled - self.K.expand(inner) / self._delta[:, None])
