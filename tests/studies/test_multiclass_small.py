"""The study of multiclass schemes runs from end to end on synthetic data, and its search is the stated one."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

STUDY = Path(__file__).parents[2] / "studies" / "multiclass_small.py"


def load():
    specification = importlib.util.spec_from_file_location("multiclass_small", STUDY)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_smoke_run_writes_every_table_and_figure(tmp_path, capsys):
    study = load()
    report = tmp_path / "report.md"
    assert study.main(["--smoke", "--work", str(tmp_path / "work"), "--out", str(report)]) == 0
    text = report.read_text()
    for title in ("Tables 4.1, 4.3, 4.5", "Table 4.6", "Table 4.7", "Figure 4-1", "Figure 4-3", "fits badly"):
        assert title in text
    for number in (1, 2, 3):
        picture = (tmp_path / f"multiclass_small_4_{number}.svg").read_text()
        assert picture.startswith("<svg")
        assert f"multiclass_small_4_{number}.svg" in text
    # A second run finds every part and writes the same report.
    capsys.readouterr()
    assert study.main(["--smoke", "--work", str(tmp_path / "work"), "--out", str(report)]) == 0
    assert capsys.readouterr().out == ""
    assert report.read_text() == text


def test_the_search_goes_to_a_local_minimum_sigma_first():
    study = load()
    tried = []

    def error(sigma, C):
        tried.append((sigma, C))
        return abs(np.log2(sigma) + 2) + abs(np.log2(C) - 3)

    assert study.search(error) == (0.25, 8.0)
    assert len(tried) == len(set(tried))


def test_folds_spread_every_class():
    study = load()
    y = np.repeat([0, 1, 2], [40, 20, 5])
    fold = study.folds(y, 5, 0)
    for label, count in ((0, 8), (1, 4), (2, 1)):
        np.testing.assert_array_equal(np.bincount(fold[y == label], minlength=5), count)


def test_the_minimiser_of_the_square_loss_is_a_line():
    study = load()
    p = np.linspace(0.01, 0.99, 30)
    np.testing.assert_allclose(study.minimiser(p, 2.0), 2 * p - 1)
    grid = np.linspace(-1, 1, 20001)
    for q in (1.5, 3.0):
        for chance in (0.2, 0.7):
            risk = chance * np.abs(1 - grid) ** q + (1 - chance) * np.abs(1 + grid) ** q
            assert study.minimiser(np.array([chance]), q)[0] == pytest.approx(grid[risk.argmin()], abs=2e-4)
