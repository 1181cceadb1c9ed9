"""`tune`: from data to a tuned machine in one call.

    found = mercer.tune(X, y)
    found.best_machine.predict(X_new), found.best_params, found.best_score, found.result.surface()

Support vector machines are tuned by cross-validation on shared kernel values, least squares by exact leave-one-out.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target

from mercer.errors import InvalidInput
from mercer.kernels import Gaussian, Kernel
from mercer.least_squares import LSSVC, LSSVR
from mercer.planning import Choice, machine_for
from mercer.planning.machines import Target
from mercer.selection.result import SearchResult
from mercer.solvers.monitor import Monitor
from mercer.tuned.estimators import TunedClassifier, TunedLogistic, TunedMachine, TunedSVC, TunedSVR
from mercer.tuned.ordinal import TunedOrdinalSVC, TunedProportionalOdds, TunedRankSVM

SEARCHES: dict[str, type[TunedMachine]] = {
    "svc": TunedSVC, "svr": TunedSVR, "logistic": TunedLogistic, "ordinal": TunedOrdinalSVC,
    "odds": TunedProportionalOdds, "rank": TunedRankSVM,
}  # fmt: skip
MACHINES = ("svc", "svr", "lssvc", "lssvr", "logistic", "ordinal", "odds", "rank", "auto")


@dataclass(frozen=True, eq=False)
class Tuned:
    """A tuned machine, trained on all points, and how it was found."""

    machine: str
    reason: str
    best_machine: Any
    best_params: dict[str, float]
    best_score: float
    result: SearchResult
    seconds: float


def choose_machine(machine: str, X: Any, y: Any, **wishes: bool) -> Choice:
    """The machine behind "auto", with the reason."""
    if machine not in MACHINES:
        raise InvalidInput(f"machine={machine!r} is not known; give one of {', '.join(MACHINES)}")
    if machine != "auto":
        return Choice.asked("machine", machine)
    target: Target = "regression" if type_of_target(y).startswith("continuous") else "classification"
    outputs = 1 if np.ndim(y) == 1 else int(np.shape(y)[1])
    return machine_for(target, int(np.shape(X)[0]), outputs=outputs, **wishes)


def tune(
    X: Any,
    y: Any,
    machine: str = "auto",
    *,
    kernel: Any = "rbf",
    folds: Any = 5,
    grid: Any = None,
    mode: str = "grid",
    scoring: Any = None,
    tol: float = 1e-3,
    seed: int = 0,
    memory: int | str | None = None,
    max_time: float | None = None,
    monitor: Monitor | None = None,
    checkpoint: Any = None,
    early_stop: bool = True,
    class_weight: Any = None,
    probability: bool = False,
    n_jobs: int | None = None,
    sample_weight: Any = None,
    groups: Any = None,
) -> Tuned:
    """Tune a machine on points X (n, d) and targets y (n,) and train it on all of them.

    `machine` is "svc", "svr", "lssvc", "lssvr", "logistic", "ordinal" (`OrdinalSVC`), "odds" (`ProportionalOdds`),
    "rank" (`RankSVM`), or "auto", which takes no classes for ranks: these have to be asked for.  `groups` (n,) are the
    queries of "rank".  `grid` is None (from the data), a pair (number of C values, number of widths), or a dict with
    any of "C", "sigma" (or "gamma") and "epsilon", each a list of values.  `monitor` watches the search and may stop
    it; it takes the place of `max_time`.  `seed` is the random_state of `TunedSVC`, and all other parameters are those
    of that class and of its `fit`.  Least squares take kernel, grid["C"], memory, max_time, class_weight, n_jobs and
    sample_weight.
    """
    began = time.perf_counter()
    crossed = mode != "grid" or scoring is not None or checkpoint is not None
    name, reason = choose_machine(machine, X, y, probability=probability, cross_validated=crossed)
    if groups is not None and name != "rank":
        raise InvalidInput(f'groups: {name} does not compare points inside groups; give machine="rank"')
    values = _grid_options(grid)
    if name in ("lssvc", "lssvr"):
        shared = {"memory": memory, "max_time": max_time, "n_jobs": n_jobs}
        weighted = {"class_weight": class_weight} if name == "lssvc" else {}
        fitted = _least_squares(name, kernel, values, **shared, **weighted).fit(X, y, sample_weight=sample_weight)
        result = _leave_one_out_result(fitted, time.perf_counter() - began)
        params = {"C": float(fitted.C_)} | ({"sigma": result.best["sigma"]} if "sigma" in result.best else {})
        return Tuned(name, reason, fitted, params, result.best_score, result, time.perf_counter() - began)
    options = values | {
        "kernel": kernel, "folds": folds, "mode": mode, "scoring": scoring, "tol": tol, "random_state": seed,
        "memory": memory, "max_time": max_time, "checkpoint": checkpoint, "early_stop": early_stop, "n_jobs": n_jobs,
    }  # fmt: skip
    kind: Any = SEARCHES[name]
    if name != "svr":
        options.pop("epsilon", None)
    if issubclass(kind, TunedClassifier):
        options["class_weight"] = class_weight
    if name == "svc":
        options["probability"] = probability
    tuned = kind(**options)
    tuned._validate_params()
    tuned._fit(X, y, sample_weight, monitor, **({} if groups is None else {"groups": groups}))
    seconds = time.perf_counter() - began
    return Tuned(name, reason, tuned.best_estimator_, tuned.best_params_, tuned.best_score_, tuned.search_, seconds)


def _grid_options(grid: Any) -> dict[str, Any]:
    """Parameters of the estimators from what the user calls a grid."""
    if grid is None:
        return {}
    if isinstance(grid, dict):
        unknown = set(grid) - {"C", "sigma", "gamma", "epsilon"}
        if unknown or ("sigma" in grid and "gamma" in grid):
            raise InvalidInput(f"grid may hold C, epsilon, and sigma or gamma; got {', '.join(sorted(grid))}")
        values = {name: np.asarray(value, dtype=np.float64) for name, value in grid.items()}
        if "gamma" in values:
            values["sigma"] = np.sqrt(0.5 / values.pop("gamma"))
        return values
    try:
        n_C, n_sigma = grid
        return {"n_C": int(n_C), "n_sigma": int(n_sigma)}
    except (TypeError, ValueError):
        raise InvalidInput(f"grid={grid!r} is neither a pair of numbers nor a dict of values") from None


def _least_squares(name: str, kernel: Any, values: dict[str, Any], **options: Any) -> Any:
    """LSSVC or LSSVR that chooses C, and the width of a Gaussian, by exact leave-one-out."""
    if isinstance(kernel, str) and kernel == "rbf":
        kernel = Gaussian(sigma="loo")
    elif isinstance(kernel, Kernel) and "sigma" in kernel.placeholders:
        kernel = kernel.with_parameters(sigma="loo")
    tuned = isinstance(kernel, Kernel) and bool(kernel.placeholders)
    C = "loo" if tuned or "C" not in values else values["C"]
    return (LSSVC if name == "lssvc" else LSSVR)(C, kernel=kernel, **options)


def _leave_one_out_result(fitted: Any, seconds: float) -> SearchResult:
    """The surface of a least-squares machine as a table; scores are minus the mean squared leave-one-out error."""
    surface = fitted.loo_surface_
    largest = max(point.points for point in surface)
    status = tuple("done" if point.points == largest and np.isfinite(point.value) else "dropped" for point in surface)
    return SearchResult(
        tuple(dict(sorted(point.parameters.items())) for point in surface),
        np.array([[-point.value] for point in surface]),
        np.array([float(point.points) for point in surface]),
        np.full(len(surface), seconds / len(surface)),
        np.array([point.points for point in surface], dtype=np.intp),
        status,
        "converged",
        seconds,
        facts={"mode": "leave-one-out", "points": largest},
    )
