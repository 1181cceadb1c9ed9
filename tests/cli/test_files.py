"""What the command reads and writes: columns of training, standard input, names of models, full disks, labels."""

import errno
import gzip
import io
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from mercer import data, writing
from mercer.cli import exits
from mercer.cli.files import incoming
from mercer.cli.output import cell, clean
from mercer.models import load_model
from tests.cli.conftest import Finish, write_parts

QUICK = ("--no-tune", "--test-fraction", "0")
SEEN = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


class Typed:
    """Standard input with some bytes in it."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


@pytest.fixture
def wine(folder: Path, finish: Finish) -> Path:
    """A folder with named.mercer, trained on a table of the columns a, b and c."""
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 3))
    rows = [f"{x[0]},{x[1]},{x[2]},{'red' if x[0] > 0 else 'white'}" for x in X]
    Path("named.csv").write_text("a,b,c,kind\n" + "\n".join(rows) + "\n")
    assert finish("fit", "named.csv", *QUICK)[0] == 0
    return folder


# Columns -----------------------------------------------------------------------------------------------------------


def test_columns_are_found_by_name_in_any_order(wine: Path, finish: Finish) -> None:
    table = data.read("named.csv")
    lines = [f"{x[2]},{x[0]},{x[1]}" for x in table.X]
    Path("turned.csv").write_text("c,a,b\n" + "\n".join(lines) + "\n")
    expected = [str(label) for label in load_model("named.mercer").predict(table.X)]
    assert finish("predict", "named.mercer", "turned.csv")[1].split() == expected
    assert finish("predict", "named.mercer", "named.csv")[1].split() == expected


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("less.csv", "a,c\n1,2\n", ["lacks", "'b'"]),
        ("other.csv", "a,c,d\n1,2,3\n", ["lacks", "'b'", "'d'"]),
        ("more.csv", "a,b,c,d\n1,2,3,4\n", ["'d'"]),
        ("bare.csv", "1,2,3\n4,5,6\n", ["'a'", "'b'", "'c'"]),
        ("short.svm", "1 1:1 2:1\n1 1:1\n", ["2 features", "trained on 3", "'a'"]),
        ("long.svm", "1 1:1 4:1\n", ["4 features", "trained on 3"]),
    ],
)
def test_other_columns_are_refused_by_name(
    wine: Path, finish: Finish, name: str, content: str, words: list[str]
) -> None:
    Path(name).write_text(content)
    for command in ("predict", "evaluate"):
        code, out, err = finish(command, "named.mercer", name)
        assert (code, out) == (3, "")
        assert all(word in err for word in [name, *words])


def test_columns_without_names_are_taken_in_order_with_a_note(wine: Path, finish: Finish) -> None:
    table = data.read("named.csv")
    np.savez("bare.npz", X=table.X)
    code, out, err = finish("predict", "named.mercer", "bare.npz")
    assert code == 0
    assert out.split() == [str(label) for label in load_model("named.mercer").predict(table.X)]
    assert "in the order of training: 'a', 'b', 'c'" in err


def test_sparse_points_are_imputed_by_the_means_of_training(folder: Path, finish: Finish) -> None:
    lines = [f"{i % 2} {1 + i % 9}:1 {20 + i % 2}:{'nan' if i == 4 else i % 5 + 1}" for i in range(40)]
    Path("a.svm").write_text("\n".join(lines) + "\n")
    assert finish("fit", "a.svm", *QUICK, "--missing", "impute", "--machine", "svc")[0] == 0
    values = np.array([np.nan if i == 4 else i % 5 + 1.0 for i in range(40)])
    mean = float(np.nansum(values[::2])) / 39  # zeros count, the missing one does not
    assert load_model("a.mercer").notes["recipe"]["means"]["19"] == pytest.approx(mean)
    Path("gap.svm").write_text("0 1:1 20:nan\n0 20:nan\n")
    Path("full.svm").write_text(f"0 1:1 20:{mean!r}\n0 20:{mean!r}\n")
    words = ("--decision", "--json")
    found, whole = (finish("predict", "a.mercer", f"{name}.svm", *words)[1] for name in ("gap", "full"))
    assert json.loads(found)["predictions"] == pytest.approx(json.loads(whole)["predictions"], abs=1e-12)


def test_columns_left_out_in_training_may_stand_in_a_later_file(wine: Path, finish: Finish) -> None:
    lines = Path("named.csv").read_text().splitlines()
    ids = [f"p-{k * k}" for k in range(40)]
    Path("ids.csv").write_text(
        "\n".join([f"id,{lines[0]}", *(f"{i},{line}" for i, line in zip(ids, lines[1:]))]) + "\n"
    )
    code, _, err = finish("fit", "ids.csv", *QUICK)
    assert code == 0
    assert "'id' is left out" in err
    found = [finish("predict", "ids.mercer", name) for name in ("ids.csv", "named.csv")]
    assert [code for code, _, _ in found] == [0, 0]
    assert found[0][1] == found[1][1]


# Standard input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["svm", "svm.xz", "csv", "csv.gz", "npz"])
def test_standard_input_is_read_as_a_file_of_its_format(
    folder: Path, finish: Finish, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    write_parts(folder, "iris", 100, ending)

    def piped(name: str, *words: str) -> str:
        monkeypatch.setattr(sys, "stdin", Typed(Path(name).read_bytes()))
        code, out, err = finish(*words)
        assert code == 0, err
        return out

    train, test = f"train.{ending}", f"test.{ending}"
    assert finish("fit", train, *QUICK, "--model", "file.mercer")[0] == 0
    piped(train, "fit", "-", *QUICK)
    expected = finish("predict", "file.mercer", test)[1]
    assert piped(test, "predict", "model.mercer", "-") == expected
    told = json.loads(piped(train, "inspect", "-", "--json"))
    assert told == json.loads(finish("inspect", train, "--json")[1])


def test_errors_of_standard_input_name_it(folder: Path, finish: Finish, monkeypatch: pytest.MonkeyPatch) -> None:
    for content, words in ((b"", "is empty"), (b"1 1:x\n", "line 1"), (b"1 1:1\n1 1:2\n", "two classes")):
        monkeypatch.setattr(sys, "stdin", Typed(content))
        code, _, err = finish("fit", "-", "--format", "svmlight")
        assert code == 3
        assert err.startswith("mercer: standard input")
        assert words in err


def test_a_packed_table_on_standard_input_is_seen_through(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Typed(gzip.compress(b"# a note\n1 qid:3 1:2\n")))
    with incoming(Path("-")) as file:
        assert file.name == "input.svmlight.gz"
    assert not file.exists()


# Names of results --------------------------------------------------------------------------------------------------


def test_no_file_is_replaced_in_silence(heart: Path, finish: Finish) -> None:
    before = Path("train.svm").read_bytes()
    assert finish("fit", "train.svm", *QUICK)[0] == 0
    first = Path("train.mercer").read_bytes()
    code, _, err = finish("fit", "train.svm", *QUICK, "--C", "2")
    assert code == 3
    assert "--overwrite" in err
    assert "--model" in err
    assert Path("train.mercer").read_bytes() == first
    assert finish("fit", "train.svm", *QUICK, "--C", "2", "--model", "train.mercer")[0] == 0
    assert load_model("train.mercer").machine.C == 2.0
    assert finish("fit", "train.svm", *QUICK, "--C", "3", "--overwrite")[0] == 0
    assert load_model("train.mercer").machine.C == 3.0
    for words in (
        ["fit", "train.svm", *QUICK, "--model", "train.svm"],
        ["fit", "train.svm", *QUICK, "--model", "train.svm", "--overwrite"],
        ["fit", "train.svm", *QUICK, "--model", "test.svm"],
        ["fit", "train.svm", *QUICK, "--model", "n.mercer", "--report", "train.svm"],
        ["fit", "train.svm", *QUICK, "--model", "n.mercer", "--checkpoint", "train.svm"],
        ["fit", "train.svm", *QUICK, "--model", "n.mercer", "--checkpoint", "test.svm"],
        ["tune", "train.svm", "--checkpoint", "train.svm"],
        ["predict", "train.mercer", "train.svm", "--output", "train.svm"],
        ["predict", "train.mercer", "train.svm", "--output", "train.mercer"],
        ["convert", "train.mercer", "./train.mercer"],
    ):
        assert finish(*words)[0] == 3, words
    assert Path("train.svm").read_bytes() == before
    assert Path("test.svm").stat().st_size > 1000
    assert sorted(path.name for path in heart.iterdir()) == ["test.svm", "train.mercer", "train.svm"]


def test_fit_says_how_to_get_probabilities(heart: Path, finish: Finish) -> None:
    told = finish("fit", "train.svm", *QUICK)[1]
    assert "--machine logistic gives them" in " ".join(told.split())
    words = ("--machine", "logistic")
    assert finish("fit", "train.svm", *QUICK, *words, "--model", "p.mercer")[0] == 0
    assert finish("predict", "p.mercer", "test.svm", "--proba")[0] == 0


# Disks -------------------------------------------------------------------------------------------------------------


def refuse_in(monkeypatch: pytest.MonkeyPatch, *folders: Path, after: int = 0) -> None:
    """Make the disk of these folders full, once `after` files were written there."""
    sync, seen = os.fsync, [0]

    def full(handle: int) -> None:
        place = Path(os.readlink(f"/proc/self/fd/{handle}"))
        if any(folder.resolve() in place.parents for folder in folders):
            seen[0] += 1
            if seen[0] > after:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(handle)

    monkeypatch.setattr(writing.os, "fsync", full)


linux = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the folder of an open file is found by /proc")


@linux
def test_a_full_disk_is_found_before_training(heart: Path, finish: Finish, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_in(monkeypatch, heart)
    monkeypatch.setattr("mercer.cli.fit.points.read_points", lambda *a, **k: pytest.fail("the data were read"))
    for words in (["--model", "m.mercer"], ["--report", "r.html"], ["--checkpoint", "state"]):
        code, _, err = finish("fit", "train.svm", *words)
        assert code == 3
        assert "cannot be written (No space left on device); make room or name another place" in err
    code, _, err = finish("fit", "train.svm", "--model", "/proc/m.mercer")
    assert code == 3
    assert "/proc/m.mercer: cannot be written" in err
    assert sorted(path.name for path in heart.iterdir()) == ["test.svm", "train.svm"]


@linux
def test_a_model_that_finds_the_disk_full_goes_to_another_place(
    heart: Path, finish: Finish, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    spare = tmp_path_factory.mktemp("spare")
    (spare / "m.mercer").write_text("taken")
    monkeypatch.setattr("tempfile.tempdir", str(spare))
    refuse_in(monkeypatch, heart, after=1)
    code, out, err = finish("fit", "train.svm", *QUICK, "--model", "m.mercer", "--json")
    assert code == exits.ELSEWHERE
    place = spare / "m-2.mercer"
    assert json.loads(out)["model"] == str(place)
    assert "m.mercer: cannot be written (No space left on device)" in err
    assert f"the model is in {place} instead" in err
    assert load_model(place).predict(np.zeros((1, 13))).shape == (1,)
    assert (spare / "m.mercer").read_text() == "taken"
    assert not (heart / "m.mercer").exists()


@linux
def test_a_failing_checkpoint_warns_and_training_goes_on(
    heart: Path, finish: Finish, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = heart / "full"
    full.mkdir()
    refuse_in(monkeypatch, full, after=1)
    words = ("--machine", "svc", "--C", "1", "--test-fraction", "0")
    code, _, err = finish("fit", "train.svm", *words, "--checkpoint", "full/state", "--model", "m.mercer")
    assert code == 0
    assert "full/state: cannot be written (No space left on device)" in err
    assert "The training goes on; what it reaches is not saved." in err
    assert load_model("m.mercer").machine.C == 1.0
    assert list(full.iterdir()) == []


# Labels ------------------------------------------------------------------------------------------------------------

STRANGE = [
    "plain", "two\nlines", "=1+1", "-1", "@cmd", "+x", "\x1b[31mred\x1b[0m", "[red]markup[/red]", 'a,"b"', "\u202eback",
]  # fmt: skip


def test_text_from_files_is_shown_and_not_obeyed() -> None:
    for label in STRANGE:
        assert clean(label).isprintable()
    assert clean("two\nlines\x1b") == "two\\nlines\\x1b"
    assert [cell(text) for text in ("=1+1", "-1", "+1e3", "@a", "-inf", "-x", 'a,"b"')] == [
        "'=1+1", "-1", "+1e3", "'@a", "-inf", "'-x", '"a,""b"""'
    ]  # fmt: skip


