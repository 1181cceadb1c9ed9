"""How training approached the optimum: primal above, dual below, the optimum between them.

The history of a fit has a line every fifth of a second and one for its end.  Where that is all there is, its course is
traced by training again to looser tolerances than the one that was asked for.  Deterministic solvers walk the
same way each time, so that the traced points lie on the path of the fit, whose end is the last point.
"""

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput, MercerWarning
from mercer.problems.certificate import relative_gap
from mercer.report import ink
from mercer.report.machine import inside, restated, solutions_of

Array = NDArray[np.float64]

LOOSEST = 1.0
STEPS = 8
SLOWEST = 2.0  # seconds of training beyond which nothing is trained again
LONGEST = 4.0  # seconds for all that is trained again
FLOOR = 1e-16
WIDE = 30.0  # ratio of iterations beyond which their axis is logarithmic


class ConvergenceDisplay:
    """Primal and dual values (t,) at iterations (t,).

    Attributes
    ----------
    relative_gap_ : (t,) that of `mercer.problems.certificate`, at least 1e-16 so that it can be drawn.
    ax_, figure_ : where it is drawn.

    """

    def __init__(
        self, iterations: ArrayLike, primal: ArrayLike, dual: ArrayLike, *, tolerance: float | None = None
    ) -> None:
        self.iterations, self.primal, self.dual = (
            np.atleast_1d(np.asarray(v, dtype=np.float64)) for v in (iterations, primal, dual)
        )
        if not len(self.iterations) == len(self.primal) == len(self.dual) > 0:
            raise InvalidInput("iterations, primal and dual must have the same number of entries, at least one")
        self.tolerance = tolerance
        gap = np.array([relative_gap(P, D) for P, D in zip(self.primal.tolist(), self.dual.tolist())])
        self.relative_gap_ = np.where(np.isfinite(gap), np.maximum(gap, FLOOR), np.nan)

    @classmethod
    def from_estimator(cls, machine: Any, X: Any = None, y: Any = None, *, ax: Any = None) -> "ConvergenceDisplay":
        """The history of a fit, or its trace at X (n, d) and y (n,) where the history is too short; drawn."""
        found = cls.of(machine, X, y)
        if found is None:
            raise InvalidInput("machine has no history; give X and y of its training to have it traced")
        return found.plot(ax=ax)

    @classmethod
    def of(cls, machine: Any, X: Any = None, y: Any = None) -> "ConvergenceDisplay | None":
        """The same, not yet drawn; None where there is nothing to show (a direct solver has no course)."""
        solutions = solutions_of(machine)
        if not solutions:
            return None
        if len(solutions) == 1 and _has_course(solutions[0].history):
            return cls._from(solutions[0].history)
        if X is None or sum(s.seconds for s in solutions) > SLOWEST:
            slowest = max(solutions, key=lambda s: len(s.history))
            return cls._from(slowest.history) if _has_course(slowest.history) else None
        return cls._traced(machine, X, y)

    @classmethod
    def _from(cls, history: Sequence[Any]) -> "ConvergenceDisplay":
        return cls([r.iteration for r in history], [r.primal for r in history], [r.dual for r in history])

    @classmethod
    def _traced(cls, machine: Any, X: Any, y: Any) -> "ConvergenceDisplay | None":
        found, points = inside(machine, X)
        again = restated(found)
        tolerance = getattr(found, "tol", None)
        if tolerance is None or tolerance >= LOOSEST or not np.sum(found.n_iter_) > 1:  # a direct solver has no course
            return None
        rows: list[Any] = []
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MercerWarning)
            for tol in np.geomspace(LOOSEST, tolerance, STEPS)[:-1]:
                if time.perf_counter() - started > LONGEST:
                    break
                again.set_params(tol=float(tol)).fit(points, y)
                rows.append((int(np.sum(again.n_iter_)), again.objective_, again.dual_objective_))
        rows.append((int(np.sum(found.n_iter_)), found.objective_, found.dual_objective_))
        rows = [row for row, before in zip(rows, [None, *rows]) if row != before]
        return cls(*(np.array(column) for column in zip(*rows)))

    def plot(self, ax: Any = None) -> "ConvergenceDisplay":
        """Draw the relative gap, on a logarithmic axis, over the iterations."""
        self.ax_ = ax = ink.axes(ax)
        self.figure_ = ax.figure
        ax.plot(
            np.maximum(self.iterations, 1.0),
            self.relative_gap_,
            color=ink.GREYS[2],
            marker="o",
            markersize=3.5,
            label="relative duality gap",
        )
        if self.iterations.max() > WIDE * max(1.0, self.iterations.min()):
            ink.logarithmic(ax, "x")
        else:
            ink.whole(ax, "x")
        ink.logarithmic(ax, "y")
        ax.set(xlabel="iterations", ylabel="relative duality gap")
        return self


def _has_course(history: Sequence[Any]) -> bool:
    """Whether there are two points in time to join by a line."""
    return len({record.iteration for record in history}) > 1


def plot_convergence(machine: Any, X: Any = None, y: Any = None, ax: Any = None) -> Any:
    """Draw how the duality gap of a fit fell, and return the axes."""
    return ConvergenceDisplay.from_estimator(machine, X, y, ax=ax).ax_
