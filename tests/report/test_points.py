"""Points to check are rows of the file they came from: its lines or rows, its units, its names, after a split too."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mercer.cli.app import main
from mercer.data import Dataset, Standardise, read
from mercer.data.dataset import Origin
from mercer.errors import InvalidInput
from mercer.report import influential, write_report
from mercer.svm import SVC

N, WRONG = 120, 57


def table() -> tuple[Any, Any]:
    """Two clouds, and one point in the middle of the other cloud with a height like no other."""
    random = np.random.default_rng(0)
    y = np.arange(N) % 2
    X = np.column_stack([100.0 + 10.0 * y + random.normal(size=N), 5000.0 + 700.0 * random.normal(size=N)])
    y[WRONG] = 1 - y[WRONG]
    X[WRONG, 1] = 9999.0
    return X, y


def csv_file(folder: Path) -> tuple[Path, int]:
    """A file with a header and empty lines, and the line of the wrong point in it."""
    X, y = table()
    lines = ["width,height,class"]
    for i in range(N):
        lines += [""] * (i % 7 == 0) + [f"{X[i, 0]:.3f},{X[i, 1]:.0f},{'ab'[y[i]]}"]
    path = folder / "train.csv"
    path.write_text("\n".join(lines) + "\n")
    return path, next(k for k, line in enumerate(lines, start=1) if ",9999," in line)


def svm_file(folder: Path) -> tuple[Path, int]:
    """A file with comments, and the line of the wrong point in it."""
    X, y = table()
    lines = ["# two clouds"]
    for i in range(N):
        lines += ["# note"] * (i % 5 == 0) + [f"{y[i]} 1:{X[i, 0]:.3f} 2:{X[i, 1]:.0f}"]
    path = folder / "train.svm"
    path.write_text("\n".join(lines) + "\n")
    return path, next(k for k, line in enumerate(lines, start=1) if " 2:9999" in line)


def checked(page: Path) -> tuple[str, dict[int, str]]:
    """The table of points to check: its caption, and the text of each row by its place."""
    text = page.read_text(encoding="utf-8")
    found = re.search(r"<table class=\"wide\">\s*<caption>(Points to check.*?)</caption>(.*?)</table>", text, re.DOTALL)
    assert found is not None
    rows = re.findall(r"<tr><td.*?</tr>", found[2], re.DOTALL)
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in rows]
    return found[1], {int(row[0]): ", ".join(row[1:]) for row in cells}


@pytest.mark.parametrize(
    ("write", "value", "counted"),
    [
        (csv_file, "height = 9999", "lines of the file count from 1, with its header"),
        (svm_file, "feature 2 = 9999", "lines of the file count from 1, with its header, comments"),
    ],
)
def test_the_command_tells_the_line_of_a_wrong_point_and_its_values(
    write: Any, value: str, counted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mercer.cli.fit.REPORT_SECONDS", 1.0)
    path, line = write(tmp_path)
    with pytest.raises(SystemExit):  # a fifth of the points is held out, and the wrong one is not among them
        main(f"fit {path.name} --machine svc --C 1 --sigma 2 --report r.html --seed 0".split())
    caption, rows = checked(tmp_path / "r.html")
    assert value in rows[line]
    assert path.name in caption
    assert counted in caption
    assert len(rows) == 10
    lines = path.read_text().splitlines()
    for place, text in rows.items():
        own = re.search(r"(?:width|feature 1) = ([\d.]+)", text)
        assert own is None or own[1].rstrip("0") in lines[place - 1]


def test_rows_of_an_array_file_count_from_zero(tmp_path: Path) -> None:
    X, y = table()
    np.savez(tmp_path / "a.npz", X=X, y=y)
    source = read(tmp_path / "a.npz").take(np.arange(20, N))
    Z = Standardise.learn(source.X)(source.X)
    machine = SVC(C=1.0, kernel="linear").fit(Z, source.y)
    caption, rows = checked(write_report(tmp_path / "r.html", machine, Z, source.y, source=source, data_name="a.npz"))
    assert "rows of the file count from 0" in caption
    assert "a.npz" in caption
    assert "feature 1 = 9999" in rows[WRONG]


def test_a_pipeline_tells_values_as_they_were_given(tmp_path: Path) -> None:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = table()
    machine = make_pipeline(StandardScaler(), SVC(C=1.0, kernel="linear")).fit(X, y)
    caption, rows = checked(write_report(tmp_path / "r.html", machine, X, y, feature_names=["width", "height"]))
    assert "points count from 0, in the order in which they were given" in caption
    assert "height = 9999" in rows[WRONG]


def test_places_and_units_are_those_of_the_origin() -> None:
    X, y = table()
    Z = Standardise.learn(X)(X)
    machine = SVC(C=1.0, kernel="linear").fit(Z, y)
    plain = influential(machine, Z, y)
    found = influential(machine, Z, y, values=X, origin=Origin(np.arange(N) * 3 + 2, "line", 1))
    np.testing.assert_array_equal(found.index, plain.index)
    assert (plain.headings[0], found.headings[0]) == ("point", "line")
    assert [int(row[0]) for row in found.rows] == (plain.index * 3 + 2).tolist()
    for i, row in zip(found.index, found.rows):
        values = {int(j): float(v) for j, v in re.findall(r"feature (\d) = ([-\d.e+]+)", row[-1])}
        assert values == {j: pytest.approx(X[i, j - 1], rel=1e-5) for j in (1, 2)}


def test_a_source_of_other_points_is_refused(tmp_path: Path) -> None:
    X, y = table()
    machine = SVC().fit(X, y)
    with pytest.raises(InvalidInput, match="source has 119 points where X has 120"):
        write_report(tmp_path / "r.html", machine, X, y, source=Dataset(X[1:], y[1:]))
