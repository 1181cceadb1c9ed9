"""The study of text runs from end to end on synthetic documents, and its machines are the stated ones."""

import importlib.util
from pathlib import Path

import numpy as np
from scipy import sparse

STUDY = Path(__file__).parents[2] / "studies" / "text_multiclass.py"


def load():
    import sys

    specification = importlib.util.spec_from_file_location("text_multiclass", STUDY)
    module = importlib.util.module_from_spec(specification)
    sys.modules["text_multiclass"] = module  # dataclasses look their module up
    specification.loader.exec_module(module)
    return module


def test_the_smoke_run_writes_every_table(tmp_path, capsys):
    report = tmp_path / "report.md"
    assert load().main(["--smoke", "--out", str(report)]) == 0
    text = report.read_text()
    for title in ("Table 3.1", "Table 3.2", "Table 4.5", "header lines kept", "Other weights"):
        assert title in text


def test_masked_conjugate_gradients_solve_each_column_on_its_own_documents():
    study = load()
    rng = np.random.default_rng(0)
    X = sparse.random(40, 25, density=0.3, random_state=0, format="csr", dtype=np.float32)
    Y = rng.choice([-1.0, 0.0, 1.0], (40, 6)).astype(np.float32)
    found = study.weights(X, Y, 0.7)
    A = X.toarray().astype(np.float64)
    for column in range(6):
        used = Y[:, column] != 0
        c = np.linalg.solve(A[used] @ A[used].T + 0.7 * np.eye(used.sum()), Y[used, column])
        np.testing.assert_allclose(found[:, column], A[used].T @ c, atol=2e-3)


def test_codes_without_zeros_come_from_one_versus_all():
    study = load()
    rng = np.random.default_rng(1)
    X = sparse.csr_matrix(rng.standard_normal((50, 12)).astype(np.float32))
    y = rng.integers(0, 5, 50)
    M = rng.choice([-1, 1], (5, 9)).astype(np.int8)
    both = np.column_stack([study.indicators(y, 5), np.ones(50, dtype=np.float32)])
    outputs = X @ study.weights(X, both, 1.0)
    direct = X @ study.weights(X, M[y].astype(np.float32), 1.0)
    np.testing.assert_allclose(study.combined(outputs[:, :5], outputs[:, 5:], M), direct, atol=2e-3)


def test_splits_are_nested_and_keep_the_test_part_apart():
    study = load()
    corpus = study.synthetic((30, 10), 0.8)
    parts = study.split(corpus, 3)
    small, large = parts.train(10), parts.train(30)
    assert set(small) < set(large)
    assert not set(large) & set(parts.test)
    assert len(large) + len(parts.test) == len(corpus.y)
    np.testing.assert_array_equal(np.bincount(corpus.y[small]), 10)
