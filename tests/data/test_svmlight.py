"""svmlight text: equal to scikit-learn's reader on good files, a one-line error on bad ones."""

import bz2
import gzip
import lzma
import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from mercer.data import Dataset, files, read, write
from mercer.data.samples import FOLDER
from mercer.errors import InvalidInput

FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def written(folder: Path, text: str | bytes, name: str = "a.svm") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("file", sorted(path.name for path in FOLDER.glob("*.svm.xz")))
def test_the_reader_equals_scikit_learns_on_every_sample(file: str) -> None:
    data = read(FOLDER / file, sparse=True, missing="keep")
    with lzma.open(FOLDER / file) as stream:
        X, y = load_svmlight_file(stream, zero_based=False)
    assert data.X.shape == X.shape
    np.testing.assert_array_equal(data.X.indptr, X.indptr)
    np.testing.assert_array_equal(data.X.indices, X.indices)
    np.testing.assert_array_equal(data.X.data, X.data)
    np.testing.assert_array_equal(data.y, y)


@given(
    st.integers(1, 40), st.integers(1, 30), st.floats(0, 1), st.integers(0, 2**32 - 1), st.sampled_from([64, 1 << 20])
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_writing_and_reading_give_back_the_same_data(
    tmp_path: Path, n: int, d: int, density: float, seed: int, block: int
) -> None:
    rng = np.random.default_rng(seed)
    X = sparse.random(n, d, density, format="csr", random_state=rng, data_rvs=rng.standard_normal)
    write(tmp_path / "a.svm", Dataset(X, rng.standard_normal(n)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "BLOCK", block)
        data = read(tmp_path / "a.svm", features=d, sparse=True)
    assert (data.X != X).nnz == 0
    again = load_svmlight_file(str(tmp_path / "a.svm"), n_features=d)
    np.testing.assert_array_equal(data.y, again[1])


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("xz", lzma.compress), ("bz2", bz2.compress)])
def test_compressed_files_are_read_by_their_ending(tmp_path: Path, ending: str, pack) -> None:
    data = read(written(tmp_path, pack(b"1 1:2 3:4\n-1 2:1\n"), f"a.svm.{ending}"))
    np.testing.assert_array_equal(data.X, [[2, 0, 4], [0, 1, 0]])
    np.testing.assert_array_equal(data.y, [1, -1])


def test_pieces_scanned_side_by_side_equal_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"{k % 3} {k % 7 + 1}:{k / 7!r} {k % 7 + 9}:1e-3 # note {k}: x\r\n\n" for k in range(500))
    path = written(tmp_path, text)
    monkeypatch.setenv("MERCER_NUM_THREADS", "1")
    one = read(path)
    monkeypatch.setenv("MERCER_NUM_THREADS", "5")
    monkeypatch.setattr("mercer.data.svmlight.PIECE", 64)
    five = read(path)
    np.testing.assert_array_equal(
        one.X if not one.is_sparse else one.X.toarray(), five.X.toarray() if five.is_sparse else five.X
    )
    np.testing.assert_array_equal(one.y, five.y)


def test_several_labels_become_a_matrix(tmp_path: Path) -> None:
    data = read(written(tmp_path, "1,3 1:1\n 2:1\n2 1:1\n"), multilabel=True)
    np.testing.assert_array_equal(data.y, [[1, 0, 1], [0, 0, 0], [0, 1, 0]])
    assert data.label_names == (1, 2, 3)
    write(tmp_path / "b.svm", data)
    np.testing.assert_array_equal(read(tmp_path / "b.svm", multilabel=True).y, data.y)


def test_query_numbers_are_kept(tmp_path: Path) -> None:
    data = read(written(tmp_path, "2 qid:7 1:1 # doc\n0 qid:9 1:2\n"))
    np.testing.assert_array_equal(data.query, [7, 9])
    with pytest.raises(InvalidInput, match="point 2 has no qid"):
        read(written(tmp_path, "2 qid:7 1:1\n0 1:2\n"))


def test_lines_without_labels_give_no_targets(tmp_path: Path) -> None:
    assert read(written(tmp_path, "1:1\n2:3\n")).y is None
    with pytest.raises(InvalidInput, match="point 2 has 0 labels"):
        read(written(tmp_path, "1 1:1\n2:3\n"))


def test_features_out_of_order_are_sorted_and_repeated_ones_refused(tmp_path: Path) -> None:
    data = read(written(tmp_path, "1 3:3 1:1\n1 1:5\n"), sparse=True)
    np.testing.assert_array_equal(data.X.toarray(), [[1, 0, 3], [5, 0, 0]])
    assert data.X.has_sorted_indices
    with pytest.raises(InvalidInput, match="point 2 gives feature 4 twice"):
        read(written(tmp_path, "1 3:3 1:1\n1 4:1 4:2\n"))


