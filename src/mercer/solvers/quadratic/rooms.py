"""Room for the rows of a small problem, one in each thread, used again by the next problem.

Many pairs of classes are trained one after the other, each on some rows of its own matrix.  Memory that the system has
to clear first costs more than cheap values in it, so that a room is kept; a problem that is taken up again by the
thread that had it last finds its rows there.
"""

from threading import Lock, local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.arrays import Index
from mercer.gram import GramOperator, PointColumns

Stretches = tuple[int, int, int]


class Rooms:
    """Rooms for problems of at most `largest` points, whose values have the given type."""

    def __init__(self, largest: int, dtype: Any) -> None:
        self._largest, self._dtype, self._own = largest, dtype, local()

    def of(self, stretches: Stretches, n: int) -> tuple[NDArray[Any], Index]:
        """Room (n, n) for the rows of a problem, and the place (n,) of each point's row there, -1 where it has none.

        Rows lie there in the order in which they are computed, so that memory is touched for those alone.
        """
        own = self._own
        if not hasattr(own, "values"):
            own.values, own.stretches = np.empty(self._largest**2, self._dtype), None
        if own.stretches != (stretches, n):
            own.stretches, own.place = (stretches, n), np.full(n, -1, np.intp)
        return own.values[: n * n].reshape(n, n), own.place


class PointRows:
    """Points laid out for loops that compute a row when they first need it, and rooms for the rows."""

    def __init__(self, columns: PointColumns, largest: int, dtype: Any) -> None:
        self.columns, self.rooms = columns, Rooms(largest, dtype)


class BlockRows:
    """Points in an order in which those of a problem are two stretches, and rooms for rows that come in blocks."""

    def __init__(self, gram: GramOperator, largest: int) -> None:
        self.gram, self.rooms = gram, Rooms(largest, gram.dtype)
        self.filled, self._counting = 0, Lock()  # values so far, by all threads

    def fill(self, chosen: Index, stretches: Stretches, K: NDArray[Any], place: Index) -> None:
        """The rows of the local points `chosen`, into the next free ones of K (n, n)."""
        first, middle, second = stretches
        used, n = int(place.max(initial=-1)) + 1, K.shape[1]
        rows = K[used : used + len(chosen)]
        where = np.where(chosen < middle, first + chosen, second - middle + chosen)
        self.gram.stretch_of_rows(where, slice(first, first + middle), rows[:, :middle])
        if middle < n:
            self.gram.stretch_of_rows(where, slice(second, second + n - middle), rows[:, middle:])
        place[chosen] = np.arange(used, used + len(chosen))
        with self._counting:
            self.filled += rows.size
