"""Files on the command line: what they hold, "-" for standard input, and where results may go.

A result never takes the place of its own input.  A model takes the place of a model only where that was said: the
default name is refused while a model has it, and a name that was given is refused while another kind of file has it,
unless --overwrite is given.
"""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from mercer import writing
from mercer.data.files import open_binary, read_block, stem_and_format
from mercer.data.unpacking import COMPRESSED
from mercer.errors import InvalidInput, MercerError

Kind = Literal["model", "libsvm", "data"]

LIBSVM_HEADS = (b"svm_type ", b"solver_type ")
STANDARD_INPUT = "standard input"
BLOCK = 1 << 20

# How files of a kind begin.
ARRAYS = {b"\x93NUMPY": "npy", b"PK\x03\x04": "npz", b"PAR1": "parquet"}
PACKED = {b"\x1f\x8b": ".gz", b"\xfd7zXZ\x00": ".xz", b"BZh": ".bz2"}
SVMLIGHT = re.compile(rb"^[^\s,;]*(?:[ \t]+qid:\d+)?(?:[ \t]+\d+:\S+)+[ \t]*(?:#.*)?$")


def kind_of(path: Path) -> Kind:
    """By the first bytes: a model begins with the length of a JSON header, one of LIBSVM with its type."""
    with open_binary(path) as stream:
        first = read_block(stream, 256, path)
    if first[8:9] == b"{" and first[3:8] == bytes(5):
        return "model"
    if first.startswith(LIBSVM_HEADS):
        return "libsvm"
    return "data"


# Standard input ----------------------------------------------------------------------------------------------------


def is_standard_input(path: Path) -> bool:
    """Whether the path stands for standard input."""
    return str(path) == "-"


@contextmanager
def incoming(path: Path, format: str | None = None) -> Iterator[Path]:
    """The file itself; for "-" a temporary file with what standard input holds, under an ending that says its format.

    Errors inside speak of standard input, not of the temporary file.
    """
    if not is_standard_input(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="mercer-") as folder:
        whole = _spooled(Path(folder) / "input", format)
        try:
            yield whole
        except MercerError as error:
            error.args = tuple(
                part.replace(str(whole), STANDARD_INPUT) if isinstance(part, str) else part for part in error.args
            )
            raise


def _spooled(place: Path, format: str | None) -> Path:
    """Standard input as a file; its name gets the ending that its first bytes ask for."""
    try:
        with open(place, "wb") as stream:
            shutil.copyfileobj(sys.stdin.buffer, stream, BLOCK)
    except OSError as error:
        raise InvalidInput(
            f"{STANDARD_INPUT}: cannot be kept in {place.parent.parent} ({error.strerror}); set TMPDIR elsewhere"
        ) from error
    if place.stat().st_size == 0:
        raise InvalidInput(f"{STANDARD_INPUT}: is empty; give it data, or name a file")
    ending = next((ending for head, ending in PACKED.items() if _starts(place, head)), "")
    packed = place.rename(place.with_name(place.name + ending)) if ending else place
    named = packed.with_name(f"{place.name}.{format or _sniffed(packed)}{ending}")
    return packed.rename(named)


def _starts(path: Path, head: bytes) -> bool:
    with open(path, "rb") as stream:
        return stream.read(len(head)) == head


def _sniffed(path: Path) -> str:
    """The format of a file without a name: NumPy and Parquet by their first bytes, text by its first line of data."""
    with open_binary(path) as stream:
        first = read_block(stream, BLOCK, path)
    for head, name in ARRAYS.items():
        if first.startswith(head):
            return name
    lines = (line.strip() for line in first.splitlines())
    line = next((line for line in lines if line and not line.startswith(b"#")), b"")
    return "svmlight" if SVMLIGHT.match(line) else "csv"


def stem_of(data: Path) -> str:
    """The name a result takes after its data."""
    return "model" if is_standard_input(data) else stem_and_format(data)[0]


# Results -----------------------------------------------------------------------------------------------------------


def refuse_unwritable(*places: Path, inputs: tuple[Path, ...] = ()) -> None:
    """Say before the work begins that a result could not be written, or would take the place of its input."""
    for place in places:
        for source in inputs:
            if not is_standard_input(source) and place.exists() and source.exists() and os.path.samefile(place, source):
                raise InvalidInput(f"{place}: is the file that is read; name another one for the result")
        writing.try_writing(place)


def model_place(model: Path | None, data: Path, *, overwrite: bool, resume: bool) -> Path:
    """Where the model goes; see the head of this file for what it may replace."""
    place = model or Path(stem_of(data) + ".mercer")
    if overwrite or not place.is_file():
        return place
    try:
        there: Kind = "data" if place.suffix.lower() in COMPRESSED else kind_of(place)
    except InvalidInput:
        there = "data"
    if model is None and not (resume and there == "model" and _left_by_an_interruption(place)):
        raise InvalidInput(f"{place}: is there already; replace it with --overwrite, or name another file with --model")
    if there != "model":
        raise InvalidInput(f"{place}: is there and is no model of mercer; replace it with --overwrite, or name another")
    return place


def _left_by_an_interruption(place: Path) -> bool:
    """Whether a model is what an interrupted run had reached: the run that goes on from there replaces it."""
    from mercer.models import load_model

    try:
        return bool(load_model(place).notes.get("interrupted"))
    except MercerError:
        return False


def rescue_places(place: Path) -> Iterator[Path]:
    """Where a result goes that cannot be written to its place: free names in other folders."""
    for folder in (tempfile.gettempdir, Path.home, Path.cwd):
        try:
            other = Path(folder()).resolve()
        except (OSError, RuntimeError):  # no folder for temporary files, or none of the user's own
            continue
        if other != place.resolve().parent:
            names = (f"{place.stem}{'' if turn == 1 else f'-{turn}'}{place.suffix}" for turn in range(1, 1000))
            yield next(free for name in names if not (free := other / name).exists())
