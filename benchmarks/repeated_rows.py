"""What looking for repeated rows costs, and what merging them saves: SVC with and without it, on the same rows.

C = 1, gamma = "scale", tol = 1e-3.  "mercer, rows as given" is the same machine with the search taken out.  `search s`
is the search for copies alone, `points` the distinct ones.  Sampled rows are 30,000 drawn with repetition from 10,000
rows of 60 columns of 0 and 1; Gaussian rows have no copies, and only pay for the search.
"""

import time
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp

from benchmarks import harness
from mercer import SVC
from mercer.data import benchmark
from mercer.machine import repeated_rows

Data = tuple[Any, np.ndarray]
FEW = 200  # rows of a smoke run
AS_GIVEN = "mercer, rows as given"


def gaussian(n: int, d: int) -> Any:
    """Two overlapping classes, no row twice."""

    def loaded(smoke: bool) -> Data:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(FEW if smoke else n, d))
        return X, X[:, 0] + 0.5 * rng.normal(size=len(X)) > 0

    return loaded


def sampled(smoke: bool) -> Data:
    """Rows of 0 and 1 as CSR, each three times in the mean."""
    rng = np.random.default_rng(0)
    n = FEW if smoke else 30_000
    rows = (rng.random((n // 3, 60)) < 0.2).astype(np.float64)
    side = rows @ rng.normal(size=60)
    y = side + 0.5 * side.std() * rng.normal(size=len(rows)) > np.median(side)
    drawn = rng.integers(0, len(rows), n)
    return sp.csr_matrix(rows[drawn]), y[drawn]


def stored(name: str, part: str | None = None, rows: int | None = None, sparse: bool | None = None) -> Any:
    """A set of the data folder, or its first rows."""

    def loaded(smoke: bool) -> Data:
        if smoke:
            return sampled(True)
        data = benchmark(name, part, sparse=sparse)
        return data.X[:rows], np.asarray(data.y)[:rows]

    return loaded


def fit(data: Data) -> dict[str, Any]:
    """Fit, and time the search alone."""
    X, y = data
    started = time.perf_counter()
    machine = SVC().fit(X, y)
    seconds = time.perf_counter() - started
    codes = np.unique(y, return_inverse=True)[1]
    started = time.perf_counter()
    found = repeated_rows.distinct(X, codes, None)
    search = time.perf_counter() - started
    return {
        "seconds": seconds,
        "search s": search,
        "rows": int(X.shape[0]),
        "points": int(X.shape[0]) if found is None else len(found.first),
        "objective": float(machine.objective_),
    }


def fit_as_given(data: Data) -> dict[str, Any]:
    """The same without the search."""
    with patch.object(repeated_rows, "distinct", lambda *_, **__: None):
        started = time.perf_counter()
        machine = SVC().fit(*data)
        seconds = time.perf_counter() - started
    return {"seconds": seconds, "objective": float(machine.objective_)}


def task(name: str, load: Any, needs_data: bool = False) -> harness.Task:
    """One comparison."""
    return harness.Task(name, load, {"mercer": fit, AS_GIVEN: fit_as_given}, needs_data=needs_data)


TASKS = [
    task("1,000 x 10 Gaussian", gaussian(1000, 10)),
    task("covtype, first 20,000 rows x 54", stored("covtype", rows=20_000, sparse=False), True),
    task("a9a", stored("a9a", "train"), True),
    task("mushroom", stored("mushroom"), True),
    task("car", stored("car"), True),
    task("sampled rows of 0 and 1", sampled),
]

if __name__ == "__main__":
    harness.main("repeated_rows", TASKS)
