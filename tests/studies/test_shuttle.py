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
    for words in ("OVA, standardised, chosen", "AVA", "printed", "95 % interval", "one-versus-all has"):
        assert words in text
    assert "| Crammer and Singer, standardised, chosen |" in text


def test_the_printed_rates_do_not_overlap_on_the_test_set():
    assert "do not overlap" in load().verdict(14_500, 20, 13)


def test_a_choice_on_the_edge_of_the_grid_is_named():
    study = load()
    inside = {machine: (sigmas[1], costs[1]) for machine, (sigmas, costs) in study.GRIDS.items()}
    assert study.on_edge(inside) == "No choice lies on an edge."
    sigmas, costs = study.GRIDS["single"]
    for edge in [(sigmas[0], costs[1]), (sigmas[-1], costs[1]), (sigmas[1], costs[0]), (sigmas[1], costs[-1])]:
        assert study.on_edge({**inside, "single": edge}).endswith("of: Crammer and Singer.")
