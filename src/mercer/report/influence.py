"""The points a machine leans on most: where to look for wrong labels and outliers.

A support vector machine leans on a point by the size of its coefficients, sum over the machines of |alpha_i|; among the
many that share the bound C, those with the worst margin come first.  For least squares the coefficient is C times the
residual, and what the machine would say without the point is known: the leave-one-out residual ranks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data import Standardise
from mercer.data.dataset import Origin
from mercer.report.machine import GROUPS, binary_margins, coefficients, groups, has_bounds, inner, outputs, task_of

Array = NDArray[np.float64]

UNUSUAL = 3  # features named for a point
MOST_FEATURES = 50_000
COUNTED = {
    "line": "lines of the file count from 1, with its header, comments and empty lines",
    "row": "rows of the file count from 0",
    "point": "points count from 0, in the order in which they were given",
}


@dataclass(frozen=True)
class Influence:
    """A table: headings, and one row of texts for each point, the most influential first; `index` (m,) are the points.

    The first column is where to find a point, and `counted` says how those places are counted.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    index: NDArray[np.intp]
    rule: str
    counted: str


def influential(
    machine: Any,
    X: Any,
    y: Any = None,
    *,
    count: int = 10,
    feature_names: Sequence[str] | None = None,
    values: Any = None,
    origin: Origin | None = None,
) -> Influence:
    """The `count` most influential training points of a machine fitted to X (n, d) and y (n,).

    `values` are the points in the units to be shown, where X was scaled before training, and `origin` the places of
    the points in their file; without it they are numbered from 0 in the order given.
    """
    found = inner(machine)
    support, c = coefficients(found)
    size = np.abs(c).sum(axis=1)
    task = task_of(machine)
    labels = np.asarray(y) if y is not None else None
    if has_bounds(found):
        margins = _margins(machine, X, labels)
        order = np.lexsort((margins[support], -np.round(size / max(size.max(initial=0.0), 1e-300), 6)))[:count]
        group = groups(machine, labels, len(margins))
        what = {"regression": "minus |residual|", "outliers": "f(x) - rho"}.get(task, "margin")
        headings: tuple[str, ...] = ("target", "sum |alpha|", what, "group")
        cells: list[tuple[str, ...]] = [
            (_target(labels, i), f"{size[j]:.4g}", f"{margins[i]:.3f}", GROUPS[group[i]])
            for j, i in zip(order, support[order])
        ]
        index, rule = support[order], "largest coefficients; among equal ones the worst margin first"
    else:
        residuals = np.asarray(found.loo_residuals_, dtype=np.float64)
        without = np.asarray(found.loo_predictions_, dtype=np.float64)
        error = np.abs(residuals) if residuals.ndim == 1 else np.sqrt(np.sum(residuals**2, axis=1))
        index = np.argsort(-error, kind="stable")[:count]
        sizes = np.zeros(len(error))
        sizes[support] = size
        headings = ("target", "output without it", "|leave-one-out residual|", "sum |alpha|")
        cells = [
            (_target(labels, i), np.array2string(without[i], precision=3), f"{error[i]:.4g}", f"{sizes[i]:.4g}")
            for i in index
        ]
        rule = "largest leave-one-out residuals"
    first = 0 if origin is None else origin.first_feature
    unusual = _unusual(X if values is None else values, index, feature_names, first)
    if unusual is not None:
        headings = (*headings, "most unusual features")
        cells = [(*row, text) for row, text in zip(cells, unusual)]
    places = index if origin is None else origin.places[index]
    rows = tuple((f"{place}", *row) for place, row in zip(places, cells))
    unit = "point" if origin is None else origin.unit
    return Influence((unit, *headings), rows, np.asarray(index, dtype=np.intp), rule, COUNTED[unit])


def _margins(machine: Any, X: Any, labels: Any) -> Array:
    """What is small for a point the machine gets wrong."""
    task = task_of(machine)
    if task == "regression":
        return np.asarray(-np.abs(labels - outputs(machine, X)))
    return outputs(machine, X) if task == "outliers" else binary_margins(machine, X, labels)


def _target(labels: Any, i: int) -> str:
    if labels is None:
        return ""
    return shown(float(labels[i])) if labels.dtype.kind == "f" else str(labels[i])


def shown(value: float) -> str:
    """A value as its owner would write it: whole numbers whole, others to six digits."""
    return f"{value:.0f}" if value == np.floor(value) and abs(value) < 1e15 else f"{value:.6g}"


def _unusual(X: Any, index: NDArray[np.intp], names: Sequence[str] | None, first: int) -> list[str] | None:
    """For each point the features farthest from their means, in standard deviations; None without features."""
    values: Any = X if sp.issparse(X) else np.asarray(X)
    if values.ndim != 2 or values.dtype.kind not in "fiub" or not 1 <= values.shape[1] <= MOST_FEATURES:
        return None
    learnt = Standardise.learn(values)
    rows = values[index]
    rows = np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)
    mean = np.asarray(values.mean(axis=0)).ravel()
    z = (rows - mean) / learnt.scale_
    texts = []
    for row, own in zip(z, rows):
        far = np.argsort(-np.abs(row), kind="stable")[:UNUSUAL]
        named = [(str(names[j]) if names is not None else f"feature {j + first}", own[j], row[j]) for j in far]
        texts.append(", ".join(f"{name} = {shown(value)} ({z:+.1f} sd)" for name, value, z in named))
    return texts
