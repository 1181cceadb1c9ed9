"""The main job: from a data set to a tuned and certified model with an honest estimate of its error.

    1. a share of the points is held out;
    2. means, scales and parameters are learnt on the others, and the machine is trained on them;
    3. it is scored on the points held out: the estimate;
    4. with the same parameters a machine is trained on all points, which can only help: the model.

An interruption or the end of the time keeps the best machine so far.
"""

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli import machines, scores
from mercer.cli import model_input as points
from mercer.cli.checkpoint import Checkpoint
from mercer.cli.machines import Choice, Wish
from mercer.cli.progress import Quiet
from mercer.cli.task import groups_of, hint, settle, target_of
from mercer.data import Dataset, Standardise
from mercer.data.dataset import resolve_missing
from mercer.data.targets import Task
from mercer.errors import InvalidInput

FEWEST_HELD_OUT = 10


@dataclass
class Outcome:
    """A trained model and all that is known about it."""

    task: Task
    choice: Choice
    machine: Any
    standardise: Standardise | None
    data: Dataset
    """The points the machine was trained on, missing values filled in."""
    held_out: Dataset | None = None
    estimate: dict[str, Any] | None = None
    selection: dict[str, Any] | None = None
    """Leave-one-out or cross-validation at the chosen parameters."""
    searching: Any = None
    """The estimator that found the parameters by cross-validation, where there was one."""
    interrupted: bool = False
    imputes: bool = False
    """Whether missing values are replaced by means, in training and in prediction."""
    seconds: dict[str, float] = field(default_factory=dict)
    judged: "Outcome | None" = None
    """The machine that was scored on the points held out, where another one was trained on all points since."""

    def prepared(self, data: Dataset) -> Any:
        """Points as the machine takes them."""
        return data.X if self.standardise is None else self.standardise(data.X)


@dataclass(frozen=True)
class Setting:
    """How the job is done, beyond the wishes for the machine."""

    scale: bool = True
    test_fraction: float = 0.2
    refit: bool = True
    missing: str = "refuse"

    def __post_init__(self) -> None:
        if not 0.0 <= self.test_fraction < 1.0:
            raise InvalidInput(f"--test-fraction must be at least 0 and below 1, got {self.test_fraction:g}")


