"""One table, one data set: CSV and Parquet give the same columns, names, values and labels, whoever wrote them."""

import datetime
import re
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mercer.data import Dataset, read
from mercer.data.columns import canonical
from mercer.errors import ColumnLeftOut, InvalidInput, UnseenCategory

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
from pyarrow import csv as arrow_csv  # noqa: E402
from pyarrow import parquet  # noqa: E402

DAYS = [datetime.date(2020, 1, 1), datetime.date(2021, 12, 31), None, datetime.date(2020, 1, 1)]
TIMES = [datetime.datetime(2020, 1, 1, 10), datetime.datetime(2020, 1, 2), datetime.datetime(2020, 1, 1, 10), None]
EXACT = [datetime.datetime(2020, 1, 1, 10, 0, 0, 500000), datetime.datetime(2020, 1, 2, 0, 0, 7), None, None]

GAPS = pyarrow.array(["red", None, "", "?"])

# Columns of four rows by name, each as Arrow arrays that stand for the same values.
COLUMNS: dict[str, list[Any]] = {
    "truth": [pyarrow.array([True, False, False, True])],
    "truth with gaps": [pyarrow.array([True, None, False, True])],
    "whole": [pyarrow.array([1, 2, 3, -4], kind) for kind in (pyarrow.int8(), pyarrow.int64(), pyarrow.float64())]
    + [pyarrow.array([1, 2, 3, -4]).dictionary_encode()],
    "large": [pyarrow.array([2**53 + 1, 2**62, -(2**62) - 1, 0])],
    "unsigned": [pyarrow.array([2**64 - 1, 0, 1, 2], pyarrow.uint64())],
    "whole with gaps": [pyarrow.array([1, None, 3, -4])],
    "fractions": [pyarrow.array([0.1, 1e-300, -2.5, 1 / 3])],
    "single precision": [pyarrow.array([0.5, 1.25, -3.0, None], pyarrow.float32())],
    "half precision": [pyarrow.array([0.5, 1.25, -3.0, None], pyarrow.float16())],
    "not a number": [pyarrow.array([0.1, float("nan"), None, 2.0])],
    "decimal": [pyarrow.array([Decimal("0.10"), Decimal("12345678.91"), None, Decimal("-3.00")])],
    "texts": [
        pyarrow.array(["red", "blue", "red", "green"], kind)
        for kind in (pyarrow.string(), pyarrow.large_string(), pyarrow.string_view())
    ]
    + [pyarrow.array(["red", "blue", "red", "green"]).dictionary_encode()],
    "texts with gaps": [GAPS, GAPS.dictionary_encode()],
    "texts of numbers": [pyarrow.array(["01", "2.50", "-3", None])],
    "texts of truth": [pyarrow.array(["TRUE", "false", "False", None])],
    "mixed": [pyarrow.array(["1", "2.50", "x", "True"])],
    "padded": [pyarrow.array([" a", "a ", "b", "a"])],
    "days": [pyarrow.array(DAYS), pyarrow.array(DAYS, pyarrow.date64())],
    "moments": [pyarrow.array(TIMES, pyarrow.timestamp(unit)) for unit in ("s", "ms", "us", "ns")],
    "exact moments": [pyarrow.array(EXACT, pyarrow.timestamp(unit)) for unit in ("ms", "us", "ns")],
    "zoned moments": [pyarrow.array(TIMES, pyarrow.timestamp("us", tz="UTC"))],
    "time of day": [pyarrow.array([datetime.time(10), datetime.time(9, 30), datetime.time(10), None])],
    "nothing": [pyarrow.nulls(4), pyarrow.nulls(4, pyarrow.string()), pyarrow.nulls(4, pyarrow.bool_())],
}  # fmt: skip
CASES = [(name, k) for name, arrays in COLUMNS.items() for k in range(len(arrays))]