def test_counting_from_zero_is_noticed(tmp_path: Path) -> None:
    assert read(written(tmp_path, "1 0:1 2:1\n")).d == 3
    assert read(written(tmp_path, "1 1:1 2:1\n"), zero_based=True).d == 3
    with pytest.raises(InvalidInput, match="has a feature 0"):
        read(written(tmp_path, "1 0:1\n"), zero_based=False)


def test_a_huge_feature_index_stays_sparse(tmp_path: Path) -> None:
    data = read(written(tmp_path, "1 1:1 1000000000000:2\n-1 5:1\n"))
    assert data.is_sparse
    assert data.d == 10**12
    assert data.X.indices.dtype == np.int64
    with pytest.raises(InvalidInput, match=r"a\.svm, line 1: the feature index is beyond the limit"):
        read(written(tmp_path, "1 99999999999999999999:1\n"))


def test_more_features_than_asked_for_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="has 7 features, more than the 5"):
        read(written(tmp_path, "1 7:1\n"), features=5)
    train = read(written(tmp_path, "1 7:1\n"))
    assert read(written(tmp_path, "1 2:1\n", "b.svm"), like=train).d == 7


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("cat 1:1", "a label must be a number, not 'cat'"),
        ("nan 1:1", "a label must be finite"),
        ("1e999 1:1", "a label must be finite"),
        ("1, 1:1", "a label must be a number"),
        ("1,2:3", "a label must be a number, not '1,2:3'"),
        ("1,2:3 4:5", "a label must be a number, not '1,2:3'"),
        ("1,2,3:4", "a label must be a number, not '1,2,3:4'"),
        ("1,qid:3 1:1", "a label must be a number, not 'qid:3'"),
        ("1,2,:3", "a label must be a number"),
        ("1 x:1", "index:value with a whole index, not 'x:1'"),
        ("1 -3:1", "index:value with a whole index"),
        ("1 3", "followed by a colon"),
        ("1 3:", "a feature value must be a number, not the end of the line"),
        ("1 3:abc", "a feature value must be a number, not 'abc'"),
        ("1 3:1:2", "a feature value must be a number, not '1:2'"),
        ("1 3:1e999", "a feature value must be finite"),
        ("1 3:inf", "a feature value must be finite"),
        ("1 3:" + "9" * 400, "a feature value must be finite"),
        ("1 qid:x 1:1", "qid: must be followed by a whole number"),
        ("1 1:1 qid:3", "index:value"),
        ("1 1:1 \x00", "index:value"),
    ],
)
def test_an_error_names_file_line_and_remedy(tmp_path: Path, line: str, complaint: str) -> None:
    path = written(tmp_path, f"# head\n1 1:1\n\n{line}\n1 1:1\n")
    with pytest.raises(InvalidInput) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}, line 4: ")
    assert complaint in message
    assert "\n" not in message


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("multilabel", [None, True])
@pytest.mark.parametrize("line", [1, 2, 57, 199, 200])
def test_an_error_after_the_first_block_names_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: int, multilabel: bool | None, threads: str
) -> None:
    lines = [f"{k % 3} {k % 5 + 1}:{k}{' # note' if k % 4 else ''}" if k % 7 else "" for k in range(1, 201)]
    lines[line - 1] = "1,2:3"
    path = written(tmp_path, "\n".join(lines) + "\n")
    monkeypatch.setattr("mercer.data.files.BLOCK", 128)
    monkeypatch.setattr("mercer.data.svmlight.PIECE", 32)
    monkeypatch.setenv("MERCER_NUM_THREADS", threads)
    with pytest.raises(InvalidInput) as caught:
        read(path, multilabel=multilabel)
    assert str(caught.value) == f"{path}, line {line}: a label must be a number, not '1,2:3'"


def test_a_query_number_missing_after_the_first_block_names_its_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mercer.data.files.BLOCK", 64)
    with_number, without = [f"1 qid:{k} 1:{k}" for k in range(50)], [f"1 1:{k}" for k in range(50)]
    data = read(written(tmp_path, "\n".join(with_number)))
    np.testing.assert_array_equal(data.query, np.arange(50))
    for lines, point in ((with_number + without, 51), (without + with_number, 1)):
        with pytest.raises(InvalidInput, match=f"point {point} has no qid"):
            read(written(tmp_path, "\n".join(lines)))


