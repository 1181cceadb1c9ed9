"""Bagging, boosting and the bound by stability: what the literature says about averaging, measured.

Run:  MERCER_DATA=folder python studies/ensembles.py          (a minute on two cores)
      python studies/ensembles.py --smoke                      (small synthetic data, seconds)

Four claims (Hamers 2004, sections 6.2 and 6.3, figures 6.1 to 6.5; Schapire, Freund, Bartlett and Lee 1998):

1. Subbagging of sinc: five members on 1 % of 6,667 noisy points.  With the parameters of one member for all, one may go
   wild and ruin the mean; where each is tuned by leave-one-out, all are good and the mean is better than they are.
2. Subbagging of abalone: ten members on 5 % of 2,800 points against one machine on all; the thesis found the ensemble
   slightly worse than the machine and better than its members, and prints no numbers.
3. The sandwich of Efron and Stein: bagging gains no more than the stability of the machine leaves.
4. AdaBoost drives margins up beside the bound of Theorem 1.12, and goes on after the training error has vanished.  On
   subsets (Pavlov, Mao and Dom 2000: 10 to 15 machines on 2 to 4 % match the whole machine).

The thesis states neither the noise nor the range of sinc, nor how the sex of abalone is coded: noise 0.1 on [-10, 10]
and the coding of the file are taken here.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from mercer import LSSVR, SVC, AdaBoost, Bagging, Gaussian, data
from mercer.ensembles import combining, efron_stein, gain

Array = NDArray[np.float64]
MATCH = 0.005  # difference of error rates that is called none
TUNED = LSSVR(C="loo", kernel=Gaussian(sigma="loo"))


def sinc(n: int, seed: int) -> tuple[Array, Array]:
    """Noisy values of sin(x)/x on [-10, 10]."""
    random = np.random.default_rng(seed)
    x = random.uniform(-10, 10, n)
    return x[:, None], np.sinc(x / np.pi) + 0.1 * random.standard_normal(n)


def subbagged_sinc(n: int, repeats: int) -> list[str]:
    """Errors of members and of their combinations, for shared and for own parameters."""
    grid = np.linspace(-10, 10, 400)
    truth = np.sinc(grid / np.pi)
    lines = [
        "| parameters | worst member | mean member | mean | median | draws with a wild member |",
        "|---|---|---|---|---|---|",
    ]
    for name in ("of the first member, shared", "of each member"):
        rows, wild = [], 0
        for seed in range(repeats):
            X, y = sinc(n, seed)
            base = TUNED
            found = Bagging(base, members=5, sample="subsample", size=0.01, random_state=seed).fit(X, y)
            if name.startswith("of the first"):
                first = found.members_[0]
                base = LSSVR(C=first.C_, kernel=first.kernel_)
                found = Bagging(base, members=5, sample="subsample", size=0.01, random_state=seed).fit(X, y)
            F = found.member_outputs(grid[:, None])
            errors = np.mean((F[:, :, 0] - truth) ** 2, axis=1)
            both = [np.mean((rule(F)[:, 0] - truth) ** 2) for rule in (combining.mean, combining.median)]
            rows.append([errors.max(), errors.mean(), *both])
            wild += int(errors.max() > 10 * np.median(errors))
        worst, mean, *ensemble = np.mean(rows, axis=0)
        numbers = " | ".join(f"{value:.2e}" for value in (worst, mean, *ensemble))
        lines.append(f"| {name} | {numbers} | {wild} of {repeats} |")
    return lines


def abalone(smoke: bool) -> tuple[Array, Array, Array, Array]:
    """The first 2,800 points of the two parts of the set, one after the other, and the last 1,377, standardised."""
    if smoke:
        X, y = sinc(400, 0)
        return X[:300], y[:300], X[300:], y[300:]
    parts = [data.benchmark("abalone", part, sparse=False) for part in ("train", "test")]
    X, y = np.vstack([np.asarray(part.X) for part in parts]), np.concatenate([part.y for part in parts])
    cut = 2800
    scale = data.Standardise.learn(X[:cut])
    return scale(X[:cut]), y[:cut].astype(float), scale(X[cut:]), y[cut:].astype(float)


def subbagged_abalone(smoke: bool) -> list[str]:
    """One machine on all points against ten on a twentieth each."""
    A, a, B, b = abalone(smoke)
    size = 60 if smoke else 140
    single = float(np.mean((TUNED.fit(A, a).predict(B) - b) ** 2))
    found = Bagging(TUNED, members=10, sample="subsample", size=size, random_state=0).fit(A, a)
    F = found.member_outputs(B)[:, :, 0]
    whole = gain(F, b)
    each = np.mean((F - b) ** 2, axis=1)
    return [
        f"One machine on all {len(a)} points, tuned by leave-one-out: test error {single:.3f}.",
        f"Ten members on {size} points, each tuned: {each.min():.3f} to {each.max():.3f}, mean {whole.members:.3f}.",
        f"Their mean errs {whole.ensemble:.3f}; the difference is their spread, {whole.spread:.3f}, by identity.",
        f"Out of bag: {found.oob_error_:.3f}.",
    ]


def sandwich(N: int, sets: int) -> list[str]:
    """Both sides of the sandwich, averaged over x, for weak and strong regularisation."""
    grid = np.linspace(-9, 9, 50)[:, None]
    truth = np.sinc(grid[:, 0] / np.pi)
    lines = [
        "| C | error of the ideal bag | of one machine | upper bound | gain of bagging |",
        "|---|---|---|---|---|",
    ]
    for C in (100.0, 1.0, 0.01):
        base = LSSVR(C=C, kernel=Gaussian(1.0), bias="none")
        full, left = [], []
        for seed in range(sets):
            X, y = sinc(N, 1000 + seed)
            full.append(base.fit(X, y).predict(grid))
            keep = ~np.eye(N, dtype=bool)
            left.append([base.fit(X[rows], y[rows]).predict(grid) for rows in keep])
        found = efron_stein(full, left, truth)
        bag, single, upper = (float(np.mean(part)) for part in found)
        lines.append(f"| {C:g} | {bag:.2e} | {single:.2e} | {upper:.2e} | {100 * (1 - bag / single):.0f} % |")
    return lines


def margins(smoke: bool) -> list[str]:
    """Training error, test error, margins and their bound, round after round of boosted trees."""
    random = np.random.default_rng(0)
    X, y = _ringnorm(300 if smoke else 1000, random)
    new, truth = _ringnorm(300 if smoke else 2000, random)
    lines = [
        "| rounds | training error | test error | smallest margin | margins <= 0.1 | bound of Theorem 1.12 |",
        "|---|---|---|---|---|---|",
    ]
    for rounds in (1, 5, 20, 60) if smoke else (1, 5, 20, 100, 300):
        tree = DecisionTreeClassifier(max_depth=3, random_state=0)
        found = AdaBoost(tree, rounds=rounds, random_state=0).fit(X, y)
        own = found.margins(X, y)
        lines.append(
            f"| {len(found.members_)} | {np.mean(own <= 0):.3f} | {1 - found.score(new, truth):.3f} | "
            f"{own.min():+.3f} | {np.mean(own <= 0.1):.3f} | {found.margin_bound(0.1).value:.3f} |"
        )
    return lines


def _ringnorm(n: int, random: np.random.Generator) -> tuple[Array, NDArray[np.intp]]:
    """Breiman's ringnorm in 20 dimensions: N(0, 4I) against N(a, I), a = 2/sqrt(20)."""
    y = random.integers(0, 2, n)
    X = random.standard_normal((n, 20))
    return np.where(y[:, None] == 0, 2.0 * X, X + 2.0 / np.sqrt(20)), y


