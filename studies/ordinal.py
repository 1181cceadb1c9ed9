"""Ordinal regression and ranking: learning curves of Herbrich, Graepel and Obermayer 2000, OHSUMED, ordinal sets.

Run:  MERCER_DATA=folder python studies/ordinal.py          (minutes on one core)
      python studies/ordinal.py --smoke                      (synthetic curves only, two draws, seconds)

1. Section 2.5.1 of the source: utility 10 (x1 - 1/2)(x2 - 1/2) on the unit square plus noise, five ranks, training
   sets of m = 5 to 45 points that hold every rank, kernel (x'z + 1)^2, C = 10^6; error is the share of pairs of
   different rank in the wrong order (or tied) among the other points of a thousand.  The source prints curves without
   numbers, and "N(0, 0.125)" may be a variance or a standard deviation: both are run.
2. OHSUMED in its LETOR form: five folds, C chosen on the validation part.
3. Sets of ordered ratings: mean absolute error in the rank over random halves.
"""

import argparse
import lzma
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

from mercer import SVC, SVR, OrdinalSVC, Polynomial, ProportionalOdds, RankSVM, WestonWatkinsSVC, data
from mercer.errors import MercerWarning
from mercer.ordinal.metrics import mean_average_precision, ndcg, rank_error, scaled_pair_loss

Array = NDArray[np.float64]
SIZES = (5, 10, 15, 25, 35, 45)
EDGES = (-1.0, -0.1, 0.25, 1.0)
NOISE = {"sd 0.125": 0.125, "variance 0.125": np.sqrt(0.125)}
KERNEL = Polynomial(2)
C_PRINTED = 1e6
# The hinge at C = 10^6 asks for the hard margin; the squared hinge at this C has the same solution on separable sets.
C_PAIRS = 1e4


def by_pairs(X: Array, y: Array, new: Array) -> tuple[Array, Array]:
    """Ranks and utilities by OrdinalSVC from pairs."""
    machine = OrdinalSVC(C=C_PAIRS, kernel=KERNEL, thresholds="pairs", loss="squared_hinge").fit(X, y)
    return machine.predict(new), machine.utility(new)


def by_regression(X: Array, y: Array, new: Array) -> tuple[Array, Array]:
    """Ranks by support vector regression on the codes 1 to 5, rounded."""
    f = SVR(C=C_PRINTED, epsilon=0.5, kernel=KERNEL, solver="interior_point").fit(X, y).predict(new)
    return np.clip(np.rint(f), 1, 5), f


def by_votes(X: Array, y: Array, new: Array) -> tuple[Array, Array]:
    """Ranks by ten machines, one for each pair of ranks."""
    found = SVC(C=C_PRINTED, kernel=KERNEL, solver="interior_point").fit(X, y).predict(new)
    return found, found


def by_weston_watkins(X: Array, y: Array, new: Array) -> tuple[Array, Array]:
    """Ranks by the machine that the source cites, at a C it converges with."""
    found = WestonWatkinsSVC(C=C_PAIRS, kernel=KERNEL, max_time=0.05).fit(X, y).predict(new)
    return found, found


METHODS: dict[str, Callable[[Array, Array, Array], tuple[Array, Array]]] = {
    "ordinal, pairs": by_pairs,
    "regression": by_regression,
    "one versus one": by_votes,
    "Weston and Watkins": by_weston_watkins,
}


def drawn(random: np.random.Generator, m: int, sd: float) -> tuple[Array, Array, Array, Array]:
    """Training points and ranks that hold every rank, and the rest of a thousand."""
    while True:
        X = random.uniform(0.0, 1.0, (1000, 2))
        f = 10.0 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5) + sd * random.standard_normal(1000)
        y = 1.0 + np.digitize(f, EDGES)
        for _ in range(2000):
            chosen = random.choice(1000, m, replace=False)
            if len(np.unique(y[chosen])) == 5:
                rest = np.setdiff1d(np.arange(1000), chosen)
                return X[chosen], y[chosen], X[rest], y[rest]


def curves(draws: int, sizes: Sequence[int]) -> list[str]:
    """The table of section 2.5.1."""
    lines = ["| noise | m | " + " | ".join(METHODS) + " | ordinal, utility |", "|---" * (len(METHODS) + 3) + "|"]
    for name, sd in NOISE.items():
        for m in sizes:
            random = np.random.default_rng(7)
            found: dict[str, list[float]] = {method: [] for method in (*METHODS, "utility")}
            for _ in range(draws):
                X, y, new, truth = drawn(random, m, sd)
                for method, run in METHODS.items():
                    ranks, f = run(X, y, new)
                    found[method].append(scaled_pair_loss(truth, ranks))
                    if method == "ordinal, pairs":
                        found["utility"].append(scaled_pair_loss(truth, f))
            cells = [f"{np.mean(v):.3f} ± {1.96 * np.std(v) / np.sqrt(len(v)):.3f}" for v in found.values()]
            lines.append(f"| {name} | {m} | " + " | ".join(cells) + " |")
    return lines


