"""The study of LS-SVM iteration counts runs from end to end on synthetic data."""

import importlib.util
from pathlib import Path

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


@pytest.mark.parametrize(
    "name, n, d", [("acr", 690, 14), ("ger", 1000, 20), ("ion", 351, 33), ("ttt", 958, 9), ("wbc", 683, 9)]
)
def test_data_sets_have_the_published_size_and_coding(benchmark_data, name, n, d):
    study = load()
    X, y = study.read(benchmark_data / study.SETS[name][0])
    assert X.shape == (n, d)
    assert set(y) == {-1.0, 1.0}
