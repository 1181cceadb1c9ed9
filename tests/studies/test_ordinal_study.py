"""The study of ordinal regression runs from end to end on a few draws."""

import importlib.util
from pathlib import Path

STUDY = Path(__file__).parents[2] / "studies" / "ordinal.py"


def test_the_smoke_run_writes_the_curves(tmp_path):
    specification = importlib.util.spec_from_file_location("ordinal_study", STUDY)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    report = tmp_path / "report.md"
    assert module.main(["--smoke", "--out", str(report)]) == 0
    text = report.read_text()
    for words in ("Learning curves", "sd 0.125", "variance 0.125", "Weston and Watkins", "one versus one"):
        assert words in text
    assert "OHSUMED" not in text
