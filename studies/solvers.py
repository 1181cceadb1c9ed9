"""All registered solvers on the same problems: time, kernel values, steps, memory, and the gap against time.

Run:  MERCER_DATA=folder python studies/solvers.py            (about ten minutes on one core)
      MERCER_DATA=folder python studies/solvers.py --only adult,toy      (some parts; finished ones are kept)
      python studies/solvers.py --smoke                       (synthetic data, seconds)

Every solver gets the same problem with the same kernel values, computed when they are asked for, and is stopped after
some seconds; what was stopped is shown with the gap that it had reached.  A solver that does not take a free bias is
given the same problem with a penalised one, and one that takes squared losses only the squared loss: its row says so,
and its objective is another.  `solver_claims.py` puts the claims of the sources beside it.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from parts import Work, table

from mercer.data import Standardise, benchmark
from mercer.gram import Gram
from mercer.kernels import Gaussian
from mercer.losses import EpsilonInsensitive, Hinge, SquaredEpsilonInsensitive, SquaredHinge
from mercer.problems import Problem, RegularisedRisk
from mercer.solvers import Monitor, Solution, by_name
from mercer.solvers.catalogue import NAMES

Array = NDArray[np.float64]
LIMIT = 4.0  # seconds for a solver on a problem
TOL, GAP = 1e-3, 1e-3  # all are compared at an equal relative gap; some also aim for a violation
ADULT = (1605, 3185, 6414)  # the nested sizes of Platt 1999


@dataclass(frozen=True)
class Case:
    """Points X (n, d), labels or targets y (n,), a width and C."""

    name: str
    X: Array
    y: Array
    sigma: float
    C: float
    epsilon: float | None = None  # the tube of a regression
    classes: Any = None  # (n,), where there are more than two

    def gram(self) -> Any:
        """The kernel matrix, nothing of which is held."""
        return Gram(Gaussian(sigma=self.sigma), self.X, storage="streamed", precision="float64")

    def problems(self) -> list[tuple[str, Problem]]:
        """The problem, and those that are given to solvers that do not take it."""
        gram, regression = self.gram(), self.epsilon is not None
        loss: Any = EpsilonInsensitive(self.epsilon) if regression else Hinge()
        squares: Any = SquaredEpsilonInsensitive(self.epsilon) if regression else SquaredHinge()
        return [
            ("", RegularisedRisk(gram, self.y, loss, self.C)),
            ("penalised bias", RegularisedRisk(gram, self.y, loss, self.C, bias="penalised")),
            ("squares, penalised bias", RegularisedRisk(gram, self.y, squares, self.C, bias="penalised")),
        ]

    def first(self, n: int) -> "Case":
        """The case on its first n points."""
        classes = None if self.classes is None else self.classes[:n]
        return Case(self.name, self.X[:n], self.y[:n], self.sigma, self.C, self.epsilon, classes)


def toy(n: int = 600) -> Case:
    """Two classes that can be separated."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return Case("toy", rng.normal(size=(n, 2)) + 3.5 * y[:, None], y, 2.0, 100.0)


