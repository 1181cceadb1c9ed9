"""svmlight / LIBSVM text: `label index:value index:value ...`, one point a line.

The text is cut at line ends and the pieces are scanned side by side by compiled loops (`svmlight_scan`).  What is
read stays sparse until its density is known, so a feature index of 10^12 costs no more than any other.
"""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer import threads
from mercer.data import svmlight_scan as scanner
from mercer.data.dataset import Dataset, settle, whole_numbers
from mercer.data.decimal_text import powers_of_five
from mercer.data.files import line_blocks, replacing
from mercer.errors import InvalidInput

MAX_FEATURES = 1 << 40
MAX_LABEL_MATRIX = 1 << 30
PIECE = 1 << 18  # a shorter text is not worth a second thread


class _Fault(Exception):
    """What is wrong, and at which byte of the piece."""


class _Piece:
    """Arrays read from some whole lines."""

    def __init__(self, text: NDArray[np.uint8], most: int) -> None:
        rows, entries, labels = scanner.count(text)
        self.rows = np.empty((rows, 3), np.int64)
        self.indices = np.empty(entries, np.int64)
        self.values = np.empty(entries)
        self.labels = np.empty(labels)
        complaint, place, self.facts, notes = scanner.scan(
            text, most, *powers_of_five(), self.rows, self.indices, self.values, self.labels
        )
        if complaint:
            raise _Fault(scanner.COMPLAINTS[complaint], int(place))
        self.indices = self.indices[: self.facts[scanner.ENTRIES]]
        self.values = self.values[: self.facts[scanner.ENTRIES]]
        self.labels = self.labels[: self.facts[scanner.LABELS]]
        for kind, slot, start, stop in notes[: 4 * self.facts[scanner.NOTED]].reshape(-1, 4):
            value = float(bytes(text[start:stop]))
            if not np.isfinite(value):
                complaint = scanner.VALUE_RANGE if kind else scanner.LABEL_RANGE
                raise _Fault(scanner.COMPLAINTS[complaint], int(start))
            (self.values if kind else self.labels)[slot] = value


def _pieces(block: bytes, most: int, path: Path, lines_before: int) -> list[_Piece]:
    """Scan a block of whole lines in as many pieces as there are threads."""
    text = np.frombuffer(block, np.uint8)
    cuts = [0]
    for _, stop in threads.split(len(block), step=PIECE)[:-1]:
        cuts.append(max(cuts[-1], block.find(b"\n", stop - 1) + 1 or len(block)))
    cuts.append(len(block))

    def read(start: int, stop: int) -> _Piece | InvalidInput:
        try:
            return _Piece(text[start:stop], most)
        except _Fault as fault:
            what, place = fault.args
            line = lines_before + block.count(b"\n", 0, start + place) + 1
            return InvalidInput(f"{path}, line {line}: {what}, not {_shown(block, start + place)}")

    results = threads.run(read, [(a, b) for a, b in pairwise(cuts) if b > a])
    found: list[_Piece] = []
    for result in results:
        if isinstance(result, InvalidInput):
            raise result
        found.append(result)
    return found


def _shown(block: bytes, place: int) -> str:
    """The word at a place, shortened, in a form that can be printed."""
    words = block[place : place + 40].splitlines()[0].split() if block[place : place + 40].strip() else []
    return repr(words[0].decode("ascii", "backslashreplace")[:30]) if words else "the end of the line"


def _matrix(pieces: list[_Piece], d: int, base: int) -> sparse.csr_matrix:
    """CSR matrix (n, d) of all pieces; indices take 32 bits where they suffice."""
    entries = sum(len(piece.values) for piece in pieces)
    n = sum(len(piece.rows) for piece in pieces)
    kind = np.int32 if max(d, entries) < 2**31 else np.int64
    indices, values, ends = np.empty(entries, kind), np.empty(entries), np.zeros(n + 1, kind)
    at = row = 0
    for piece in pieces:
        size, rows = len(piece.values), len(piece.rows)
        indices[at : at + size] = piece.indices - base
        values[at : at + size] = piece.values
        ends[row + 1 : row + rows + 1] = piece.rows[:, 0] + at
        at, row = at + size, row + rows
    return sparse.csr_matrix((values, indices, ends), shape=(n, d))


def _sorted(X: sparse.csr_matrix, source: str) -> sparse.csr_matrix:
    """Features of every row in order; a feature given twice is an error."""
    X.has_sorted_indices = False
    X.sort_indices()
    repeated = np.flatnonzero(np.diff(X.indices) == 0) + 1
    starts = np.zeros(X.nnz + 1, dtype=bool)
    starts[X.indptr] = True
    repeated = repeated[~starts[repeated]]
    if len(repeated):
        row = int(np.searchsorted(X.indptr, repeated[0], side="right"))
        raise InvalidInput(
            f"{source}: point {row} gives feature {int(X.indices[repeated[0]]) + 1} twice; keep one of them"
        )
    return X


