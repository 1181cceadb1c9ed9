"""What a fit leaves to be read: its certificate and what stopped it, its plan in words, and both for several machines.

A fit says when it ended early, when there is no certificate, and when numbers overflowed.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mercer.errors import InvalidInput, NoCertificate, NotConverged
from mercer.gram import GramOperator
from mercer.problems.certificate import gap_text, relative_gap
from mercer.resources import Resources
from mercer.solvers.solution import Solution


class StoppedEarly(NotConverged, ConvergenceWarning):  # type: ignore[misc]  # scikit-learn is untyped
    """The solver ended early; it is both mercer's NotConverged and scikit-learn's ConvergenceWarning."""


OVERFLOW = (
    "the objective is not a finite number: C, the weights, the targets or the kernel values are too large for float64; "
    "scale them, for instance weights to mean one and features and targets by StandardScaler"
)
# A tolerance that is met with a relative gap above this says nothing about the machine: too few digits, or too coarse.
UNRESOLVED = 0.5
# What ended a solver that met its tolerance, or has none.
MET = ("converged", "stationary", "seen")
_STOPPED = attrgetter("stopped")


def confirmed(solutions: Sequence[Solution], doubt: str | None) -> list[Solution]:
    """The solutions as a fit may show them.

    Numbers that overflowed are refused: NaN is no certificate.  Where half of the objective may be missing nothing has
    converged, whatever the tolerance: huge weights and C leave float64 no digits.  With a `doubt` that the dual is a
    lower bound (see `mercer.machine.definiteness`) dual value and gap become NaN, with a warning.
    """
    if doubt is None:
        return list(map(_resolved, solutions))
    warnings.warn(
        f"{doubt}.  The machine is fitted without a certificate: the dual is no lower bound (gap_ and dual_objective_ "
        "are nan), and the solution may be a local optimum.",
        NoCertificate,
        stacklevel=5,
    )
    return [_without_certificate(_resolved(solution)) for solution in solutions]


def _resolved(solution: Solution) -> Solution:
    """The solution, as one that has stalled where half of the objective may be missing."""
    primal, dual, gap = solution.primal, solution.dual, solution.gap
    # Until the tolerance is met a bound may still be infinite.
    numbers = math.isfinite(primal) and math.isfinite(dual) and math.isfinite(gap)
    if not numbers and (solution.stopped in MET or math.isnan(primal) or math.isnan(dual) or math.isnan(gap)):
        raise InvalidInput(OVERFLOW)
    if "rho" in solution.multipliers:  # a margin that is a variable may vanish, and the objective with it
        return solution
    unresolved = solution.stopped == "converged" and gap > UNRESOLVED * max(abs(primal), abs(dual))
    return replace(solution, stopped="stalled") if unresolved else solution


def _without_certificate(solution: Solution) -> Solution:
    nan = math.nan
    return replace(
        solution,
        dual=nan,
        gap=nan,
        stopped="stationary" if solution.stopped == "converged" else solution.stopped,
        history=[record._replace(dual=nan, gap=nan) for record in solution.history],
    )


def outcome(endings: Sequence[str]) -> str:
    """What stopped the first machine that did not meet its tolerance, else "converged", or "stationary"."""
    for ending in endings:
        if ending not in MET:
            return ending
    return "stationary" if "stationary" in endings else "converged"


def warn_if_stopped(solutions: Sequence[Solution], max_iter: int, max_time: float | None) -> str:
    """Warn, saying what ended the training and how far it is from the optimum; returns the outcome."""
    stopped = outcome(list(map(_STOPPED, solutions)))
    if stopped in MET:
        return stopped
    gap = relative_gap(*(sum(getattr(s, name) for s in solutions) for name in ("primal", "dual", "gap")))
    reason = {
        "iterations": f"Solver terminated early (max_iter={max_iter}).  Consider pre-processing your data with "
        "StandardScaler or MinMaxScaler.",
        "time": f"The time limit was reached (max_time={max_time}).",
        "interrupted": "Training was interrupted, by Ctrl-C or by a callback.",
        "stalled": "The solver could not go further (stalled): C, the weights or the targets leave float64 too few "
        "digits, or tol is too coarse for their scale; scale them or lower tol.",
        "diverged": "The iteration diverged: its step is too large for this problem.",
    }.get(stopped, f"The solver could not go further ({stopped}).")
    distance = "" if any(math.isnan(s.gap) for s in solutions) else f"; its relative duality gap is {gap_text(gap)}"
    warnings.warn(
        f"{reason}  The best solution so far is kept{distance}.",
        StoppedEarly,
        stacklevel=4,
    )
    return stopped


@dataclass(frozen=True)
class FitPlan:
    """How a machine was trained; print it.

    solver : which one ran, and why.
    machines : number of problems that were solved.
    approximation : why the machine is exact, or which low-rank kernel took the place of the exact one.
    memory : what kernel values might take.
    precision, device : in which, and where, they were computed.
    storage : how they were held, what that takes and why, in lines.
    """

    solver: str
    machines: int
    approximation: str
    memory: str
    precision: str
    device: str
    storage: str

    @classmethod
    def of(
        cls, solver: str, machines: int, approximation: str, resources: Resources, gram: GramOperator | None
    ) -> "FitPlan":
        """The plan of a fit that used these resources and this operator, None where there was none."""
        memory = "a quarter of what is free" if resources.memory is None else str(resources.memory)
        precision, storage = resources.precision, "no kernel matrix: values come from the points as they are needed"
        if gram is not None:
            precision, storage = gram.dtype.name, str(gram.plan())
        return cls(solver, machines, approximation, memory, precision, resources.device, storage)

    def __str__(self) -> str:
        """A few lines for people."""
        lines = {
            "solver": self.solver,
            "machines": self.machines,
            "kernel": self.approximation,
            "memory": self.memory,
            "precision": f"{self.precision} on {self.device}",
        }
        return "\n".join([*(f"{name:<14} {value}" for name, value in lines.items()), self.storage])


class MadeOfMachines:
    """An estimator with the certificates of its parts; without them where a part has none, such as a foreign one."""

    def _parts(self) -> list[Any]:
        """The fitted machines."""
        raise NotImplementedError

    @property
    def objective_(self) -> float:
        """Primal value, summed over the machines."""
        return float(sum(part.objective_ for part in self._parts()))

    @property
    def dual_objective_(self) -> float:
        """Dual value, summed over the machines."""
        return float(sum(part.dual_objective_ for part in self._parts()))

    @property
    def gap_(self) -> float:
        """Difference of the two."""
        return float(sum(part.gap_ for part in self._parts()))

    @property
    def n_iter_(self) -> int | NDArray[np.int32]:
        """Iterations of each machine, a number where there is one machine of one problem."""
        found = [part.n_iter_ for part in self._parts()]
        if len(found) == 1:
            return found[0]  # type: ignore[no-any-return]  # of machines known only when they are fitted
        return np.array([n for one in found for n in np.atleast_1d(one)], dtype=np.int32)

    @property
    def solution_(self) -> Solution | list[Solution]:
        """The Solution, or the list of them for several problems."""
        found = [part.solution_ for part in self._parts()]
        return found[0] if len(found) == 1 else [s for one in found for s in (one if isinstance(one, list) else [one])]

    @property
    def history_(self) -> Any:
        """The history of the solution, or the list of them."""
        found = self.solution_
        return [solution.history for solution in found] if isinstance(found, list) else found.history

    @property
    def solver_(self) -> str:
        """Which solvers ran, and why."""
        return "; ".join(dict.fromkeys(part.solver_ for part in self._parts()))

    @property
    def plan_(self) -> FitPlan:
        """How the machines were trained: that of the first one, for all of them; print it."""
        plans: list[FitPlan] = [part.plan_ for part in self._parts()]
        if not plans:
            raise AttributeError("plan_: no machine had to be trained")
        return replace(plans[0], solver=self.solver_, machines=sum(plan.machines for plan in plans))


def common_kernel(parts: list[Any]) -> Any:
    """The kernel of the parts, or the list of them where they differ, as widths read off the points do."""
    kernels = [getattr(part, "kernel_", None) for part in parts]
    return kernels[0] if kernels and all(kernel == kernels[0] for kernel in kernels) else kernels


def common_outcome(parts: list[Any]) -> str:
    """What stopped the first part that did not meet its tolerance, else "converged", or "stationary"."""
    return outcome([getattr(part, "stopped_", "unknown") for part in parts])
