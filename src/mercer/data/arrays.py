"""NumPy files: .npy with one array, .npz with X, y and, for a ranking, query.

Nothing in these files is ever executed (no pickle).  An array is read only when the file is as long as its header says
and when it fits in the allowance, so that a header of ten trillion elements costs nothing.
"""

import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse as scipy_sparse

from mercer.data.allowance import Allowance
from mercer.data.dataset import Dataset, Origin, Request, any_infinite, settle, whole_numbers
from mercer.data.files import PIECE, open_whole, replacing
from mercer.errors import InvalidInput, MercerError

_POINTS = ("X", "x", "data", "features")
_TARGETS = ("y", "Y", "target", "targets", "labels")
_QUERIES = ("query", "queries", "qid", "groups")
_CSR = ("data", "indices", "indptr", "shape")
BUFFERS = 8 * PIECE  # of the decompressor and of what it has given
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # what NumPy writes; others may ask for any memory
LARGEST_CHARACTER, SURROGATES = 0x10FFFF, (0xD800, 0xDFFF)  # halves of a pair, which stand for nothing alone


def _array(stream: IO[bytes], size: int, source: str, allowance: Allowance) -> NDArray[Any]:
    """One array of `size` bytes in all, checked against its header before memory is taken."""
    try:
        version = npy.read_magic(stream)
        reader = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, kind = reader(stream)
        follows = size - stream.tell()
    except Exception:  # NumPy's header parser raises whatever the damage provokes: ValueError, TokenError, ...
        raise InvalidInput(f"{source}: is not a NumPy file") from None
    if kind.hasobject:
        raise InvalidInput(f"{source}: holds Python objects, which are never loaded; save numbers or texts instead")
    if kind.kind not in "biufUS" or not kind.itemsize:
        raise InvalidInput(f"{source}: must hold real numbers or texts, not {str(kind)[:60]}")
    if len(shape) > 2:
        raise InvalidInput(f"{source}: has {len(shape)} dimensions; save a matrix of points by features")
    if any(length < 0 for length in shape):
        raise InvalidInput(f"{source}: is damaged (negative length)")
    expected = kind.itemsize * math.prod(map(int, shape))
    if expected != follows:
        raise InvalidInput(f"{source}: is damaged (its header announces {expected} bytes, {follows} follow)")
    allowance.take(expected + BUFFERS)
    flat = np.empty(math.prod(map(int, shape)), dtype=kind)
    content, at = flat.view(np.uint8), 0
    while at < expected:
        piece = stream.read(min(PIECE, expected - at))
        if not piece:
            raise InvalidInput(f"{source}: is damaged (it ends too early)")
        content[at : at + len(piece)] = np.frombuffer(piece, np.uint8)
        at += len(piece)
    return flat.reshape(shape, order="F" if fortran else "C")


def _numbers(array: NDArray[Any], source: str, name: str, allowance: Allowance) -> NDArray[np.float64]:
    """The array as float64; texts and infinite values are refused."""
    if array.dtype.kind not in "biuf":
        raise InvalidInput(f"{source}: {name} must hold real numbers, not {array.dtype}")
    if array.dtype != np.float64 or not array.flags.c_contiguous:
        allowance.take(8 * array.size)
    numbers = np.ascontiguousarray(array, dtype=np.float64)
    if any_infinite(numbers):
        raise InvalidInput(f"{source}: {name} holds infinite values")
    return numbers


def _targets(array: NDArray[Any], n: int, source: str, allowance: Allowance) -> NDArray[Any]:
    """Targets (n,) or (n, k): numbers or texts, or truth values (n,)."""
    if array.ndim not in (1, 2) or len(array) != n:
        raise InvalidInput(f"{source}: y has shape {array.shape}, X has {n} points")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.dtype.kind in "US":
        return _texts(array, source, allowance)
    if array.dtype.kind == "b" and array.ndim == 1:
        return array
    numbers = _numbers(array, source, "y", allowance)
    if np.isnan(numbers).any():
        raise InvalidInput(f"{source}: y holds missing values; remove those points")
    allowance.take(numbers.nbytes)
    return whole_numbers(numbers)


