"""Standardised features, learnt on the training points and stored.

    dense:  z_j = (x_j - mean_j) / scale_j          sparse:  z_j = x_j / scale_j

scale_j is the standard deviation of feature j over the training points (1 for a constant feature).  Sparse points are
scaled about their mean without being moved: moving them would fill every zero.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.errors import InvalidInput

MAX_FEATURES = 1 << 27  # two vectors of this length take 2 GiB


@dataclass(frozen=True, eq=False)
class Standardise:
    """Means (d,) or None when points are not moved, and scales (d,)."""

    mean: NDArray[np.float64] | None
    scale: NDArray[np.float64]

    @classmethod
    def learn(cls, X: Any) -> "Standardise":
        """Means and scales of the points X (n, d), dense or CSR."""
        n, d = X.shape
        if n == 0:
            raise InvalidInput("X: standardisation needs at least one point")
        if d > MAX_FEATURES:
            raise InvalidInput(
                f"X: {d} features are too many to standardise (at most {MAX_FEATURES}); scale them beforehand"
            )
        if sparse.issparse(X):
            X = sparse.csr_matrix(X)
            mean = np.bincount(X.indices, X.data, minlength=d) / n
            stored = np.bincount(X.indices, minlength=d)
            moved = np.bincount(X.indices, (X.data - mean[X.indices]) ** 2, minlength=d)
            variance = (moved + (n - stored) * mean**2) / n
            return cls(None, _scale(variance, mean))
        X = np.asarray(X, dtype=np.float64)
        mean = X.mean(axis=0)
        return cls(mean, _scale(np.mean((X - mean) ** 2, axis=0), mean))

    def __call__(self, X: Any) -> Any:
        """Standardised copy of X (n, d); its kind (dense or CSR) is kept."""
        d = len(self.scale)
        if X.shape[1] != d:
            raise InvalidInput(f"X has {X.shape[1]} features where {d} were standardised in training")
        if sparse.issparse(X):
            if self.mean is not None:
                raise InvalidInput("X is sparse, but the training points were dense; give X.toarray()")
            X = sparse.csr_matrix(X, copy=True)
            X.data = X.data / self.scale[X.indices]
            return X
        X = np.asarray(X, dtype=np.float64)
        return (X if self.mean is None else X - self.mean) / self.scale


def _scale(variance: NDArray[np.float64], mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviations; a feature that varies by rounding only counts as constant."""
    constant = variance <= (1e-14 * np.abs(mean)) ** 2
    return np.where(constant, 1.0, np.sqrt(np.where(constant, 1.0, variance)))
