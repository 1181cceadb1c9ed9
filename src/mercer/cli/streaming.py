"""`mercer fit --stream`: a file or pipe of any length, read once in blocks and learnt in fixed memory.

Each point is predicted before it is learnt, so that the mistakes of the stream are an honest estimate, of the machine
as it was on the way.
"""

import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.table import Table

from mercer.cli import exits, machines
from mercer.cli import model_input as points
from mercer.cli.files import STANDARD_INPUT, is_standard_input
from mercer.cli.interruption import uninterrupted
from mercer.cli.job import Setting, prepare
from mercer.cli.machines import Wish
from mercer.cli.output import plain, say, table, tell
from mercer.cli.progress import Quiet, following
from mercer.cli.task import settle, target_of
from mercer.data import Dataset, Standardise, read_blocks
from mercer.data.dataset import resolve_missing
from mercer.data.targets import Task
from mercer.errors import InvalidInput, MercerError

PIPE = Path("/dev/stdin")


@dataclass(frozen=True)
class Pace:
    """How a stream is learnt: newest terms kept, size of the steps, regularisation, and the labels to come."""

    budget: int
    rate: float | None
    regularisation: float
    classes: list[str] | None = None


@dataclass
class Learning:
    """What has been learnt so far, and how points are brought into its form."""

    machine: Any
    task: Task
    standardise: Standardise | None
    first: Dataset
    missing: str
    classes: Any = None

    def learn(self, block: Dataset) -> bool:
        """Learn the points of a block; False where Ctrl-C or the time limit ended it."""
        if self.missing == "impute":
            block = resolve_missing(block, "impute", self.first.imputed)
        else:
            block = points.without_missing(block, self.missing)
        X = block.X if self.standardise is None else self.standardise(block.X)
        named = {"classes": self.classes} if self.task == "classification" else {}
        self.machine.partial_fit(X, target_of(block), **named)
        return bool(self.machine.stopped_ == "seen")


def fit(source: points.Source, place: Path, wish: Wish, setting: Setting, pace: Pace, as_json: bool) -> None:
    """Learn the stream, write the model and say what is known about it."""
    data, format = source.path, source.format
    piped = is_standard_input(data)
    if piped and format is None:
        raise InvalidInput(f"{STANDARD_INPUT}: a stream cannot be looked at first; give --format svmlight or csv")
    blocks = read_blocks(PIPE if piped else data, target=points.column(source.target), format=format)
    began = time.perf_counter()
    found: Learning | None = None
    interrupted = False
    try:
        with following() as bar:
            bar.say("learning the stream")
            for learning in _learnt(blocks, wish, setting, pace, bar):
                found = learning
                if wish.time is not None and time.perf_counter() - began > wish.time:
                    break
    except KeyboardInterrupt:
        interrupted = True
    except MercerError:
        if found is not None:
            _write(place, found, data, time.perf_counter() - began)
            say(f"the points before the fault were learnt, and the machine is in {place}")
        raise
    if found is None:
        raise InvalidInput(f"{data}: interrupted before the first block" if interrupted else f"{data}: holds no points")
    interrupted |= found.machine.stopped_ == "interrupted"
    with uninterrupted():
        facts = _write(place, found, data, time.perf_counter() - began)
    tell(facts, as_json, _shown)
    if interrupted:
        say(f"interrupted; what was learnt is in {place}")
        raise typer.Exit(exits.INTERRUPTED)


def _learnt(blocks: Iterator[Dataset], wish: Wish, setting: Setting, pace: Pace, bar: Quiet) -> Iterator[Learning]:
    """The machine after each block."""
    learning: Learning | None = None
    for block in blocks:
        learning = learning or _begun(block, wish, setting, pace)
        going = learning.learn(block)
        machine = learning.machine
        bar.say(f"learning the stream: {machine.n_iter_} points, {len(machine.support_)} terms")
        yield learning
        if not going:
            return


def _begun(first: Dataset, wish: Wish, setting: Setting, pace: Pace) -> Learning:
    """The machine for a stream that begins with these points."""
    from mercer.online import OnlineSVC, OnlineSVR

    y = target_of(first)
    task: Task = "classification" if pace.classes is not None else settle(y, wish.task, first.source)
    if wish.machine.startswith("ls"):
        raise InvalidInput(f"--machine {wish.machine}: a stream is learnt by svc or svr")
    whole = first if setting.missing == "impute" else points.without_missing(first, setting.missing)
    train, standardise = prepare(whole, setting)
    X = train.X if standardise is None else standardise(train.X)
    options: dict[str, Any] = {
        "kernel": machines.kernel_of(wish, X, None), "budget": pace.budget, "regularisation": pace.regularisation,
        "memory": wish.memory, "random_state": wish.seed,
    }  # fmt: skip
    if pace.rate is not None:
        options["rate"] = pace.rate
    if task == "regression":
        spread = float(np.std(y)) or 1.0
        tube = 0.1 * spread if wish.epsilon is None else wish.epsilon
        if wish.epsilon is not None:
            options["nu"] = None  # a width that is given stays
        return Learning(OnlineSVR(epsilon=tube, **options), task, standardise, train, setting.missing)
    classes = np.unique(y) if pace.classes is None else np.array(pace.classes).astype(y.dtype)
    return Learning(OnlineSVC(**options), task, standardise, train, setting.missing, classes)


def _write(place: Path, found: Learning, data: Path, seconds: float) -> dict[str, Any]:
    """Write the model file; returns the facts of the stream."""
    from mercer.models import save

    machine = found.machine
    facts: dict[str, Any] = {
        "model": str(place),
        "task": found.task,
        "machine": type(machine).__name__,
        "points": machine.n_iter_,
        "features": found.first.d,
        "parameters": machines.parameters(machine) | {"budget": machine.budget, "rate": machine.rate},
        "terms": len(machine.support_),
        "mistakes": machine.mistakes_,
        "mean loss": machine.progressive_loss_,
        "dropped": machine.truncation_error_,
        "stopped": machine.stopped_,
        "seconds": seconds,
    }
    recipe = points.recipe(replace(found.first, source=""), "impute" if found.missing == "impute" else "refuse")
    notes = plain(facts | {"recipe": recipe, "data": str(data), "command": shlex.join(["mercer", *sys.argv[1:]])})
    save(machine, place, standardise=found.standardise, feature_names=found.first.feature_names, notes=notes)
    return facts


def _shown(facts: dict[str, Any]) -> Table:
    counted = "wrong labels" if facts["task"] == "classification" else "beyond the tube"
    rows = {
        "data": f"{facts['points']} points, {facts['features']} features, each learnt once",
        "machine": f"{facts['machine']}, {facts['parameters']['kernel']}",
        "terms": f"{facts['terms']} of at most {facts['parameters']['budget']}; what was dropped has a norm of at most "
        f"{facts['dropped']:.3g}",
        "before learning": f"{facts['mistakes']:.2%} {counted}, mean loss {facts['mean loss']:.4g}",
        "certificate": "none: a stream has no objective that could be bounded",
        "seconds": f"{facts['seconds']:.1f}",
        "model": facts["model"],
    }
    return table(rows)
