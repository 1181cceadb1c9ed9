"""A data set: n points with d features, their targets, and what the columns mean."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.errors import InvalidInput
from mercer.gram import memory

# A matrix with at least this share of entries that are not zero is kept dense: CSR spends 12 bytes on each entry.
DENSE_SHARE = 0.25
MISSING = ("refuse", "impute", "drop", "keep")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Points X (n, d), dense or CSR, with targets y, (n,) numbers or texts, or (n, k) for several; None without.

    - `feature_names`: d names, where the file gives them;
    - `target_name`: the target column, or columns joined by commas;
    - `categories`: for every column of texts, its values in the order of its one-hot columns;
    - `columns`: the source columns in order, numeric ones and categorical ones (a table file only);
    - `label_names`: the k labels behind the columns of a matrix y of a multilabel file;
    - `query`: (n,) query numbers of a ranking file;
    - `imputed`: the value put in place of a missing one, by source column or feature.
    """

    X: Any
    y: NDArray[Any] | None = None
    feature_names: tuple[str, ...] | None = None
    target_name: str | None = None
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None
    label_names: tuple[float, ...] | None = None
    query: NDArray[np.int64] | None = None
    imputed: Mapping[str, float] = field(default_factory=dict)
    source: str = ""

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
        )

    def __repr__(self) -> str:
        kind = "CSR" if self.is_sparse else "dense"
        target = "no target" if self.y is None else f"target {self.target_name or 'y'} {self.y.dtype}"
        return f"Dataset({self.n} x {self.d}, {kind}, {target})"


def whole_numbers(values: NDArray[np.float64]) -> NDArray[Any]:
    """The same numbers as integers when all of them are whole, else unchanged."""
    if values.size and np.all(np.abs(values) < 2**53) and np.all(values == np.floor(values)):
        return values.astype(np.int64)
    return values


def settle(X: sparse.csr_matrix, wanted: bool | None) -> Any:
    """Dense or CSR: as wanted, else by density, as long as the dense form fits in a quarter of free memory."""
    n, d = X.shape
    if wanted is None:
        wanted = X.nnz < DENSE_SHARE * n * d or 8 * n * d > memory.budget(None)
    if wanted:
        return X
    if 8 * n * d > memory.available():
        raise InvalidInput(
            f"sparse=False: a dense matrix of {n} x {d} does not fit in memory; read it with sparse=True"
        )
    return X.toarray()


def resolve_missing(data: Dataset, missing: str, known: Mapping[str, float] | None = None) -> Dataset:
    """Treat NaN in X: refuse it, put column means there (or values `known` from training), drop rows, or keep it."""
    if missing not in MISSING:
        raise InvalidInput(f"missing={missing!r} must be one of {', '.join(MISSING)}")
    stored = data.X.data if data.is_sparse else data.X
    absent = np.isnan(stored)
    if missing == "keep" or not absent.any():
        return data if known is None else replace(data, imputed=known)
    if missing == "refuse":
        raise InvalidInput(
            f"{data.source}: {int(absent.sum())} values are missing; choose missing='impute', 'drop' or 'keep'"
        )
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
