"""The study of text runs from end to end on synthetic documents, and its machines are the stated ones."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
from scipy import sparse

STUDIES = Path(__file__).parents[2] / "studies"


def load(name="text_machines"):
    specification = importlib.util.spec_from_file_location(name, STUDIES / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # dataclasses look their module up
    specification.loader.exec_module(module)
    return module


def test_the_smoke_run_writes_every_table(tmp_path, capsys):
    report = tmp_path / "report.md"
    assert load("text_multiclass").main(["--smoke", "--out", str(report)]) == 0
    text = report.read_text()
    for title in ("Table 3.1", "Table 3.2", "Table 4.5", "header lines kept", "Other weights", "gcm", "all documents"):
        assert title in text


def test_the_smoke_run_of_the_seconds_writes_ratios(tmp_path, capsys):
    report = tmp_path / "report.md"
    assert load("text_seconds").main(["--smoke", "--out", str(report)]) == 0
    text = report.read_text()
    for part in ("Table 3.3", "10,045 / 1,309 | 7.67", "| 20 newsgroups | 10.36 | 2.99", "What reproduces"):
        assert part in text


def test_a_code_from_the_solutions_of_one_versus_all_is_the_code_solved_column_by_column():
    seconds = load("text_seconds")
    study = load()
    corpus = study.synthetic((30,), 0.8)
    parts, M = study.split(corpus, 0), seconds.make_code("bch", corpus.classes)
    train = parts.train(30)
    X, new = study.points(corpus, train, parts.test)
    direct = seconds.by_least_squares(X, corpus.y[train], new, M)[1]
    combined = seconds.from_one_versus_all(X, corpus.y[train], new, M)[1]
    np.testing.assert_array_equal(direct, combined)


def test_conclusions_are_those_of_the_numbers():
    report = load("text_report")
    truth = np.repeat([0, 1], 50)

    def part(wrong, **others):
        predicted = truth.copy()
        predicted[:wrong] = 1
        return {"truth": truth, "train": np.array(100), "OVA_fixed": predicted, **others}

    sizes = {52: [part(5, OVA_chosen=truth)] * 2, 20: [part(3, OVA_chosen=truth)] * 2}
    results = report.Results({"sector": sizes}, {}, {52: [part(9)] * 2, 20: [part(3)] * 2}, [], [], {})
    assert "0.050 with lambda l = 1 and 0.000" in report.against_print(results, "sector")
    assert "does not always fall" in report.against_print(results, "sector")
    assert "at no size" in report.words_everywhere(results)


def test_support_vector_outputs_are_those_of_the_kernel_machine():
    from mercer.svm import SVC

    study = load()
    corpus = study.synthetic((30,), 0.8)
    parts = study.split(corpus, 0)
    train = parts.train(30)
    X, new = study.points(corpus, train, parts.test)
    signs = study.indicators(corpus.y[train], corpus.classes)
    found = study.support_vector_outputs(X, signs, new)
    for column in (0, 5):
        machine = SVC(C=1.0, kernel="linear", tol=1e-6).fit(X, signs[:, column])
        np.testing.assert_allclose(found[:, column], machine.decision_function(new), atol=0.03)


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
