"""Files: compressed text read in blocks within a memory allowance, and writing that never leaves half a file."""

import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, cast

from mercer import writing
from mercer.data.allowance import Allowance
from mercer.data.unpacking import COMPRESSED, open_unpacked
from mercer.errors import InvalidInput

BLOCK = 8 << 20
SMALLEST_BLOCK = 4 << 10
PIECE = 1 << 18  # bytes of a whole file read at once


def stem_and_format(path: Path) -> tuple[str, str]:
    """Name without its endings, and the ending that says the format: a.train.svm.xz gives ("a.train", "svm")."""
    name = path.name
    if path.suffix.lower() in COMPRESSED:
        name = name[: -len(path.suffix)]
    stem, dot, ending = name.rpartition(".")
    return (stem, ending.lower()) if dot else (name, "")


def open_binary(path: Path, allowance: Allowance | None = None) -> BinaryIO:
    """Open for reading, through the decompressor its ending names, whose memory counts among what is allowed."""
    try:
        return open_unpacked(path, allowance or Allowance(None, path))
    except FileNotFoundError:
        raise InvalidInput(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise InvalidInput(f"{path}: is a folder, not a data file") from None
    except PermissionError:
        raise InvalidInput(f"{path}: may not be read by this user") from None


def read_block(stream: IO[bytes], size: int, path: Path) -> bytes:
    """Read up to `size` bytes; a damaged compressed file is an error that names it."""
    try:
        return stream.read(size)
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error, OSError) as error:
        raise InvalidInput(f"{path}: cannot be read ({error or 'the file ends too early'})") from None


def block_size(allowance: Allowance, scratch: int) -> int:
    """Bytes of text to treat at once when each takes `scratch` bytes beside it: an eighth of the limit for all."""
    return min(BLOCK, max(SMALLEST_BLOCK, allowance.limit // (8 * scratch)))


def line_blocks(path: Path, allowance: Allowance, size: int) -> Iterator[bytes]:
    """The file in pieces of about `size` bytes, each cut after a line end; a longer line is one piece."""
    allowance.take(3 * size)  # what is read, the lines of it, and the lines the caller still holds
    rest: list[bytes] = []
    held = 0
    with open_binary(path, allowance) as stream:
        while piece := read_block(stream, size, path):
            cut = piece.rfind(b"\n") + 1
            if cut:
                yield b"".join([*rest, piece[:cut]])
                allowance.give_back(held)
                rest, held = [piece[cut:]], 0
            else:
                allowance.take(2 * len(piece))  # once as a piece, once in the whole line
                held += 2 * len(piece)
                rest.append(piece)
    if last := b"".join(rest):
        yield last
    allowance.give_back(held + 3 * size)


def open_whole(path: Path, allowance: Allowance) -> tuple[BinaryIO, int]:
    """A stream in which one can go back and forth, and its length: the file itself, or what it unpacks to."""
    stream = open_binary(path, allowance)
    if path.suffix.lower() not in COMPRESSED:
        return stream, os.fstat(stream.fileno()).st_size
    content = io.BytesIO()
    with stream:
        while piece := read_block(stream, PIECE, path):
            allowance.take(len(piece) + len(piece) // 8)  # BytesIO keeps an eighth in reserve
            content.write(piece)
    size = content.tell()
    content.seek(0)
    return content, size


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write beside the file, compressed as its ending says, and rename when all is written."""
    opener = COMPRESSED.get(path.suffix.lower())
    with writing.replacing(path) as whole:
        if opener is None:
            yield whole
            return
        with cast(BinaryIO, opener(whole, "wb")) as stream:
            yield stream