def _texts(array: NDArray[Any], source: str, allowance: Allowance) -> NDArray[np.str_]:
    """Texts as such; what stands for no character is refused."""
    allowance.take(4 * array.size * array.dtype.itemsize)
    refusal = InvalidInput(f"{source}: y holds texts that are not characters; save them as Unicode")
    try:
        texts = np.ascontiguousarray(array.astype(str))
    except ValueError:  # bytes beyond ASCII
        raise refusal from None
    signs = texts.view(np.uint32)
    if ((signs > LARGEST_CHARACTER) | ((signs >= SURROGATES[0]) & (signs <= SURROGATES[1]))).any():
        raise refusal
    return texts


def read_npy(request: Request) -> Dataset:
    """Read a .npy file: points (n, d); `target` is the number of the column to take as y, None or False for none.

    `groups` is the number of the column of queries.
    """
    path, source, target = request.path, request.source, request.target
    allowance = Allowance(request.limit, path)
    stream, size = open_whole(path, allowance)
    with stream:
        X = _points(_array(stream, size, source, allowance), source, allowance)
    wanted = {"target": None if isinstance(target, bool) else target, "groups": request.groups}
    places = {name: _column(X, place, name, source) for name, place in wanted.items() if place is not None}
    y = _targets(X[:, places["target"]], len(X), source, allowance) if "target" in places else None
    query = _query(X[:, places["groups"]], len(X), source) if "groups" in places else None
    if places:
        if len(set(places.values())) == X.shape[1]:
            raise InvalidInput(f"{path}: has no column besides {' and '.join(places)}")
        allowance.take(X.nbytes)
        X = np.delete(X, list(places.values()), axis=1)
    return _finished(X, y, query, request.sparse, source, allowance)


def _column(X: NDArray[Any], place: Any, option: str, source: str) -> int:
    """The place of a column, from 0."""
    if not isinstance(place, int) or not -X.shape[1] <= place < X.shape[1] or X.shape[1] < 2:
        raise InvalidInput(f"{source}: {option}={place} is not one of its {X.shape[1]} columns")
    return place % int(X.shape[1])


def _query(array: NDArray[Any], n: int, source: str) -> NDArray[np.int64]:
    """Query numbers (n,): whole numbers, or texts, which get numbers."""
    if array.shape not in ((n,), (n, 1)):
        raise InvalidInput(f"{source}: the queries have shape {array.shape}, X has {n} points")
    array = array.reshape(n)
    if array.dtype.kind in "US":
        return np.unique(array, return_inverse=True)[1].astype(np.int64)
    whole = array.astype(np.int64) if array.dtype.kind in "iu" else whole_numbers(array.astype(np.float64))
    if whole.dtype != np.int64 or (whole != array).any():
        raise InvalidInput(f"{source}: queries must be whole numbers of 64 bits, or texts")
    return whole


def read_npz(request: Request) -> Dataset:
    """Read a .npz file with X, or with a CSR matrix as `scipy.sparse.save_npz` writes it, and y, and query.

    `groups` names the array of queries where it has another name.
    """
    path, source, groups = request.path, request.source, request.groups
    allowance = Allowance(request.limit, path)
    arrays = _members(path, allowance)
    if all(name in arrays for name in _CSR):
        X = _csr(arrays, source, allowance)
    else:
        name = next((name for name in _POINTS if name in arrays), None)
        if name is None:
            held = ", ".join(map(repr, sorted(arrays)[:8])) or "nothing"
            raise InvalidInput(f"{path}: must hold an array X (and y), but holds {held}")
        X = _points(arrays[name], source, allowance)
    found = next((name for name in _TARGETS if name in arrays), None) if request.target is not False else None
    y = None if found is None else _targets(arrays[found], X.shape[0], source, allowance)
    if groups is not None and groups not in arrays:
        raise InvalidInput(
            f"{path}: groups={groups!r} is not one of its arrays {', '.join(map(repr, sorted(arrays)[:8]))}"
        )
    named = str(groups) if groups is not None else next((name for name in _QUERIES if name in arrays), None)
    query = None if named is None else _query(arrays[named], X.shape[0], source)
    return _finished(X, y, query, request.sparse, source, allowance)


