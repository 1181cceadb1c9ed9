"""Low-rank least squares on usps: Rifkin 2002, section 3.7.3 (Figures 3-17, 3-19, 3-21 and 3-23 to 3-25), again.

Run:  MERCER_DATA=folder python studies/low_rank_usps.py            (about four minutes on two cores)
      python studies/low_rank_usps.py --smoke                        (synthetic data, seconds)
With --work FOLDER the run may be cut in parts (--sizes 1024, --draws 5): each draw is kept there and not made again.

As printed: the task (digit 4 against the rest, 7,291 training and 2,007 test points), the Gaussian of sigma = 5, no
bias, m = 1024, 512, 256 and 128, ten random draws, their average as bagging, landmarks by incomplete Cholesky.  The
thesis gives neither lambda nor numbers, only curves: what can be compared is the order.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from parts import table
from scipy.stats import t as student

from mercer.cli.scores import area
from mercer.data.samples import benchmark
from mercer.gram import Gram
from mercer.kernels import Gaussian
from mercer.lowrank import Landmarks, choose
from mercer.lowrank.feature_map import triangular_map
from mercer.lowrank.least_squares_forms import nystrom, predict, rectangle, subset
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.linear import cholesky

Array = NDArray[np.float64]
METHODS = ("subset", "subset, lambda kept", "rectangle", "nystrom", "nystrom, projected")
RIDGES = (0.01, 0.1, 1.0, 10.0, 100.0)


@dataclass(frozen=True)
class Task:
    """Training and test points with labels -1 / +1, and the kernel."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    kernel: Gaussian


def usps() -> Task:
    """Digit 4 against the rest; pixels in [-1, 1]."""
    train, test = benchmark("usps", "train", sparse=False), benchmark("usps", "test", sparse=False)
    y, y_test = (np.where(np.asarray(part.y) == 4, 1.0, -1.0) for part in (train, test))
    return Task(np.asarray(train.X), y, np.asarray(test.X), y_test, Gaussian(sigma=5.0))


def synthetic() -> Task:
    """A small class between two large ones on a line through eight dimensions."""
    rng = np.random.default_rng(0)
    labels = rng.choice(3, size=300, p=[0.45, 0.1, 0.45])
    X = rng.normal(size=(300, 8))
    X[:, 0] += 2.5 * labels
    y = np.where(labels == 1, 1.0, -1.0)
    return Task(X[:200], y[:200], X[200:], y[200:], Gaussian(sigma=2.0))


def best_C(task: Task, m: int) -> tuple[float, dict[float, float]]:
    """C of least leave-one-out error of the rectangle machine on m random landmarks, and all errors."""
    landmarks = choose(task.kernel, task.X, m, seed=0, measure=False)
    features = triangular_map(task.kernel, landmarks.points).features(task.X)
    values, V = np.linalg.eigh(features.T @ features)
    P, errors = features @ V, {}
    for C in 10.0 ** np.arange(-2, 4):
        damped = 1.0 / (values + 1.0 / C)
        errors[float(C)] = float(np.mean(((task.y - P @ (damped * (P.T @ task.y))) / (1 - P**2 @ damped)) ** 2))
    return min(errors, key=lambda C: errors[C]), errors


def outputs_of(task: Task, landmarks: Landmarks, C: float) -> dict[str, Array]:
    """Outputs (t,) at the test points of every method on the same landmarks."""
    common: dict[str, Any] = {"C": C, "bias": "none"}
    X, y, kernel = task.X, task.y, task.kernel
    found = {
        "subset": subset(kernel, X, y, landmarks, **common),
        "subset, lambda kept": subset(kernel, X, y, landmarks, rescale=True, **common),
        "rectangle": rectangle(kernel, X, y, landmarks, **common),
        "nystrom": nystrom(kernel, X, y, landmarks, evaluation="full", **common),
        "nystrom, projected": nystrom(kernel, X, y, landmarks, evaluation="projected", **common),
    }
    return {name: predict(solution, kernel, X, landmarks, task.X_test)[:, 0] for name, solution in found.items()}


