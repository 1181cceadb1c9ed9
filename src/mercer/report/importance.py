"""Which features a machine uses: what its score loses when the values of one are dealt out anew among the points.

With s the score at points not trained on, and s_j that with the values of feature j permuted among them, the
permutation importance of j is the mean of s - s_j over several permutations (Breiman 2001, section 10).  It is about
this machine, not about the world: of two features that say the same, each may look useless while the other is there.

For a linear regression machine f(x) = w'x + b with errors e = y - f, the mean over all permutations is known,
R2 - R2_j = 2 (w_j^2 var(x_j) + w_j cov(e, x_j)) / var(y), which the tests use.

Columns that code one feature together (the 0/1 columns of a text column) are permuted together.  The cost is bounded:
at most `MOST_POINTS` points, `MOST_FEATURES` features (those whose values go along most with the outputs), and a clock.
"""

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing

from mercer.data import Dataset
from mercer.errors import InvalidInput, MercerWarning
from mercer.report import ink
from mercer.report.estimates import r2
from mercer.report.machine import inner, outputs, restated, solutions_of, task_of

Array = NDArray[np.float64]

REPEATS = 5
MOST_POINTS = 1000
MOST_FEATURES = 100
SHOWN = 12  # features in the picture and the table
FEWEST_POINTS = 10  # held out
TEST_SHARE = 0.25


@dataclass(frozen=True)
class Importance:
    """Names (j,) of the features permuted, and the loss of score (j, repeats) with each, the largest mean first.

    `score` is that without permutation, `how` says on which points; `features` is how many there are in all.
    """

    names: tuple[str, ...]
    losses: Array
    score: float
    score_name: str
    how: str
    features: int


def feature_groups(source: Dataset) -> dict[str, list[int]] | None:
    """Columns of X by the column of the table they come from; None where there is no table."""
    if source.columns is None:
        return None
    found: dict[str, list[int]] = {}
    at = 0
    for name in source.columns:
        width = len(source.categories[name]) if name in source.categories else 1
        found[name] = list(range(at, at + width))
        at += width
    return found if at == source.d else None


def measure_importance(
    machine: Any,
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    names: Sequence[str] | None = None,
    groups: Mapping[str, Sequence[int]] | None = None,
    repeats: int = REPEATS,
    time_limit: float = 20.0,
    random_state: int = 0,
) -> Importance | None:
    """Permutation importance at test points, else at a quarter of the points by a machine trained on the others.

    None where there are no two features to compare, too few points, or too little time.
    """
    if not _has_features(machine, X) or task_of(machine) in ("outliers", "order"):
        return None
    started = time.perf_counter()
    if X_test is not None and y_test is not None:
        judged, where = machine, "test points"
    else:
        split = _split(machine, X, np.asarray(y), time_limit, random_state)
        if split is None:
            return None
        judged, X_test, y_test = split
        where = "points held out from a machine with the same parameters, trained on the others"
    points, target = X_test, np.asarray(y_test)
    random = np.random.default_rng(random_state)
    if len(target) > MOST_POINTS:
        kept = np.sort(random.choice(len(target), MOST_POINTS, replace=False))
        points, target, where = _safe_indexing(points, kept), target[kept], f"{where}, drawn from {len(target)}"
    if len(target) < FEWEST_POINTS:
        return None
    began = time.perf_counter()
    score = _score(judged, points, target)
    once = max(time.perf_counter() - began, 1e-9)
    if not np.isfinite(score):
        return None
    columns = _features(points.shape[1], names, groups)
    if len(columns) < 2:
        return None
    allowed = int((time_limit - (time.perf_counter() - started)) / (once * repeats))
    chosen = _foremost(judged, points, columns, min(MOST_FEATURES, allowed))
    if not chosen:
        return None
    losses = np.empty((len(chosen), repeats))
    for j, name in enumerate(chosen):
        for repeat in range(repeats):
            order = random.permutation(len(target))
            losses[j, repeat] = score - _score(judged, _permuted(points, columns[name], order), target)
    rank = np.argsort(-losses.mean(axis=1), kind="stable")
    return Importance(
        tuple(chosen[j] for j in rank),
        losses[rank],
        score,
        "R2" if task_of(machine) == "regression" else "accuracy",
        f"{len(target)} {where}",
        len(columns),
    )


def _has_features(machine: Any, X: Any) -> bool:
    """Whether X (n, d) is a table, or a matrix of numbers that stand for features."""
    if getattr(inner(machine), "_kind", "features") != "features":
        return False
    return hasattr(X, "iloc") or (getattr(X, "ndim", 0) == 2 and X.dtype.kind in "fiub")


