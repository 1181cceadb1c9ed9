"""Kernel values for a search: many widths, many subsets, one set of squared distances.

    stored      D (n, n) in float32, once; a block of the matrix for any width is one transform of a block of D
    streamed    where D does not fit in the memory, or the kernel is no function of the distance: blocks come from the
                points, tile by tile

Either way `at(kernel)` gives `block(rows, columns)` in float32, callable from several threads at once.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.errors import BudgetTooSmall
from mercer.gram import Gram, GramOperator, SquaredDistances
from mercer.kernels import Kernel
from mercer.resources import budget

Index = NDArray[np.intp]
Matrix = NDArray[np.float32]


class Values(Protocol):
    """The matrix of one kernel."""

    def block(self, rows: Index | slice, columns: Index | slice, out: Matrix | None = None) -> Matrix:
        """Values between the points `rows` and the points `columns`, float32 and contiguous."""
        ...


class Streamed:
    """Values computed from the points when they are asked for; `capacity` n x n matrices may be held at a time."""

    def __init__(self, X: Any, memory: int) -> None:
        self.X = X
        self.n = int(X.shape[0])
        self.memory = memory
        self.capacity = int(memory // max(1, 4 * self.n**2))

    def at(self, kernel: Kernel) -> GramOperator:
        """The matrix of any kernel on these points."""
        return Gram(kernel, self.X, storage="streamed", precision="float32", memory=self.memory)


def similarities(
    X: Any, kernel: Kernel, *, widths: int, memory: int | str | None = None
) -> SquaredDistances | Streamed:
    """Stored distances where several widths of a distance kernel fit in the memory with one matrix beside them."""
    allowed = budget(memory)
    profile = kernel.profile
    if widths > 1 and profile is not None and profile.base == "squared_distance" and profile.scale is None:
        try:
            return SquaredDistances(X, memory=allowed, precision="float32")
        except BudgetTooSmall:
            pass
    return Streamed(X, allowed)
