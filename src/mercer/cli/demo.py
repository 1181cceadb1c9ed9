"""`mercer demo`: kernel machines on the bundled data, each with its held-out score and its certificate."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from mercer.data import SAMPLES, Dataset, Standardise, sample


@dataclass(frozen=True)
class Result:
    """One trained machine, as the table shows it."""

    data: str
    machine: str
    points: int
    features: int
    C: float
    sigma: float | None
    leave_one_out: float | None
    score: float
    measure: str
    relative_gap: float
    seconds: float


def parts(name: str) -> tuple[Dataset, Dataset]:
    """Training and test points: the customary split, else a random one of 70 to 30."""
    if SAMPLES[name].parts:
        return sample(name, "train"), sample(name, "test")
    data = sample(name)
    order = np.random.default_rng(0).permutation(data.n)
    cut = data.n * 7 // 10
    return data.take(order[:cut]), data.take(order[cut:])


def _machines(name: str, quick: bool) -> Iterator[Callable[[], Any]]:
    """Machines to try on a set.  They are loaded here, so that the other commands start quickly."""
    from mercer.kernels import Gaussian
    from mercer.least_squares import LSSVC, LSSVR
    from mercer.svm import SVC

    small = len(sample(name).X) <= 1500
    kernel: Any = Gaussian(sigma="loo") if small else "rbf"
    if SAMPLES[name].task == "regression":
        yield lambda: LSSVR(C="loo", kernel=kernel)
        return
    yield lambda: LSSVC(C="loo", kernel=kernel)
    yield lambda: SVC(C=1.0 if quick else 10.0)


def _leave_one_out(machine: Any, y: Any) -> float | None:
    """Accuracy or R2 that exact leave-one-out promises, where the machine knows it."""
    if not hasattr(machine, "loo_error_"):
        return None
    error = float(np.mean(machine.loo_error_))
    return 1 - error if hasattr(machine, "classes_") else 1 - error / float(np.var(y))


def run(name: str, quick: bool) -> Iterator[Result]:
    """Train every machine for the set and score it on the points held out."""
    train, test = parts(name)
    standardise = Standardise.learn(train.X)
    X, Z = standardise(train.X), standardise(test.X)
    task = SAMPLES[name].task
    for build in _machines(name, quick):
        started = time.perf_counter()
        machine = build().fit(X, train.y)
        seconds = time.perf_counter() - started
        gap = float(machine.objective_ - machine.dual_objective_) / max(abs(float(machine.objective_)), 1e-300)
        yield Result(
            data=name,
            machine=type(machine).__name__,
            points=train.n,
            features=train.d,
            C=float(getattr(machine, "C_", machine.C)),
            sigma=getattr(getattr(machine, "kernel_", None), "sigma", None),
            leave_one_out=_leave_one_out(machine, train.y),
            score=float(machine.score(Z, test.y)),
            measure="accuracy" if task == "classification" else "R2",
            relative_gap=max(gap, 0.0),
            seconds=seconds,
        )


def demo(
    quick: Annotated[bool, typer.Option("--quick", help="The two smallest sets only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Train machines on bundled real data; each answer comes with a certificate.

    Least squares (LSSVC, LSSVR) choose their own parameters by exact leave-one-out. The gap says how far, at most, the
    objective is from its optimum. It takes less than two minutes on two cores; the first run also compiles.
    """
    names = ("heart-statlog", "yacht") if quick else ("heart-statlog", "concrete", "satimage", "optdigits")
    console = Console(stderr=as_json)
    results: list[Result] = []
    started = time.perf_counter()
    with console.status("training") as status:
        for name in names:
            status.update(f"training on {SAMPLES[name].title}")
            results += run(name, quick)
    if as_json:
        typer.echo(json.dumps([asdict(result) for result in results], indent=2))
        return
    console.print(_table(results))
    console.print(
        f"{time.perf_counter() - started:.0f} s in all. LSSVC and LSSVR chose C (and sigma) by exact leave-one-out. "
        "Held-out scores are accuracies or R2 on points no machine saw. The gap bounds the relative distance from the "
        "optimum."
    )


def _table(results: list[Result]) -> Table:
    """The results as a table of 80 columns at most."""
    table = Table(title="mercer on its bundled data", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for heading in ("data", "machine", "C", "sigma", "LOO", "held out", "gap", "s"):
        table.add_column(heading, justify="left" if heading in ("data", "machine") else "right", no_wrap=True)

    def shown(score: float | None, measure: str) -> str:
        return "" if score is None else f"{score:.1%}" if measure == "accuracy" else f"R2 {score:.3f}"

    for r in results:
        table.add_row(
            r.data,
            r.machine,
            f"{r.C:.3g}",
            "" if r.sigma is None else f"{r.sigma:.3g}",
            shown(r.leave_one_out, r.measure),
            shown(r.score, r.measure),
            f"{r.relative_gap:.0e}" if r.relative_gap > 1e-16 else "< 1e-16",
            f"{r.seconds:.1f}",
        )
    return table
