"""The first fit in a fresh process: with an empty cache of compiled code, and with a warm one.

Each measurement starts Python anew and times `SVC().fit` on 300 bundled points after the imports, first with an empty
folder for compiled code, then again with the folder the first run has filled.
"""

import os
import subprocess
import sys
import tempfile
from typing import Any

from benchmarks import harness

ROWS = 300
PROGRAM = """
import time, warnings
from mercer.data import sample
from mercer.svm import SVC
data = sample("satimage", "test")
started = time.perf_counter()
SVC().fit(data.X[:{rows}], data.y[:{rows}])
print(time.perf_counter() - started)
"""


def seconds(rows: int, folder: str | None) -> float:
    """Seconds of the first fit in a new process whose compiled code lies in `folder` (None: where it always does)."""
    environment = os.environ if folder is None else {**os.environ, "NUMBA_CACHE_DIR": folder}
    program = PROGRAM.format(rows=rows)
    command = [sys.executable, "-c", program]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(answer.stdout.split()[-1])


def measured(warm: bool) -> Any:
    """The first fit, cold or warm."""

    def work(rows: int) -> dict[str, Any]:
        if rows < ROWS:  # a smoke run compiles nothing anew
            return {"seconds": seconds(rows, None)}
        with tempfile.TemporaryDirectory() as folder:
            first = seconds(rows, folder)
            return {"seconds": seconds(rows, folder) if warm else first}

    return work


TASKS = [
    harness.Task("empty cache", lambda smoke: 50 if smoke else ROWS, {"mercer": measured(False)}, warm_up=False),
    harness.Task("warm cache", lambda smoke: 50 if smoke else ROWS, {"mercer": measured(True)}, warm_up=False),
]

if __name__ == "__main__":
    harness.main("first_call", TASKS)