def synthetic(n: int = 120) -> dict[str, Case]:
    """Small stand-ins for the data sets."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 4))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    adult = Case("adult", X, y, 2.0, 1.0)
    abalone = Case("abalone", X, np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n), 1.0, 1.0, 0.2)
    usps = Case("usps", X, y, 1.0, 10.0, classes=np.digitize(X[:, 0], np.linspace(-1.2, 1.2, 9)))
    return {"adult": adult, "usps": usps, "abalone": abalone, "toy": toy(60)}


def measured() -> dict[str, Case]:
    """The data sets of the study."""
    adult = benchmark("a9a", "train", sparse=False)
    usps = benchmark("usps", "train", sparse=False)
    abalone = benchmark("abalone", "train", sparse=False)
    rings = abalone.y.astype(np.float64)
    rings = (rings - rings.mean()) / rings.std()
    signs = np.where(adult.y == adult.y.max(), 1.0, -1.0)
    eight = np.where(usps.y == usps.y.max() - 1, 1.0, -1.0)
    n = ADULT[-1]
    return {
        "adult": Case("adult", np.asarray(adult.X, dtype=np.float64)[:n], signs[:n], float(np.sqrt(10.0)), 1.0),
        "usps": Case(
            "usps", np.asarray(usps.X, dtype=np.float64)[:2500], eight[:2500], 8.0, 10.0, classes=usps.y[:2500]
        ),
        "abalone": Case("abalone", Standardise.learn(abalone.X)(abalone.X)[:1500], rings[:1500], 2.0, 1.0, 0.2),
        "toy": toy(),
    }


def accepted(case: Case, solver: str) -> tuple[str, Problem] | None:
    """The first of the case's problems that the solver takes."""
    module = by_name(solver)
    return next(((note, problem) for note, problem in case.problems() if module.accepts(problem)), None)


def run(case: Case, solver: str, limit: float, **options: Any) -> dict[str, Any] | None:
    """One solver on one case, until it has converged or `limit` seconds have passed."""
    given = accepted(case, solver)
    if given is None:
        return None
    note, problem = given
    monitor = Monitor(time_limit=limit, catch_interrupt=False)
    began = time.perf_counter()
    found: Solution = by_name(solver).solve(problem, tol=TOL, gap_tol=GAP, monitor=monitor, **options)
    seconds = time.perf_counter() - began
    support = int(np.count_nonzero(found.coefficients))
    return {
        "solver": solver,
        "note": note,
        "stopped": found.stopped,
        "seconds": seconds,
        "steps": int(found.iterations),
        "values": int(found.details.get("kernel_values", 0)),
        "rate": found.details.get("cache_rate"),
        "support": support,
        "gap": float(found.relative_gap),
        "primal": float(found.primal),
        "n": len(case.y),
    }


def compile_all(case: Case) -> None:
    """Every solver once on a few points, so that no compilation is measured."""
    for solver in NAMES:
        run(case.first(40), solver, 1.0)


def side_by_side(case: Case, sizes: Sequence[int], limit: float) -> list[dict[str, Any]]:
    """All solvers at all sizes; one that was stopped at a size is not run at a larger one."""
    rows = []
    for solver in NAMES:
        for n in sizes:
            row = run(case.first(n), solver, limit)
            rows.append(row or {"solver": solver, "n": n, "stopped": "refused"})
            if row is None or row["stopped"] == "time":
                break
    return rows


def memory_of(case: Case, limit: float) -> dict[str, float]:
    """MiB that each solver holds at most, as Python's own tracing of allocations tells."""
    found = {}
    for solver in NAMES:
        given = accepted(case, solver)
        if given is None:
            continue
        tracemalloc.start()
        by_name(solver).solve(given[1], tol=TOL, gap_tol=GAP, monitor=Monitor(time_limit=limit, catch_interrupt=False))
        found[solver] = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
    return found


def curves(case: Case, limit: float) -> dict[str, tuple[list[float], list[float]]]:
    """Seconds and the smallest relative gap up to then, of solvers that tell of every round."""
    found = {}
    for solver in NAMES:
        given = accepted(case, solver)
        if given is None or given[0]:
            continue
        monitor = Monitor(time_limit=limit, catch_interrupt=False, callback=lambda record: None)
        by_name(solver).solve(given[1], tol=1e-5, gap_tol=1e-6, monitor=monitor)
        told = [r for r in monitor.history if np.isfinite(r.gap) and r.primal > 0]
        gaps = np.minimum.accumulate([max(r.gap, 0.0) / r.primal for r in told]) if told else np.empty(0)
        found[solver] = [r.seconds for r in told], gaps.tolist()
    return found


