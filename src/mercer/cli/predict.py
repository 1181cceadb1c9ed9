"""`mercer predict`: what a model says about the points of a file."""

import io
import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from mercer.cli import model_input as points
from mercer.cli import options
from mercer.cli.files import refuse_unwritable
from mercer.cli.output import cell, clean
from mercer.data import Dataset
from mercer.data.files import replacing, stem_and_format
from mercer.errors import InvalidInput


def read_for(model: Any, source: points.Source, missing: str | None) -> Dataset:
    """The points of a file in the form a model takes, before standardisation."""
    d = getattr(model.machine, "n_features_in_", None)
    if d is None or getattr(model.machine, "_kind", "features") != "features":
        raise InvalidInput("the model was not trained on features, so that no data file can be given to it")
    dense = model.standardise is not None and model.standardise.mean_ is not None
    return points.read_like(source, model.notes, d, dense=dense, missing=missing)


def predict(
    model: options.ModelFile,
    data: options.Data,
    output: Annotated[Path | None, typer.Option(help="File to write, one line a point; else to the screen.")] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Class probabilities instead of labels.")] = False,
    decision: Annotated[bool, typer.Option("--decision", help="Decision values instead of labels.")] = False,
    target: options.Target = None,
    groups: options.Groups = None,
    format: options.Format = None,
    missing: options.MissingInPrediction = None,
    as_json: options.Json = False,
) -> None:
    """Print what a model predicts, one line for each point of a data file: a label, a number, or a rank.

    A model of --task rank prints the values that its points are sorted by, largest first, inside each query.

    With --proba or --decision and several columns, the first line names them. The columns of the file must be those of
    training, in any order. Characters of a label that do not print are written as escapes; --json holds labels exactly.
    """
    from mercer.models import load_model

    if proba and decision:
        raise InvalidInput("give --proba or --decision, not both")
    if output is not None:
        refuse_unwritable(output, inputs=(model, data))
    loaded = load_model(model)
    read = read_for(loaded, points.Source(data, target, format, groups), missing)
    values, names = _values(loaded, read.X, proba, decision)
    text = _json(values, names) if as_json else _lines(values, names, as_table(output))
    if output is None:
        typer.echo(text, nl=False)
        return
    with replacing(output) as stream:
        stream.write(text.encode())


def _values(model: Any, X: Any, proba: bool, decision: bool) -> tuple[Any, list[str]]:
    """Predictions (n,) or (n, k), and the names of k columns."""
    several = getattr(model.machine, "multilabel_", False)  # yes or no for each label: their columns have no names
    labels = [] if several else [str(label) for label in getattr(model.machine, "classes_", [])]
    if proba:
        if not hasattr(model.machine, "predict_proba"):
            raise InvalidInput(
                f"the model ({type(model.machine).__name__}) has no probabilities: "
                "train it with --machine logistic, --machine svc --probability, or for ranks --machine odds"
            )
        return model.predict_proba(X), labels
    if decision:
        if not hasattr(model.machine, "decision_function"):
            raise InvalidInput("--decision is for classifiers; the model is a regression")
        values = model.decision_function(X)
        return values, labels if values.ndim == 2 and values.shape[1] == len(labels) else []
    return model.predict(X), []


def as_table(output: Path | None) -> bool:
    """Whether a spreadsheet may open the file."""
    return output is not None and stem_and_format(output)[1] in ("csv", "tsv")


def _lines(values: Any, names: list[str], spreadsheet: bool) -> str:
    """One line a point, columns apart by commas."""
    shown = cell if spreadsheet else clean
    text = io.StringIO()
    if values.ndim == 2 and names:
        text.write(",".join(map(cell, names)) + "\n")
    for row in np.asarray(values).tolist():
        text.write((",".join(map(repr, row)) if isinstance(row, list) else shown(str(row))) + "\n")
    return text.getvalue()


def _json(values: Any, names: list[str]) -> str:
    found: dict[str, Any] = {"predictions": np.asarray(values).tolist()}
    return json.dumps(found | ({"columns": names} if names else {})) + "\n"
