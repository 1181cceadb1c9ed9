"""Points from a file, brought into the form a model was trained on.

What was learnt of the training file (how a table became columns, the mean of every feature) goes into the notes of the
model, and comes back as the `like` of `mercer.data.read`.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mercer.data import Dataset, read
from mercer.data.dataset import resolve_missing
from mercer.data.reading import format_of
from mercer.errors import InvalidInput

MOST_MEANS = 10_000  # features whose means are kept for imputing


def column(name: str | None) -> str | int | None:
    """A target column by name or number."""
    return int(name) if name is not None and name.lstrip("-").isdigit() else name


def read_points(path: Path, *, target: str | None, format: str | None, missing: str) -> Dataset:
    """A file for training, with NaN where values are missing; they are refused here or their points dropped."""
    data = read(path, target=column(target), format=format, missing="keep")
    return data if missing == "impute" else without_missing(data, missing)


def without_missing(data: Dataset, missing: str) -> Dataset:
    """Refuse missing values, or drop the points that lack them."""
    values = data.X.data if data.is_sparse else data.X
    absent = int(np.isnan(values).sum())
    if missing == "refuse" and absent:
        raise InvalidInput(f"{data.source}: {absent} values are missing; fill them in with --missing impute")
    kept = resolve_missing(data, "drop")
    if kept.n == 0:
        raise InvalidInput(f"{data.source}: every point lacks a value; fill them in with --missing impute")
    return kept


def imputed(data: Dataset) -> Dataset:
    """Missing values replaced by means, and the means of all features kept for files to come."""
    return replace(resolve_missing(data, "impute", _means(data)), imputed=_means(data))


def _means(data: Dataset) -> dict[str, float]:
    """Mean of every feature over the values that are there, by its name or number."""
    if data.is_sparse or data.d > MOST_MEANS:
        return dict(data.imputed)
    present = ~np.isnan(data.X)
    total = np.where(present, data.X, 0.0).sum(axis=0)
    means = total / np.maximum(present.sum(axis=0), 1)
    names = data.feature_names or tuple(map(str, range(data.d)))
    return {name: float(mean) for name, mean in zip(names, means)}


def recipe(data: Dataset) -> dict[str, Any]:
    """What a later file needs to be read in the same way, in texts and numbers."""
    return {
        "features": data.d,
        "target": data.target_name,
        "columns": None if data.columns is None else list(data.columns),
        "categories": {name: list(values) for name, values in data.categories.items()},
        "feature names": None if data.feature_names is None else list(data.feature_names),
        "means": dict(data.imputed) or _means(data),
    }


def _like(notes: Mapping[str, Any], d: int) -> Dataset:
    """The training data as far as reading another file needs them."""
    found = notes.get("recipe") or {}
    try:
        columns, names = found.get("columns"), found.get("feature names")
        return Dataset(
            np.empty((0, d)),
            feature_names=None if names is None else tuple(map(str, names)),
            target_name=found.get("target"),
            categories={str(k): tuple(map(str, v)) for k, v in (found.get("categories") or {}).items()},
            columns=None if columns is None else tuple(map(str, columns)),
            imputed={str(k): float(v) for k, v in (found.get("means") or {}).items()},
        )
    except (TypeError, ValueError, AttributeError):
        raise InvalidInput("the model's notes on its training columns are damaged; train it again") from None


def read_like(
    path: Path, notes: Mapping[str, Any], d: int, *, dense: bool, target: str | None, format: str | None, missing: str
) -> Dataset:
    """A file for a trained model of d features; missing values are refused or get the means of the training points."""
    like = _like(notes, d)
    kind = format_of(path, format)
    sparse = False if dense else None
    wanted: Any = column(target)
    if kind in ("csv", "parquet") and like.columns is None:
        if wanted is None and read(path, target=False, format=format, missing="keep").d == d:
            wanted = False
        data = read(path, target=wanted, format=format, missing="keep", sparse=sparse)
    else:
        data = read(path, target=wanted, format=format, missing="keep", sparse=sparse, like=like)
    if data.d != d:
        raise InvalidInput(f"{path}: has {data.d} features where the model was trained on {d}")
    if missing == "impute":
        return resolve_missing(data, "impute", like.imputed)
    return without_missing(data, "refuse")
