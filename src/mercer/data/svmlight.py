"""svmlight / LIBSVM text: `label index:value index:value ...`, one point a line.

The text is read in blocks, each cut at line ends, whose pieces are scanned side by side by compiled loops
(`svmlight_scan`) and appended to the arrays of a CSR matrix: beside the result, reading holds one block.  What is read
stays sparse until its density is known, so a feature index of 10^12 costs no more than any other.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer import threads
from mercer.data import svmlight_scan as scanner
from mercer.data.allowance import Allowance, Growing
from mercer.data.dataset import Dataset, Origin, Request, settle, whole_numbers
from mercer.data.decimal_text import powers_of_five
from mercer.data.files import block_size, line_blocks, replacing
from mercer.errors import InvalidInput

MAX_FEATURES = 1 << 40
MAX_LABEL_MATRIX = 1 << 30
_INT32 = (1 << 31) - 1
PIECE = 1 << 18  # a shorter text is not worth a second thread
SCRATCH = 28  # bytes that scanning takes for a byte of text: at most 16 for a colon, 28 for lines of one sign


class _Fault(Exception):
    """What is wrong, and at which byte of the piece."""


class _Piece:
    """Arrays read from some whole lines."""

    def __init__(self, text: NDArray[np.uint8]) -> None:
        rows, entries, labels = scanner.count(text)
        self.rows = np.empty((rows, 4), np.int64)
        self.indices = np.empty(entries, np.int64)
        self.values = np.empty(entries)
        self.labels = np.empty(labels)
        complaint, place, self.facts, notes = scanner.scan(
            text, MAX_FEATURES, *powers_of_five(), self.rows, self.indices, self.values, self.labels
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


def _pieces(block: bytes, path: Path, lines_before: int) -> list[_Piece]:
    """Scan a block of whole lines in as many pieces as there are threads."""
    text = np.frombuffer(block, np.uint8)
    cuts = [0]
    for _, stop in threads.split(len(block), step=PIECE)[:-1]:
        cuts.append(max(cuts[-1], block.find(b"\n", stop - 1) + 1 or len(block)))
    cuts.append(len(block))

    def read(start: int, stop: int) -> _Piece | InvalidInput:
        try:
            piece = _Piece(text[start:stop])
            piece.rows[:, 3] += lines_before + block.count(b"\n", 0, start) + 1
            return piece
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


class _Points:
    """The points of all blocks read so far: a CSR matrix, labels and query numbers, each held once."""

    def __init__(self, path: Path, allowance: Allowance) -> None:
        self.path, self.allowance = path, allowance
        self.indices, self.values = Growing(np.int32, allowance), Growing(np.float64, allowance)
        self.ends = Growing(np.int64, allowance)
        self.labels, self.label_counts = Growing(np.float64, allowance), Growing(np.int32, allowance)
        self.query, self.lines = Growing(np.int64, allowance), Growing(np.int64, allowance)
        self.smallest, self.largest, self.disorder = scanner.MOST, -1, False
        self._wide = False

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.ends)

    def append(self, piece: _Piece) -> None:
        """Take over what a piece holds."""
        if not len(piece.rows):
            return
        if len(piece.indices):
            self.smallest = min(self.smallest, int(piece.facts[scanner.SMALLEST]))
            self.largest = max(self.largest, int(piece.facts[scanner.LARGEST]))
            self.disorder |= bool(piece.facts[scanner.DISORDER])
        if self.largest > _INT32 and not self._wide:
            self.indices = self.indices.widened()
            self._wide = True
        self._check_queries(piece.rows[:, 2])
        self.lines.extend(piece.rows[:, 3])
        self.ends.extend(piece.rows[:, 0] + len(self.values))
        self.indices.extend(piece.indices)
        self.values.extend(piece.values)
        self.labels.extend(piece.labels)
        self.label_counts.extend(np.diff(piece.rows[:, 1], prepend=0))

    def _check_queries(self, query: NDArray[np.int64]) -> None:
        """Query numbers are on all lines or on none."""
        here = query >= 0
        if here.any() and (len(self.query) < self.n or not here.all()):
            row = 0 if len(self.query) < self.n else self.n + int(np.flatnonzero(~here)[0])
        elif len(self.query) and not here.all():
            row = self.n + int(np.flatnonzero(~here)[0])
        else:
            self.query.extend(query[here])
            return
        raise InvalidInput(f"{self.path}: point {row + 1} has no qid, though others have; give every line one, or none")

    def matrix(self, features: int | None, zero_based: bool | None) -> sparse.csr_matrix:
        """CSR matrix (n, d); indices take 32 bits where they suffice."""
        base, seen = self.base(zero_based)
        if features is not None and seen > features:
            raise InvalidInput(f"{self.path}: has {seen} features, more than the {features} asked for")
        d, entries = seen if features is None else features, len(self.values)
        if max(d, entries) > _INT32 and not self._wide:
            self.indices = self.indices.widened()
        indices = self.indices.values()
        indices -= base
        self.allowance.take(indices.itemsize * (self.n + 1))
        starts = np.zeros(self.n + 1, indices.dtype)
        starts[1:] = self.ends.values()
        self.allowance.take(16 * self.n)  # lengths of rows, which the constructor checks
        X = sparse.csr_matrix((self.values.values(), indices, starts), shape=(self.n, d))
        self.allowance.give_back(16 * self.n)
        self.ends.release()
        if self.disorder:
            self.allowance.take(4 * entries)
            X = _sorted(X, str(self.path))
            self.allowance.give_back(4 * entries)
        return X

    def base(self, zero_based: bool | None) -> tuple[int, int]:
        """Index of the first feature (0 or 1), and the number of features seen."""
        if zero_based is None:
            zero_based = self.smallest == 0
        if self.smallest == 0 and not zero_based:
            raise InvalidInput(f"{self.path}: has a feature 0, but zero_based=False says they count from 1")
        base = 0 if zero_based else 1
        return base, max(0, self.largest + 1 - base)

    def targets(self, multilabel: bool | None) -> tuple[Any, tuple[float, ...] | None]:
        """Targets (n,), or a 0/1 matrix (n, k) with its k labels, or None when no line has a label."""
        counts, labels = self.label_counts.values(), self.labels.values()
        if multilabel is None:
            multilabel = bool(np.any(counts > 1))
        if multilabel:
            return self._indicator(counts, labels)
        if not len(labels):
            return None, None
        if np.any(counts != 1):
            row = int(np.flatnonzero(counts != 1)[0]) + 1
            remedy = "give it one, or read with multilabel=True"
            raise InvalidInput(f"{self.path}: point {row} has {counts[row - 1]} labels; {remedy}")
        self.allowance.take(labels.nbytes)
        return whole_numbers(labels), None

    def _indicator(self, counts: NDArray[np.int32], labels: NDArray[np.float64]) -> tuple[Any, tuple[float, ...]]:
        """0/1 matrix (n, k) of the labels of every point, and the k labels."""
        scratch = 8 * labels.nbytes  # sorted labels, their order, their codes, the row of each, and NumPy's copies
        self.allowance.take(scratch)
        names, code = np.unique(labels, return_inverse=True)
        if len(counts) * len(names) > MAX_LABEL_MATRIX:
            raise InvalidInput(f"{self.path}: a label matrix of {len(counts)} x {len(names)} is beyond the limit")
        self.allowance.take(len(counts) * len(names))
        indicator = np.zeros((len(counts), len(names)), np.int8)
        indicator[np.repeat(np.arange(len(counts)), counts), code] = 1
        self.allowance.give_back(scratch)
        return indicator, tuple(whole_numbers(names).tolist())


def _sorted(X: sparse.csr_matrix, source: str) -> sparse.csr_matrix:
    """Features of every row in order; a feature given twice is an error."""
    X.has_sorted_indices = False
    X.sort_indices()
    same = np.zeros(X.nnz + 1, dtype=bool)
    same[1:-1] = X.indices[1:] == X.indices[:-1]
    same[X.indptr] = False
    if same.any():
        place = int(np.argmax(same))
        row = int(np.searchsorted(X.indptr, place, side="right"))
        raise InvalidInput(f"{source}: point {row} gives feature {int(X.indices[place]) + 1} twice; keep one of them")
    return X


def read_svmlight(request: Request) -> Dataset:
    """Read svmlight text; see `mercer.data.read` for the arguments."""
    path, like = request.path, request.like
    if request.groups is not None:
        raise InvalidInput(
            f"{path}: groups={request.groups!r}: the lines of svmlight files carry their queries as qid:"
        )
    allowance = Allowance(request.limit, path)
    points = _Points(path, allowance)
    for block, lines in _numbered(line_blocks(path, allowance, block_size(allowance, SCRATCH))):
        _add(points, block, lines)
    if not points.n:
        raise InvalidInput(f"{path}: holds no points")
    features = like.d if like is not None and request.features is None else request.features
    return _finished(points, features, request.zero_based, request.multilabel, request.sparse)


def svmlight_blocks(path: Path, size: int, *, sparse: bool | None = None) -> Iterator[Dataset]:
    """The points of about `size` bytes of text at a time, in memory for one block.

    The first block says how many features there are, and whether they count from 0 or 1.
    """
    first: Dataset | None = None
    for block, lines in _numbered(line_blocks(path, Allowance(None, path), size)):
        points = _Points(path, Allowance(None, path))
        _add(points, block, lines)
        if not points.n:
            continue
        if first is None:
            first = _finished(points, None, None, False, sparse)
            sparse = first.is_sparse
            yield first
        else:
            assert first.origin is not None
            yield _finished(points, first.d, first.origin.first_feature == 0, False, sparse)


def _numbered(blocks: Iterator[bytes]) -> Iterator[tuple[bytes, int]]:
    """Blocks of text, each with the number of lines before it."""
    lines = 0
    for block in blocks:
        yield block, lines
        lines += block.count(b"\n")


def _add(points: _Points, block: bytes, lines: int) -> None:
    """Scan a block of whole lines that begins after so many others."""
    points.allowance.take(SCRATCH * len(block))
    for piece in _pieces(block, points.path, lines):
        points.append(piece)
    points.allowance.give_back(SCRATCH * len(block))


def _finished(
    points: _Points, features: int | None, zero_based: bool | None, multilabel: bool | None, sparse: bool | None
) -> Dataset:
    """The data set of all points read."""
    query = points.query.values() if len(points.query) else None
    X = points.matrix(features, zero_based)
    y, names = points.targets(multilabel)
    origin = Origin(points.lines.values(), "line", points.base(zero_based)[0])
    X = settle(X, sparse, points.allowance)
    return Dataset(X, y, label_names=names, query=query, source=str(points.path), origin=origin)


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
