"""Small support vector machines: 300, 1,000 and 3,000 rows, where what surrounds the solver counts as much as it does.

Each measurement is the median of fits repeated in one process, after a first one that is not counted.  gamma = "scale",
C = 1, tol = 1e-3, standardised features, all from the bundled samples.
"""

import statistics
import time
from typing import Any

import numpy as np

from benchmarks import harness, peers
from benchmarks.svm import standardised
from mercer.data import sample

SETS = {
    "breast cancer": ("breast-cancer-wisconsin", None, (300, 600)),
    "german": ("german-numeric", None, (300, 1000)),
    "satimage": ("satimage", "train", (300, 1000, 3000)),
}
LIBRARIES = ("mercer", "scikit-learn")


def load(name: str, part: str | None, rows: int) -> Any:
    """`rows` random rows of a bundled set, standardised."""

    def loaded(smoke: bool) -> tuple[np.ndarray, np.ndarray]:
        data = sample(name, part)
        order = np.random.default_rng(0).permutation(len(data.y))[: 100 if smoke else rows]
        X = standardised(data.X, data.X)[0]
        return X[order], np.asarray(data.y)[order]

    return loaded


def repeated(library: str) -> Any:
    """Median seconds of many fits and of many predictions of the training points."""

    def work(data: tuple[np.ndarray, np.ndarray]) -> dict[str, Any]:
        X, y = data
        fits, predictions = [], []
        for _ in range(41 if len(y) > 100 else 3):
            machine = peers.estimator(library, "SVC", gamma="scale", C=1.0, tol=1e-3)
            started = time.perf_counter()
            machine.fit(X, y)
            between = time.perf_counter()
            machine.predict(X)
            fits.append(between - started)
            predictions.append(time.perf_counter() - between)
        return {
            "seconds": statistics.median(fits[1:]),
            "predict s": statistics.median(predictions[1:]),
            "accuracy": float(np.mean(machine.predict(X) == y)),
            "support vectors": len(machine.support_),
        }

    return work


TASKS = [
    harness.Task(f"{title}, n = {rows}", load(name, part, rows), {lib: repeated(lib) for lib in LIBRARIES})
    for title, (name, part, sizes) in SETS.items()
    for rows in sizes
]

if __name__ == "__main__":
    harness.main("svm_small", TASKS)
