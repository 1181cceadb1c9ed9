"""The study of low-rank least squares on usps runs from end to end on synthetic data, and its parts are as stated."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

STUDY = Path(__file__).parents[2] / "studies" / "low_rank_usps.py"


@pytest.fixture
def study(monkeypatch):
    specification = importlib.util.spec_from_file_location("low_rank_usps", STUDY)
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "low_rank_usps", module)  # its dataclasses look their module up
    specification.loader.exec_module(module)
    return module


def test_the_smoke_run_writes_every_table_and_keeps_its_draws(study, tmp_path):
    report, work = tmp_path / "report.md", tmp_path / "work"
    assert study.main(["--smoke", "--work", str(work), "--out", str(report)]) == 0
    text = report.read_text()
    for title in (
        "Random landmarks",
        "method against method",
        "Incomplete Cholesky",
        "Bagging",
        "The order depends on C",
    ):
        assert title in text
    for name in study.METHODS:
        assert f"| 20 | {name} |" in text
    # A second run finds every draw and writes the same report.
    times = {path: path.stat().st_mtime_ns for path in work.iterdir()}
    assert study.main(["--smoke", "--work", str(work), "--out", str(report)]) == 0
    assert {path: path.stat().st_mtime_ns for path in work.iterdir()} == times
    assert report.read_text() == text


def test_the_share_of_the_trace_of_the_first_pivots_is_the_measured_one(study, tmp_path):
    task = study.synthetic()
    pivots = study.choose(task.kernel, task.X, 40, method="pivoted_cholesky", measure=False)
    share = study.drawn(task, 15, None, 1.0, tmp_path, pivots)["share"]
    direct = study.choose(task.kernel, task.X, 15, method="pivoted_cholesky", measure=True)
    assert share == pytest.approx(direct.explained, abs=1e-10)


def test_leave_one_out_errors_are_those_of_explicit_retraining(study):
    task = study.synthetic()
    small = study.Task(task.X[:40], task.y[:40], task.X_test, task.y_test, task.kernel)
    _, errors = study.best_C(small, 8)
    landmarks = study.choose(small.kernel, small.X, 8, seed=0, measure=False)
    left_out = []
    for i in range(40):
        kept = np.arange(40) != i
        solution = study.rectangle(small.kernel, small.X[kept], small.y[kept], landmarks.points, C=10.0, bias="none")
        f = study.predict(solution, small.kernel, small.X[kept], landmarks.points, small.X[i : i + 1])[0, 0]
        left_out.append((small.y[i] - f) ** 2)
    assert errors[10.0] == pytest.approx(np.mean(left_out), rel=1e-6)


def test_digit_four_has_the_printed_counts(study, benchmark_data):
    task = study.usps()
    assert (task.X.shape, task.X_test.shape) == ((7291, 256), (2007, 256))
    assert ((task.y > 0).sum(), (task.y_test > 0).sum()) == (652, 200)
