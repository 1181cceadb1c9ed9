"""The folk wisdom of support vector machines, said when a fit shows the symptom (Rifkin 2002, section 2.6).

- A width sigma too small makes K the identity: nearly every point becomes a support vector, most unbounded.
- A width too large, or C too small, leaves no unbounded support vector: the bias is not determined by the data.
- Features on very different scales: the largest alone decides what is near.

All symptoms are read off what the fit has computed anyway; the scales are looked up on at most a thousand rows.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import Advice
from mercer.kernels import Kernel

FEWEST = 50  # with fewer points none of this means much
NEARLY_ALL = 0.95
SCALES_APART = 1e3
ROWS_LOOKED_AT = 1000


def _say(message: str) -> None:
    warnings.warn(message, Advice, stacklevel=6)


def on_scales(kernel: Kernel, X: Any) -> None:
    """Look for features whose spreads differ by more than a thousand; X is (n, d), dense data only."""
    profile = kernel.profile
    if not isinstance(X, np.ndarray) or len(X) < FEWEST or profile is None or profile.scale is not None:
        return
    sample = X[:: -(-len(X) // ROWS_LOOKED_AT)]
    spread = sample.max(axis=0) - sample.min(axis=0)
    largest = float(spread.max())
    uneven = spread * SCALES_APART < largest
    if uneven.any() and (spread[uneven] > 0.0).any():
        smallest = float(spread[spread > 0.0].min())
        _say(
            f"the features are on very different scales (ranges from {smallest:.2g} to {largest:.2g}), so that the "
            "widest decide alone; standardise them first, for instance with StandardScaler"
        )


def on_width(kernel: Kernel, size: NDArray[np.float64], bound: NDArray[np.float64], free_bias: bool) -> None:
    """Look at the sizes of the dual variables (N,) against their bounds (N,)."""
    if len(size) < FEWEST:
        return
    least = 1e-8 * np.minimum(bound, float(size.max(initial=0.0)))
    inside = int(np.count_nonzero((size > least) & (size < (1.0 - 1e-8) * bound)))
    support = int(np.count_nonzero(size > least))
    if support >= NEARLY_ALL * len(size) and 2 * inside >= len(size) and kernel.stationary:
        _say(
            f"{support} of {len(size)} points are support vectors, {inside} of them strictly inside their bounds: the "
            "kernel sees each point alone; sigma (1/sqrt(2 gamma)) is probably too small"
        )
    elif inside == 0 and free_bias and size.any():
        name = "sigma (1/sqrt(2 gamma))" if kernel.stationary else "the kernel's scale"
        _say(
            "no support vector is strictly inside its bounds, so that the data leave the bias undetermined and the "
            f"middle of its interval is taken; C is probably too small, or {name} too large"
        )
