"""Rows of the kernel matrix under a byte budget, as a solver's loop wants them: the least recently used leave first.

A cache of a tenth of the rows is said to answer 80 to 90 % of the requests of a decomposition method (Schoelkopf and
Smola 2002, section 10.1.3).  The rows lie in one array with a stamp of their last use, so that compiled loops can read
and stamp them without leaving for Python; an operator of `mercer.gram` may keep values of its own behind it.  A matrix
that is held as a whole anyway is used in place.

K is symmetric: row i serves as column i, in `value`, in `block`, and for the entries of a new row.  When variables are
shrunk the rows are cut to the points that are left, so that the same budget holds more of them (Rifkin 2002,
section 2.3.3).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.arrays import Array, Index
from mercer.errors import BudgetTooSmall
from mercer.gram import CacheReport
from mercer.resources import parse, show

BUDGET = 200 * 2**20  # the cache of LIBSVM
LEAST_ROWS = 2  # a pair step needs both
# Rows that are held give entries of a new one where they cover this share of it: gathering costs more than computing.
SHARED = 0.5


class KernelValues:
    """Values of K + constant (n, n) as caches ask for them, computed and counted."""

    def __init__(self, gram: Any, constant: float) -> None:
        self.gram, self.constant = gram, constant
        self.n, self.dtype = int(gram.shape[0]), np.dtype(gram.dtype)
        self.evaluations = self.hits = self.misses = 0

    def compute(self, rows: Index, columns: Index | None) -> NDArray[Any]:
        """K[rows][:, columns] + constant."""
        values = np.asarray(self.gram.block(rows, columns))
        self.evaluations += values.size
        return values + self.dtype.type(self.constant) if self.constant else values

    def dot(self, points: Index, change: Array) -> Array:
        """(K + constant)[:, points] change (n,), in float64."""
        self.evaluations += self.n * points.size
        product = np.asarray(self.gram.columns_dot(points, change), dtype=np.float64)
        return product + self.constant * float(change.sum()) if self.constant else product


class RowCache(KernelValues):
    """Rows of K + constant (n, n) at the points `columns` (None: all).

    `rows` (slots, width), `slot_of` (n,) with -1 for rows not held, `used` (slots,) and `clock` (1,) are for compiled
    loops: reading row i is rows[slot_of[i]], and used[slot_of[i]] = clock[0] = clock[0] + 1.
    """

    def __init__(self, gram: Any, constant: float = 0.0, memory: int | str | None = None) -> None:
        super().__init__(gram, constant)
        self.budget = budget_for(gram) if memory is None else parse(memory)
        self.clock = np.zeros(1, dtype=np.int64)
        self.whole = False
        held = gram.held_values() if memory is None and not constant and hasattr(gram, "held_values") else None
        self.columns: Index | None = None
        if isinstance(held, np.ndarray):
            self.whole, self.evaluations = True, self.n * self.n
            self.rows, self.slot_of = held, np.arange(self.n, dtype=np.intp)
            self.row_in = self.slot_of
            self.used = np.zeros(self.n, dtype=np.int64)
        else:
            self._lay_out(self.n)

    def _lay_out(self, width: int) -> None:
        """Empty places for rows of `width` values, as many as the budget holds."""
        slots = self.budget // max(1, width * self.dtype.itemsize)
        if slots < LEAST_ROWS:
            need = show(LEAST_ROWS * width * self.dtype.itemsize)
            raise BudgetTooSmall(f"the row cache needs {need} for {LEAST_ROWS} rows of {width} values: raise memory")
        count = int(min(slots, self.n))
        if not hasattr(self, "buffer"):
            # Pages that were never written take no memory.
            self.buffer = np.empty(min(self.budget // self.dtype.itemsize, self.n * self.n), dtype=self.dtype)
        self.rows = self.buffer[: count * width].reshape(count, width)
        self.slot_of = np.full(self.n, -1, dtype=np.intp)
        self.row_in = np.full(count, -1, dtype=np.intp)  # the row in each place
        self.used = np.zeros(count, dtype=np.int64)

    @property
    def slots(self) -> int:
        """How many rows may be held."""
        return len(self.rows)

    def report(self) -> CacheReport:
        """Requests answered from the cache or not, and what is held."""
        held = int(np.count_nonzero(self.row_in >= 0))
        return CacheReport(self.hits, self.misses, held, self.slots, held * self.rows.strides[0])

    # Rows ------------------------------------------------------------------------------------------------------

    def row(self, i: int) -> NDArray[Any]:
        """Row i (width,): a view that is good until the next request."""
        self.provide(np.array([i], dtype=np.intp))
        return np.asarray(self.rows[self.slot_of[i]])

    def provide(self, index: Index) -> None:
        """Hold the rows at `index`, of which there may be no more than slots; those missing are computed together."""
        held = self.slot_of[index] >= 0
        self.hits += int(np.count_nonzero(held))
        self._stamp(self.slot_of[index[held]])
        missing = np.unique(index[~held])
        if not missing.size:
            return
        self.misses += missing.size
        places = self._places(missing.size)
        self._forget(places)
        for i, place in zip(missing.tolist(), places.tolist()):
            self.slot_of[i], self.row_in[place] = place, i
        self._compute(missing, places)
        self._stamp(places)

    def _stamp(self, places: Index) -> None:
        self.clock[0] += 1
        self.used[places] = self.clock[0]

    def _places(self, count: int) -> Index:
        """The `count` places that were used longest ago."""
        if count > self.slots:
            raise BudgetTooSmall(f"{count} rows are asked for at once and the cache holds {self.slots}: raise memory")
        return np.argpartition(self.used, count - 1)[:count] if count < self.slots else np.arange(self.slots)

    def _forget(self, places: Index) -> None:
        gone = self.row_in[places]
        self.slot_of[gone[gone >= 0]] = -1
        self.row_in[places] = -1

    def _compute(self, index: Index, places: Index) -> None:
        """Rows `index` to their places; entries that other held rows have are copied where those are many."""
        width = self.rows.shape[1]
        others = np.flatnonzero(self.row_in >= 0)
        others = others[~np.isin(others, places)]
        if self.columns is not None or others.size < SHARED * width:
            self.rows[places] = self.compute(index, self.columns)
            return
        known = self.row_in[others]
        rest = np.setdiff1d(np.arange(self.n, dtype=np.intp), known)
        new = np.empty((index.size, width), dtype=self.dtype)
        new[:, known] = self.rows[np.ix_(others, index)].T
        if rest.size:
            new[:, rest] = self.compute(index, rest)
        self.rows[places] = new

    # Values and products ---------------------------------------------------------------------------------------

    def value(self, i: int, j: int) -> float:
        """K_ij + constant, from row i or row j where one is held."""
        for a, b in ((i, j), (j, i)):
            at = b if self.columns is None else int(self.position[b])
            if self.slot_of[a] >= 0 and at >= 0:
                self.hits += 1
                return float(self.rows[self.slot_of[a], at])
        self.misses += 1
        return float(self.compute(np.array([i]), np.array([j]))[0, 0])

    def block(self, rows: Index, columns: Index) -> NDArray[Any]:
        """K[rows][:, columns] + constant, from the rows that are held and computed for the others."""
        at = columns if self.columns is None else self.position[columns]
        slots = self.slot_of[rows]
        held = (slots >= 0) if (at >= 0).all() else np.zeros(rows.size, dtype=np.bool_)
        out = np.empty((rows.size, columns.size), dtype=self.dtype)
        out[held] = self.rows[np.ix_(slots[held], at)]
        if not held.all():
            out[~held] = self.compute(rows[~held], columns)
        self.hits += int(np.count_nonzero(held))
        self.misses += int(np.count_nonzero(~held))
        return out

    def dot(self, points: Index, change: Array) -> Array:
        """(K + constant)[columns][:, points] change (width,), in float64; the rows are held from now on if they fit."""
        if points.size <= self.slots:
            self.provide(points)
            return np.asarray(change @ self.rows[self.slot_of[points]].astype(np.float64, copy=False))
        held = self.slot_of[points] >= 0
        self.hits += int(np.count_nonzero(held))
        self.misses += int(np.count_nonzero(~held))
        some = change[held] @ self.rows[self.slot_of[points[held]]].astype(np.float64, copy=False)
        others = super().dot(points[~held], change[~held])
        return np.asarray(some + (others if self.columns is None else others[self.columns]))

    # Shrinking -------------------------------------------------------------------------------------------------

    @property
    def position(self) -> Index:
        """Where each point (n,) stands in a row, -1 where rows are cut there."""
        if self.columns is None:
            return np.arange(self.n, dtype=np.intp)
        return self._position

    def restrict(self, points: Index) -> None:
        """Cut the rows to `points`, which must be among the present columns; held rows stay, and more find a place."""
        if self.whole:
            return
        keep = self.position[points]
        before, stamps, old = self.rows, self.used, np.flatnonzero(self.row_in >= 0)
        rows = self.row_in[old]
        self._position = np.full(self.n, -1, dtype=np.intp)
        self._position[points] = np.arange(points.size)
        self.columns = points
        self._lay_out(points.size)
        # In one buffer: the k-th row held goes to place k, which ends before the next one begins.
        for place, slot in enumerate(old.tolist()):
            self.rows[place] = before[slot, keep]
        self.slot_of[rows] = np.arange(rows.size)
        self.row_in[: rows.size] = rows
        self.used[: rows.size] = stamps[old]

    def restore(self) -> None:
        """Whole rows again; those that were cut are forgotten."""
        if self.columns is not None:
            self.columns = None
            self._lay_out(self.n)


def budget_for(gram: Any) -> int:
    """Bytes for rows where none are stated: LIBSVM's, or what the operator leaves of its budget; two rows always."""
    least = LEAST_ROWS * int(gram.shape[0]) * np.dtype(gram.dtype).itemsize
    plan = gram.plan() if hasattr(gram, "plan") else None
    return int(max(least, BUDGET if plan is None else min(BUDGET, plan.budget - plan.bytes)))
