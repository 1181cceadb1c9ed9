"""The study of landmarks runs from end to end on synthetic data."""

import importlib.util
import sys
from pathlib import Path

from mercer.lowrank.landmarks import METHODS

STUDY = Path(__file__).parents[2] / "studies" / "landmarks.py"


def load(monkeypatch):
    specification = importlib.util.spec_from_file_location("landmarks_study", STUDY)
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "landmarks_study", module)  # its dataclasses look their module up
    specification.loader.exec_module(module)
    return module


def test_the_smoke_run_lays_every_method_side_by_side(tmp_path, monkeypatch):
    report, rows = tmp_path / "report.md", tmp_path / "rows.json"
    study = load(monkeypatch)
    assert study.main(["--smoke", "--seeds", "1", "--out", str(report), "--rows", str(rows)]) == 0
    assert len(study.earlier(rows)["synthetic"]) == 2 * len(METHODS)
    text = report.read_text()
    for m in (5, 15):
        for method in METHODS:
            assert f"| {m} | {method} |" in text
    assert "## Against random rows" in text


def test_methods_said_to_be_free_of_chance_are(monkeypatch):
    study = load(monkeypatch)
    case = study.synthetic()["synthetic"]
    for method in study.CERTAIN:
        rows = [study.choose(study.Gaussian(sigma=1.0), case.X, 10, method=method, y=case.y, seed=s) for s in (0, 1)]
        assert set(rows[0].index) == set(rows[1].index), method
