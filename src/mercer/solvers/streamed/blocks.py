"""Rows that come in blocks, so that data larger than memory can be trained on in fixed memory.

A source can be read again and again, always in the same order:

    for X, Y in source.blocks():          X (rows, d) dense or CSR, Y (rows, k) float64
        ...

`ArrayBlocks` reads arrays, CSR matrices and memory-mapped files, `ParquetBlocks` a Parquet file a batch of rows at a
time, `IteratorBlocks` whatever a function without arguments gives afresh on each call; `MappedBlocks` changes the
targets of another source, for instance labels into columns of +-1.

A solver passes over a source several times and its answer is right only when every pass sees the same rows in the same
order.  `CheckedRows` holds a source to that: the first complete pass notes the number of rows and a checksum that
depends on their order, every later one must agree, and NaN, infinity or a changed width are refused where they occur.
"""

import mmap
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mercer.arrays import Array, Index
from mercer.errors import InvalidInput, MissingDependency

Block = tuple[Any, Any]

BLOCK_BYTES = 32 << 20
_ODD = np.uint64(0x9E3779B97F4A7C15)


class BlockSource(ABC):
    """Rows of points and targets, re-iterable; `n` is None while the number of rows is not known."""

    n: int | None = None
    d: int = 0

    @abstractmethod
    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Blocks of the rows from `start` on: points (rows, d) and targets (rows,) or (rows, k)."""

    def rows(self, index: Index) -> Block:
        """The rows named by a sorted `index` (p,): points (p, d) and targets; read in one scan."""
        points, targets, at = [], [], 0
        for X, Y in self.blocks():
            low, high = np.searchsorted(index, (at, at + X.shape[0]))
            if high > low:
                inside = index[low:high] - at
                points.append(X[inside])
                targets.append(np.asarray(Y)[inside])
            at += X.shape[0]
        if sum(part.shape[0] for part in points) < len(index):
            raise InvalidInput(f"the source ended after {at} rows, row {int(index[-1])} was asked for")
        stacked = sp.vstack(points, format="csr") if sp.issparse(points[0]) else np.concatenate(points)
        return stacked, np.concatenate(targets)


class ArrayBlocks(BlockSource):
    """Rows of an array, a CSR matrix or a memory-mapped array; `rows` is the length of a block."""

    def __init__(self, X: Any, y: ArrayLike, rows: int | None = None) -> None:
        X = X.tocsr() if sp.issparse(X) else X
        self.X = X if isinstance(X, np.ndarray) or sp.issparse(X) else np.asarray(X)
        self.y = y if isinstance(y, np.ndarray) else np.asarray(y)
        if self.X.ndim != 2:
            raise InvalidInput(f"X must have two dimensions, got shape {self.X.shape}")
        self.n, self.d = (int(size) for size in self.X.shape)
        if self.y.ndim not in (1, 2) or self.y.shape[0] != self.n:
            raise InvalidInput(f"y has shape {self.y.shape}, X has {self.n} rows")
        self.step = _block_rows(self.d) if rows is None else _positive(rows)

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Slices of X and y; pages of a mapped file are let go when the block is done with."""
        for first in range(start, len(self.y), self.step):
            yield self.X[first : first + self.step], np.asarray(self.y[first : first + self.step])
            _let_go(self.X)
            _let_go(self.y)

    def rows(self, index: Index) -> Block:
        """The rows named by `index`, gathered directly."""
        chosen = self.X[index], np.asarray(self.y[index])
        _let_go(self.X)
        _let_go(self.y)
        return chosen


