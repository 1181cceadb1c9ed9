"""No values kept: every product, row and block is computed in tiles that are forgotten at once.

A product with the symmetric matrix uses each tile for both sides (`mercer.gram.symmetric`), which halves the work
(Hamers 2004, section 3.5, rows on demand).
"""

from typing import Any

from numpy.typing import NDArray

from mercer.gram import cost
from mercer.gram.engine import Engine
from mercer.gram.operator import GramOperator
from mercer.gram.points import Index, length


class StreamedGram(GramOperator):
    """K computed in tiles for every request; memory does not grow with the number of values."""

    storage = "streamed"

    def __init__(self, engine: Engine, plan: cost.Plan) -> None:
        super().__init__(engine, plan)
        engine.limit(plan)

    def _fill(self, rows: Index, columns: Index, out: NDArray[Any]) -> None:
        self.engine.fill(rows, columns, out)

    def _multiply(self, rows: Index, columns: Index, V: NDArray[Any], out: NDArray[Any]) -> None:
        n = self.shape[0]
        if self.symmetric and length(rows) == n and isinstance(columns, slice) and length(columns) == n:
            self.engine.multiply_whole(V, out, self._plan.budget - self._plan.bytes)
        else:
            self.engine.multiply(rows, columns, V, out)
