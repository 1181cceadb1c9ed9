"""Ways to an optimum: one file each, every one with `solve(problem, ...) -> Solution` and `accepts(problem)`."""

from mercer.solvers.contract import Acceptance, Solver, starting_variables
from mercer.solvers.monitor import SILENT, Monitor, listening
from mercer.solvers.solution import Record, Solution

__all__ = ["SILENT", "Acceptance", "Monitor", "Record", "Solution", "Solver", "listening", "starting_variables"]
