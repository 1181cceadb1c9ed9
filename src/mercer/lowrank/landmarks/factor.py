"""A partial Cholesky factor that grows by one landmark at a time: K ~ V'V with V (t, n) after t steps.

Adding the point j appends the row  g = (k_j - V'V_j) / sqrt(d_j),  where k_j is its column of K and d the diagonal of
K - V'V; then d falls by g^2 and the weighted trace sum_i w_i d_i by sum_i w_i g_i^2, which is what the point gains
(Schoelkopf and Smola 2002, section 10.2.2; Fine and Scheinberg 2001).  V'V is the Nystrom matrix K~ of the points.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mercer.gram import GramOperator
from mercer.lowrank.landmarks.task import Rows

Array = NDArray[np.float64]

# A point whose residual is this share of the largest diagonal entry depends on the landmarks to rounding.
DEPENDENT = 1e-12


class Factor:
    """V (t, n), the residual diagonal `left` (n,), the points `chosen` (t,) and the weighted trace left after each."""

    def __init__(self, gram: GramOperator, m: int, weights: Array, tol: float = DEPENDENT) -> None:
        n = gram.shape[0]
        self.gram = gram
        self.weights = weights
        self.left = np.array(gram.diagonal(), dtype=np.float64)
        self.least = tol * float(self.left.max(initial=0.0))
        self.chosen: list[int] = []
        self.history = [float(weights @ self.left)]
        self._rows = np.empty((min(m, n), n))

    @property
    def V(self) -> Array:
        """The factor so far, (t, n)."""
        return self._rows[: len(self.chosen)]

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
        """Add the point j, whose residual column (n,) may be known already; the new row of V."""
        if column is None:
            column = self.residual_columns(np.array([j], dtype=np.intp))[0]
        g: Array = self._rows[len(self.chosen)]
        np.divide(column, np.sqrt(self.left[j]), out=g)
        self.chosen.append(j)
        self.left -= g * g
        # Chosen points have no residual; rounding must not make one up.
        self.left[self.chosen] = 0.0
        np.maximum(self.left, 0.0, out=self.left)
        self.history.append(float(self.weights @ self.left))
        return g

    def grow_by(self, pick: Callable[["Factor"], tuple[int, Array | None]], m: int, enough: float) -> None:
        """Add what `pick` says until there are m points, the trace is at most `enough`, or all depend on them."""
        while len(self.chosen) < m and self.trace > enough and self.independent().any():
            self.grow(*pick(self))
