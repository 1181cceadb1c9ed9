"""Every automatic choice, in one place and with its reason: which machine, solver, approximation and precision.

`fit`, `tune`, `solver="auto"`, `approximation="auto"`, `mercer advise` and the report all ask here, and what is named
is there: a solver's name is that of its module in `mercer.solvers`.  How kernel values are held is chosen by
`mercer.gram`, which alone knows what each kind of storage costs.  `advisor` weighs the methods for a problem by their
time and memory, and `literature` has the decision tables as printed.
"""

from mercer.planning.advisor import Advice, Situation, advise
from mercer.planning.approximations import approximation_for
from mercer.planning.choice import Choice
from mercer.planning.machines import machine_for
from mercer.planning.precision import precision_for
from mercer.planning.solvers import (
    least_squares_solver,
    patience,
    quadratic_solver,
    seconds_on_factor,
    solver_for_size,
    thin_factor_pays,
)

__all__ = [
    "Advice",
    "Choice",
    "Situation",
    "advise",
    "approximation_for",
    "least_squares_solver",
    "machine_for",
    "patience",
    "precision_for",
    "quadratic_solver",
    "seconds_on_factor",
    "solver_for_size",
    "thin_factor_pays",
]
