"""The rows of one fit as a stream: each distinct point as often as it counts, in an order drawn anew for every pass.

A point of weight w is w copies of it.  Rows that are the same, of the same target, are therefore first merged into one
of their summed weight (`mercer.machine.repeated_rows`), and the order in which they stand is made one that follows from
their values alone.  A pass then takes a point of weight w in ceil(w) steps of length w / ceil(w), spread at random over
the pass.  So a weight of two, two rows and any permutation of the rows are the same computation to the last bit.

A pass has no more than `LONGEST_PASS` steps, or two for each point where that is more: the steps of heavier data are
longer in the place of more.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.machine.repeated_rows import distinct

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Index = NDArray[np.intp]

LONGEST_PASS = 1 << 20  # some minutes; it is passed only by weights whose sum is larger


@dataclass(frozen=True, eq=False)
class Batch:
    """The m distinct points of a fit: their `rows` (m,), weights (m,), and the `steps` (m,) of a pass for each."""

    rows: Index
    weights: Vector
    steps: Index

    @classmethod
    def of(cls, X: Any, labels: Matrix | None, weights: Vector) -> "Batch":
        """The points among rows X with labels (n, k) and weights (n,); rows of weight zero are left out."""
        found = distinct(X, labels, weights, ordered=True)
        if found is None:  # things that Python can neither look up nor weigh: all different
            rows, merged = np.arange(len(weights)), weights
        else:
            rows = found.first
            merged = np.ones(len(rows)) if found.weights is None else found.weights
        length = max(1.0, float(merged.sum()) / max(LONGEST_PASS, len(merged)))
        return cls(rows, merged, np.maximum(1, np.ceil(merged / length)).astype(np.intp))

    def lengths(self, n: int) -> Vector:
        """The length of a step at each of n rows (n,), zero for rows that no step is taken at."""
        own = np.zeros(n)
        own[self.rows] = self.weights / self.steps
        return own

    def order(self, random: np.random.RandomState) -> Index:
        """The rows of a pass, in the order of its steps."""
        return np.asarray(random.permutation(np.repeat(self.rows, self.steps)))
