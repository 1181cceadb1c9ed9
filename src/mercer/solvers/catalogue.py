"""The solvers by name, of quadratic programs and of one other dual: what each accepts, and where it comes from.

A solver is a module with NAME, ACCEPTS (what it takes, in words), SECTION (of its source), `accepts(problem)` and
`solve(problem, *, tol, gap_tol, start, monitor, max_iter) -> Solution`; a line here is all that it needs to be known to
the machines, the documentation and the tests.  Modules are imported when they are first asked for.
"""

from importlib import import_module
from typing import Any, NamedTuple

from mercer.errors import InvalidInput
from mercer.solvers.contract import Acceptance

MODULES = {
    "decomposition": "quadratic.decomposition",
    "interior_point": "quadratic.interior_point",
    "linear_dual": "quadratic.linear_dual",
    "chunking": "classical.chunking",
    "osuna": "classical.osuna",
    "pcg_chunking": "classical.pcg_chunking",
    "svmlight": "classical.svmlight",
    "svmtorch": "classical.svmtorch",
    "working_set": "classical.working_set",
    "smo": "classical.smo",
    "keerthi": "classical.keerthi",
    "svmfu": "classical.svmfu",
    "gradient": "descent.gradient",
    "lagrangian": "descent.lagrangian",
    "newton": "descent.newton",
    "irwls": "descent.irwls",
    "sor": "descent.sor",
    "adatron": "descent.adatron",
    "tuples": "classical.tuples",
    "low_rank_interior_point": "quadratic.growing_rank",
    "nearest_point": "geometric.nearest_point",
    "maximal_margin_perceptron": "geometric.maximal_margin_perceptron",
    "logistic_pairs": "multiclass.logistic_pairs",
}
NAMES = tuple(MODULES)


class Available(NamedTuple):
    """A solver as a user sees it; print it."""

    name: str
    accepts: str
    section: str

    def __str__(self) -> str:
        return f"{self.name:<20} {self.accepts}\n{'':<20} {self.section}"


def by_name(name: str) -> Any:
    """The module of a solver."""
    if name not in MODULES:
        raise InvalidInput(f"solver {name!r} is not known; there are {', '.join(NAMES)}")
    return import_module(f"mercer.solvers.{MODULES[name]}")


def available() -> list[Available]:
    """All solvers: name, what it accepts, and the section of its source."""
    return [Available(name, by_name(name).ACCEPTS, by_name(name).SECTION) for name in NAMES]


def fitting(problem: Any) -> list[str]:
    """Names of the solvers that accept the problem."""
    return [name for name in NAMES if by_name(name).accepts(problem)]


def require(name: str, problem: Any) -> Any:
    """The module of a solver that accepts the problem, or an error with the reason and the name of one that does."""
    module = by_name(name)
    answer: Acceptance = module.accepts(problem)
    if answer:
        return module
    others = fitting(problem)
    remedy = f"use solver={others[0]!r}" if others else "no other solver of mercer.solvers.available() takes it"
    raise InvalidInput(f"solver={name!r} cannot take this problem: {answer.reason}; {remedy}")