def drawn(task: Task, m: int, draw: int | None, C: float, work: Path, pivots: Landmarks) -> dict[str, Any]:
    """Outputs of every method and the share of the trace on one draw of landmarks, the first pivots for None."""
    path = work / f"{m}_{'pivots' if draw is None else draw}_{C:g}.npz"
    if not path.exists():
        if draw is None:
            index = np.asarray(pivots.index)[:m]
            landmarks = Landmarks(task.X[index], index, "pivoted_cholesky", np.nan, 0, np.nan, np.nan, 0.0)
            share = 1.0 - float(pivots.details["history"][m]) / len(task.y)
        else:
            landmarks = choose(task.kernel, task.X, m, seed=draw, measure=True)
            share = landmarks.explained
        found = outputs_of(task, landmarks, C)
        np.savez(path, share=share, outputs=np.array([found[name] for name in METHODS]))
    kept = np.load(path)
    return dict(zip(METHODS, kept["outputs"], strict=True)) | {"share": float(kept["share"])}


def full_machine(task: Task, C: float, work: Path) -> Array:
    """Outputs (t,) of the exact machine."""
    path = work / f"full_{C:g}.npy"
    if not path.exists():
        gram = Gram(task.kernel, task.X, storage="streamed")
        solution = cholesky.solve(LeastSquares(gram, task.y[:, None], C, None, "none"))
        np.save(path, (task.kernel(task.X_test, task.X) @ solution.coefficients)[:, 0])
    return np.asarray(np.load(path))


# What is reported --------------------------------------------------------------------------------------------------


def scores(f: Array, y: Array) -> Array:
    """AUC, hits (%) at one false alarm in a hundred, error (%) at threshold 0."""
    found = area(f, y > 0)
    assert found is not None
    threshold = np.quantile(f[y < 0], 0.99)
    return np.array([found[0], 100 * np.mean(f[y > 0] > threshold), 100 * np.mean((f > 0) != (y > 0))])


