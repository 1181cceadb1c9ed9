"""Queries of rankings, from every kind of file: 64 bits, in any order, on all points or none."""

import os
from pathlib import Path

import numpy as np
import pytest

from mercer import data
from mercer.errors import InvalidInput

LARGE = (1 << 53) + 1  # the first whole number that float64 does not hold


def test_large_numbers_stay_apart(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text(f"1 qid:{LARGE} 1:2\n0 qid:{LARGE - 1} 1:3\n2 qid:{LARGE} 1:4\n")
    (tmp_path / "a.csv").write_text(f"x,q,y\n2,{LARGE},1\n3,{LARGE - 1},0\n4,{LARGE},2\n")
    np.savez(tmp_path / "a.npz", X=[[2.0], [3.0], [4.0]], y=[1, 0, 2], query=np.array([LARGE, LARGE - 1, LARGE]))
    for name, options in {"a.svm": {}, "a.csv": {"groups": "q"}, "a.npz": {}}.items():
        found = data.read(tmp_path / name, **options)
        np.testing.assert_array_equal(found.query, [LARGE, LARGE - 1, LARGE])
        assert found.query.dtype == np.int64
        np.testing.assert_array_equal(found.X, [[2.0], [3.0], [4.0]])
        np.testing.assert_array_equal(found.y, [1, 0, 2])


def test_parquet_gives_the_queries_of_the_same_csv(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    for name, values in {"numbers": [LARGE, LARGE - 1, LARGE], "texts": ["b", "a", "b"]}.items():
        parquet.write_table(
            arrow.table({"x": [2.0, 3.0, 4.0], "q": values, "y": [1, 0, 2]}), tmp_path / f"{name}.parquet"
        )
        (tmp_path / f"{name}.csv").write_text("x,q,y\n" + "".join(f"{x},{q},1\n" for x, q in zip((2, 3, 4), values)))
        ours, theirs = (data.read(tmp_path / f"{name}.{kind}", groups="q").query for kind in ("parquet", "csv"))
        np.testing.assert_array_equal(ours, theirs)
        assert ours[0] == ours[2] != ours[1]


def test_a_training_file_tells_where_the_queries_of_another_are(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("q,x,y\n7,2,1\n7.0,3,0\n8,4,2\n")
    (tmp_path / "b.csv").write_text("y,x,q\n1,5,9\n0,6,9\n")
    (tmp_path / "c.csv").write_text("x\n5\n6\n")
    first = data.read(tmp_path / "a.csv", groups=0)
    np.testing.assert_array_equal(first.query, [7, 7, 8])
    assert (first.query_name, first.columns, first.left_out) == ("q", ("x",), ())
    np.testing.assert_array_equal(data.read(tmp_path / "b.csv", like=first).query, [9, 9])
    assert data.read(tmp_path / "c.csv", like=first).query is None


def test_queries_survive_writing(tmp_path: Path) -> None:
    given = data.Dataset(np.arange(6.0).reshape(3, 2) + 1, np.array([0, 1, 2]), query=np.array([5, 5, LARGE]))
    for name in ("a.svm", "a.npz"):
        data.write(tmp_path / name, given)
        np.testing.assert_array_equal(data.read(tmp_path / name).query, given.query)


def test_columns_of_an_array(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", [[1.0, 7.0, 0.0], [2.0, 7.0, 1.0], [3.0, 8.0, 2.0]])
    found = data.read(tmp_path / "a.npy", target=-1, groups=1)
    np.testing.assert_array_equal(found.query, [7, 7, 8])
    np.testing.assert_array_equal(found.X, [[1.0], [2.0], [3.0]])


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        ("a.svm", "1 qid:1 1:2\n0 1:3\n", {}, "point 2 has no qid, though others have; give every line one, or none"),
        ("a.svm", "1 1:2\n0 qid:1 1:3\n", {}, "point 1 has no qid"),
        ("a.svm", "1 qid:1 1:2\n", {"groups": "q"}, "carry their queries as qid:"),
        ("a.svm", "1 qid:9223372036854775808 1:2\n", {}, "below 2.63"),
        ("a.csv", "x,q,y\n1,3,0\n2,,1\n", {"groups": "q"}, "point 2 has no query in the column 'q'"),
        ("a.csv", "x,q,y\n1,3,0\n2,3,1\n", {"groups": "query"}, "groups='query' is not one of its columns"),
    ],
)
def test_what_cannot_be_a_query_is_refused(tmp_path: Path, name, text, options, message) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInput, match=message):
        data.read(tmp_path / name, **options)


def test_arrays_that_cannot_be_queries_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=np.ones((2, 1)), y=[0, 1], query=[0.5, 1.0])
    np.savez(tmp_path / "b.npz", X=np.ones((2, 1)), y=[0, 1], qid=[1])
    np.save(tmp_path / "a.npy", np.ones((2, 2)))
    with pytest.raises(InvalidInput, match="whole numbers"):
        data.read(tmp_path / "a.npz")
    with pytest.raises(InvalidInput, match="have shape"):
        data.read(tmp_path / "b.npz")
    with pytest.raises(InvalidInput, match="is not one of its arrays"):
        data.read(tmp_path / "a.npz", groups="other")
    with pytest.raises(InvalidInput, match="no column besides"):
        data.read(tmp_path / "a.npy", target=0, groups=1)


@pytest.mark.parametrize("name", ["ohsumed.S1", "mq2008.S5", "lgb-rank.test"])
def test_letor_files(name: str) -> None:
    place = Path(os.environ.get("MERCER_DATA", "/nowhere")) / f"{name}.letor.xz"
    if not place.exists():
        pytest.skip("the benchmark data are not there")
    found = data.read(place)
    assert found.query is not None
    assert len(found.query) == found.n > len(np.unique(found.query)) > 1