def picture(title: str, lines: dict[str, tuple[list[float], list[float]]]) -> str:
    """Gap against seconds on logarithmic axes, as SVG."""
    width, height, left, top = 560, 360, 60, 30
    seconds = [s for x, _ in lines.values() for s in x if s > 0]
    low_x, high_x = np.log10(max(min(seconds), 1e-3)), np.log10(max(seconds))
    low_y, high_y = -7.0, 0.5
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 220}" height="{height + 80}" '
        f'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>'
        f'<text x="{left}" y="18">{title}</text>'
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#999"/>'
    ]
    for power in range(-7, 1):
        y = top + height * (high_y - power) / (high_y - low_y)
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">1e{power}</text>')
        parts.append(f'<line x1="{left}" x2="{left + width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#eee"/>')
    for power in range(int(np.ceil(low_x)), int(np.floor(high_x)) + 1):
        x = left + width * (power - low_x) / (high_x - low_x)
        parts.append(f'<text x="{x:.1f}" y="{top + height + 16}" text-anchor="middle">1e{power} s</text>')
    for at, (name, (x, y)) in enumerate(lines.items()):
        colour = f"hsl({int(360 * at / len(lines))}, 75%, {35 + 15 * (at % 2)}%)"
        places = " ".join(
            f"{left + width * (np.log10(max(a, 10**low_x)) - low_x) / (high_x - low_x):.1f},"
            f"{top + height * (high_y - min(max(np.log10(max(b, 1e-9)), low_y), high_y)) / (high_y - low_y):.1f}"
            for a, b in zip(x, y, strict=True)
        )
        parts.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(f'<text x="{left + width + 12}" y="{top + 14 + 15 * at}" fill="{colour}">{name}</text>')
    return "".join(parts) + "</svg>\n"


def run_table(rows: Sequence[dict[str, Any]]) -> str:
    """The measurements of one data set."""
    lines = []
    for row in rows:
        if row["stopped"] == "refused":
            lines.append([row["solver"], str(row["n"]), "refused", "", "", "", "", "", ""])
            continue
        floor = row["support"] * row["n"]
        values = f"{row['values']:.3g}" if row["values"] else ""
        share = f"{row['values'] / floor:.2f}" if row["values"] and floor else ""
        lines.append(
            [row["solver"], str(row["n"]), row["stopped"], f"{row['seconds']:.3g}", str(row["steps"]), values, share,
             str(row["support"]), f"{row['gap']:.1g}" + (f" ({row['note']})" if row["note"] else "")]
        )  # fmt: skip
    head = ["solver", "n", "stopped", "seconds", "steps", "kernel values", "of n x #SV", "#SV", "relative gap"]
    return table(head, lines)


def fastest(rows: Sequence[dict[str, Any]]) -> str:
    """Which solvers of the problem itself were quickest at the largest size that each reached."""
    own = [r for r in rows if r["stopped"] == "converged" and not r["note"]]
    if not own:
        return "None converged within the limit."
    n = max(r["n"] for r in own)
    order = sorted((r for r in own if r["n"] == n), key=lambda r: r["seconds"])
    told = ", ".join(f"{r['solver']} ({r['seconds']:.2g} s)" for r in order[:4])
    late = [r["solver"] for r in rows if r["stopped"] == "time"]
    return f"Quickest at n = {n}: {told}. " + (f"Stopped by the limit: {', '.join(late)}." if late else "")


def against_smo(rows: Sequence[dict[str, Any]]) -> str:
    """The claim that sequential minimal optimisation is up to 1000 times faster than chunking."""
    seconds = {(r["solver"], r["n"]): r["seconds"] for r in rows if r["stopped"] == "converged"}
    ratios = [
        f"{seconds[name, n] / seconds['smo', n]:.2g} ({name}, n = {n})"
        for name in ("chunking", "pcg_chunking")
        for n in sorted({n for _, n in seconds})
        if (name, n) in seconds and ("smo", n) in seconds
    ]
    return (
        f"Time of chunking over that of smo, which the sources have up to 1000: {', '.join(ratios)}." if ratios else ""
    )


