"""Order from pairs with a norm of the coefficients in the place of the norm of f: a linear program.

    P(a) = ||a|| + L(K a),      L = C sum_{r_i > r_j, one query} w_i w_j (1 - f_i + f_j)_+

with the l1 norm, which leaves few kernels, or the largest absolute value.  A row of K holds the features of a point, in
whose space margins between ranks are then measured in the dual norm; the rank boundaries stay parallel (Herbrich,
Graepel and Obermayer 2000, section 2.4, with the margins of Mangasarian 1999).  Where L(f) >= h - c'f for all f, the
value h bounds the optimum from below if ||K c||_* <= 1, and a multiple of it that makes this true if not.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from mercer.arrays import Vector
from mercer.errors import InvalidInput
from mercer.problems.program import GramLike
from mercer.problems.ranking import RankedPairs

Norm = Literal["l1", "linf"]


class NormedPairs:
    """The problem for `ranks` (n,) in `queries` (n,), on a symmetric matrix K (n, n) that need not be definite."""

    def __init__(
        self,
        gram: GramLike,
        ranks: ArrayLike,
        C: float = 1.0,
        weights: ArrayLike | None = None,
        norm: Norm = "l1",
        queries: ArrayLike | None = None,
    ) -> None:
        if norm not in ("l1", "linf"):
            raise InvalidInput(f"norm must be 'l1' or 'linf', got {norm!r}")
        self.pairs = RankedPairs(gram, ranks, C, weights, "hinge", queries)
        self.gram, self.n, self.norm = gram, self.pairs.n, norm

    def tangent(self, f: Vector) -> tuple[float, Vector]:
        """The losses at f (n,) and a slope (n,) of them."""
        return self.pairs.tangent(f)

    def size(self, a: Vector) -> float:
        """The norm of coefficients a (n,)."""
        return float(np.abs(a).sum() if self.norm == "l1" else np.abs(a).max(initial=0.0))

    def dual_size(self, v: Vector) -> float:
        """The dual norm of v (n,)."""
        return float(np.abs(v).max(initial=0.0) if self.norm == "l1" else np.abs(v).sum())