class ParquetBlocks(BlockSource):
    """Rows of a Parquet file; `target` names the column or columns of Y, all others (or `features`) are X."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        target: str | Sequence[str],
        features: Sequence[str] | None = None,
        rows: int | None = None,
    ) -> None:
        self.path = os.fspath(path)
        names = [target] if isinstance(target, str) else list(target)
        with self._file() as file:
            known, self.n = list(file.schema_arrow.names), int(file.metadata.num_rows)
        inputs = [name for name in known if name not in names] if features is None else list(features)
        for name in (*names, *inputs):
            if name not in known:
                raise InvalidInput(f"{self.path}: has no column {name!r}; its columns are {', '.join(known[:8])} ...")
        self.features, self.target, self.single = inputs, names, isinstance(target, str)
        self.d = len(inputs)
        self.step = _block_rows(self.d) if rows is None else _positive(rows)

    def _file(self) -> Any:
        try:
            from pyarrow import ArrowException, parquet
        except ImportError:
            raise MissingDependency("Parquet files need pyarrow: pip install 'mercer[parquet]'") from None
        try:
            return parquet.ParquetFile(self.path, memory_map=False, pre_buffer=False)
        except (ArrowException, OSError, ValueError) as error:
            raise InvalidInput(f"{self.path}: cannot be read as Parquet ({str(error).splitlines()[0]})") from None

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Batches of rows; whole row groups before `start` are not read."""
        with self._file() as file:
            sizes = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
            ends = np.cumsum(sizes)
            first = int(np.searchsorted(ends, start, side="right"))
            skip = start - (int(ends[first - 1]) if first else 0)
            groups = list(range(first, len(sizes)))
            if not groups:
                return
            for batch in file.iter_batches(self.step, row_groups=groups, columns=[*self.features, *self.target]):
                if skip >= batch.num_rows:
                    skip -= batch.num_rows
                    continue
                yield self._arrays(batch.slice(skip))
                skip = 0

    def _arrays(self, batch: Any) -> Block:
        X = np.empty((batch.num_rows, self.d))
        for j, name in enumerate(self.features):
            try:
                X[:, j] = batch.column(name).to_numpy(zero_copy_only=False)
            except (TypeError, ValueError):
                kind = batch.schema.field(name).type
                raise InvalidInput(f"{self.path}: column {name!r} holds {kind}, not numbers; see features=") from None
        targets = [batch.column(name).to_numpy(zero_copy_only=False) for name in self.target]
        return X, targets[0] if self.single else np.column_stack(targets)


class IteratorBlocks(BlockSource):
    """Blocks (X, Y) that `factory()` gives afresh on each call, for instance a generator function."""

    def __init__(self, factory: Callable[[], Iterable[Block]], n: int | None = None) -> None:
        self.factory, self.n = factory, n
        for X, _ in factory():
            self.d = int(X.shape[1])
            return
        raise InvalidInput("the factory gave no block; it must return a fresh iterable of (X, Y) on each call")

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """The factory's blocks, those before `start` read and dropped."""
        at = 0
        for X, Y in self.factory():
            rows = X.shape[0]
            if at + rows > start:
                skip = max(0, start - at)
                yield X[skip:], np.asarray(Y)[skip:]
            at += rows


class MappedBlocks(BlockSource):
    """Another source with targets changed by `function` (rows,) -> (rows, k)."""

    def __init__(self, source: BlockSource, function: Callable[[Any], Any]) -> None:
        self.source, self.function, self.d = source, function, source.d

    @property
    def n(self) -> int | None:  # type: ignore[override]  # the source beneath may yet learn it
        """Rows of the source beneath."""
        return self.source.n

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """The blocks of the source beneath, targets changed."""
        return ((X, self.function(Y)) for X, Y in self.source.blocks(start))

    def rows(self, index: Index) -> Block:
        """Rows of the source beneath, targets changed."""
        X, Y = self.source.rows(index)
        return X, self.function(Y)


def one_against_rest(source: BlockSource, classes: ArrayLike) -> MappedBlocks:
    """Labels as columns of +-1, one for each of `classes` (k,): +1 where the row is of that class."""
    names = np.asarray(classes)
    return MappedBlocks(source, lambda y: np.where(np.asarray(y).reshape(-1, 1) == names, 1.0, -1.0))


def as_source(X: Any, y: ArrayLike | None = None) -> BlockSource:
    """A source as it is, or the rows of X and y."""
    if isinstance(X, BlockSource):
        return X
    if y is None:
        raise InvalidInput("y is missing: pass X and y, or a BlockSource that gives both")
    return ArrayBlocks(X, y)