class Parts:
    """Finished parts of the study, as JSON in a folder."""

    def __init__(self, folder: Path, only: Sequence[str]) -> None:
        self.work, self.only = Work(folder), only

    def part(self, name: str, compute: Callable[[], Any]) -> Any:
        """What a part found; None where it is not there and not asked for."""
        if self.only and name not in self.only and not (self.work.folder / f"{name}.npz").exists():
            return None
        return json.loads(str(self.work.part(name, lambda: {"json": np.array(json.dumps(compute()))})["json"]))


def report(parts: Parts, cases: dict[str, Case], limit: float, out: Path) -> None:
    """Measure what is not there yet and write the report."""
    from solver_claims import CLAIMS

    smallest = min(len(cases["adult"].y), ADULT[0])
    compiled: list[bool] = []

    def warmed(compute: Callable[[], Any]) -> Callable[[], Any]:
        def go() -> Any:
            if not compiled:
                compile_all(cases["adult"])
                compile_all(cases["abalone"])
                compiled.append(True)
            return compute()

        return go

    text = [HEAD.format(limit=limit, gap=GAP)]
    for name, case in cases.items():
        sizes = [n for n in ADULT if n <= len(case.y)] if name == "adult" else []
        rows = parts.part(
            name, warmed(lambda case=case, sizes=sizes: side_by_side(case, sizes or [len(case.y)], limit))
        )
        if rows is not None:
            text.append(f"## {name}\n\n{fastest(rows)}\n{against_smo(rows)}\n\n{run_table(rows)}\n")
    held = parts.part("memory", warmed(lambda: memory_of(cases["adult"].first(smallest), limit)))
    if held is not None:
        whole = 8 * smallest**2 / 2**20
        rows = [[solver, f"{mib:.1f}"] for solver, mib in sorted(held.items(), key=lambda item: item[1])]
        text.append(
            f"## Memory\n\nadult, n = {smallest}; the whole matrix has {whole:.1f} MiB, which row caches may hold.\n"
        )
        text.append(table(["solver", "MiB at most"], rows) + "\n")
    lines = parts.part("curves", warmed(lambda: curves(cases["adult"].first(smallest), limit)))
    if lines is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        image = out.with_name("solvers_gap.svg")
        image.write_text(picture(f"Smallest relative gap against seconds: adult, n = {smallest}", lines))
        text.append(
            f"## Gap against time\n\nThe certificate of every round is paid for here.\n\n![gap]({image.name})\n"
        )
    for name, (title, compute, tell) in CLAIMS.items():
        found = parts.part(name, warmed(lambda compute=compute: compute(cases)))
        if found is not None:
            text.append(f"## {title}\n\n{tell(found)}\n")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n".join(text))


HEAD = """# Solvers side by side

Written by `studies/solvers.py`. One core, kernel values in float64 that are computed when they are asked for, a
relative gap of {gap:g} for all, {limit:g} seconds for each solver on each problem. A solver that was stopped at one
size is not run at a larger one. "of n x #SV" is the number of kernel values over what checking the answer costs (Rifkin
2002, section 2.5); none is shown for solvers that do not count. adult is a9a with Platt's kernel (variance 10) and
C = 1, usps one digit against the rest, abalone epsilon-insensitive regression on standardised rings, toy two classes
that can be separated at C = 100. Notes in brackets: the solver does not take a free bias, or takes squared losses only,
and was given that problem. linear_dual needs a thin factor of the matrix, tuples general equality rows,
logistic_pairs a logistic loss.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="synthetic data, seconds")
    parser.add_argument("--only", default="", help="names of parts to compute, with commas between them")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for a solver on a problem")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "mercer-solvers")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "solvers.md")
    options = parser.parse_args(arguments)
    if not options.smoke and not os.environ.get("MERCER_DATA"):
        parser.error("set MERCER_DATA to the folder of the data sets, or pass --smoke")
    cases = synthetic() if options.smoke else measured()
    only = [name for name in options.only.split(",") if name]
    report(Parts(options.work, only), cases, 0.5 if options.smoke else options.limit, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
