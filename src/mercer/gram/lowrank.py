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

from mercer.errors import InvalidInput, PrecisionLoss
from mercer.gram import cost
from mercer.gram.entries import Entries, FusedEntries, GivenEntries
from mercer.gram.operator import GramOperator
from mercer.gram.points import AnyIndex, Index, length, pieces

TOLERANCE = 1e-8


class LowRankGram(GramOperator):
    """K ~ G H'; `left` is G (n, r), `right` is H (m, r), dense or CSR; `remainder` the share of the trace left out."""

    storage = "lowrank"

    def __init__(self, entries: Entries, plan: cost.Plan, left: Any, right: Any, remainder: float = 0.0) -> None:
        super().__init__(entries, plan)
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
        entries = GivenEntries(kernel, G, (len(G), len(H)), right is None, G.dtype)
        size = G.nbytes + (0 if right is None else H.nbytes)
        task = entries.task(2 * size + 8 * cost.COPIED_VALUES + 64 * len(H))
        plan = cost.plan("lowrank", task, rank=G.shape[1]).because("the factors were given")
        return cls(entries, plan, G, H)

    @classmethod
    def build(cls, entries: Entries, budget: int) -> "LowRankGram":
        """Factors of the linear kernel, or the pivoted Cholesky factor of another one."""
        task = entries.task(budget)
        if isinstance(entries, FusedEntries) and task.linear:
            left = _linear_factor(entries, entries.X)
            right = left if entries.symmetric else _linear_factor(entries, entries.Z)
            rank = 0 if left is entries.X else task.d
            plan = cost.plan("lowrank", task, rank=rank).because(
                "the kernel is the inner product: X itself is its factor"
            )
            return cls(entries, plan, left, right)
        if not entries.symmetric:
            raise InvalidInput("storage='lowrank' factors the matrix of one set of points; build it without Z")
        cost.plan("lowrank", task)
        kept = cost.smallest_budget("lowrank", task)
        most = min(task.n, 1 + (budget - kept) // (task.n * task.itemsize))
        factor, remainder = pivoted_cholesky(entries, most)
        entries.release()
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
        return cls(entries, plan, factor.T, factor.T, remainder)

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
        right = self.right[columns].T
        start = 0
        for part in pieces(rows, max(1, cost.COPIED_VALUES // max(1, length(columns)))):
            values = self.left[part] @ right
            out[start : start + length(part)] = values.toarray() if sp.issparse(values) else values
            start += length(part)

    def _multiply(self, rows: Index, columns: Index, V: NDArray[Any], out: NDArray[Any]) -> None:
        out += self.left[rows] @ (self.right[columns].T @ V)

    def _multiply_transposed(self, V: NDArray[Any], out: NDArray[Any]) -> None:
        out += self.right @ (self.left.T @ V)

    def with_kernel(self, kernel: Any) -> GramOperator:
        """Factors of another kernel on the same points."""
        return LowRankGram.build(self.entries.with_kernel(kernel), self._plan.budget)

    def subset(self, index: AnyIndex) -> GramOperator:
        """The operator on the points at `index`: their rows of the factor."""
        chosen = self._subset_index(index)
        entries = self.entries.subset(chosen)
        factor = self.left[chosen]
        plan = cost.plan("lowrank", entries.task(self._plan.budget), rank=self.rank).because("rows of a given factor")
        return LowRankGram(entries, plan, factor, factor, self.remainder)


def _linear_factor(entries: FusedEntries, X: Any) -> Any:
    """X with the profile's scale, in the working precision; X itself where nothing changes."""
    scale = entries.kernel.profile.scale
    if scale is not None:
        X = X @ sp.diags_array(scale) if sp.issparse(X) else X * scale
    return X.astype(entries.dtype, copy=False)


def pivoted_cholesky(entries: Entries, most: int, tolerance: float = TOLERANCE) -> tuple[NDArray[Any], float]:
    """Rows of G' (r, n) with K ~ G G', r <= most, and the share of the trace that is left."""
    n = entries.shape[0]
    rows = np.empty((most, n), dtype=entries.dtype)
    left = entries.diagonal().astype(np.float64)
    trace = float(left.sum())
    everything = slice(0, n)
    for r in range(most):
        pivot = int(np.argmax(left))
        if left.sum() <= tolerance * trace or left[pivot] <= 0:
            return rows[:r], max(0.0, float(left.sum()) / trace)
        entries.fill(np.array([pivot], dtype=np.intp), everything, rows[r : r + 1])
        rows[r] -= rows[:r, pivot] @ rows[:r]
        rows[r] /= np.sqrt(left[pivot])
        left -= rows[r].astype(np.float64) ** 2
        left[pivot] = 0.0
        np.maximum(left, 0.0, out=left)
    return rows, float(left.sum()) / trace
