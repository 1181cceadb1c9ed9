"""The study of low-rank LS-SVMs runs from end to end on synthetic data, and its machines are the stated ones."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from mercer.solvers.linear import minres, symmlq

STUDY = Path(__file__).parents[2] / "studies" / "low_rank_hamers.py"


@pytest.fixture
def study(monkeypatch):
    specification = importlib.util.spec_from_file_location("low_rank_hamers", STUDY)
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "low_rank_hamers", module)  # its dataclasses look their module up
    specification.loader.exec_module(module)
    return module


def test_the_smoke_run_writes_every_table_and_the_figure(study, tmp_path, capsys):
    report = tmp_path / "report.md"
    assert study.main(["--smoke", "--out", str(report)]) == 0
    text = report.read_text()
    for title in ("Table 5.1", "Table 5.2 and Figure 5.1", "Table 5.3", "Table 5.4"):
        assert f"## {title}" in text
    assert "| hea | 40 | 4 | 6/6 | 6/6 |" in text
    assert (tmp_path / "low_rank_hamers_sinc.svg").read_text().startswith("<svg")


def test_a_run_cut_in_parts_reports_all_parts(study, tmp_path, capsys):
    report, rows = tmp_path / "report.md", tmp_path / "rows.json"
    for part in ("5.1", "5.3"):
        assert study.main(["--smoke", "--only", part, "--rows", str(rows), "--out", str(report)]) == 0
    assert "## Table 5.1" in report.read_text()
    assert "## Table 5.3" in report.read_text()


def test_the_machine_by_minres_is_the_dense_one(study):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    kernel, C, S = study.Gaussian(sigma=1.5), 2.0, X[:5]
    c, b, _ = study.by_minres(kernel, X, y, S, C, 1e-13)
    A = kernel(X, S)
    approximate = A @ np.linalg.solve(kernel(S), A.T)
    bordered = np.block([[approximate + np.eye(30) / C, np.ones((30, 1))], [np.ones((1, 30)), np.zeros((1, 1))]])
    exact = np.linalg.solve(bordered, np.append(y, 0.0))
    np.testing.assert_allclose(np.append(c, b), exact, atol=1e-8)


def test_minres_never_needs_more_products_than_symmlq(study):
    rng = np.random.default_rng(1)
    for _ in range(5):
        F = rng.normal(size=(40, 12))
        M, right = F.T @ F, F.T @ rng.normal(size=(40, 2))
        least, other = (study.krylov(run, M, right, 1e-8)[0] for run in (minres.solve, symmlq.solve))
        assert all(a <= b for a, b in zip(least, other, strict=True))


def test_leave_one_out_chooses_C_as_explicit_retraining_does(study):
    rng = np.random.default_rng(2)
    X = rng.uniform(-3, 3, size=(25, 1))
    y = np.sinc(X[:, 0]) + 0.1 * rng.normal(size=25)
    kernel = study.Gaussian(sigma=1.0)
    errors = {}
    for C in 10.0 ** np.arange(-2, 5):
        left_out = []
        for i in range(25):
            kept = np.arange(25) != i
            f = study.full_machine(kernel, X[kept], y[kept, None], C, X[i : i + 1])
            left_out.append((y[i] - f[0, 0]) ** 2)
        errors[C] = np.mean(left_out)
    assert study.best_C(kernel, X, y, X) == min(errors, key=errors.get)


def test_the_slope_of_a_power_is_its_exponent(study):
    assert study.slope([1, 2, 4, 8], [3.0, 12.0, 48.0, 192.0]) == pytest.approx(2.0)
