"""A matrix the caller has computed: taken as it is, in memory or mapped from a file, never copied."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.errors import InvalidInput
from mercer.gram import cost
from mercer.gram.dense import HeldGram
from mercer.gram.given_engine import GivenEngine
from mercer.gram.operator import GramOperator
from mercer.gram.points import AnyIndex, check_points
from mercer.gram.sparse import SparseGram

_STRIP = 256


def is_symmetric(K: Any) -> bool:
    """Whether K equals its transpose up to rounding, compared strip by strip."""
    if K.shape[0] != K.shape[1]:
        return False
    tolerance = 1e-5 if K.dtype == np.float32 else 1e-10
    if sp.issparse(K):
        difference = abs(K - K.T)
        return bool(difference.max() <= tolerance * max(abs(K).max(), 1e-300)) if K.nnz else True
    for top in range(0, len(K), _STRIP):
        bottom = min(len(K), top + _STRIP)
        for left in range(top, len(K), 8 * _STRIP):
            right = min(len(K), left + 8 * _STRIP)
            upper = K[top:bottom, left:right]
            if np.abs(upper - K[left:right, top:bottom].T).max() > tolerance * max(np.abs(upper).max(), 1e-300):
                return False
    return True


class PrecomputedGram(HeldGram):
    """A given matrix (n, m); `matrix` is the caller's own array."""

    storage = "precomputed"

    def __init__(self, engine: GivenEngine, plan: cost.Plan) -> None:
        super().__init__(engine, plan)
        self.matrix = engine.X

    @staticmethod
    def build(kernel: Any, K: Any, budget: int) -> GramOperator:
        """The operator of a dense array, memory map or sparse matrix; symmetric where K equals its transpose."""
        matrix = check_points(K, "X (the given kernel matrix)")
        engine = GivenEngine(kernel, matrix, matrix.shape, is_symmetric(matrix), matrix.dtype)
        nonzeros = int(matrix.nnz) if sp.issparse(matrix) else None
        plan = cost.plan("precomputed", engine.task(budget, nonzeros=nonzeros)).because("the matrix was given")
        if sp.issparse(matrix):
            return SparseGram(engine, plan, matrix)
        return PrecomputedGram(engine, plan)

    def subset(self, index: AnyIndex, share: int = 1) -> GramOperator:
        """The matrix restricted to the rows and columns at `index`, copied."""
        chosen = self._subset_index(index)
        size = len(chosen) ** 2 * self.dtype.itemsize
        if size > self._plan.budget:
            raise InvalidInput(
                f"the part of {len(chosen)} points takes {size} bytes, more than memory={self._plan.budget}"
            )
        engine = self.engine.subset(chosen)
        plan = cost.plan("precomputed", engine.task(self._plan.budget)).because("part of a matrix that was given")
        return PrecomputedGram(engine, plan)  # type: ignore[arg-type]  # a part of its engine is of its kind