def _split(machine: Any, X: Any, y: NDArray[Any], time_limit: float, random_state: int) -> tuple[Any, Any, Any] | None:
    """A machine with the same parameters trained on three quarters of the points, and the others."""
    regression = task_of(machine) == "regression"
    counts = np.unique(y, return_counts=True)[1]
    held = TEST_SHARE * len(y)
    if held < FEWEST_POINTS or (not regression and (counts.min() < 2 or held < len(counts))):
        return None
    if sum(solution.seconds for solution in solutions_of(machine)) > 0.5 * time_limit:
        return None
    inside, outside, y_inside, y_outside = train_test_split(
        X, y, test_size=TEST_SHARE, random_state=random_state, stratify=None if regression else y
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)  # what there is to say was said of the machine itself
        return restated(machine).fit(inside, y_inside), outside, y_outside


def _score(machine: Any, X: Any, y: NDArray[Any]) -> float:
    """R2, or the share of right answers."""
    predicted = np.asarray(machine.predict(X))
    if task_of(machine) == "regression":
        return r2(y.astype(np.float64), predicted.astype(np.float64))
    return float(np.mean(predicted == y))


def _features(
    d: int, names: Sequence[str] | None, groups: Mapping[str, Sequence[int]] | None
) -> dict[str, Sequence[int]]:
    """Columns by the name of their feature; names that occur twice get the number of their column."""
    if groups is not None:
        return dict(groups)
    texts = [str(name) for name in names] if names is not None else [f"feature {j}" for j in range(d)]
    counts = {name: texts.count(name) for name in set(texts)} if len(set(texts)) < d else {}
    return {f"{name} ({j})" if counts.get(name, 1) > 1 else name: [j] for j, name in enumerate(texts)}


def _foremost(machine: Any, X: Any, columns: Mapping[str, Sequence[int]], most: int) -> list[str]:
    """At most `most` features: those whose columns have the largest correlation with an output of the machine.

    Of a table, which may hold texts, the first ones.
    """
    if len(columns) <= most or hasattr(X, "iloc"):
        return list(columns)[: max(0, most)]
    f = outputs(machine, X).reshape(X.shape[0], -1)
    f = (f - f.mean(axis=0)) / np.maximum(f.std(axis=0), 1e-300)
    mean = np.asarray(X.mean(axis=0)).ravel()
    square = np.asarray((X.multiply(X) if sp.issparse(X) else X * X).mean(axis=0)).ravel()
    spread = np.sqrt(np.maximum(square - mean**2, 0.0))
    along = np.abs(np.asarray(X.T @ f)).max(axis=1) / np.where(spread > 0.0, spread, np.inf)
    largest = {name: float(max(along[list(own)], default=0.0)) for name, own in columns.items()}
    return sorted(columns, key=lambda name: -largest[name])[: max(0, most)]


def _permuted(X: Any, columns: Sequence[int], order: NDArray[np.intp]) -> Any:
    """X (n, d) with the rows of some columns in another order."""
    if hasattr(X, "iloc"):
        moved = X.copy()
        moved.isetitem(columns[0], X.iloc[order, columns[0]].to_numpy())
        return moved
    if not sp.issparse(X):
        moved = X.copy()
        moved[:, columns] = X[order][:, columns]
        return moved
    moved = sp.csc_matrix(X)
    pieces = [moved[:, : columns[0]], moved[:, list(columns)][order], moved[:, columns[-1] + 1 :]]
    return sp.csr_matrix(sp.hstack(pieces, format="csr"))


def draw_importance(found: Importance, ax: Any = None) -> Any:
    """Draw the largest importances as bars, with one standard deviation over the permutations; returns the axes."""
    ax = ink.axes(ax)
    means, spread = found.losses[:SHOWN].mean(axis=1), found.losses[:SHOWN].std(axis=1)
    places = np.arange(len(means))[::-1]
    ax.barh(places, means, xerr=spread, color=ink.GREYS[1], ecolor=ink.INK, error_kw={"linewidth": 0.9})
    ax.axvline(0.0, color=ink.INK, linewidth=0.8)
    ax.set_yticks(places, [ink.short(name) for name in found.names[:SHOWN]])
    ax.grid(visible=False, axis="y")
    ax.set(xlabel=f"loss of {found.score_name}")
    return ax


def plot_importance(
    machine: Any, X: Any, y: Any, X_test: Any = None, y_test: Any = None, ax: Any = None, **options: Any
) -> Any:
    """Measure (see `measure_importance` for the options) and draw the permutation importance; returns the axes."""
    found = measure_importance(machine, X, y, X_test, y_test, **options)
    if found is None:
        raise InvalidInput("no features to permute, too few points, or too little time for permutation importance")
    return draw_importance(found, ax)
