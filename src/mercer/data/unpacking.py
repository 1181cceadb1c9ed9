"""Decompressed streams whose memory is bounded.

An .xz file says how large a dictionary its decompressor must keep, up to 4 GiB, whatever the size of the file.  The
standard opener takes that at its word; here the memory is asked for first.
"""

import bz2
import gzip
import io
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

from mercer import resources as memory
from mercer.data.allowance import Allowance
from mercer.errors import InvalidInput

# Endings of compressed files, with what opens them for writing.
COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}

PACKED = 1 << 16  # bytes read from a compressed file at once
XZ_MEMORY = (10 << 20, 66 << 20, 512 << 20)  # for xz -6 and below, for xz -9, and the most that is given
GZIP_MEMORY, BZIP2_MEMORY = 1 << 20, 5 << 20
OUT_OF_MEMORY = "Memory usage limit exceeded"


class XzStream(io.RawIOBase):
    """The content of an .xz or .lzma file (also of several, one after another), decompressed as it is read."""

    def __init__(self, path: Path, allowance: Allowance) -> None:
        super().__init__()
        self._file = path.open("rb")
        self._allowance = allowance
        self._given = 0
        self._left = b""
        self._begun = False
        self._decoder: lzma.LZMADecompressor | None = None

    def readable(self) -> bool:
        """Always."""
        return True

    def close(self) -> None:
        """Close the file and give the memory back."""
        if not self.closed:
            self._file.close()
            self._allowance.give_back(self._given)
            super().close()

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as one step goes; 0 at the end."""
        while True:
            if self._decoder is None:
                packed = self._head()
                if not packed:
                    return 0
                found = self._first(packed, len(buffer))
            else:
                packed = self._file.read(PACKED) if self._decoder.needs_input else b""
                if self._decoder.needs_input and not packed:
                    raise EOFError("the file ends too early")
                found = self._step(packed, len(buffer))
            assert self._decoder is not None
            if self._decoder.eof:
                self._left, self._decoder = self._decoder.unused_data, None
            if found:
                buffer[: len(found)] = found
                return len(found)

    def _head(self) -> bytes:
        """First bytes of the next stream; zeros after a finished one pad it."""
        packed, self._left = self._left or self._file.read(PACKED), b""
        while self._begun and packed and not (packed := packed.lstrip(b"\0")):
            packed = self._file.read(PACKED)
        self._begun = True
        return packed

    def _step(self, packed: bytes, size: int) -> bytes:
        assert self._decoder is not None
        try:
            return self._decoder.decompress(packed, size)
        except lzma.LZMAError as error:
            raise self._too_large() if OUT_OF_MEMORY in str(error) else error from None

    def _first(self, packed: bytes, size: int) -> bytes:
        """Begin a stream with the least memory that serves it."""
        for wanted in XZ_MEMORY:
            self._allowance.take(max(0, wanted - self._given))
            self._given = max(wanted, self._given)
            self._decoder = lzma.LZMADecompressor(memlimit=wanted)
            try:
                return self._decoder.decompress(packed, size)
            except lzma.LZMAError as error:
                if OUT_OF_MEMORY not in str(error):
                    raise
        raise self._too_large()

    def _too_large(self) -> InvalidInput:
        most = memory.show(XZ_MEMORY[-1])
        return InvalidInput(
            f"{self._allowance.path}: its decompressor would take more than {most} of memory; pack it again with xz -9"
        )


def open_unpacked(path: Path, allowance: Allowance) -> BinaryIO:
    """Open for reading, through the decompressor that the ending of the name asks for."""
    ending = path.suffix.lower()
    if ending == ".xz":
        return cast(BinaryIO, io.BufferedReader(XzStream(path, allowance), PACKED))
    if ending in COMPRESSED:
        allowance.take(GZIP_MEMORY if ending == ".gz" else BZIP2_MEMORY)
    return cast(BinaryIO, COMPRESSED.get(ending, open)(path, "rb"))
