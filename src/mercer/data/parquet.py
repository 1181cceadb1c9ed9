"""Parquet files, read in batches of rows into the columns that a CSV file of the same table would give.

Numbers, decimals and truth values are read as such.  Texts follow the rule for cells of CSV files: a text that is a
number is one.  Dates, times and timestamps are texts (ISO 8601).  Columns of other types are refused by name.  Texts
are read as codes into a dictionary, so that a long text that occurs a million times is held once.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.allowance import Allowance
from mercer.data.columns import Collector, text_of
from mercer.data.dataset import Dataset, Origin, Request
from mercer.data.files import open_whole
from mercer.data.tables import Plan, read_table, refuse_twice
from mercer.errors import InvalidInput, MercerError, MissingDependency

MOST_ROWS = 1 << 16  # in a batch
CELL = 192  # bytes that a cell of a batch takes while it is converted
STREAM = 1 << 16  # bytes of a column read at once
ARROW = 8 << 20  # bytes that Arrow takes for the smallest file
TEXT = 192


def read_parquet(request: Request) -> Dataset:
    """Read a Parquet file; see `mercer.data.read` for the arguments."""
    try:
        import pyarrow  # noqa: F401 - only to see whether it is there
        from pyarrow import parquet
    except ImportError:
        raise MissingDependency("Parquet files need pyarrow: pip install 'mercer[parquet]'") from None
    path = request.path
    allowance = Allowance(request.limit, path)
    stream, _ = open_whole(path, allowance)
    try:
        with stream:
            allowance.take(ARROW)
            kinds = parquet.ParquetFile(stream, pre_buffer=False).schema_arrow
            refuse_twice(kinds.names, request.source, "give each a name of its own")
            plan = Plan.of(kinds.names, request)
            names = plan.columns
            texts = [name for name in names if _is_text(kinds.field(name).type)]
            file = parquet.ParquetFile(stream, pre_buffer=False, buffer_size=STREAM, read_dictionary=texts)
            if not file.metadata.num_rows:
                raise InvalidInput(f"{path}: holds no points")
            allowance.take(_decoded(file.metadata, names))
            rows = max(1, min(MOST_ROWS, allowance.limit // (8 * CELL * len(names))))
            allowance.take(CELL * rows * len(names))

            def fill(collectors: dict[str, Collector]) -> Origin:
                n = 0
                for batch in file.iter_batches(rows, columns=names, use_threads=False):
                    n += batch.num_rows
                    for name, collector in collectors.items():
                        _add(collector, name, batch.column(name), path)
                allowance.take(8 * n)
                return Origin.rows(n)

            return read_table(plan, fill, allowance)
    except MercerError:
        raise
    except MemoryError:
        raise allowance.exhausted() from None
    except Exception as error:  # Arrow raises whatever the damage provokes
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InvalidInput(f"{path}: is not a Parquet file that can be read ({reason:.200})") from None


def _decoded(metadata: Any, names: Sequence[str]) -> int:
    """Bytes that decoding the largest group of rows takes.

    Pages are unpacked one by one, but a page may be all of its column; different texts are kept in a hash table, which
    takes up to TEXT bytes beside each.
    """
    wanted, largest = set(names), 0
    for k in range(metadata.num_row_groups):
        group, size = metadata.row_group(k), 0
        for column in (group.column(j) for j in range(group.num_columns)):
            if column.path_in_schema in wanted:
                unpacked = max(0, column.total_uncompressed_size)
                text = column.physical_type == "BYTE_ARRAY"
                size += 4 * unpacked + TEXT * group.num_rows if text else unpacked
        largest = max(largest, size)
    return largest


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _add(collector: Collector, name: str, values: Any, path: Path) -> None:
    """Append an Arrow array to the column of that name."""
    from pyarrow import types

    kind = values.type
    if types.is_dictionary(kind) and not _is_text(kind):
        values = values.dictionary_decode()
        kind = values.type
    truth = types.is_boolean(kind)
    numeric = truth or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    if collector.kind != "texts" and (numeric or types.is_null(kind)):
        collector.add_numbers(_numbers(values, kind), truth=truth)
    elif numeric or _is_text(kind) or types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind):
        collector.add(*_texts(values, name, path))
    elif types.is_null(kind):
        collector.add([], np.full(len(values), -1))
    else:
        raise InvalidInput(f"{path}: column {name!r} is of type {kind}; leave it out with ignore=[{name!r}]")


def _numbers(values: Any, kind: Any) -> NDArray[np.float64]:
    """Float64 with NaN where missing; a decimal number is rounded once, as its text would be."""
    from pyarrow import types

    if types.is_decimal(kind):
        return np.array([np.nan if value is None else float(value) for value in values.to_pylist()])
    if types.is_null(kind):
        return np.full(len(values), np.nan)
    numbers = np.asarray(values.fill_null(False if types.is_boolean(kind) else 0)).astype(np.float64)
    numbers[np.asarray(values.is_null())] = np.nan
    return numbers


def _texts(values: Any, name: str, path: Path) -> tuple[list[str], NDArray[np.intp]]:
    """The different values of an array that occur, as texts, and for every row which one it is, -1 where missing."""
    from pyarrow import array

    coded = values if hasattr(values, "dictionary") else values.dictionary_encode()
    index = np.asarray(coded.indices.fill_null(-1)).astype(np.intp)
    used, place = np.unique(index[index >= 0], return_inverse=True)
    index[index >= 0] = place
    try:
        found = coded.dictionary.take(array(used)).to_pylist()
    except UnicodeDecodeError:
        raise InvalidInput(f"{path}: column {name!r} holds text that is not UTF-8") from None
    return ["" if value is None else text_of(value) for value in found], index
