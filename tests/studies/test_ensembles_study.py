"""The study of ensembles runs from end to end on synthetic data, and its tables obey the theorems."""

import importlib.util
from pathlib import Path

STUDY = Path(__file__).parents[2] / "studies" / "ensembles.py"


def load():
    specification = importlib.util.spec_from_file_location("ensembles_study", STUDY)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def cells(lines: list[str]) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_smoke_run_writes_every_part(tmp_path):
    page = tmp_path / "page.md"
    assert load().main(["--smoke", "--out", str(page)]) == 0
    text = page.read_text()
    for words in ("figures 6.1 to 6.4", "Efron and Stein", "Theorem 1.12", "Arcing on subsets", "Out of bag"):
        assert words in text


def test_the_verdicts_follow_the_numbers():
    study = load()
    head = ["| a |", "|---|"]
    good = [*head, "| shared | 2e-2 | 5e-3 | 1e-3 | 8e-4 | 1 of 2 |", "| own | 5e-3 | 3e-3 | 6e-4 | 7e-4 | 0 of 2 |"]
    assert "parameters cure" in study.on_sinc(good)
    assert "it is better" in study.on_sinc(good)
    assert "do not cure" in study.on_sinc([*head, good[3], good[2]])
    assert "subsets\nmatch it" in study.on_arcing([*head, "| 1 | 9 | 0.15 |", "| 15 | 2 | 0.152 |"])
    assert "subsets\ndo not match it" in study.on_arcing([*head, "| 1 | 9 | 0.15 |", "| 15 | 2 | 0.17 |"])


def test_the_sandwich_holds_in_the_table():
    for _, bag, single, upper, _ in cells(load().sandwich(5, 15)):
        assert float(bag) <= float(single) <= 1.3 * float(upper)


def test_the_bound_on_margins_holds_in_the_table():
    for _, _, _, _, share, bound in cells(load().margins(True)):
        assert float(share) <= float(bound) + 0.002
