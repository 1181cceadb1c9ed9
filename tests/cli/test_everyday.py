"""The everyday calls from end to end: fit, predict and evaluate on files of every kind."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import r2_score

from mercer import data
from mercer.models import load_model
from tests.cli.conftest import Finish, write_parts

QUICK = ("--no-tune", "--test-fraction", "0")


def test_fit_predict_and_evaluate_agree_with_the_model_in_python(heart: Path, finish: Finish) -> None:
    code, out, _ = finish("fit", "train.svm", "--model", "model.mercer", "--no-tune")
    assert code == 0
    assert "held out" in out
    code, out, _ = finish("predict", "model.mercer", "test.svm")
    test = data.read("test.svm", features=13, sparse=False)
    model = load_model("model.mercer")
    assert code == 0
    assert out.split() == [str(label) for label in model.predict(test.X)]
    code, out, _ = finish("evaluate", "model.mercer", "test.svm", "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["accuracy"] == pytest.approx(np.mean(model.predict(test.X) == test.y))
    low, high = facts["accuracy interval"]
    assert low < facts["accuracy"] < high
    assert facts["accuracy"] > 0.75
    assert np.sum(facts["confusion"]) == facts["points"] == test.n


def test_a_tuned_support_vector_machine_beats_chance_and_tells_its_cross_validation(
    heart: Path, finish: Finish
) -> None:
    code, out, _ = finish("fit", "train.svm", "--machine", "svc", "--model", "m.mercer", "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["machine"] == "SVC"
    assert facts["cross-validation"]["accuracy"] > 0.75
    assert facts["held out"]["points"] == 40
    assert facts["certificate"]["relative gap"] < 1e-2
    assert facts["parameters"]["C"] == load_model("m.mercer").machine.C


def test_regression_from_a_table_reports_r2(yacht: Path, finish: Finish) -> None:
    code, out, _ = finish("fit", "train.csv", "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["machine"] == "LSSVR"
    assert facts["model"] == "train.mercer"
    assert facts["leave-one-out"]["r2"] > 0.9
    code, out, _ = finish("evaluate", "train.mercer", "test.csv", "--json")
    test = data.read("test.csv")
    model = load_model("train.mercer")
    assert json.loads(out)["r2"] == pytest.approx(r2_score(test.y, model.predict(test.X)))


@pytest.mark.parametrize("ending", ["svm.xz", "csv", "npz"])
def test_every_kind_of_file_gives_the_same_model(folder: Path, finish: Finish, ending: str) -> None:
    write_parts(folder, "iris", 100, ending)
    write_parts(folder, "iris", 100, "svm")
    for name in (ending, "svm"):
        code, _, _ = finish("fit", f"train.{name}", "--model", f"{name}.mercer", *QUICK, "--machine", "svc")
        assert code == 0
        assert finish("predict", f"{name}.mercer", f"test.{name}", "--output", f"{name}.out")[0] == 0
    assert Path(f"{ending}.out").read_text() == Path("svm.out").read_text()


def test_standardisation_and_columns_travel_in_the_model(folder: Path, finish: Finish) -> None:
    train = "size,colour,kind\n" + "".join(f"{i},{'red' if i % 2 else 'blue'},{'ab'[i % 2]}\n" for i in range(40))
    Path("train.csv").write_text(train)
    Path("new.csv").write_text("colour,size\nblue,1000\nred,-3\ngreen,5\n")
    assert finish("fit", "train.csv", *QUICK, "--machine", "svc")[0] == 0
    assert load_model("train.mercer").standardise is not None
    code, out, _ = finish("predict", "train.mercer", "new.csv")
    assert code == 0
    assert out.split()[1] == "b"
    assert finish("fit", "train.csv", *QUICK, "--no-scale", "--model", "raw.mercer")[0] == 0
    assert load_model("raw.mercer").standardise is None


def test_missing_values_are_refused_dropped_or_get_the_means_of_the_training_points(
    folder: Path, finish: Finish
) -> None:
    whole = data.sample("breast-cancer-wisconsin", missing="keep")
    data.write("train.csv", whole.take(slice(0, 300)))
    code, _, err = finish("fit", "train.csv", *QUICK)
    assert code == 3
    assert "--missing impute" in err
    assert err.count("\n") == 1
    assert finish("fit", "train.csv", *QUICK, "--missing", "drop")[0] == 0
    assert finish("fit", "train.csv", *QUICK, "--missing", "impute", "--overwrite")[0] == 0
    means = load_model("train.mercer").notes["recipe"]["means"]
    assert means["x6"] == pytest.approx(np.nanmean(whole.X[:300, 5]))
    assert finish("predict", "train.mercer", "train.csv", "--missing", "refuse")[0] == 3
    code, out, err = finish("predict", "train.mercer", "train.csv")
    assert code == 0
    assert len(out.split()) == 300
    assert "missing values got the means of the training points" in err
    filled = np.where(np.isnan(whole.X[:300]), [means[f"x{k}"] for k in range(1, 10)], whole.X[:300])
    assert out.split() == [str(label) for label in load_model("train.mercer").predict(filled)]


def test_probabilities_and_decision_values(heart: Path, finish: Finish) -> None:
    assert finish("fit", "train.svm", *QUICK, "--machine", "svc", "--probability", "--model", "p.mercer")[0] == 0
    _, out, _ = finish("predict", "p.mercer", "test.svm", "--proba")
    head, *rows = out.splitlines()
    assert head == "-1,1"
    assert np.sum([[float(cell) for cell in row.split(",")] for row in rows], axis=1) == pytest.approx(1.0)
    _, out, _ = finish("predict", "p.mercer", "test.svm", "--decision", "--json")
    test = data.read("test.svm", features=13, sparse=False)
    assert json.loads(out)["predictions"] == pytest.approx(load_model("p.mercer").decision_function(test.X))
    assert finish("fit", "train.svm", *QUICK, "--model", "l.mercer")[0] == 0
    code, _, err = finish("predict", "l.mercer", "test.svm", "--proba")
    assert code == 3
    assert "--probability" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--machine", "svr", "--target", "kind"], "texts"),
        (["--C", "-1"], "--C must be a positive number"),
        (["--sigma", "1", "--gamma", "1"], "not both"),
        (["--test-fraction", "1.5"], "--test-fraction"),
        (["--target", "nothing"], "is not one of its columns"),
        (["--model", "none/model.mercer"], "does not exist"),
        (["--resume"], "--checkpoint"),
        (["--machine", "lssvc", "--probability"], "--machine svc"),
        (["--memory", "many"], "memory"),
    ],
)
def test_wrong_wishes_end_in_one_line_that_names_them(
    folder: Path, finish: Finish, arguments: list[str], words: str
) -> None:
    Path("a.csv").write_text("size,kind\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(30)))
    code, out, err = finish("fit", "a.csv", *arguments)
    assert code in (3, 4)
    assert (out, err.count("\n")) == ("", 1)
    assert words in err
    assert not list(Path().glob("*.mercer"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 1:1\n1 1:2\n", "at least two classes"),
        ("", "no points"),
        ("1 1:1\n-1 1:nan\n", "missing"),
        ("1 1:inf\n-1 1:2\n", "finite"),
    ],
)
def test_data_that_cannot_be_used_end_in_one_line(folder: Path, finish: Finish, text: str, words: str) -> None:
    Path("a.svm").write_text(text)
    code, _, err = finish("fit", "a.svm")
    assert code == 3
    assert words in err
    assert err.startswith("mercer: a.svm")
    assert err.count("\n") == 1


def test_a_file_with_other_features_is_refused(heart: Path, finish: Finish) -> None:
    assert finish("fit", "train.svm", *QUICK)[0] == 0
    Path("wide.svm").write_text("1 14:1\n")
    np.savez("narrow.npz", X=np.ones((3, 5)))
    for name in ("wide.svm", "narrow.npz"):
        code, _, err = finish("predict", "train.mercer", name)
        assert code == 3
        assert "13" in err
    code, _, err = finish("evaluate", "train.mercer", "nothing.svm")
    assert code == 3
    assert "no such file" in err
    code, _, err = finish("predict", "train.svm", "test.svm")
    assert code == 3
    assert "not a model file" in err


def test_the_same_seed_gives_the_same_model(heart: Path, finish: Finish) -> None:
    for name in ("a", "b"):
        assert finish("fit", "train.svm", "--machine", "svc", "--model", f"{name}.mercer", "--seed", "3")[0] == 0
    a, b = (load_model(f"{name}.mercer").machine for name in "ab")
    assert np.array_equal(a.dual_coef_, b.dual_coef_)


def test_logistic_regression_is_tuned_trained_and_gives_probabilities(heart: Path, finish: Finish) -> None:
    code, shown, errors = finish("tune", heart / "train.svm", "--machine", "logistic", "--json", "--folds", "3")
    assert code == 0, errors
    facts = json.loads(shown)
    assert facts["score"]["log loss"] < 0.55
    assert "--machine logistic" in facts["command"]
    model = heart / "m.mercer"
    words = ("fit", heart / "train.svm", "--machine", "logistic", "--C", "1", "--sigma", "4", "--model", model)
    code, shown, errors = finish(*words)
    assert code == 0, errors
    assert "KernelLogistic" in shown
    code, shown, _ = finish("predict", model, heart / "test.svm", "--proba")
    assert code == 0
    assert len(shown.splitlines()) >= 70