def arcing(smoke: bool) -> list[str]:
    """Boosting sets of 2 and 4 % of the points against the whole machine."""
    if smoke:
        random = np.random.default_rng(0)
        A, a = _ringnorm(600, random)
        B, b = _ringnorm(600, random)
    else:
        train, test = (data.benchmark("a9a", part, features=123, sparse=False) for part in ("train", "test"))
        A, a, B, b = train.X[:6000], train.y[:6000], test.X, test.y
    base = SVC(C=1.0, kernel=Gaussian(4.0))
    whole = 1 - base.fit(A, a).score(B, b)
    lines = ["| machines | points of each | test error |", "|---|---|---|", f"| 1 | {len(a)} | {whole:.4f} |"]
    for size in (0.02, 0.04):
        for rounds in (1, 15):
            found = AdaBoost(base, rounds=rounds, size=size, random_state=0).fit(A, a)
            lines.append(f"| {len(found.members_)} | {round(size * len(a))} | {1 - found.score(B, b):.4f} |")
    return lines


def _cells(lines: Sequence[str]) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def on_sinc(lines: Sequence[str]) -> str:
    """Whether own parameters cure the members and the mean, from the table."""
    shared, own = ([float(cell) for cell in row[1:5]] for row in _cells(lines))
    cured = own[0] < shared[0] and own[2] < shared[2]
    better = own[2] < own[1]
    return (
        f"Own parameters {'cure' if cured else 'do not cure'} the worst member and the mean, which the thesis shows.\n"
        f"Their mean errs {own[2] / own[1]:.2f} times as much as they do: "
        f"it is {'better' if better else 'not better'}.\n"
        f"With shared parameters the median errs {shared[3] / shared[2]:.2f} times as much as the mean."
    )


