"""Every page of the documentation does what it says.

A page is one program: its Python blocks from top to bottom, in a fresh interpreter, with nothing given but mercer and
its bundled samples.  A `text` block below a Python block is what that block prints: the same words, and numbers equal
to the digits shown, that is within half a unit of the last of them.  Indented lines that begin with `mercer` are run by
the command.  Names in backticks are names of the package.
"""

import ast
import functools
import inspect
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.main import get_command

import mercer
from mercer import data
from mercer.cli.app import app, main

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md"])
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
COMMAND = re.compile(r"^    (mercer .*)$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
QUOTED = re.compile(r"`([^`\n]+)`")
WORD = re.compile(r"[A-Za-z_]\w*")
MARK = "\x1e"
# What pages name beside the package: an extra of the installation, tools, a folder, an option of every typer program.
FOREIGN = ("completion", "dev", "mypy", "py", "venv")


def program(page: str) -> tuple[str, list[str | None]]:
    """The Python blocks of a page with its line numbers, a mark printed before each, and what each block promises."""
    lines: list[str] = []
    promised: list[str | None] = []
    inside = ""
    for line in page.splitlines():
        code = ""
        if line.startswith("```"):
            inside = "" if inside else line[3:] or "other"
            if inside == "python":
                code = f"print({MARK!r})"
                promised.append(None)
            elif inside == "text":
                assert promised, "a text block shows what the Python block above it prints"
                promised[-1] = ""
        elif inside == "python":
            code = line
        elif inside == "text":
            promised[-1] = f"{promised[-1] or ''}{line}\n"
        lines.append(code)
    return "\n".join(lines) + "\n", promised


def agree(shown: str, printed: str) -> bool:
    """Whether a number shown is the one printed, rounded to the digits shown."""
    number = Decimal(shown)
    unit = Decimal((0, (1,), int(number.as_tuple().exponent)))
    return abs(Decimal(printed) - number) <= unit / 2


def difference(shown: str, printed: str) -> str:
    """The first place where an output is not the one shown; empty where there is none.  Spaces do not count."""
    words, actual = (["".join(part.split()) for part in NUMBER.split(text)] for text in (shown, printed))
    numbers, found = NUMBER.findall(shown), NUMBER.findall(printed)
    for word, other in zip_longest(words, actual, fillvalue="nothing"):
        if word != other:
            return f"{word!r} is shown where {other!r} is printed"
    for number, other in zip(numbers, found, strict=True):
        if not agree(number, other):
            return f"{number} is shown where {other} is printed"
    return ""


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```python" in page.read_text()], ids=lambda path: path.stem
)
def test_a_page_pasted_into_a_fresh_interpreter_prints_what_it_shows(page: Path, tmp_path: Path) -> None:
    code, promised = program(page.read_text(encoding="utf-8"))
    script = tmp_path / page.with_suffix(".py").name
    script.write_text(code, encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if key != "MERCER_DATA"}
    done = subprocess.run(
        [sys.executable, script.name],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr, f"{page.name} warns its reader: {done.stderr}"
    printed = done.stdout.split(MARK + "\n")[1:]
    for index, (shown, output) in enumerate(zip(promised, printed, strict=True), 1):
        if shown is not None:
            wrong = difference(shown, output)
            assert not wrong, f"block {index} of {page.name}: {wrong}.  It printed:\n{output}"


def test_a_number_is_compared_to_the_digits_shown_and_words_exactly() -> None:
    assert not difference("C = 0.85, 12 points\n", "C = 0.8549999, 12 points")
    assert not difference("[1.5 -2.0]", "[ 1.49999  -2.0000001]")
    assert not difference("gap 1.3e-05", "gap 1.26e-05")
    for printed in ("C = 0.856", "C = 0.844", "B = 0.85", "C = 0.85 1", "C = ", "C = 0.85, more"):
        assert difference("C = 0.85", printed), printed


def write_samples(name: str, points: int) -> None:
    """A bundled set as train.svm and test.svm in the working folder, `points` in each."""
    whole = data.sample(name)
    order = np.random.default_rng(0).permutation(whole.n)
    data.write("train.svm", whole.take(order[:points]))
    data.write("test.svm", whole.take(order[points : 2 * points]))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if COMMAND.search(page.read_text())], ids=lambda path: path.stem
)
def test_the_commands_of_a_page_run_one_after_the_other(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_samples("iris", 45)
    for line in COMMAND.findall(page.read_text(encoding="utf-8")):
        _, *words = shlex.split(line, comments=True)
        if words == ["demo"]:
            continue  # minutes; it has a test of its own
        with pytest.raises(SystemExit) as end:
            main(words)
        output = capsys.readouterr()
        assert not end.value.code, f"{line}: {output.err}"
        assert output.out, line


def options() -> set[str]:
    """Every option of every command."""
    whole: Any = get_command(app)
    parameters = [parameter for command in (whole, *whole.commands.values()) for parameter in command.params]
    return {name for parameter in parameters for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_options_that_a_page_names_exist(page: Path) -> None:
    prose = FENCED.sub("", page.read_text(encoding="utf-8"))
    ours = [snippet for snippet in QUOTED.findall(prose) if not re.match(r"(make|mypy|pip|python) ", snippet)]
    assert {option for snippet in ours for option in re.findall(r"(?<!\S)--[a-z][\w-]*", snippet)} <= options()


@functools.cache
def vocabulary() -> frozenset[str]:
    """Every name in the code of the package: modules, definitions, parameters, attributes, and words of short texts."""
    words = set(FOREIGN)
    for path in (ROOT / "src" / "mercer").rglob("*.py"):
        words |= {path.stem, path.parent.name}
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            own = [getattr(node, field, None) for field in ("id", "attr", "arg", "name")]
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 40:
                own += WORD.findall(node.value)
            words |= {name for name in own if isinstance(name, str)}
    return frozenset(words)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_names_that_a_page_puts_in_backticks_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    own = set(WORD.findall("".join(FENCED.findall(text))))
    for snippet in QUOTED.findall(FENCED.sub("", text)):
        if re.fullmatch(r"mercer(\.\w+)+", snippet):
            assert pkgutil.resolve_name(snippet), snippet
        elif re.fullmatch(r"[\w.-]+/[\w./-]*", snippet):
            assert (ROOT / snippet).exists(), snippet
        else:
            # Words in capitals stand for what the reader fills in; a__b is parameter b of parameter a.
            words = {part for word in WORD.findall(snippet) if not word.isupper() for part in word.split("__") if part}
            missing = {word for word in words - own - vocabulary() if not word.startswith("check_")}
            assert not missing, f"{snippet}: {missing}"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_parameters_that_a_page_gives_in_backticks_are_taken(page: Path) -> None:
    for snippet in QUOTED.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        if not re.fullmatch(r"[A-Z]\w*\(.*\)", snippet):
            continue
        for call in ast.walk(ast.parse(snippet)):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in mercer.__all__:
                parameters = inspect.signature(getattr(mercer, call.func.id)).parameters
                assert {keyword.arg for keyword in call.keywords} <= set(parameters), snippet
                assert len(call.args) <= len(parameters), snippet


def test_the_index_leads_to_every_page() -> None:
    linked = set(LINK.findall((ROOT / "docs" / "index.md").read_text(encoding="utf-8")))
    assert linked == {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
