"""Columns of a table as they are read, batch by batch: numbers, truth values, or texts as codes.

A column is one of three kinds, by the same rule for the cells of a CSV file and the texts of a Parquet file:

- numbers, when every cell that is not missing is one;
- truth values, when every such cell is true or false in any case: numbers 1 and 0 as a feature, labels as a target;
- texts otherwise: int32 codes into the different texts.  A moment (ISO 8601) has one text however it was written:
  2020-01-02T00:00:00.000 is 2020-01-02, and 10:30 is 10:30:00.

A column that turns out to hold texts after a batch of numbers cannot be continued, because the text of a number is not
kept: `Collector.contradicted` says so, and the file is read again with this column as texts.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mercer.data.allowance import Allowance, Growing

MISSING_TEXTS = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
TRUTH = {"true": 1.0, "false": 0.0}
MAX_CATEGORIES = 1000
MISSING, UNSEEN = -1, -2  # codes of no text, and of a text that the training data did not hold
EXAMPLES = 3
COLLECTOR = 1 << 10  # bytes of an empty collector
_MOMENT = re.compile(r"(?:(\d{4}-\d\d-\d\d)[ T])?(\d\d:\d\d)(?::(\d\d)(?:\.(\d+))?)?(Z|[+-]\d\d:?\d\d)?")

Kind = Literal["unknown", "numbers", "truth", "texts"]


@dataclass(frozen=True, eq=False)
class Numbers:
    """A column of numbers (n,), NaN where missing; `truth` when they stand for true and false."""

    values: NDArray[np.float64]
    truth: bool = False


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of texts: codes (n,) into `texts`, MISSING or UNSEEN where there is none.

    `unseen` are examples of texts that the training data did not hold; `overflown` says that the texts were too many
    to keep.
    """

    codes: NDArray[np.int32]
    texts: tuple[str, ...]
    unseen: tuple[str, ...] = ()
    overflown: bool = False


Column = Numbers | Texts
Table = dict[str, Column]


def canonical(text: str) -> str:
    """The one text of a moment: a blank between date and time, no time at midnight, no zeros that say nothing."""
    if (text[2:3] != ":" and text[13:14] != ":") or (match := _MOMENT.fullmatch(text)) is None:
        return text
    date, minute, second, fraction, zone = match.groups()
    digits = (fraction or "").rstrip("0")
    time = f"{minute}:{second or '00'}" + (f".{digits}" if digits else "")
    zone = "+00:00" if zone == "Z" else f"{zone[:3]}:{zone[-2:]}" if zone else ""
    if date is None:
        return time + zone
    return date if time == "00:00:00" and not zone else f"{date} {time}{zone}"


def _is_missing(text: str) -> bool:
    return text.strip().lower() in MISSING_TEXTS


