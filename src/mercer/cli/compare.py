"""`mercer compare`: several machines on the same folds, with paired tests and effect sizes."""

from dataclasses import dataclass, replace
from itertools import combinations
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from mercer.cli import ensembles, job, machines, options, paired, schemes, scores
from mercer.cli import model_input as points
from mercer.cli.machines import Wish
from mercer.cli.output import tell
from mercer.cli.progress import Quiet, following
from mercer.cli.task import groups_of, hint, settle, target_of
from mercer.data import Dataset
from mercer.data.dataset import resolve_missing
from mercer.data.targets import Task
from mercer.errors import InvalidInput
from mercer.selection.folds import assign

CANDIDATES: dict[str, dict[str, Any]] = {
    "lssvc": {"machine": "lssvc"},
    "lssvc-linear": {"machine": "lssvc", "kernel": "linear"},
    "svc": {"machine": "svc"},
    "svc-ovr": {"machine": "svc", "multiclass": "ovr"},
    "svc-linear": {"machine": "svc", "kernel": "linear"},
    "lssvr": {"machine": "lssvr"},
    "lssvr-linear": {"machine": "lssvr", "kernel": "linear"},
    "svr": {"machine": "svr"},
    "svr-linear": {"machine": "svr", "kernel": "linear"},
    "ordinal": {"machine": "ordinal"},
    "ordinal-linear": {"machine": "ordinal", "kernel": "linear"},
    "odds": {"machine": "odds"},
    "odds-linear": {"machine": "odds", "kernel": "linear"},
    "rank": {"machine": "rank"},
    "rank-linear": {"machine": "rank", "kernel": "linear"},
    **{name: {"machine": base} for name, (base, _) in (schemes.SCHEMES | ensembles.ENSEMBLES).items()},
}
GROUPS = schemes.GROUPS | ensembles.GROUPS
# Machines that may be compared in a task beside its own: a classifier answers with a rank, a regression orders.
LABELLED: tuple[Task, ...] = ("classification", "ordinal")
BESIDE: dict[Task, Task] = {"ordinal": "classification", "rank": "regression"}


@dataclass
class Line:
    """One machine: its score in every fold, and which points it had right (classes and ranks)."""

    name: str
    scores: list[float]
    right: NDArray[np.bool_]
    seconds: float = 0.0


