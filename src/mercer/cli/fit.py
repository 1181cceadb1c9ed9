"""`mercer fit`: from a data file to a tuned, certified model with an honest estimate of its error."""

import importlib
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from mercer.cli import exits, job, machines, options, points, scores
from mercer.cli.checkpoint import Checkpoint, fingerprint
from mercer.cli.machines import Wish
from mercer.cli.output import plain, print_json, table
from mercer.cli.progress import following
from mercer.cli.task import target_of
from mercer.data import Dataset
from mercer.data.files import stem_and_format
from mercer.errors import InvalidInput

REPORT_SECONDS = 20.0  # for what a report trains again


def fit(
    data: options.Data,
    model: Annotated[
        Path | None, typer.Option(help="Model file to write; by default the name of the data with .mercer, here.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="HTML report to write; by default none.", show_default=False)
    ] = None,
    machine: options.Machine = "auto",
    kernel: options.KernelChoice = "gaussian",
    C: options.Price = None,
    sigma: options.Sigma = None,
    gamma: options.Gamma = None,
    degree: options.Degree = 3,
    epsilon: options.Epsilon = None,
    tune: Annotated[bool, typer.Option("--tune/--no-tune", help="Choose the parameters that are not given.")] = True,
    probability: Annotated[
        bool, typer.Option("--probability", help="Also calibrate class probabilities, for predict --proba (svc).")
    ] = False,
    target: options.Target = None,
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
    checkpoint: Annotated[Path | None, typer.Option(help="File that keeps what a killed run has reached.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint, where there is one.")] = False,
    as_json: options.Json = False,
) -> None:
    """Train the best kernel machine for a data file, and write it to a model file, with a report.

    Classes and measurements are told apart by the target. A share of the points is held out to estimate the error; the
    parameters are chosen on the others, and the model is then trained on all points with them. Ctrl-C, or the end of
    --time, keeps the best machine so far: the model is written, and the exit code after Ctrl-C is 130.
    """
    wish = Wish(
        machine, kernel, C, machines.width_of(sigma, gamma), degree, epsilon, tune,
        probability=probability, memory=memory, time=time, seed=seed,
    )  # fmt: skip
    setting = job.Setting(scale, test_fraction, refit, missing)
    place = model or Path(stem_and_format(data)[0] + ".mercer")
    refuse_unwritable(place, *([] if report is None else [report]))
    if report is not None:
        importlib.import_module("mercer.report")  # says now, not after the work, when its packages are missing
    read = points.read_points(data, target=target, format=format, missing=missing)
    if target_of(read).ndim == 2 and report is not None:
        raise InvalidInput(f"{data}: has several targets, and a report is about one; leave out --report")
    state = Checkpoint(checkpoint, fingerprint(read, wish, test=test_fraction, scale=scale, missing=missing), resume)
    with following(state.hook) as bar:
        outcome = job.run(read, wish, setting, bar, state)
    facts = write_model(place, outcome, read, wish)
    if not outcome.interrupted:
        state.finish()
    if report is not None and not outcome.interrupted:
        try:
            with following() as bar:
                bar.say("drawing the report")
                facts["report"] = str(write_report(report, outcome, wish))
        except KeyboardInterrupt:
            outcome.interrupted = True
    if as_json:
        print_json(facts)
    else:
        show(facts)
    if outcome.interrupted:
        typer.echo(f"mercer: interrupted; the best machine so far is in {place}", err=True)
        raise typer.Exit(exits.INTERRUPTED)


def refuse_unwritable(*places: Path) -> None:
    """Say before the work begins that a result could not be written."""
    for place in places:
        if place.is_dir():
            raise InvalidInput(f"{place}: is a folder; name a file in it")
        if not place.resolve().parent.is_dir():
            raise InvalidInput(f"{place}: the folder {place.resolve().parent} does not exist; create it first")


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
    if outcome.selection is not None:
        facts["leave-one-out" if outcome.choice.tuning == "loo" else "cross-validation"] = outcome.selection
    if outcome.estimate is not None:
        facts["held out"] = outcome.estimate
    name, value, interval = scores.main_score(outcome.estimate or outcome.selection or {"r2": None})
    facts |= {name: value, f"{name} interval": interval} if value is not None else {}
    return facts | {"seconds": outcome.seconds, "interrupted": outcome.interrupted}


def write_model(place: Path, outcome: job.Outcome, source: Dataset, wish: Wish) -> dict[str, Any]:
    """Write the model file; returns the facts of the fit."""
    from mercer.models import save

    facts = facts_of(outcome, source) | {"command": command_line(), "seed": wish.seed}
    notes = facts | {"recipe": points.recipe(replace(outcome.data, source="")), "data": source.source}
    save(
        outcome.machine,
        place,
        standardise=outcome.standardise,
        feature_names=outcome.data.feature_names,
        notes=plain(notes),
    )
    return {"model": str(place)} | facts


def write_report(place: Path, outcome: job.Outcome, wish: Wish) -> Path:
    """The report of the machine that was scored on points it had not seen, else of the only one."""
    from mercer.report import write_report as write

    told = outcome.judged or outcome
    held = told.held_out
    notes = [*told.choice.reasons]
    if outcome.judged is not None:
        notes.append("the model file holds a machine with these parameters trained on all points, held-out ones too")
    return write(
        place,
        told.machine,
        told.prepared(told.data),
        told.data.y,
        None if held is None else told.prepared(held),
        None if held is None else held.y,
        tuned=told.searching,
        command=command_line(),
        seconds=outcome.seconds,
        data_name=Path(told.data.source).name or "the data",
        feature_names=told.data.feature_names,
        notes=[f"{note[0].upper()}{note[1:]}." for note in notes],
        time_limit=REPORT_SECONDS,
        random_state=wish.seed,
    )


def show(facts: dict[str, Any]) -> None:
    """The facts of a fit for people."""
    found, certified = facts["parameters"], facts["certificate"]
    rows = {
        "data": f"{facts['points']} points, {facts['features']} features",
        "machine": f"{facts['machine']}: {'; '.join(facts['reasons'])}",
        "parameters": f"C = {found['C']:.4g}, {found['kernel']}",
        "certificate": f"objective {certified['objective']:.6g}, relative gap {certified['relative gap']:.1e}, "
        f"{certified['stopped']}",
    }
    if "support vectors" in certified:
        rows["support vectors"] = str(certified["support vectors"])
    for name in ("leave-one-out", "cross-validation", "held out"):
        if name in facts:
            rows[name] = f"{scores.shown(facts[name])}, {facts[name]['points']} points"
    rows["seconds"] = f"{sum(facts['seconds'].values()):.1f}"
    rows |= {name: facts[name] for name in ("model", "report") if name in facts}
    Console().print(table(rows))
