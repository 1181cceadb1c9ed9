"""The study of LS-SVM iteration counts runs from end to end on synthetic data."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

STUDY = Path(__file__).parents[2] / "studies" / "ls_svm_iterations.py"


def load():
    specification = importlib.util.spec_from_file_location("ls_svm_iterations", STUDY)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_smoke_run_writes_every_table(tmp_path, capsys):
    report = tmp_path / "report.md"
    assert load().main(["--smoke", "--out", str(report)]) == 0
    text = report.read_text()
    for title in ("Table 3.1", "Table 3.2", "Figure 3.3", "Why did block CG lose?"):
        assert title in text
    assert "| hea | 40 | linear | 14 | 26 |" in text
    assert "ended at the limit of 60,000 iterations and 0 diverged" in text


def test_the_limit_divergence_and_breakdown_are_told_apart(monkeypatch):
    study = load()
    X, y = study.synthetic()
    monkeypatch.setattr(study, "LIMIT", 3)
    limit = study.stationary_counts(study.Gaussian(sigma=1.0), 10.0, X, y, 1, "none")
    assert limit.startswith("> 3 (")
    solved = study.stationary.solve
    monkeypatch.setattr(
        study.stationary, "solve", lambda problem, **options: solved(problem, **options, method="jacobi")
    )
    monkeypatch.setattr(study, "LIMIT", 1000)
    diverged = study.stationary_counts(study.Gaussian(sigma=5.0), 10.0, X, y, 1, "none")
    assert diverged.startswith("diverged at ")
    assert study.endings([limit.replace("> 3", "> 1000"), diverged]).startswith(
        "Of the runs that did not converge 1 ended"
    )
    assert study.middle([np.inf, 7.0, np.inf], "> 500") == "> 500"
    assert study.middle([np.nan, np.nan, np.inf], "> 500") == "broke down"
    assert study.middle([6.0, 7.0, np.nan], "> 500") == "7"


@pytest.mark.parametrize(
    "name, n, d", [("acr", 690, 14), ("ger", 1000, 20), ("ion", 351, 33), ("ttt", 958, 9), ("wbc", 683, 9)]
)
def test_data_sets_have_the_published_size_and_coding(benchmark_data, name, n, d):
    study = load()
    X, y = study.read(benchmark_data / study.SETS[name][0])
    assert X.shape == (n, d)
    assert set(y) == {-1.0, 1.0}
