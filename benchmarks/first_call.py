"""The first fit in a fresh process: with an empty cache of compiled code, and with a warm one.

Each measurement starts Python anew.  With an empty folder for compiled code `SVC().fit` on 300 bundled points is timed
after the imports, which is the time of compiling.  With the folder that a run before it has filled, the time is that of
the whole process, from its start to its end, as scikit-learn's beside it: imports, the fit, and the leaving.  Python's
own compiled files lie in the same folder, so that neither library is read from source.
"""

import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from typing import Any

import numpy as np

from benchmarks import harness
from mercer.data import sample

ROWS = 300
PROGRAM = """
import sys, time
import numpy as np
from {library} import SVC
points = np.load(sys.argv[1])
started = time.perf_counter()
SVC().fit(points["X"], points["y"])
print(time.perf_counter() - started)
"""


def run(library: str, rows: int, folder: str) -> tuple[float, float]:
    """Seconds of a new process, and of the first fit in it, whose compiled code lies in `folder`."""
    environment = dict(os.environ)
    if rows == ROWS:  # a smoke run compiles nothing anew
        environment |= {"NUMBA_CACHE_DIR": folder, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
    data = sample("satimage", "test")
    path = os.path.join(folder, "points.npz")
    np.savez(path, X=data.X[:rows], y=data.y[:rows])
    started = time.perf_counter()
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(library=library), path],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return time.perf_counter() - started, float(answer.stdout)


def cold(rows: int) -> dict[str, Any]:
    """The first fit where nothing is compiled yet."""
    with tempfile.TemporaryDirectory() as folder:
        return {"seconds": run("mercer", rows, folder)[1]}


def warm(library: str, rows: int) -> dict[str, Any]:
    """A whole process that finds everything compiled."""
    with tempfile.TemporaryDirectory() as folder:
        run(library, rows, folder)
        whole, fit = run(library, rows, folder)
        return {"seconds": whole, "fit alone s": round(fit, 3)}


def rows(smoke: bool) -> int:
    """Points of the fit."""
    return 50 if smoke else ROWS


TASKS = [
    harness.Task("first fit, empty cache", rows, {"mercer": cold}, warm_up=False),
    harness.Task(
        "new process, warm cache",
        rows,
        {"mercer": partial(warm, "mercer"), "scikit-learn": partial(warm, "sklearn.svm")},
        warm_up=False,
    ),
]

if __name__ == "__main__":
    harness.main("first_call", TASKS)
