"""Local machines: covtype cut into cells, each with a tuned machine of its own, beside liquidSVM's cells.

    python -m benchmarks.local_machines --only 50,000 --repeats 1                      # two minutes
    python -m benchmarks.local_machines --only "all rows" --repeats 1 --peers none     # one minute: mercer alone

Class 2 against the others, features standardised, 50,000 rows held back for the test, the rest for the training, in
whole or in part.  Each library cuts its own cells and searches its own grid on two threads: liquidSVM with its defaults
for cells, 10 x 10 candidates and 5 folds; mercer with its own, cells of 2,000 points and half as many from around them,
6 x 6 candidates and 3 folds, and at 50,000 rows also 10 x 10 and 5.  liquidSVM predicts with the machines of its folds
together, mercer trains the best candidate of a cell on all of its points.
"""

import time
import warnings
from typing import Any

import numpy as np

from benchmarks import harness, peers
from mercer import LocalMachines, TunedSVC
from mercer import data as sets

TEST = 50_000
FOLDS = 5


def covtype(rows: int | None) -> Any:
    def read(smoke: bool) -> Any:
        if smoke:
            whole = sets.sample("german-numeric")
            X, y, held = sets.Standardise.learn(whole.X)(whole.X), whole.y, 200
        else:
            whole = sets.benchmark("covtype", sparse=False)
            X, y, held = sets.Standardise.learn(whole.X)(whole.X), np.where(whole.y == 2, 1, -1), TEST
        order = np.random.default_rng(0).permutation(len(y))
        train, test = order[:-held][:rows], order[-held:]
        return X[train], y[train], X[test], y[test]

    return read


def local(**search: Any) -> Any:
    """Mercer's local machines."""

    def measure(data: Any) -> dict[str, Any]:
        X, y, Z, t = data
        base = TunedSVC(search_tol=0.1, **search) if search else None
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            machine = LocalMachines(base, random_state=0).fit(X, y)
        seconds = time.perf_counter() - started
        started = time.perf_counter()
        accuracy = machine.score(Z, t)
        return {
            "seconds": seconds,
            "predict s": time.perf_counter() - started,
            "test error": 1.0 - accuracy,
            "cells": len(machine.machines_),
            "with one class": sum(isinstance(one, float) for one in machine.machines_),
            "relative gap": machine.gap_ / machine.objective_,
        }

    return measure


def liquid(data: Any) -> dict[str, Any]:
    """LiquidSVM's cells."""
    found = peers.liquid_svm(*data, folds=FOLDS, cells=True)
    return {"seconds": found["seconds"], "test error": 1.0 - found["accuracy"]}


FINE = {"mercer (10 x 10, 5 folds)": local(n_C=10, n_sigma=10, folds=FOLDS)}
NOTE = "class 2 against the others, 50,000 test rows, two threads"
TASKS = [
    harness.Task(
        "covtype, 50,000 rows",
        covtype(50_000),
        {"mercer": local(), "liquidSVM": liquid, **FINE},
        needs_data=True,
        note=NOTE,
    ),
    *[
        harness.Task(
            f"covtype, {words}", covtype(rows), {"mercer": local(), "liquidSVM": liquid}, needs_data=True, note=NOTE
        )
        for words, rows in (("200,000 rows", 200_000), ("all rows", None))
    ],
]


if __name__ == "__main__":
    harness.main("local_machines", TASKS)
