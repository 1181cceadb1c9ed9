"""The study of solvers runs from end to end on synthetic data, and shows what was stopped and what was refused."""

import importlib.util
import sys
from pathlib import Path

import pytest

from mercer.solvers.catalogue import NAMES

STUDY = Path(__file__).parents[2] / "studies" / "solvers.py"


@pytest.fixture
def study(monkeypatch):
    specification = importlib.util.spec_from_file_location("solvers_study", STUDY)
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "solvers_study", module)  # its dataclasses look their module up
    specification.loader.exec_module(module)
    return module


def test_the_smoke_run_has_every_solver_on_every_set_and_draws_the_gap(study, tmp_path):
    report = tmp_path / "report.md"
    parts = "adult,toy,curves,scores,low_rank"
    assert study.main(["--smoke", "--only", parts, "--work", str(tmp_path / "work"), "--out", str(report)]) == 0
    text = report.read_text()
    for title in ("adult", "toy", "Gap against time", "Three scores", "Low-rank interior point"):
        assert f"## {title}" in text
    assert "## usps" not in text  # not asked for
    for solver in NAMES:
        assert text.count(f"| {solver} | ") >= 2
    assert (tmp_path / "solvers_gap.svg").read_text().startswith("<svg")


def test_the_figures_of_the_textbook_are_counted(study, tmp_path):
    report = tmp_path / "report.md"
    parts = "elements,digits,novelty,regularisers"
    assert study.main(["--smoke", "--only", parts, "--work", str(tmp_path / "work"), "--out", str(report)]) == 0
    text = report.read_text()
    for title in ("Single values or rows", "Digits among greedy picks", "Novelty on a stream", "Four regularisers"):
        assert f"## {title}" in text
    for name in ("half_squared_norm", "half_norm", "absolute_coefficients", "squared_values"):
        assert f"| {name} | " in text


def test_a_solver_that_is_stopped_is_not_run_on_more_points(study):
    case = study.synthetic()["adult"]
    rows = study.side_by_side(case, [60, 120], limit=0.0)
    own = [row for row in rows if row["solver"] == "svmlight"]
    assert [row["stopped"] for row in own] == ["time"]


def test_solvers_that_refuse_the_problem_are_given_one_they_take(study):
    case = study.synthetic()["adult"]
    assert study.accepted(case, "svmlight")[0] == ""
    assert study.accepted(case, "sor")[0] == "penalised bias"
    assert study.accepted(case, "lagrangian")[0] == "squares, penalised bias"
    assert study.accepted(case, "linear_dual") is None