def on_arcing(lines: Sequence[str]) -> str:
    """Whether machines on subsets match the one on all points, from the table."""
    errors = [float(row[2]) for row in _cells(lines)]
    distance = min(errors[1:]) - errors[0]
    match = "match" if distance <= MATCH else "do not match"
    return (
        f"The best combination is {100 * distance:+.1f} points of error from the machine on all points: here the "
        "subsets\n"
        f"{match} it; Pavlov, Mao and Dom found that they do."
    )


def report(smoke: bool) -> str:
    """The page."""
    n, repeats, N, sets = (2000, 4, 6, 20) if smoke else (6667, 20, 20, 100)
    parts = [
        "# Averaging: bagging, stability, boosting",
        "",
        "Written by `studies/ensembles.py`; what is claimed and what is not stated is said there.",
        "",
        "## Subbagging of sinc (Hamers 2004, figures 6.1 to 6.4)",
        "",
        f"Five members on 1 % of {n} points; mean squared distance from sinc, over {repeats} draws. A wild member",
        "errs ten times as much as the median one. The thesis shows one draw of each and prints no numbers.",
        "",
        *(table := subbagged_sinc(n, repeats)),
        "",
        on_sinc(table),
        "",
        "## Subbagging of abalone (figure 6.5)",
        "",
        *subbagged_abalone(smoke),
        "",
        "## The sandwich of Efron and Stein",
        "",
        f"Least squares without bias on {N} points of sinc, Gaussian kernel of width 1; expectations over {sets}",
        "training sets, averaged over x.",
        "",
        *sandwich(N, sets),
        "",
        "## Margins of boosted trees",
        "",
        "Trees of depth 3 on Breiman's ringnorm.",
        "",
        *margins(smoke),
        "",
        "## Arcing on subsets",
        "",
        "Support vector machines on draws from the distribution of AdaBoost, against one on all points"
        + (" (synthetic)." if smoke else ": the first 6,000 points of a9a, tested on its test set."),
        "",
        *(table := arcing(smoke)),
        "",
        on_arcing(table),
        "",
    ]
    return "\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="small synthetic data")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "ensembles.md")
    options = parser.parse_args(arguments)
    options.out.write_text(report(options.smoke))
    return 0


if __name__ == "__main__":
    sys.exit(main())
