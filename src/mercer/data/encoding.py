"""Table columns to features: numbers as they are, texts one-hot.

A column of numbers or truth values is one feature.  A column of c different texts becomes c features of 0 and 1, in
alphabetical order, and a missing text all zeros.  A test table is coded by the categories of its training table, and a
text not seen there is all zeros too, with a warning.

Left out with a warning are columns that tell points apart and teach nothing about others: texts of which there are more
than half as many as points (names, dates, ids), or more than MAX_CATEGORIES; and a column without a name that numbers
the rows.
"""

import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.data.allowance import Allowance
from mercer.data.columns import MAX_CATEGORIES, UNSEEN, Column, Numbers, Table, Texts
from mercer.data.dataset import Dataset, Origin, Request, any_infinite, stays_sparse, whole_numbers
from mercer.errors import ColumnLeftOut, InvalidInput, UnseenCategory

FEW_TEXTS = 30  # so many different texts are kept even when every point has its own
ENTRIES = 32  # bytes that each entry of a column takes while it is put into the matrix
LONGEST_LABEL = 1000  # characters; an array of texts gives all of them the room of the longest
# An index that pandas wrote without a name, as CSV files, its reader and Parquet files call it.
_UNNAMED = re.compile(r"|unnamed: ?\d+|__index_level_\d+__", re.IGNORECASE)


# A column of the table, its first feature, and for texts the place of every code among its features.
_Part = tuple[Column, int, NDArray[np.intp]]


def encode(table: Table, target: Sequence[str], request: Request, origin: Origin, allowance: Allowance) -> Dataset:
    """Data set of a table of named columns, the columns `target` being the targets."""
    like, source = request.like, request.source
    names = list(like.columns or ()) if like is not None else [name for name in table if name not in target]
    left_out: tuple[str, ...] = ()
    if like is None:
        left_out = tuple(name for name in names if _left_out(name, table[name], source, allowance))
        names = [name for name in names if name not in left_out]
    if not names:
        raise InvalidInput(f"{source}: has no column besides the target")
    y = _target([table[name] for name in target], target, source, allowance)
    parts: list[_Part] = []
    features: list[str] = []
    categories: dict[str, tuple[str, ...]] = {}
    for name in names:
        column = table[name]
        if isinstance(column, Numbers):
            if any_infinite(column.values):
                raise InvalidInput(f"{source}: infinite values cannot be used; remove them from the file")
            parts.append((column, len(features), np.zeros(0, np.intp)))
            features.append(name)
            continue
        if like is not None and name not in like.categories:
            raise InvalidInput(f"{source}: column {name!r} holds texts where the training data hold numbers")
        _tell_unseen(name, column, source)
        categories[name] = column.texts if like is not None else tuple(sorted(column.texts))
        rank = {text: place for place, text in enumerate(categories[name])}
        parts.append((column, len(features), np.array([rank[text] for text in column.texts], dtype=np.intp)))
        features += [f"{name}={text}" for text in categories[name]]
    return Dataset(
        _matrix(parts, len(features), request.sparse, allowance),
        y,
        feature_names=tuple(features),
        target_name=", ".join(target) or None,
        categories=categories,
        columns=tuple(names),
        left_out=left_out,
        source=source,
        origin=origin,
    )


