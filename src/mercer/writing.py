"""Files that appear complete or not at all.

A file is written in the folder of its target as `.NAME.HOST-PID-RANDOM.part`, and takes the target's name when every
byte is on the disk.  A process that is killed leaves its part behind; the next one that writes the same target removes
it, for the name says which process wrote it, and that it no longer lives.  A device or a pipe is written directly:
renaming would take its place.
"""

import os
import platform
import re
import secrets
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from mercer.errors import CannotWrite, NotSaved

PROBE = 64 << 10  # bytes tried before work begins: full disks often still take a file without content
LONGEST = 100  # characters of the target's name within that of its part, which has a limit of 255 bytes


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write beside the file and rename when all is written; links are followed."""
    target = Path(path).resolve()
    try:
        if target.exists() and not stat.S_ISREG(os.stat(target).st_mode):
            with open(target, "wb") as stream:
                yield stream
            return
        with _part(target) as (stream, name):
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            os.replace(name, target)
    except OSError as error:
        raise cannot_write(path, error) from error


@contextmanager
def keeping_on() -> Iterator[None]:
    """Save a checkpoint inside: when it cannot be written a warning says so, and the training goes on."""
    try:
        yield
    except CannotWrite as error:
        warnings.warn(f"{error}. The training goes on; what it reaches is not saved.", NotSaved, stacklevel=4)


def try_writing(path: str | os.PathLike[str]) -> None:
    """Raise CannotWrite where a file of this name could not be written; nothing is left behind."""
    target = Path(path).resolve()
    try:
        if target.is_dir():
            raise CannotWrite(f"{path}: is a folder; name a file in it")
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(13, "the file there is write-protected")
        if target.exists() and not stat.S_ISREG(os.stat(target).st_mode):
            return
        with _part(target) as (stream, _):
            stream.write(bytes(PROBE))
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_write(path: str | os.PathLike[str], error: OSError) -> CannotWrite:
    """The error with the name of the file, and the remedy."""
    if isinstance(error, CannotWrite):
        return error
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        return CannotWrite(f"{path}: the folder {folder} does not exist; create it first")
    why = error.strerror or str(error) or type(error).__name__
    return CannotWrite(f"{path}: cannot be written ({why}); make room or name another place")


@contextmanager
def _part(target: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A new file beside the target, gone on leaving unless it was renamed."""
    remove_orphans(target)
    own = f"{_host()}-{os.getpid()}-{secrets.token_hex(4)}"
    name = target.with_name(f".{target.name[:LONGEST]}.{own}.part")
    try:
        with open(
            os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666), "wb"
        ) as part:
            yield part, name
    finally:
        name.unlink(missing_ok=True)


def remove_orphans(target: Path) -> None:
    """Remove what processes of this host that no longer live have left of earlier attempts at the target."""
    own = re.compile(rf"\.{re.escape(target.name[:LONGEST])}\.{re.escape(_host())}-(\d+)-[0-9a-f]{{8}}\.part")
    if not target.parent.is_dir():
        return
    for entry in os.scandir(target.parent):
        found = own.fullmatch(entry.name)
        if found is not None and not _lives(int(found[1])):
            Path(entry.path).unlink(missing_ok=True)


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9]", "", platform.node())[:32] or "here"


def _lives(process: int) -> bool:
    """Whether a process of this number runs; where that cannot be told, it counts as one that does."""
    if process == os.getpid():
        return True
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