def split(
    y: NDArray[Any], task: Task, fraction: float, seed: int, query: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Training and held-out points, the classes in both in proportion; none held out where there are too few.

    Of a ranking whole queries are held out.
    """
    n = len(y)
    random = np.random.default_rng(seed)
    if task == "rank" and query is not None:
        return _whole_queries(query, fraction, random)
    whole = task in ("regression", "rank")
    groups = [np.arange(n)] if whole else [np.flatnonzero(y == label) for label in np.unique(y)]
    held = [random.permutation(group)[: int(fraction * len(group) + 0.5)] for group in groups]
    held = [part[: max(0, len(group) - 1)] for part, group in zip(held, groups)]
    test = np.sort(np.concatenate(held))
    if len(test) < FEWEST_HELD_OUT:
        test = test[:0]
    return np.setdiff1d(np.arange(n), test), test


def _whole_queries(
    query: NDArray[np.int64], fraction: float, random: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Training and held-out points, so many of the queries in the latter, two at least; none where there are fewer."""
    names = random.permutation(np.unique(query))
    count = min(int(fraction * len(names) + 0.5), len(names) - 2)
    held = np.isin(query, names[: count if count >= 2 else 0])
    return np.flatnonzero(~held), np.flatnonzero(held)


def prepare(train: Dataset, setting: Setting) -> tuple[Dataset, Standardise | None]:
    """Missing values filled in and the standardisation learnt, from these points alone."""
    if setting.missing == "impute":
        train = points.imputed(train)
    return train, Standardise.learn(train.X) if setting.scale else None


def run(data: Dataset, wish: Wish, setting: Setting, bar: Quiet, checkpoint: Checkpoint) -> Outcome:
    """Do the whole job."""
    began = time.perf_counter()
    y = target_of(data)
    task = settle(y, wish.task, data.source)
    hint(data, task, wish.task)
    inside, outside = split(y, task, setting.test_fraction, wish.seed, data.query)
    outcome = _trained(data.take(inside) if len(outside) else data, task, wish, setting, bar, checkpoint, "first")
    bar.reached = outcome
    if len(outside) == 0 or bar.hurried:
        return outcome
    try:
        bar.say(f"scoring on the {len(outside)} points held out")
        estimate(outcome, data.take(outside), wish.seed, setting.missing)
        if setting.refit and not outcome.interrupted and outcome.machine.stopped_ != "time":
            again = fixed(outcome, wish, time.perf_counter() - began)
            whole = _trained(data, task, again, setting, bar, checkpoint, "whole")
            if whole.machine.stopped_ in ("interrupted", "time"):
                outcome.interrupted |= whole.interrupted
            else:
                outcome.judged = replace(outcome)
                outcome.machine, outcome.standardise, outcome.data = whole.machine, whole.standardise, whole.data
                outcome.seconds = outcome.seconds | {"training on all points": whole.seconds["training"]}
    except KeyboardInterrupt:
        outcome.interrupted = True
    return outcome


def fixed(outcome: Outcome, wish: Wish, spent: float) -> Wish:
    """The same wishes with the parameters that were found, and the time that is left."""
    found = machines.parameters(outcome.machine)
    left = None if wish.time is None else max(0.1, wish.time - spent)
    return replace(
        wish,
        machine=outcome.choice.machine,
        C=found["C"],
        sigma=found.get("sigma", wish.sigma),
        epsilon=found.get("epsilon", wish.epsilon),
        tune=False,
        time=left,
    )


def _trained(
    data: Dataset, task: Task, wish: Wish, setting: Setting, bar: Quiet, checkpoint: Checkpoint, stage: str
) -> Outcome:
    """Learn the preparation, choose the parameters and train."""
    train, standardise = prepare(data, setting)
    X = train.X if standardise is None else standardise(train.X)
    y = target_of(train)
    choice = machines.choose(wish, task, train.n, 1 if y.ndim == 1 else y.shape[1])
    known = checkpoint.stages.get("chosen")
    if known is not None and choice.tuning != "given":
        wish = replace(wish, **known)
        choice = replace(choice, tuning="given", reasons=(*choice.reasons, "its parameters come from the checkpoint"))
    bar.say(f"training {choice.machine} on {'all ' if stage == 'whole' else ''}{train.n} points")
    began = time.perf_counter()
    groups = groups_of(train, task)
    machine = machines.build(wish, choice, X, y, checkpoint.search_file, **groups)
    if choice.tuning == "cv":
        bar.expect(wish.folds * (10 if wish.kernel in machines.WIDE and wish.sigma is None else 1))
    single = task == "regression" or (task == "classification" and len(np.unique(y)) == 2 and not wish.probability)
    with checkpoint.training(machine, stage, single):
        machines.train(machine, X, y, **groups)
    search, searching = getattr(machine, "search_", None), machine
    interrupted = machine.stopped_ == "interrupted"
    if search is not None:
        machine = machine.best_estimator_
        interrupted |= machine.stopped_ == "interrupted"
    if choice.tuning != "given" and not interrupted:
        found = machines.parameters(machine)
        checkpoint.done("chosen", {name: found[name] for name in ("C", "sigma", "epsilon") if name in found})
    return Outcome(
        task,
        choice,
        machine,
        standardise,
        train,
        selection=machines.leave_one_out(machine, task, y)
        or machines.cross_validation(search, task, choice.machine in machines.BY_LOSS),
        searching=searching if search is not None else None,
        interrupted=interrupted,
        imputes=setting.missing == "impute",
        seconds={"training": time.perf_counter() - began},
    )


def estimate(outcome: Outcome, held_out: Dataset, seed: int, missing: str) -> None:
    """Score the machine on points it has not seen."""
    if missing == "impute":
        held_out = resolve_missing(held_out, "impute", outcome.data.imputed)
    outcome.held_out = held_out
    outcome.estimate = scores.judge(
        outcome.task, outcome.machine, outcome.prepared(held_out), target_of(held_out), seed, held_out.query
    )