def numbers_of(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """The cells as float64 with NaN where missing, or None when one of them is another text."""
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        pass  # a text, or a missing value other than nan
    try:
        return np.array([np.nan if _is_missing(cell) else float(cell) for cell in cells])
    except ValueError:
        return None


def truth_of(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """1 for true, 0 for false, NaN where missing, or None when one of the cells is another text."""
    values = {cell: TRUTH.get(cell.strip().lower(), np.nan) for cell in set(cells)}
    if any(np.isnan(value) and not _is_missing(cell) for cell, value in values.items()):
        return None
    return np.array([values[cell] for cell in cells])


class _Codes(dict[str, int]):
    """Codes of cells: equal for cells that hold the same text, MISSING or UNSEEN for no code."""

    def __init__(self, known: Sequence[str] | None, allowance: Allowance) -> None:
        super().__init__()
        self.places = {text: code for code, text in enumerate(known or ())}
        self.closed = known is not None
        self.unseen: dict[str, None] = {}
        self.size = 0
        self._allowance = allowance

    def __missing__(self, cell: str) -> int:
        text = cell.strip()
        code = MISSING if text.lower() in MISSING_TEXTS else self._code(canonical(text))
        if code != UNSEEN:
            size = 2 * sys.getsizeof(cell) + 256  # the cell, its text, and their places in two tables
            self._allowance.take(size)
            self.size += size
            self[cell] = code
        return code

    def _code(self, text: str) -> int:
        if not self.closed:
            return self.places.setdefault(text, len(self.places))
        code = self.places.get(text, UNSEEN)
        if code == UNSEEN and len(self.unseen) < EXAMPLES:
            self.unseen[text] = None
        return code


class Collector:
    """One column, as it is read.

    known : the texts of the training column, which make this a column of texts; others are counted as unseen.
    many : whether any number of different texts is kept, as for a target.
    as_texts : whether numbers are texts too.
    """

    __slots__ = ("_allowance", "_codes", "_many", "_numbers", "_places", "contradicted", "kind", "overflown", "rows")

    def __init__(
        self, allowance: Allowance, *, known: Sequence[str] | None = None, many: bool = False, as_texts: bool = False
    ) -> None:
        allowance.take(COLLECTOR)
        self._allowance, self._many = allowance, many
        self.kind: Kind = "texts" if as_texts or known is not None else "unknown"
        self._numbers, self._places = Growing(np.float64, allowance), Growing(np.int32, allowance)
        self._codes = _Codes(known, allowance)
        self.rows = 0
        self.contradicted = self.overflown = False

    def add(self, cells: Sequence[str], index: NDArray[np.intp] | None = None) -> None:
        """Append the cells, or cells[index] with a missing cell where the index is negative."""
        self.rows += len(cells) if index is None else len(index)
        if self.contradicted or self.overflown:
            return
        if self.kind in ("unknown", "numbers") and (numbers := numbers_of(cells)) is not None:
            self._append("numbers", numbers, index)
        elif self.kind in ("unknown", "truth") and (truth := truth_of(cells)) is not None:
            self._append("truth", truth, index)
        elif self.kind in ("numbers", "truth"):
            self.contradicted = True
            self._numbers.release()
        else:
            self._append_texts(cells, index)

    def add_numbers(self, values: NDArray[np.float64], *, truth: bool = False) -> None:
        """Append numbers that the file holds as such, NaN where missing."""
        self.rows += len(values)
        self.kind = "truth" if truth else "numbers"
        self._numbers.extend(values)

    def _append(self, kind: Kind, values: NDArray[np.float64], index: NDArray[np.intp] | None) -> None:
        if not np.isnan(values).all():
            self.kind = kind
        self._numbers.extend(values if index is None else np.append(values, np.nan)[np.maximum(index, -1)])

    def _append_texts(self, cells: Sequence[str], index: NDArray[np.intp] | None) -> None:
        if self.kind == "unknown":  # all was missing until now
            self.kind = "texts"
            self._places.extend(np.full(len(self._numbers), MISSING))
            self._numbers.release()
        codes = np.fromiter(map(self._codes.__getitem__, cells), np.int32, len(cells))
        self._places.extend(codes if index is None else np.append(codes, MISSING)[np.maximum(index, -1)])
        if not self._many and not self._codes.closed and len(self._codes.places) > MAX_CATEGORIES:
            self.overflown = True
            self._forget_texts()

    def _forget_texts(self) -> None:
        self._places.release()
        self._allowance.give_back(self._codes.size)
        self._codes = _Codes(None, self._allowance)

    def release(self) -> None:
        """Forget all, and give the memory back."""
        self._numbers.release()
        self._forget_texts()
        self._allowance.give_back(COLLECTOR)

    def column(self) -> Column:
        """The column, complete."""
        if self.kind == "texts":
            codes = self._codes
            return Texts(self._places.values(), tuple(codes.places), tuple(codes.unseen), self.overflown)
        return Numbers(self._numbers.values(), truth=self.kind == "truth")


def text_of(value: Any) -> str:
    """The text of a number, truth value or moment that a column of texts holds: 2, not 2.0."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)
