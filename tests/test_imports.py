"""Imports go downwards only: from the machines to the kernels, never back."""

import ast
from pathlib import Path

import pytest

import mercer

PACKAGE = Path(mercer.__file__).parent

# From the ground up.  Rooms in one line may use one another.
ORDER = [
    {"arrays", "errors", "loading", "parameters", "compiled", "threads", "teams", "resources", "dense", "writing"},
    {"kernels"},
    {"gram"},
    {"losses"},
    {"problems"},
    {"solvers"},
    {"lowrank"},
    {"selection"},
    {"planning"},
    {"versions"},
    {"data"},
    {"machine"},
    {"svm", "least_squares", "logistic", "multiclass", "ordinal", "structured", "online", "transformers"},
    {"tuned"},
    {"ensembles"},
    {"models"},
    {"report"},
    {"distributed"},
    {"cli", "__main__"},
]
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}

# Packages that only some rooms may import.
MACHINES = ORDER[RANK["svm"]] | {"tuned", "ensembles"}
RESERVED = {
    "sklearn": {"data", "machine", "models", "report", "distributed", "cli"} | MACHINES,
    "torch": {"gram", "versions"},
    "triton": {"gram"},
    "dask": {"distributed"},
    "distributed": {"distributed"},
    "matplotlib": {"report"},
    "typer": {"cli"},
    "rich": {"cli", "report"},
}


def imported(path: Path, package: Path) -> list[tuple[int, str]]:
    """Line and full name of every module a file imports, wherever in the file it does."""
    here = ["mercer", *path.relative_to(package).parent.parts]
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            if start == "mercer":  # from mercer import threads
                found += [(node.lineno, f"mercer.{alias.name}") for alias in node.names]
            else:
                found.append((node.lineno, start))
    return found


def offences(package: Path) -> list[str]:
    """Every import of the package that breaks the order, with its place."""
    complaints = []
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        room = inside.parts[0].removesuffix(".py")
        if str(inside) == "__init__.py":
            continue
        if room not in RANK:
            complaints.append(f"{inside}: the room {room!r} has no place in the order")
            continue
        for line, name in imported(path, package):
            top, _, rest = name.partition(".")
            if top == "mercer":
                other = rest.partition(".")[0]
                if other in RANK and other != room and RANK[other] > RANK[room]:
                    complaints.append(f"{inside}:{line}: {room} imports {other}, which lies above it")
            elif top in RESERVED and room not in RESERVED[top]:
                complaints.append(f"{inside}:{line}: {room} imports {top}, which is left to {sorted(RESERVED[top])}")
    return complaints


def test_imports_go_downwards_only() -> None:
    assert offences(PACKAGE) == []


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("kernels/a.py", "from mercer.gram import Gram", "kernels/a.py:1: kernels imports gram"),
        ("gram/a.py", "import numpy\nimport mercer.solvers.smo", "gram/a.py:2: gram imports solvers"),
        ("threads.py", "def f():\n    from mercer import kernels", "threads.py:2: threads imports kernels"),
        ("gram/a.py", "from ..problems import base", "gram/a.py:1: gram imports problems"),
        ("gram/a.py", "from .. import problems", "gram/a.py:1: gram imports problems"),
        ("selection/a.py", "from sklearn.base import clone", "selection/a.py:1: selection imports sklearn"),
        ("solvers/deep/a.py", "import torch", "solvers/deep/a.py:1: solvers imports torch"),
        ("utils.py", "", "utils.py: the room 'utils' has no place"),
    ],
)
def test_an_offending_import_is_found(tmp_path: Path, file: str, text: str, complaint: str) -> None:
    (tmp_path / "__init__.py").write_text("from mercer.cli import main\n")
    place = tmp_path / file
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text + "\n")
    found = offences(tmp_path)
    assert len(found) == 1
    assert found[0].startswith(complaint)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("solvers/a.py", "from mercer.gram import Gram\nfrom . import b\nfrom .b import c\nfrom mercer import threads"),
        ("svm.py", "from sklearn.base import BaseEstimator\nfrom mercer.least_squares import LSSVC"),
        ("gram/cuda.py", "import torch"),
    ],
)
def test_imports_that_go_downwards_are_left_alone(tmp_path: Path, file: str, text: str) -> None:
    place = tmp_path / file
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text + "\n")
    assert offences(tmp_path) == []
