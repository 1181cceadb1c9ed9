"""Ranks and orders on the command line: tasks that have to be asked for, queries, scores, models, refusals."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from mercer import OrdinalSVC, RankSVM, data
from mercer.cli import exits
from mercer.cli.job import split
from mercer.models import load_model
from mercer.ordinal.metrics import mean_average_precision, ndcg, rank_error, scaled_pair_loss

GRADES = np.array(["1 poor", "2 fair", "3 good", "4 best"])
FIXED = ("--C", "1", "--sigma", "2")


@pytest.fixture
def ranks(folder: Path) -> Path:
    """A folder with grades.csv, documents.csv (with a column qid) and documents.svm."""
    random = np.random.default_rng(0)
    X, query = random.standard_normal((120, 2)), random.permutation(np.arange(120) % 12)
    y = np.digitize(X[:, 0] + 0.3 * random.standard_normal(120), [-0.7, 0.0, 0.7])
    data.write(folder / "grades.csv", data.Dataset(X, GRADES[y]))
    data.write(folder / "documents.svm", data.Dataset(X, y, query=query))
    lines = [f"{a!r},{b!r},q{q},{r}\n" for (a, b), q, r in zip(X.tolist(), query.tolist(), y.tolist())]
    (folder / "documents.csv").write_text("a,b,qid,relevance\n" + "".join(lines))
    return folder


def test_ranks_from_data_to_scores(ranks: Path, finish) -> None:
    code, out, _ = finish("fit", "grades.csv", "--task", "ordinal", *FIXED, "--report", "r.html", "--json")
    facts = json.loads(out)
    assert code == 0
    assert (facts["task"], facts["machine"]) == ("ordinal", "OrdinalSVC")
    assert facts["rank error"] == facts["held out"]["rank error"]
    assert "Utility and boundaries" in (ranks / "r.html").read_text()
    scored = json.loads(finish("evaluate", "grades.mercer", "grades.csv", "--json")[1])
    read, model = data.read("grades.csv"), load_model("grades.mercer")
    said = model.predict(read.X)
    assert isinstance(model.machine, OrdinalSVC)
    assert scored["rank error"] == pytest.approx(rank_error(read.y, said, GRADES))
    assert scored["confusion"] == confusion_matrix(read.y, said).tolist()
    utility = model.machine.utility(model.standardise(read.X))
    assert scored["pairs in order"] == pytest.approx(1.0 - scaled_pair_loss(read.y, utility))
    assert finish("predict", "grades.mercer", "grades.csv")[1].splitlines() == said.tolist()
    assert "thresholds" in finish("inspect", "grades.mercer")[1]


def test_orders_from_svmlight_and_from_a_table_are_the_same(ranks: Path, finish) -> None:
    for name, groups in {"documents.svm": [], "documents.csv": ["--groups", "qid"]}.items():
        code, out, _ = finish("fit", name, "--task", "rank", *groups, *FIXED, "--model", f"{name}.mercer", "--json")
        assert code == 0
        facts = json.loads(out)
        assert (facts["task"], facts["queries"], facts["features"]) == ("rank", 12, 2)
    read = data.read("documents.svm")
    found = [load_model(f"documents.{kind}.mercer").predict(read.X) for kind in ("svm", "csv")]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
    for kind in ("svm", "csv"):  # the model of the table knows its column of queries
        scored = json.loads(finish("evaluate", f"documents.{kind}.mercer", f"documents.{kind}", "--json")[1])
        assert scored["queries"] == 12
        assert scored["pairs in order"] == pytest.approx(1 - scaled_pair_loss(read.y, found[0], groups=read.query))
        assert scored["ndcg@10"] == pytest.approx(ndcg(read.y, found[0], k=10, groups=read.query))
        assert scored["map"] == pytest.approx(mean_average_precision(read.y, found[0], groups=read.query))
        low, high = scored["ndcg@10 interval"]
        assert low <= scored["ndcg@10"] <= high
    printed = [float(line) for line in finish("predict", "documents.svm.mercer", "documents.svm")[1].splitlines()]
    np.testing.assert_array_equal(printed, found[0])


def test_tune_gives_the_command_that_trains(ranks: Path, finish) -> None:
    options = ["--task", "rank", "--groups", "qid", "--kernel", "linear", "--folds", "3", "--json"]
    facts = json.loads(finish("tune", "documents.csv", *options)[1])
    assert (facts["machine"], facts["task"]) == ("rank", "rank")
    assert facts["score"]["pairs in order"] > 0.8
    assert "--machine rank" in facts["command"]
    assert facts["command"].endswith("--groups qid")


def test_compare_sets_other_machines_beside(ranks: Path, finish) -> None:
    shared = ["--folds", "2", "--no-tune", "--json"]
    facts = json.loads(
        finish("compare", "grades.csv", "--task", "ordinal", "--machine", "ordinal,odds,svc", *shared)[1]
    )
    assert facts["measure"] == "rank error"
    assert all(0.0 <= found["mean"] < 1.0 for found in facts["machines"].values())
    facts = json.loads(finish("compare", "documents.svm", "--machine", "lssvr,rank", *shared)[1])
    assert (facts["task"], facts["measure"]) == ("rank", "pairs in order")
    code, _, err = finish("compare", "documents.svm", "--machine", "svc,rank", *shared)
    assert code == exits.INPUT
    assert "different tasks" in err


def test_nothing_is_guessed_but_something_is_said(ranks: Path, finish) -> None:
    code, out, err = finish("fit", "grades.csv", "--no-tune", "--json", "--overwrite")
    assert (code, json.loads(out)["task"]) == (0, "classification")
    assert "--task ordinal makes use of their order" in err
    code, out, err = finish("fit", "documents.svm", "--no-tune", "--json")
    assert (code, json.loads(out)["task"]) == (0, "classification")
    assert "--task rank learns an order" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fit", "grades.csv", "--task", "rank"], "--task ordinal takes them in alphabetical order"),
        (["fit", "grades.csv", "--task", "ordinal", "--machine", "svc"], "take one of ordinal, odds"),
        (["fit", "grades.csv", "--task", "ordinal", "--stream"], "not with --stream"),
        (["fit", "documents.svm", "--task", "rank", "--groups", "qid"], "carry their queries as qid:"),
        (["fit", "documents.csv", "--task", "rank", "--groups", "query"], "groups='query' is not one of its columns"),
        (["fit", "documents.csv", "--task", "ordinal", "--target", "a"], "use --task rank"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_remedy(ranks: Path, finish, words, message) -> None:
    code, _, err = finish(*words)
    assert code == exits.INPUT
    assert message in err


def test_a_model_of_queries_is_not_scored_without_them(ranks: Path, finish) -> None:
    assert finish("fit", "documents.csv", "--task", "rank", "--groups", "qid", *FIXED)[0] == 0
    lines = (ranks / "documents.csv").read_text().splitlines()
    cells = [line.split(",") for line in lines]
    (ranks / "other.csv").write_text("\n".join(f"{a},{b},{r}" for a, b, _, r in cells) + "\n")
    code, _, err = finish("evaluate", "documents.mercer", "other.csv")
    assert code == exits.INPUT
    assert "has no queries, and the model was trained on some" in err


def test_exports_say_what_they_have_no_place_for(ranks: Path, finish) -> None:
    assert finish("fit", "documents.svm", "--task", "rank", "--no-scale", *FIXED)[0] == 0
    assert isinstance(load_model("documents.mercer").machine, RankSVM)
    code, _, err = finish("convert", "documents.mercer", "documents.model")
    assert code == exits.INPUT
    assert "RankSVM" in err


def test_whole_queries_are_held_out() -> None:
    query = np.random.default_rng(0).integers(0, 20, 300)
    inside, outside = split(np.arange(300) % 3, "rank", 0.2, 0, query)
    assert len(np.unique(query[outside])) == 4
    assert not set(query[inside]) & set(query[outside])
    np.testing.assert_array_equal(np.sort(np.concatenate([inside, outside])), np.arange(300))
