"""The place of an engine behind a matrix that was given by its values or factors."""

from dataclasses import replace
from typing import Any, NoReturn, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.gram import cost
from mercer.gram.engine import Array, Engine
from mercer.gram.points import Index, length, pieces


def stored_part(matrix: NDArray[Any], rows: Index, columns: Index) -> NDArray[Any]:
    """matrix[rows][:, columns], copied once."""
    if isinstance(rows, slice) or isinstance(columns, slice):
        return np.asarray(matrix[rows, columns])
    return np.asarray(matrix[np.ix_(rows, columns)])


class GivenEngine(Engine):
    """The place of a matrix that was given by its values or factors; there are no points to compute more from."""

    def __init__(self, kernel: Any, matrix: Any, shape: tuple[int, int], symmetric: bool, dtype: Any) -> None:
        super().__init__(kernel, matrix, matrix, dtype)
        self.shape = shape
        self._symmetric = symmetric

    @property
    def symmetric(self) -> bool:
        """Whether the matrix equals its transpose."""
        return self._symmetric

    def _refuse(self, *arguments: Any) -> NoReturn:
        """Operators that own such a matrix read it themselves."""
        raise InvalidInput("the matrix was given by its values; there are no points to compute others from")

    fill = multiply = sweep = against = cast(Any, _refuse)

    def multiply_exactly(self, rows: Index, columns: Index, V: NDArray[Any], out: Array) -> None:
        """Add K[rows][:, columns] V to `out`; the given values are the matrix, only sums can be more exact."""
        height = length(rows)
        left = 0
        for some in pieces(columns, max(1, cost.COPIED_VALUES // max(1, height))):
            width = length(some)
            part = self.X[rows][:, some] if sp.issparse(self.X) else stored_part(self.X, rows, some)
            out += part.astype(np.float64) @ V[left : left + width]
            left += width

    def task(self, budget: int, access: cost.Access = "products", nonzeros: int | None = None) -> cost.MatrixTask:
        """Sizes of the matrix."""
        return replace(super().task(budget, access, nonzeros), d=1)

    def diagonal(self) -> NDArray[Any]:
        """Diagonal of the given matrix."""
        return np.array(self.X.diagonal(), dtype=self.dtype)

    def in_double(self) -> None:
        """Given values are the matrix."""

    def with_kernel(self, kernel: Any) -> Engine:
        """Refused: a given matrix has one kernel."""
        raise InvalidInput("a precomputed matrix has no other kernel; build Gram(kernel, X) on the points")

    def subset(self, index: NDArray[np.intp]) -> Engine:
        """The part of the matrix between the points at `index`."""
        count = len(index)
        square = self.X.shape == self.shape
        part = (
            (self.X[index][:, index] if sp.issparse(self.X) else self.X[np.ix_(index, index)])
            if square
            else self.X[index]
        )
        return GivenEngine(self.kernel, part, (count, count), True, self.dtype)
