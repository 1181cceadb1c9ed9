"""Table files, CSV and Parquet, with a target column; the same table gives the same data set from either."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from mercer.data.allowance import Allowance, Growing
from mercer.data.columns import Collector, Table, Texts
from mercer.data.dataset import Dataset, Origin, Request, Target
from mercer.data.encoding import encode
from mercer.data.files import block_size, line_blocks, replacing
from mercer.data.queries import query_numbers
from mercer.errors import InvalidInput

# Names taken for the target when the caller names none; without any of them it is the last column.
USUAL_TARGETS = ("target", "label", "class", "y")
SCRATCH = 64  # bytes that a byte of CSV takes as lines, cells and lists of them, at most
CSV_BLOCK = 1 << 20


def chosen(names: Sequence[str], target: Target, source: str, option: str = "target") -> list[str]:
    """Names of the target columns; `False` means none, `None` the usual one; errors speak of the `option`."""
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
            raise InvalidInput(f"{source}: {option}={item!r} is not one of its columns {shown}")
    return found


def refuse_twice(names: Sequence[str], source: str, remedy: str) -> None:
    """Refuse a table in which two columns have one name."""
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise InvalidInput(f"{source}: two columns are called {twice!r}; {remedy}")


def listed(names: Sequence[str], most: int = 8) -> str:
    """The names, the first ones of many."""
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


@dataclass(frozen=True)
class Plan:
    """Which columns of a table are read, and as what."""

    target: tuple[str, ...]
    features: tuple[str, ...]
    unused: tuple[str, ...]
    request: Request
    groups: str | None = None
    """The column of the queries."""

    @classmethod
    def of(cls, names: Sequence[str], request: Request) -> "Plan":
        """Choose the target and the queries, and leave out what is to be ignored."""
        target, groups, like, source = request.target, request.groups, request.like, request.source
        if groups is None and like is not None and like.query_name in names:
            groups = like.query_name
        query = None if groups is None else chosen(names, groups, source, "groups")[0]
        left_out = {*chosen(names, list(request.ignore), source), query}
        kept = [name for name in names if name not in left_out]
        if like is not None and target is None:
            known = (like.target_name or "").split(", ")
            target = known if set(known) <= set(kept) else False
        targets = chosen(kept, target, source)
        features = [name for name in kept if name not in targets] if like is None else list(like.columns or ())
        there = set(kept)
        absent = [name for name in features if name not in there]
        used = {*features, *targets, query}
        unused = tuple(name for name in names if name not in used)
        if absent:
            beside = f" (it has {listed(unused)} beside)" if unused else ""
            raise InvalidInput(f"{source}: lacks the columns {listed(absent)} of the training data{beside}")
        if not features:
            raise InvalidInput(f"{source}: has no column besides the target")
        return cls(tuple(targets), tuple(features), unused, request, query)

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        return [*self.features, *self.target, *([] if self.groups is None else [self.groups])]

    def collectors(self, allowance: Allowance, texts: frozenset[str]) -> dict[str, Collector]:
        """One collector for each column to read; those named in `texts` hold texts."""
        known = {} if self.request.like is None else self.request.like.categories
        found = {
            name: Collector(allowance, known=known.get(name), as_texts=name in texts) for name in self.features
        }  # fmt: skip
        found |= {name: Collector(allowance, many=True, as_texts=name in texts) for name in self.target}
        return found | ({} if self.groups is None else {self.groups: Collector(allowance, many=True, as_texts=True)})


def read_table(
    plan: Plan, fill: Callable[[dict[str, Collector]], Origin], allowance: Allowance, again: bool = True
) -> Dataset:
    """The data set of a table whose rows `fill` gives to the collectors of its columns.

    It is filled a second time where texts followed numbers in a column; again=False says that it cannot be.
    """
    texts, source = frozenset[str](), plan.request.source
    while True:
        collectors = plan.collectors(allowance, texts)
        origin = fill(collectors)
        contradicted = {name for name, collector in collectors.items() if collector.contradicted}
        if not contradicted:
            break
        if not again:
            raise InvalidInput(
                f"{source}: column {min(contradicted)!r} holds numbers, then texts, and a stream cannot be read "
                "twice; write it to a file first"
            )
        texts |= contradicted
        for collector in collectors.values():
            collector.release()
    if not len(origin.places):
        raise InvalidInput(f"{source}: has a header and no points")
    table: Table = {name: collector.column() for name, collector in collectors.items()}
    named = None if plan.groups is None else table.pop(plan.groups)
    data = encode(table, plan.target, plan.request, origin, allowance)
    data = replace(data, left_out=plan.unused + data.left_out)
    if not isinstance(named, Texts):
        return data
    allowance.take(16 * data.n)
    query = query_numbers(named, str(plan.groups), source)
    return replace(data, query=query, query_name=plan.groups)


class _Lines:
    """Lines of text; bytes that are not UTF-8 are an error.  `pending` bytes were handed out and are still held."""

    def __init__(self, path: Path, allowance: Allowance) -> None:
        self.path = path
        self.pending = 0
        self.size = min(CSV_BLOCK, block_size(allowance, SCRATCH))
        self._allowance = allowance
        self._long = 0

    def __iter__(self) -> Iterator[str]:
        number = 0
        self._allowance.take(SCRATCH * self.size)
        for block in line_blocks(self.path, self._allowance, self.size):
            if len(block) > 2 * self.size:  # a line so long that it takes more than was counted
                self._allowance.take(SCRATCH * len(block))
                self._long += SCRATCH * len(block)
            for line in block.splitlines(keepends=True):
                number += 1
                self.pending += len(line)
                try:
                    yield line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError:
                    raise InvalidInput(f"{self.path}, line {number}: is not UTF-8 text") from None
        self._allowance.give_back(SCRATCH * self.size)

    def taken(self) -> None:
        """Say that what was handed out is no longer held."""
        self._allowance.give_back(self._long)
        self.pending = self._long = 0


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


def _rows(lines: _Lines, delimiter: str | None) -> Iterator[tuple[int, list[str]]]:
    """Rows with the lines at which they begin; empty lines are passed over."""
    stream = iter(lines)
    first = next(stream, None)
    if first is None:
        raise InvalidInput(f"{lines.path}: is empty")
    sign = delimiter or _delimiter(first, lines.path)
    reader = csv.reader(chain([first], stream), delimiter=sign, strict=True, skipinitialspace=True)
    while True:
        begin = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InvalidInput(f"{lines.path}, line {reader.line_num}: {error}") from None
        if row:
            yield begin, row


def read_csv(request: Request) -> Dataset:
    """Read a CSV file; see `mercer.data.read` for the arguments."""
    path, delimiter = request.path, request.delimiter
    allowance = Allowance(request.limit, path)
    lines, rows, line, first = _opened(path, delimiter, allowance)
    header, names = _named(first, request.header)
    refuse_twice(names, f"{path}, line {line}", "header=False reads it as data")
    plan = Plan.of(names, request)
    waiting = [(lines, rows, line, first)]

    def fill(collectors: dict[str, Collector]) -> Origin:
        lines, rows, line, first = waiting.pop() if waiting else _opened(path, delimiter, allowance)
        table = _Batches(names, collectors, lines, allowance)
        return table.filled(rows if header else chain([(line, first)], rows))

    return read_table(plan, fill, allowance, again=path.is_file())


def _named(first: list[str], header: bool | None) -> tuple[bool, list[str]]:
    """Whether the first row names the columns, by default when none of its cells is a number; and their names."""
    if header is None:
        header = not any(_is_number(cell) for cell in first)
    return header, [cell.strip() for cell in first] if header else [f"x{k}" for k in range(1, len(first) + 1)]


def csv_blocks(path: Path, rows_at_once: int, *, target: Target = None) -> Iterator[Dataset]:
    """The points of so many rows at a time, in memory for one block.

    The first block says which columns are numbers, which categories there are and which columns are left out.
    """
    allowance = Allowance(None, path)
    lines, rows, line, first = _opened(path, None, allowance)
    header, names = _named(first, None)
    refuse_twice(names, f"{path}, line {line}", "name the columns differently")
    like: Dataset | None = None
    rows = rows if header else chain([(line, first)], rows)
    while batch := list(islice(rows, rows_at_once)):
        own = Allowance(None, path)  # what a block takes is given back with it

        def fill(collectors: dict[str, Collector], batch: Any = batch, own: Allowance = own) -> Origin:
            return _Batches(names, collectors, lines, own).filled(batch)

        data = read_table(Plan.of(names, Request(path, target, like=like)), fill, own)
        like = like or data
        yield data


def _opened(
    path: Path, delimiter: str | None, allowance: Allowance
) -> tuple[_Lines, Iterator[tuple[int, list[str]]], int, list[str]]:
    """The lines of a file, its rows after the first one, and the first one with its line."""
    lines = _Lines(path, allowance)
    rows = _rows(lines, delimiter)
    line, first = next(rows, (0, []))
    if not first:
        raise InvalidInput(f"{path}: is empty")
    return lines, rows, line, first


class _Batches:
    """Rows of cells, gathered and given to the collectors of their columns as soon as they fill a block."""

    def __init__(
        self, names: Sequence[str], collectors: dict[str, Collector], lines: _Lines, allowance: Allowance
    ) -> None:
        self.places = Growing(np.int64, allowance)
        self._width = len(names)
        self._wanted = [(k, collectors[name]) for k, name in enumerate(names) if name in collectors]
        self._lines = lines
        self._begins: list[int] = []
        self._rows: list[list[str]] = []

    def filled(self, rows: Iterable[tuple[int, list[str]]]) -> Origin:
        """Take all rows, each with the line at which it begins; where they stand."""
        for line, row in rows:
            self._append(line, row)
        self._flush()
        return Origin(self.places.values(), "line")

    def _append(self, line: int, row: list[str]) -> None:
        """Take a row that begins at `line`."""
        if len(row) != self._width:
            raise InvalidInput(
                f"{self._lines.path}, line {line}: has {len(row)} cells where the first line has {self._width}"
            )
        self._begins.append(line)
        self._rows.append(row)
        if self._lines.pending >= self._lines.size:
            self._flush()

    def _flush(self) -> None:
        """Give all rows away."""
        self.places.extend(np.array(self._begins, dtype=np.int64))
        for k, collector in self._wanted if self._rows else ():
            collector.add([row[k] for row in self._rows])
        self._begins, self._rows = [], []
        self._lines.taken()


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
