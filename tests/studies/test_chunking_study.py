"""The study of chunks runs from end to end on made-up sentences."""

import importlib.util
from pathlib import Path

STUDIES = Path(__file__).parents[2] / "studies"


def test_the_smoke_run_finds_the_chunks_of_a_small_grammar(tmp_path):
    specification = importlib.util.spec_from_file_location("chunking_study", STUDIES / "chunking.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    report = tmp_path / "report.md"
    assert module.main(["--smoke", "--out", str(report)]) == 0
    text = report.read_text()
    assert "| StructuredPerceptron | 100.00 |" in text
    for words in ("relative gap", "Sha and Pereira 2003", "94.38", "labels right"):
        assert words in text
