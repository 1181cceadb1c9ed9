"""CSV and Parquet: numbers, categories, missing values, targets, and files that are not what they seem."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mercer.data import Dataset, read, write
from mercer.errors import ColumnLeftOut, InvalidInput, UnseenCategory

TABLE = "age,colour,class\n1,red,yes\n2,blue,no\n4,red,yes\n"


def written(folder: Path, text: str | bytes, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_texts_become_one_column_each_value(tmp_path: Path) -> None:
    data = read(written(tmp_path, TABLE))
    assert data.feature_names == ("age", "colour=blue", "colour=red")
    np.testing.assert_array_equal(data.X, [[1, 0, 1], [2, 1, 0], [4, 0, 1]])
    np.testing.assert_array_equal(data.y, ["yes", "no", "yes"])
    assert data.target_name == "class"
    assert data.categories == {"colour": ("blue", "red")}


def test_a_test_table_is_coded_like_its_training_table(tmp_path: Path) -> None:
    train = read(written(tmp_path, TABLE))
    later = written(tmp_path, "class,colour,age\nno,green,3\nno,blue,\n", "b.csv")
    with pytest.warns(UnseenCategory, match="'colour' holds texts at 1 points .*such as 'green'"):
        test = read(later, like=train, missing="keep")
    np.testing.assert_array_equal(test.X, [[3, 0, 0], [np.nan, 1, 0]])
    np.testing.assert_array_equal(test.y, ["no", "no"])
    bare = read(written(tmp_path, "colour,age\nred,3\n", "c.csv"), like=train)
    assert bare.y is None
    with pytest.raises(InvalidInput, match="lacks the columns 'colour'"):
        read(written(tmp_path, "age,class\n1,no\n", "d.csv"), like=train)


def test_the_target_is_found_by_name_number_or_habit(tmp_path: Path) -> None:
    path = written(tmp_path, "y;a;b\n1;2;3\n4;5;6\n")
    assert read(path).target_name == "y"
    assert read(path, target="b").target_name == "b"
    assert read(path, target=-1).target_name == "b"
    assert read(path, target=False).y is None
    np.testing.assert_array_equal(read(path, target=["y", "b"]).y, [[1, 3], [4, 6]])
    with pytest.raises(InvalidInput, match="target='z' is not one of its columns 'y', 'a', 'b'"):
        read(path, target="z")


def test_a_table_without_header_takes_the_last_column(tmp_path: Path) -> None:
    data = read(written(tmp_path, "1,2,a\n3,4,b\n"))
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(data.y, ["a", "b"])


def test_missing_values_in_a_table(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b,y\n1,red,1\n?,blue,2\n3,NA,3\n")
    with pytest.raises(InvalidInput, match="1 values are missing"):
        read(path)
    data = read(path, missing="impute")
    np.testing.assert_array_equal(data.X, [[1, 0, 1], [2, 1, 0], [3, 0, 0]])
    assert data.imputed == {"a": 2.0}
    with pytest.raises(InvalidInput, match="target 'y' of point 2 is missing"):
        read(written(tmp_path, "a,y\n1,1\n2,\n"))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty"),
        ("a,b\n", "has a header and no points"),
        ("a,b\n1,2\n3\n", "line 3: has 1 cells where the first line has 2"),
        ("a,a\n1,2\n", "line 1: two columns are called 'a'"),
        ('a,b\n1,"2\n', "line"),
        (b"a,b\n1,\xff\n", "line 2: is not UTF-8 text"),
        ("a,y\ninf,1\n", "infinite values"),
        ("y\n1\n", "has no column besides the target"),
    ],
)
def test_bad_tables_end_in_one_line(tmp_path: Path, text: str | bytes, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint) as caught:
        read(written(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_a_column_of_names_is_left_out_with_the_remedy(tmp_path: Path) -> None:
    rows = "".join(f"name{k},{k},{k % 2}\n" for k in range(1500))
    path = written(tmp_path, "who,a,y\n" + rows)
    with pytest.warns(ColumnLeftOut, match=r"'who' is left out: .* more than 1000 different texts.*ignore=\['who'\]"):
        data = read(path)
    assert data.feature_names == ("a",)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(path, ignore=["who"]).d == 1


@pytest.mark.parametrize("line", [2, 3, 101, 200])
def test_an_error_after_the_first_block_names_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: int
) -> None:
    monkeypatch.setattr("mercer.data.files.BLOCK", 100)
    lines = ["a,b,y", *(f"{k},{k / 7},{k % 2}" for k in range(2, 201))]
    for wrong, complaint in ((b"1,2", "has 2 cells where the first line has 3"), (b"1,\xff,2", "is not UTF-8 text")):
        content = [text.encode() for text in lines]
        content[line - 1] = wrong
        path = written(tmp_path, b"\n".join(content))
        with pytest.raises(InvalidInput) as caught:
            read(path)
        assert str(caught.value) == f"{path}, line {line}: {complaint}"


def test_a_wide_one_hot_table_is_sparse(tmp_path: Path) -> None:
    rows = "".join(f"v{k % 50},{k % 2}\n" for k in range(200))
    data = read(written(tmp_path, "a,y\n" + rows))
    assert data.is_sparse
    assert data.d == 50
    assert not read(tmp_path / "a.csv", sparse=False).is_sparse


def test_written_tables_read_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = Dataset(rng.standard_normal((5, 3)), np.array(["a", "b", "a", "b", "c"]), target_name="kind")
    write(tmp_path / "a.csv.gz", data)
    again = read(tmp_path / "a.csv.gz", target="kind")
    np.testing.assert_array_equal(again.X, data.X)
    np.testing.assert_array_equal(again.y, data.y)


def test_parquet_equals_csv(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table(
        {
            "age": [1, None, 4],
            "colour": pyarrow.array(["red", "blue", "red"]).dictionary_encode(),
            "class": ["yes", "no", "yes"],
        }
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    data = read(tmp_path / "a.parquet", missing="impute")
    same = read(written(tmp_path, "age,colour,class\n1,red,yes\n,blue,no\n4,red,yes\n"), missing="impute")
    np.testing.assert_array_equal(data.X, same.X)
    np.testing.assert_array_equal(data.y, same.y)
    assert data.feature_names == same.feature_names
    with pytest.raises(InvalidInput, match="is not a Parquet file"):
        read(written(tmp_path, "a,b\n", "b.parquet"))


@given(st.binary(max_size=200))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_end_in_data_or_in_one_line(tmp_path: Path, noise: bytes) -> None:
    try:
        read(written(tmp_path, noise), missing="keep")
        message = ""
    except InvalidInput as error:
        message = str(error)
    assert "\n" not in message
