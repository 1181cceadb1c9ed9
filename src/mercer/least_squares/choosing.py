"""C and kernel parameters by leave-one-out, for a machine that was asked to choose them.

    C = "loo" or "gcv", or a list of values      the path of C, from one reduction of the kernel matrix
    a kernel with sigma = "loo"                  descent on leave-one-out, over C as well unless it is a number

Past `LARGEST` points, or where three kernel matrices do not fit in the memory budget, a sample of the points decides,
with a word of Advice.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.errors import Advice, InvalidInput
from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.machine.arguments import is_linear, take
from mercer.machine.repeated_rows import DistinctRows
from mercer.resources import Resources, budget
from mercer.selection.descent import SurfacePoint, search
from mercer.selection.families import family_of
from mercer.selection.leave_one_out import LeaveOneOut
from mercer.selection.regularisation_path import Path, default_values, linear_path, regularisation_path
from mercer.solvers.monitor import Monitor

Array = NDArray[np.float64]

LARGEST = 6000  # points that decide together; a path takes about 20 s there on two cores
VALUES = 101


@dataclass(frozen=True)
class Chosen:
    """The kernel and C, the leave-one-out behind them where it covers all points, and what was evaluated."""

    kernel: Kernel
    C: float
    leave_one_out: LeaveOneOut | None
    surface: tuple[SurfacePoint, ...]
    path: Path | None


@dataclass(frozen=True)
class LeastSquaresTask:
    """What a machine wants chosen: targets Y (n, k), weights (n,) or None, border (n, q), constant of the bias."""

    Y: Array
    weights: Array | None
    border: Array
    constant: float
    resources: Resources

    def part(self, index: NDArray[np.intp]) -> "LeastSquaresTask":
        """The same for some of the points."""
        weights = None if self.weights is None else self.weights[index]
        return LeastSquaresTask(self.Y[index], weights, self.border[index], self.constant, self.resources)

    def merged(self, rows: DistinctRows) -> "LeastSquaresTask":
        """The same for the distinct points."""
        return replace(self.part(rows.first), weights=rows.weights)

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of the functions of `mercer.selection`."""
        return {"weights": self.weights, "border": self.border, "constant": self.constant}


def choose(
    kernel: Kernel, C: Any, X: Any, matrix: Any, task: LeastSquaresTask, monitor: Monitor | None = None
) -> Chosen:
    """Kernel and C for points X (n, d), or for a given matrix (n, n)."""
    if kernel.placeholders:
        return by_descent(kernel, C, X, task, monitor)
    if not isinstance(C, str) and np.ndim(C) == 0:
        return Chosen(kernel, float(C), None, (), None)
    return _by_path(kernel, C, X, matrix, task, monitor)


def linear_features(kernel: Kernel, X: Any, constant: float) -> Array | None:
    """F (n, d) with K + constant = F F', dense, where the kernel is linear and d + 1 < n; else None."""
    if not is_linear(kernel) or X.shape[1] + 1 >= X.shape[0]:
        return None
    # Dense n x d is still less than the n x n matrix it stands for.
    features = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    return np.hstack([features, np.full((len(features), 1), np.sqrt(constant))]) if constant else features


def by_descent(kernel: Kernel, C: Any, X: Any, task: LeastSquaresTask, monitor: Monitor | None) -> Chosen:
    """Widths, and C unless it is a number."""
    if np.ndim(C) > 0:
        raise InvalidInput("C must be a number, 'loo' or 'gcv' where the kernel's width is chosen by leave-one-out.")
    fixed = None if isinstance(C, str) else float(C)
    largest = _limit(len(task.Y), task.resources.memory, matrices=6)
    _advise(len(task.Y), largest)
    sizes = {"largest": largest, "sample": min(800, largest)}
    criterion: Any = "gcv" if C == "gcv" else "loo"
    found = search(family_of(kernel, X), task.Y, C=fixed, criterion=criterion, monitor=monitor, **sizes, **task.options)
    return Chosen(found.kernel, found.C, found.leave_one_out, found.surface, None)


def _by_path(kernel: Kernel, C: Any, X: Any, matrix: Any, task: LeastSquaresTask, monitor: Monitor | None) -> Chosen:
    """C alone."""
    n = len(task.Y)
    criterion: Any = "gcv" if isinstance(C, str) and C == "gcv" else "loo"
    features = None if matrix is not None else linear_features(kernel, X, task.constant)
    if features is not None:
        values = _values(C, float(np.mean(np.einsum("ij,ij->i", features, features))) - task.constant)
        given: dict[str, Any] = {"weights": task.weights, "border": task.border, "monitor": monitor}
        path = linear_path(features, task.Y, values, criterion=criterion, **given)
        return _from_path(kernel, path, n)
    largest = _limit(n, task.resources.memory, matrices=4)
    if n > largest:
        _advise(n, largest)
        index = np.sort(np.random.default_rng(0).choice(n, largest, replace=False))
        matrix = None if matrix is None else matrix[np.ix_(index, index)]
        X, task = (X if X is None else take(X, index)), task.part(index)
    own = matrix is None
    K = Gram(kernel, X, storage="streamed", memory=task.resources.memory).dense() if own else matrix
    values = _values(C, float(np.mean(np.diagonal(K))))
    how: dict[str, Any] = {"projected": kernel.conditional_order > 0, "overwrite": own, "monitor": monitor}
    path = regularisation_path(K, task.Y, values, criterion=criterion, **how, **task.options)
    return _from_path(kernel, path, n)


def _from_path(kernel: Kernel, path: Path, n: int) -> Chosen:
    used = n if path.best is None else len(path.best.targets)
    surface = tuple(SurfacePoint({"C": float(C)}, float(v), used, "full") for C, v in zip(path.C, path.values))
    return Chosen(kernel, path.best_C, path.best if used == n else None, surface, path)


def _values(C: Any, scale: float) -> Array:
    if isinstance(C, str):
        return default_values(abs(scale), VALUES)
    return np.asarray(C, dtype=np.float64)


def _limit(n: int, memory: int | str | None, matrices: int) -> int:
    """Points whose kernel matrices fit in the budget (three quarters of free memory when none is given)."""
    allowed = 3 * budget(None) if memory is None else budget(memory)
    return int(max(1, min(LARGEST, n, np.sqrt(allowed / (8 * matrices)))))


def _advise(n: int, largest: int) -> None:
    if n > largest:
        warnings.warn(
            f"parameters are chosen by leave-one-out on {largest} of {n} points, then the machine is trained on all; "
            "give C and sigma as numbers to leave that out.",
            Advice,
            stacklevel=6,
        )
