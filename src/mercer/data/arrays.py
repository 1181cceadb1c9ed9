"""NumPy files: .npy with one array, .npz with X and y.

Nothing in these files is ever executed (no pickle), and an array is read only when the file is as long as its header
says, so that a header of ten trillion elements costs nothing.
"""

import io
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse as scipy_sparse

from mercer.data.dataset import Dataset, settle, whole_numbers
from mercer.data.files import read_whole, reading_limit, replacing
from mercer.errors import InvalidInput

_POINTS = ("X", "x", "data", "features")
_TARGETS = ("y", "Y", "target", "targets", "labels")
_CSR = ("data", "indices", "indptr", "shape")


def _array(stream: IO[bytes], size: int, source: str) -> NDArray[Any]:
    """One array of `size` bytes in all, checked against its header before memory is taken."""
    try:
        version = npy.read_magic(stream)
        reader = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, kind = reader(stream)
    except Exception:  # NumPy's header parser raises whatever the damage provokes: ValueError, TokenError, ...
        raise InvalidInput(f"{source}: is not a NumPy file") from None
    if kind.hasobject:
        raise InvalidInput(f"{source}: holds Python objects, which are never loaded; save numbers or texts instead")
    if any(length < 0 for length in shape):
        raise InvalidInput(f"{source}: is damaged (negative length)")
    expected = kind.itemsize
    for length in shape:
        expected *= int(length)
    if expected != size - stream.tell():
        raise InvalidInput(
            f"{source}: is damaged (its header announces {expected} bytes, {size - stream.tell()} follow)"
        )
    flat = np.frombuffer(stream.read(expected), dtype=kind)
    return flat.reshape(shape, order="F" if fortran else "C")


def _numbers(array: NDArray[Any], source: str, name: str) -> NDArray[np.float64]:
    """The array as float64; complex numbers, texts and infinite values are refused."""
    if array.dtype.kind not in "biuf":
        raise InvalidInput(f"{source}: {name} must hold real numbers, not {array.dtype}")
    numbers = np.ascontiguousarray(array, dtype=np.float64)
    if np.isinf(numbers).any():
        raise InvalidInput(f"{source}: {name} holds infinite values")
    return numbers


def _targets(array: NDArray[Any], n: int, source: str) -> NDArray[Any]:
    """Targets (n,) or (n, k): numbers or texts."""
    if array.ndim not in (1, 2) or len(array) != n:
        raise InvalidInput(f"{source}: y has shape {array.shape}, X has {n} points")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.dtype.kind in "US":
        return array.astype(str)
    numbers = _numbers(array, source, "y")
    if np.isnan(numbers).any():
        raise InvalidInput(f"{source}: y holds missing values; remove those points")
    return whole_numbers(numbers)


def read_npy(
    path: Path, *, target: int | bool | None = None, sparse: bool | None = None,
    limit: int | str | None = None,
) -> Dataset:  # fmt: skip
    """Read a .npy file: points (n, d); `target` is the number of the column to take as y, None or False for none."""
    content = read_whole(path, limit)
    X = _points(_array(io.BytesIO(content), len(content), str(path)), str(path))
    y = None
    if target is not None and not isinstance(target, bool):
        if not -X.shape[1] <= target < X.shape[1] or X.shape[1] < 2:
            raise InvalidInput(f"{path}: target={target} is not one of its {X.shape[1]} columns")
        y = _targets(X[:, target], len(X), str(path))
        X = np.delete(X, target, axis=1)
    return _finished(X, y, sparse, str(path))


def read_npz(
    path: Path, *, target: bool | None = None, sparse: bool | None = None,
    limit: int | str | None = None,
) -> Dataset:  # fmt: skip
    """Read a .npz file with X, or with a CSR matrix as `scipy.sparse.save_npz` writes it, and y."""
    arrays = _members(path, limit)
    if all(name in arrays for name in _CSR):
        X = _csr(arrays, str(path))
    else:
        name = next((name for name in _POINTS if name in arrays), None)
        if name is None:
            held = ", ".join(sorted(arrays)) or "nothing"
            raise InvalidInput(f"{path}: must hold an array X (and y), but holds {held}")
        X = _points(arrays[name], str(path))
    found = next((name for name in _TARGETS if name in arrays), None) if target is not False else None
    y = None if found is None else _targets(arrays[found], X.shape[0], str(path))
    return _finished(X, y, sparse, str(path))


def _members(path: Path, limit: int | str | None) -> dict[str, NDArray[Any]]:
    """All arrays of the archive, its unpacked size held under the limit."""
    content = read_whole(path, limit)
    allowed = reading_limit(limit)
    arrays: dict[str, NDArray[Any]] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(member.file_size for member in archive.infolist()) > allowed:
                raise InvalidInput(f"{path}: unpacks to more than {allowed} bytes, the limit; raise it with limit=")
            for member in archive.infolist():
                name = member.filename.removesuffix(".npy")
                with archive.open(member) as stream:
                    unpacked = stream.read(member.file_size + 1)
                arrays[name] = _array(io.BytesIO(unpacked), len(unpacked), f"{path}, array {name}")
    except InvalidInput:
        raise
    except (
        Exception
    ) as error:  # zipfile raises whatever the damage provokes: BadZipFile, zlib.error, NotImplementedError...
        raise InvalidInput(f"{path}: is not a .npz file that can be read ({error})") from None
    return arrays


def _points(array: NDArray[Any], source: str) -> NDArray[np.float64]:
    if array.ndim != 2 or array.size == 0:
        raise InvalidInput(f"{source}: X must be a matrix of points by features, not of shape {array.shape}")
    return _numbers(array, source, "X")


def _csr(arrays: dict[str, NDArray[Any]], source: str) -> Any:
    """A CSR matrix from its parts, checked."""
    kind = arrays.get("format")
    if kind is not None and kind.tobytes().rstrip(b"\0").replace(b"\0", b"") != b"csr":
        raise InvalidInput(f"{source}: holds a sparse matrix that is not CSR; save it as scipy.sparse.csr_matrix")
    try:
        shape = tuple(int(length) for length in arrays["shape"])
        values = _numbers(arrays["data"], source, "data")
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


def _finished(X: Any, y: NDArray[Any] | None, sparse: bool | None, source: str) -> Dataset:
    """Dense or CSR as wanted."""
    if scipy_sparse.issparse(X):
        X = settle(X, True if sparse is None else sparse)
    elif sparse:
        X = scipy_sparse.csr_matrix(X)
    return Dataset(X, y, source=source)


def write_npz(path: Path, data: Dataset) -> None:
    """Write X (dense, or the parts of a CSR matrix) and y to a compressed .npz file."""
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
    with replacing(path) as stream:
        np.savez_compressed(stream, **arrays)
