"""A partial Cholesky factor that grows by one landmark at a time: K ~ V'V with V (t, n) after t steps.

Adding the point j appends the row  g = (k_j - V'V_j) / sqrt(d_j),  where k_j is its column of K and d the diagonal of
K - V'V; then d falls by g^2 and the weighted trace sum_i w_i d_i by sum_i w_i g_i^2, which is what the point gains
(Schoelkopf and Smola 2002, section 10.2.2; Fine and Scheinberg 2001).  V'V is the Nystrom matrix K~ of the points.

The pivots of the incomplete Cholesky factorisation take always the point with the largest residual next.  Only the
diagonal and the m columns of the pivots are needed: m n kernel values, m^2 n operations, m n numbers (Hamers 2004,
section 5.3; Fine and Scheinberg 2001).  For a Gaussian the worst represented point is an outlier, and on real data such
landmarks explain less of the trace than random ones (Rifkin 2002, section 3.7).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mercer.dense import PartialCholesky
from mercer.errors import InvalidInput
from mercer.gram import GramOperator
from mercer.lowrank.landmarks.task import Choice, LandmarkTask, Rows, said_of_rows

Array = NDArray[np.float64]

# A point whose residual is this share of the largest diagonal entry depends on the landmarks to rounding.
DEPENDENT = 1e-12
# Operations until a choice takes some ten seconds; the factor is read from memory once for each landmark.
WORK = 5e10

Pick = Callable[["Factor"], tuple[int, "Array | None"]]


class Factor(PartialCholesky):
    """V (t, n) of the points `chosen` so far, and the weighted trace left after each of them."""

    def __init__(self, gram: GramOperator, m: int, weights: Array, tol: float = DEPENDENT) -> None:
        def row(i: int, out: Array) -> None:
            out[:] = gram.rows(np.array([i], dtype=np.intp))[0]

        super().__init__(gram.diagonal(), row, min(m, gram.shape[0]))
        self.gram = gram
        self.weights = weights
        self.least = tol * float(self.left.max(initial=0.0))
        self.history = [float(weights @ self.left)]

    @property
    def trace(self) -> float:
        """Weighted trace of K - V'V."""
        return self.history[-1]

    def residual_columns(self, index: Rows) -> Array:
        """Columns of K - V'V as rows, (len(index), n)."""
        columns: Array = self.gram.rows(index).astype(np.float64, copy=False)
        if self.chosen:
            columns = columns - self.V[:, index].T @ self.V
        return columns

    def independent(self) -> NDArray[np.bool_]:
        """Points that would add something, (n,)."""
        return self.left > self.least

    def grow(self, j: int, column: Array | None = None) -> Array:
        """Add the point j, as in `PartialCholesky`, and note the trace that is left."""
        g = super().grow(j, column)
        self.history.append(float(self.weights @ self.left))
        return g

    def grow_by(self, pick: Pick, m: int, enough: float) -> None:
        """Add what `pick` says until there are m points, the trace is at most `enough`, or all depend on them."""
        while len(self.chosen) < m and self.trace > enough and self.independent().any():
            self.grow(*pick(self))

    def choice(self, task: LandmarkTask, rows: Rows, pick: Pick, enough: float) -> Choice:
        """The choice among `rows` of a factor grown by `pick`, with the falling trace and the largest residual."""
        self.grow_by(pick, task.m, enough)
        said = {"history": np.array(self.history), "largest_residual": float(self.left.max(initial=0.0))}
        return Choice(rows[self.chosen], details=said_of_rows(task, rows) | said)


def pivoted_cholesky(
    task: LandmarkTask, tol: float = DEPENDENT, trace_tol: float = 0.0, rows: int | None = None
) -> Choice:
    """Points in the order of the pivots.

    Stops before m where the largest residual is at most `tol` times the largest k(x, x), or the residual trace at most
    `trace_tol` times the trace.  rows: look at so many random rows only; None: at all where that is affordable.
    """
    task.need_definite("pivoted_cholesky")
    check_shares(tol=tol, trace_tol=trace_tol)
    chosen = task.working_rows(rows, WORK / task.m**2, 8 * task.m)
    factor = Factor(task.gram(chosen, storage="streamed"), task.m, task.weights[chosen], tol)
    return factor.choice(task, chosen, lambda f: (int(np.argmax(f.left)), None), trace_tol * factor.trace)


def check_shares(**named: float) -> None:
    """Refuse numbers outside [0, 1)."""
    for name, value in named.items():
        if not 0 <= value < 1:
            raise InvalidInput(f"{name} must lie in [0, 1), got {value!r}")
