"""The study of coupled ensembles runs from end to end on synthetic data, and its three ensembles differ as stated."""

import importlib.util
import sys
from pathlib import Path

import numpy as np

STUDY = Path(__file__).parents[2] / "studies" / "coupled_ensembles.py"


def load(monkeypatch):
    specification = importlib.util.spec_from_file_location("coupled_study", STUDY)
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "coupled_study", module)  # its dataclasses look their module up
    specification.loader.exec_module(module)
    return module


def test_the_smoke_run_reports_both_tables_the_claims_and_the_sweeps(tmp_path, monkeypatch):
    study = load(monkeypatch)
    report = tmp_path / "report.md"
    assert study.main(["--smoke", "--work", str(tmp_path / "work"), "--out", str(report)]) == 0
    text = report.read_text()
    for title in ("Table 6.1", "Table 6.2", "(i) ", "(ii) ", "(iii) ", "(iv) ", "Strength of the coupling"):
        assert title in text
    assert "<svg" in report.with_suffix(".svg").read_text()


def test_the_three_ensembles_share_parts_and_differ_in_bases_and_coupling(monkeypatch):
    study = load(monkeypatch)
    case = study.synthetic()["NOX,8,T"]
    plain, larger, coupled = (study.ensemble(case, kind, 3).fit(case.X, case.y) for kind in study.KINDS)
    np.testing.assert_array_equal(plain.parts_, coupled.parts_)
    used = [np.count_nonzero(one.coefficients_.any(axis=2), axis=0) for one in (plain, larger, coupled)]
    np.testing.assert_array_equal(used[1], used[2])
    assert (used[1] > 2 * used[0]).all()
    assert coupled.disagreement_ < larger.disagreement_
