"""LAPACK is called in `mercer.dense` and nowhere else.

Norms are arithmetic, `LinAlgError` is a class, and `scipy.sparse.linalg` is for matrices that are not dense.
"""

import ast
from pathlib import Path

import pytest

import mercer

PACKAGE = Path(mercer.__file__).parent
ROOM = "dense"
ALLOWED = {"numpy.linalg.norm", "numpy.linalg.LinAlgError"}
ALGEBRA = ("numpy.linalg", "scipy.linalg")


class Names(ast.NodeVisitor):
    """Full names, with their lines, of whatever a file imports or reaches through what it imports."""

    def __init__(self) -> None:
        self.aliases: dict[str, str] = {}
        self.found: list[tuple[int, str]] = []

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            self.aliases[alias.asname or top] = alias.name if alias.asname else top
            self.found.append((node.lineno, alias.name))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            name = f"{node.module}.{alias.name}"
            self.aliases[alias.asname or alias.name] = name
            self.found.append((node.lineno, name))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        parts, base = [node.attr], node.value
        while isinstance(base, ast.Attribute):
            parts.append(base.attr)
            base = base.value
        if isinstance(base, ast.Name) and base.id in self.aliases:
            self.found.append((node.lineno, ".".join([self.aliases[base.id], *reversed(parts)])))
        else:
            self.generic_visit(node)


def offences(package: Path) -> list[str]:
    """Every use of dense linear algebra outside its room."""
    complaints = []
    for path in sorted(package.rglob("*.py")):
        inside, names = path.relative_to(package), Names()
        if inside.parts[0] == ROOM:
            continue
        names.visit(ast.parse(path.read_text(encoding="utf-8")))
        for line, name in names.found:
            if name not in ALLOWED and any(name == module or name.startswith(module + ".") for module in ALGEBRA):
                complaints.append(f"{inside}:{line}: {name}")
    return complaints


def test_lapack_is_called_in_one_room() -> None:
    assert offences(PACKAGE) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import scipy.linalg", "scipy.linalg"),
        ("from scipy import linalg", "scipy.linalg"),
        ("from scipy.linalg import cho_solve", "scipy.linalg.cho_solve"),
        ("from scipy.linalg.lapack import dpotrf", "scipy.linalg.lapack.dpotrf"),
        ("import numpy as np\n\ndef f(A):\n    return np.linalg.eigh(A)", "numpy.linalg.eigh"),
        ("import numpy\nx = numpy.linalg.solve", "numpy.linalg.solve"),
        ("from numpy import linalg as algebra\nx = algebra.qr", "numpy.linalg.qr"),
        ("import numpy as np\nalgebra = np.linalg", "numpy.linalg"),
        ("from numpy.linalg import svd", "numpy.linalg.svd"),
    ],
)
def test_a_call_elsewhere_is_found(tmp_path: Path, text: str, name: str) -> None:
    (tmp_path / "solvers").mkdir()
    (tmp_path / "solvers" / "a.py").write_text(text + "\n")
    assert any(complaint.endswith(f": {name}") for complaint in offences(tmp_path))


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("solvers/a.py", "import numpy as np\nx = np.linalg.norm(np.ones(3))\nfailed = np.linalg.LinAlgError"),
        ("solvers/a.py", "from scipy.sparse.linalg import eigsh, splu\nfrom mercer import dense\nx = dense.solve"),
        ("dense/a.py", "from scipy.linalg import cython_lapack\nimport numpy as np\nx = np.linalg.qr"),
    ],
)
def test_norms_sparse_matrices_and_the_room_itself_are_left_alone(tmp_path: Path, file: str, text: str) -> None:
    place = tmp_path / file
    place.parent.mkdir(parents=True)
    place.write_text(text + "\n")
    assert offences(tmp_path) == []
