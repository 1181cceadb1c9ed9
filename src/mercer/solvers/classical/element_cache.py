"""Single kernel values under a byte budget.

Where few variables ever move, and each against few others, all values that a solver needs may fit although no row
does (Schoelkopf and Smola 2002, section 10.1.3).  Each pair i <= j has one place of a table, found by hashing; a
newcomer takes it over.  Looking up costs about as much as computing a value of a cheap kernel on few features.

A value costs twice the bytes that it has in a row, and is held once for both of its rows.  It answers the questions of
`RowCache` that working sets ask: a block of the matrix, and the change of all outputs.
"""

from typing import Any

import numpy as np

from mercer.arrays import Array, Index
from mercer.compiled import loop
from mercer.errors import BudgetTooSmall
from mercer.gram import CacheReport
from mercer.resources import parse
from mercer.solvers.classical.row_cache import budget_for

ENTRY = 16  # bytes: a key and a value
LEAST = 2  # entries
MIX = 0x9E3779B97F4A7C15 - (1 << 64)  # 2^64 over the golden ratio, as a signed number


@loop
def _place(i: int, j: int, n: int, bits: int) -> tuple[int, int]:
    """Key of the pair and its place in a table of 2^bits entries."""
    key = min(i, j) * n + max(i, j)
    return key, ((key * MIX) >> (64 - bits)) & ((1 << bits) - 1)


@loop
def _look_up(keys: Any, table: Any, n: int, bits: int, i: int, columns: Any, out: Any, missing: Any) -> int:
    """Values of the pairs (i, column) to `out`; positions of those not in the table to `missing`; how many."""
    count = 0
    for c in range(columns.shape[0]):
        key, place = _place(i, columns[c], n, bits)
        if keys[place] == key:
            out[c] = table[place]
        else:
            missing[count] = c
            count += 1
    return count


@loop
def _keep(keys: Any, table: Any, n: int, bits: int, i: int, columns: Any, values: Any) -> None:
    """Put the values of the pairs (i, column) in their places."""
    for c in range(columns.shape[0]):
        key, place = _place(i, columns[c], n, bits)
        keys[place] = key
        table[place] = values[c]


class ElementCache:
    """Values of K + constant (n, n), one by one."""

    def __init__(self, gram: Any, constant: float = 0.0, memory: int | str | None = None) -> None:
        self.gram, self.constant = gram, constant
        self.n = int(gram.shape[0])
        entries = (budget_for(gram) if memory is None else parse(memory)) // ENTRY
        if entries < LEAST:
            raise BudgetTooSmall(f"the element cache needs at least {LEAST * ENTRY} bytes: raise memory")
        self.bits = int(min(entries, max(LEAST, self.n * (self.n + 1))).bit_length() - 1)
        self.keys = np.full(1 << self.bits, -1, dtype=np.int64)
        self.table = np.zeros(1 << self.bits)
        self.evaluations = self.hits = self.misses = 0
        self.columns: Index | None = None

    def report(self) -> CacheReport:
        """Values found or not, and what is held."""
        held = int(np.count_nonzero(self.keys >= 0))
        return CacheReport(self.hits, self.misses, held, self.keys.size, ENTRY * self.keys.size)

    def values(self, i: int, columns: Index) -> Array:
        """K_ij + constant for the points j of `columns`."""
        out = np.empty(columns.size)
        missing = np.empty(columns.size, dtype=np.intp)
        columns = np.ascontiguousarray(columns, dtype=np.intp)
        count = _look_up(self.keys, self.table, self.n, self.bits, i, columns, out, missing)
        self.hits += columns.size - count
        self.misses += count
        if count:
            absent = missing[:count]
            found = np.asarray(self.gram.block(np.array([i]), columns[absent]), dtype=np.float64)[0] + self.constant
            self.evaluations += count
            out[absent] = found
            _keep(self.keys, self.table, self.n, self.bits, i, columns[absent], found)
        return out

    def value(self, i: int, j: int) -> float:
        """K_ij + constant."""
        return float(self.values(i, np.array([j], dtype=np.intp))[0])

    def block(self, rows: Index, columns: Index) -> Array:
        """K[rows][:, columns] + constant."""
        return np.array([self.values(int(i), columns) for i in rows]).reshape(rows.size, columns.size)

    def dot(self, points: Index, change: Array) -> Array:
        """(K + constant)[columns][:, points] change (width,); the rows are laid out for the time of the product."""
        columns = np.arange(self.n, dtype=np.intp) if self.columns is None else self.columns
        return np.asarray(change @ self.block(points, columns))

    def restrict(self, points: Index) -> None:
        """Outputs of `points` are all that `dot` gives from now on; what is held stays."""
        self.columns = points

    def restore(self) -> None:
        """Outputs of all points again."""
        self.columns = None
