"""The study of probabilities runs from end to end, and judges as scikit-learn does."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import log_loss

STUDY = Path(__file__).parents[2] / "studies" / "probabilities.py"


def load():
    specification = importlib.util.spec_from_file_location("probabilities", STUDY)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_smoke_run_writes_the_table_and_the_verdict(tmp_path):
    report = tmp_path / "report.md"
    assert load().main(["--smoke", "--out", str(report)]) == 0
    text = report.read_text()
    for words in ("| heart-statlog |", "| iris |", "log loss P - L", "sets, Platt's sigmoid on"):
        assert words in text


def test_judgement_is_that_of_the_formulas():
    random = np.random.default_rng(0)
    p = random.dirichlet(np.ones(3), 50)
    y = random.choice(["a", "b", "c"], 50)
    found = load().judge(p, np.array(["a", "b", "c"]), y)
    assert found.log_loss == pytest.approx(log_loss(y, p, labels=["a", "b", "c"]))
    indicator = (y[:, None] == np.array(["a", "b", "c"])).astype(float)
    assert found.brier == pytest.approx(((p - indicator) ** 2).sum(axis=1).mean())


def test_a_difference_within_two_standard_errors_is_even():
    study = load()
    same = study.Judged(0.5, 0.3, 0.1)
    better = study.Judged(0.2, 0.3, 0.1)
    assert study.row("a", [(same, better), (same, better._replace(log_loss=0.21))])[1] == 1
    assert study.row("a", [(same, better), (better, same)])[1] == 0
    assert study.row("a", [(better, same), (better, same._replace(log_loss=0.51))])[1] == -1
