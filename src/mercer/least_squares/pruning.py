"""Suykens pruning: a least-squares machine on fewer points.

All coefficients of a least-squares machine are non-zero, c_i = C w_i (y_i - f(x_i)).  Pruning drops a small fraction
of the points with the smallest |c_i|, trains again on the rest, and goes on until the error worsens (Suykens et al.
2002; Rifkin 2002, section 3.5.3, who warns that it drops the points closest to their targets and so leans on outliers).

The error is honest for every point without a validation set: a point that is still used counts with its leave-one-out
residual, one that was dropped with its plain residual, which no longer depends on its target.
"""

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.least_squares.machine import GIVEN, Array, LeastSquaresMachine
from mercer.machine.arguments import take, working_form
from mercer.selection.leave_one_out import LeaveOneOut, error_rate, leave_one_out

Machine = TypeVar("Machine", bound=LeastSquaresMachine)


@dataclass(frozen=True)
class PruningStep:
    """A round of pruning: how many points were used, and the error over all points."""

    points: int
    error: float


def prune(
    machine: Machine, *, fraction: float = 0.05, slack: float = 0.02, keep: int = 1, classification: bool | None = None
) -> Machine:
    """A machine like the fitted one, on fewer of its points; `pruning_` has the rounds, `support_` the points kept.

    fraction : share of the points dropped in each round.
    slack : how much worse than its best the error may become, relative to it, before pruning stops.
    keep : fewest points to keep.
    classification : judge by the error rate; by default that of a classifier, else by the mean squared error.
    """
    check_is_fitted(machine)
    if not 0 < fraction < 1:
        raise InvalidInput(f"fraction must lie between 0 and 1; it is {fraction}.")
    if machine.approximation_ is not None:
        raise InvalidInput("a machine on landmarks is small already: take fewer landmarks, or prune the exact machine.")
    task = machine._task
    by_class = hasattr(machine, "classes_") if classification is None else classification
    K = _matrix(machine)
    rounds = _Rounds(machine, K, by_class)
    weights = np.ones(len(task.Y)) if task.weights is None else task.weights.copy()
    fewest = max(keep, task.border.shape[1] + 1)
    best, steps, kept = np.inf, [], weights
    while True:
        found = rounds.fit(weights)
        error = rounds.error(found)
        if error > best * (1.0 + slack):
            break
        best, kept = min(best, error), weights
        used = np.flatnonzero(weights > 0)
        steps.append(PruningStep(len(used), error))
        target = max(fewest, int(len(used) * (1.0 - fraction)))
        if target >= len(used):
            break
        sizes = np.linalg.norm(found.coefficients[used], axis=1)
        weights = weights.copy()
        weights[used[np.argsort(sizes, kind="stable")[: len(used) - target]]] = 0.0
    return _refitted(machine, np.flatnonzero(kept > 0), tuple(steps))


class _Rounds:
    """Trains on a part of the points by giving the others weight zero."""

    def __init__(self, machine: LeastSquaresMachine, K: Array, by_class: bool) -> None:
        self.machine, self.K, self.by_class = machine, K, by_class

    def fit(self, weights: Array) -> LeaveOneOut:
        """Leave-one-out of the machine with these weights."""
        task, kernel = self.machine._task, self.machine.kernel_
        options = {**task.options, "weights": weights, "projected": kernel.conditional_order > 0}
        return leave_one_out(self.K, task.Y, 1.0 / self.machine.C_, **options)

    def error(self, found: LeaveOneOut) -> float:
        """Error over all points, each counted with the weight it had in the original fit."""
        task = self.machine._task
        counted = np.ones(len(task.Y)) if task.weights is None else task.weights
        if self.by_class:
            return error_rate(found.predictions, task.Y, counted)
        return float(counted @ np.sum(found.residuals**2, axis=1) / np.sum(counted))


def _matrix(machine: LeastSquaresMachine) -> Array:
    if machine._kind in GIVEN:
        if machine._matrix is None:
            raise InvalidInput("the kernel matrix did not travel with the machine: prune before saving it.")
        return np.asarray(machine._matrix)
    points = working_form(machine.support_vectors_)
    return np.asarray(Gram(machine.kernel_, points, storage="streamed", memory=machine.memory).dense())


def _refitted(machine: Machine, kept: NDArray[np.intp], steps: tuple[PruningStep, ...]) -> Machine:
    """The machine trained on the kept points with the kernel and C of the original."""
    pruned: Any = clone(machine)
    pruned.C = machine.C_
    for name in ("classes_", "class_weight_", "n_features_in_", "feature_names_in_", "_single"):
        if hasattr(machine, name):
            setattr(pruned, name, getattr(machine, name))
    task = machine._task
    weights = None if task.weights is None else task.weights[kept]
    if machine._kind == "precomputed":
        X: Any = np.ascontiguousarray(np.asarray(machine._matrix)[np.ix_(kept, kept)])
    else:
        X = take(machine._points if machine._kind == "function" else machine.support_vectors_, kept)
        if machine._kind == "features":
            pruned.kernel = machine.kernel_
    pruned._train(machine._kind, X, task.Y[kept], weights, weights)
    # `support_` counts all points, and predictions take columns of the matrix of all of them.
    pruned.support_, pruned.pruning_, pruned.shape_fit_ = kept, steps, machine.shape_fit_
    if machine._kind in GIVEN:
        pruned._points = machine._points
    return pruned  # type: ignore[no-any-return]  # clone is untyped
