"""What a way of choosing is asked for, and what it answers."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import BudgetTooSmall, InvalidInput, NotPositiveDefinite
from mercer.gram import Gram, GramOperator
from mercer.gram.memory import show
from mercer.gram.points import Points, size, take
from mercer.kernels.base import Kernel

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

USUAL_BYTES = 1 << 29


@dataclass(frozen=True, eq=False)
class Choice:
    """Landmarks as rows of X (`index`) or as points of their own (`points`), with what is to be said of them."""

    index: Rows | None = None
    points: Points | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Task:
    """Choose m of the points X (n, d) for a kernel.

    Attributes
    ----------
    active : (p,) rows of X that may be chosen and that count: those of positive weight.
    weights : (n,) sample weights, 1 where none were given.
    y : (n, k) targets, or None.
    rng : the source of all chance.
    memory : bytes the method may allocate: half for its own arrays, half for the kernel matrix.

    """

    kernel: Kernel
    X: Points
    m: int
    active: Rows
    weights: Array
    y: Array | None
    rng: np.random.Generator
    memory: int

    @property
    def n(self) -> int:
        """Number of points."""
        return size(self.X)

    def need_definite(self, method: str) -> None:
        """Refuse a kernel whose matrices have no Cholesky factor."""
        if not self.kernel.positive_definite:
            raise NotPositiveDefinite(
                f"method={method!r} factors the kernel matrix, and {self.kernel!r} is not positive definite; "
                "use method='uniform', 'kmeans', 'kmeans++' or 'entropy'"
            )

    def sample(self, most: int) -> Rows:
        """At most `most` of the active rows, drawn without replacement, in the order of X."""
        if most >= len(self.active):
            return self.active
        return np.sort(self.rng.choice(self.active, most, replace=False)).astype(np.intp)

    def working_rows(self, rows: int | None, affordable: float, bytes_per_row: int) -> Rows:
        """The rows a costly method looks at: `rows` of them where asked for, else as many as are affordable.

        Never fewer than 2 m where there are so many; what they take must fit half the budget.  Without `rows` they take
        no more than USUAL_BYTES, so that the choice does not depend on what memory happens to be free.
        """
        if rows is not None and (rows < 1 or rows != int(rows)):
            raise InvalidInput(f"rows must be a whole number of at least 1, got {rows!r}")
        fitting = self.memory // (2 * bytes_per_row)
        least = min(self.m, len(self.active))
        if fitting < least:
            raise BudgetTooSmall(
                f"memory={show(self.memory)} does not hold the factor of {least} landmarks on as many rows; "
                f"give at least {show(2 * least * bytes_per_row)}, or choose fewer landmarks"
            )
        usual = max(2 * self.m, min(int(affordable), USUAL_BYTES // bytes_per_row))
        wanted = usual if rows is None else max(int(rows), least)
        return self.sample(min(wanted, fitting))

    def gram(self, rows: Rows, *, storage: str = "auto") -> GramOperator:
        """The kernel matrix on some rows, for products; storage="streamed" where no value is asked for twice."""
        points = self.X if len(rows) == self.n else take(self.X, rows)
        return Gram(self.kernel, points, memory=max(1, self.memory // 2), storage=storage)


def said_of_rows(task: Task, rows: Rows) -> dict[str, Any]:
    """How many of the points a method has looked at."""
    if len(rows) == len(task.active):
        return {"rows": len(rows)}
    return {"rows": len(rows), "note": f"chosen among {len(rows)} random rows of {len(task.active)}"}
