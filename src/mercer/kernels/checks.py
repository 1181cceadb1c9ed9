"""What a kernel on vectors accepts as points, and the checks of its parameters.

Points are the rows of a matrix (n, d): anything NumPy reads as real numbers, or any SciPy sparse matrix.  Storage type
and arithmetic are independent: bytes, integers, float32 and float64 are all taken, the arithmetic is done in float64,
and the values come back in float32 exactly when both sets of points are float32.  Sparse points become CSR with
32- or 64-bit indices, whichever they have, and are never turned into a dense matrix.
"""

import math
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.errors import InvalidInput, NotPositiveDefinite

Points: TypeAlias = Any  # ndarray (n, d) or csr_array (n, d), both float64; for kernels on objects any sequence
Matrix: TypeAlias = NDArray[np.float64]
Width: TypeAlias = float | str  # a positive number, or the name of the rule that will choose it
Widths: TypeAlias = float | tuple[float, ...] | str

RULES = ("loo", "median")  # how a machine may choose a width: by leave-one-out error, or by the median distance


def prepare(X: Any, name: str) -> Points:
    """Rows of X as a float64 matrix or CSR array of shape (n, d), n and d at least 1, all finite."""
    if sp.issparse(X):
        points = sp.csr_array(X)
        if points.ndim != 2:
            raise InvalidInput(f"{name} must have two dimensions, points by features, got {points.ndim}")
        kind, values = points.dtype.kind, points.data
    else:
        try:
            points = np.asarray(X)
        except ValueError as error:
            raise InvalidInput(f"{name} has rows of different length ({error}); give a matrix (n, d)") from None
        kind, values = points.dtype.kind, points
        if points.ndim != 2:
            raise InvalidInput(
                f"{name} must be a matrix (n, d), got {points.ndim} dimension(s); reshape one feature with "
                f"{name}.reshape(-1, 1) and one point with {name}.reshape(1, -1)"
            )
    if kind not in "fiub":
        points, values = _as_real(points, name)
    if 0 in points.shape:
        raise InvalidInput(f"{name} has shape {points.shape}; at least one point and one feature are needed")
    # The sum is finite when all values are; it may overflow on finite ones, hence the second, exact look.
    with np.errstate(over="ignore", invalid="ignore"):
        finite = bool(np.isfinite(values.sum(dtype=np.float64))) or bool(np.isfinite(values).all())
    if not finite:
        raise InvalidInput(f"{name} contains NaN or infinite values; impute them or drop those rows")
    points = points.astype(np.float64, copy=False)
    if not sp.issparse(points):
        return points
    if not points.has_canonical_format:
        points = points.copy()
        points.sum_duplicates()
    return points


def _as_real(points: Any, name: str) -> tuple[Any, Any]:
    """Object arrays that hold numbers, as float64; complex numbers and text are refused."""
    if points.dtype.kind == "O":
        try:
            points = points.astype(np.float64)
            return points, points.data if sp.issparse(points) else points
        except (TypeError, ValueError):
            pass
    raise InvalidInput(
        f"{name} holds {points.dtype}, not real numbers; encode it as numbers, or use a kernel on objects "
        "(Spectrum for strings, Custom for anything)"
    )


def prepare_pair(X: Any, Z: Any) -> tuple[Points, Points | None]:
    """Both sets of points, with the same number of features."""
    left = prepare(X, "X")
    if Z is None:
        return left, None
    right = prepare(Z, "Z")
    if left.shape[1] != right.shape[1]:
        raise InvalidInput(
            f"X has {left.shape[1]} features and Z has {right.shape[1]}; give both the same columns in the same order"
        )
    return left, right


def value_type(X: Any, Z: Any) -> type[np.floating[Any]]:
    """float32 when X and Z both are, else float64."""
    single = all(getattr(points, "dtype", None) == np.float32 for points in (X, X if Z is None else Z))
    return np.float32 if single else np.float64


def _number(value: Any, name: str, remedy: str) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InvalidInput(f"{name} must be a number, got {value!r}; {remedy}")
    number = float(value)
    if not math.isfinite(number):
        raise InvalidInput(f"{name} must be finite, got {number}; {remedy}")
    return number


def positive(value: Any, name: str) -> float:
    """A finite number above zero."""
    number = _number(value, name, "give a finite number above zero")
    if number <= 0.0:
        raise InvalidInput(f"{name} must be above zero, got {number}; give a finite number above zero")
    return number


def real(value: Any, name: str) -> float:
    """A finite number."""
    return _number(value, name, "give a finite number")


def nonnegative(value: Any, name: str, reason: str) -> float:
    """A finite number at or above zero; below zero the kernel is not positive definite, for the `reason` given."""
    number = _number(value, name, "give a finite number, zero or above")
    if number < 0.0:
        raise NotPositiveDefinite(f"{name} must not be negative, got {number}: {reason}; give zero or above")
    return number


def whole(value: Any, name: str, least: int) -> int:
    """A whole number, at least `least`."""
    number = _number(value, name, f"give a whole number, {least} or above")
    if number != int(number) or number < least:
        raise InvalidInput(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(number)


def width(value: Any, name: str) -> Width:
    """A positive number, or one of the rules by which a machine chooses it."""
    if isinstance(value, str):
        if value not in RULES:
            raise InvalidInput(f"{name}={value!r} is not known; give a number above zero or one of {RULES}")
        return value
    return positive(value, name)


def widths(value: Any, name: str) -> Widths:
    """One width, or a tuple of one per feature."""
    if isinstance(value, (tuple, list, np.ndarray)) and np.ndim(value) > 0:
        if np.ndim(value) != 1 or len(value) == 0:
            raise InvalidInput(f"{name} must be a number or one number per feature, got shape {np.shape(value)}")
        return tuple(positive(item, f"{name}[{index}]") for index, item in enumerate(value))
    return width(value, name)


def column_numbers(value: Any, name: str) -> tuple[int, ...]:
    """A non-empty tuple of column numbers, counted from zero."""
    if isinstance(value, (int, np.integer)):
        value = (value,)
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidInput(f"{name} must be column numbers, got {value!r}; give for instance (0, 2, 5)")
    chosen = tuple(whole(item, f"{name}[{index}]", 0) for index, item in enumerate(value))
    if not chosen:
        raise InvalidInput(f"{name} is empty; name at least one column")
    return chosen
