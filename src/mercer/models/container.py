"""The file itself: a safetensors file, written beside its target and renamed, read with every size checked first.

    8 bytes    length h of the header, little endian
    h bytes    JSON: {"__metadata__": {format, version, document, digest}, tensor name: {dtype, shape, data_offsets}}
    the rest   the tensors, little endian, without gaps

`document` is the JSON text that describes the model.  `digest` is the SHA-256 of the document, the table of tensors
and the tensors, so that a flipped bit is noticed; it is no protection against forgery, and nothing here relies on it.

Nothing is allocated before the file is known to be as long as its header says, the header is limited to
`HEADER_LIMIT`, and names that occur twice, gaps, overlaps, trailing bytes and unknown types are refused.
"""

import hashlib
import json
import math
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mercer import resources as memory
from mercer.data.files import replacing
from mercer.data.unpacking import COMPRESSED
from mercer.errors import InvalidInput, ModelFileError

FORMAT = "mercer model"
VERSION = 2
HEADER_LIMIT = 16 << 20  # JSON takes up to 30 times its size once it is parsed
MOST_DIMENSIONS = 2
METADATA = "__metadata__"

TYPES: dict[str, str] = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U64": "<u8",
    "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
NAMES = {np.dtype(code): name for name, code in TYPES.items()}


