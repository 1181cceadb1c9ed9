"""`mercer evaluate`: how good a model is on the points of a file."""

from typing import Any

import numpy as np

from mercer.cli import options, scores
from mercer.cli.model_input import Source
from mercer.cli.output import table, tell
from mercer.cli.predict import read_for
from mercer.cli.task import target_of
from mercer.data.targets import Task
from mercer.errors import InvalidInput

SHOWN = (
    "rank error", "within one rank", "accuracy", "balanced accuracy", "macro f1", "auc", "r2", "rmse", "mae",
    "pairs in order", "kendall tau", "ndcg@10", "map",
)  # fmt: skip


def evaluate(
    model: options.ModelFile,
    data: options.Data,
    target: options.Target = None,
    groups: options.Groups = None,
    format: options.Format = None,
    missing: options.MissingInPrediction = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Score a model on a data file: accuracy or R2 and more, each with its 95 % interval.

    Ranks are scored by their error and confusion, orders by pairs, Kendall's tau, NDCG and MAP inside the queries.
    """
    from mercer.models import load_model

    loaded = load_model(model)
    if getattr(loaded.machine, "multilabel_", False):
        raise InvalidInput(f"{model}: answers several labels at once, which evaluate does not score; use predict")
    read = read_for(loaded, Source(data, target, format, groups), missing)
    y = target_of(read)
    about = {"machine": type(loaded.machine).__name__, "model": str(model), "data": str(data)}
    task = task_of(loaded.machine)
    if task == "rank" and read.query is None and loaded.notes.get("queries"):
        raise InvalidInput(
            f"{data}: has no queries, and the model was trained on some; name their column with --groups"
        )
    if y.dtype.kind in "USO":
        if task == "regression":
            raise InvalidInput(f"{data}: the target holds texts, and the model predicts numbers")
        if task == "rank":
            y = np.unique(y, return_inverse=True)[1]  # texts are relevances in their own order, as they are in training
    if (y.ndim == 2) != (task == "regression" and not getattr(loaded.machine, "_single", True)):
        raise InvalidInput(f"{data}: does not have the number of targets the model predicts; name them with --target")
    facts = scores.judge(task, loaded, read.X, y, seed, read.query)
    tell({"task": task, **about} | facts, as_json, lambda facts: table(_rows(facts)))


def task_of(machine: Any) -> Task:
    """What a machine answers with."""
    if hasattr(machine, "utility"):
        return "ordinal" if hasattr(machine, "classes_") else "rank"
    return "classification" if hasattr(machine, "classes_") else "regression"


def _rows(facts: dict[str, Any]) -> dict[str, str]:
    """The facts for people."""
    rows = {"machine": facts["machine"], "points": str(facts["points"])}
    if "queries" in facts:
        rows["queries"] = f"{facts['queries']}, {facts['queries without pairs']} without pairs of different rank"
    for name in SHOWN:
        if facts.get(name) is not None:
            interval = facts.get(f"{name} interval")
            between = "" if interval is None else f"  (95 %: {interval[0]:.4g} to {interval[1]:.4g})"
            rows[name] = f"{facts[name]:.4g}{between}"
    for label, found in facts.get("classes", {}).items():
        rows[f"class {label}"] = (
            f"{found['points']} points, recall {found['recall']:.1%}, precision {found['precision']:.1%}"
        ) + (f", {found['rank error']:.2f} ranks off" if found.get("rank error") is not None else "")
    return rows
