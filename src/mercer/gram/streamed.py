"""No values kept: every product, row and block is computed in tiles that are forgotten at once.

A product with the symmetric matrix uses each tile for both sides (`mercer.gram.symmetric`), which halves the work
(Hamers 2004, section 3.5, rows on demand).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.gram import cost, symmetric
from mercer.gram.entries import Entries, FusedEntries
from mercer.gram.operator import GramOperator
from mercer.gram.points import Index, length


class StreamedGram(GramOperator):
    """K computed in tiles for every request; memory does not grow with the number of values."""

    storage = "streamed"

    def __init__(self, entries: Entries, plan: cost.Plan) -> None:
        super().__init__(entries, plan)
        entries.limit(plan)

    def _fill(self, rows: Index, columns: Index, out: NDArray[Any]) -> None:
        self.entries.fill(rows, columns, out)

    def _multiply(self, rows: Index, columns: Index, V: NDArray[Any], out: NDArray[Any]) -> None:
        n = self.shape[0]
        whole = self.symmetric and length(rows) == n and isinstance(columns, slice) and length(columns) == n
        if whole and n > symmetric.ROWS and isinstance(self.entries, FusedEntries):
            self._multiply_both_sides(self.entries, V, out)
        else:
            self.entries.multiply(rows, columns, V, out)

    def _multiply_both_sides(self, entries: FusedEntries, V: NDArray[Any], out: NDArray[np.float64]) -> None:
        """K V from the tiles right of the diagonal, as many vectors at a time as the budget has room for."""
        n = self.shape[0]
        workers = min(threads.count(), -(-n // symmetric.ROWS))
        spare = self._plan.budget - self._plan.bytes
        together = spare // (8 * workers * (n + symmetric.COLUMNS))
        if together < 1:
            entries.multiply(slice(0, n), slice(0, n), V, out)
            return
        if together >= V.shape[1]:
            symmetric.multiply(entries.tiles, V, out, workers)
            return
        for start in range(0, V.shape[1], together):
            here = slice(start, start + together)
            symmetric.multiply(entries.tiles, np.ascontiguousarray(V[:, here]), out[:, here], workers)
