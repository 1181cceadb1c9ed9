"""Kernel values come through one door: outside `gram` nobody knows its engines, tiles, transforms or stored arrays."""

import ast
from pathlib import Path

import pytest
from test_imports import PACKAGE, imported

import mercer.gram
from mercer.gram import GramOperator, PointColumns

PUBLIC = set(mercer.gram.__all__)
# What may be asked of an operator, whatever its kind.
ASKED = {name for name in dir(GramOperator) if not name.startswith("_")} | {"dtype", "shape"}
# What an operator is called in the source.
OPERATORS = {"gram", "_gram", "operator"}
# Names that only engines, tiles and prepared points have.
INSIDE = {"engine", "_engine", "tiles", "_tiles", "half_norms"}
PREPARED = {"U", "a", "norms"}
TAKEN_BY_NAME = INSIDE | {"matrix", "left", "right", "entries"}


def last_name(node: ast.expr) -> str:
    """`problem.gram` and `gram` are both called gram."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def complaint(node: ast.AST) -> str | None:
    """What is wrong with one expression outside `gram`."""
    if isinstance(node, ast.Attribute):
        owner = last_name(node.value)
        if node.attr in INSIDE:
            return f"touches .{node.attr}"
        if owner in OPERATORS and node.attr not in ASKED | PUBLIC:
            return f"asks {owner} for .{node.attr}, which not every operator has"
        if owner in ("left", "right") and node.attr in PREPARED:
            return f"touches .{owner}.{node.attr}"
        if owner == "columns" and node.attr in PointColumns._fields:
            return f"looks into prepared columns: .{node.attr}"
    if isinstance(node, ast.Call) and last_name(node.func) in ("getattr", "hasattr") and len(node.args) > 1:
        name = node.args[1]
        if isinstance(name, ast.Constant) and name.value in TAKEN_BY_NAME:
            return f"takes {name.value!r} by name"
    return None


def offences(package: Path) -> list[str]:
    """Every place outside `gram` that goes past the door."""
    found = []
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        if inside.parts[0] == "gram":
            continue
        for line, name in imported(path, package):
            if name.startswith("mercer.gram."):
                found.append(f"{inside}:{line}: imports {name}")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "mercer.gram":
                found += [
                    f"{inside}:{node.lineno}: imports {alias.name}, which mercer.gram does not offer"
                    for alias in node.names
                    if alias.name not in PUBLIC
                ]
            said = complaint(node)
            if said is not None:
                found.append(f"{inside}:{getattr(node, 'lineno', 0)}: {said}")
    return found


def test_nothing_outside_gram_goes_past_its_door() -> None:
    assert offences(PACKAGE) == []


def test_everything_offered_is_there() -> None:
    assert [name for name in mercer.gram.__all__ if not hasattr(mercer.gram, name)] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("from mercer.gram.tiles import Tiles", "1: imports mercer.gram.tiles"),
        ("def f():\n    import mercer.gram.transform", "2: imports mercer.gram.transform"),
        ("from ..gram.cpu_engine import engine_of", "1: imports mercer.gram.cpu_engine"),
        ("from mercer.gram import cost", "1: imports cost"),
        ("def f(problem):\n    return problem.gram.matrix", "2: asks gram for .matrix"),
        ("def f(gram):\n    return gram.left.T", "2: asks gram for .left"),
        ("def f(gram):\n    return getattr(gram, 'matrix', None)", "2: takes 'matrix' by name"),
        ("def f(values):\n    return values.tiles", "2: touches .tiles"),
        ("def f(gram):\n    return gram.block(0, 0), held(gram)._engine", "2: touches ._engine"),
        ("def f(points):\n    return points.left.U", "2: touches .left.U"),
        ("def f(columns):\n    return columns.code", "2: looks into prepared columns: .code"),
    ],
)
def test_a_step_past_the_door_is_found(tmp_path: Path, text: str, said: str) -> None:
    place = tmp_path / "solvers" / "a.py"
    place.parent.mkdir()
    place.write_text(text + "\n")
    found = offences(tmp_path)
    assert len(found) == 1
    assert found[0].startswith(f"solvers/a.py:{said}")


def test_what_the_door_offers_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "from mercer.gram import Gram, KernelColumns, take\n"
        "def f(gram, system):\n"
        "    return gram.block(None, None), gram.held_values(), gram.X, gram.dtype, system.matrix, system.left\n"
    )
    (tmp_path / "gram").mkdir()
    (tmp_path / "gram" / "b.py").write_text("from mercer.gram.tiles import Tiles\n")
    assert offences(tmp_path) == []
