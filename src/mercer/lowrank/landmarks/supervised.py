"""Orthogonal least squares: each step adds the column of K that lowers the squared error of the fit to y the most.

With q_j the column of the point j orthogonalised against the chosen ones, the error falls by (q_j'y)^2 / q_j'q_j (Chen,
Cowan and Grant 1991).  Both numbers are kept for all points: a new unit vector q turns q_j into q_j - q h_j, where
h_j = q'k_j, and h = K q is one product with the matrix.  Weights enter as sqrt(w_i) on row i, several targets by the
sum of their errors.
"""

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.gram import GramOperator
from mercer.lowrank.landmarks.greedy import full_rows, weighted_squares
from mercer.lowrank.landmarks.task import Choice, LandmarkTask, said_of_rows

Array = NDArray[np.float64]

# Share of |k_j|^2 at which what is left of the column is rounding: the sums of squares lose digits as they fall.
DEPENDENT = 1e-10


def orthogonal_least_squares(
    task: LandmarkTask, bias: bool = False, tol: float = DEPENDENT, rows: int | None = None
) -> Choice:
    """Add the column that lowers the squared error the most, until there are m.

    bias: a constant is fitted as well.  tol: a point is left out when so small a share of its squared column is
    independent of the others.  rows: look at so many random rows only; None: at all where that is affordable.
    """
    if task.y is None:
        raise InvalidInput("method='orthogonal_least_squares' fits targets: give y")
    if not 0 < tol < 1:
        raise InvalidInput(f"tol must lie between 0 and 1, got {tol!r}")
    chosen = full_rows(task, rows)
    search = _Search(task.gram(chosen), task.y[chosen], task.weights[chosen], task.m, tol)
    if bias:
        search.deflate(search.root)
    while len(search.picked) < task.m and search.add_best():
        pass
    return Choice(chosen[search.picked], details=said_of_rows(task, chosen) | {"history": np.array(search.errors)})


class _Search:
    """Orthonormal Q (t, n), for every point |q_j|^2 and q_j'y, and the squared error after each step."""

    def __init__(self, gram: GramOperator, y: Array, weights: Array, m: int, tol: float) -> None:
        n = gram.shape[0]
        self.gram = gram
        self.root = np.sqrt(weights)
        self.y = self.root[:, None] * y
        self.squares = weighted_squares(gram, weights)
        self.least = tol * self.squares
        self.products: Array = gram.dot(weights[:, None] * y)
        self.errors = [float(np.sum(self.y**2))]
        self.picked: list[int] = []
        self.open = np.ones(n, dtype=np.bool_)
        self._rows = np.empty((min(m, n) + 1, n))
        self._t = 0

    def add_best(self) -> bool:
        """Add the point that lowers the error the most; False where all depend on the chosen ones."""
        self.open &= self.squares > self.least
        if not self.open.any():
            return False
        gains = np.zeros(len(self.squares))
        np.divide(np.sum(self.products**2, axis=1), self.squares, out=gains, where=self.open)
        # A point that gains nothing may still be asked for: among those, open ones come before dependent ones.
        j = int(np.argmax(np.where(self.open, gains, -1.0)))
        self.open[j] = False
        self.deflate(self.root * self.gram.rows(np.array([j], dtype=np.intp))[0])
        self.picked.append(j)
        return True

    def deflate(self, column: Array) -> None:
        """Take the direction of a column (n,) out of all columns and of the targets."""
        Q = self._rows[: self._t]
        for _ in range(2):  # once more, because one pass loses orthogonality where little of the column is left
            column = column - Q.T @ (Q @ column)
        norm = float(np.linalg.norm(column))
        if norm == 0.0:
            return
        q = self._rows[self._t]
        np.divide(column, norm, out=q)
        self._t += 1
        h = self.gram.dot(self.root * q)
        fitted = q @ self.y
        self.squares = np.maximum(self.squares - h * h, 0.0)
        self.products -= h[:, None] * fitted
        self.y -= q[:, None] * fitted
        self.errors.append(float(np.sum(self.y**2)))
