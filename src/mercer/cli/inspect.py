"""`mercer inspect`: what a data file holds."""

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mercer.data import Dataset, read
from mercer.data.reading import format_of
from mercer.gram import memory

MOST_CLASSES = 50  # whole numbers with more different values than this are taken for a measurement


def inspect(
    file: Annotated[
        Path, typer.Argument(help="A data file: svmlight, CSV, Parquet, .npy or .npz; also .gz, .xz, .bz2.")
    ],
    target: Annotated[str | None, typer.Option(help="Target column of a table, by name or number.")] = None,
    format: Annotated[str | None, typer.Option(help="svmlight, csv, parquet, npy or npz; else by the ending.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the facts as JSON.")] = False,
) -> None:
    """Say what a data file holds: size, density, target, missing values and scales."""
    column = int(target) if target is not None and target.lstrip("-").isdigit() else target
    data = read(file, target=column, format=format, missing="keep")
    facts = describe(data) | {"format": format_of(file, format)}
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    table = Table(title=escape(str(file)), title_justify="left", show_header=False, box=None)
    for name, value in facts.items():
        table.add_row(name, escape(_shown(value)))
    Console().print(table)


def describe(data: Dataset) -> dict[str, Any]:
    """Facts about a data set, in numbers and texts that JSON can hold."""
    values = data.X.data if data.is_sparse else data.X
    present = values[~np.isnan(values)]
    facts: dict[str, Any] = {
        "points": data.n,
        "features": data.d,
        "kept as": "CSR" if data.is_sparse else "dense",
        "density": round(data.density, 6),
        "missing values": int(values.size - present.size),
        "range": [float(present.min()), float(present.max())] if present.size else None,
    }
    if not data.is_sparse:
        facts["constant features"] = int(
            np.sum(np.nanmin(_filled(data.X), axis=0) == np.nanmax(_filled(data.X), axis=0))
        )
    facts |= _target_facts(data)
    facts["full kernel matrix"] = memory.show(8.0 * data.n * data.n)
    return facts


def _filled(X: Any) -> Any:
    """X with a zero in columns that hold no value at all, so that their extremes exist."""
    empty = np.isnan(X).all(axis=0)
    return np.where(empty, 0.0, X) if empty.any() else X


def _target_facts(data: Dataset) -> dict[str, Any]:
    """Task and the classes with their counts, or the range of a measurement."""
    y = data.y
    if y is None:
        return {"target": None}
    if y.ndim == 2:
        return {"task": "several targets", "targets": int(y.shape[1])}
    classes, counts = np.unique(y, return_counts=True)
    if y.dtype.kind in "US" or (y.dtype.kind in "iu" and len(classes) <= MOST_CLASSES):
        return {"task": "classification", "classes": {str(c): int(k) for c, k in zip(classes, counts)}}
    return {"task": "regression", "target range": [float(y.min()), float(y.max())], "target mean": float(y.mean())}


def _shown(value: Any) -> str:
    """Readable text of a fact."""
    if isinstance(value, dict):
        entries = [f"{name}: {count}" for name, count in value.items()]
        return ", ".join(entries[:12]) + (f", and {len(entries) - 12} more" if len(entries) > 12 else "")
    if isinstance(value, list):
        return " to ".join(f"{number:g}" for number in value)
    return "none" if value is None else str(value)
