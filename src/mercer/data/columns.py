"""Table columns to features: numbers as they are, texts one-hot.

A column whose values are all numbers (or missing) is one feature.  Any other column is categorical: c different texts
become c features of 0 and 1, in alphabetical order, and a missing text becomes all zeros.  A test table is coded by the
categories of its training table.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.data.dataset import Dataset, settle, whole_numbers
from mercer.errors import InvalidInput

MISSING_TEXTS = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
MAX_CATEGORIES = 1000

# One column: numbers (n,) with NaN where missing, or texts (n,) of objects with None where missing.
Column = NDArray[Any]


def column_of_texts(texts: Sequence[str]) -> Column:
    """Numbers when every text that is not missing is one, else the texts themselves."""
    if not any(text.strip().lower() in MISSING_TEXTS for text in texts):
        try:
            return np.array(texts, dtype=np.float64)
        except ValueError:
            return _texts(texts)
    try:
        return np.array([np.nan if text.strip().lower() in MISSING_TEXTS else float(text) for text in texts])
    except ValueError:
        return _texts(texts)


def _texts(texts: Sequence[str]) -> Column:
    column = np.empty(len(texts), dtype=object)
    column[:] = [None if text.strip().lower() in MISSING_TEXTS else text.strip() for text in texts]
    return column


def _categories(name: str, column: Column, source: str) -> tuple[str, ...]:
    """Different texts of a column, sorted; too many of them are refused."""
    values = sorted({text for text in column if text is not None})
    if len(values) > MAX_CATEGORIES:
        raise InvalidInput(
            f"{source}: column {name!r} has {len(values)} different texts, more than {MAX_CATEGORIES}; "
            f"leave it out with ignore=[{name!r}]"
        )
    return tuple(values)


def _one_hot(column: Column, values: tuple[str, ...]) -> sparse.csc_matrix:
    """0/1 matrix (n, c); a missing or unknown text is a row of zeros."""
    place = {value: k for k, value in enumerate(values)}
    code = np.array([place.get(text, -1) for text in column], dtype=np.intp)
    rows = np.flatnonzero(code >= 0)
    return sparse.csc_matrix((np.ones(len(rows)), (rows, code[rows])), shape=(len(column), len(values)))


def encode(
    table: Mapping[str, Column],
    *,
    target: Sequence[str],
    like: Dataset | None,
    dense: bool | None,
    source: str,
) -> Dataset:
    """Data set of a table of named columns, coded as `like` where one is given."""
    names = list(like.columns or ()) if like is not None else [name for name in table if name not in target]
    absent = [name for name in names if name not in table]
    if absent:
        raise InvalidInput(f"{source}: lacks the columns {', '.join(map(repr, absent))} of the training data")
    if not names:
        raise InvalidInput(f"{source}: has no column besides the target")
    blocks: list[Any] = []
    features: list[str] = []
    categories: dict[str, tuple[str, ...]] = {}
    for name in names:
        column = table[name]
        known = like.categories.get(name) if like is not None else None
        if known is None and column.dtype != object:
            blocks.append(column.astype(np.float64)[:, None])
            features.append(name)
            continue
        if known is None and like is not None:
            raise InvalidInput(f"{source}: column {name!r} holds texts where the training data hold numbers")
        texts = column if column.dtype == object else _texts([f"{value:g}" for value in column])
        categories[name] = known if known is not None else _categories(name, texts, source)
        blocks.append(_one_hot(texts, categories[name]))
        features += [f"{name}={value}" for value in categories[name]]
    return Dataset(
        _joined(blocks, dense, source),
        _target([table[name] for name in target], target, source),
        feature_names=tuple(features),
        target_name=", ".join(target) or None,
        categories=categories,
        columns=tuple(names),
        source=source,
    )


def _joined(blocks: list[Any], dense: bool | None, source: str) -> Any:
    """One matrix of all blocks: dense when they all are, else dense or CSR by density."""
    if any(not sparse.issparse(block) and np.isinf(block).any() for block in blocks):
        raise InvalidInput(f"{source}: infinite values cannot be used; remove them from the file")
    if not any(sparse.issparse(block) for block in blocks):
        X = np.ascontiguousarray(np.hstack(blocks))
        return X if dense is not False else sparse.csr_matrix(X)
    return settle(sparse.csr_matrix(sparse.hstack(blocks, format="csr")), None if dense is None else not dense)


def _target(columns: list[Column], names: Sequence[str], source: str) -> NDArray[Any] | None:
    """Targets (n,) as numbers or texts, or (n, k) numbers of several columns; a missing target is refused."""
    for name, column in zip(names, columns):
        lost = np.array([v is None for v in column]) if column.dtype == object else ~np.isfinite(column)
        if lost.any():
            row = int(np.flatnonzero(lost)[0]) + 1
            raise InvalidInput(f"{source}: the target {name!r} of point {row} is missing or infinite; remove the point")
    if not columns:
        return None
    if len(columns) == 1:
        column = columns[0]
        return column.astype(str) if column.dtype == object else whole_numbers(column.astype(np.float64))
    if any(column.dtype == object for column in columns):
        raise InvalidInput(f"{source}: several target columns must all be numeric")
    return np.column_stack([column.astype(np.float64) for column in columns])