def compare(
    data: options.Data,
    machine: Annotated[
        str | None,
        typer.Option(
            help=f"Machines, with commas between: {', '.join(CANDIDATES)}; or {', '.join(GROUPS)} for all of "
            "their kind.",
            show_default="by task",
        ),
    ] = None,
    folds: Annotated[int, typer.Option(help="Number of folds.")] = 5,
    repeats: Annotated[int, typer.Option(help="How often the folds are drawn anew.")] = 1,
    tune: Annotated[
        bool, typer.Option("--tune/--no-tune", help="Choose C and sigma in every fold, on its training points.")
    ] = True,
    C: options.Cost = None,
    sigma: options.Sigma = None,
    task: options.TaskChoice = None,
    target: options.Target = None,
    groups: options.Groups = None,
    format: options.Format = None,
    missing: options.MissingValues = "refuse",
    scale: options.Scale = True,
    memory: options.Memory = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Compare machines, ensembles or multiclass schemes on the same folds.

    Every pair gets the corrected resampled t test of the fold scores, Cohen's d, and for classes McNemar's exact test;
    p-values are Holm's, adjusted for the number of pairs. Parameters are chosen inside every fold.

    With --task ordinal the measure is the error in ranks, and classifiers may take part; with --task rank it is the
    share of pairs in order inside queries, which no fold parts, and regressions may take part.
    """
    read = points.read_points(points.Source(data, target, format, groups), missing)
    y = target_of(read)
    if y.ndim == 2:
        raise InvalidInput(f"{data}: has several targets; name one of them with --target")
    wanted = _names(machine)
    implied = {machines.TASKS[CANDIDATES[name]["machine"]] for name in wanted}
    known: Task | None = task or next(iter([*(implied & BESIDE.keys()), *implied]), None)
    settled = settle(y, known, read.source)
    hint(read, settled, known)
    wanted = wanted or _default(settled, len(np.unique(y)))
    if len(wanted) < 2:
        raise InvalidInput("--machine must name at least two machines to compare")
    if not 2 <= folds <= read.n or repeats < 1:
        raise InvalidInput(f"--folds must be from 2 to the {read.n} points, and --repeats at least 1")
    base = Wish(C=C, sigma=sigma, tune=tune, memory=memory, seed=seed)
    wishes = {name: replace(base, **CANDIDATES[name]) for name in wanted}
    if any(wish.task not in (settled, BESIDE.get(settled)) for wish in wishes.values()):
        raise InvalidInput(
            f"--machine {machine}: cannot be compared with each other, because they do different tasks; with --task "
            "ordinal classifiers can, with --task rank regressions"
        )
    setting = job.Setting(scale=scale, missing=missing)
    with following() as bar:
        lines = _run(read, y, settled, wishes, setting, folds, repeats, bar)
    facts = _facts(lines, settled, folds, repeats, read)
    tell(facts, as_json, _show)


def _names(machine: str | None) -> list[str]:
    """The machines asked for; each must be known and named once."""
    words = [] if machine is None else [word.strip() for word in machine.split(",") if word.strip()]
    names = [name for word in words for name in GROUPS.get(word, (word,))]
    for name in names:
        if name not in CANDIDATES:
            raise InvalidInput(f"--machine {name}: is not one of {', '.join(CANDIDATES)}")
    if len(set(names)) < len(names):
        raise InvalidInput(f"--machine {machine}: names a machine twice")
    return names


def _default(task: Task, classes: int) -> list[str]:
    if task in BESIDE:
        return ["ordinal", "odds", "svc"] if task == "ordinal" else ["rank", "rank-linear", "lssvr"]
    if task == "regression":
        return ["lssvr", "svr", "lssvr-linear"]
    return ["lssvc", "svc", "svc-ovr"] if classes > 2 else ["lssvc", "svc", "lssvc-linear"]


def fold_of(
    y: NDArray[Any], task: Task, folds: int, random: np.random.Generator, query: NDArray[np.int64] | None = None
) -> NDArray[np.intp]:
    """The fold of each point (n,); classes are dealt out evenly, and no query of a ranking is parted."""
    codes = np.unique(y, return_inverse=True)[1] if task in ("classification", "ordinal") else None
    queries = None if query is None or task != "rank" else np.unique(query, return_inverse=True)[1]
    if queries is not None and queries.max() + 1 < folds:
        raise InvalidInput(f"--folds must be at most the {queries.max() + 1} queries, got {folds}")
    return assign(len(y), folds, codes, random, queries)


def _score(task: Task, y: NDArray[Any], predicted: NDArray[Any], labels: Any, queries: Any) -> float:
    """The measure of a task on held-out points; NaN where there is none."""
    if task == "classification":
        return float(np.mean(predicted == y))
    if task == "ordinal":
        return float(np.mean(np.abs(np.searchsorted(labels, predicted) - np.searchsorted(labels, y))))
    if task == "rank":
        return float(scores.of_order(y, predicted, queries)["pairs in order"])
    r2 = scores.of_numbers(y, predicted)["r2"]
    return np.nan if r2 is None else float(r2)


def _run(
    data: Dataset, y: NDArray[Any], task: Task, wishes: dict[str, Wish], setting: job.Setting, folds: int,
    repeats: int, bar: Quiet,
) -> list[Line]:  # fmt: skip
    """Train and score every machine in every fold."""
    lines = [Line(name, [], np.zeros((repeats, data.n), dtype=bool)) for name in wishes]
    random, labels = np.random.default_rng(next(iter(wishes.values())).seed), np.unique(y)
    for repeat in range(repeats):
        fold = fold_of(y, task, folds, random, data.query)
        for f in range(folds):
            outside = np.flatnonzero(fold == f)
            train, standardise = job.prepare(data.take(fold != f), setting)
            test = data.take(outside)
            if setting.missing == "impute":
                test = resolve_missing(test, "impute", train.imputed)
            X, Z = (part.X if standardise is None else standardise(part.X) for part in (train, test))
            part = schemes.Fold(X, target_of(train))
            for line, wish in zip(lines, wishes.values()):
                bar.say(f"{line.name}, fold {f + 1} of {folds}")
                began = perf_counter()
                machine = _fitted(line.name, wish, part, **groups_of(train, wish.task or task))
                predicted = machine.predict(Z)
                line.seconds += perf_counter() - began
                if task in LABELLED:
                    line.right[repeat, outside] = predicted == y[outside]
                line.scores.append(_score(task, y[outside], predicted, labels, test.query))
    return lines


def _fitted(name: str, wish: Wish, fold: schemes.Fold, **groups: Any) -> Any:
    """A trained machine; one against the rest takes the parameters that are found for pairs."""
    X, y = fold.X, fold.y
    task = settle(y, wish.task, "a training fold", part=True)
    if name in schemes.SCHEMES:
        return schemes.trained(name, wish, fold)
    if name in ensembles.ENSEMBLES:
        return ensembles.trained(name, wish, fold)
    choice = machines.choose(wish, task, len(y))
    machine = machines.train(machines.build(wish, choice, X, y, **groups), X, y, **groups)
    if choice.tuning == "cv":
        machine = machine.best_estimator_
        if wish.multiclass == "ovr" and len(machine.classes_) > 2:
            machine = machines.train(machine.set_params(multiclass="ovr"), X, y)
    return machine


def _facts(lines: list[Line], task: Task, folds: int, repeats: int, data: Dataset) -> dict[str, Any]:
    """Scores of every machine, and the tests of every pair."""
    share = 1.0 / (folds - 1)
    pairs = []
    for a, b in combinations(lines, 2):
        differences = np.array(a.scores) - np.array(b.scores)
        known = differences[np.isfinite(differences)]
        if len(known) < 2:
            raise InvalidInput(f"{data.source}: the target is constant in too many folds; take fewer folds")
        found = paired.corrected_t(known, share)
        pair: dict[str, Any] = {
            "first": a.name,
            "second": b.name,
            "difference": found.difference,
            "difference interval": [found.low, found.high],
            "t": found.t if np.isfinite(found.t) else None,
            "p": found.p,
            "effect size d": found.d,
        }
        if task in LABELLED:
            only_a, only_b, p = paired.mcnemar(a.right[0], b.right[0])
            pair |= {
                "right only by first": only_a,
                "right only by second": only_b,
                "McNemar p": p,
                "share of disagreements won": only_a / (only_a + only_b) if only_a + only_b else 0.5,
            }
        pairs.append(pair)
    for name in ("p", "McNemar p") if task in LABELLED else ("p",):
        for pair, adjusted in zip(pairs, paired.holm([pair[name] for pair in pairs])):
            pair[f"{name} adjusted"] = adjusted
    return {
        "task": task,
        "measure": machines.CROSS_VALIDATED[task],
        "points": data.n,
        "folds": folds,
        "repeats": repeats,
        "machines": {
            line.name: {
                "mean": float(np.nanmean(line.scores)),
                "standard deviation": float(np.nanstd(line.scores, ddof=1)),
                "scores": [None if np.isnan(score) else score for score in line.scores],
                "seconds": line.seconds,
            }
            for line in lines
        },
        "pairs": pairs,
    }


def _show(facts: dict[str, Any]) -> None:
    """Two tables: machines, and pairs."""
    console = Console()
    sign = 1.0 if facts["measure"] == "rank error" else -1.0
    first = Table("machine", facts["measure"], "sd over folds", "s", box=None, title_justify="left")
    for name, found in sorted(facts["machines"].items(), key=lambda item: sign * item[1]["mean"]):
        spread = f"{found['standard deviation']:.4f}"
        first.add_row(name, f"{found['mean']:.4f}", spread, f"{found['seconds']:.1f}")
    console.print(first)
    second = Table("pair", "difference (95 %)", "p", "effect d", box=None)
    if facts["task"] in LABELLED:
        second.add_column("McNemar p")
    for pair in facts["pairs"]:
        low, high = pair["difference interval"]
        row = [
            f"{pair['first']} - {pair['second']}",
            f"{pair['difference']:+.4f} ({low:+.4f} to {high:+.4f})",
            f"{pair['p adjusted']:.3g}",
            f"{pair['effect size d']:+.2f}",
        ]
        second.add_row(*row, *([f"{pair['McNemar p adjusted']:.3g}"] if "McNemar p" in pair else []))
    console.print(second)
