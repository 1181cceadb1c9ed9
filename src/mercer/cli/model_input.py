"""Points from a file, brought into the form a model was trained on.

What was learnt of the training file (how a table became columns, the mean of every feature) goes into the notes of the
model, and comes back as the `like` of `mercer.data.read`.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mercer.cli.files import STANDARD_INPUT, incoming
from mercer.data import Dataset, read
from mercer.data.dataset import resolve_missing
from mercer.data.reading import format_of
from mercer.data.tables import listed
from mercer.errors import Advice, InvalidInput

MOST_MEANS = 10_000  # features whose means are kept for imputing
TABLES = ("csv", "parquet")


def column(name: str | None) -> str | int | None:
    """A target column by name or number."""
    return int(name) if name is not None and name.lstrip("-").isdigit() else name


@dataclass(frozen=True)
class Source:
    """A file or standard input, and how a user says it is to be read: target and queries by name or number."""

    path: Path
    target: str | None = None
    format: str | None = None
    groups: str | None = None

    def read(self, file: Path, **options: Any) -> Dataset:
        """What the file that stands for the source holds, with NaN where values are missing."""
        options = {"target": column(self.target), "groups": column(self.groups), "format": self.format} | options
        return read(file, missing="keep", **options)

    def named(self, data: Dataset, file: Path) -> Dataset:
        """The same data under the name of the source."""
        return data if file == self.path else replace(data, source=STANDARD_INPUT)


def read_points(source: Source, missing: str) -> Dataset:
    """Points for training, with NaN where values are missing; they are refused here or their points dropped."""
    with incoming(source.path, source.format) as file:
        data = source.named(source.read(file), file)
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
    if data.d > MOST_MEANS:
        return dict(data.imputed)
    if data.is_sparse:
        values, at = data.X.data, data.X.indices
        absent = np.isnan(values)
        total = np.bincount(at, np.where(absent, 0.0, values), minlength=data.d)
        present = data.n - np.bincount(at[absent], minlength=data.d)
    else:
        total, present = np.nansum(data.X, axis=0), (~np.isnan(data.X)).sum(axis=0)
    means = total / np.maximum(present, 1)
    names = data.feature_names or tuple(map(str, range(data.d)))
    return {name: float(mean) for name, mean in zip(names, means)}


def recipe(data: Dataset, missing: str) -> dict[str, Any]:
    """What a later file needs to be read in the same way, in texts and numbers."""
    return {
        "missing": missing,
        "features": data.d,
        "target": data.target_name,
        "groups": data.query_name,
        "columns": None if data.columns is None else list(data.columns),
        "left out": list(data.left_out),
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
            query_name=found.get("groups"),
            categories={str(k): tuple(map(str, v)) for k, v in (found.get("categories") or {}).items()},
            columns=None if columns is None else tuple(map(str, columns)),
            left_out=tuple(map(str, found.get("left out") or ())),
            imputed={str(k): float(v) for k, v in (found.get("means") or {}).items()},
        )
    except (TypeError, ValueError, AttributeError):
        raise InvalidInput("the model's notes on its training columns are damaged; train it again") from None


def read_like(source: Source, notes: Mapping[str, Any], d: int, *, dense: bool, missing: str | None) -> Dataset:
    """A file for a trained model of d features, its columns those of training.

    Missing values are refused, or get the means of the training points; where `missing` is None, as in training.
    """
    like = _like(notes, d)
    if missing is None:
        missing = "impute" if (notes.get("recipe") or {}).get("missing") == "impute" else "refuse"
    with incoming(source.path, source.format) as file:
        data = source.named(_of_training(file, source, like, False if dense else None), file)
    if missing == "impute":
        return _with_means(data, like.imputed)
    return without_missing(data, "refuse")


def _of_training(path: Path, source: Source, like: Dataset, sparse: bool | None) -> Dataset:
    """A file whose columns are those of training: by name where they have names, else by number."""
    kind, d = format_of(path, source.format), like.d
    if like.columns is not None and kind in TABLES:
        data = source.read(path, like=like, sparse=sparse)
        known = {*like.left_out, *(like.target_name or "").split(", ")}
        if extra := [name for name in data.left_out if name not in known]:
            raise InvalidInput(f"{path}: has the columns {listed(extra)}, which were not in training; remove them")
        return data
    if kind in TABLES:
        unlabelled = source.target is None and source.read(path, target=False).d == d
        data = source.read(path, sparse=sparse, **({"target": False} if unlabelled else {}))
    elif kind == "svmlight" and like.columns is None:
        return source.read(path, like=like, sparse=sparse)  # zeros at the end of a line may be left out
    else:
        data = source.read(path, sparse=sparse)
    if data.d != d:
        named = "" if like.columns is None else f" ({listed(like.columns)})"
        raise InvalidInput(f"{path}: has {data.d} features where the model was trained on {d}{named}")
    if like.columns is not None:
        warnings.warn(
            f"{path}: its columns have no names; they are taken in the order of training: {listed(like.columns)}",
            Advice,
            stacklevel=2,
        )
    return data


def _with_means(data: Dataset, means: Mapping[str, float]) -> Dataset:
    """Missing values replaced by the means of the training points."""
    stored = data.X.data if data.is_sparse else data.X
    absent = np.isnan(stored)
    if not absent.any():
        return data
    columns = np.unique(data.X.indices[absent] if data.is_sparse else np.nonzero(absent)[1])
    names = [data.feature_names[c] if data.feature_names else str(c) for c in columns]
    if unknown := tuple(name for name in names if name not in means):
        raise InvalidInput(
            f"{data.source}: lacks values of {listed(unknown)}, whose means the model does not hold; fill them in"
        )
    warnings.warn(
        f"{data.source}: {int(absent.sum())} missing values got the means of the training points",
        Advice,
        stacklevel=2,
    )
    return resolve_missing(data, "impute", means)
