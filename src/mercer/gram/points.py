"""The points a kernel matrix is built on: checked once, then taken apart by index.

Points come as a dense matrix (n, d), as a CSR matrix (n, d) with 32- or 64-bit indices, or, for kernels on objects
(strings, callables), as a list of length n.  Dense points are C-contiguous float64 (float32 stays float32).
"""

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput

Points: TypeAlias = Any  # ndarray (n, d), CSR (n, d), or list of n objects
Index: TypeAlias = slice | NDArray[np.intp]
AnyIndex: TypeAlias = int | slice | ArrayLike | None

_FINITE_CHUNK = 1 << 20


def all_finite(values: NDArray[Any]) -> bool:
    """Whether no entry is NaN or infinite, looked up piece by piece so that little memory is used."""
    if values.ndim > 1:
        step = max(1, _FINITE_CHUNK // max(1, values.shape[1]))
        return all(np.isfinite(values[i : i + step]).all() for i in range(0, len(values), step))
    return all(np.isfinite(values[i : i + _FINITE_CHUNK]).all() for i in range(0, len(values), _FINITE_CHUNK))


def check_points(X: Any, name: str, *, objects: bool = False) -> Points:
    """The points in the form the matrix code works on; `objects` says that the kernel takes any Python objects."""
    if sp.issparse(X):
        return _check_sparse(X, name)
    if objects and not _is_numeric_matrix(X):
        return _check_objects(X, name)
    try:
        matrix = np.asarray(X)
        if matrix.dtype.kind not in "fiub" and not np.iscomplexobj(matrix):
            matrix = np.asarray(X, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise InvalidInput(
            f"{name} cannot be read as a numeric matrix ({error}); give rows of equal length, or a kernel on objects"
        ) from None
    if np.iscomplexobj(matrix):
        raise InvalidInput(f"{name} is complex; kernels take real features: give the real and imaginary parts")
    if matrix.ndim != 2:
        remedy = "use X.reshape(-1, 1) for one feature" if matrix.ndim == 1 else "flatten each point to one row"
        raise InvalidInput(f"{name} must be a matrix of shape (n, d), got {matrix.ndim} dimension(s); {remedy}")
    if matrix.dtype != np.float32:
        matrix = matrix.astype(np.float64, copy=False)
    _check_size(matrix.shape, name)
    if not all_finite(matrix):
        raise InvalidInput(f"{name} contains NaN or infinite values; impute or drop those rows first")
    return np.ascontiguousarray(matrix)


def _is_numeric_matrix(X: Any) -> bool:
    """Whether X is an array of numbers with two dimensions."""
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub"


def _check_size(shape: tuple[int, ...], name: str) -> None:
    """Refuse an empty set of points and points without features."""
    if shape[0] == 0 or shape[1] == 0:
        raise InvalidInput(f"{name} of shape {tuple(shape)} is empty; at least one point and one feature are needed")


def _check_sparse(X: Any, name: str) -> Points:
    """CSR points with sorted indices; 32- and 64-bit indices are kept as they are."""
    if np.iscomplexobj(X):
        raise InvalidInput(f"{name} is complex; kernels take real features: give the real and imaginary parts")
    if len(X.shape) != 2:
        raise InvalidInput(f"{name} must be a matrix of shape (n, d), got {len(X.shape)} dimension(s)")
    matrix = X.tocsr()
    if matrix.dtype != np.float32 and matrix.dtype != np.float64:
        matrix = matrix.astype(np.float64)
    if not matrix.has_canonical_format:
        matrix = matrix.copy() if matrix is X else matrix
        matrix.sum_duplicates()
    _check_size(matrix.shape, name)
    if not all_finite(matrix.data):
        raise InvalidInput(f"{name} contains NaN or infinite values; impute or drop those rows first")
    return matrix


def _check_objects(X: Any, name: str) -> list[Any]:
    """Any finite sequence of objects, as a list."""
    if isinstance(X, (str, bytes)) or not hasattr(X, "__iter__"):
        raise InvalidInput(f"{name} must be a sequence of objects, got {type(X).__name__}; give a list of them")
    objects = list(X)
    if not objects:
        raise InvalidInput(f"{name} is empty; at least one object is needed")
    return objects


def check_pair(X: Points, Z: Points) -> None:
    """Refuse two sets of points of different kind or with different numbers of features."""
    if isinstance(X, list) != isinstance(Z, list):
        raise InvalidInput("X and Z must both be matrices or both be lists of objects")
    if not isinstance(X, list) and X.shape[1] != Z.shape[1]:
        raise InvalidInput(
            f"Z has {Z.shape[1]} features and X has {X.shape[1]}; give Z the same columns, in the same order, as X"
        )


def size(X: Points) -> int:
    """Number of points."""
    return len(X) if isinstance(X, list) else int(X.shape[0])


def features(X: Points) -> int:
    """Number of features d; 1 for objects."""
    return 1 if isinstance(X, list) else int(X.shape[1])


def take(X: Points, index: Index) -> Points:
    """Points at `index`: a view where the index is a slice of a dense matrix."""
    if not isinstance(X, list):
        return X[index]
    return X[index] if isinstance(index, slice) else [X[i] for i in index]


def check_index(index: AnyIndex, n: int, name: str) -> Index:
    """An index as a slice with positive step, or as an array of integers in 0..n-1; None stands for all."""
    if index is None:
        return slice(0, n)
    if isinstance(index, slice):
        start, stop, step = index.indices(n)
        return slice(start, max(start, stop), step) if step > 0 else np.arange(start, stop, step, dtype=np.intp)
    array = np.atleast_1d(np.asarray(index))
    if array.dtype == np.bool_ and array.shape == (n,):
        return np.flatnonzero(array)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InvalidInput(f"{name} must be a slice, a mask of length {n} or a list of integers in 0..{n - 1}")
    array = array.astype(np.intp)
    if array.size and (array.min() < -n or array.max() >= n):
        raise InvalidInput(f"{name} holds an index outside 0..{n - 1}; the operator has {n} points on that side")
    return np.where(array < 0, array + n, array)


def length(index: Index) -> int:
    """Number of points an index selects."""
    return len(range(index.start, index.stop, index.step or 1)) if isinstance(index, slice) else len(index)


def pieces(index: Index, step: int) -> list[Index]:
    """Cut an index into consecutive parts of at most `step` points."""
    if not isinstance(index, slice):
        return [index[i : i + step] for i in range(0, len(index), step)]
    stride = index.step or 1
    return [
        slice(start, min(index.stop, start + step * stride), stride)
        for start in range(index.start, index.stop, step * stride)
    ]
