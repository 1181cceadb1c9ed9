"""Files: compressed text read in blocks under a size limit, and writing that never leaves half a file.

A compressed file of a few kilobytes can unfold to any size.  What is read is therefore counted, and reading stops with
a clear error when it passes the limit, by default half of the memory that is free.
"""

import bz2
import gzip
import lzma
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from mercer.errors import InvalidInput
from mercer.gram import memory

BLOCK = 32 << 20
COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


def stem_and_format(path: Path) -> tuple[str, str]:
    """Name without its endings, and the ending that says the format: a.train.svm.xz gives ("a.train", "svm")."""
    name = path.name
    if path.suffix.lower() in COMPRESSED:
        name = name[: -len(path.suffix)]
    stem, dot, ending = name.rpartition(".")
    return (stem, ending.lower()) if dot else (name, "")


def reading_limit(limit: int | str | None) -> int:
    """Largest number of bytes to read, after decompression."""
    return memory.available() // 2 if limit is None else memory.parse(limit)


def open_binary(path: Path) -> BinaryIO:
    """Open for reading, through the decompressor its ending names."""
    opener = COMPRESSED.get(path.suffix.lower(), open)
    try:
        return cast(BinaryIO, opener(path, "rb"))
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


def line_blocks(path: Path, limit: int | str | None = None, size: int = BLOCK) -> Iterator[bytes]:
    """The file in pieces of about `size` bytes, each cut after a line end."""
    allowed = reading_limit(limit)
    seen = 0
    rest: list[bytes] = []
    with open_binary(path) as stream:
        while piece := read_block(stream, size, path):
            seen += len(piece)
            if seen > allowed:
                raise InvalidInput(
                    f"{path}: holds more than {allowed} bytes of text, the limit for reading; raise it with limit="
                )
            cut = piece.rfind(b"\n") + 1
            if cut:
                yield b"".join([*rest, piece[:cut]])
                rest = []
            rest.append(piece[cut:])
    if last := b"".join(rest):
        yield last


def read_whole(path: Path, limit: int | str | None = None) -> bytes:
    """The whole file, decompressed, within the limit."""
    allowed = reading_limit(limit)
    with open_binary(path) as stream:
        content = read_block(stream, allowed + 1, path)
    if len(content) > allowed:
        raise InvalidInput(f"{path}: holds more than {allowed} bytes, the limit for reading; raise it with limit=")
    return content


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write beside the file, compressed as its ending says, and rename when all is written."""
    folder = path.resolve().parent
    if not folder.is_dir():
        raise InvalidInput(f"{path}: the folder {folder} does not exist")
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=folder)
    os.close(handle)
    opener = COMPRESSED.get(path.suffix.lower(), open)
    try:
        with cast(BinaryIO, opener(name, "wb")) as stream:
            yield stream
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
