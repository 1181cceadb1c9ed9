"""The advisor against all solvers: how long its choice takes, and how long the best one.

    python -m benchmarks.advisor --tuning            problems whose timings the constants were read off
    python -m benchmarks.advisor                     problems it was not tuned on: benchmarks/results/advisor.md

Every solver of `mercer.solvers.available()` that accepts a problem runs on it to the same relative gap, with a time
limit of a few times what the quickest has taken so far; solvers that are not done by then are left out.  What is timed
is the solver, on a kernel matrix that holds no value yet; a linear kernel is held by its factor, the points.
"""

import argparse
import math
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer import Gaussian, Gram, Laplacian, Linear, threads
from mercer.losses import EpsilonInsensitive, Hinge, Huber, SquaredHinge
from mercer.planning.advisor import Situation, advise
from mercer.problems import NuClassification, OneClass, Problem, RegularisedRisk
from mercer.solvers import Monitor, catalogue

GAP = 1e-3
PATIENCE = 4.0  # times the quickest
LEAST = 0.3  # seconds that every solver gets
WITHIN = 1.5


@dataclass(frozen=True)
class Task:
    """A problem by name; `make` states it anew, so that no solver finds what another has left in a cache."""

    name: str
    make: Callable[[], Problem]


def clouds(n: int, d: int, overlap: float, seed: int) -> tuple[Any, Any]:
    """Two curved classes in d dimensions, a share of the labels flipped."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 > 0.4, 1.0, -1.0)
    return X, np.where(random.random(n) < overlap, -y, y)


def waves(n: int, d: int, seed: int) -> tuple[Any, Any]:
    """A sum of waves with noise."""
    random = np.random.default_rng(seed)
    X = random.uniform(-2.0, 2.0, (n, d))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * X[:, -1] + 0.1 * random.standard_normal(n)


def texts(n: int, d: int, seed: int) -> tuple[Any, Any]:
    """Sparse rows, as of documents, with a linear target."""
    random = np.random.default_rng(seed)
    X = sp.random(n, d, density=20.0 / d, random_state=seed, format="csr")
    w = random.standard_normal(d)
    return X, np.where(X @ w + 0.02 * random.standard_normal(n) > 0.0, 1.0, -1.0)


def risk(kernel: Any, data: tuple[Any, Any], loss: Any, C: float, bias: Any = "free") -> Callable[[], Problem]:
    """The problem on these data."""

    def make() -> Problem:
        X, y = data
        storage = {"storage": "lowrank"} if isinstance(kernel, Linear) else {}
        return RegularisedRisk(Gram(kernel, X, **storage), y, loss, C=C, bias=bias)

    return make


def tuning() -> list[Task]:
    """Problems whose timings the constants of the advisor were read off."""
    return [
        Task("Gaussian, n = 400", risk(Gaussian(1.5), clouds(400, 5, 0.1, 0), Hinge(), 1.0)),
        Task("Gaussian, n = 1500, C = 100", risk(Gaussian(2.0), clouds(1500, 8, 0.1, 1), Hinge(), 100.0)),
        Task("Gaussian, n = 4000", risk(Gaussian(2.0), clouds(4000, 10, 0.05, 2), Hinge(), 1.0)),
        Task("linear, n = 8000, d = 20", risk(Linear(), clouds(8000, 20, 0.1, 3), Hinge(), 1.0)),
        Task("linear, n = 2000, d = 100", risk(Linear(), clouds(2000, 100, 0.1, 4), Hinge(), 0.1)),
        Task("linear, sparse, n = 4000", risk(Linear(), texts(4000, 5000, 5), Hinge(), 1.0)),
        Task("tube, n = 1500", risk(Gaussian(1.0), waves(1500, 3, 6), EpsilonInsensitive(0.1), 1.0)),
        Task("squared hinge, n = 1500", risk(Gaussian(1.5), clouds(1500, 5, 0.1, 7), SquaredHinge(), 1.0, "penalised")),
    ]


def fresh() -> list[Task]:
    """Problems it was not tuned on."""
    X, _ = clouds(2000, 6, 0.0, 30)
    one = clouds(1200, 4, 0.1, 31)
    return [
        Task("Gaussian, n = 800, C = 10", risk(Gaussian(1.0), clouds(800, 4, 0.15, 20), Hinge(), 10.0)),
        Task("Gaussian, n = 3000, narrow", risk(Gaussian(0.7), clouds(3000, 3, 0.1, 21), Hinge(), 1.0)),
        Task("Laplacian, n = 2500", risk(Laplacian(2.0), clouds(2500, 12, 0.05, 22), Hinge(), 3.0)),
        Task("Gaussian, n = 1000, C = 1000", risk(Gaussian(2.5), clouds(1000, 6, 0.1, 23), Hinge(), 1000.0)),
        Task("linear, n = 20000, d = 10", risk(Linear(), clouds(20000, 10, 0.1, 24), Hinge(), 0.5)),
        Task("linear, n = 3000, d = 60", risk(Linear(), clouds(3000, 60, 0.05, 25), Hinge(), 1.0)),
        Task("linear, sparse, n = 6000", risk(Linear(), texts(6000, 8000, 26), Hinge(), 1.0)),
        Task("tube, n = 2500", risk(Gaussian(0.8), waves(2500, 2, 27), EpsilonInsensitive(0.05), 2.0)),
        Task("Huber, n = 1200", risk(Gaussian(1.0), waves(1200, 3, 28), Huber(0.2), 1.0)),
        Task(
            "squared hinge, n = 2500", risk(Gaussian(1.5), clouds(2500, 5, 0.1, 29), SquaredHinge(), 1.0, "penalised")
        ),
        Task("one class, n = 2000", lambda: OneClass(Gram(Gaussian(1.5), X), 0.1)),
        Task("nu, n = 1200", lambda: NuClassification(Gram(Gaussian(1.2), one[0]), one[1], 0.35)),
    ]


def seconds(name: str, task: Task, limit: float) -> float:
    """Time of one solver on one problem, infinite where it was not done within `limit`."""
    problem = task.make()
    module = catalogue.by_name(name)
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Monitor(time_limit=limit, catch_interrupt=False) as monitor:
                found = module.solve(problem, tol=1e-3, gap_tol=GAP, monitor=monitor)
    except (ArithmeticError, MemoryError, ValueError):
        return math.inf
    taken = time.perf_counter() - began
    return taken if found.relative_gap <= 1.01 * GAP else math.inf


def race(task: Task, repeats: int) -> tuple[str, dict[str, float]]:
    """The advisor's choice, and the least time of every solver that accepts the problem."""
    problem = task.make()
    chosen = advise(Situation.of(problem)).method
    names = [name for name in catalogue.NAMES if catalogue.by_name(name).accepts(problem)]
    names.sort(key=lambda name: name != chosen)
    times: dict[str, float] = {}
    for name in names:
        best = math.inf
        for _ in range(repeats):
            quickest = min([*times.values(), best])
            limit = max(LEAST, PATIENCE * quickest) if math.isfinite(quickest) else 30.0
            taken = seconds(name, task, limit)
            best = min(best, taken)
            if not math.isfinite(taken):
                break
        times[name] = best
    return chosen, times


