"""NumPy files: what was saved comes back; nothing is executed, and no header is believed."""

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from mercer.data import Dataset, read, write
from mercer.errors import InvalidInput

RNG = np.random.default_rng(3)
X = RNG.standard_normal((6, 4))


def test_a_matrix_with_its_target_column(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.asfortranarray(X.astype(np.float32)))
    data = read(tmp_path / "a.npy", target=1)
    np.testing.assert_array_equal(data.X, np.delete(X, 1, axis=1).astype(np.float32))
    np.testing.assert_array_equal(data.y, X[:, 1].astype(np.float32))
    assert read(tmp_path / "a.npy").y is None


@pytest.mark.parametrize("matrix", [X, sparse.csr_matrix(np.where(X > 0.5, X, 0))])
@pytest.mark.parametrize("y", [np.arange(6), np.array(["a", "b", "a", "b", "a", "b"]), None])
def test_written_archives_read_back(tmp_path: Path, matrix, y) -> None:
    write(tmp_path / "a.npz", Dataset(matrix, y))
    data = read(tmp_path / "a.npz")
    np.testing.assert_array_equal(
        data.X.toarray() if data.is_sparse else data.X, matrix.toarray() if sparse.issparse(matrix) else matrix
    )
    assert data.is_sparse == sparse.issparse(matrix)
    assert (data.y is None) == (y is None)
    if y is not None:
        np.testing.assert_array_equal(data.y, y)


def test_scipys_own_sparse_files_are_read(tmp_path: Path) -> None:
    sparse.save_npz(tmp_path / "a.npz", sparse.csr_matrix(X))
    np.testing.assert_array_equal(read(tmp_path / "a.npz").X.toarray(), X)
    sparse.save_npz(tmp_path / "b.npz", sparse.csc_matrix(X))
    with pytest.raises(InvalidInput, match="not CSR"):
        read(tmp_path / "b.npz")


def test_python_objects_are_never_loaded(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was executed",))

    np.save(tmp_path / "a.npy", np.array([[Trap()]], dtype=object), allow_pickle=True)
    with pytest.raises(InvalidInput, match="never loaded"):
        read(tmp_path / "a.npy")


def test_a_header_that_announces_too_much_is_refused(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (10**7, 10**6)})
    (tmp_path / "a.npy").write_bytes(stream.getvalue() + bytes(64))
    with pytest.raises(InvalidInput, match="announces 80000000000000 bytes, 64 follow"):
        read(tmp_path / "a.npy")


def test_a_damaged_csr_matrix_is_refused(tmp_path: Path) -> None:
    parts = {"data": np.ones(2), "indices": np.array([0, 99]), "indptr": np.array([0, 2]), "shape": np.array([1, 3])}
    np.savez(tmp_path / "a.npz", **parts)
    with pytest.raises(InvalidInput, match="damaged CSR matrix"):
        read(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("arrays", "complaint"),
    [
        ({"Z": X}, "must hold an array X"),
        ({"X": X[0]}, "must be a matrix of points by features"),
        ({"X": X.astype(complex)}, "must hold real numbers"),
        ({"X": X, "y": np.arange(5)}, "y has shape"),
        ({"X": X, "y": np.full(6, np.nan)}, "y holds missing values"),
        ({"X": np.full((2, 2), np.inf)}, "infinite"),
    ],
)
def test_unusable_arrays_are_named(tmp_path: Path, arrays, complaint: str) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(InvalidInput, match=complaint):
        read(tmp_path / "a.npz")


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=5), st.booleans())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_files_end_in_data_or_in_one_line(tmp_path: Path, changes, archive: bool) -> None:
    stream = io.BytesIO()
    if archive:
        np.savez_compressed(stream, X=X, y=np.arange(6))
    else:
        np.save(stream, X)
    content = bytearray(stream.getvalue())
    for place, value in changes:
        content[place % len(content)] = value
    path = tmp_path / ("a.npz" if archive else "a.npy")
    path.write_bytes(content)
    try:
        read(path, missing="keep")
        message = ""
    except InvalidInput as error:
        message = str(error)
    assert "\n" not in message
