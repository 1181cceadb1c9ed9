"""A data set: n points with d features, their targets, and what the columns mean."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer import resources as memory
from mercer.data.allowance import Allowance
from mercer.errors import InvalidInput

# A matrix with at least this share of entries that are not zero is kept dense: CSR spends 12 bytes on each entry.
DENSE_SHARE = 0.25
PLACES = 48  # bytes that each missing value takes while it is replaced
PART = 1 << 16  # values looked at in one go
MISSING = ("refuse", "impute", "drop", "keep")


@dataclass(frozen=True, eq=False)
class Origin:
    """Where the points and features stand in their file, as its format counts them.

    - `places`: (n,) the line at which each point begins, from 1 with header, comments and empty lines (svmlight, CSV),
      or its row, from 0 (NumPy, Parquet);
    - `unit`: "line" or "row";
    - `first_feature`: the number of the first feature where features have no names.
    """

    places: NDArray[np.int64]
    unit: str
    first_feature: int = 0

    @classmethod
    def rows(cls, n: int) -> "Origin":
        """Of n points in rows from 0."""
        return cls(np.arange(n), "row")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Points X (n, d), dense or CSR, with targets y, (n,) numbers or texts, or (n, k) for several; None without.

    - `feature_names`: d names, where the file gives them;
    - `target_name`: the target column, or columns joined by commas;
    - `categories`: for every column of texts, its values in the order of its one-hot columns;
    - `columns`: the source columns in order, numeric ones and categorical ones (a table file only);
    - `left_out`: columns of the table that are neither features nor targets;
    - `label_names`: the k labels behind the columns of a matrix y of a multilabel file;
    - `query`: (n,) query numbers of a ranking file, and `query_name` the column they come from, in a table;
    - `imputed`: the value put in place of a missing one, by source column or feature;
    - `origin`: where the points stand in the file `source`, where they come from one.
    """

    X: Any
    y: NDArray[Any] | None = None
    feature_names: tuple[str, ...] | None = None
    target_name: str | None = None
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None
    left_out: tuple[str, ...] = ()
    label_names: tuple[float, ...] | None = None
    query: NDArray[np.int64] | None = None
    query_name: str | None = None
    imputed: Mapping[str, float] = field(default_factory=dict)
    source: str = ""
    origin: Origin | None = None

    @property
    def n(self) -> int:
        """Number of points."""
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether X is a CSR matrix."""
        return bool(sparse.issparse(self.X))

    @property
    def nbytes(self) -> int:
        """Bytes of points, targets, query numbers and places."""
        stored = [self.X.data, self.X.indices, self.X.indptr] if self.is_sparse else [self.X]
        stored += [array for array in (self.y, self.query) if array is not None]
        return int(sum(array.nbytes for array in stored)) + (0 if self.origin is None else self.origin.places.nbytes)

    @property
    def density(self) -> float:
        """Share of the entries of X that are not zero."""
        stored = self.X.nnz if self.is_sparse else np.count_nonzero(self.X)
        return float(stored) / max(1, self.n * self.d)

    def take(self, index: Any) -> "Dataset":
        """The points of `index` (integers, a slice or a mask), with all that belongs to them."""
        return replace(
            self,
            X=self.X[index],
            y=None if self.y is None else self.y[index],
            query=None if self.query is None else self.query[index],
            origin=None if self.origin is None else replace(self.origin, places=self.origin.places[index]),
        )

    def __repr__(self) -> str:
        kind = "CSR" if self.is_sparse else "dense"
        target = "no target" if self.y is None else f"target {self.target_name or 'y'} {self.y.dtype}"
        return f"Dataset({self.n} x {self.d}, {kind}, {target})"


Target = str | int | Sequence[str | int] | bool | None


@dataclass(frozen=True, eq=False)
class Request:
    """What is asked of a file; see `mercer.data.read` for the meaning of each."""

    path: Path
    target: Target = None
    groups: str | int | None = None
    like: Dataset | None = None
    sparse: bool | None = None
    features: int | None = None
    zero_based: bool | None = None
    multilabel: bool | None = None
    header: bool | None = None
    delimiter: str | None = None
    ignore: Sequence[str | int] = ()
    limit: int | str | None = None

    @property
    def source(self) -> str:
        """The file as errors name it."""
        return str(self.path)


def whole_numbers(values: NDArray[np.float64]) -> NDArray[Any]:
    """The same numbers as integers when all of them are whole, else unchanged."""
    whole = bool(values.size)
    for part in _parts(values):
        whole = whole and bool(np.all(np.abs(part) < 2**53) and np.all(part == np.floor(part)))
    return values.astype(np.int64) if whole else values


def any_infinite(values: NDArray[Any]) -> bool:
    """Whether an infinite value is among them; little memory is taken beside them."""
    return any(bool(np.isinf(part).any()) for part in _parts(values))


def _parts(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The values in pieces of some rows."""
    rows = max(1, PART // max(1, math.prod(values.shape[1:])))
    return (values[start : start + rows] for start in range(0, len(values), rows))


def stays_sparse(n: int, d: int, stored: int, wanted: bool | None, allowance: Allowance | None = None) -> bool:
    """CSR or dense: as wanted, else by density, as long as the dense form fits in a quarter of free memory.

    Where reading has an allowance the dense form must fit in what is left of it too, and is counted there.
    """
    size = 8 * n * d
    left = memory.available() if allowance is None else allowance.left
    if wanted is None:
        wanted = stored < DENSE_SHARE * n * d or size > min(memory.budget(None), left)
    if not wanted and size > left:
        raise InvalidInput(
            f"sparse=False: a dense matrix of {n} x {d} does not fit in {memory.show(left)} of memory; read it with "
            "sparse=True"
        )
    if not wanted and allowance is not None:
        allowance.take(size)
    return wanted


def settle(X: sparse.csr_matrix, wanted: bool | None, allowance: Allowance | None = None) -> Any:
    """The matrix as CSR or dense, see `stays_sparse`."""
    n, d = X.shape
    return X if stays_sparse(n, d, X.nnz, wanted, allowance) else X.toarray()


def resolve_missing(
    data: Dataset, missing: str, known: Mapping[str, float] | None = None, allowance: Allowance | None = None
) -> Dataset:
    """Treat NaN in X: refuse it, put column means there (or values `known` from training), drop rows, or keep it.

    The data set given is not changed; what the other takes is asked of the allowance, where there is one.
    """
    if missing not in MISSING:
        raise InvalidInput(f"missing={missing!r} must be one of {', '.join(MISSING)}")
    stored = data.X.data if data.is_sparse else data.X
    count = sum(int(np.count_nonzero(np.isnan(part))) for part in _parts(stored))
    if missing == "keep" or not count:
        return data if known is None else replace(data, imputed=known)
    if missing == "refuse":
        raise InvalidInput(f"{data.source}: {count} values are missing; choose missing='impute', 'drop' or 'keep'")
    if allowance is not None:
        allowance.take(data.nbytes + stored.size + PLACES * count)
    absent = np.isnan(stored)
    rows, columns = _places(data.X, absent)
    if missing == "drop":
        keep = np.ones(data.n, dtype=bool)
        keep[rows] = False
        return data.take(keep)
    values = dict(known or {})
    fill = stored.copy()
    filled = np.empty(len(columns))
    for column in np.unique(columns):
        name = data.feature_names[column] if data.feature_names else str(column)
        if name not in values:
            values[name] = _mean(data.X, int(column))
        filled[columns == column] = values[name]
    fill[absent] = filled
    X = sparse.csr_matrix((fill, data.X.indices, data.X.indptr), data.X.shape) if data.is_sparse else fill
    return replace(data, X=X, imputed=values)


def _places(X: Any, absent: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of the marked entries, in storage order."""
    if not sparse.issparse(X):
        rows, columns = np.nonzero(absent)
        return rows, columns
    stored = np.flatnonzero(absent)
    return np.searchsorted(X.indptr, stored, side="right") - 1, X.indices[stored].astype(np.intp)


def _mean(X: Any, column: int) -> float:
    """Mean of the values of a column that are there; zero when none is."""
    if sparse.issparse(X):
        values = X.data[X.indices == column]
        present = values[~np.isnan(values)]
        total = X.shape[0] - int(np.isnan(values).sum())
    else:
        present = X[:, column][~np.isnan(X[:, column])]
        total = len(present)
    return float(present.sum() / total) if total else 0.0
