"""The two caches of SvmFu: kernel values within a chunk of points, and of other points against the chunk.

The square one reserves chunk x chunk values and computes a row when its point first moves; what earlier rows know of it
is copied by symmetry, so that no value is computed twice and pairs that never move are never computed.  It stays from
one chunk to the next: a place that is given to another point loses its row, and the rows that are known get a new value
in its column.

The rectangular one holds values of points outside that are looked at again and again.  Without it, more memory means a
larger chunk and, past some size, a slower solver; with it more memory helps (Rifkin 2002, sections 2.4.1 and 2.4.2).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.arrays import Index
from mercer.errors import BudgetTooSmall
from mercer.gram import CacheReport
from mercer.resources import show
from mercer.solvers.classical.row_cache import KernelValues


class ChunkCache(KernelValues):
    """Values of K + constant for `chunk` places, each with one point or none (-1), and for points outside."""

    def __init__(self, gram: Any, constant: float, chunk: int, budget: int) -> None:
        super().__init__(gram, constant)
        square = chunk * chunk * self.dtype.itemsize
        if square > budget:
            raise BudgetTooSmall(
                f"a chunk of {chunk} points needs {show(square)} for its kernel values: raise memory, or lower chunk"
            )
        self.place = np.full(self.n, -1, dtype=np.intp)  # of each point, in the chunk
        self.points = np.full(chunk, -1, dtype=np.intp)
        # Pages that were never written take no memory.
        self.square = np.empty((chunk, chunk), dtype=self.dtype)
        self.known = np.zeros(chunk, dtype=np.bool_)
        strips = int(min((budget - square) // (chunk * (self.dtype.itemsize + 1)), self.n))
        self.strip = np.full(self.n, -1, dtype=np.intp)  # of each point, in the rectangle
        self.holder = np.full(strips, -1, dtype=np.intp)
        self.rectangle = np.empty((strips, chunk), dtype=self.dtype)
        self.valid = np.zeros((strips, chunk), dtype=np.bool_)
        self.looks = np.zeros(self.n, dtype=np.int64)

    columns: Index | None = None
    """All points have their outputs kept up to date."""

    def report(self) -> CacheReport:
        """Values found or computed, and what is held."""
        held = int(np.count_nonzero(self.known))
        size = self.square.nbytes + self.rectangle.nbytes + self.valid.nbytes
        return CacheReport(self.hits, self.evaluations, held, self.points.size, size)

    # Within the chunk ------------------------------------------------------------------------------------------

    def fill_row(self, place: int) -> None:
        """The row of a place, from the rows that are known and computed for the others."""
        taken = self.points >= 0
        known, rest = np.flatnonzero(self.known), np.flatnonzero(taken & ~self.known)
        self.square[place, known] = self.square[known, place]
        self.hits += known.size
        self.square[place, rest] = self.compute(self.points[[place]], self.points[rest])[0]
        self.known[place] = True

    def replace(self, places: Index, points: Index) -> None:
        """Give places to other points: their rows go, and rows that are known get the new values."""
        gone = self.points[places]
        self.place[gone[gone >= 0]] = -1
        self.points[places] = points
        self.place[points] = places
        self.known[places] = False
        self.valid[:, places] = False
        known = np.flatnonzero(self.known)
        if known.size:
            self.square[np.ix_(known, places)] = self.outside(points, self.points[known]).T
        strips = self.strip[points]
        self.holder[strips[strips >= 0]] = -1
        self.strip[points] = -1

    # Against the chunk -----------------------------------------------------------------------------------------

    def look(self, points: Index) -> None:
        """Take note that points outside are looked at; the rectangle is for those looked at most often."""
        self.looks[points] += 1
        wanting = points[self.strip[points] < 0]
        if not wanting.size or not self.holder.size:
            return
        seen = np.where(self.holder >= 0, self.looks[self.holder], -1)
        order = np.argsort(seen, kind="stable")[: wanting.size]
        wanting = wanting[np.argsort(-self.looks[wanting], kind="stable")][: order.size]
        better = self.looks[wanting] > seen[order]
        order, wanting = order[better], wanting[better]
        gone = self.holder[order]
        self.strip[gone[gone >= 0]] = -1
        self.holder[order], self.strip[wanting] = wanting, order
        self.valid[order] = False

    def outside(self, points: Index, columns: Index) -> NDArray[Any]:
        """K[points][:, columns] + constant for points outside, from the rectangle where it has them; it keeps them."""
        out = np.empty((points.size, columns.size), dtype=self.dtype)
        strips, places = self.strip[points], self.place[columns]
        if not (strips >= 0).any() or not (places >= 0).any():
            out[:] = self.compute(points, columns)
            return out
        inside = places >= 0
        found = np.zeros(out.shape, dtype=np.bool_)
        kept = np.ix_(strips >= 0, inside)
        corner = np.ix_(strips[strips >= 0], places[inside])
        found[kept] = self.valid[corner]
        out[kept] = self.rectangle[corner]
        self.hits += int(np.count_nonzero(found))
        lines = ~found.all(axis=1)
        across = ~found[lines].all(axis=0)
        if lines.any() and across.any():
            part = np.ix_(lines, across)
            fresh = self.compute(points[lines], columns[across])
            out[part] = fresh
        self.rectangle[corner] = out[kept]
        self.valid[corner] = True
        return out