def interval(values: Array) -> tuple[float, float]:
    """Mean and half width of its 95 % interval (Student) over draws."""
    n = len(values)
    half = float(student.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else np.nan
    return float(np.mean(values)), half


def shown(values: Array, digits: int) -> str:
    """Mean and half width."""
    mean, half = interval(values)
    return f"{mean:.{digits}f} ± {half:.{digits}f}" if np.isfinite(half) else f"{mean:.{digits}f}"


REPORT = """# Low-rank least squares on usps

Rifkin 2002, section 3.7.3, measured again by `studies/low_rank_usps.py`:
{about}.
Gaussian of sigma = {sigma:g}, no bias.  C = 1/(lambda n) = {C:g} has the least leave-one-out error of the rectangle
machine at m = {most} among powers of ten (the thesis does not give lambda).  Means over {draws} random draws of
landmarks with 95 % intervals (Student).  The thesis prints curves and no numbers, so that its order is what is
compared: rectangle > subset > nystrom.

"Subset" keeps the ridge 1/C, "lambda kept" multiplies C by n/m (the thesis does not say which).  "Nystrom" solves with
K~ and evaluates with the exact kernel on all points, as the thesis does; "projected" evaluates with K~ too.  The full
machine: AUC {full[0]:.4f}, {full[1]:.1f} % hits at 1 % false alarms, {full[2]:.2f} % errors.

## Random landmarks, and landmarks by incomplete Cholesky (Figures 3-17, 3-21, 3-23 to 3-25)

{main}

## The same landmarks, method against method

Differences of AUC within each draw, times 1000.

{pairs}

{order}

## Incomplete Cholesky against random landmarks

{pivots}

## Bagging (Figure 3-19)

Outputs of the {draws} machines averaged.

{bagging}

## The order depends on C

AUC, mean of {few} draws, with C multiplied by:

{ridges}

{reading}
"""


RIDGES_READING = """\
The printed order, rectangle > subset > nystrom, holds with C times: {held}.
The coefficients (K~ + I/C)^-1 y hold C times the part of y outside the range of K~.  Projected evaluation never sees
that part; the exact kernel brings it back at new points, the more so the larger C.  The place of nystrom in the printed
order is therefore a matter of lambda, which the thesis does not give."""


def main_table(runs: dict[int, list[dict[str, Any]]], pivots: dict[int, dict[str, Any]], y: Array) -> str:
    """Scores of each method at each m."""
    rows = []
    for m, draws in runs.items():
        for name in METHODS:
            each = np.array([scores(run[name], y) for run in draws])
            one = scores(pivots[m][name], y)
            cells = [f"{shown(each[:, k], digits)} ({one[k]:.{digits}f})" for k, digits in ((0, 4), (1, 1), (2, 2))]
            rows.append([str(m), name, *cells])
    head = ["m", "method", "AUC, random (pivots)", "hits % at 1 % false alarms", "errors %"]
    return table(head, rows)


def pairs_table(runs: dict[int, list[dict[str, Any]]], y: Array) -> tuple[str, str]:
    """Paired differences of AUC, and what they say about the printed order."""
    pairs = [("rectangle", "subset"), ("rectangle", "subset, lambda kept"), ("subset", "nystrom"),
             ("subset, lambda kept", "nystrom"), ("rectangle", "nystrom")]  # fmt: skip
    rows = []
    sure = dict.fromkeys(pairs, 0)
    against = dict.fromkeys(pairs, 0)
    for m, draws in runs.items():
        cells = []
        for pair in pairs:
            values = np.array([1000 * (scores(run[pair[0]], y)[0] - scores(run[pair[1]], y)[0]) for run in draws])
            mean, half = interval(values)
            sure[pair] += mean - half > 0
            against[pair] += mean + half < 0
            cells.append(shown(values, 2))
        rows.append([str(m), *cells])
    words = [f"{a} beats {b} in {sure[a, b]} of {len(runs)} sizes and loses in {against[a, b]}" for a, b in pairs]
    gap = max(float(np.abs(run["rectangle"] - run["nystrom, projected"]).max()) for draws in runs.values()
              for run in draws)  # fmt: skip
    order = (
        "With intervals that leave zero out: "
        + ";\n".join(words)
        + ".\nNystrom with projected evaluation and rectangle "
        f"are one machine: their outputs differ by at most {gap:.0e}."
    )
    return table(["m", *(f"{a} less {b}" for a, b in pairs)], rows), order


def pivots_table(runs: dict[int, list[dict[str, Any]]], pivots: dict[int, dict[str, Any]], y: Array) -> str:
    """Share of the trace, and AUC of the pivots against the spread of random draws."""
    rows, below, better, worse = [], 0, 0, 0
    for m, draws in runs.items():
        shares = np.array([100 * run["share"] for run in draws])
        below += 100 * pivots[m]["share"] < shares.min()
        cells = [str(m), shown(shares, 2), f"{100 * pivots[m]['share']:.2f}"]
        for name in ("subset", "rectangle", "nystrom"):
            values = np.array([scores(run[name], y)[0] for run in draws])
            one = scores(pivots[m][name], y)[0]
            better += one > values.max()
            worse += one < values.min()
            cells.append(f"{values.min():.4f} - {values.max():.4f}; {one:.4f}")
        rows.append(cells)
    head = ["m", "trace % by random", "by pivots", *(f"AUC of {name}: random; pivots" for name in
            ("subset", "rectangle", "nystrom"))]  # fmt: skip
    return table(head, rows) + (
        f"\n\nThe pivots explain less of the trace than every random draw at {below} of {len(runs)} sizes (printed: at "
        f"all).  Their machine is\nbetter than every random draw in {better} of {3 * len(runs)} cases and worse than "
        f"every one in {worse} (printed: no general gain)."
    )


def bagging_table(runs: dict[int, list[dict[str, Any]]], y: Array) -> str:
    """Scores of the averaged outputs beside the mean score of one machine."""
    rows, gains = [], {}
    for m, draws in runs.items():
        for name in METHODS[:4]:
            one = np.mean([scores(run[name], y) for run in draws], axis=0)
            bagged = scores(np.mean([run[name] for run in draws], axis=0), y)
            gains[name, m] = bagged[0] - one[0]
            cells = [f"{a:.{digits}f} -> {b:.{digits}f}" for a, b, digits in zip(one, bagged, (4, 1, 2), strict=True)]
            rows.append([str(m), name, *cells])
    gained = max(gains, key=lambda pair: gains[pair])
    same = sum(ranking(runs[m], y, bagged=False) == ranking(runs[m], y, bagged=True) for m in runs)
    head = ["m", "method", "AUC, one -> bagged", "hits % at 1 % false alarms", "errors %"]
    return table(head, rows) + (
        f"\n\nThe order of subset, rectangle and nystrom by AUC is the same before and after bagging at {same} of "
        f"{len(runs)} sizes (printed: at\nall).  The largest gain in AUC is that of {gained[0]} at m = {gained[1]} "
        "(printed: bagging\nhelps weak machines, nystrom at small m above all, and not the best)."
    )


def ranking(draws: Sequence[dict[str, Any]], y: Array, bagged: bool) -> list[str]:
    """Subset, rectangle and nystrom from the largest AUC to the least: of averaged outputs, or averaged over draws."""
    names = ("subset", "rectangle", "nystrom")
    value = {
        name: scores(np.mean([run[name] for run in draws], axis=0), y)[0]
        if bagged
        else np.mean([scores(run[name], y)[0] for run in draws])
        for name in names
    }
    return sorted(names, key=lambda name: -value[name])


def ridges_table(
    task: Task, sizes: Sequence[int], draws: int, C: float, work: Path, pivots: Landmarks
) -> tuple[str, str]:
    """AUC over multiples of C at every m, and what it says about the printed order."""
    rows: list[list[str]] = []
    as_printed: dict[float, list[int]] = {factor: [] for factor in RIDGES}
    for m in sizes:
        auc: dict[str, list[float]] = {name: [] for name in METHODS[:4]}
        for factor in RIDGES:
            runs = [drawn(task, m, draw, factor * C, work, pivots) for draw in range(draws)]
            for name, values in auc.items():
                values.append(float(np.mean([scores(run[name], task.y_test)[0] for run in runs])))
            if auc["rectangle"][-1] > auc["subset"][-1] > auc["nystrom"][-1]:
                as_printed[factor].append(m)
        rows += [[str(m), name, *(f"{value:.4f}" for value in values)] for name, values in auc.items()]
    held = [f"{factor:g} (m = {', '.join(map(str, found))})" for factor, found in as_printed.items() if found]
    return table(["m", "method", *(f"{factor:g}" for factor in RIDGES)], rows), RIDGES_READING.format(
        held="; ".join(held) or "none"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="synthetic data, a few seconds")
    parser.add_argument("--draws", type=int, default=10, help="random draws of landmarks")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1024, 512, 256, 128], help="numbers of landmarks")
    parser.add_argument("--most", type=int, default=1024, help="landmarks with which C is chosen")
    parser.add_argument("--work", type=Path, help="folder that keeps each draw")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "low_rank_usps.md")
    options = parser.parse_args(arguments)
    if not options.smoke and not os.environ.get("MERCER_DATA"):
        parser.error("set MERCER_DATA to the folder of the data sets, or pass --smoke")
    if options.smoke:
        options.sizes, options.most, options.draws = [40, 20, 10], 40, min(options.draws, 3)
    task = synthetic() if options.smoke else usps()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        text = report(task, options, work)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text)
    return 0


