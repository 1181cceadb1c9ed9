"""`mercer evaluate`: how good a model is on the points of a file."""

from typing import Any

from rich.console import Console

from mercer.cli import options, scores
from mercer.cli.output import print_json, table
from mercer.cli.predict import read_for
from mercer.cli.task import target_of
from mercer.data.targets import Task
from mercer.errors import InvalidInput


def evaluate(
    model: options.ModelFile,
    data: options.Data,
    target: options.Target = None,
    format: options.Format = None,
    missing: options.MissingInPrediction = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Score a model on a data file: accuracy or R2 and more, each with its 95 % interval."""
    from mercer.models import load_model
    from mercer.ordinal import RankSVM

    loaded = load_model(model)
    if hasattr(loaded.machine, "n_labels_"):
        raise InvalidInput(f"{model}: answers several labels at once, which evaluate does not score; use predict")
    read = read_for(loaded, data, target, format, missing)
    y = target_of(read)
    about = {"machine": type(loaded.machine).__name__, "model": str(model), "data": str(data)}
    if isinstance(loaded.machine, RankSVM):
        _show({"task": "ranking", **about} | scores.of_order(y, loaded.predict(read.X)), as_json)
        return
    task: Task = "classification" if hasattr(loaded.machine, "classes_") else "regression"
    if task == "regression" and y.dtype.kind in "USO":
        raise InvalidInput(f"{data}: the target holds texts, and the model predicts numbers")
    if (y.ndim == 2) != (task == "regression" and not getattr(loaded.machine, "_single", True)):
        raise InvalidInput(f"{data}: does not have the number of targets the model predicts; name them with --target")
    facts = scores.judge(task, loaded, read.X, y, seed)
    _show({"task": task, **about} | facts, as_json)


def _show(facts: dict[str, Any], as_json: bool) -> None:
    """The facts, for programs or for people."""
    if as_json:
        print_json(facts)
    else:
        Console().print(table(_rows(facts)))


def _rows(facts: dict[str, Any]) -> dict[str, str]:
    """The facts for people."""
    rows = {"machine": facts["machine"], "points": str(facts["points"])}
    for name in ("accuracy", "balanced accuracy", "macro f1", "auc", "r2", "rmse", "mae", "pairs in order"):
        if facts.get(name) is not None:
            interval = facts.get(f"{name} interval")
            between = "" if interval is None else f"  (95 %: {interval[0]:.4g} to {interval[1]:.4g})"
            rows[name] = f"{facts[name]:.4g}{between}"
    for label, found in facts.get("classes", {}).items():
        rows[f"class {label}"] = (
            f"{found['points']} points, recall {found['recall']:.1%}, precision {found['precision']:.1%}"
        )
    return rows
