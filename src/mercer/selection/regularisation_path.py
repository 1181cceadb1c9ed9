"""Leave-one-out and generalised cross-validation along a path of C, from one reduction of the kernel matrix.

The system of `mercer.solvers.linear.bordered` depends on C through the shift r = 1/C alone, so that one reduction of A
serves every value (Rifkin 2002, section 3.3: one eigendecomposition).  Which reduction is cheapest depends on how many
values are asked for, and on whether the diagonal of the inverse is wanted (leave-one-out) or only its trace (GCV):
`choose_method` holds the cost model.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from mercer import dense
from mercer.errors import InvalidInput
from mercer.selection.leave_one_out import LeaveOneOut, error_rate, linear_system, summarise
from mercer.selection.reductions import Factored, Reduction, Repeated, Spectral, Tridiagonal
from mercer.solvers.linear.bordered import Array, Bordered, bordered
from mercer.solvers.monitor import Interrupted, Monitor, listening

T = TypeVar("T")
Method = Literal["cholesky", "tridiagonal", "spectral", "factored"]
Criterion = Literal["loo", "error", "gcv"]

# Operations a second in BLAS-3, measured on two cores; only the ratios between the methods matter.
PRODUCTS = 7e10
# Householder reduction spends half its operations in matrix-vector products; past this cache, memory feeds them.
CACHE = 3.2e7


@dataclass(frozen=True)
class Path:
    """Criteria along C (v,): each array has one number for each value.

    loo: weighted mean of squared leave-one-out residuals (NaN where only GCV was asked); error: leave-one-out
    misclassification (NaN for targets that are not +-1); gcv; degrees: degrees of freedom; criterion: the one
    minimised; index of the best; best: its leave-one-out (None for GCV alone); method: the reduction used.
    """

    C: Array
    loo: Array
    error: Array
    gcv: Array
    degrees: Array
    criterion: Criterion
    index: int
    best: LeaveOneOut | None
    method: Method

    @property
    def best_C(self) -> float:
        """The value of C that minimises the criterion."""
        return float(self.C[self.index])

    @property
    def values(self) -> Array:
        """The criterion that was minimised (v,)."""
        return {"loo": self.loo, "error": self.error, "gcv": self.gcv}[self.criterion]

    @property
    def at_edge(self) -> bool:
        """Whether the best value is the first or last of several: the optimum may lie outside."""
        return len(self.C) > 1 and bool(self.C[self.index] in (np.min(self.C), np.max(self.C)))


def default_values(scale: float, count: int = 41) -> Array:
    """C (count,) from 1e-4 to 1e6 over `scale`, the mean of the kernel's diagonal: from nothing fitted to all."""
    return np.geomspace(1e-4, 1e6, count) / (scale if scale > 0 else 1.0)


def choose_method(n: int, values: int, *, gcv_only: bool = False) -> Method:
    """The cheapest method for this many values of C at n points."""
    costs = method_seconds(n, values, gcv_only=gcv_only)
    return min(costs, key=lambda method: costs[method])


def method_seconds(n: int, values: int, *, gcv_only: bool = False) -> dict[Method, float]:
    """Estimated seconds of each method; the constants are measured, see benchmarks/least_squares.py."""
    cube, square = float(n) ** 3 / PRODUCTS, float(n) ** 2 / PRODUCTS
    householder = 4 / 3 * cube * (2.0 if 4.0 * n * n < CACHE else 3.7)
    rotation = 0.0 if gcv_only else 2.0 * cube
    return {
        "cholesky": values * 0.8 * cube,
        "tridiagonal": householder + rotation + (0.0 if gcv_only else values * 20 * square),
        "spectral": householder + 4.5 * cube + (0.0 if gcv_only else values * 4 * square),
    }


def regularisation_path(
    K: ArrayLike,
    Y: ArrayLike,
    C: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    border: ArrayLike | None = None,
    constant: float = 0.0,
    criterion: Criterion = "loo",
    method: Method | Literal["auto"] = "auto",
    projected: bool = False,
    overwrite: bool = False,
    monitor: Monitor | None = None,
) -> Path:
    """Every criterion at every C (v,) for kernel matrix K (n, n) and targets Y (n,) or (n, k).

    criterion "loo" chooses the least mean squared leave-one-out residual, "error" the fewest leave-one-out
    misclassifications (ties by the residual), "gcv" generalised cross-validation, for which the leave-one-out itself
    is not computed.  weights, border, constant, projected, overwrite: as in `leave_one_out`.  The monitor's time limit
    and Ctrl-C end the path with the values reached, the others NaN; Ctrl-C before the first one is raised.
    """
    values = _check(C)
    system = bordered(K, Y, weights=weights, border=border, constant=constant, projected=projected, overwrite=overwrite)
    gcv_only = criterion == "gcv"
    chosen: Method = choose_method(len(system.scale), len(values), gcv_only=gcv_only) if method == "auto" else method
    reductions: dict[str, Callable[..., Reduction]] = {
        "cholesky": Repeated, "tridiagonal": partial(Tridiagonal, rotation=not gcv_only), "spectral": Spectral,
    }  # fmt: skip
    if chosen not in reductions:
        raise InvalidInput("method must be 'auto', 'cholesky', 'tridiagonal' or 'spectral' for a kernel matrix.")
    reduction = reductions[chosen](system.matrix, poll=None if monitor is None else monitor.poll)
    return _walk(system, reduction, values, criterion, chosen, listening(monitor))