def _members(path: Path, allowance: Allowance) -> dict[str, NDArray[Any]]:
    """All arrays of the archive."""
    arrays: dict[str, NDArray[Any]] = {}
    stream, _ = open_whole(path, allowance)
    try:
        with stream, zipfile.ZipFile(stream) as archive:
            for member in archive.infolist():
                name = member.filename.removesuffix(".npy")
                if member.compress_type not in _METHODS:
                    raise InvalidInput(f"{path}: is packed by a method that NumPy does not use; save it with NumPy")
                with archive.open(member) as content:
                    arrays[name] = _array(content, member.file_size, f"{path}, array {name!r}", allowance)
    except MercerError:
        raise
    except (
        Exception
    ) as error:  # zipfile raises whatever the damage provokes: BadZipFile, zlib.error, NotImplementedError...
        raise InvalidInput(f"{path}: is not a .npz file that can be read ({str(error)!r:.200})") from None
    return arrays


def _points(array: NDArray[Any], source: str, allowance: Allowance) -> NDArray[np.float64]:
    if array.ndim != 2 or array.size == 0:
        raise InvalidInput(f"{source}: X must be a matrix of points by features, not of shape {array.shape}")
    return _numbers(array, source, "X", allowance)


def _csr(arrays: dict[str, NDArray[Any]], source: str, allowance: Allowance) -> Any:
    """A CSR matrix from its parts, checked."""
    kind = arrays.get("format")
    if kind is not None and kind.tobytes().rstrip(b"\0").replace(b"\0", b"") != b"csr":
        raise InvalidInput(f"{source}: holds a sparse matrix that is not CSR; save it as scipy.sparse.csr_matrix")
    try:
        shape = tuple(int(length) for length in arrays["shape"])
        values = _numbers(arrays["data"], source, "data", allowance)
        allowance.take(arrays["indices"].nbytes + arrays["indptr"].nbytes)
        X = scipy_sparse.csr_matrix((values, arrays["indices"], arrays["indptr"]), shape=shape)
        X.check_format(full_check=True)
    except InvalidInput:
        raise
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise InvalidInput(f"{source}: holds a damaged CSR matrix ({error})") from None
    X.sum_duplicates()
    if 0 in X.shape:
        raise InvalidInput(f"{source}: holds no points")
    return X


def _finished(
    X: Any, y: NDArray[Any] | None, query: NDArray[np.int64] | None, sparse: bool | None, source: str,
    allowance: Allowance,
) -> Dataset:  # fmt: skip
    """Dense or CSR as wanted."""
    if scipy_sparse.issparse(X):
        X = settle(X, True if sparse is None else sparse, allowance)
    elif sparse:
        allowance.take(2 * X.nbytes + X.size)  # values and indices of CSR, at most, and which of them are there
        X = scipy_sparse.csr_matrix(X)
    allowance.take(8 * X.shape[0])
    return Dataset(X, y, query=query, source=source, origin=Origin.rows(X.shape[0]))


def write_npz(path: Path, data: Dataset) -> None:
    """Write X (dense, or the parts of a CSR matrix), y and query to a compressed .npz file."""
    arrays: dict[str, Any] = {}
    if data.is_sparse:
        X = scipy_sparse.csr_matrix(data.X)
        arrays = {
            "data": X.data,
            "indices": X.indices,
            "indptr": X.indptr,
            "shape": np.array(X.shape),
            "format": b"csr",
        }
    else:
        arrays["X"] = np.asarray(data.X)
    if data.y is not None:
        arrays["y"] = np.asarray(data.y)
    if data.query is not None:
        arrays["query"] = data.query
    with replacing(path) as stream:
        np.savez_compressed(stream, **arrays)
