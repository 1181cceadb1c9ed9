"""The study of leave-one-out on yeast runs from end to end on synthetic data, and its retrainings are what they say."""

import importlib
import importlib.util
from pathlib import Path

import numpy as np
import pytest

from mercer.multiclass.output_code import OutputCode
from mercer.svm import SVC

STUDY = Path(__file__).parents[2] / "studies" / "yeast_leave_one_out.py"


def load():
    specification = importlib.util.spec_from_file_location("yeast_leave_one_out", STUDY)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_smoke_run_writes_every_table(tmp_path, capsys):
    study = load()
    report = tmp_path / "report.md"
    assert study.main(["--smoke", "--work", str(tmp_path / "work"), "--out", str(report)]) == 0
    text = report.read_text()
    for title in ("nested leave-one-out", "printed parameters (Table 4.2)", "Table 4.7", "What the numbers say"):
        assert title in text
    # A second run finds every part and writes the same report.
    capsys.readouterr()
    assert study.main(["--smoke", "--work", str(tmp_path / "work"), "--out", str(report)]) == 0
    assert capsys.readouterr().out == ""
    assert report.read_text() == text


@pytest.mark.parametrize("C", [0.5, 20.0])
@pytest.mark.parametrize("idle", [False, True])
def test_warm_retraining_equals_training_without_the_point(C, idle, monkeypatch):
    study = load()
    warm = importlib.import_module("warm_retraining")
    monkeypatch.setattr(warm, "TOLERANCE", 1e-7)
    X, y = study.synthetic(36, 3, 5)
    X[1], y[1] = X[0], 1  # a repeated point with another label
    t = np.where(y == 0, 1.0, -1.0)
    t[y == 2] = 0.0 if idle else -1.0
    K = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / 2)
    machine = warm.Machine(K, t, C)
    for i in range(len(y)):
        keep = (t != 0) & (np.arange(len(y)) != i)
        model = SVC(C=C, kernel="rbf", gamma=0.5, tol=1e-7, precision="float64").fit(X[keep], t[keep])
        np.testing.assert_allclose(machine.without(i), model.decision_function(X), atol=1e-5)


def test_errors_of_the_inner_folds_equal_training_on_the_other_points():
    study = load()
    X, y = study.synthetic(30, 3, 6)
    fold = study.folds(y, 5, 1)
    found = study.inner_errors("OVA", X, y, (0.7, 2.0), fold)
    for i in range(0, len(y), 3):
        errors = 0
        for number in range(5):
            train, held = (fold != number) & (np.arange(30) != i), (fold == number) & (np.arange(30) != i)
            model = OutputCode(SVC(C=2.0, kernel="rbf", gamma=1 / (2 * 0.7**2), tol=1e-5), "ova").fit(
                X[train], y[train]
            )
            errors += int(np.sum(model.predict(X[held]) != y[held]))
        assert found[i] == errors


@pytest.mark.parametrize("scheme", ["OVA", "AVA", "DEN", "SPA"])
def test_nested_least_squares_equals_a_loop_over_points(scheme):
    """The inner leave-one-out errors of each training part, from the library's own bank on n - 1 points."""
    from mercer.least_squares import LSSVC
    from mercer.losses import Square

    study = load()
    X, y = study.synthetic(24, 4, 7)
    code, grid = study.code_of(scheme, 4), ((1.0, 0.5), (0.5, 8.0))
    found = study.nested_least_squares(scheme, X, y, grid)
    for i in range(0, len(y), 4):
        keep = np.arange(len(y)) != i
        errors, missed = [], []
        for sigma in grid[0]:
            for C in grid[1]:
                base = LSSVC(C=C, kernel="rbf", gamma=1 / (2 * sigma**2), bias="none")
                model = OutputCode(base, code, "loss").fit(X[keep], y[keep])
                inner = study.labels_of(scheme, model.bank_.leave_one_out(), 4, Square())
                errors.append(np.sum(inner != y[keep]))
                missed.append(model.predict(X[i : i + 1])[0] != y[i])
        chosen = int(np.argmin(errors))
        assert tuple(found["parameters"][i]) == (grid[0][chosen // 2], grid[1][chosen % 2])
        assert found["wrong"][i] == missed[chosen]