def plain(column: Any) -> Any:
    """The column without dictionary or views, which Arrow does not write to CSV."""
    kind = column.type.value_type if pyarrow.types.is_dictionary(column.type) else column.type
    return column.cast(pyarrow.string() if pyarrow.types.is_string_view(kind) else kind)


def arrow_writes_csv(table: Any, path: Path) -> None:
    arrow_csv.write_csv(pyarrow.table([plain(column) for column in table.columns], table.column_names), path)


def pandas_writes_csv(table: Any, path: Path) -> None:
    table.to_pandas(types_mapper=nullable).to_csv(path, index=False)


def nullable(kind: Any) -> Any:
    """pandas' own types for whole numbers and truth values with gaps; it would make floats of them."""
    return {pyarrow.bool_(): pandas.BooleanDtype(), pyarrow.int64(): pandas.Int64Dtype()}.get(kind)


def polars_writes_csv(table: Any, path: Path) -> None:
    polars.from_arrow(table).write_csv(path)


def arrow_writes(table: Any, path: Path) -> None:
    parquet.write_table(table, path)


def arrow_writes_plainly(table: Any, path: Path) -> None:
    parquet.write_table(table, path, use_dictionary=False, row_group_size=2, compression="none", version="1.0")


def pandas_writes(table: Any, path: Path) -> None:
    table.to_pandas().to_parquet(path)


def polars_writes(table: Any, path: Path) -> None:
    polars.from_arrow(table).write_parquet(path)


WRITERS: dict[str, Callable[[Any, Path], None]] = {
    "arrow.csv": arrow_writes_csv,
    "pandas.csv": pandas_writes_csv,
    "polars.csv": polars_writes_csv,
    "arrow.parquet": arrow_writes,
    "plain.parquet": arrow_writes_plainly,
    "pandas.parquet": pandas_writes,
    "polars.parquet": polars_writes,
}


def same(one: Dataset, other: Dataset) -> None:
    assert one.feature_names == other.feature_names
    assert one.categories == other.categories
    assert one.target_name == other.target_name
    dense = [data.X.toarray() if data.is_sparse else data.X for data in (one, other)]
    np.testing.assert_array_equal(*dense)
    assert (one.y is None) == (other.y is None)
    if one.y is not None and other.y is not None:
        assert one.y.dtype.kind == other.y.dtype.kind
        np.testing.assert_array_equal(one.y, other.y)


def read_all(folder: Path, table: Any, **options: Any) -> list[Dataset]:
    """The data sets of one table from every writer's file."""
    for name, write in WRITERS.items():
        write(table, folder / name)
    return [read(folder / name, missing="keep", **options) for name in WRITERS]


@pytest.mark.parametrize(("name", "form"), CASES)
def test_a_column_is_the_same_feature_from_every_file(tmp_path: Path, name: str, form: int) -> None:
    table = pyarrow.table({name: COLUMNS[name][form], "b": [4.0, 3.0, 2.0, 1.0], "y": ["p", "q", "q", "p"]})
    first, *others = read_all(tmp_path, table)
    assert first.feature_names is not None
    assert first.feature_names[-1] == "b"
    for other in others:
        same(other, first)


@pytest.mark.parametrize(("name", "form"), [case for case in CASES if not COLUMNS[case[0]][case[1]].null_count])
def test_a_column_is_the_same_target_from_every_file(tmp_path: Path, name: str, form: int) -> None:
    table = pyarrow.table({"b": [4.0, 3.0, 2.0, 1.0], name: COLUMNS[name][form]})
    first, *others = read_all(tmp_path, table, target=name)
    assert first.y is not None
    for other in others:
        same(other, first)


def test_truth_values_are_one_feature_and_labels_of_their_own(tmp_path: Path) -> None:
    table = pyarrow.table({"smokes": [True, False, True], "b": [1, 2, 3], "ill": [False, False, True]})
    for data in read_all(tmp_path, table):
        assert data.feature_names == ("smokes", "b")
        np.testing.assert_array_equal(data.X, [[1, 1], [0, 2], [1, 3]])
        assert data.y is not None
        assert data.y.dtype == bool
        assert data.y.tolist() == [False, False, True]