def report(task: Task, options: argparse.Namespace, work: Path) -> str:
    """Everything measured, as text."""
    C, _ = best_C(task, options.most)
    pivots = choose(task.kernel, task.X, options.most, method="pivoted_cholesky", measure=False)
    chosen = {m: drawn(task, m, None, C, work, pivots) for m in options.sizes}
    runs = {m: [drawn(task, m, draw, C, work, pivots) for draw in range(options.draws)] for m in options.sizes}
    few, y = min(options.draws, 3), task.y_test
    pairs, order = pairs_table(runs, y)
    ridges, reading = ridges_table(task, options.sizes, few, C, work, pivots)
    positive = int((task.y > 0).sum())
    return REPORT.format(
        about=f"{len(task.y):,} training points ({positive} positive), {len(y):,} test points ({int((y > 0).sum())})",
        sigma=task.kernel.parameters["sigma"],
        C=C,
        most=options.most,
        draws=options.draws,
        full=scores(full_machine(task, C, work), y),
        main=main_table(runs, chosen, y),
        pairs=pairs,
        order=order,
        pivots=pivots_table(runs, chosen, y),
        bagging=bagging_table(runs, y),
        few=few,
        ridges=ridges,
        reading=reading,
    )


if __name__ == "__main__":
    sys.exit(main())
