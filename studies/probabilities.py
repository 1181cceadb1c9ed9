"""Whose probabilities are better on new points: Platt's sigmoid on a support vector machine, or logistic regression?

Run:  MERCER_DATA=folder python studies/probabilities.py        (minutes on two cores)
      python studies/probabilities.py --smoke                    (bundled data, seconds)

A sigmoid fitted to the outputs of a support vector machine (Platt 2000) makes probabilities afterwards; logistic
regression minimises their log loss from the start.  On each set half of the points, at most `MOST`, choose C and sigma
by three folds and train; the others judge: TunedSVC(probability=True) chosen by accuracy, TunedLogistic chosen by log
loss.  Splits are repeated, and differences are taken within a split: the same points, two machines.
"""

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from parts import table

from mercer import TunedLogistic, TunedSVC, data

Array = NDArray[np.float64]

SETS = (
    "heart-statlog", "german-numeric", "breast-cancer-wisconsin", "australian", "pima", "ionosphere", "sonar", "bupa",
    "vehicle", "glass", "segment", "banana",
)  # fmt: skip
SMOKE = ("heart-statlog", "iris")
MOST = 500
FLOOR = 1e-15


class Judged(NamedTuple):
    """What a machine's probabilities are worth on new points."""

    log_loss: float
    brier: float
    error: float


def judge(p: Array, classes: NDArray[Any], y: NDArray[Any]) -> Judged:
    """Log loss, Brier score (squared distance to the indicator) and error of probabilities (n, k)."""
    code = np.searchsorted(classes, y)
    true = p[np.arange(len(y)), code]
    brier = (p**2).sum(axis=1) - 2.0 * true + 1.0
    return Judged(
        float(-np.log(np.maximum(true, FLOOR)).mean()), float(brier.mean()), float(np.mean(p.argmax(axis=1) != code))
    )


def split(y: NDArray[Any], seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Half of each class for training, at most MOST points in all, and the other half."""
    random = np.random.default_rng(seed)
    share = min(0.5, MOST / len(y))
    train = []
    for label in np.unique(y):
        own = random.permutation(np.flatnonzero(y == label))
        train.append(own[: max(3, int(share * len(own)))])
    inside = np.concatenate(train)
    return inside, np.setdiff1d(np.arange(len(y)), inside)


def measure(name: str, splits: int, grid: int) -> list[tuple[Judged, Judged]]:
    """Platt's and logistic regression's judgement for each split."""
    found = data.sample(name) if name in data.SAMPLES else data.benchmark(name)
    X = found.X.toarray() if found.is_sparse else np.asarray(found.X)
    y = np.asarray(found.y)
    results = []
    for seed in range(splits):
        inside, outside = split(y, seed)
        scaling = data.Standardise.learn(X[inside])
        train, new = scaling(X[inside]), scaling(X[outside])
        options: dict[str, Any] = {"folds": 3, "n_C": grid, "n_sigma": grid, "random_state": seed}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            machines = (TunedSVC(probability=True, **options), TunedLogistic(**options))
            platt, logistic = (
                judge(machine.fit(train, y[inside]).predict_proba(new), machine.classes_, y[outside])
                for machine in machines
            )
        results.append((platt, logistic))
    return results


def row(name: str, results: Sequence[tuple[Judged, Judged]]) -> tuple[list[str], int]:
    """A line of the table, and which is better in log loss: 1 logistic, -1 Platt, 0 within two standard errors."""
    both = np.array(results)  # (splits, 2, 3)
    mean = both.mean(axis=0)
    difference = both[:, 0, 0] - both[:, 1, 0]
    error = difference.std(ddof=1) / np.sqrt(len(difference)) if len(difference) > 1 else np.inf
    sign = 0 if abs(difference.mean()) <= 2.0 * error else int(np.sign(difference.mean()))
    cells = [f"{mean[m, k]:.4f}" for k in range(3) for m in range(2)]
    return [name, *cells, f"{difference.mean():+.4f} +- {error:.4f}", ("Platt", "even", "logistic")[sign + 1]], sign


HEAD = """# Probabilities: Platt's sigmoid against kernel logistic regression

Measured by `studies/probabilities.py`: {splits} random splits of each set, at most {most} training points, C and sigma
from a {grid} x {grid} grid by three folds; all numbers are means over the points that were not trained on.  P is
TunedSVC(probability=True), chosen by accuracy; L is TunedLogistic, chosen by log loss.  The difference is P minus L
within a split, with its standard error; "even" is within two of them.

"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="bundled data, a few seconds")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--grid", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "probabilities.md")
    options = parser.parse_args(arguments)
    names, splits, grid = (SMOKE, 2, 3) if options.smoke else (SETS, options.splits, options.grid)
    rows, signs = [], []
    for name in names:
        print(name, flush=True)
        cells, sign = row(name, measure(name, splits, grid))
        rows.append(cells)
        signs.append(sign)
    head = ["set", "log loss P", "L", "Brier P", "L", "error P", "L", "log loss P - L", "better"]
    better, worse = signs.count(1), signs.count(-1)
    verdict = (
        f"\n\nBy log loss logistic regression is better on {better} of {len(names)} sets, Platt's sigmoid on {worse}, "
        f"and {signs.count(0)} are even."
    )
    if worse:
        verdict += "  Platt's is better on: " + ", ".join(n for n, s in zip(names, signs, strict=True) if s < 0) + "."
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(HEAD.format(splits=splits, most=MOST, grid=grid) + table(head, rows) + verdict + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
