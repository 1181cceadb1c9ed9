"""All of covtype on a few thousand landmarks: mercer's streamed rectangle solver and scikit-learn's Nystroem.

581,012 rows, 54 features, class 2 against the rest (or all seven classes), a tenth of the rows to test on; features
standardised on the training part.  Gaussian kernel with gamma = 1/32, ridge 1 (C = 1), landmarks drawn uniformly from
the training rows.  scikit-learn runs Nystroem(m) followed by RidgeClassifier(alpha=1), the same model on landmarks of
its own, in float32: in float64 it needs more than 20 GiB at all rows.  Seconds are those of fitting alone, landmarks
included.  "peak GiB" is the largest resident memory of the whole process while it fits, the data (226 MiB) included.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from benchmarks import harness
from mercer.data import benchmark, sample
from mercer.gram import Gram
from mercer.kernels import Gaussian
from mercer.solvers.streamed import rectangle

KERNEL = Gaussian(sigma=4.0)
CLASSES = 7


@dataclass(frozen=True)
class Split:
    """Training and test points, labels 1..k."""

    X: np.ndarray
    y: np.ndarray
    Z: np.ndarray
    t: np.ndarray


def covtype(rows: int | None = None) -> Callable[[bool], Split]:
    """Shuffled and cut 90/10; `rows` keeps the first so many training rows."""

    def load(smoke: bool) -> Split:
        data = sample("satimage", "test") if smoke else benchmark("covtype")
        X = data.X.toarray() if data.is_sparse else np.asarray(data.X)
        order = np.random.default_rng(0).permutation(len(X))[: 600 if smoke else None]
        X, y = X[order], np.asarray(data.y)[order]
        cut = len(X) - len(X) // 10
        X -= X[:cut].mean(axis=0)
        spread = X[:cut].std(axis=0)
        X /= np.where(spread > 0, spread, 1.0)
        end = cut if rows is None else min(cut, rows)
        return Split(X[:end], y[:end], X[cut:], y[cut:])

    return load


def coded(labels: np.ndarray, many: bool) -> np.ndarray:
    """Class 2 against the rest (n, 1), or every class against the rest (n, 7)."""
    classes = np.arange(1, CLASSES + 1) if many else np.array([2])
    return np.where(labels[:, None] == classes, 1.0, -1.0)


def accuracy(values: np.ndarray, labels: np.ndarray, many: bool) -> float:
    """Share of test points decided rightly by values (n, k)."""
    if many:
        return float(np.mean(values.argmax(axis=1) + 1 == labels))
    return float(np.mean((values[:, 0] > 0) == (labels == 2)))


def mercer(m: int, many: bool, loss: Literal["square", "logistic"] = "square") -> Callable[[Split], dict[str, Any]]:
    """Fit with the rectangle solver."""

    def work(part: Split) -> dict[str, Any]:
        Y = coded(part.y, many)
        harness.resident_memory()  # the peak is counted from here
        began = time.perf_counter()
        chosen = np.random.default_rng(1).choice(len(part.X), min(m, len(part.X) // 3), replace=False)
        S = part.X[np.sort(chosen)]
        solution = rectangle.solve(part.X, KERNEL, S, y=Y, C=1.0, loss=loss, precision="float32")
        seconds, memory = time.perf_counter() - began, harness.peak_memory() / 2**20
        values = Gram(KERNEL, part.Z, S, precision="float32").dot(solution.coefficients) + solution.bias
        return {
            "seconds": seconds,
            "accuracy": accuracy(values, part.t, many),
            "peak GiB": round(memory, 2),
            "passes": solution.details["passes"],
            "sampled rows": solution.details["sample"],
            "relative gap": float(f"{solution.relative_gap:.2g}"),
        }

    return work


def scikit_learn(m: int, many: bool) -> Callable[[Split], dict[str, Any]]:
    """Fit with Nystroem and RidgeClassifier."""

    def work(part: Split) -> dict[str, Any]:
        from sklearn.kernel_approximation import Nystroem
        from sklearn.linear_model import RidgeClassifier

        target = part.y if many else part.y == 2
        X, Z = part.X.astype(np.float32), part.Z.astype(np.float32)
        harness.resident_memory()  # the peak is counted from here
        began = time.perf_counter()
        features = Nystroem(gamma=1 / 32, n_components=min(m, len(X) // 3), random_state=0)
        machine = RidgeClassifier(alpha=1.0).fit(features.fit_transform(X), target)
        seconds, memory = time.perf_counter() - began, harness.peak_memory() / 2**20
        right = machine.predict(features.transform(Z)) == (part.t if many else part.t == 2)
        return {"seconds": seconds, "accuracy": float(np.mean(right)), "peak GiB": round(memory, 2)}

    return work


def task(
    name: str, m: int, rows: int | None = None, many: bool = False, peer: bool = False, note: str = "", **options: Any
) -> harness.Task:
    """One size; scikit-learn beside it where asked for."""
    measure = {"mercer": mercer(m, many, **options)}
    if peer:
        measure["scikit-learn"] = scikit_learn(m, many)
    return harness.Task(name, covtype(rows), measure, needs_data=True, note=note)


TASKS = [
    task("all rows, m = 2,000", 2_000, peer=True, note="all 522,911 training rows, class 2 against the rest"),
    task("7 classes, m = 2,000", 2_000, many=True, note="all seven classes, one against the rest, in the same passes"),
    task("all rows, m = 500", 500),
    task("all rows, m = 1,000", 1_000),
    task("all rows, m = 4,000", 4_000),
    task("all rows, m = 10,000", 10_000),
    task("n = 50,000, m = 2,000", 2_000, 50_000, peer=True),
    task("n = 100,000, m = 2,000", 2_000, 100_000),
    task("n = 200,000, m = 2,000", 2_000, 200_000),
    task("logistic, m = 2,000", 2_000, loss="logistic", note="logistic loss by Newton's method, all training rows"),
]

if __name__ == "__main__":
    harness.main("lowrank", TASKS)