def linear_path(
    X: ArrayLike,
    Y: ArrayLike,
    C: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    border: ArrayLike | None = None,
    criterion: Criterion = "loo",
    monitor: Monitor | None = None,
) -> Path:
    """The path of the linear machine on X (n, d), d below n, through one d x d eigendecomposition."""
    values = _check(C)
    if np.any(np.isinf(values)):
        raise InvalidInput("C must be finite on the path of a linear kernel.")
    features, system = linear_system(X, Y, weights=weights, border=border)
    return _walk(system, Factored(features), values, criterion, "factored", listening(monitor))


def _check(C: ArrayLike) -> Array:
    values = np.atleast_1d(np.asarray(C, dtype=np.float64))
    if values.ndim != 1 or values.size == 0 or np.any(np.isnan(values)) or np.any(values <= 0):
        raise InvalidInput("C must be a list of positive numbers, at least one.")
    return values


def _walk(
    system: Bordered, reduction: Reduction, C: Array, criterion: Criterion, method: Method, monitor: Monitor
) -> Path:
    m, q = system.border.shape
    if m <= q:
        raise InvalidInput(
            f"leave-one-out needs more points of positive weight than functions outside the penalty: {m} against {q}."
        )
    ridges = [float(r) for r in 1.0 / C]
    loo, error, gcv, degrees = (np.full(len(C), np.nan) for _ in range(4))
    best: LeaveOneOut | None = None
    if criterion == "gcv":
        _generalised(system, reduction, ridges, gcv, degrees, monitor)
        return Path(C, loo, error, gcv, degrees, criterion, int(np.nanargmin(gcv)), best, method)
    signs = bool(np.all(np.abs(system.all_targets) == 1.0))
    columns, index, least = system.columns, 0, (np.inf, np.inf)
    for v, (solved, diagonal) in enumerate(_until_stopped(reduction.resolve(columns, ridges), monitor)):
        point = summarise(system, ridges[v], solved, diagonal)
        loo[v], gcv[v], degrees[v] = point.mean_squared_error, point.gcv, point.degrees
        if signs:
            error[v] = error_rate(point.predictions, point.targets, point.weights)
        rank = (error[v], loo[v]) if criterion == "error" else (loo[v], loo[v])
        if best is None or rank < least:
            best, index, least = point, v, rank
    return Path(C, loo, error, gcv, degrees, criterion, index, best, method)


def _until_stopped(steps: Iterator[T], monitor: Monitor) -> Iterator[T]:
    """The steps up to the one at which the monitor says stop, but the first in any case."""
    begun = False
    try:
        for step in steps:
            yield step
            begun = True
            if not monitor.go_on():
                return
    except Interrupted:
        if not begun:
            raise


def _generalised(
    system: Bordered, reduction: Reduction, ridges: Sequence[float], gcv: Array, degrees: Array, monitor: Monitor
) -> None:
    """GCV from W'M^-1 W, W'M^-2 W and tr M^-1 for W = [B, Z]: no vector of length n for any ridge."""
    m, q = system.border.shape
    total = float(np.sum(system.scale**2))
    steps = _until_stopped(reduction.moments(system.columns, ridges), monitor)
    for v, (first, second, trace) in enumerate(steps):
        if q:
            # a = M^-1 Z - M^-1 B t with t = (B'M^-1 B)^-1 B'M^-1 Z, and tr G = tr M^-1 - tr (B'M^-1 B)^-1 B'M^-2 B.
            t = dense.solve_square(first[:q, :q], first[:q, q:])
            trace -= float(np.trace(dense.solve_square(first[:q, :q], second[:q, :q])))
            cross = second[q:, q:] - t.T @ second[:q, q:] - second[q:, :q] @ t + t.T @ second[:q, :q] @ t
        else:
            cross = second
        gcv[v] = max(float(np.trace(cross)), 0.0) / total / (trace / m) ** 2 if trace > 0 else np.inf
        degrees[v] = m - ridges[v] * trace
