"""Iterations to an optimum live in `solvers`; the recursion of conjugate gradients is written once.

What can be seen in the source: loops under the name of a method that iterates, and descents with a line search, that
is a loop around a loop which halves a step.  The few elsewhere are listed with the reason why they belong there.
"""

import ast
from pathlib import Path

import pytest

import mercer

PACKAGE = Path(mercer.__file__).parent
ROOM = "solvers"
RECURSION = "mercer.solvers.linear.conjugate_directions"
METHODS = (
    "newton",
    "conjugate_gradient",
    "conjugate_direction",
    "descend",
    "trust_region",
    "interior_point",
    "working_set",
    "coordinate_descent",
)

# One or two numbers that go with given coefficients, or the nearest point of a box: no machine is trained by them.
BELONGS = {
    "problems/few_variables.py: minimiser": "the bias of each class or the thresholds between ranks, all else given",
    "problems/program.py: _onto_rows": "the nearest feasible point",
    "machine/probability.py: fit_sigmoid": "two numbers of Platt's sigmoid",
}


def halves(node: ast.AST) -> bool:
    """x *= 0.5 or x /= 2 for a plain name x."""
    if not (isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)):
        return False
    factor = node.value.value if isinstance(node.value, ast.Constant) else None
    return (isinstance(node.op, ast.Mult) and factor == 0.5) or (isinstance(node.op, ast.Div) and factor == 2.0)


def has_line_search(function: ast.AST) -> bool:
    """Whether a loop of the function contains a while loop that halves something."""
    loops = (node for node in ast.walk(function) if isinstance(node, (ast.For, ast.While)))
    inner = (node for loop in loops for node in ast.walk(loop) if isinstance(node, ast.While) and node is not loop)
    return any(halves(node) for loop in inner for node in ast.walk(loop))


def offences(package: Path) -> list[str]:
    """Every iteration outside its room, with its place."""
    complaints = []
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        if inside.parts[0] == ROOM:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == RECURSION:
                complaints.append(f"{inside}: takes the recursion of conjugate gradients")
            if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                continue
            place = f"{inside.as_posix()}: {node.name}"
            named = any(method.replace("_", "") in node.name.lower().replace("_", "") for method in METHODS)
            loops = any(isinstance(part, (ast.For, ast.While)) for part in ast.walk(node))
            searches = isinstance(node, ast.FunctionDef) and has_line_search(node)
            if ((named and loops) or searches) and place not in BELONGS:
                complaints.append(place)
    return complaints


def test_iterations_to_an_optimum_live_in_solvers() -> None:
    assert offences(PACKAGE) == []


def test_what_is_listed_is_there() -> None:
    for place in BELONGS:
        file, _, name = place.partition(": ")
        assert f"def {name}(" in (PACKAGE / file).read_text(encoding="utf-8"), place


def test_every_conjugate_gradient_iteration_takes_the_one_recursion() -> None:
    """The modules that iterate by conjugate gradients, and nobody else, import the recursion."""
    users = {
        path.relative_to(PACKAGE / ROOM).as_posix()
        for path in (PACKAGE / ROOM).rglob("*.py")
        if RECURSION in path.read_text(encoding="utf-8")
    }
    assert users == {
        "classical/pcg_chunking.py",
        "linear/conjugate_gradient.py",
        "linear/coupled.py",
        "linear/masked_systems.py",
        "linear/multishift.py",
        "primal_newton.py",
        "streamed/newton.py",
        "streamed/rectangle.py",
    }


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("class Newton:\n    def run(self):\n        while self.step():\n            pass", "Newton"),
        ("def conjugate_gradients(A):\n    for _ in range(9):\n        A()", "conjugate_gradients"),
        ("from mercer.solvers.linear.conjugate_directions import over_rows", "conjugate gradients"),
        (
            "def fit(f, x):\n    for _ in range(9):\n        t = 1.0\n        while f(x - t) > f(x):\n"
            "            t *= 0.5\n        x -= t\n",
            "fit",
        ),
    ],
)
def test_an_iteration_elsewhere_is_found(tmp_path: Path, text: str, name: str) -> None:
    (tmp_path / "multiclass").mkdir()
    (tmp_path / "multiclass" / "a.py").write_text(text + "\n")
    assert [complaint for complaint in offences(tmp_path) if complaint.endswith(name)]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("solvers/a.py", "class Newton:\n    def run(self):\n        while self.step():\n            pass"),
        ("svm/a.py", "def _interior_point(problem):\n    return solvers.interior_point.solve(problem)"),
        ("selection/a.py", "def f(x):\n    while x > 1:\n        x *= 0.5\n    return x"),
        ("selection/a.py", "from mercer.solvers.trust_region import descend\n\nx = descend(f, 0)"),
    ],
)
def test_solvers_and_their_users_are_left_alone(tmp_path: Path, file: str, text: str) -> None:
    place = tmp_path / file
    place.parent.mkdir(parents=True)
    place.write_text(text + "\n")
    assert offences(tmp_path) == []
