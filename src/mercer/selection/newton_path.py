"""Machines of a row of rising C outside a fold, solved by Newton's method, each from the one before.

Coefficients of smooth losses are C times minus a slope, so that those of the C before, multiplied by C'/C, are the
best guess at hand.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.gram import KernelColumns
from mercer.kernels import Kernel
from mercer.selection.cross_validation import Settings
from mercer.solvers.monitor import Asking
from mercer.solvers.solution import Solution

Array = NDArray[np.float64]


def along(problem: Callable[[float], Any], solve: Callable[..., Solution], settings: Settings) -> Iterator[Solution]:
    """Solutions of problem(C) for every C in turn, until there is no more time."""
    start, before = None, 1.0
    for C in map(float, settings.costs):
        if not settings.go_on():
            return
        first = None if start is None else start * (C / before)
        found = solve(problem(C), tol=settings.tol, start=first, monitor=Asking(settings.go_on))
        if not settings.go_on():
            return
        start, before = found.coefficients, C
        yield found


def values_at(held: Any, kernel: Kernel, points: Any, memory: int) -> Callable[[Array], Array]:
    """From coefficients (m, k) of the points: the values (h, k) at the held-out ones, computed again each time."""
    columns = KernelColumns(kernel, points, np.float64, memory=memory)
    return lambda c: columns.expand(held, [slice(0, len(c))], [c])[0]