def test_levels_of_a_category_that_do_not_occur_are_no_features(tmp_path: Path) -> None:
    frame = pandas.DataFrame({"a": pandas.Categorical(["x", "y", "x"], ["w", "x", "y"]), "y": [1, 2, 1]})
    frame.to_parquet(tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet").feature_names == ("a=x", "a=y")


def test_numbers_in_a_later_file_are_found_among_the_texts_of_training(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("size,y\n01,1\n2,0\nlarge,1\n2,0\n")
    train = read(tmp_path / "a.csv")
    assert train.feature_names == ("size=01", "size=2", "size=large")
    (tmp_path / "b.csv").write_text("size,y\n01,1\n2,0\n")
    parquet.write_table(pyarrow.table({"size": [2, 2], "y": [1, 0]}), tmp_path / "b.parquet")
    parquet.write_table(pyarrow.table({"size": [2.0, None], "y": [1, 0]}), tmp_path / "c.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(read(tmp_path / "b.csv", like=train, sparse=False).X, [[1, 0, 0], [0, 1, 0]])
        np.testing.assert_array_equal(read(tmp_path / "b.parquet", like=train, sparse=False).X, [[0, 1, 0], [0, 1, 0]])
        np.testing.assert_array_equal(read(tmp_path / "c.parquet", like=train, sparse=False).X, [[0, 1, 0], [0, 0, 0]])


@pytest.mark.parametrize("block", [64, 1 << 20])
def test_texts_after_many_numbers_make_all_of_them_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    cells = [f"{k % 3}.0" for k in range(100)] + ["x"] * 5
    (tmp_path / "a.csv").write_text("a,b,y\n" + "".join(f"{cell},{k},{k % 2}\n" for k, cell in enumerate(cells)))
    parquet.write_table(
        pyarrow.table({"a": cells, "b": range(105), "y": [k % 2 for k in range(105)]}),
        tmp_path / "a.parquet",
        row_group_size=10,
    )
    monkeypatch.setattr("mercer.data.files.BLOCK", block)
    first = read(tmp_path / "a.csv")
    assert first.feature_names == ("a=0.0", "a=1.0", "a=2.0", "a=x", "b")
    assert first.X[:, :4].sum(axis=0).tolist() == [34, 33, 33, 5]
    same(read(tmp_path / "a.parquet"), first)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("2020-01-02T00:00:00", "2020-01-02"),
        ("2020-01-02 00:00", "2020-01-02"),
        ("2020-01-02T10:30:00.500000Z", "2020-01-02 10:30:00.5+00:00"),
        ("2020-01-02 00:00:00+0000", "2020-01-02 00:00:00+00:00"),
        ("2020-01-02 10:30:00+0530", "2020-01-02 10:30:00+05:30"),
        ("10:30-0800", "10:30:00-08:00"),
        ("10:30:00.000000", "10:30:00"),
        ("2020-01-02", "2020-01-02"),
        ("10:30 sharp", "10:30 sharp"),
        ("", ""),
    ],
)
def test_a_moment_has_one_text(written: str, text: str) -> None:
    assert canonical(written) == text
    assert canonical(text) == text


def test_columns_that_are_no_table_cells_are_refused_by_name(tmp_path: Path) -> None:
    table = pyarrow.table({"a": [[1], [2]], "b": [b"x", b"y"], "c": [1, 2], "y": [0, 1]})
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InvalidInput, match=r"column 'a' is of type list.*ignore=\['a'\]"):
        read(tmp_path / "a.parquet")
    with pytest.raises(InvalidInput, match="column 'b' is of type binary"):
        read(tmp_path / "a.parquet", ignore=["a"])
    assert read(tmp_path / "a.parquet", ignore=["a", "b"]).feature_names == ("c",)


# Columns that teach nothing ----------------------------------------------------------------------------------------