def test_strange_labels_make_one_harmless_line_each(folder: Path, finish: Finish) -> None:
    X = np.repeat(np.arange(10.0), 6)[:, None] + np.tile(0.01 * np.arange(6.0), 10)[:, None]
    np.savez("a\x1b[31m[b].npz", X=X, y=np.repeat(STRANGE, 6))
    name = "a\x1b[31m[b].npz"
    words = (
        "--machine",
        "svc",
        "--no-tune",
        "--C",
        "1000",
        "--sigma",
        "0.1",
        "--probability",
        "--test-fraction",
        "0.2",
    )
    outputs = [finish("fit", name, *words, "--model", "m.mercer")]
    outputs += [finish("predict", "m.mercer", name), finish("predict", "m.mercer", name, "--proba")]
    outputs += [finish("evaluate", "m.mercer", name), finish("inspect", name), finish("inspect", "m.mercer")]
    outputs += [finish("inspect", "\x1b[2J.svm")]
    for code, _, err in outputs[:-1]:
        assert code == 0, err
    for _, out, err in outputs:
        assert SEEN.search(out + err) is None
    labels = outputs[1][1].splitlines()
    assert len(labels) == len(X)
    assert set(labels) == {clean(label) for label in STRANGE}
    assert len(outputs[2][1].splitlines()) == len(X) + 1
    assert "[red]markup[/red]" in outputs[3][1]
    assert finish("predict", "m.mercer", name, "--output", "p.csv")[0] == 0
    assert set(Path("p.csv").read_text().splitlines()) == {cell(label) for label in STRANGE}
    exact = json.loads(finish("predict", "m.mercer", name, "--json")[1])["predictions"]
    assert set(exact) == set(STRANGE)
