"""Data as a user hands them over, checked once and brought into the form the kernel works on."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples, check_consistent_length, column_or_1d, validate_data

from mercer.errors import InvalidInput
from mercer.estimation.similarity import Kind

# Sparse data of no more than this many entries are trained on as dense ones: it is faster, and the fit is the same to
# the last digit as that of the dense data.
DENSE_ENTRIES = 1 << 20


def training_data(
    estimator: Any, kind: Kind, X: Any, y: Any = None, *, supervised: bool = True, numeric: bool = False
) -> tuple[Any, Any]:
    """X and y for `fit`: features as float64 (n, d), dense or CSR; objects as a list; a kernel matrix as (n, n).

    Machines without targets are not `supervised`; `numeric` targets are real numbers.
    """
    if kind in ("objects", "function"):
        if supervised:
            y = column_or_1d(y, warn=True)
            check_consistent_length(X, y)
        if kind == "objects":
            X = list(X)
        if _num_samples(X) == 0:
            raise InvalidInput("X holds no points; at least one is needed")
        return X, y
    if kind == "precomputed" and sp.issparse(X):
        raise TypeError("Sparse precomputed kernels are not supported.")
    options = {"dtype": np.float64, "order": "C", "accept_sparse": "csr", "accept_large_sparse": True}
    if not supervised:
        X = validate_data(estimator, X, **options)
    else:
        X, y = validate_data(estimator, X, y, y_numeric=numeric, **options)
    if kind == "precomputed" and X.shape[0] != X.shape[1]:
        raise InvalidInput(f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} matrix.")
    if sp.issparse(X):
        X.sort_indices()
    return X, y


def prediction_data(estimator: Any, kind: Kind, X: Any, trained_on: int) -> Any:
    """X for prediction, in the same form."""
    if kind == "function":
        return X
    if kind == "objects":
        return list(X)
    X = validate_data(
        estimator, X, dtype=np.float64, order="C", accept_sparse="csr", accept_large_sparse=True, reset=False
    )
    if kind == "precomputed" and X.shape[1] != trained_on:
        raise InvalidInput(
            f"X.shape[1] = {X.shape[1]} should be equal to {trained_on}, the number of samples at training time"
        )
    return X


def working_form(X: Any) -> Any:
    """Small CSR data as a dense array, all else as it is."""
    if sp.issparse(X) and X.shape[0] * X.shape[1] <= DENSE_ENTRIES:
        return X.toarray()
    return X


def take(X: Any, index: NDArray[np.intp]) -> Any:
    """Points at `index` of an array, a CSR matrix or a sequence of objects."""
    if isinstance(X, np.ndarray) or sp.issparse(X):
        return X[index]
    return [X[i] for i in index]