def both(folder: Path, table: dict[str, Any], **options: Any) -> list[Dataset]:
    frame = pandas.DataFrame(table)
    frame.to_csv(folder / "a.csv", index=False)
    frame.to_parquet(folder / "a.parquet")
    return [read(folder / "a.csv", **options), read(folder / "a.parquet", **options)]


def test_texts_with_nearly_as_many_values_as_rows_are_left_out_with_a_warning(tmp_path: Path) -> None:
    n = 100
    table = {
        "who": [f"name {k}" for k in range(n)],
        "day": pandas.date_range("2020-01-01", periods=n),
        "ticket": [f"t{k % 51}" for k in range(n)],
        "cabin": [f"c{k % 35}" if k < 60 else None for k in range(n)],
        "town": [f"t{k % 50}" for k in range(n)],
        "few": [f"f{k}" if k < 30 else None for k in range(n)],
        "b": np.arange(n),
        "y": np.arange(n) % 2,
    }
    with pytest.warns(ColumnLeftOut) as caught:
        found = both(tmp_path, table)
    for data in found:
        assert data.columns == ("town", "few", "b")
        assert data.d == 50 + 30 + 1
    texts = [str(warning.message) for warning in caught]
    for name, count in {
        "who": "100 .* at 100",
        "day": "100 .* at 100",
        "ticket": "51 .* at 100",
        "cabin": "35 .* at 60",
    }.items():
        assert len([text for text in texts if f"column {name!r} is left out" in text]) == 2
        assert any(
            re.search(f"{name!r} is left out: it holds {count.replace(' .* ', ' different texts ')} points", text)
            for text in texts
        )
    assert all("to use it" in text and "ignore=[" in text for text in texts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        both(tmp_path, table, ignore=["who", "day", "ticket", "cabin"])


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
@pytest.mark.parametrize("index", [range(5), range(1, 6), [7, 3, 9, 0, 4]])
def test_an_index_without_a_name_is_left_out_with_a_warning(tmp_path: Path, name: str, index: Any) -> None:
    table = {name: list(index), "b": [1, 2, 4, 8, 16], "y": [0, 1, 0, 1, 0]}
    with pytest.warns(ColumnLeftOut, match=f"column '{name}' is left out: it has no name and numbers the rows"):
        found = both(tmp_path, table)
    for data in found:
        assert data.feature_names == ("b",)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [data.feature_names for data in both(tmp_path, table | {name: [1, 1, 2, 3, 4]})] == [(name, "b")] * 2
        assert [
            data.feature_names for data in both(tmp_path, {"n" if k == name else k: v for k, v in table.items()})
        ] == [("n", "b")] * 2
        later = [read(tmp_path / "a.csv", like=data) for data in found if "b" in (data.columns or ())]
    assert [data.d for data in later] == [1, 1]


def test_an_index_that_pandas_wrote_to_parquet_is_left_out_too(tmp_path: Path) -> None:
    frame = pandas.DataFrame({"b": [1, 2, 4], "y": [0, 1, 0]}, index=[5, 2, 9])
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.warns(ColumnLeftOut, match="__index_level_0__"):
        assert read(tmp_path / "a.parquet", target="y").feature_names == ("b",)


def test_texts_not_seen_in_training_are_counted_in_a_warning(tmp_path: Path) -> None:
    train, _ = both(tmp_path, {"a": ["x", "y", "x"], "b": [1, 2, 3], "y": [0, 1, 0]})
    with pytest.warns(UnseenCategory, match=r"'a' holds texts at 2 points .*\(such as 'u', 'v'\).* zero") as caught:
        found = both(tmp_path, {"a": ["u", "y", "v", None], "b": [1, 2, 3, 4], "y": [0, 1, 0, 1]}, like=train)
    assert len(caught) == 2
    for data in found:
        np.testing.assert_array_equal(data.X[:, :2], [[0, 0], [0, 1], [0, 0], [0, 0]])
