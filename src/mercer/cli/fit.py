"""`mercer fit`: from a data file to a tuned, certified model with an honest estimate of its error."""

import importlib
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from mercer.cli import exits, job, machines, options, scores, streaming
from mercer.cli import model_input as points
from mercer.cli.checkpoint import Checkpoint, fingerprint
from mercer.cli.files import model_place, refuse_unwritable, rescue_places
from mercer.cli.interruption import uninterrupted
from mercer.cli.machines import Wish
from mercer.cli.output import plain, say, table, tell
from mercer.cli.progress import following
from mercer.cli.task import target_of
from mercer.data import Dataset
from mercer.errors import CannotWrite, InvalidInput
from mercer.problems.certificate import gap_text

REPORT_SECONDS = 20.0  # for what a report trains again


def fit(
    data: options.Data,
    model: Annotated[
        Path | None, typer.Option(help="Model file to write; by default the name of the data with .mercer, here.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file that has the default name, or holds no model.")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(help="HTML report to write; by default none.", show_default=False)
    ] = None,
    machine: options.Machine = "auto",
    kernel: options.KernelChoice = "gaussian",
    C: options.Cost = None,
    sigma: options.Sigma = None,
    gamma: options.Gamma = None,
    degree: options.Degree = 3,
    epsilon: options.Epsilon = None,
    tune: Annotated[bool, typer.Option("--tune/--no-tune", help="Choose the parameters that are not given.")] = True,
    probability: Annotated[
        bool,
        typer.Option(
            "--probability", help="Also calibrate class probabilities, for predict --proba (svc; logistic has them)."
        ),
    ] = False,
    task: options.TaskChoice = None,
    target: options.Target = None,
    groups: options.Groups = None,
    format: options.Format = None,
    missing: options.MissingValues = "refuse",
    scale: options.Scale = True,
    test_fraction: Annotated[float, typer.Option(help="Share of the points held out for the estimate.")] = 0.2,
    refit: Annotated[
        bool,
        typer.Option("--refit/--no-refit", help="After the estimate, train on all points with the same parameters."),
    ] = True,
    device: options.Device = "cpu",
    memory: options.Memory = None,
    time: options.Time = None,
    seed: options.Seed = 0,
    checkpoint: options.CheckpointFile = None,
    resume: options.Resume = False,
    stream: Annotated[
        bool, typer.Option("--stream", help="Learn each point once, in fixed memory; for files or pipes of any length.")
    ] = False,
    budget: Annotated[int, typer.Option(help="Terms that a machine of --stream keeps, the newest.")] = 5000,
    rate: Annotated[float | None, typer.Option(help="Size of the first step of --stream.", show_default="auto")] = None,
    regularisation: Annotated[float, typer.Option(help="Share of f that a unit step of --stream forgets.")] = 1e-4,
    classes: Annotated[
        str | None, typer.Option(help="All labels of --stream, by commas, where its first block may lack some.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Train the best kernel machine for a data file, and write it to a model file, with a report.

    Classes and measurements are told apart by the target; ordered classes (--task ordinal) and orders (--task rank,
    with the queries of qid: or --groups) have to be asked for. A share of the points is held out to estimate the error;
    the parameters are chosen on the others, and the model is then trained on all points with them. Ctrl-C, or the end
    of --time, keeps the best machine so far: the model is written, and the exit code after Ctrl-C is 130.

    With --stream the file, or - for a pipe, is read once in blocks; each point is predicted, counted and learnt. The
    first block settles means, scales, width and labels. Ctrl-C keeps what was learnt.
    """
    wish = Wish(
        machine, kernel, C, machines.width_of(sigma, gamma), degree, epsilon, tune,
        probability=probability, memory=memory, time=time, seed=seed, asked=task,
    )  # fmt: skip
    setting = job.Setting(scale, test_fraction, refit, missing)
    place = model_place(model, data, overwrite=overwrite, resume=resume)
    if stream:
        refused = {"--report": report, "--checkpoint": checkpoint, "--C": C, "--probability": probability or None}
        if wish.task in ("ordinal", "rank"):
            raise InvalidInput(f"--task {wish.task}: not with --stream, which learns classes and numbers")
        if given := [name for name, value in refused.items() if value is not None]:
            raise InvalidInput(f"{', '.join(given)}: not with --stream, which sees each point once")
        refuse_unwritable(place, inputs=(data,))
        pace = streaming.Pace(budget, rate, regularisation, None if classes is None else classes.split(","))
        streaming.fit(points.Source(data, target, format), place, wish, setting, pace, as_json)
        return
    refuse_unwritable(*(file for file in (place, report, checkpoint) if file is not None), inputs=(data,))
    if report is not None:
        importlib.import_module("mercer.report")  # says now, not after the work, when its packages are missing
    read = points.read_points(points.Source(data, target, format, groups), missing)
    if target_of(read).ndim == 2 and report is not None:
        raise InvalidInput(f"{data}: has several targets, and a report is about one; leave out --report")
    state = Checkpoint(checkpoint, fingerprint(read, wish, test=test_fraction, scale=scale, missing=missing), resume)

    def keep(reached: job.Outcome) -> str:
        reached.interrupted = True
        return f"the best machine so far is in {write_model(place, reached, read, wish)['model']}"

    with following(state.hook, keep=keep) as bar:
        outcome = job.run(read, wish, setting, bar, state)
    with uninterrupted():
        facts = write_model(place, outcome, read, wish)
        if not outcome.interrupted:
            state.finish()
    elsewhere = facts["model"] != str(place)
    if report is not None and not outcome.interrupted:
        try:
            with following() as bar:
                bar.say("drawing the report")
                facts["report"] = str(write_report(report, outcome, wish))
        except KeyboardInterrupt:
            outcome.interrupted = True
        except CannotWrite as error:
            say(str(error))
            elsewhere = True
    tell(facts, as_json, shown)
    if outcome.interrupted:
        say(f"interrupted; the best machine so far is in {facts['model']}")
        raise typer.Exit(exits.INTERRUPTED)
    if elsewhere:
        raise typer.Exit(exits.ELSEWHERE)


def command_line() -> str:
    """The command that is running, to repeat it."""
    return shlex.join(["mercer", *sys.argv[1:]])


def facts_of(outcome: job.Outcome, source: Dataset) -> dict[str, Any]:
    """All that is known about an outcome, in texts and numbers."""
    facts: dict[str, Any] = {
        "task": outcome.task,
        "machine": type(outcome.machine).__name__,
        "reasons": list(outcome.choice.reasons),
        "points": source.n,
        "features": source.d,
        "parameters": machines.parameters(outcome.machine),
        "certificate": machines.certificate(outcome.machine),
        "standardised": outcome.standardise is not None,
    }
    if outcome.task in ("classification", "ordinal"):
        kept, other = hasattr(outcome.machine, "predict_proba"), "odds" if outcome.task == "ordinal" else "logistic"
        facts["probabilities"] = "yes" if kept else f"no; --machine {other} gives them to predict --proba"
    if outcome.task == "rank" and source.query is not None:
        facts["queries"] = len(np.unique(source.query))
    if outcome.selection is not None:
        facts["leave-one-out" if outcome.choice.tuning == "loo" else "cross-validation"] = outcome.selection
    if outcome.estimate is not None:
        facts["held out"] = outcome.estimate
    name, value, interval = scores.main_score(outcome.estimate or outcome.selection or {"r2": None})
    facts |= {name: value, f"{name} interval": interval} if value is not None else {}
    return facts | {"seconds": outcome.seconds, "interrupted": outcome.interrupted}


def write_model(place: Path, outcome: job.Outcome, source: Dataset, wish: Wish) -> dict[str, Any]:
    """Write the model file, to another place where this one fails; returns the facts of the fit."""
    from mercer.models import save

    facts = facts_of(outcome, source) | {"command": command_line(), "seed": wish.seed}
    recipe = points.recipe(replace(outcome.data, source=""), "impute" if outcome.imputes else "refuse")
    notes = plain(facts | {"recipe": recipe, "data": source.source})
    names = outcome.data.feature_names

    def write(file: Path) -> None:
        save(outcome.machine, file, standardise=outcome.standardise, feature_names=names, notes=notes)

    return {"model": str(written(place, write))} | facts


def written(place: Path, write: Callable[[Path], None]) -> Path:
    """Where a result was written: its place, else the first other folder that takes it."""
    try:
        write(place)
        return place
    except CannotWrite as error:
        say(str(error))
        for other in rescue_places(place):
            try:
                write(other)
            except CannotWrite as failure:
                say(str(failure))
                continue
            say(f"the model is in {other} instead; move it before the folder is emptied")
            return other
        raise


def write_report(place: Path, outcome: job.Outcome, wish: Wish) -> Path:
    """The report of the machine that was scored on points it had not seen, else of the only one."""
    from mercer.report import write_report as write

    told = outcome.judged or outcome
    held = told.held_out
    notes = [*told.choice.reasons]
    if outcome.judged is not None:
        notes.append("the model file holds a machine with these parameters trained on all points, held-out ones too")
    tests: dict[str, Any] = {} if held is None else {"X_test": told.prepared(held), "y_test": held.y}
    if told.task == "rank":
        tests |= {"groups": told.data.query, "groups_test": None if held is None else held.query}
    return write(
        place,
        told.machine,
        told.prepared(told.data),
        told.data.y,
        **tests,
        tuned=told.searching,
        command=command_line(),
        seconds=outcome.seconds,
        data_name=Path(told.data.source).name or "the data",
        source=told.data,
        notes=[f"{note[0].upper()}{note[1:]}." for note in notes],
        time_limit=REPORT_SECONDS,
        random_state=wish.seed,
    )


def shown(facts: dict[str, Any]) -> Table:
    """The facts of a fit for people."""
    found, certified = facts["parameters"], facts["certificate"]
    rows = {
        "data": f"{facts['points']} points, {facts['features']} features"
        + (f", {facts['queries']} queries" if "queries" in facts else ""),
        "machine": f"{facts['machine']}: {'; '.join(facts['reasons'])}",
        "parameters": f"C = {found['C']:.4g}, {found['kernel']}",
        "certificate": f"objective {certified['objective']:.6g}, relative gap {gap_text(certified['relative gap'])}, "
        f"{certified['stopped']}",
    }
    if "support vectors" in certified:
        rows["support vectors"] = str(certified["support vectors"])
    for name in ("leave-one-out", "cross-validation", "held out"):
        if name in facts:
            rows[name] = f"{scores.shown(facts[name])}, {facts[name]['points']} points"
    if "probabilities" in facts:
        rows["probabilities"] = facts["probabilities"]
    rows["seconds"] = f"{sum(facts['seconds'].values()):.1f}"
    rows |= {name: facts[name] for name in ("model", "report") if name in facts}
    return table(rows)
