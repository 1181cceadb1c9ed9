"""The study of shuttle runs from end to end on synthetic data."""

import importlib.util
from pathlib import Path

STUDY = Path(__file__).parents[2] / "studies" / "shuttle.py"


def load():
    specification = importlib.util.spec_from_file_location("shuttle", STUDY)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_smoke_run_writes_the_table_and_the_verdict(tmp_path):
    report = tmp_path / "report.md"
    assert load().main(["--smoke", "--out", str(report)]) == 0
    text = report.read_text()
    for words in ("OVA, standardised, chosen", "AVA", "printed", "95 % interval", "One-versus-all with sigma and C"):
        assert words in text


def test_the_printed_rates_do_not_overlap_on_the_test_set():
    assert "do not overlap" in load().verdict(14_500, 20)