@dataclass(frozen=True)
class Entry:
    """One line of the table of tensors."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def described(self) -> dict[str, Any]:
        """The line as the header holds it."""
        return {"dtype": self.dtype, "shape": list(self.shape), "data_offsets": [self.begin, self.end]}


def parse_json(text: str | bytes, what: str) -> Any:
    """JSON without the names NaN and Infinity, and without objects in which a name occurs twice."""
    try:
        return json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_constant)
    except RecursionError:
        raise ModelFileError(f"{what} is nested too deeply") from None
    except UnicodeDecodeError:
        raise ModelFileError(f"{what} is not UTF-8 text") from None
    except ValueError as error:
        raise error if isinstance(error, ModelFileError) else ModelFileError(f"{what} is not JSON: {error}") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ModelFileError("a name occurs twice in its JSON")
    return found


def _no_constant(name: str) -> Any:
    raise ModelFileError(f"{name} is not a number in JSON")


# Writing -----------------------------------------------------------------------------------------------------------


def write(path: Path, document: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> None:
    """Write the document and the tensors (C-contiguous arrays); the file appears complete or not at all."""
    if path.suffix.lower() in COMPRESSED:
        raise InvalidInput(f"{path}: model files are not compressed; give a name such as {path.stem}.mercer")
    text = json.dumps(document, allow_nan=False, ensure_ascii=False)
    # Wide types first: every tensor then begins at a multiple of its item size.
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    given = [tensors[name] for name in order]
    arrays = [array.astype(array.dtype.newbyteorder("<"), order="C", copy=False) for array in given]
    table, position = [], 0
    for name, array in zip(order, arrays):
        table.append(Entry(name, NAMES[array.dtype], array.shape, position, position + array.nbytes))
        position += array.nbytes
    digest = _digest(text, table, arrays)
    metadata = {"format": FORMAT, "version": str(VERSION), "document": text, "digest": digest}
    header = json.dumps({METADATA: metadata} | {entry.name: entry.described for entry in table}).encode()
    header += b" " * (-len(header) % 8)
    if len(header) > HEADER_LIMIT:
        raise InvalidInput(
            f"the description of the machine takes {memory.show(len(header))}, and a model file has room for "
            f"{memory.show(HEADER_LIMIT)}: it holds a very large kernel parameter or very long notes"
        )
    with replacing(path) as stream:
        stream.write(len(header).to_bytes(8, "little"))
        stream.write(header)
        for array in arrays:
            stream.write(_bytes(array))


def _bytes(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")


def _digest(text: str, table: list[Entry], arrays: list[NDArray[Any]]) -> str:
    found = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
    found.update(json.dumps([[e.name, e.dtype, e.shape, e.begin, e.end] for e in table]).encode())
    for array in arrays:
        found.update(_bytes(array))
    return found.hexdigest()


# Reading -----------------------------------------------------------------------------------------------------------


def read(path: Path, limit: int | str | None = None) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The document and the tensors; files larger than `limit` (by default the free memory) are refused."""
    allowed = memory.available() if limit is None else memory.parse(limit)
    with _open(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > allowed:
            raise ModelFileError(f"it takes {memory.show(size)}, more than the {memory.show(allowed)} allowed here")
        header, start = _header(stream, size)
        metadata = header.pop(METADATA, None)
        document = _document(metadata)
        table = _table(header, size - start)
        arrays = [_tensor(stream, entry) for entry in table]
    if metadata["digest"] != _digest(metadata["document"], table, arrays):
        raise ModelFileError("its contents do not match its digest; it was damaged or changed after it was written")
    return document, {entry.name: array for entry, array in zip(table, arrays)}


def _open(path: Path) -> BinaryIO:
    refuse_irregular(path)
    try:
        return open(path, "rb")
    except OSError as error:
        raise ModelFileError(f"it cannot be read ({error.strerror})") from None


def refuse_irregular(path: Path) -> None:
    """A folder cannot be read, and a pipe or a device could block or never end."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise ModelFileError("there is no such file") from None
    except OSError as error:
        raise ModelFileError(f"it cannot be read ({error.strerror})") from None
    if not stat.S_ISREG(mode):
        raise ModelFileError("it is not a regular file")


def _header(stream: BinaryIO, size: int) -> tuple[dict[str, Any], int]:
    """The parsed header, and where the tensors begin."""
    first = stream.read(8)
    length = int.from_bytes(first, "little")
    if len(first) < 8 or not 2 <= length <= size - 8:
        raise ModelFileError("it is not a model file of mercer, or it is cut off")
    if length > HEADER_LIMIT:
        raise ModelFileError(f"its header of {memory.show(length)} is larger than {memory.show(HEADER_LIMIT)}")
    header = parse_json(stream.read(length), "its header")
    if not isinstance(header, dict):
        raise ModelFileError("its header is not a JSON object")
    return header, 8 + length


def _document(metadata: Any) -> dict[str, Any]:
    """The description of the model, of a format and version that are known."""
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise ModelFileError("it is a safetensors file, but not a model of mercer")
    version = metadata.get("version")
    if version != str(VERSION):
        earlier = isinstance(version, str) and version in map(str, range(VERSION))
        remedy = "train the machine again" if earlier else "update mercer"
        raise ModelFileError(f"its version is {version!r:.40} and this mercer reads version {VERSION}; {remedy}")
    if not isinstance(metadata.get("document"), str) or not isinstance(metadata.get("digest"), str):
        raise ModelFileError("its header lacks the description or the digest of the model")
    document = parse_json(metadata["document"], "its description")
    if not isinstance(document, dict):
        raise ModelFileError("its description is not a JSON object")
    return document


def _table(header: Mapping[str, Any], size: int) -> list[Entry]:
    """The table of tensors in the order of the data, which they must fill from end to end."""
    table = sorted((_entry(name, value) for name, value in header.items()), key=lambda e: (e.begin, e.end))
    position = 0
    for entry in table:
        if entry.begin != position:
            raise ModelFileError(f"tensor {entry.name!r:.60} does not begin where the one before it ends")
        position = entry.end
    if position != size:
        lack = "is cut off" if position > size else "has bytes that belong to nothing"
        raise ModelFileError(f"it {lack}: {size} bytes of tensors where its header declares {position}")
    return table


def _entry(name: str, value: Any) -> Entry:
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
        raise ModelFileError(f"tensor {name!r:.60} is not described by dtype, shape and data_offsets")
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(dtype, str) or dtype not in TYPES:
        raise ModelFileError(f"tensor {name!r:.60} has the unknown type {dtype!r:.40}")
    if not are_sizes(shape) or len(shape) > MOST_DIMENSIONS:
        raise ModelFileError(f"tensor {name!r:.60} has the impossible shape {shape!r:.80}")
    if not are_sizes(offsets) or len(offsets) != 2:
        raise ModelFileError(f"tensor {name!r:.60} has the impossible place {offsets!r:.80}")
    if math.prod(shape) * np.dtype(TYPES[dtype]).itemsize != offsets[1] - offsets[0]:
        raise ModelFileError(f"tensor {name!r:.60} has another size than its shape {shape!r:.80} needs")
    return Entry(name, dtype, tuple(shape), offsets[0], offsets[1])


def are_sizes(value: Any) -> bool:
    """Whether it is a list of whole numbers that may be sizes."""
    return isinstance(value, list) and all(type(item) is int and 0 <= item < 1 << 62 for item in value)


def _tensor(stream: BinaryIO, entry: Entry) -> NDArray[Any]:
    """Read one tensor into memory of its own; the table has been held against the size of the file before."""
    code = np.dtype(TYPES[entry.dtype])
    array = np.empty(entry.shape, dtype=np.uint8 if code.kind == "b" else code)
    if array.size and stream.readinto(_bytes(array)) != array.nbytes:  # type: ignore[attr-defined]  # untyped base
        raise ModelFileError("it became shorter while it was read")
    if code.kind == "b":
        if array.size and array.max() > 1:
            raise ModelFileError(f"tensor {entry.name!r:.60} holds truth values other than 0 and 1")
        return array.view(np.bool_)
    return array.astype(code.newbyteorder("="), copy=False)
