"""The study of handwritten words runs from end to end on synthetic ones."""

import importlib.util
from pathlib import Path

STUDY = Path(__file__).parents[2] / "studies" / "ocr_letters.py"


def test_the_smoke_run_writes_the_table(tmp_path):
    specification = importlib.util.spec_from_file_location("ocr_letters_study", STUDY)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    report = tmp_path / "report.md"
    assert module.main(["--smoke", "--work", str(tmp_path / "work"), "--out", str(report)]) == 0
    text = report.read_text()
    for machine in module.MACHINES.values():
        assert machine.words in text
    assert "test on nine" in text
    assert "test on one" in text
