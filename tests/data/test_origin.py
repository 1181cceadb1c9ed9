"""Every point knows its place in the file it was read from, as the format counts: checked against the text itself."""

from pathlib import Path

import numpy as np
import pytest

from mercer.data import Dataset, read, sample


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def places(data: Dataset) -> list[int]:
    assert data.origin is not None
    return [int(place) for place in data.origin.places]


def counting(data: Dataset) -> tuple[str, int]:
    assert data.origin is not None
    return data.origin.unit, data.origin.first_feature


@pytest.mark.parametrize("threads", ["1", "5"])
def test_svmlight_points_know_their_lines_past_comments_and_empty_lines(
    tmp_path: Path, threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = ("", "# 1 1:1\n", "\n", " \t\r\n", "  # a comment\n\n")
    text = "".join(f"{noise[k % 5]}{k % 2} 1:{k} 3:1{' # 1:2' if k % 3 else ''}\n" for k in range(300))
    monkeypatch.setenv("MERCER_NUM_THREADS", threads)
    monkeypatch.setattr("mercer.data.svmlight.PIECE", 64)
    monkeypatch.setattr("mercer.data.files.BLOCK", 512)
    data = read(written(tmp_path, "a.svm", text.rstrip("\n")), sparse=False)
    lines = text.split("\n")
    assert data.n == 300
    assert [int(lines[place - 1].split()[1][2:]) for place in places(data)] == list(range(300))
    assert counting(data) == ("line", 1)
    assert counting(read(written(tmp_path, "b.svm", "1 0:3 1:2\n"))) == ("line", 0)


def test_csv_points_know_their_first_lines_past_header_empty_lines_and_quoted_line_ends(tmp_path: Path) -> None:
    text = '\n\na,note,y\n1,plain,0\n\n2,"two\nlines, and\na third",1\n3,plain,0\n'
    data = read(written(tmp_path, "a.csv", text))
    assert places(data) == [4, 6, 9]
    np.testing.assert_array_equal(data.X[:, 0], [1, 2, 3])
    assert counting(data) == ("line", 0)
    assert places(read(written(tmp_path, "b.csv", "1,2,0\n3,4,1\n"))) == [1, 2]


def test_rows_of_arrays_and_parquet_count_from_zero(tmp_path: Path) -> None:
    X, y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 0])
    np.save(tmp_path / "a.npy", X)
    np.savez(tmp_path / "a.npz", X=X, y=y)
    found = [read(tmp_path / "a.npy"), read(tmp_path / "a.npz")]
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"a": X[:, 0], "y": y}), tmp_path / "a.parquet")
    for data in [*found, read(tmp_path / "a.parquet")]:
        assert places(data) == [0, 1, 2]
        assert counting(data) == ("row", 0)


def test_places_follow_the_points_that_are_taken_and_dropped(tmp_path: Path) -> None:
    path = written(tmp_path, "a.svm", "# head\n1 1:1\n0 1:nan\n\n1 1:3\n0 1:4\n")
    data = read(path, missing="drop", sparse=False)
    assert places(data) == [2, 5, 6]
    assert places(data.take([2, 0])) == [6, 2]
    assert places(data.take(np.array([False, True, False]))) == [5]


def test_points_joined_from_two_files_claim_no_place_in_either() -> None:
    assert sample("satimage").origin is None
    assert places(sample("satimage", "test"))[:2] == [1, 2]
