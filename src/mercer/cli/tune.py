"""`mercer tune`: the best parameters for a data file, and all that were tried."""

import shlex
from typing import Annotated, Any, Literal

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from mercer.cli import exits, job, machines, options, scores
from mercer.cli import model_input as points
from mercer.cli.checkpoint import Checkpoint, fingerprint
from mercer.cli.files import refuse_unwritable
from mercer.cli.machines import Wish
from mercer.cli.output import shown, table, tell
from mercer.cli.progress import following
from mercer.cli.task import groups_of, hint, settle, target_of
from mercer.errors import InvalidInput

SHOWN = 8


def tune(
    data: options.Data,
    machine: options.Machine = "auto",
    kernel: options.KernelChoice = "gaussian",
    C: options.Cost = None,
    sigma: options.Sigma = None,
    degree: options.Degree = 3,
    epsilon: options.Epsilon = None,
    mode: Annotated[
        Literal["grid", "random", "halving"], typer.Option(help="How a cross-validation goes through its candidates.")
    ] = "grid",
    folds: Annotated[int, typer.Option(help="Number of folds of a cross-validation.")] = 5,
    task: options.TaskChoice = None,
    target: options.Target = None,
    groups: options.Groups = None,
    format: options.Format = None,
    missing: options.MissingValues = "refuse",
    scale: options.Scale = True,
    memory: options.Memory = None,
    time: options.Time = None,
    seed: options.Seed = 0,
    checkpoint: options.CheckpointFile = None,
    resume: options.Resume = False,
    as_json: options.Json = False,
) -> None:
    """Find the best C and sigma, and print them with the candidates that came near.

    Least squares is tuned by exact leave-one-out, the others by cross-validation on shared kernel values: ranks by
    their error, orders by the pairs that are right in whole queries that are held out.
    No model is written; the last line is the command that trains with what was found. With --checkpoint, a
    cross-validation keeps the candidates it has finished, and the same command with --resume goes on from there.
    """
    if checkpoint is not None:
        refuse_unwritable(checkpoint, inputs=(data,))
    wish = Wish(
        machine, kernel, C, sigma, degree, epsilon, memory=memory, time=time, seed=seed, folds=folds, asked=task
    )
    source = points.Source(data, target, format, groups)
    read = points.read_points(source, missing)
    y = target_of(read)
    settled = settle(y, wish.task, read.source)
    hint(read, settled, wish.task)
    train, standardise = job.prepare(read, job.Setting(scale=scale, missing=missing))
    X = train.X if standardise is None else standardise(train.X)
    choice = machines.choose(wish, settled, train.n, 1 if y.ndim == 1 else y.shape[1])
    if choice.tuning == "given":
        raise InvalidInput("nothing is left to choose: leave out --C or --sigma")
    state = Checkpoint(checkpoint, fingerprint(read, wish, tune=mode, scale=scale, missing=missing), resume)
    queries = groups_of(train, settled)
    searching = machines.build(wish, choice, X, y, state.search_file, **queries)
    if choice.tuning == "cv":
        searching.set_params(mode=mode)
    with following() as bar:
        bar.say(f"tuning {choice.machine} on {train.n} points")
        if choice.tuning == "cv":
            bar.expect(folds * (10 if kernel in machines.WIDE and sigma is None else 1))
        found = machines.train(searching, X, y, **queries)
    if found.stopped_ != "interrupted":
        state.finish()
    search = getattr(found, "search_", None)
    best = found if search is None else found.best_estimator_
    parameters = machines.parameters(best)
    facts: dict[str, Any] = {
        "task": settled,
        "machine": choice.machine,
        "reasons": list(choice.reasons),
        "parameters": parameters,
        "method": "exact leave-one-out" if search is None else f"{folds}-fold cross-validation",
        "score": machines.leave_one_out(best, settled, y)
        or machines.cross_validation(search, settled, choice.machine in machines.BY_LOSS),
        "candidates": _candidates(best, search),
        "resumed": 0 if search is None else search.resumed,
        "stopped": found.stopped_,
        "command": _command(source, choice.machine, wish, parameters, missing, scale),
    }
    tell(facts, as_json, _show)
    if found.stopped_ == "interrupted":
        raise typer.Exit(exits.INTERRUPTED)


def _candidates(machine: Any, search: Any) -> list[dict[str, Any]]:
    """All that was tried, best first; for leave-one-out `value` is its criterion (smaller is better)."""
    if search is not None:
        scored = [(c, float(s)) for c, s in zip(search.candidates, search.mean) if np.isfinite(s)]
        return [{**c, "score": s} for c, s in sorted(scored, key=lambda pair: -pair[1])]
    surface = sorted(machine.loo_surface_, key=lambda point: point.value)
    return [{**point.parameters, "value": float(point.value)} for point in surface if np.isfinite(point.value)]


def _command(source: points.Source, machine: str, wish: Wish, found: dict[str, Any], missing: str, scale: bool) -> str:
    """The command that trains with the parameters found."""
    words = ["mercer", "fit", str(source.path), "--machine", machine, "--kernel", wish.kernel]
    words += ["--C", f"{found['C']:.6g}"]
    for name in ("sigma", "epsilon"):
        if name in found:
            words += [f"--{name}", f"{found[name]:.6g}"]
    if wish.kernel == "polynomial":
        words += ["--degree", str(wish.degree)]
    for name in ("target", "groups"):
        if getattr(source, name) is not None:
            words += [f"--{name}", getattr(source, name)]
    if missing != "refuse":
        words += ["--missing", missing]
    return shlex.join(words + ([] if scale else ["--no-scale"]))


def _show(facts: dict[str, Any]) -> None:
    found = facts["parameters"]
    rows = {
        "machine": f"{facts['machine']}: {'; '.join(facts['reasons'])}",
        "best": f"C = {found['C']:.4g}, {found['kernel']}",
        facts["method"]: scores.shown(facts["score"]) if facts["score"] else "stopped too early to tell",
    }
    console = Console()
    console.print(table(rows))
    near = facts["candidates"][:SHOWN]
    if near:
        grid = Table(*near[0], box=None)
        for candidate in near:
            grid.add_row(*(f"{value:.5g}" for value in candidate.values()))
        console.print(grid)
    console.print(shown(facts["command"]), soft_wrap=True, highlight=False)
