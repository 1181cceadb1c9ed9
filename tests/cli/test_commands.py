"""The command: its results, its one-line errors, its exit codes, and the examples of its help."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import mercer
from mercer import data
from mercer.cli import compiling, exits
from mercer.cli.app import EXAMPLES, app, main
from mercer.cli.demo import run
from mercer.cli.progress import Quiet
from mercer.data.samples import FOLDER
from mercer.errors import BudgetTooSmall, InvalidInput, MissingDependency, ModelFileError

COMMANDS = {command.callback.__name__: command for command in app.registered_commands}
SHOWN = [(command.__name__, example) for command, examples in EXAMPLES.items() for example in examples]


def finish(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code, output and errors of one call of the command."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    output = capsys.readouterr()
    return int(end.value.code or 0), output.out, output.err


def write_ranks(folder: Path) -> None:
    """Grades of three ranks in grades.csv, and documents of six queries in queries.svm."""
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 2))
    rank = np.digitize(X[:, 0] + 0.3 * random.standard_normal(60), [-0.4, 0.4])
    data.write(folder / "grades.csv", data.Dataset(X, np.array(["1 poor", "2 fair", "3 good"])[rank]))
    data.write(folder / "queries.svm", data.Dataset(X, rank, query=np.arange(60) // 10))


def test_every_command_has_an_example() -> None:
    assert {name for name, _ in SHOWN} == COMMANDS.keys()


# The demonstration has a test of its own, which runs its example.
@pytest.mark.parametrize(("name", "example"), [shown for shown in SHOWN if shown[0] != "demo"])
def test_the_examples_in_the_help_of_every_command_run(
    name: str, example: str, heart: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_ranks(heart)
    shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "120"})
    assert shown.exit_code == 0
    assert example in shown.output
    program, *words = shlex.split(example)
    assert program == "mercer"
    if "model.mercer" in words and name != "fit":
        fixed = ["--no-tune", "--no-scale", "--sigma", "100", "--test-fraction", "0"]
        assert finish(["fit", "train.svm", "--model", "model.mercer", *fixed], capsys)[0] == 0
    code, out, err = finish(words, capsys)
    assert code == 0
    assert all(line.startswith("mercer: note: ") for line in err.splitlines())
    assert out
    for word in words:
        assert word.startswith("-") or "." not in word or (heart / word).exists()


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert finish(["--version"], capsys) == (0, f"mercer {mercer.__version__}\n", "")
    code, out, _ = finish(["--help"], capsys)
    assert code == 0
    assert all(name in out for name in COMMANDS)


def test_an_error_is_one_line_with_the_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.svm").write_text("1 1:x\n")
    code, out, err = finish(["inspect", str(tmp_path / "a.svm")], capsys)
    assert code == exits.INPUT
    assert out == ""
    assert err == f"mercer: {tmp_path / 'a.svm'}, line 1: a feature value must be a number, not 'x'\n"


def test_debug_shows_the_traceback_wherever_it_stands(tmp_path: Path) -> None:
    for words in (["--debug", "inspect", "nothing.svm"], ["inspect", "nothing.svm", "--debug"]):
        with pytest.raises(InvalidInput, match="no such file"):
            main(words)


def test_a_wrong_command_line_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert finish(["inspect"], capsys)[0] == exits.USAGE
    assert finish(["dance"], capsys)[0] == exits.USAGE


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidInput("x"), 3),
        (ModelFileError("x"), 3),
        (FileNotFoundError("x"), 3),
        (BudgetTooSmall("x"), 4),
        (MissingDependency("x"), 4),
        (MemoryError(), 4),
        (KeyError("x"), 1),
    ],
)
def test_exit_codes_follow_the_class_of_the_error(error: Exception, code: int) -> None:
    assert exits.code_of(error) == code
    assert "\n" not in exits.line_of(type(error)("first\nsecond"))


def test_inspect_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = finish(["inspect", str(FOLDER / "breast-cancer-wisconsin.svm.xz"), "--json"], capsys)
    facts = json.loads(out)
    assert code == 0
    assert (facts["points"], facts["features"], facts["missing values"]) == (699, 9, 16)
    assert facts["classes"] == {"-1": 458, "1": 241}


def test_inspect_takes_the_target_of_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("a,b,c\n1,2.5,x\n2,3.5,y\n,4.5,x\n")
    facts = json.loads(finish(["inspect", str(tmp_path / "a.csv"), "--target", "b", "--json"], capsys)[1])
    assert facts["task"] == "regression"
    assert facts["target range"] == [2.5, 4.5]
    assert facts["missing values"] == 1


def test_doctor_names_what_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    facts = json.loads(finish(["doctor", "--json"], capsys)[1])
    assert facts["mercer"]["version"] == mercer.__version__
    assert set(facts) >= {"machine", "linear algebra", "devices", "caches", "packages"}
    shown = finish(["doctor"], capsys)[1]
    assert "threads" in shown


def test_doctor_compiles_every_kind_of_work_and_says_where_it_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compiling, "PRECISIONS", ("float64",))
    shown = " ".join(finish(["doctor", "--compile"], capsys)[1].split())
    for machine in ("SVC, two classes", "SVC, more classes", "SVR", "LSSVC", "OneClassSVM"):
        for form in ("dense points", "CSR points"):
            assert f"{machine}, {form}, float64" in shown
    for work in ("SVC, many dense points", "SVR, many CSR points", "CSR points of 0 and 1", "SVC, wide CSR points"):
        assert work in shown
    assert "compiled in" in shown
    assert "kept in" in shown


def test_the_demonstration_ends_with_the_path_of_its_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, *words = shlex.split((COMMANDS["demo"].epilog or "").partition("Example: ")[2])
    code, out, _ = finish(words, capsys)
    assert (program, code) == ("mercer", 0)
    report = Path(out.splitlines()[-1].removeprefix("report: "))
    assert report == folder.resolve() / "mercer-demo" / "heart-statlog.html"
    assert "<html" in report.read_text(encoding="utf-8")
    assert report.with_suffix(".mercer").is_file()


def test_the_demonstration_tunes_scores_and_certifies() -> None:
    _, facts = run("heart-statlog", Quiet())
    assert facts["machine"] == "LSSVC"
    assert facts["accuracy"] == facts["held out"]["accuracy"] > 0.75
    assert facts["held out"]["points"] == 81
    assert 0 <= facts["certificate"]["relative gap"] < 1e-2


def test_the_shell_completes_commands() -> None:
    asked = {"_MERCER_COMPLETE": "complete_bash", "COMP_WORDS": "mercer ev", "COMP_CWORD": "1"}
    done = CliRunner().invoke(app, [], prog_name="mercer", env=asked)
    assert done.output.split() == ["evaluate"]


def test_the_command_is_a_module_too() -> None:
    for module in ("mercer", "mercer.cli"):
        words = [sys.executable, "-m", module, "--version"]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        assert done.stdout == f"mercer {mercer.__version__}\n"
