"""Where to look: values of C and of the kernel's width that follow from the data.

Width.  Below the distance of a point to its nearest neighbours the Gaussian matrix is the identity, and nearly every
point becomes a support vector; above the largest distances it is all ones.  Between these two symptoms lies every
useful sigma (Rifkin 2002, section 2.6), so the grid runs, in equal ratios, from half the median distance of a point to
its nearest neighbour to three times the median distance of two points.

Cost.  alpha = 1 alone classifies a point when k(x, x) = 1, and what can be fitted is the centred kernel, whose mean
diagonal is the mean eigenvalue of the centred matrix: v = mean_i K_ii - mean_ij K_ij.  The grid runs from 1/30 to 300
in units of 1/v, with v taken at the median distance (for the linear kernel v is the variance of the data).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput
from mercer.kernels import Kernel
from mercer.kernels.checks import prepare
from mercer.kernels.distances import squared_distances

Array = NDArray[np.float64]

SAMPLE = 1000
NEAREST = 0.5
FARTHEST = 3.0
LOWEST, HIGHEST = 1.0 / 30.0, 300.0


@dataclass(frozen=True)
class Grid:
    """Values of C, of the width (empty: the kernel has none to choose) and of epsilon (empty: not regression)."""

    C: tuple[float, ...]
    sigma: tuple[float, ...] = ()
    epsilon: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in ("C", "sigma", "epsilon"):
            values = np.unique(np.asarray(getattr(self, name), dtype=np.float64).ravel())
            if values.size and not (
                np.isfinite(values).all() and (values[0] > 0 or (name == "epsilon" and values[0] >= 0))
            ):
                raise InvalidInput(f"{name} must hold positive finite numbers, got {values.tolist()}")
            object.__setattr__(self, name, tuple(float(v) for v in values))
        if not self.C:
            raise InvalidInput("C must hold at least one value")

    @property
    def size(self) -> int:
        """Number of candidates."""
        return len(self.C) * max(1, len(self.sigma)) * max(1, len(self.epsilon))


@dataclass(frozen=True)
class Scales:
    """What a sample of the points says about the grid: nearest and median distance, mean centred diagonal."""

    nearest: float
    median: float
    variance: float


def scales(X: Any, kernel: Kernel | None, seed: int = 0) -> Scales:
    """Distances and centred diagonal (of `kernel`, or of the Gaussian at the median distance) on up to 1,000 points."""
    points = prepare(X, "X")
    n = points.shape[0]
    if n > SAMPLE:
        points = points[np.sort(np.random.default_rng(seed).choice(n, SAMPLE, replace=False))]
    D = squared_distances(points, None)
    apart = D[np.triu_indices(len(D), 1)]
    apart = apart[apart > 0.0]
    if apart.size == 0:
        return Scales(1.0, 1.0, 1.0)
    median = float(np.sqrt(np.median(apart)))
    closest = np.where(D > 0.0, D, np.inf).min(axis=1)
    nearest = float(np.sqrt(np.median(closest[np.isfinite(closest)])))
    K = np.exp(-D / (2.0 * median**2)) if kernel is None else kernel(points)
    variance = float(np.mean(np.diagonal(K)) - np.mean(K))
    return Scales(nearest, median, variance if variance > 0.0 else 1.0)


def widths(found: Scales, count: int) -> Array:
    """`count` values of sigma."""
    low, high = NEAREST * min(found.nearest, found.median), FARTHEST * found.median
    return np.geomspace(low, high, count) if count > 1 else np.array([found.median])


def costs(found: Scales, count: int, unit: float = 1.0) -> Array:
    """`count` values of C; `unit` is the size of a typical error, the deviation of the targets in regression."""
    scale = unit / found.variance
    return scale * (np.geomspace(LOWEST, HIGHEST, count) if count > 1 else np.ones(1))


def from_data(
    X: Any,
    y: Array | None,
    kernel: Kernel,
    *,
    tuned: bool,
    n_C: int = 10,
    n_sigma: int = 10,
    C: ArrayLike | None = None,
    sigma: ArrayLike | None = None,
    epsilon: ArrayLike | None = None,
    unit: float = 1.0,
    seed: int = 0,
) -> Grid:
    """The grid of a search: values that are given stay, the others follow from the points.

    `tuned` says whether the kernel has a width to choose; y (n,) are the targets of regression, None for classes, and
    `unit` is what C is counted in where it multiplies other losses than one for each point.
    """
    deviation = 1.0 if y is None else float(np.std(y)) or 1.0
    sigma_values: Array = np.empty(0)
    if C is None or (tuned and sigma is None):
        found = scales(X, None if tuned else kernel, seed)
        C = costs(found, n_C, unit * deviation) if C is None else C
        sigma_values = widths(found, n_sigma)
    if tuned and sigma is not None:
        sigma_values = np.atleast_1d(np.asarray(sigma, dtype=np.float64))
    tube: Any = () if y is None else (0.1 * deviation,) if epsilon is None else np.atleast_1d(epsilon)
    return Grid(
        tuple(np.atleast_1d(np.asarray(C, dtype=np.float64))), tuple(sigma_values) if tuned else (), tuple(tube)
    )
