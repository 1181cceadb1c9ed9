"""compare, tune, advise, convert, inspect of a model, and the progress line."""

import io
import json
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console
from scipy import stats

from mercer import data
from mercer.cli.compare import fold_of
from mercer.cli.demo import _table
from mercer.cli.job import split
from mercer.cli.machines import certificate
from mercer.cli.progress import Bar
from mercer.models import load_model
from mercer.problems.certificate import gap_text, relative_gap
from mercer.solvers.solution import Record
from tests.cli.conftest import Finish

QUICK = ("--no-tune", "--test-fraction", "0")


def test_compare_pairs_machines_on_the_same_folds(heart: Path, finish: Finish) -> None:
    words = ("compare", "train.svm", "--machine", "lssvc,svc,lssvc-linear", "--no-tune", "--folds", "4")
    code, out, _ = finish(*words, "--json")
    facts = json.loads(out)
    assert code == 0
    assert set(facts["machines"]) == {"lssvc", "svc", "lssvc-linear"}
    assert len(facts["pairs"]) == 3
    for pair in facts["pairs"]:
        a, b = (np.array(facts["machines"][pair[name]]["scores"]) for name in ("first", "second"))
        assert pair["difference"] == pytest.approx(np.mean(a - b))
        assert pair["p"] <= pair["p adjusted"] <= 1
        assert pair["right only by first"] - pair["right only by second"] == pytest.approx(200 * np.mean(a - b))
    assert "McNemar" in finish(*words)[1]


@pytest.mark.parametrize(("folds", "repeats"), [(2, 3), (5, 1)])
def test_the_paired_test_of_compare_is_that_of_its_fold_scores(
    heart: Path, finish: Finish, folds: int, repeats: int
) -> None:
    """Nadeau and Bengio's variance factor 1/J + n_test/n_train, with the sizes of the folds that were drawn."""
    words = ("--machine", "lssvc,lssvc-linear", "--no-tune", "--folds", str(folds), "--repeats", str(repeats), "--json")
    code, out, _ = finish("compare", "train.svm", *words)
    assert code == 0
    facts = json.loads(out)
    a, b = (np.array(facts["machines"][name]["scores"]) for name in ("lssvc", "lssvc-linear"))
    n, J = facts["points"], folds * repeats
    test = n / folds
    differences = a - b
    error = np.sqrt((1.0 / J + test / (n - test)) * differences.var(ddof=1))
    pair = facts["pairs"][0]
    assert len(a) == J
    assert pair["t"] == pytest.approx(differences.mean() / error)
    assert pair["p"] == pytest.approx(2.0 * stats.t.sf(abs(differences.mean() / error), J - 1))
    half = stats.t.ppf(0.975, J - 1) * error
    assert pair["difference interval"] == pytest.approx([differences.mean() - half, differences.mean() + half])


def test_compare_takes_regressions_and_multiclass_schemes(folder: Path, finish: Finish) -> None:
    data.write("iris.svm", data.sample("iris"))
    code, out, _ = finish("compare", "iris.svm", "--machine", "svc,svc-ovr", "--folds", "3", "--json")
    assert code == 0
    assert json.loads(out)["machines"]["svc-ovr"]["mean"] > 0.9
    data.write("yacht.svm", data.sample("yacht"))
    code, out, _ = finish("compare", "yacht.svm", "--machine", "lssvr,svr", "--no-tune", "--folds", "3", "--json")
    assert code == 0
    assert json.loads(out)["measure"] == "r2"
    for words in (["lssvr,svc"], ["svr"], ["svr,dance"], ["svr,svr"]):
        code, _, err = finish("compare", "yacht.svm", "--machine", *words)
        assert (code, err.count("\n")) == (3, 1)


def test_folds_hold_the_classes_in_their_shares() -> None:
    y = np.repeat([0, 1, 2], [30, 20, 10])
    fold = fold_of(y, "classification", 5, np.random.default_rng(0))
    for f in range(5):
        assert np.bincount(y[fold == f]).tolist() == [6, 4, 2]


def test_the_seed_draws_the_points_held_out_and_the_folds() -> None:
    y = np.arange(60) % 3
    for task in ("classification", "regression"):
        held = [split(y, task, 0.3, seed)[1] for seed in (0, 0, 1)]
        assert np.array_equal(held[0], held[1])
        assert not np.array_equal(held[0], held[2])
        folds = [fold_of(y, task, 5, np.random.default_rng(seed)) for seed in (0, 1)]
        assert not np.array_equal(*folds)


def test_compare_draws_its_folds_by_the_seed(heart: Path, finish: Finish) -> None:
    words = ("compare", "train.svm", "--machine", "lssvc,lssvc-linear", "--no-tune", "--folds", "3", "--json", "--seed")
    scores = [json.loads(finish(*words, seed)[1])["machines"]["lssvc"]["scores"] for seed in ("0", "0", "1")]
    assert scores[0] == scores[1] != scores[2]


def test_tune_ends_with_the_command_that_trains(heart: Path, finish: Finish) -> None:
    code, out, _ = finish("tune", "train.svm", "--machine", "svc", "--json")
    facts = json.loads(out)
    assert code == 0
    scores = [candidate["score"] for candidate in facts["candidates"]]
    assert scores == sorted(scores, reverse=True)
    assert facts["score"]["accuracy"] == pytest.approx(scores[0])
    program, *words = facts["command"].split()
    assert program == "mercer"
    assert finish(*words)[0] == 0
    assert pytest.approx(facts["parameters"]["C"], rel=1e-5) == load_model("train.mercer").machine.C
    code, _, err = finish("tune", "train.svm", "--C", "1", "--sigma", "1")
    assert code == 3
    assert "nothing is left to choose" in err


