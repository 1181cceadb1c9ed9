"""Rows of K kept under a byte budget, the least recently used leaving first.

Working-set methods ask for the same few rows again and again; a cache of a tenth of the matrix answers most requests
(Schoelkopf and Smola 2002, section 10.1.3).  K is symmetric, so a row that is held serves as a column too.
"""

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.gram import cost
from mercer.gram import matrix_blocks as stored
from mercer.gram.engine import Engine
from mercer.gram.operator import GramOperator
from mercer.gram.points import Index, length


@dataclass(frozen=True)
class CacheReport:
    """Rows asked for, rows found, and what is held now."""

    hits: int
    misses: int
    held: int
    slots: int
    bytes: int

    @property
    def rate(self) -> float:
        """Share of the rows asked for that were held."""
        return self.hits / max(1, self.hits + self.misses)


class CachedGram(GramOperator):
    """K with its latest rows held in `slots` places of one array; safe to share between threads.

    Values are computed outside the lock: two threads that miss the same row both compute it, and one copy is kept.
    """

    storage = "cached"

    def __init__(self, engine: Engine, plan: cost.Plan) -> None:
        super().__init__(engine, plan)
        engine.limit(plan)
        self._lock = Lock()
        # Pages of an array that was never written take no memory, so the whole budget can be laid out at once.
        self._held = np.empty((plan.slots, self.shape[1]), dtype=self.dtype)
        self._slot_of = np.full(self.shape[0], -1, dtype=np.intp)
        self._recent: OrderedDict[int, int] = OrderedDict()  # row -> slot, least recently used first
        self._hits = self._misses = 0

    def report(self) -> CacheReport:
        """Hits, misses and rows held since the operator was built or the counters were reset."""
        with self._lock:
            held = len(self._recent)
            return CacheReport(self._hits, self._misses, held, len(self._held), held * self._held.strides[0])

    def forget(self) -> None:
        """Forget all rows, give their memory back and set the counters to zero."""
        with self._lock:
            self._held = np.empty_like(self._held)
            self._recent.clear()
            self._slot_of.fill(-1)
            self._hits = self._misses = 0

    def row(self, i: int) -> NDArray[Any]:
        """Row i, shape (m,), as an array of the caller's own."""
        out = np.empty(self.shape[1], dtype=self.dtype)
        self._rows(np.array([i], dtype=np.intp), out[None])
        return out

    def _take_held(self, index: NDArray[np.intp], columns: Index, out: NDArray[Any]) -> NDArray[np.bool_]:
        """Write the rows that are held to their places in `out`; returns which they were."""
        with self._lock:
            slots = self._slot_of[index]
            here = slots >= 0
            for r in np.flatnonzero(here):
                out[r] = self._held[slots[r], columns]
                self._recent.move_to_end(int(index[r]))
            found = int(here.sum())
            self._hits += found
            self._misses += len(index) - found
        return here

    def _keep(self, index: NDArray[np.intp], values: NDArray[Any]) -> None:
        """Hold freshly computed rows, dropping the least recently used."""
        capacity = len(self._held)
        with self._lock:
            for i, row in zip(index[-capacity:].tolist(), values[-capacity:]):
                if self._slot_of[i] >= 0:
                    continue
                if len(self._recent) < capacity:
                    slot = len(self._recent)
                else:
                    oldest, slot = self._recent.popitem(last=False)
                    self._slot_of[oldest] = -1
                self._held[slot] = row
                self._slot_of[i] = slot
                self._recent[i] = slot

    def _rows(self, index: NDArray[np.intp], out: NDArray[Any]) -> None:
        """Whole rows to `out`: from the cache, else computed in place and kept."""
        missing = np.flatnonzero(~self._take_held(index, slice(None), out))
        if len(missing) == len(index):
            self.engine.fill(index, slice(0, self.shape[1]), out)
            self._keep(index, out)
            return
        step = max(1, cost.COPIED_VALUES // self.shape[1])
        for start in range(0, len(missing), step):
            some = missing[start : start + step]
            values = np.empty((len(some), self.shape[1]), dtype=self.dtype)
            self.engine.fill(index[some], slice(0, self.shape[1]), values)
            out[some] = values
            self._keep(index[some], values)

    def _fill(self, rows: Index, columns: Index, out: NDArray[Any]) -> None:
        if isinstance(columns, slice) and length(columns) == self.shape[1]:
            if isinstance(rows, slice) and length(rows) == self.shape[0]:
                # The whole matrix is wanted once: passing it through the cache would only empty it.
                self.engine.fill(rows, columns, out)
            else:
                self._rows(_as_array(rows), out)
            return
        index = _as_array(rows)
        missing = np.flatnonzero(~self._take_held(index, columns, out))
        if not len(missing):
            return
        if not self.symmetric:
            self._compute(index, missing, columns, out)
            return
        across = _as_array(columns)
        absent = np.flatnonzero(~self._take_held_columns(across, index, missing, out))
        if len(absent) == len(across):
            self._compute(index, missing, columns, out)
        elif len(absent):
            self._compute_parts(index[missing], across[absent], missing, absent, out)

    def _take_held_columns(
        self, across: NDArray[np.intp], index: NDArray[np.intp], missing: NDArray[np.intp], out: NDArray[Any]
    ) -> NDArray[np.bool_]:
        """Row j serves column j: fill out[missing, j] for the columns that are held as rows; returns which."""
        with self._lock:
            slots = self._slot_of[across]
            here = slots >= 0
            for c in np.flatnonzero(here):
                out[missing, c] = self._held[slots[c], index[missing]]
        return here

    def _compute(self, index: NDArray[np.intp], missing: NDArray[np.intp], columns: Index, out: NDArray[Any]) -> None:
        """Compute the missing rows of a block, which is not kept: it is no whole row."""
        if len(missing) == len(index):
            self.engine.fill(index, columns, out)
            return
        step = max(1, cost.COPIED_VALUES // max(1, length(columns)))
        for start in range(0, len(missing), step):
            some = missing[start : start + step]
            values = np.empty((len(some), length(columns)), dtype=self.dtype)
            self.engine.fill(index[some], columns, values)
            out[some] = values

    def _compute_parts(
        self,
        rows: NDArray[np.intp],
        columns: NDArray[np.intp],
        to_rows: NDArray[np.intp],
        to_columns: NDArray[np.intp],
        out: NDArray[Any],
    ) -> None:
        """Compute the part of a block that no held row or column gives, a few rows at a time."""
        step = max(1, cost.COPIED_VALUES // len(columns))
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            values = np.empty((len(some), len(columns)), dtype=self.dtype)
            self.engine.fill(some, columns, values)
            out[np.ix_(to_rows[start : start + step], to_columns)] = values

    def _multiply(self, rows: Index, columns: Index, V: NDArray[Any], out: NDArray[Any]) -> None:
        """Held rows through BLAS; of a symmetric matrix held columns too; the rest in tiles."""
        if self.symmetric and length(rows) == self.shape[0]:
            self._multiply_columns(_as_array(columns), V, out)
            return
        self.engine.multiply(rows, columns, V, out)

    def _multiply_columns(self, columns: NDArray[np.intp], V: NDArray[Any], out: NDArray[Any]) -> None:
        """Add K[:, columns] V = sum_j K[j]' V[j], held rows j from the cache and the others in tiles."""
        step = max(1, cost.COPIED_VALUES // self.shape[1])
        absent: list[NDArray[np.intp]] = []
        for start in range(0, len(columns), step):
            some = np.arange(start, min(start + step, len(columns)))
            with self._lock:
                slots = self._slot_of[columns[some]]
                here = slots >= 0
                values = self._held[slots[here]]
            stored_rows = slice(0, len(values))
            if len(values):
                stored.multiply(values.T, slice(0, self.shape[1]), stored_rows, V[some[here]], out, False)
            absent.append(some[~here])
        missing = np.concatenate(absent) if absent else columns[:0]
        if len(missing) == len(columns) == self.shape[0]:
            self.engine.multiply(slice(0, self.shape[0]), slice(0, self.shape[0]), V, out)
        elif len(missing):
            self.engine.multiply(slice(0, self.shape[0]), columns[missing], np.ascontiguousarray(V[missing]), out)


def _as_array(index: Index) -> NDArray[np.intp]:
    """An index as an array of positions."""
    if isinstance(index, slice):
        return np.arange(index.start, index.stop, index.step or 1, dtype=np.intp)
    return index
