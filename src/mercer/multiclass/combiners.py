"""Stacking: the decoder is learnt from outputs of the machines at points they were not trained on.

    min over V (F, k) of  sum_i || Y_i - V'z_i ||^2 + penalty ||V||^2 ,      V = (Z'Z + penalty I)^-1 Z'Y ,

z_i (F,) the outputs at point i of machines trained without it, Y_i the indicator of its class; the class is argmax V'f.
In-sample outputs would make every machine look right, and V would trust the one that overfits most.  V = M' is linear
decoding by the code itself.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve

from mercer.errors import InvalidInput

Array = NDArray[np.float64]


def stack(
    outputs: ArrayLike, labels: ArrayLike, classes: int, penalty: float = 1.0, weights: ArrayLike | None = None
) -> Array:
    """V (F, k) for outputs Z (n, F) and classes 0..k-1 `labels` (n,); weights (n,) of the points."""
    if not penalty > 0:
        raise InvalidInput(f"penalty must be positive, got {penalty!r}")
    Z = np.asarray(outputs, dtype=np.float64)
    Y = np.eye(classes)[np.asarray(labels, dtype=np.intp)]
    if weights is not None:
        root = np.sqrt(np.asarray(weights, dtype=np.float64))[:, None]
        Z, Y = root * Z, root * Y
    n, F = Z.shape
    if n >= F:
        return np.asarray(cho_solve(cho_factor(Z.T @ Z + penalty * np.eye(F)), Z.T @ Y))
    # (Z'Z + p I)^-1 Z' = Z' (ZZ' + p I)^-1
    return np.asarray(Z.T @ cho_solve(cho_factor(Z @ Z.T + penalty * np.eye(n)), Y))


def linear(outputs: ArrayLike, V: ArrayLike) -> Array:
    """Scores (n, k) of outputs (n, F)."""
    return np.asarray(np.asarray(outputs, dtype=np.float64) @ np.asarray(V, dtype=np.float64))
