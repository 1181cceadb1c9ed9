"""How good predictions are, with 95 % intervals.

- accuracy and error: Wilson's interval of a proportion (Wilson 1927);
- area under the ROC curve of two classes, with the variance of Hanley and McNeil (1982);
- R2, root mean squared and mean absolute error, and the error in ranks: the 2.5 and 97.5 percent points of 1,000
  resamples of the points;
- pairs in order, Kendall's tau, NDCG and average precision: the same of resamples of the queries.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.targets import Task
from mercer.errors import InvalidInput

Array = NDArray[np.float64]
Interval = tuple[float, float]

Z = 1.959963984540054  # the normal distribution exceeds it with probability 2.5 %
RESAMPLES = 1000
MOST_DRAWN = 5_000_000  # draws held at once


def wilson(hits: int, n: int) -> Interval:
    """Interval of the proportion behind `hits` of n."""
    p, z2 = hits / n, Z * Z / n
    middle, half = p + z2 / 2, Z * np.sqrt(p * (1 - p) / n + z2 / (4 * n))
    return max(0.0, float((middle - half) / (1 + z2))), min(1.0, float((middle + half) / (1 + z2)))


def area(values: Array, positive: NDArray[np.bool_]) -> tuple[float, Interval] | None:
    """Area under the ROC curve of decision values (n,), None when a class is missing."""
    from sklearn.metrics import roc_auc_score

    n1 = int(positive.sum())
    n0 = len(positive) - n1
    if n0 == 0 or n1 == 0:
        return None
    A = float(roc_auc_score(positive, values))
    q1, q2 = A / (2 - A), 2 * A * A / (1 + A)
    variance = (A * (1 - A) + (n1 - 1) * (q1 - A * A) + (n0 - 1) * (q2 - A * A)) / (n0 * n1)
    half = Z * float(np.sqrt(max(variance, 0.0)))
    return A, (max(0.0, A - half), min(1.0, A + half))


def of_classes(y: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any], values: Any = None) -> dict[str, Any]:
    """Facts about predicted labels (n,); `values` are decision values (n,) of two classes, positive for the second."""
    from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

    n, hits = len(y), int(np.sum(y == predicted))
    low, high = wilson(hits, n)
    labels = np.union1d(classes, y)
    confusion = confusion_matrix(y, predicted, labels=labels)
    precision, recall, f1, actual = precision_recall_fscore_support(y, predicted, labels=labels, zero_division=0.0)
    said = confusion.sum(axis=0)
    facts: dict[str, Any] = {
        "points": n,
        "accuracy": hits / n,
        "accuracy interval": [low, high],
        "error": 1 - hits / n,
        "error interval": [1 - high, 1 - low],
        "balanced accuracy": float(recall[actual > 0].mean()),
        "macro f1": float(f1[actual + said > 0].mean()),
    }
    if values is not None and len(classes) == 2 and (found := area(np.asarray(values), y == classes[1])) is not None:
        facts |= {"auc": found[0], "auc interval": list(found[1])}
    facts["classes"] = {
        str(label): {"points": int(actual[k]), "recall": float(recall[k]), "precision": float(precision[k])}
        for k, label in enumerate(labels)
    }
    facts["confusion"] = confusion.tolist()
    return facts


def of_numbers(y: Any, predicted: Any, seed: int = 0) -> dict[str, Any]:
    """Facts about predicted values (n,) or (n, k); R2 is the mean over the k targets."""
    y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    errors = np.asarray(predicted, dtype=np.float64).reshape(y.shape) - y
    whole = _numbers(y, errors)
    facts: dict[str, Any] = {"points": len(y)}
    drawn = _resampled(y, errors, seed)
    for k, name in enumerate(("r2", "rmse", "mae")):
        facts[name] = None if np.isnan(whole[k]) else float(whole[k])
        known = drawn[np.isfinite(drawn[:, k]), k]
        if facts[name] is not None and known.size:
            facts[f"{name} interval"] = np.quantile(known, [0.025, 0.975]).tolist()
    return facts


def of_ranks(
    y: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any], utility: Array, seed: int = 0
) -> dict[str, Any]:
    """Facts about predicted ranks (n,), and about the utility (n,) they come from; `classes` from low to high.

    The error in ranks is the mean number of ranks between truth and answer.
    """
    from mercer.ordinal.by_query import by_query

    labels = np.union1d(classes, y)
    truth, answer = np.searchsorted(labels, y), np.searchsorted(labels, predicted)
    away = np.abs(truth - answer).astype(np.float64)
    drawn = _resampled(truth[:, None].astype(np.float64), away[:, None], seed)[:, 2]
    orders = by_query(truth, utility).means()
    facts = of_classes(y, predicted, classes) | {
        "rank error": float(away.mean()),
        "rank error interval": np.quantile(drawn, [0.025, 0.975]).tolist(),
        "within one rank": float(np.mean(away <= 1)),
        "kendall tau": orders["kendall tau"],
        "pairs in order": orders["pairs in order"],
    }
    for k, found in enumerate(facts["classes"].values()):
        found["rank error"] = float(away[truth == k].mean()) if (truth == k).any() else None
    return facts


def of_order(y: NDArray[Any], values: Array, groups: Any = None, seed: int = 0) -> dict[str, Any]:
    """Facts about values (n,) that put points of ranks y (n,) in an order inside their groups."""
    from mercer.ordinal.by_query import by_query

    found = by_query(y, values, groups)
    if not found.pairs.sum():
        raise InvalidInput("no two points of one query have different ranks: there is no pair to be in order")
    facts: dict[str, Any] = {"points": len(y), "pairs": int(found.pairs.sum())}
    if groups is not None:
        facts |= {"queries": len(found.names), "queries without pairs": int(np.sum(found.pairs == 0))}
    intervals = found.intervals(seed=seed)
    for name, value in found.means().items():
        facts[name] = None if np.isnan(value) else value
        if name in intervals and facts[name] is not None:
            facts[f"{name} interval"] = list(intervals[name])
    return facts


def _numbers(y: Array, errors: Array) -> Array:
    """R2, root mean squared and mean absolute error; R2 is NaN for constant targets."""
    spread = np.mean((y - y.mean(axis=0)) ** 2, axis=0)
    square = np.mean(errors**2, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        r2 = float(np.mean(np.where(spread > 0, 1 - square / spread, np.nan)))
    return np.array([r2, np.sqrt(square.mean()), np.abs(errors).mean()])


def _resampled(y: Array, errors: Array, seed: int) -> Array:
    """The same (resamples, 3) for points drawn with replacement; fewer resamples where points are many."""
    n = len(y)
    random = np.random.default_rng(seed)
    count = int(max(100, min(RESAMPLES, 20 * MOST_DRAWN // n)))
    rows = (random.integers(0, n, n) for _ in range(count))
    return np.array([_numbers(y[row], errors[row]) for row in rows])


def judge(
    task: Task, model: Any, X: Any, y: NDArray[Any], seed: int = 0, groups: NDArray[np.int64] | None = None
) -> dict[str, Any]:
    """Facts about the predictions of a machine or model at points X (n, d) as it takes them; queries by `groups`."""
    predicted = model.predict(X)
    if task == "regression":
        return of_numbers(y, predicted, seed)
    if task == "rank":
        return of_order(y, predicted, groups, seed)
    machine = getattr(model, "machine", model)
    classes = machine.classes_
    if task == "ordinal":
        labels = classes.astype(comparable(classes, y)[0].dtype)
        return of_ranks(*comparable(y, predicted), labels, _utility(model, X), seed)
    values = model.decision_function(X) if len(classes) == 2 else None
    return of_classes(*comparable(y, predicted), classes.astype(comparable(classes, y)[0].dtype), values)


def _utility(model: Any, X: Any) -> Array:
    """The latent values (n,) behind the ranks of a machine, or of a model with its standardisation."""
    if not hasattr(model, "machine"):
        return np.asarray(model.utility(X))
    return np.asarray(model.machine.utility(X if model.standardise is None else model.standardise(X)))


def comparable(y: NDArray[Any], predicted: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Labels of two origins as one type: texts when either holds texts."""
    if (y.dtype.kind in "USO") != (predicted.dtype.kind in "USO"):
        return y.astype(str), predicted.astype(str)
    return y, predicted


def main_score(facts: dict[str, Any]) -> tuple[str, float | None, list[float] | None]:
    """Name, value and interval of the score that stands for all."""
    name = next(name for name in ("rank error", "pairs in order", "accuracy", "log loss", "r2") if name in facts)
    return name, facts[name], facts.get(f"{name} interval")


def shown(facts: dict[str, Any]) -> str:
    """The main score in words."""
    name, value, interval = main_score(facts)
    if value is None:
        return "R2 is not defined: the target is constant"
    if name in ("accuracy", "pairs in order"):
        between = "" if interval is None else f" (95 % interval {interval[0]:.2%} to {interval[1]:.2%})"
        beside = "".join(f", {other} {facts[other]:.4f}" for other in ("ndcg@10", "map") if other in facts)
        return f"{name} {value:.2%}{between}{beside}"
    between = "" if interval is None else f" (95 % interval {interval[0]:.3f} to {interval[1]:.3f})"
    if name in ("log loss", "rank error"):
        beside = f", accuracy {facts['accuracy']:.2%}" if "accuracy" in facts else ""
        return f"{name} {value:.4f}{between}{beside}"
    return f"R2 {value:.4f}{between}" + (f", root mean squared error {facts['rmse']:.4g}" if "rmse" in facts else "")
