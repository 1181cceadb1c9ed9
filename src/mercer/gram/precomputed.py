"""A matrix the caller has computed: taken as it is, in memory or mapped from a file, never copied."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.gram import cost, stored
from mercer.gram.entries import GivenEntries
from mercer.gram.operator import GramOperator
from mercer.gram.points import AnyIndex, Index, check
from mercer.gram.sparse import SparseGram

_STRIP = 256


def is_symmetric(K: Any) -> bool:
    """Whether K equals its transpose up to rounding, compared strip by strip."""
    if K.shape[0] != K.shape[1]:
        return False
    tolerance = 1e-5 if K.dtype == np.float32 else 1e-10
    if sp.issparse(K):
        difference = abs(K - K.T)
        return bool(difference.max() <= tolerance * max(abs(K).max(), 1e-300)) if K.nnz else True
    for top in range(0, len(K), _STRIP):
        bottom = min(len(K), top + _STRIP)
        for left in range(top, len(K), 8 * _STRIP):
            right = min(len(K), left + 8 * _STRIP)
            upper = K[top:bottom, left:right]
            if np.abs(upper - K[left:right, top:bottom].T).max() > tolerance * max(np.abs(upper).max(), 1e-300):
                return False
    return True


class PrecomputedGram(GramOperator):
    """A given matrix (n, m); `matrix` is the caller's own array."""

    storage = "precomputed"

    def __init__(self, entries: GivenEntries, plan: cost.Plan) -> None:
        super().__init__(entries, plan)
        self.matrix = entries.X

    @staticmethod
    def build(kernel: Any, K: Any, budget: int) -> GramOperator:
        """The operator of a dense array, memory map or sparse matrix; symmetric where K equals its transpose."""
        matrix = check(K, "X (the given kernel matrix)")
        entries = GivenEntries(kernel, matrix, matrix.shape, is_symmetric(matrix), matrix.dtype)
        nonzeros = int(matrix.nnz) if sp.issparse(matrix) else None
        plan = cost.plan("precomputed", entries.task(budget, nonzeros=nonzeros)).because("the matrix was given")
        if sp.issparse(matrix):
            return SparseGram(entries, plan, matrix)
        return PrecomputedGram(entries, plan)

    def _fill(self, rows: Index, columns: Index, out: NDArray[Any]) -> None:
        stored.gather(self.matrix, rows, columns, out)

    def _multiply(self, rows: Index, columns: Index, V: NDArray[Any], out: NDArray[Any]) -> None:
        stored.multiply(self.matrix, rows, columns, V, out, self.symmetric)

    def _multiply_transposed(self, V: NDArray[Any], out: NDArray[Any]) -> None:
        stored.multiply(self.matrix.T, slice(0, self.shape[1]), slice(0, self.shape[0]), V, out, False)

    def subset(self, index: AnyIndex) -> GramOperator:
        """The matrix restricted to the rows and columns at `index`, copied."""
        chosen = self._subset_index(index)
        size = len(chosen) ** 2 * self.dtype.itemsize
        if size > self._plan.budget:
            raise InvalidInput(
                f"the part of {len(chosen)} points takes {size} bytes, more than memory={self._plan.budget}"
            )
        entries = self.entries.subset(chosen)
        plan = cost.plan("precomputed", entries.task(self._plan.budget)).because("part of a matrix that was given")
        return PrecomputedGram(entries, plan)  # type: ignore[arg-type]