class CheckedRows:
    """Passes over a source that must all see the same rows in the same order.

    `n` and `k` are known after the first complete pass (n earlier where the source says it).
    """

    def __init__(self, source: BlockSource) -> None:
        self.source = source
        self.n = source.n
        self.k: int | None = None
        self.checksum: int | None = None

    def blocks(self, start: int = 0, checksum: int = 0) -> Iterator[tuple[int, Any, Array, int]]:
        """(first row, X, Y (rows, k), checksum after it) of each block from `start` on, checked."""
        at, running = start, checksum
        for X, raw in self.source.blocks(start):
            Y = self._checked(at, X, raw)
            running = (running + _checksum(at, X, Y)) % (1 << 64)
            rows = Y.shape[0]
            if self.n is not None and at + rows > self.n:
                raise InvalidInput(f"the source gave more than the {self.n} rows it had before")
            if rows:
                yield at, X, Y, running
            at += rows
        self._close(at, running)

    def noted(self) -> NDArray[np.uint64]:
        """The checksum of a complete pass for a checkpoint, as an array; empty while there was none."""
        return np.array([] if self.checksum is None else [self.checksum], dtype=np.uint64)

    def recall(self, noted: NDArray[np.uint64]) -> None:
        """Hold the source to the checksum of an earlier run."""
        self.checksum = int(noted[0]) if len(noted) else None

    def count(self) -> int:
        """Number of rows; one scan without kernel work where the source does not know it."""
        if self.n is None:
            for _ in self.blocks():
                pass
        assert self.n is not None
        return self.n

    def rows(self, index: Index) -> tuple[Any, Array]:
        """The rows named by a sorted index."""
        X, Y = self.source.rows(index)
        return X, self._checked(int(index[0]), X, Y)

    def _checked(self, at: int, X: Any, raw: Any) -> Array:
        if X.ndim != 2 or X.shape[1] != self.source.d:
            raise InvalidInput(
                f"the block at row {at} has shape {X.shape}; the first one had {self.source.d} columns, and so must all"
            )
        if X.dtype.kind not in "biuf":
            raise InvalidInput(f"the block at row {at} holds {X.dtype}, not real numbers")
        try:
            Y = np.asarray(raw, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInput(f"the targets at row {at} are not numbers: see MappedBlocks for labels") from None
        Y = np.ascontiguousarray(Y.reshape(-1, 1) if Y.ndim == 1 else Y)
        if Y.ndim != 2 or Y.shape[0] != X.shape[0]:
            raise InvalidInput(f"the block at row {at} has {X.shape[0]} points but targets of shape {np.shape(raw)}")
        if self.k is not None and Y.shape[1] != self.k:
            raise InvalidInput(f"the block at row {at} has {Y.shape[1]} targets, those before had {self.k}")
        self.k = Y.shape[1]
        values = X.data if sp.issparse(X) else X
        # A sum is finite exactly when no term is NaN or infinite, short of overflow, and costs one reading.
        if not (np.isfinite(values.sum(dtype=np.float64)) or np.isfinite(values).all()) or not np.isfinite(Y).all():
            raise InvalidInput(f"the block at row {at} holds NaN or infinite values: remove or impute them")
        return Y

    def _close(self, rows: int, checksum: int) -> None:
        if rows == 0:
            raise InvalidInput("the source holds no rows")
        if self.n is not None and rows < self.n:
            raise InvalidInput(
                f"the source ended after {rows} rows of {self.n}: it must give the same rows on each pass "
                "(pass a function that makes a fresh iterator, not the iterator itself)"
            )
        if self.checksum is not None and checksum != self.checksum:
            raise InvalidInput("the source gave other rows, or another order, than on the first pass")
        self.n, self.checksum = rows, checksum


def _checksum(at: int, X: Any, Y: Array) -> int:
    """Sum over rows i of (2 i + 1) times the bits of Y_i and of one value of X_i, modulo 2^64: blocks may vary."""
    rows = Y.shape[0]
    position = (np.arange(at, at + rows, dtype=np.uint64) * np.uint64(2) + np.uint64(1)) * _ODD
    if sp.issparse(X):
        sums = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
    elif X.shape[1]:
        sums = X[np.arange(rows), np.arange(at, at + rows) % X.shape[1]].astype(np.float64)
    else:
        sums = np.zeros(rows)
    bits = (Y + 0.0).view(np.uint64).sum(axis=1, dtype=np.uint64) + np.uint64(3) * (sums + 0.0).view(np.uint64)
    return int(np.sum(position * bits, dtype=np.uint64))


def _block_rows(d: int) -> int:
    """Rows of float64 in a block of BLOCK_BYTES, between 1,024 and 65,536."""
    return int(min(65536, max(1024, BLOCK_BYTES // (8 * max(1, d)))))


def _positive(rows: int) -> int:
    if rows < 1:
        raise InvalidInput(f"rows must be at least 1, got {rows}")
    return int(rows)


def _let_go(array: Any) -> None:
    """Drop the pages a mapped file has brought into this process; they stay in the file cache."""
    if isinstance(array, np.memmap) and getattr(array, "mode", "c") in ("r", "r+") and hasattr(mmap, "MADV_DONTNEED"):
        mapping: Any = getattr(array, "_mmap", None)
        with suppress(AttributeError, ValueError, OSError):
            mapping.madvise(mmap.MADV_DONTNEED)
