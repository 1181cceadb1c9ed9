"""The whole matrix K in memory: n m values, computed once, each product one BLAS call."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.gram import cost
from mercer.gram import matrix_blocks as stored
from mercer.gram.engine import Engine
from mercer.gram.operator import GramOperator
from mercer.gram.points import AnyIndex, Index


class HeldGram(GramOperator):
    """A matrix whose values are there, in memory or in a mapped file: `matrix` (n, m)."""

    matrix: Any

    def _fill(self, rows: Index, columns: Index, out: NDArray[Any]) -> None:
        stored.gather(self.matrix, rows, columns, out)

    def _multiply(self, rows: Index, columns: Index, V: NDArray[Any], out: NDArray[Any]) -> None:
        stored.multiply(self.matrix, rows, columns, V, out, self.symmetric)

    def _multiply_transposed(self, V: NDArray[Any], out: NDArray[Any]) -> None:
        stored.multiply(self.matrix.T, slice(0, self.shape[1]), slice(0, self.shape[0]), V, out, False)

    def held_values(self) -> Any:
        """The matrix itself."""
        return self.matrix


class DenseGram(HeldGram):
    """K stored whole; `matrix` (n, m) is the stored array, read-only.

    `dense()` gives the caller an array of his own.
    """

    storage = "dense"

    def __init__(self, engine: Engine, plan: cost.Plan, matrix: NDArray[Any] | None = None) -> None:
        super().__init__(engine, plan)
        if matrix is None:
            engine.limit(plan)
            matrix = np.empty(self.shape, dtype=self.dtype)
            engine.fill(slice(0, self.shape[0]), slice(0, self.shape[1]), matrix)
            engine.release()
        self.matrix = matrix.view()
        self.matrix.flags.writeable = False

    def subset(self, index: AnyIndex, share: int = 1) -> "DenseGram":
        """The operator on the points at `index`: values are copied, not computed again."""
        chosen = self._subset_index(index)
        engine = self.engine.subset(chosen)
        plan = cost.plan("dense", engine.task(self._plan.budget)).because("part of a matrix that is held whole")
        matrix = np.empty(engine.shape, dtype=self.dtype)
        stored.gather(self.matrix, chosen, chosen, matrix)
        return DenseGram(engine, plan, matrix)
