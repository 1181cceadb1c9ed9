"""The points a machine is trained on: those of positive weight, and their Gram operators.

A TrainingSet holds all the machine's training points in the form its kernel works on, and gives the Gram operator of
all of them or of a subset (a pair of classes, a fold).  Where the whole matrix is held, subsets are cut out of it, so
that each kernel value is computed once however many machines use it.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.estimation.similarity import Kind, evaluate
from mercer.estimation.validation import take, working_form
from mercer.gram import Gram, GramOperator
from mercer.gram.memory import budget
from mercer.gram.tiles import Tiles
from mercer.gram.transform import CODES
from mercer.kernels import Kernel, Precomputed

Index = NDArray[np.intp]

EXACT = 2048  # so many points have their kernel matrix in float64 unless told otherwise
SMALL_BUDGET = 1 << 28
SHARED_FROM_FEATURES = 64
ASYMMETRY = 1e-4  # a given matrix this close to its transpose is meant to be symmetric


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
        if kind == "precomputed":
            points = X if kept is None else X[np.ix_(kept, kept)]
        else:
            points = X if kept is None else take(X, kept)
            points = points if kind == "function" else working_form(points)
        self.n = len(points) if isinstance(points, list) else int(np.shape(points)[0])
        self.points = evaluate(kernel, points, points, self.n, self.n) if kind == "function" else points
        self.shared = False
        self.reduction: Any = (
            None  # the low-rank kernel in the place of the exact one; see `mercer.estimation.reduction`
        )
        self.rank: Index | None = None  # where each point lies in the matrix that `share` holds
        small = self.n <= EXACT
        self.precision = precision if precision != "auto" else "float64" if small else "float32"
        # A small matrix is not worth asking the machine how much memory it has.
        self.memory = SMALL_BUDGET if memory is None and small else memory

    def original(self, index: Index) -> Index:
        """Positions of training points among the rows handed to `fit`."""
        return index if self.kept is None else self.kept[index]

    def share(self, codes: Index | None = None) -> None:
        """Hold the whole matrix where it fits and pays, because several machines will use parts of it.

        With the classes `codes` (n,) of the points, it is held in the order of the classes, where the part of a pair is
        a few stretches.  Values of a few features are cheaper to compute again than to fetch from memory.
        """
        if self.kind not in ("features", "objects"):
            return
        cheap = self.kernel.profile is not None and np.shape(self.points)[1] < SHARED_FROM_FEATURES
        size = self.n**2 * np.dtype(self.precision).itemsize
        if not self.shared and not cheap and size + SMALL_BUDGET // 2 <= budget(self.memory):
            self.shared = True
            points = self.points
            if codes is not None:
                order = np.argsort(codes, kind="stable")
                self.rank = np.empty_like(order)
                self.rank[order] = np.arange(len(order))
                points = take(points, order)
            self.whole = Gram(self.kernel, points, memory=self.memory, precision=self.precision, storage="dense")

    @property
    def by_class(self) -> NDArray[Any] | None:
        """The matrix that `share` holds in the order of the classes, None where there is none."""
        if self.rank is None:
            return None
        matrix: NDArray[Any] = self.whole.matrix
        # The operator shows a view that cannot be written; the loops are compiled for the array behind it.
        return matrix if matrix.base is None else matrix.base

    @cached_property
    def whole(self) -> GramOperator:
        """The Gram operator of all points; in the order of `rank` where that is set."""
        if self.kind in ("precomputed", "function"):
            operator = Gram(self.kernel, self.points)
            return operator if operator.symmetric else Gram(self.kernel, self._symmetric())
        return Gram(self.kernel, self.points, memory=self.memory, precision=self.precision, access="rows")

    def gram(self, index: Index | None = None) -> GramOperator:
        """The Gram operator of all points, or of those at `index`."""
        if index is None:
            return self.whole if self.rank is None else self.whole.subset(self.rank)
        return self.whole.subset(index if self.rank is None else self.rank[index])

    def tiles(self) -> Tiles | None:
        """The prepared points where kernel values are an elementwise function of products or distances, else None."""
        if self.kind != "features" or self.kernel.profile is None or self.kernel.profile.name not in CODES:
            return None
        return Tiles(self.kernel.profile, self.points, dtype=self.precision)

    def held(self, rows: Index, columns: Index) -> NDArray[np.float64] | None:
        """Kernel values between training points where the whole matrix is in memory, else None."""
        matrix = getattr(self.whole, "matrix", None)
        if not isinstance(matrix, np.ndarray):
            return None
        if self.rank is not None:
            rows, columns = self.rank[rows], self.rank[columns]
        return np.asarray(matrix[np.ix_(rows, columns)], dtype=np.float64)

    def _symmetric(self) -> NDArray[np.float64]:
        """A given matrix freed from rounding in its symmetry."""
        K = self.points
        middle: NDArray[np.float64] = 0.5 * (K + K.T)
        if np.abs(K - middle).max() > ASYMMETRY * np.abs(middle).max():
            raise InvalidInput("the kernel matrix is not symmetric: k(x, z) and k(z, x) must be the same")
        return middle