def _left_out(name: str, column: Column, source: str, allowance: Allowance) -> bool:
    """Whether a column of training data is left out; says so."""
    remedy = "give it as numbers, or as fewer texts, to use it"
    if isinstance(column, Numbers):
        if not _UNNAMED.fullmatch(name.strip()) or not _numbers_rows(column.values, allowance):
            return False
        reason, remedy = "it has no name and numbers the rows", "give it a name to use it"
    elif column.overflown:
        reason = f"it holds more than {MAX_CATEGORIES} different texts"
    else:
        present = int(np.count_nonzero(column.codes >= 0))
        if len(column.texts) <= max(FEW_TEXTS, present // 2):
            return False
        reason = f"it holds {len(column.texts)} different texts at {present} points, as names, dates or ids do"
    warnings.warn(
        f"{source}: column {name!r} is left out: {reason}; {remedy} (ignore=[{name!r}] leaves it out without warning)",
        ColumnLeftOut,
        stacklevel=2,
    )
    return True


def _numbers_rows(numbers: NDArray[np.float64], allowance: Allowance) -> bool:
    """Whether the numbers are whole and all different, as in an index, also of points drawn from a larger table."""
    allowance.take(2 * numbers.nbytes)
    ordered = np.sort(numbers)
    different = len(numbers) > 1 and bool(ordered[0] >= 0 and np.isfinite(ordered[-1]) and np.all(np.diff(ordered) > 0))
    allowance.give_back(2 * numbers.nbytes)
    return different and whole_numbers(ordered).dtype == np.int64


def _tell_unseen(name: str, column: Texts, source: str) -> None:
    """Warn of texts that the training data did not hold."""
    count = int(np.count_nonzero(column.codes == UNSEEN))
    if count:
        shown = ", ".join(f"{text!r:.40}" for text in column.unseen)
        warnings.warn(
            f"{source}: column {name!r} holds texts at {count} points that the training data did not hold (such as "
            f"{shown}); they are treated as missing: zero in all features of the column; train on data that hold them",
            UnseenCategory,
            stacklevel=2,
        )


def _size(column: Column) -> int:
    return len(column.values) if isinstance(column, Numbers) else len(column.codes)


def _entries(part: _Part) -> tuple[NDArray[np.intp], Any, Any]:
    """Rows, features and values of the entries of a column that are not zero."""
    column, first, places = part
    if isinstance(column, Numbers):
        rows = np.flatnonzero(column.values)
        return rows, first, column.values[rows]
    rows = np.flatnonzero(column.codes >= 0)
    return rows, first + places[column.codes[rows]], 1.0


def _matrix(parts: list[_Part], d: int, wanted: bool | None, allowance: Allowance) -> Any:
    """X (n, d), dense or CSR as wanted; else dense when all columns are numbers, and by density when not."""
    n = _size(parts[0][0])
    if wanted is None and all(isinstance(column, Numbers) for column, _, _ in parts):
        wanted = False
    if wanted is not False:
        allowance.take(ENTRIES * n)
    stored = sum(
        int(np.count_nonzero(column.values if isinstance(column, Numbers) else column.codes >= 0))
        for column, _, _ in parts
    )
    if stays_sparse(n, d, stored, wanted, allowance):
        return _csr(parts, n, d, stored, allowance)
    X = np.zeros((n, d))
    for part in parts:
        column, first, _ = part
        if isinstance(column, Numbers):
            X[:, first] = column.values
        else:
            rows, features, values = _entries(part)
            X[rows, features] = values
    return X


def _csr(parts: list[_Part], n: int, d: int, stored: int, allowance: Allowance) -> sparse.csr_matrix:
    """CSR matrix, filled feature by feature, so that every row is in order."""
    kind: np.dtype[Any] = np.dtype(np.int32 if max(d, stored) < 2**31 else np.int64)
    allowance.take((8 + kind.itemsize) * stored + 2 * 8 * (n + 1))
    starts = np.zeros(n + 1, kind)
    for part in parts:
        starts[_entries(part)[0] + 1] += 1
    np.cumsum(starts, out=starts)
    indices, data, free = np.empty(stored, kind), np.empty(stored), starts[:-1].copy()
    for part in parts:
        rows, features, values = _entries(part)
        indices[free[rows]] = features
        data[free[rows]] = values
        free[rows] += 1
    return sparse.csr_matrix((data, indices, starts), shape=(n, d))


def _target(columns: Sequence[Column], names: Sequence[str], source: str, allowance: Allowance) -> NDArray[Any] | None:
    """Targets (n,) as numbers, truth values or texts, or (n, k) numbers of several columns; none may be missing."""
    for name, column in zip(names, columns):
        lost = ~np.isfinite(column.values) if isinstance(column, Numbers) else column.codes < 0
        if lost.any():
            row = int(np.flatnonzero(lost)[0]) + 1
            raise InvalidInput(f"{source}: the target {name!r} of point {row} is missing or infinite; remove the point")
    if not columns:
        return None
    allowance.take(8 * len(columns) * _size(columns[0]))
    if len(columns) == 1:
        column = columns[0]
        if isinstance(column, Texts):
            return _labels(column, names[0], source, allowance)
        return column.values > 0 if column.truth else whole_numbers(column.values)
    if any(isinstance(column, Texts) for column in columns):
        raise InvalidInput(f"{source}: several target columns must all be numeric")
    return np.column_stack([column.values for column in columns if isinstance(column, Numbers)])


def _labels(column: Texts, name: str, source: str, allowance: Allowance) -> NDArray[np.str_]:
    """Labels (n,) of a target of texts."""
    longest = max(map(len, column.texts))
    if longest > LONGEST_LABEL:
        raise InvalidInput(
            f"{source}: a label of the target {name!r} has {longest} characters, more than {LONGEST_LABEL}; "
            "choose another target=, or shorter labels"
        )
    allowance.take(4 * longest * (len(column.codes) + len(column.texts)))
    return np.array(column.texts, dtype=np.str_)[column.codes]
