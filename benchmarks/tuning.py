"""Tuning: a 10 x 10 grid of C and width with 5 folds, mercer's shared search against GridSearchCV over the same grid.

    python -m benchmarks.tuning                           # everything; GridSearchCV takes many minutes
    MERCER_GRID_SHARE=0.09 python -m benchmarks.tuning    # GridSearchCV on 9 of the 100 candidates, its time scaled up
    python -m benchmarks.tuning --smoke

Both use the same candidates (the grid mercer derives from the data), the same folds and tolerance, and train the best
candidate on all points; accuracy is that on test points neither has seen.  With MERCER_GRID_SHARE the candidates that
GridSearchCV really runs are spread evenly over both axes, its search time is multiplied by 100 / (their number), as the
table says; its accuracy is then that of the best of those few.  liquidSVM runs over its own 10 x 10 grid.  "torchkm" is
one width with 50 values of C and 10 folds.
"""

import os
import time
import warnings
from typing import Any

import numpy as np

from benchmarks import harness, peers
from mercer import data as sets
from mercer import tuned
from mercer.kernels import Gaussian, median_sigma
from mercer.selection.folds import assign
from mercer.selection.grid import from_data

SHARE = float(os.environ.get("MERCER_GRID_SHARE", "1"))
N = 10
FOLDS = 5


def load(name: str, rows: int | None = None) -> Any:
    def read(smoke: bool) -> Any:
        if smoke:
            train = sets.sample("heart-statlog")
            X = sets.Standardise.learn(train.X)(train.X)
            return X[::2], train.y[::2], X[1::2], train.y[1::2], 3
        train, test = (sets.benchmark(name, part, sparse=False) for part in ("train", "test"))
        width = max(train.X.shape[1], test.X.shape[1])
        X, Z = (np.pad(part.X, ((0, 0), (0, width - part.X.shape[1]))) for part in (train, test))
        return X[:rows], train.y[:rows], Z, test.y, N

    return read


def problem(data: Any) -> tuple[Any, Any, Any]:
    """The grid, the fold of each point, and the classes."""
    X, y, *_, n = data
    _, codes = np.unique(y, return_inverse=True)
    grid = from_data(X, None, Gaussian(sigma=1.0), tuned=True, n_C=n, n_sigma=n)
    return grid, assign(len(y), FOLDS, codes.astype(np.intp), 0), codes


def shared_search(data: Any, **options: Any) -> dict[str, Any]:
    """mercer.TunedSVC over the whole grid."""
    X, y, Z, t, _ = data
    grid, fold, _ = problem(data)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if options.get("mode") == "halving":
            fold = FOLDS
        machine = tuned.TunedSVC(C=grid.C, sigma=grid.sigma, folds=fold, **options).fit(X, y)
    seconds = time.perf_counter() - started
    return figures(seconds, machine.best_score_, machine.score(Z, t), machine.best_params_, grid.size, grid.size)


def figures(seconds: float, cv: float, test: float, best: dict[str, float], run: int, size: int) -> dict[str, Any]:
    return {
        "seconds": seconds,
        "CV accuracy": cv,
        "accuracy": test,
        "C": best["C"],
        "sigma": best["sigma"],
        "candidates run": f"{run} of {size}" + ("" if run == size else ", search time scaled up"),
    }


def grid_search(library: str) -> Any:
    """GridSearchCV with n_jobs=2 over the same grid, or over a share of it."""

    def measure(data: Any) -> dict[str, Any]:
        from sklearn.model_selection import GridSearchCV, PredefinedSplit

        X, y, Z, t, _ = data
        grid, fold, _ = problem(data)
        each = max(1, round(np.sqrt(SHARE * grid.size)))
        C, sigma = (np.asarray(v)[((np.arange(each) + 0.5) * len(v) / each).astype(int)] for v in (grid.C, grid.sigma))
        values = {"C": C, "gamma": 0.5 / sigma**2}
        search = GridSearchCV(
            peers.estimator(library, "SVC"), values, cv=PredefinedSplit(fold), n_jobs=2, refit=True, scoring="accuracy"
        )
        started = time.perf_counter()
        search.fit(X, y)
        taken = time.perf_counter() - started - search.refit_time_
        run = len(C) * len(sigma)
        seconds = taken * grid.size / run + search.refit_time_
        best = {"C": search.best_params_["C"], "sigma": float(np.sqrt(0.5 / search.best_params_["gamma"]))}
        return figures(seconds, search.best_score_, search.score(Z, t), best, run, grid.size)

    return measure


def one_width(data: Any) -> dict[str, Any]:
    """50 values of C, 10 folds, one width."""
    X, y, Z, t, n = data
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = tuned.TunedSVC(C=costs(n), sigma=[median_sigma(X)], folds=2 * n, early_stop=False).fit(X, y)
    return {"seconds": time.perf_counter() - started, "accuracy": machine.score(Z, t), "C": machine.best_params_["C"]}


def torchkm(data: Any) -> dict[str, Any]:
    X, y, Z, t, n = data
    high = max(y)
    signs, truth = np.where(y == high, 1.0, -1.0), np.where(t == high, 1.0, -1.0)
    return peers.torchkm_svm(X, signs, Z, truth, C_values=costs(n), folds=2 * n, sigma=median_sigma(X))


def costs(n: int) -> Any:
    return np.geomspace(1e-2, 1e2, 5 * n)


def liquid(data: Any) -> dict[str, Any]:
    """LiquidSVM's own grid, 10 x 10, with as many folds."""
    X, y, Z, t, _ = data
    return peers.liquid_svm(X, y, Z, t, folds=FOLDS)


RIVALS = {
    "mercer": shared_search,
    "mercer (halving)": lambda data: shared_search(data, mode="halving"),
    "scikit-learn-intelex": grid_search("scikit-learn-intelex"),
}
GRID_NOTE = "GridSearchCV with n_jobs=2 on the same candidates and folds"
TASKS = [
    harness.Task("usps, same grid", load("usps"), RIVALS, needs_data=True, note=GRID_NOTE),
    harness.Task("letter, same grid", load("letter"), RIVALS, needs_data=True, note=GRID_NOTE),
    harness.Task("a9a, 10,000 rows, same grid", load("a9a", 10_000), RIVALS, needs_data=True, note=GRID_NOTE),
    *[
        harness.Task(
            f"{name}, own grids",
            load(name),
            {"mercer": shared_search, "liquidSVM": liquid},
            needs_data=True,
            note="each over the 10 x 10 grid it makes for itself, 5 folds, two threads",
        )
        for name in ("usps", "satimage")
    ],
    harness.Task(
        "a9a, 5,000 rows, 50 C, 10 folds",
        load("a9a", 5000),
        {"mercer": one_width, "torchkm": torchkm},
        needs_data=True,
        note="one width, the median distance",
    ),
]


if __name__ == "__main__":
    harness.main("tuning", TASKS)
