"""The `approximation` argument of the machines: from points to the features of a low-rank kernel.

A machine with an approximation is the linear machine on Z = phi(X) (n, p).  What it has learnt is a weight vector w for
each output; where phi is made of kernel values at landmarks, w'phi(x) is an expansion on these, and the machine looks
like any other: f(x) = sum_j alpha_j k(x, s_j) + b.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import BudgetTooSmall, InvalidInput
from mercer.gram import GramOperator, LowRankGram
from mercer.kernels import Kernel, Linear
from mercer.lowrank.approximations import Approximation
from mercer.lowrank.feature_map import FeatureMap, KernelMap
from mercer.machine.arguments import Kind
from mercer.machine.training_set import TrainingSet
from mercer.planning import approximation_for
from mercer.resources import Resources, show

Array = NDArray[np.float64]

EXACT = "exact: no approximation was asked for"


@dataclass(frozen=True, eq=False)
class Reduction:
    """A feature map for the points of a machine, what asked for it, and the reason."""

    approximation: Approximation
    reason: str
    feature_map: FeatureMap

    @property
    def points(self) -> Any:
        """The landmarks (m, d); None for maps without."""
        return self.feature_map.points if isinstance(self.feature_map, KernelMap) else None

    @property
    def index(self) -> NDArray[np.intp] | None:
        """Which of the points are landmarks (m,), None where they are not rows of the data."""
        found = self.feature_map
        if not isinstance(found, KernelMap) or found.landmarks is None or found.landmarks.index is None:
            return None
        return np.asarray(found.landmarks.index[found.kept])


@dataclass(frozen=True)
class Machine:
    """What predictions need: landmarks (m, d), or None for other maps, with coefficients and constants (k,).

    The coefficients are (m, k) on the landmarks, or the weights (p, k) of the features.
    """

    points: Any
    coefficients: Array
    constant: Array


def reduce(
    approximation: Any,
    kind: Kind,
    kernel: Kernel,
    X: Any,
    *,
    y: Any = None,
    weights: Any = None,
    seed: int | None = None,
    resources: Resources,
    row_bytes: int = 0,
) -> tuple[Reduction | None, str]:
    """The feature map for points X (n, d), None for the exact machine, and the reason in words.

    `row_bytes` is the size of one feature of one point where the machine holds all of them.
    """
    if approximation is None:
        return None, EXACT
    reason = f"{approximation!r:.200} was asked for"
    if kind != "features":
        if approximation == "auto":
            return None, "exact: landmarks need points with features"
        raise InvalidInput("approximation needs points with features and one of mercer's kernels, not a kernel matrix")
    if approximation == "auto":
        approximation, reason = approximation_for(kernel, int(X.shape[0]), resources=resources, row_bytes=row_bytes)
        if approximation is None:
            return None, reason
    found = approximation.feature_map(
        kernel, X, y=y, weights=weights, seed=0 if seed is None else seed, memory=resources.memory
    )
    return Reduction(approximation, reason, found), reason


def machine_of(feature_map: FeatureMap, W: Array) -> Machine:
    """The machine with weights W (p, k) on the features."""
    expansion = feature_map.expansion(W)
    if expansion is None:
        return Machine(None, W, np.zeros(W.shape[1]))
    return Machine(*expansion)


class ReducedSet(TrainingSet):
    """Training points as rows of Z (n, p), with the kernel matrix Z Z'; made of the set of the points themselves."""

    def __init__(self, training: TrainingSet, reduction: Reduction) -> None:
        n, p, resources = training.n, reduction.feature_map.dimension, training.resources
        size, allowed = n * p * np.dtype(resources.precision).itemsize, resources.budget
        if size > allowed and resources.memory is not None:
            raise BudgetTooSmall(
                f"{p} features of {n} points take {show(size)}, memory allows {show(allowed)}: take fewer landmarks, "
                "raise memory, or use precision='float32'"
            )
        self.kind, self.rows, self.kept, self.n, self.kernel = training.kind, training.rows, training.kept, n, Linear()
        self.resources = resources
        self.shared, self.rank, self.reduction, self.basis = False, None, reduction, training.basis
        self.points = reduction.feature_map.features(training.points, dtype=resources.precision)

    def share(self, codes: Any = None) -> None:
        """Nothing to share: a part of the matrix is some rows of Z."""

    @cached_property
    def whole(self) -> GramOperator:
        """Z Z' as an operator."""
        return LowRankGram.from_factors(self.points)
