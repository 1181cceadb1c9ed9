"""Ways of choosing landmarks side by side: what they cost, what they explain, and what a machine learns from them.

Run:  MERCER_DATA=folder python studies/landmarks.py          (about five minutes on two cores)
      python studies/landmarks.py --smoke                      (synthetic data, seconds)
Without --sets it is usps and a9a, the sets of the published table; `--sets letter` measures the letters.
With --rows FILE --sets NAME --sizes M the run is cut in parts: rows are kept in FILE from one to the next, and each
part reports all there are.

The questions are those of Hamers 2004 (section 5.2.2: is selection worth its cost?) and of Rifkin 2002 (section 3.7:
do the pivots of the incomplete Cholesky factorisation explain less of the trace than random rows?).  Every method gives
m landmarks; the machine is the rectangle one on them, with the same C and kernel for all.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.samples import benchmark
from mercer.kernels import Gaussian
from mercer.lowrank import Landmarks, choose
from mercer.lowrank.landmarks import METHODS
from mercer.lowrank.least_squares_forms import predict, rectangle

Array = NDArray[np.float64]

# Methods without chance, which need one run only.
CERTAIN = ("pivoted_cholesky", "trace_greedy", "feature_vectors", "orthogonal_least_squares", "kernel_pca")


@dataclass(frozen=True)
class Case:
    """Training and test points (dense or CSR), their labels, the width of the Gaussian and C."""

    X: Any
    y: NDArray[Any]
    X_test: Any
    y_test: NDArray[Any]
    sigma: float
    C: float
    about: str


@dataclass(frozen=True)
class Row:
    """One method at one m, averaged over seeds."""

    method: str
    m: int
    seconds: float
    residual: float
    deviation: float
    entropy: float
    error: float
    error_deviation: float
    said: str


def cases() -> dict[str, Case]:
    """Digits, the sparse census set and letters; standardised where features have different units."""
    digits, digits_test = benchmark("usps", "train", sparse=False), benchmark("usps", "test", sparse=False)
    letters, letters_test = benchmark("letter", "train", sparse=False), benchmark("letter", "test", sparse=False)
    mean, deviation = letters.X.mean(axis=0), letters.X.std(axis=0)
    census = benchmark("a9a", "train", features=123, sparse=True)
    census_test = benchmark("a9a", "test", features=123, sparse=True)
    return {
        "usps": Case(digits.X, digits.y, digits_test.X, digits_test.y, 8.0, 10.0, "as given"),
        "letter": Case(
            (letters.X - mean) / deviation,
            letters.y,
            (letters_test.X - mean) / deviation,
            letters_test.y,
            2.0,
            10.0,
            "standardised",
        ),
        "a9a": Case(census.X, census.y, census_test.X, census_test.y, 4.0, 1.0, "CSR, as given"),
    }


def synthetic() -> dict[str, Case]:
    """Four clusters on a plane, two for each class."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 300)
    X = np.array([[0, 0], [3, 3], [0, 3], [3, 0]])[labels] + 0.7 * rng.normal(size=(300, 2))
    y = labels // 2
    return {"synthetic": Case(X[:200], y[:200], X[200:], y[200:], 1.0, 10.0, "four clusters")}


def coded(y: NDArray[Any], classes: NDArray[Any]) -> Array:
    """One column of -1 and +1 for each class."""
    return np.where(y[:, None] == classes, 1.0, -1.0)


def held_out_error(case: Case, landmarks: Landmarks) -> float:
    """Share of test points the rectangle machine on these landmarks gets wrong."""
    kernel, classes = Gaussian(sigma=case.sigma), np.unique(case.y)
    solution = rectangle(kernel, case.X, coded(case.y, classes), landmarks, C=case.C)
    outputs = predict(solution, kernel, case.X, landmarks, case.X_test)
    return float(np.mean(classes[np.argmax(outputs, axis=1)] != case.y_test))


def measure(case: Case, method: str, m: int, seeds: int) -> Row:
    """A method on a case, over seeds where it depends on chance."""
    kernel, targets = Gaussian(sigma=case.sigma), coded(case.y, np.unique(case.y))
    found = [
        choose(kernel, case.X, m, method=method, y=targets, seed=seed)
        for seed in range(1 if method in CERTAIN else seeds)
    ]
    residuals = [1.0 - landmarks.explained for landmarks in found]
    errors = [held_out_error(case, landmarks) for landmarks in found]
    rows = found[0].details["rows"]
    said = "" if rows == case.X.shape[0] else f"{rows} rows"
    return Row(
        method=method,
        m=len(found[0]),
        seconds=float(np.median([landmarks.seconds for landmarks in found])),
        residual=float(np.mean(residuals)),
        deviation=float(np.std(residuals)),
        entropy=float(np.mean([landmarks.entropy for landmarks in found])),
        error=float(np.mean(errors)),
        error_deviation=float(np.std(errors)),
        said=said,
    )


