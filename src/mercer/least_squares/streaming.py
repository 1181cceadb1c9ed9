"""Least squares on landmarks where the features of all points do not fit, or cost more to hold than to compute.

The rectangle solver (`mercer.solvers.streamed.rectangle`) reads the points in blocks, so that they may be a
memory-mapped array larger than memory, and holds m^2 numbers besides.
"""

from typing import Any

import numpy as np

from mercer.errors import BudgetTooSmall
from mercer.least_squares.choosing import LeastSquaresTask
from mercer.lowrank.feature_map import KernelMap
from mercer.machine.approximation import Reduction
from mercer.resources import show
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution
from mercer.solvers.streamed import rectangle

LARGE = 100_000_000  # features (n p) from which on they are computed again rather than held
COPIES = 2.5  # of the features that solving takes
LEAST_TOL = 1e-4  # its gap bounds the error of every direction alike; the objective is a hundred times closer


def reason_to_stream(reduction: Reduction, n: int, C: Any, task: LeastSquaresTask, basis: Any) -> str | None:
    """Why the points should be read in blocks, or None where their features are held; an error where neither works."""
    found = reduction.feature_map
    size = 8 * n * found.dimension
    allowed = task.resources.budget
    fits = COPIES * size <= allowed
    possible = isinstance(found, KernelMap) and found.method in ("triangular", "spectral") and basis is None
    possible = possible and found.dimension == found.width and np.ndim(C) == 0 and not isinstance(C, str)
    if possible and np.isfinite(C) and (not fits or n * found.dimension > LARGE):
        return (
            f"the {show(size)} of {found.dimension} features for {n} points are computed again rather than held"
            if fits
            else f"the {show(size)} of {found.dimension} features for {n} points do not fit in {show(allowed)}"
        )
    if fits:
        return None
    raise BudgetTooSmall(
        f"{found.dimension} features of {n} points take {show(size)}, memory allows {show(allowed)}: take fewer "
        "landmarks or raise memory; with Nystrom, C as a number and no basis the points are read in blocks instead"
    )


def solve(
    reduction: Reduction, points: Any, task: LeastSquaresTask, C: float, bias: Any, tol: float, monitor: Monitor
) -> Solution:
    """Coefficients (m, k) on the landmarks of the map, and bias (k,)."""
    found = reduction.feature_map
    assert isinstance(found, KernelMap)
    return rectangle.solve(
        points,
        found.kernel,
        found.points,
        y=task.Y,
        C=C,
        weights=task.weights,
        bias=bias,
        tol=max(tol, LEAST_TOL),
        monitor=monitor,
        memory=task.resources.memory,
    )