def _targets(pieces: list[_Piece], multilabel: bool | None, source: str) -> tuple[Any, tuple[float, ...] | None]:
    """Targets (n,), or a 0/1 matrix (n, k) with its k labels, or None when no line has a label."""
    counts = np.concatenate([np.diff(piece.rows[:, 1], prepend=0) for piece in pieces])
    labels = np.concatenate([piece.labels for piece in pieces])
    if multilabel is None:
        multilabel = bool(np.any(counts > 1))
    if not multilabel:
        if not counts.any():
            return None, None
        if np.any(counts != 1):
            row = int(np.flatnonzero(counts != 1)[0]) + 1
            remedy = "give it one, or read with multilabel=True"
            raise InvalidInput(f"{source}: point {row} has {counts[row - 1]} labels; {remedy}")
        return whole_numbers(labels), None
    names, code = np.unique(labels, return_inverse=True)
    if len(counts) * len(names) > MAX_LABEL_MATRIX:
        raise InvalidInput(f"{source}: a label matrix of {len(counts)} x {len(names)} is beyond the limit")
    indicator = np.zeros((len(counts), len(names)), np.int8)
    indicator[np.repeat(np.arange(len(counts)), counts), code] = 1
    return indicator, tuple(whole_numbers(names).tolist())


def _base(pieces: list[_Piece], zero_based: bool | None, source: str) -> tuple[int, int]:
    """Index of the first feature (0 or 1), and the number of features seen."""
    smallest = min(int(piece.facts[scanner.SMALLEST]) for piece in pieces)
    largest = max((int(piece.facts[scanner.LARGEST]) for piece in pieces if len(piece.values)), default=-1)
    if zero_based is None:
        zero_based = smallest == 0
    if smallest == 0 and not zero_based:
        raise InvalidInput(f"{source}: has a feature 0, but zero_based=False says they count from 1")
    base = 0 if zero_based else 1
    return base, max(0, largest + 1 - base)


def read_svmlight(
    path: Path,
    *,
    features: int | None = None,
    zero_based: bool | None = None,
    multilabel: bool | None = None,
    sparse: bool | None = None,
    max_features: int = MAX_FEATURES,
    limit: int | str | None = None,
) -> Dataset:
    """Read svmlight text; see `mercer.data.read` for the arguments."""
    pieces: list[_Piece] = []
    lines = 0
    for block in line_blocks(path, limit):
        pieces += _pieces(block, max_features, path, lines)
        lines += block.count(b"\n")
    if not any(len(piece.rows) for piece in pieces):
        raise InvalidInput(f"{path}: holds no points")
    base, seen = _base(pieces, zero_based, str(path))
    if features is not None and seen > features:
        raise InvalidInput(f"{path}: has {seen} features, more than the {features} asked for")
    X = _matrix(pieces, seen if features is None else features, base)
    if any(piece.facts[scanner.DISORDER] for piece in pieces):
        X = _sorted(X, str(path))
    y, names = _targets(pieces, multilabel, str(path))
    query = np.concatenate([piece.rows[:, 2] for piece in pieces])
    if np.any(query >= 0) and np.any(query < 0):
        raise InvalidInput(f"{path}: point {int(np.flatnonzero(query < 0)[0]) + 1} has no qid, though others have")
    return Dataset(settle(X, sparse), y, label_names=names, query=query if query[0] >= 0 else None, source=str(path))


def write_svmlight(path: Path, data: Dataset) -> None:
    """Write svmlight text with features from 1, every number in its shortest exact form; zeros are left out."""
    X = sparse.csr_matrix(data.X)
    X.sort_indices()
    labels = _label_texts(data)
    with replacing(path) as stream:
        for i in range(data.n):
            words = [labels[i]] if labels[i] else []
            if data.query is not None:
                words.append(f"qid:{data.query[i]}")
            entries = slice(X.indptr[i], X.indptr[i + 1])
            pairs = zip((X.indices[entries].astype(np.int64) + 1).tolist(), X.data[entries].tolist())
            words += [f"{index}:{_number(value)}" for index, value in pairs if value != 0]
            stream.write((" ".join(words) + "\n").encode("ascii"))


def _number(value: float) -> str:
    """Shortest decimal text that reads back as the same float64."""
    text = repr(float(value))
    return text[:-2] if text.endswith(".0") else text


def _label_texts(data: Dataset) -> list[str]:
    """Text of the label part of every line."""
    y = data.y
    if y is None:
        return [""] * data.n
    if y.ndim == 2:
        names = data.label_names if data.label_names is not None else tuple(float(k) for k in range(y.shape[1]))
        return [",".join(_number(names[k]) for k in np.flatnonzero(row)) for row in y]
    if y.dtype.kind not in "biuf":
        raise InvalidInput("svmlight text holds numeric labels only; write a CSV file, or code the labels as numbers")
    return [_number(value) for value in y.tolist()]