def ohsumed() -> list[str]:
    """Mean NDCG@10 and MAP over the folds; C by NDCG@10 of the validation part."""
    parts: list[Any] = []
    for k in range(1, 6):
        with lzma.open(Path(os.environ["MERCER_DATA"]) / f"ohsumed.S{k}.letor.xz") as file:
            text = file.read()
        X, y, queries = load_svmlight_file(BytesIO(text), query_id=True, n_features=45)
        parts.append((X.toarray(), y, queries))
    lines = ["| loss | NDCG@10 by fold | mean NDCG@10 | mean MAP |", "|---|---|---|---|"]
    for loss in ("squared_hinge", "hinge"):
        folds: list[tuple[float, float]] = []
        for fold in range(5):
            X, y, queries = (np.concatenate([parts[(fold + i) % 5][t] for i in range(3)]) for t in range(3))
            seen, test = parts[(fold + 3) % 5], parts[(fold + 4) % 5]
            machines = [
                RankSVM(C=C, kernel="linear", loss=loss).fit(X, y, groups=queries)
                for C in 10.0 ** np.arange(-6.0, -1.0)
            ]
            best = max(machines, key=lambda machine: ndcg(seen[1], machine.predict(seen[0]), k=10, groups=seen[2]))
            f = best.predict(test[0])
            folds.append((ndcg(test[1], f, k=10, groups=test[2]), mean_average_precision(test[1], f, groups=test[2])))
        gains, precisions = np.array(folds).T
        lines.append(
            f"| {loss} | {', '.join(f'{g:.3f}' for g in gains)} | {gains.mean():.4f} | {precisions.mean():.4f} |"
        )
    return lines


def ratings(repeats: int = 5) -> list[str]:
    """Mean absolute error in the rank on random halves, standardised features, Gaussian kernel, C = 1."""
    machines: dict[str, Any] = {
        "implicit": OrdinalSVC(),
        "explicit": OrdinalSVC(thresholds="explicit"),
        "pairs": OrdinalSVC(C=0.01, thresholds="pairs", loss="squared_hinge"),
        "logit": ProportionalOdds(),
        "SVC, one versus one": SVC(),
    }
    lines = ["| set | " + " | ".join(machines) + " |", "|---" * (len(machines) + 1) + "|"]
    for name in ("era", "esl", "lev"):
        given = data.benchmark(name, sparse=False)
        X, y = data.Standardise.learn(given.X)(given.X), np.asarray(given.y)
        errors: dict[str, list[float]] = {machine: [] for machine in machines}
        for seed in range(repeats):
            mixed = np.random.default_rng(seed).permutation(len(y))
            train, test = mixed[: len(y) // 2], mixed[len(y) // 2 :]
            for title, machine in machines.items():
                machine.fit(X[train], y[train])
                errors[title].append(rank_error(y[test], machine.predict(X[test]), np.unique(y)))
        lines.append(f"| {name} | " + " | ".join(f"{np.mean(e):.3f}" for e in errors.values()) + " |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="two draws of two sizes, no data")
    parser.add_argument("--draws", type=int, default=100, help="training sets of each size (100)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "ordinal.md")
    options = parser.parse_args(arguments)
    draws, sizes = (2, SIZES[:2]) if options.smoke else (options.draws, SIZES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        lines = [
            "# Ordinal regression and ranking\n",
            f"## Learning curves: Herbrich, Graepel and Obermayer 2000, section 2.5.1 ({draws} draws)\n",
            "Share of the pairs of different rank that are tied or in the wrong order, mean and 95 % interval.  The\n"
            "source plots this and prints no numbers.  Pairs are trained with the squared hinge at C = 10^4, the\n"
            "others with the printed C = 10^6, Weston and Watkins at C = 10^4 for at most 0.05 s each.\n",
            *curves(draws, sizes),
        ]
        if not options.smoke:
            lines += ["\n## OHSUMED, LETOR folds, linear RankSVM\n", *ohsumed()]
            lines += ["\n## Ratings: mean absolute error in the rank, five random halves\n", *ratings()]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
