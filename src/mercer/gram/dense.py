"""The whole matrix K in memory: n m values, computed once, each product one BLAS call."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.gram import cost, stored
from mercer.gram.entries import Entries
from mercer.gram.operator import GramOperator
from mercer.gram.points import AnyIndex, Index


class DenseGram(GramOperator):
    """K stored whole; `matrix` (n, m) is the stored array, read-only.

    `dense()` gives the caller an array of his own.
    """

    storage = "dense"

    def __init__(self, entries: Entries, plan: cost.Plan, matrix: NDArray[Any] | None = None) -> None:
        super().__init__(entries, plan)
        if matrix is None:
            entries.limit(plan)
            matrix = np.empty(self.shape, dtype=self.dtype)
            entries.fill(slice(0, self.shape[0]), slice(0, self.shape[1]), matrix)
            entries.release()
        self.matrix = matrix.view()
        self.matrix.flags.writeable = False

    def _fill(self, rows: Index, columns: Index, out: NDArray[Any]) -> None:
        stored.gather(self.matrix, rows, columns, out)

    def _multiply(self, rows: Index, columns: Index, V: NDArray[Any], out: NDArray[Any]) -> None:
        stored.multiply(self.matrix, rows, columns, V, out, self.symmetric)

    def _multiply_transposed(self, V: NDArray[Any], out: NDArray[Any]) -> None:
        stored.multiply(self.matrix.T, slice(0, self.shape[1]), slice(0, self.shape[0]), V, out, False)

    def subset(self, index: AnyIndex) -> "DenseGram":
        """The operator on the points at `index`: values are copied, not computed again."""
        chosen = self._subset_index(index)
        entries = self.entries.subset(chosen)
        plan = cost.plan("dense", entries.task(self._plan.budget)).because("part of a matrix that is held whole")
        matrix = np.empty(entries.shape, dtype=self.dtype)
        stored.gather(self.matrix, chosen, chosen, matrix)
        return DenseGram(entries, plan, matrix)
