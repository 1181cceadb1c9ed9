"""Ways to an optimum: one file each, every one with `solve(problem, ...) -> Solution` and `accepts(problem)`."""

from mercer.solvers.catalogue import available, by_name, fitting
from mercer.solvers.contract import Acceptance, Solver, starting_variables
from mercer.solvers.monitor import SILENT, Monitor, listening
from mercer.solvers.paths import SolvedPath, path
from mercer.solvers.solution import Record, Solution

__all__ = [
    "SILENT",
    "Acceptance",
    "Monitor",
    "Record",
    "Solution",
    "SolvedPath",
    "Solver",
    "available",
    "by_name",
    "fitting",
    "listening",
    "path",
    "starting_variables",
]
