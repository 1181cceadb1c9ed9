"""The points a machine is trained on: those of positive weight, and their Gram operators.

A TrainingSet holds all the machine's training points in the form its kernel works on, and gives the Gram operator of
all of them or of a subset (a pair of classes, a fold).  A precomputed matrix and the values of a plain kernel
function are given matrices; so is the matrix of a small problem once a subset is asked for, so that each kernel
value is computed once however many machines use it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.estimation.similarity import Kind, evaluate
from mercer.estimation.validation import take, working_form
from mercer.gram import Gram, GramOperator
from mercer.gram.memory import budget
from mercer.kernels import Kernel, Precomputed

Index = NDArray[np.intp]

EXACT = 2048  # so many points have their kernel matrix in float64 unless told otherwise
SMALL_BUDGET = 1 << 28


class TrainingSet:
    """Points in training order, n of them, with the kernel between them.

    `kept` are their positions among the rows handed to `fit` (None: all).  `memory` bounds the kernel values held.
    """

    def __init__(
        self, kind: Kind, X: Any, kept: Index | None, kernel: Any, memory: int | str | None, precision: str
    ) -> None:
        self.kind = kind
        self.kept = kept
        self.kernel: Kernel = Precomputed() if kind in ("precomputed", "function") else kernel
        self.memory = memory
        self.precision = precision
        self.matrix: NDArray[np.float64] | None = None
        points = X if kept is None or kind == "precomputed" else take(X, kept)
        self.n = len(points) if isinstance(points, list) else int(points.shape[0])
        if kind == "precomputed":
            self.matrix = points if kept is None else np.ascontiguousarray(points[np.ix_(kept, kept)])
            self.n = len(self.matrix)
        elif kind == "function":
            self.matrix = evaluate(kernel, points, points, self.n, self.n)
        else:
            points = working_form(points)
        self.points = points

    def original(self, index: Index) -> Index:
        """Positions of training points among the rows handed to `fit`."""
        return index if self.kept is None else self.kept[index]

    def hold_matrix(self) -> None:
        """Compute the whole matrix once, when it fits in the budget, so that subsets are cut out of it."""
        if self.matrix is None and 8 * self.n**2 <= self._room():
            self.matrix = np.asarray(self.gram().dense(), dtype=np.float64)

    def _room(self) -> int:
        """Bytes that kernel values may take."""
        return SMALL_BUDGET if self.memory is None and self.n <= EXACT else budget(self.memory)

    def gram(self, index: Index | None = None) -> GramOperator:
        """The Gram operator of all points, or of those at `index`."""
        if self.matrix is not None:
            matrix = self.matrix if index is None else np.ascontiguousarray(self.matrix[np.ix_(index, index)])
            return Gram(Precomputed(), matrix)
        points = self.points if index is None else take(self.points, index)
        n = self.n if index is None else len(index)
        precision = self.precision if self.precision != "auto" else "float64" if n <= EXACT else "float32"
        # A small matrix is not worth asking the machine how much memory it has.
        memory = SMALL_BUDGET if self.memory is None and n <= EXACT else self.memory
        return Gram(self.kernel, points, memory=memory, precision=precision, access="rows")
