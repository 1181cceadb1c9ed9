"""Standardised features, learnt on the training points and stored.

    dense:  z_j = (x_j - mean_j) / scale_j          sparse:  z_j = x_j / scale_j

scale_j is the standard deviation of feature j over the training points (1 for a constant feature).  Sparse points are
scaled about their mean without being moved: moving them would fill every zero.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.errors import InvalidInput

MAX_FEATURES = 1 << 27  # two vectors of this length take 2 GiB


class Standardise(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # untyped base
    """Features of mean zero and deviation one; `Standardise.learn(X)` is a function of points and a fitted transformer.

    Attributes
    ----------
    mean_ : means (d,), or None where points are not moved because those of the training were sparse.
    scale_ : scales (d,).
    n_features_in_, feature_names_in_ : as in scikit-learn.

    """

    mean_: NDArray[np.float64] | None
    scale_: NDArray[np.float64]

    @classmethod
    def learn(cls, X: Any) -> Self:
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
            return cls.of(None, _scale(variance, mean))
        X = np.asarray(X, dtype=np.float64)
        mean = X.mean(axis=0)
        return cls.of(mean, _scale(np.mean((X - mean) ** 2, axis=0), mean))

    @classmethod
    def of(cls, mean: NDArray[np.float64] | None, scale: NDArray[np.float64]) -> Self:
        """The standardisation with these means (d,), or None, and scales (d,)."""
        found = cls()
        found.mean_, found.scale_, found.n_features_in_ = mean, scale, len(scale)
        return found

    def __call__(self, X: Any) -> Any:
        """Standardised copy of X (n, d); its kind (dense or CSR) is kept."""
        d = len(self.scale_)
        if X.shape[1] != d:
            raise InvalidInput(f"X has {X.shape[1]} features where {d} were standardised in training")
        if sparse.issparse(X):
            if self.mean_ is not None:
                raise InvalidInput("X is sparse, but the training points were dense; give X.toarray()")
            X = sparse.csr_matrix(X, copy=True)
            X.data = X.data / self.scale_[X.indices]
            return X
        X = np.asarray(X, dtype=np.float64)
        return (X if self.mean_ is None else X - self.mean_) / self.scale_

    # As a step of a pipeline -----------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn means and scales of the points X (n, d), dense or CSR; y is ignored."""
        X = validate_data(self, X, dtype=np.float64, order="C", accept_sparse="csr")
        learnt = self.learn(X)
        self.mean_, self.scale_ = learnt.mean_, learnt.scale_
        return self

    def transform(self, X: Any) -> Any:
        """Standardised copy of X (n, d), a DataFrame where `set_output` asks for it."""
        check_is_fitted(self)
        return self(validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False))


def _scale(variance: NDArray[np.float64], mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviations; a feature that varies by rounding only counts as constant."""
    constant = variance <= (1e-14 * np.abs(mean)) ** 2
    return np.where(constant, 1.0, np.sqrt(np.where(constant, 1.0, variance)))
