"""A matrix given by thin factors, K ~ G H' with G (n, r) and H (m, r): products cost 2 (n + m) r operations.

For the linear kernel the points themselves are the factors and nothing is lost (Hamers 2004, section 4.5).  For any
other positive definite kernel on one set of points the factor comes from the pivoted Cholesky decomposition: at each
step the point with the largest remaining diagonal d_j is taken,

    g = (K[:, j] - G G[j]') / sqrt(d_j),      d <- d - g^2,

until the remaining trace, which bounds the error |K - G G'|_2, is below `TOLERANCE` of the trace, or the budget is
full (then a PrecisionLoss warning tells what remains).
"""

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import dense
from mercer.errors import InvalidInput, PrecisionLoss
from mercer.gram import cost
from mercer.gram.engine import Engine
from mercer.gram.given_engine import GivenEngine
from mercer.gram.operator import GramOperator
from mercer.gram.points import AnyIndex, Index, length, pieces

TOLERANCE = 1e-8


class LowRankGram(GramOperator):
    """K ~ G H'; `left` is G (n, r), `right` is H (m, r), dense or CSR; `remainder` the share of the trace left out."""

    storage = "lowrank"

    def __init__(self, engine: Engine, plan: cost.Plan, left: Any, right: Any, remainder: float = 0.0) -> None:
        super().__init__(engine, plan)
        self.left = left
        self.right = right
        self.remainder = remainder

    @classmethod
    def from_factors(cls, left: NDArray[Any], right: NDArray[Any] | None = None, kernel: Any = None) -> "LowRankGram":
        """The operator G H' for given factors; without H it is the symmetric G G'."""
        G = np.ascontiguousarray(left)
        H = G if right is None else np.ascontiguousarray(right)
        if G.ndim != 2 or H.ndim != 2 or G.shape[1] != H.shape[1]:
            raise InvalidInput(f"factors of shapes {G.shape} and {H.shape} do not multiply; both need r columns")
        engine = GivenEngine(kernel, G, (len(G), len(H)), right is None, G.dtype)
        size = G.nbytes + (0 if right is None else H.nbytes)
        task = engine.task(2 * size + 8 * cost.COPIED_VALUES + 64 * len(H))
        plan = cost.plan("lowrank", task, rank=G.shape[1]).because("the factors were given")
        return cls(engine, plan, G, H)

    @classmethod
    def build(cls, engine: Engine, budget: int) -> "LowRankGram":
        """Factors of the linear kernel, or the pivoted Cholesky factor of another one."""
        task = engine.task(budget)
        if task.linear:
            left = _linear_factor(engine, engine.X)
            right = left if engine.symmetric else _linear_factor(engine, engine.Z)
            rank = 0 if left is engine.X else task.d
            plan = cost.plan("lowrank", task, rank=rank).because(
                "the kernel is the inner product: X itself is its factor"
            )
            return cls(engine, plan, left, right)
        if not engine.symmetric:
            raise InvalidInput("storage='lowrank' factors the matrix of one set of points; build it without Z")
        cost.plan("lowrank", task)
        kept = cost.smallest_budget("lowrank", task)
        most = min(task.n, 1 + (budget - kept) // (task.n * task.itemsize))
        factor, remainder = pivoted_cholesky(engine, most)
        engine.release()
        if remainder > TOLERANCE:
            warnings.warn(
                f"the budget holds rank {len(factor)}, which leaves {remainder:.1e} of the trace; raise memory or take "
                "storage='streamed' for exact products",
                PrecisionLoss,
                stacklevel=3,
            )
        plan = cost.plan("lowrank", task, rank=len(factor)).because(
            f"pivoted Cholesky of rank {len(factor)} leaves {remainder:.1e} of the trace"
        )
        return cls(engine, plan, factor.T, factor.T, remainder)

    def factor(self) -> Any:
        """G, where the matrix is symmetric."""
        return self.left if self.left is self.right else None

    @property
    def rank(self) -> int:
        """Number of columns of the factors."""
        return int(self.left.shape[1])

    def diagonal(self) -> NDArray[Any]:
        """Diagonal of G G', shape (n,), which is what products see."""
        if not self.symmetric:
            return super().diagonal()
        if sp.issparse(self.left):
            return np.asarray(self.left.multiply(self.left).sum(axis=1)).ravel().astype(self.dtype)
        return np.asarray(np.einsum("ij,ij->i", self.left, self.left))

    def _fill(self, rows: Index, columns: Index, out: NDArray[Any]) -> None:
        if sp.issparse(self.left):
            self.engine.fill(rows, columns, out)
            return
        right = self.right[columns].T
        start = 0
        for part in pieces(rows, max(1, cost.COPIED_VALUES // max(1, length(columns)))):
            out[start : start + length(part)] = self.left[part] @ right
            start += length(part)

    def _multiply(self, rows: Index, columns: Index, V: NDArray[Any], out: NDArray[Any]) -> None:
        if sp.issparse(self.left):
            self.engine.multiply(rows, columns, V, out)  # a weight vector on the features in use, not on all d
            return
        out += self.left[rows] @ (self.right[columns].T @ V)

    def _multiply_exactly(self, rows: Index, columns: Index, V: NDArray[Any], out: NDArray[Any]) -> None:
        if not isinstance(self.engine, GivenEngine):
            super()._multiply_exactly(rows, columns, V, out)  # the kernel itself is what the factors stand for
            return
        # Given factors are the kernel; only the sums can be more exact.
        out += self.left[rows].astype(np.float64) @ (self.right[columns].astype(np.float64).T @ V)

    def _multiply_transposed(self, V: NDArray[Any], out: NDArray[Any]) -> None:
        out += self.right @ (self.left.T @ V)

    def with_kernel(self, kernel: Any) -> GramOperator:
        """Factors of another kernel on the same points."""
        return LowRankGram.build(self.engine.with_kernel(kernel), self._plan.budget)

    def subset(self, index: AnyIndex, share: int = 1) -> GramOperator:
        """The operator on the points at `index`: their rows of the factor."""
        chosen = self._subset_index(index)
        engine = self.engine.subset(chosen)
        factor = self.left[chosen]
        plan = cost.plan("lowrank", engine.task(self._plan.budget), rank=self.rank).because("rows of a given factor")
        return LowRankGram(engine, plan, factor, factor, self.remainder)


def _linear_factor(engine: Engine, X: Any) -> Any:
    """X with the profile's scale, in the working precision; X itself where nothing changes."""
    scale = engine.kernel.profile.scale
    if scale is not None:
        X = X @ sp.diags_array(scale) if sp.issparse(X) else X * scale
    return X.astype(engine.dtype, copy=False)


def pivoted_cholesky(engine: Engine, most: int, tolerance: float = TOLERANCE) -> tuple[NDArray[Any], float]:
    """Rows of G' (r, n) with K ~ G G', r <= most, and the share of the trace that is left."""
    everything = slice(0, engine.shape[0])

    def row(i: int, out: NDArray[Any]) -> None:
        engine.fill(np.array([i], dtype=np.intp), everything, out[None, :])

    factor = dense.PartialCholesky(engine.diagonal(), row, most, engine.dtype)
    trace = float(factor.left.sum())
    factor.grow_largest(most, tolerance * trace, 0.0)
    return factor.V, max(0.0, float(factor.left.sum()) / trace)
