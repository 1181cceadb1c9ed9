"""The memory that reading one file may take, and arrays that grow within it.

A compressed file of a few kilobytes can unfold to any size, and a text of a few megabytes can ask for an array of
gigabytes.  Readers therefore ask before they take memory: every buffer, decompressor, scratch array and result of s
bytes is `take(s)`, and `give_back(s)` when it is gone.  With L bytes allowed, the sum of what is held never passes
7/8 L, and the rest is for what is not worth counting.  What is asked for is an upper bound of what becomes resident, so
that L bounds the growth of the process.
"""

import mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import resources as memory
from mercer.errors import InvalidInput

SPARE = 8  # the eighth part is kept for what is not counted: small objects, buffers, holes in the heap
SMALL = 1 << 18  # bytes; there may be more columns than a process may have memory maps


def reading_limit(limit: int | str | None) -> int:
    """Most bytes that reading may take: as stated, else half of the memory that is free."""
    return memory.available() // 2 if limit is None else memory.parse(limit)


class Allowance:
    """Bytes that reading `path` may still take; asking for more than is left is an error that names the file."""

    def __init__(self, limit: int | str | None, path: Path) -> None:
        self.limit = reading_limit(limit)
        self.left = self.limit - self.limit // SPARE
        self.path = path

    def take(self, size: int) -> None:
        """Ask for `size` bytes before they are taken."""
        if size > self.left:
            raise self.exhausted()
        self.left -= size

    def give_back(self, size: int) -> None:
        """Say that `size` bytes are no longer held."""
        self.left += size

    def exhausted(self) -> InvalidInput:
        """The error of a file that needs more."""
        return InvalidInput(
            f"{self.path}: takes more than {memory.show(self.limit)} of memory, the limit for reading (by default half "
            "of what is free); raise it with limit=, or give a smaller file"
        )


class Growing:
    """A vector of float64, int64 or int32 that grows at its end, held once.

    Beyond SMALL bytes it lies in a memory map of its own: the operating system moves it as it grows, pages not yet
    written take no memory, and all of it is given back at once.  A heap would keep the holes of what has moved.
    """

    def __init__(self, kind: type[np.generic], allowance: Allowance) -> None:
        self._kind: np.dtype[Any] = np.dtype(kind)
        self._storage: bytearray | mmap.mmap = bytearray()
        self._used = 0  # bytes
        self._allowance = allowance

    def __len__(self) -> int:
        return self._used // self._kind.itemsize

    def extend(self, values: NDArray[Any]) -> None:
        """Append the values, converted to the kind of this vector."""
        added = np.ascontiguousarray(values, dtype=self._kind)
        if not added.size:
            return
        self._allowance.take(added.nbytes)
        end = self._used + added.nbytes
        if end > len(self._storage):
            self._storage = _enlarged(self._storage, self._used, end + end // 4)
        self._storage[self._used : end] = added.data.cast("B")
        self._used = end

    def values(self) -> NDArray[Any]:
        """The vector, without a copy; it must not grow any more."""
        return np.frombuffer(self._storage, dtype=self._kind, count=len(self))

    def release(self) -> None:
        """Forget all values."""
        self._allowance.give_back(self._used)
        self._storage, self._used = bytearray(), 0

    def widened(self) -> "Growing":
        """The same integers in 64 bits."""
        wide = Growing(np.int64, self._allowance)
        wide.extend(self.values())
        self.release()
        return wide


def _enlarged(storage: bytearray | mmap.mmap, used: int, size: int) -> bytearray | mmap.mmap:
    """The same bytes with room for `size`."""
    if size < SMALL:
        assert isinstance(storage, bytearray)
        storage.extend(bytes(size - len(storage)))
        return storage
    if isinstance(storage, mmap.mmap):
        try:
            storage.resize(size)
            return storage
        except (OSError, SystemError, ValueError):
            pass  # a system without mremap, or a view that is still there
    larger = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    larger[:used] = storage[:used]
    return larger