def table(rows: Sequence[Row]) -> list[str]:
    """Rows as a Markdown table, best error of each m in bold."""
    lines = [
        "| m | method | seconds | residual trace % | entropy | held-out error % | looked at |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        best = min(other.error for other in rows if other.m == row.m)
        error = spread(100 * row.error, 100 * row.error_deviation)
        lines.append(
            f"| {row.m} | {row.method} | {row.seconds:.3g} | {spread(100 * row.residual, 100 * row.deviation)} | "
            f"{row.entropy:.3f} | {f'**{error}**' if row.error == best else error} | {row.said or 'all'} |"
        )
    return lines


def spread(value: float, deviation: float) -> str:
    """A mean with its standard deviation over seeds, where there were several."""
    return f"{value:.2f}" if deviation == 0 else f"{value:.2f} ± {deviation:.2f}"


def findings(results: dict[str, list[Row]]) -> str:
    """Counts over all sets and m: how often a method beats random rows in trace and in error."""
    lines = ["| method | lower residual trace | lower held-out error | mean error, random rows = 1 | times as slow |"]
    lines.append("|---|---|---|---|---|")
    for method in METHODS:
        pairs = [
            (row, next(other for other in rows if other.method == "uniform" and other.m == row.m))
            for rows in results.values()
            for row in rows
            if row.method == method and any(o.method == "uniform" and o.m == row.m for o in rows)
        ]
        if method == "uniform" or not pairs:
            continue
        trace = sum(row.residual < uniform.residual for row, uniform in pairs)
        error = sum(row.error < uniform.error for row, uniform in pairs)
        ratio = np.mean([row.error / uniform.error for row, uniform in pairs if uniform.error > 0])
        slower = np.median([row.seconds / uniform.seconds for row, uniform in pairs])
        lines.append(f"| {method} | {trace} of {len(pairs)} | {error} of {len(pairs)} | {ratio:.2f} | {slower:,.0f} |")
    return "\n".join(lines)


HEAD = """# Landmarks side by side

Measured by `studies/landmarks.py`: {seeds} seeds for methods that depend on chance, mean and standard deviation; the
others run once.  Seconds are the median time of the choice, on {threads} cores.  Residual trace: trace(K - K~) as a
share of trace(K).  Entropy: quadratic Renyi, of the landmarks.  Held-out error: the rectangle machine (all training
points, m landmarks), one output for each class.  "Looked at": the rows a method confines itself to on its own, because
all would take too long.

"""

QUESTIONS = """
## Against random rows

Over all sets and numbers of landmarks, how often is a method better than the mean of random rows?

{table}

Hamers (2004, section 5.2.2) holds that selection is expensive and gains little for learning; Rifkin (2002, section 3.7)
that pivots of the incomplete Cholesky factorisation are outliers and explain less of the trace than random rows.  They
explain less than random rows in {pivots_trace} of {pairs} cases here, and their machine errs more in {pivots_error}.
The least mean error belongs to {winner}.
"""


def answers(results: dict[str, list[Row]]) -> str:
    """The text below the tables."""
    lookup = {(name, row.method, row.m): row for name, rows in results.items() for row in rows}
    pairs = [(row, lookup[name, "uniform", m]) for (name, method, m), row in lookup.items()
             if method == "pivoted_cholesky" and (name, "uniform", m) in lookup]  # fmt: skip
    ratios: dict[str, list[float]] = {}
    for (name, method, m), row in lookup.items():
        uniform = lookup.get((name, "uniform", m))
        if uniform and uniform.error > 0:
            ratios.setdefault(method, []).append(row.error / uniform.error)
    winner = min(ratios, key=lambda method: float(np.mean(ratios[method])))
    return QUESTIONS.format(
        table=findings(results),
        pivots_trace=sum(row.residual > uniform.residual for row, uniform in pairs),
        pivots_error=sum(row.error > uniform.error for row, uniform in pairs),
        pairs=len(pairs),
        winner=winner,
    )


def earlier(path: Path | None) -> dict[str, list[Row]]:
    """Rows kept by an earlier part of the run."""
    if path is None or not path.exists():
        return {}
    return {name: [Row(**row) for row in rows] for name, rows in json.loads(path.read_text()).items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="synthetic data, a few seconds")
    parser.add_argument("--seeds", type=int, default=3, help="runs of methods that depend on chance")
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 200], help="numbers of landmarks")
    parser.add_argument("--sets", nargs="+", help="data sets to measure now: usps and a9a unless said, or letter")
    parser.add_argument("--rows", type=Path, help="file that keeps rows from one part of a run to the next")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "landmarks.md")
    options = parser.parse_args(arguments)
    if not options.smoke and not os.environ.get("MERCER_DATA"):
        parser.error("set MERCER_DATA to the folder of the data sets, or pass --smoke")
    data, sizes = (synthetic(), [5, 15]) if options.smoke else (cases(), options.sizes)
    results = earlier(options.rows)
    for name in options.sets or [name for name in data if name != "letter"]:
        case = data[name]
        choose(Gaussian(sigma=case.sigma), case.X[:200], 5, method="entropy")  # compiled before anything is timed
        choose(Gaussian(sigma=case.sigma), case.X[:200], 5, method="kmeans++")
        results.setdefault(name, [])
        results[name] += [measure(case, method, m, options.seeds) for m in sizes for method in METHODS]
    if options.rows:
        options.rows.write_text(json.dumps({name: [asdict(row) for row in rows] for name, rows in results.items()}))
    parts = [HEAD.format(seeds=options.seeds, threads=len(os.sched_getaffinity(0)))]
    for name in results:
        case = data[name]
        parts.append(
            f"## {name}: n = {case.X.shape[0]}, d = {case.X.shape[1]}, {len(np.unique(case.y))} classes, "
            f"{case.about}; Gaussian of sigma = {case.sigma:g}, C = {case.C:g}\n\n"
        )
        parts.append("\n".join(table(results[name])) + "\n\n")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("".join(parts).rstrip("\n") + "\n" + answers(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
