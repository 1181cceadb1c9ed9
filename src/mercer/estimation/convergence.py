"""What a fit says when it ended before its tolerance was met."""

import warnings
from collections.abc import Sequence

from sklearn.exceptions import ConvergenceWarning

from mercer.errors import NotConverged
from mercer.solvers.solution import Solution


class StoppedEarly(NotConverged, ConvergenceWarning):  # type: ignore[misc]
    """The solver ended early; it is both mercer's NotConverged and scikit-learn's ConvergenceWarning."""


def outcome(solutions: Sequence[Solution]) -> str:
    """What stopped the first machine that did not converge, or "converged" when all did."""
    return next((s.stopped for s in solutions if s.stopped != "converged"), "converged")


def warn_if_stopped(solutions: Sequence[Solution], max_iter: int, max_time: float | None) -> str:
    """Warn, saying what ended the training and how far it is from the optimum; returns the outcome."""
    stopped = outcome(solutions)
    if stopped == "converged":
        return stopped
    gap = max(s.relative_gap for s in solutions)
    reason = {
        "iterations": f"Solver terminated early (max_iter={max_iter}).  Consider pre-processing your data with "
        "StandardScaler or MinMaxScaler.",
        "time": f"The time limit was reached (max_time={max_time}).",
        "interrupted": "Training was interrupted, by Ctrl-C or by a callback.",
    }.get(stopped, f"The solver could not go further ({stopped}).")
    warnings.warn(
        f"{reason}  The best solution so far is kept; its relative duality gap is {gap:.2g}.",
        StoppedEarly,
        stacklevel=4,
    )
    return stopped
