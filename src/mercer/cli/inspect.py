"""`mercer inspect`: what a data file or a model file holds."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from mercer import resources as memory
from mercer.cli import machines
from mercer.cli.convert import read_model
from mercer.cli.files import incoming, is_standard_input, kind_of
from mercer.cli.model_input import column
from mercer.cli.output import table, tell
from mercer.data import Dataset, read
from mercer.data.reading import format_of
from mercer.data.targets import looks_like

NOTED = (
    "points", "queries", "accuracy", "accuracy interval", "r2", "r2 interval", "rank error", "rank error interval",
    "pairs in order", "pairs in order interval", "data", "command",
)  # fmt: skip


def inspect(
    file: Annotated[
        Path,
        typer.Argument(
            help="A model of mercer or LIBSVM, or data: svmlight, CSV, Parquet, .npy, .npz, also .xz ...; - is standard"
            " input."
        ),
    ],
    target: Annotated[str | None, typer.Option(help="Target column of a table, by name or number.")] = None,
    groups: Annotated[str | None, typer.Option(help="Column of a table with the query of each point.")] = None,
    format: Annotated[str | None, typer.Option(help="svmlight, csv, parquet, npy or npz; else by the ending.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the facts as JSON.")] = False,
) -> None:
    """Say what a file holds: size, target, missing values and scales of data; machine and certificate of a model."""
    with incoming(file, format) as place:
        if format is None and kind_of(place) != "data":
            facts = describe_model(read_model(place))
        else:
            data = read(place, target=column(target), groups=column(groups), format=format, missing="keep")
            facts = describe(data) | {"format": format_of(place, format)}
    title = "standard input" if is_standard_input(file) else str(file)
    tell(facts, as_json, lambda facts: table({name: _shown(value) for name, value in facts.items()}, title))


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
    if data.query is not None:
        sizes = np.unique(data.query, return_counts=True)[1]
        facts |= {"queries": len(sizes), "points in a query": [int(sizes.min()), int(sizes.max())]}
    facts["full kernel matrix"] = memory.show(8.0 * data.n * data.n)
    return facts


def describe_model(model: Any) -> dict[str, Any]:
    """Facts about a model: its machine, its certificate, and what its training noted."""
    machine, notes = model.machine, model.notes
    facts: dict[str, Any] = {
        "machine": type(machine).__name__,
        "features": getattr(machine, "n_features_in_", None),
        "standardised": model.standardise is not None,
        **machines.made_of(machine),
        **machines.parameters(getattr(machine, "best_estimator_", machine)),
    }
    if hasattr(machine, "objective_"):  # codes on a given matrix leave it behind
        facts |= machines.certificate(machine)
    if getattr(machine, "multilabel_", False):
        facts["labels"] = machine.n_labels_
    elif hasattr(machine, "classes_"):
        facts["classes"] = ", ".join(str(label) for label in machine.classes_)
    if hasattr(machine, "thresholds_"):
        facts["thresholds"] = ", ".join(f"{value:.4g}" for value in machine.thresholds_)
    for name in NOTED:
        if name in notes:
            facts[f"trained on {name}" if name in ("points", "queries", "data") else name] = notes[name]
    return facts | dict(model.about)


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
    if looks_like(y) == "classification":
        return {"task": "classification", "classes": {str(c): int(k) for c, k in zip(classes, counts)}}
    return {"task": "regression", "target range": [float(y.min()), float(y.max())], "target mean": float(y.mean())}


def _shown(value: Any) -> str:
    """Readable text of a fact."""
    if isinstance(value, dict):
        entries = [f"{name}: {count}" for name, count in value.items()]
        return ", ".join(entries[:12]) + (f", and {len(entries) - 12} more" if len(entries) > 12 else "")
    if isinstance(value, list):
        return " to ".join(f"{number:g}" if isinstance(number, float) else str(number) for number in value)
    return "none" if value is None else str(value)