@pytest.mark.parametrize(("n", "machine", "matrix"), [(500, "lssvc", "dense"), (200_000, "svc", "cached")])
def test_advise_follows_the_size(finish: Finish, n: int, machine: str, matrix: str) -> None:
    code, out, _ = finish("advise", "--n", str(n), "--d", "20", "--memory", "1 GiB", "--json")
    facts = json.loads(out)
    assert code == 0
    assert (facts["machine"], facts["kernel matrix"]) == (machine, matrix)
    assert facts["kernel matrix bytes"] <= 2**30
    assert facts["why"]
    assert facts["why this solver"]
    room = "linear" if machine.startswith("ls") else "quadratic"
    assert import_module(f"mercer.solvers.{room}.{facts['solver']}").solve  # what is named is there


def test_advise_reads_the_size_of_a_file_and_refuses_nothing_at_all(heart: Path, finish: Finish) -> None:
    facts = json.loads(finish("advise", "train.svm", "--json")[1])
    assert (facts["points"], facts["features"], facts["task"]) == (200, 13, "classification")
    assert finish("advise")[0] == 3


def test_convert_goes_to_libsvm_and_back(heart: Path, finish: Finish) -> None:
    assert finish("fit", "train.svm", *QUICK, "--machine", "svc", "--sigma", "80", "--no-scale")[0] == 0
    assert finish("convert", "train.mercer", "train.libsvm")[0] == 0
    assert finish("convert", "train.libsvm", "back.mercer", "--features", "13")[0] == 0
    assert finish("predict", "train.mercer", "test.svm")[1] == finish("predict", "back.mercer", "test.svm")[1]
    assert json.loads(finish("inspect", "train.libsvm", "--json")[1])["machine"] == "SVC"
    assert finish("fit", "train.svm", *QUICK, "--model", "scaled.mercer")[0] == 0
    for destination, words in (("x.libsvm", "--no-scale"), ("x.pdf", "ending")):
        code, _, err = finish("convert", "scaled.mercer", destination)
        assert code == 3
        assert words in err
    assert finish("convert", "train.svm", "x.mercer")[0] == 3
    assert finish("convert", "scaled.mercer", "scaled.onnx")[0] == 0


def test_inspect_tells_the_certificate_of_a_model(heart: Path, finish: Finish) -> None:
    assert finish("fit", "train.svm", "--no-tune", "--machine", "svc")[0] == 0
    facts = json.loads(finish("inspect", "train.mercer", "--json")[1])
    machine = load_model("train.mercer").machine
    assert facts["machine"] == "SVC"
    assert facts["objective"] == machine.objective_
    assert facts["support vectors"] == len(machine.support_)
    assert facts["classes"] == "-1, 1"
    assert "SVC" in finish("inspect", "train.mercer")[1]


def test_the_progress_line_tells_objective_gap_support_vectors_and_time_left() -> None:
    screen = io.StringIO()
    bar = Bar(Console(file=screen, force_terminal=True, width=160))
    with bar.progress:
        bar.say("training svc on 10 points")
        bar.hook(Record(1, 0.0, 10.0, 0.0, 10.0, {"violation": 1.0, "support": 7}), None)
        bar.hook(Record(2, 2.0, 8.0, 7.0, 1.0, {"violation": 0.1, "support": 6}), None)
        bar.progress.refresh()
        bar.expect(10)
        bar.hook(Record(5, 3.0, 0.0, 0.0, 0.0, {"best_fold_score": 0.9}), None)
        bar.progress.refresh()
    shown = screen.getvalue()
    assert "objective 8, gap 1.0e+00, 6 support vectors, about 4 s left" in shown
    assert "best score 0.9, about 3 s left" in shown


@pytest.mark.parametrize("width", [80, 60, 40, 20])
def test_the_progress_lines_never_pass_the_width_of_the_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    screen = io.StringIO()
    bar = Bar(Console(file=screen, force_terminal=True))
    facts = {"violation": 1.234e-3, "support": 123_456}
    with bar.progress:
        bar.say("training svc on 581012 points")
        bar.hook(Record(1, 0.0, 1.23456e9, 0.0, 1e9, {"violation": 1e3, "support": 1}), None)
        bar.hook(Record(2, 2e5, 1.23456e9, 1.2e9, 3.456e7, facts), None)
        bar.progress.refresh()
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue()).replace("\r", "\n").splitlines()
    assert max(map(cell_len, lines)) <= width
    told = "objective 1.23456e+09, gap 3.5e+07, 123456 support vectors"
    assert any(told in line if width >= 80 else "objective" in line for line in lines)
    assert {line.count("support vectors") for line in lines} <= {0, 1}
    # Two lines at a time: the cursor goes up by one and no more.
    assert "\x1b[2A" not in screen.getvalue()


def test_the_demonstration_and_the_model_tell_one_gap(heart: Path, finish: Finish) -> None:
    assert finish("fit", "train.svm", *QUICK, "--model", "m.mercer")[0] == 0
    machine = load_model("m.mercer").machine
    expected = relative_gap(machine.objective_, machine.dual_objective_, machine.gap_)
    assert certificate(machine)["relative gap"] == expected
    told = json.loads(finish("inspect", "m.mercer", "--json")[1])
    assert told["relative gap"] == expected
    row = {
        "data": "heart",
        "machine": "LSSVC",
        "parameters": {"C": 1.0},
        "held out": {"accuracy": 0.8},
        "total seconds": 1.0,
    }
    screen = io.StringIO()
    Console(file=screen, width=100).print(_table([row | {"certificate": {"relative gap": 2.5e-28}}]))
    assert gap_text(2.5e-28) in screen.getvalue()
