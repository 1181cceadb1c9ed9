"""`mercer advise`: what would be used for data of a size, and why."""

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from mercer import resources as memory
from mercer import threads
from mercer.cli import machines, options
from mercer.cli import model_input as points
from mercer.cli.machines import Wish
from mercer.cli.output import table, tell
from mercer.cli.task import settle
from mercer.data import Dataset
from mercer.data.targets import Task
from mercer.errors import InvalidInput
from mercer.gram import MatrixTask, choose_plan
from mercer.planning import Situation, approximation_for, solver_for_size
from mercer.planning import advise as weigh


def advise(
    data: Annotated[Path | None, typer.Argument(metavar="[DATA]", help="A data file; or give --n and --d.")] = None,
    n: Annotated[int | None, typer.Option("--n", help="Number of points.")] = None,
    d: Annotated[int | None, typer.Option("--d", help="Number of features.")] = None,
    task: Annotated[
        Literal["classification", "regression"], typer.Option(help="The task, where no data file says it.")
    ] = "classification",
    kernel: options.KernelChoice = "gaussian",
    target: options.Target = None,
    format: options.Format = None,
    budget: Annotated[str | None, typer.Option("--memory", help="Memory for kernel values, such as '2 GiB'.")] = None,
    as_json: options.Json = False,
) -> None:
    """Say which machine, solver and form of the kernel matrix suit data of a size, and why.

    Nothing is trained. The choices are those `fit` would make, and what approximation="auto" would do is said beside.
    """
    wanted: Task = task
    entries = None
    if data is not None:
        read = points.read_points(points.Source(data, target, format), "impute")
        wanted = _task(read, task)
        n, d, entries = read.n, read.d, int(read.X.nnz) if read.is_sparse else None
    if n is None or d is None:
        raise InvalidInput("give a data file, or both --n and --d")
    if n < 1 or d < 1:
        raise InvalidInput(f"--n and --d must be at least 1, got {n} and {d}")
    facts = {"points": n, "features": d, "task": wanted, **advice(n, d, wanted, kernel, budget, entries)}
    tell(facts, as_json, lambda facts: table({name: _shown(value) for name, value in facts.items()}))


def _task(data: Dataset, fallback: Task) -> Task:
    return fallback if data.y is None else settle(data.y, None, data.source)


def advice(n: int, d: int, task: Task, kernel: str, budget: str | None, entries: int | None = None) -> dict[str, Any]:
    """Machine, tuning, solver and matrix for n points of d features, with reasons."""
    choice = machines.choose(Wish(kernel=kernel), task, n)
    linear, exact = kernel == "linear", choice.machine.startswith("ls")
    asked = MatrixTask(
        n=n,
        m=n,
        d=d,
        itemsize=8 if exact else 4,
        budget=memory.budget(budget),
        entries=entries,
        linear=linear,
        access="products" if exact else "rows",
        workers=threads.count(),
    )
    plan = choose_plan(asked)
    resources = memory.Resources(budget)
    kernel_object = machines.kernel_of(Wish(kernel=kernel, sigma=1.0), np.broadcast_to(0.0, (n, d)), None)
    solver = solver_for_size(choice.machine, kernel_object, n, d, sparse=entries is not None, resources=resources)
    smaller = approximation_for(kernel_object, n, resources=resources)
    mean = None if entries is None else entries / n
    situation = Situation(n, d=d, entries=mean, linear=linear, squares=exact)
    expected = weigh(situation, memory=budget, cores=threads.count())
    return {
        "machine": choice.machine,
        "why": list(choice.reasons),
        "parameters": "exact leave-one-out" if choice.tuning == "loo" else "cross-validation on shared kernel values",
        "solver": solver.name,
        "why this solver": solver.reason,
        "one fit takes about": f"{expected.seconds:.1g} s",
        'approximation="auto"': smaller.reason,
        "kernel matrix": plan.storage,
        "kernel matrix bytes": int(plan.bytes),
        "memory allowed": int(asked.budget),
        "why this matrix": list(plan.reasons),
    }


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(value)
    return memory.show(value) if isinstance(value, int) and value > 1 << 20 else str(value)
