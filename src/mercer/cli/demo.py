"""`mercer demo`: the main job on bundled real data, with scores, certificates and a report."""

import time
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from mercer.cli import job, options, scores
from mercer.cli.checkpoint import Checkpoint
from mercer.cli.fit import facts_of, write_model, write_report
from mercer.cli.machines import Wish
from mercer.cli.output import print_json
from mercer.cli.progress import Quiet, following
from mercer.data import SAMPLES, Dataset, sample
from mercer.problems.certificate import gap_text

# The report is about the last set of a list.
QUICK = ("yacht", "heart-statlog")
FULL = ("heart-statlog", "concrete", "optdigits", "satimage")


def parts(name: str) -> tuple[Dataset, Dataset]:
    """Training and test points: the customary split, else a random one of 70 to 30."""
    if SAMPLES[name].parts:
        return sample(name, "train"), sample(name, "test")
    data = sample(name)
    order = np.random.default_rng(0).permutation(data.n)
    cut = data.n * 7 // 10
    return data.take(order[:cut]), data.take(order[cut:])


def run(name: str, bar: Quiet) -> tuple[job.Outcome, dict[str, Any]]:
    """Tune and train on the training part, and score on the test part."""
    train, test = parts(name)
    began = time.perf_counter()
    outcome = job.run(train, Wish(), job.Setting(test_fraction=0.0), bar, Checkpoint(None, "", False))
    job.estimate(outcome, test, 0, "refuse")
    facts = {"data": name, **facts_of(outcome, train)}
    return outcome, facts | {"total seconds": time.perf_counter() - began}


def demo(
    quick: Annotated[bool, typer.Option("--quick", help="The two smallest sets only.")] = False,
    folder: Annotated[
        Path, typer.Option(help="Folder for the model and the report; made where it does not exist.")
    ] = Path("mercer-demo"),
    as_json: options.Json = False,
) -> None:
    """Do the main job on bundled real data: tuned machines, honest scores, certificates, a model and a report.

    Least squares chooses its parameters by exact leave-one-out, support vector machines by cross-validation on shared
    kernel values. It takes less than two minutes on two cores; the first run also compiles.
    """
    names = QUICK if quick else FULL
    console = Console(stderr=as_json)
    results: list[dict[str, Any]] = []
    with following() as bar:
        for name in names:
            console.print(f"training on {SAMPLES[name].title} ...", highlight=False)
            outcome, facts = run(name, bar)
            results.append(facts)
        folder.mkdir(parents=True, exist_ok=True)
        model, report = folder / f"{names[-1]}.mercer", folder / f"{names[-1]}.html"
        write_model(model, outcome, outcome.data, Wish())
        drawn = find_spec("matplotlib") is not None and find_spec("jinja2") is not None
        if drawn:
            bar.say("drawing the report")
            write_report(report, outcome, Wish())
    if as_json:
        places = {"model": str(model.resolve()), "report": str(report.resolve()) if drawn else None}
        print_json({"results": results, **places})
        return
    console.print(_table(results))
    console.print(
        "Scores are on points no machine saw; the gap bounds the relative distance from the optimum.", highlight=False
    )
    typer.echo(f"model:  {model.resolve()}")
    typer.echo(f"report: {report.resolve()}" if drawn else "report: needs pip install 'mercer[report]'")


def _table(results: list[dict[str, Any]]) -> Table:
    """The results as a table of 80 columns at most."""
    table = Table(title="mercer on its bundled data", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for heading in ("data", "machine", "C", "sigma", "LOO or CV", "held out", "gap", "s"):
        table.add_column(heading, justify="left" if heading in ("data", "machine") else "right", no_wrap=True)

    def shown(facts: dict[str, Any] | None) -> str:
        name, value, _ = scores.main_score(facts or {"r2": None})
        return "" if value is None else f"{value:.1%}" if name == "accuracy" else f"R2 {value:.3f}"

    for facts in results:
        found, gap = facts["parameters"], facts["certificate"]["relative gap"]
        table.add_row(
            facts["data"],
            facts["machine"],
            f"{found['C']:.3g}",
            f"{found['sigma']:.3g}" if "sigma" in found else "",
            shown(facts.get("leave-one-out") or facts.get("cross-validation")),
            shown(facts["held out"]),
            gap_text(gap),
            f"{facts['total seconds']:.1f}",
        )
    return table
