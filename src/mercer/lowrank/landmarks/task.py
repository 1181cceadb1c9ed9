"""What a way of choosing landmarks is asked for, what it answers, and what a user gets.

With S the m landmarks, A = k(X, S) (n, m) and B = k(S, S) (m, m), the matrix they stand for is K~ = A B^-1 A'.  K - K~
is positive semidefinite and zero on the landmarks; its trace is the error of the best approximation of all k(x_i, .)
by functions of the span of the k(s_j, .) (Schoelkopf and Smola 2002, section 10.2.1).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import BudgetTooSmall, NotPositiveDefinite
from mercer.gram import Gram, GramOperator, Points, size, take
from mercer.kernels.base import Kernel
from mercer.kernels.checks import whole
from mercer.resources import show

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
class LandmarkTask:
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
        rows = None if rows is None else whole(rows, "rows", 1)
        fitting = self.memory // (2 * bytes_per_row)
        least = min(self.m, len(self.active))
        if fitting < least:
            raise BudgetTooSmall(
                f"memory={show(self.memory)} does not hold the factor of {least} landmarks on as many rows; "
                f"give at least {show(2 * least * bytes_per_row)}, or choose fewer landmarks"
            )
        usual = max(2 * self.m, min(int(affordable), USUAL_BYTES // bytes_per_row))
        wanted = usual if rows is None else max(rows, least)
        return self.sample(min(wanted, fitting))

    def gram(self, rows: Rows, *, storage: str = "auto") -> GramOperator:
        """The kernel matrix on some rows, for products; storage="streamed" where no value is asked for twice."""
        points = self.X if len(rows) == self.n else take(self.X, rows)
        return Gram(self.kernel, points, memory=max(1, self.memory // 2), storage=storage)


def said_of_rows(task: LandmarkTask, rows: Rows) -> dict[str, Any]:
    """How many of the points a method has looked at."""
    if len(rows) == len(task.active):
        return {"rows": len(rows)}
    return {"rows": len(rows), "note": f"chosen among {len(rows)} random rows of {len(task.active)}"}


@dataclass(frozen=True, eq=False)
class Landmarks:
    """m chosen points and how well they stand for all.

    Attributes
    ----------
    points : the landmarks, (m, d) dense or CSR as the data were, or a list of m objects.
    index : (m,) their rows in X, in the order in which they were chosen; None where they are no rows (centres).
    method : the name under which they were chosen.
    residual_trace : trace(K - K~), with sample weights sum_i w_i (K - K~)_ii; NaN where it was not measured.
    residual_rows : on how many rows of K it was measured: n means exact, fewer an estimate from random rows, 0 not at
        all.
    trace : trace(K), with sample weights sum_i w_i k(x_i, x_i).
    entropy : quadratic Renyi entropy of the landmarks, -log of the mean of k(s_i, s_j) over all i, j; larger is more
        spread out.
    seconds : time of the choice, without that of the measurements.
    details : what the method has to say: rows considered, history, points left out and why.

    """

    points: Points
    index: Rows | None
    method: str
    residual_trace: float
    residual_rows: int
    trace: float
    entropy: float
    seconds: float
    details: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return size(self.points)

    @property
    def explained(self) -> float:
        """trace(K~) / trace(K): 1 where the landmarks span all points (Rifkin 2002, section 3.7)."""
        return 1.0 - self.residual_trace / self.trace if self.trace > 0 else float("nan")

    def __repr__(self) -> str:
        measured = f"{self.residual_rows} rows" if self.residual_rows else "not measured"
        return (
            f"<{len(self)} landmarks by {self.method}: residual trace {self.residual_trace:.4g} of {self.trace:.4g} "
            f"({measured}), entropy {self.entropy:.4g}, {self.seconds:.3g} s>"
        )