@given(
    st.lists(
        st.tuples(FLOATS, st.dictionaries(st.integers(0, 6), FLOATS, max_size=7)),
        min_size=1,
        max_size=8,
    )
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_float64_comes_back_with_all_its_bits(tmp_path: Path, rows: list[tuple[float, dict[int, float]]]) -> None:
    X, y = np.zeros((len(rows), 7)), np.array([label for label, _ in rows])
    for i, (_, entries) in enumerate(rows):
        X[i, list(entries)] = list(entries.values())
    X[X == 0] = 0.0  # a zero is left out of the file, with its sign
    write(tmp_path / "a.svm", Dataset(X, y))
    data = read(tmp_path / "a.svm", features=7, sparse=False, zero_based=False)
    assert data.X.tobytes() == X.tobytes()
    assert data.y is not None
    assert np.where(data.y == 0, 0.0, data.y).tobytes() == np.where(y == 0, 0.0, y).tobytes()


def test_missing_values_are_treated_as_chosen(tmp_path: Path) -> None:
    path = written(tmp_path, "1 1:1 2:nan\n1 1:2 2:4\n-1 1:nan 2:2\n")
    with pytest.raises(InvalidInput, match="2 values are missing; choose missing="):
        read(path)
    assert np.isnan(read(path, missing="keep").X).sum() == 2
    np.testing.assert_array_equal(read(path, missing="drop").X, [[2, 4]])
    train = read(path, missing="impute")
    np.testing.assert_array_equal(train.X, [[1, 3], [2, 4], [1.5, 2]])
    sparse_train = read(path, missing="impute", sparse=True)
    np.testing.assert_array_equal(sparse_train.X.toarray(), train.X)
    test = read(written(tmp_path, "1 1:nan 2:nan\n", "b.svm"), missing="impute", like=train)
    np.testing.assert_array_equal(test.X, [[1.5, 3]])


def test_zeros_that_a_sparse_file_leaves_out_count_in_the_mean_of_a_column(tmp_path: Path) -> None:
    path = written(tmp_path, "1 1:6 2:nan\n1 2:4\n-1 1:nan 3:1\n-1 1:3\n1 3:nan\n")
    X = np.array([[6, np.nan, 0], [0, 4, 0], [np.nan, 0, 1], [3, 0, 0], [0, 0, np.nan]])
    means = np.nanmean(X, axis=0)
    expected = np.where(np.isnan(X), means, X)
    for wanted in (True, False):
        data = read(path, missing="impute", sparse=wanted)
        assert data.is_sparse == wanted
        np.testing.assert_allclose(data.X.toarray() if wanted else data.X, expected, rtol=1e-15)
        assert list(data.imputed.values()) == pytest.approx(means, rel=1e-15)


@pytest.mark.parametrize("content", [b"", b"\n\n# only a comment\n"])
def test_a_file_without_points_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InvalidInput, match="holds no points"):
        read(written(tmp_path, content))


def test_damaged_and_swollen_archives_are_refused(tmp_path: Path) -> None:
    packed = lzma.compress(b"1 1:1\n" * 100_000)
    with pytest.raises(InvalidInput, match="cannot be read"):
        read(written(tmp_path, packed[: len(packed) // 2], "a.svm.xz"))
    with pytest.raises(InvalidInput, match="cannot be read"):
        read(written(tmp_path, b"not an archive", "b.svm.gz"))
    bomb = lzma.compress(b"\0" * (64 << 20))
    started = time.perf_counter()
    with pytest.raises(InvalidInput, match="the limit for reading"):
        read(written(tmp_path, bomb, "c.svm.xz"), limit="1 MiB")
    assert time.perf_counter() - started < 10


def test_a_missing_file_or_a_folder_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no such file"):
        read(tmp_path / "nothing.svm")
    with pytest.raises(InvalidInput, match="is a folder"):
        read(tmp_path)


@given(st.binary(max_size=200), st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=6))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_end_in_data_or_in_one_line(tmp_path: Path, noise: bytes, changes: list[tuple[int, int]]) -> None:
    good = bytearray(lzma.decompress((FOLDER / "yacht.svm.xz").read_bytes())[:2000])
    for place, value in changes:
        good[place % len(good)] = value
    for content in (noise, bytes(good)):
        try:
            data = read(written(tmp_path, content))
            message = ""
        except InvalidInput as error:
            message = str(error)
        assert "\n" not in message
        if not message:
            assert np.isfinite(data.X.data if data.is_sparse else data.X).all()


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = written(tmp_path, "1 1:1\n")
    with pytest.raises(InvalidInput, match="numeric labels only"):
        write(path, Dataset(np.eye(2), np.array(["a", "b"])))
    assert path.read_text() == "1 1:1\n"
    assert os.listdir(tmp_path) == ["a.svm"]


@pytest.mark.data
def test_benchmark_sets_are_read_by_name(benchmark_data: Path) -> None:
    from mercer.data import benchmark

    data = benchmark("a9a", "train", features=123)
    assert (data.n, data.d) == (32561, 123)
    assert data.is_sparse


def test_without_the_folder_of_benchmark_sets_the_error_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from mercer.data import benchmark

    monkeypatch.delenv("MERCER_DATA", raising=False)
    with pytest.raises(InvalidInput, match="MERCER_DATA is not set"):
        benchmark("a9a")
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    with pytest.raises(InvalidInput, match=r"a9a\.train\.svm\.xz is not in the folder"):
        benchmark("a9a", "train")