def report(tasks: Sequence[Task], repeats: int) -> tuple[str, int]:
    """The table, and on how many problems the choice was within WITHIN of the best."""
    lines = [
        "| problem | chosen | seconds | best | seconds | ratio | others that were done |",
        "|---|---|---|---|---|---|---|",
    ]
    good = 0
    for task in tasks:
        chosen, times = race(task, repeats)
        best = min(times, key=lambda name: times[name])
        ratio = times[chosen] / times[best]
        good += ratio <= WITHIN
        others = sorted((t, name) for name, t in times.items() if math.isfinite(t) and name not in (chosen, best))
        shown = ", ".join(f"{name} {t:.3g}" for t, name in others) or "none"
        line = f"| {task.name} | {chosen} | {times[chosen]:.3g} | {best} | {times[best]:.3g} | {ratio:.2f} | {shown} |"
        print(line, flush=True)
        lines.append(line)
    return "\n".join(lines), good


HEAD = """# The advisor's choice and the best solver

Written by `python -m benchmarks.advisor`, two cores, {repeats} runs of each, the least counts.  Every solver that
accepts a problem runs to a relative gap of {gap:g}; those that took more than {patience:g} times the quickest are left
out.  None of these problems served to set the constants of the advisor.

"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the races and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--tuning", action="store_true", help="the problems the constants were read off; writes nothing"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--smoke", action="store_true", help="the first problem only, once")
    parser.add_argument("--out", type=Path, help="where the table goes; a smoke run writes none unless told where")
    options = parser.parse_args(arguments)
    tasks = tuning() if options.tuning else fresh()
    with threads.one_blas_thread():
        text, good = report(tasks[:1] if options.smoke else tasks, 1 if options.smoke else options.repeats)
    count = 1 if options.smoke else len(tasks)
    verdict = f"\n\nWithin {WITHIN} times the best on {good} of {count} problems.\n"
    print(verdict)
    out = options.out or (None if options.smoke else Path(__file__).parent / "results" / "advisor.md")
    if out is not None and not options.tuning:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(HEAD.format(repeats=options.repeats, gap=GAP, patience=PATIENCE) + text + verdict)
    return 0


if __name__ == "__main__":
    sys.exit(main())
