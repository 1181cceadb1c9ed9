"""How good a machine is on points it has not seen, with an interval of confidence.

The points are those of a test set; without one, leave-one-out where the machine has it exactly, and cross-validation
with the chosen parameters otherwise.  (The last two know nothing of how the parameters were chosen on the same points,
and are a little hopeful where many were tried.)

Accuracy, s right of n: Wilson's interval, the set of all p with |s/n - p| <= z sqrt(p (1 - p) / n),

    (s + z^2/2 +- z sqrt(s (n - s)/n + z^2/4)) / (n + z^2) ,

which stays inside [0, 1] and keeps its coverage for rare errors (Wilson 1927).  R2 and the mean squared error: the
percentile bootstrap over the points (Efron 1979).
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.metrics import precision_recall_fscore_support
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.utils.metaestimators import _safe_split

from mercer.report.machine import inner, outputs, restated, task_of, utility_of
from mercer.selection.folds import assign

Array = NDArray[np.float64]

FOLDS = 5
RESAMPLES = 2000


@dataclass(frozen=True)
class Interval:
    """A number with the ends of its interval."""

    value: float
    low: float
    high: float


def wilson(right: int, n: int, level: float = 0.95) -> Interval:
    """The share right/n with Wilson's interval."""
    if n < 1 or not 0 <= right <= n:
        raise ValueError(f"right={right} of n={n}: give counts with 0 <= right <= n and n > 0")
    z = float(norm.ppf(0.5 + level / 2.0))
    middle, spread = right + z * z / 2.0, z * np.sqrt(right * (n - right) / n + z * z / 4.0)
    low, high = (middle - spread) / (n + z * z), (middle + spread) / (n + z * z)
    return Interval(right / n, max(0.0, float(low)), min(1.0, float(high)))


def r2(y: Array, f: Array) -> float:
    """1 - sum (y - f)^2 / sum (y - mean y)^2; nan for constant targets."""
    total = float(np.sum((y - y.mean()) ** 2))
    return 1.0 - float(np.sum((y - f) ** 2)) / total if total > 0.0 else float("nan")


