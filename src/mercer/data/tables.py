"""Table files, CSV and Parquet, with a target column."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mercer.data.columns import Column, column_of_texts, encode
from mercer.data.dataset import Dataset
from mercer.data.files import line_blocks, read_whole, replacing
from mercer.errors import InvalidInput, MissingDependency

# Names taken for the target when the caller names none; without any of them it is the last column.
USUAL_TARGETS = ("target", "label", "class", "y")

Target = str | int | Sequence[str | int] | bool | None


def chosen(names: Sequence[str], target: Target, source: str) -> list[str]:
    """Names of the target columns; `False` means none, `None` the usual one."""
    if target is False:
        return []
    if target is None or target is True:
        usual = [name for name in names if name.strip().lower() in USUAL_TARGETS]
        return [usual[0] if len(usual) == 1 else names[-1]]
    wanted = [target] if isinstance(target, (str, int)) else list(target)
    found: list[str] = []
    for item in wanted:
        if isinstance(item, str) and item in names:
            found.append(item)
        elif isinstance(item, int) and -len(names) <= item < len(names):
            found.append(names[item])
        else:
            shown = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
            raise InvalidInput(f"{source}: target={item!r} is not one of its columns {shown}")
    return found


def _lines(path: Path, limit: int | str | None) -> Iterator[str]:
    """Lines of text; bytes that are not UTF-8 are an error."""
    number = 0
    for block in line_blocks(path, limit):
        for line in block.splitlines(keepends=True):
            number += 1
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                raise InvalidInput(f"{path}, line {number}: is not UTF-8 text") from None


def _delimiter(line: str, path: Path) -> str:
    """The sign among comma, semicolon and tab that the first line has most of."""
    if ".tsv" in path.name.lower():
        return "\t"
    return max(",;\t", key=line.count)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _rows(path: Path, delimiter: str | None, limit: int | str | None) -> Iterator[tuple[int, list[str]]]:
    """Rows with their line numbers; empty lines are passed over."""
    lines = _lines(path, limit)
    first = next(lines, None)
    if first is None:
        raise InvalidInput(f"{path}: is empty")

    def again() -> Iterator[str]:
        yield first
        yield from lines

    reader = csv.reader(again(), delimiter=delimiter or _delimiter(first, path), strict=True, skipinitialspace=True)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InvalidInput(f"{path}, line {reader.line_num}: {error}") from None
        if row:
            yield reader.line_num, row


def read_csv(
    path: Path,
    *,
    target: Target = None,
    header: bool | None = None,
    delimiter: str | None = None,
    ignore: Sequence[str | int] = (),
    like: Dataset | None = None,
    sparse: bool | None = None,
    limit: int | str | None = None,
) -> Dataset:
    """Read a CSV file; see `mercer.data.read` for the arguments."""
    rows = _rows(path, delimiter, limit)
    line, first = next(rows, (0, []))
    if not first:
        raise InvalidInput(f"{path}: is empty")
    if header is None:
        header = not any(_is_number(cell) for cell in first)
    names = [cell.strip() for cell in first] if header else [f"x{k}" for k in range(1, len(first) + 1)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInput(f"{path}, line {line}: two columns are called {twice!r}; header=False reads it as data")
    cells: list[list[str]] = [[] if header else [cell] for cell in first]
    for line, row in rows:
        if len(row) != len(names):
            raise InvalidInput(f"{path}, line {line}: has {len(row)} cells where the first line has {len(names)}")
        for column, cell in zip(cells, row):
            column.append(cell)
    if not cells[0]:
        raise InvalidInput(f"{path}: has a header and no points")
    table = {name: column_of_texts(column) for name, column in zip(names, cells)}
    return _encoded(table, target, ignore, like, sparse, str(path))


def _encoded(
    table: dict[str, Column], target: Target, ignore: Sequence[str | int], like: Dataset | None,
    sparse: bool | None, source: str,
) -> Dataset:  # fmt: skip
    """Choose the target, leave out what is to be ignored, and code the rest."""
    names = list(table)
    left_out = chosen(names, list(ignore), source)
    if like is not None and target is None:
        known = (like.target_name or "").split(", ")
        target = known if all(name in table for name in known) else False
    targets = chosen([name for name in names if name not in left_out], target, source)
    kept = {name: column for name, column in table.items() if name not in left_out}
    dense = None if sparse is None else not sparse
    return encode(kept, target=targets, like=like, dense=dense, source=source)


def read_parquet(
    path: Path,
    *,
    target: Target = None,
    ignore: Sequence[str | int] = (),
    like: Dataset | None = None,
    sparse: bool | None = None,
    limit: int | str | None = None,
) -> Dataset:
    """Read a Parquet file; see `mercer.data.read` for the arguments."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingDependency("Parquet files need pyarrow: pip install 'mercer[parquet]'") from None
    content = read_whole(path, limit)
    try:
        table = parquet.read_table(pyarrow.BufferReader(content))
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InvalidInput(f"{path}: is not a Parquet file that can be read ({str(error).splitlines()[0]})") from None
    if table.num_rows == 0:
        raise InvalidInput(f"{path}: holds no points")
    columns = {name: _arrow_column(name, table.column(name), path) for name in table.column_names}
    return _encoded(columns, target, ignore, like, sparse, str(path))


def _arrow_column(name: str, column: Any, path: Path) -> Column:
    """Numbers with NaN, or texts with None, of an Arrow column."""
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = kind.value_type
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        values = column.to_pylist()
        return np.array([np.nan if value is None else float(value) for value in values])
    if types.is_string(kind) or types.is_large_string(kind):
        texts = np.empty(len(column), dtype=object)
        texts[:] = column.to_pylist()
        return texts
    raise InvalidInput(f"{path}: column {name!r} is of type {kind}; leave it out with ignore=[{name!r}]")


def write_csv(path: Path, data: Dataset) -> None:
    """Write a CSV file with a header, features first and the target last."""
    X = data.X.toarray() if data.is_sparse else np.asarray(data.X)
    names = list(data.feature_names or (f"x{k}" for k in range(1, data.d + 1)))
    targets = [] if data.y is None else np.asarray(data.y).reshape(data.n, -1).T.tolist()
    labels = (data.target_name or "target").split(", ")
    if len(labels) != len(targets):
        labels = [f"target{k}" for k in range(1, len(targets) + 1)]
    with replacing(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*names, *labels])
        for i, row in enumerate(X.tolist()):
            writer.writerow([*row, *(column[i] for column in targets)])
        text.flush()
        text.detach()