def bootstrap(y: Array, f: Array, *, level: float = 0.95, random_state: int = 0) -> dict[str, Interval]:
    """R2, mean squared and mean absolute error of predictions f (n,) of y (n,), with percentile intervals."""
    y, f = np.asarray(y, dtype=np.float64), np.asarray(f, dtype=np.float64)
    error, random = y - f, np.random.default_rng(random_state)
    draws: dict[str, list[float]] = {"R2": [], "mean squared error": [], "mean absolute error": []}
    for _ in range(RESAMPLES if len(y) <= 20_000 else RESAMPLES // 10):
        index = random.integers(0, len(y), len(y))
        draws["R2"].append(r2(y[index], f[index]))
        draws["mean squared error"].append(float(np.mean(error[index] ** 2)))
        draws["mean absolute error"].append(float(np.mean(np.abs(error[index]))))
    values = {
        "R2": r2(y, f),
        "mean squared error": float(np.mean(error**2)),
        "mean absolute error": float(np.mean(np.abs(error))),
    }
    ends = [0.5 - level / 2.0, 0.5 + level / 2.0]
    found = {name: np.nanquantile(drawn, ends) for name, drawn in draws.items() if np.isfinite(drawn).any()}
    return {name: Interval(values[name], *(float(end) for end in found[name])) for name in found}


@dataclass(frozen=True)
class OfClass:
    """One class: its points, the share of them found, and the share of right answers where it was predicted.

    recall is nan where there are no points of it, precision where it was never predicted.
    """

    label: Any
    points: int
    precision: float
    recall: float
    f1: float


def per_class(y: Any, predicted: Any, classes: Any) -> list[OfClass]:
    """Precision, recall and their harmonic mean f1 of every class, from labels y (n,) and predicted ones (n,)."""
    labels = np.asarray(classes)
    precision, recall, f1, points = precision_recall_fscore_support(
        y, predicted, labels=labels, average=None, zero_division=np.nan
    )
    return [OfClass(*row) for row in zip(labels.tolist(), points.tolist(), precision, recall, f1)]


@dataclass(frozen=True)
class HeldOut:
    """Targets y (m,), labels or values predicted (m,) and real outputs, (m,) or (m, k), at points not trained on."""

    y: NDArray[Any]
    predicted: NDArray[Any]
    outputs: Array
    how: str
    probabilities: Array | None = None


def held_out(
    machine: Any,
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    time_limit: float = 60.0,
    random_state: int = 0,
) -> HeldOut:
    """What the machine says of points it was not trained on."""
    if X_test is not None and y_test is not None:
        return _on_test_points(machine, X_test, np.asarray(y_test))
    y = np.asarray(y)
    found = inner(machine)
    if found is machine and hasattr(type(found), "leave_one_out") and len(y) <= 6000:
        return _by_leave_one_out(found, y)
    return _by_folds(machine, X, y, time_limit, random_state)


def held_out_order(
    machine: Any, X: Any, y: Any, groups: Any, X_test: Any = None, y_test: Any = None, *, random_state: int = 0
) -> HeldOut:
    """The utility of points whose queries the machine was not trained on; without test points by cross-validation."""
    if X_test is not None and y_test is not None:
        f = utility_of(machine, X_test)
        return HeldOut(np.asarray(y_test), f, f, f"{len(f)} test points")
    y, again = np.asarray(y), restated(machine)
    codes = None if groups is None else np.unique(groups, return_inverse=True)[1]
    fold, f = assign(len(y), FOLDS, None, random_state, codes), np.empty(len(y))
    for number in np.unique(fold):
        inside, outside = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        within = {} if codes is None else {"groups": codes[inside]}
        trained = again.fit(*_safe_split(again, X, y, inside), **within)
        f[outside] = utility_of(trained, _safe_split(again, X, y, outside, inside)[0])
    return HeldOut(y, f, f, f"{fold.max() + 1}-fold cross-validation over {len(y)} points, parameters held")


def _on_test_points(machine: Any, X: Any, y: NDArray[Any]) -> HeldOut:
    probabilities = None
    if hasattr(machine, "predict_proba"):
        probabilities = np.asarray(machine.predict_proba(X), dtype=np.float64)
    return HeldOut(y, np.asarray(machine.predict(X)), outputs(machine, X), f"{len(y)} test points", probabilities)


def _by_leave_one_out(machine: Any, y: NDArray[Any]) -> HeldOut:
    values = np.asarray(machine.loo_predictions_, dtype=np.float64)
    how = f"exact leave-one-out over {len(y)} points"
    if task_of(machine) == "regression":
        return HeldOut(y, values, values, how)
    codes = (values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)
    return HeldOut(y, machine.classes_[codes], values, how)


def _by_folds(machine: Any, X: Any, y: NDArray[Any], time_limit: float, random_state: int) -> HeldOut:
    """Cross-validation of the restated machine, on a sample where all points would take too long."""
    again, regression = restated(machine), task_of(machine) == "regression"
    n = len(y)
    index = np.random.default_rng(random_state).permutation(n)
    # Training takes about n^2 time: one on a tenth of the points says how many points the time allows.
    trial = index[: max(min(n, 200), n // 10)]
    started = time.perf_counter()
    again.fit(*_safe_split(again, X, y, trial))
    once = (time.perf_counter() - started) * (n / len(trial)) ** 2
    allowed = n if once * FOLDS <= time_limit else max(len(trial), int(n * np.sqrt(time_limit / (once * FOLDS))))
    kept = np.sort(index[:allowed])
    X, y = (X, y) if allowed >= n else _safe_split(again, X, y, kept, kept if _pairwise(again) else None)
    if regression:
        folds: Any = KFold(min(FOLDS, len(y)), shuffle=True, random_state=random_state)
        values = np.asarray(cross_val_predict(again, X, y, cv=folds), dtype=np.float64)
        return HeldOut(y, values, values, _of_folds(folds, len(y), n))
    smallest = int(np.min(np.unique(y, return_counts=True)[1]))
    folds = StratifiedKFold(min(FOLDS, max(2, smallest)), shuffle=True, random_state=random_state)
    values = np.asarray(cross_val_predict(again, X, y, cv=folds, method="decision_function"), dtype=np.float64)
    classes = np.unique(y)
    return HeldOut(y, classes[_decided(inner(machine), values)], values, _of_folds(folds, len(y), n))


def _decided(machine: Any, values: NDArray[np.float64]) -> NDArray[np.intp]:
    """Class numbers (n,) of decision values, by the rule of the machine's own `predict`; they differ on ties."""
    if hasattr(machine, "decided"):
        return np.asarray(machine.decided(values))
    return (values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)


def _pairwise(machine: Any) -> bool:
    return bool(machine.__sklearn_tags__().input_tags.pairwise)


def _of_folds(folds: Any, used: int, n: int) -> str:
    part = f"{n} points" if used == n else f"a sample of {used} of the {n} points"
    return f"{folds.get_n_splits()}-fold cross-validation over {part}, parameters held"
