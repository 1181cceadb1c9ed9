"""Support vector machines against scikit-learn and scikit-learn-intelex: equal data, tolerance, threads and cache.

Gaussian kernel with gamma = "scale", C = 1, tol = 1e-3, 1 GiB of cache.  Features are standardised on the training part
(MNIST: divided by 255).  Seconds are those of `fit` alone; predicting at most 10,000 test points is timed beside it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import harness, peers
from mercer.data import benchmark, sample

LIBRARIES = ("mercer", "scikit-learn", "scikit-learn-intelex")
TEST_POINTS = 10_000
WARM_UP = 4000
CACHE = 1024


@dataclass(frozen=True)
class Split:
    """Training and test points."""

    X: Any
    y: Any
    Z: Any
    t: Any


def dense(X: Any) -> np.ndarray:
    """A float64 array."""
    return np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def standardised(X: Any, Z: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean zero and variance one on the training points, the same map for the test points."""
    X, Z = dense(X), dense(Z)
    mean, spread = X.mean(axis=0), X.std(axis=0)
    spread[spread == 0] = 1.0
    return (X - mean) / spread, (Z - mean) / spread


def bundled(regression: bool) -> Split:
    """A few hundred bundled points, for smoke runs."""
    data = sample("concrete") if regression else sample("satimage", "test")
    X, y = standardised(data.X, data.X)[0], np.asarray(data.y, dtype=float)
    if regression:
        y = (y - y.mean()) / y.std()
    return Split(X[:300], y[:300], X[300:500], y[300:500])


def two_parts(name: str, rows: int | None = None) -> Any:
    """A set that comes as training and test file, standardised."""

    def load(smoke: bool) -> Split:
        if smoke:
            return bundled(False)
        train, test = benchmark(name, "train"), benchmark(name, "test")
        d = max(train.X.shape[1], test.X.shape[1])
        X, Z = widened(train.X, d)[:rows], widened(test.X, d)[:TEST_POINTS]
        X, Z = (dense(X) / 255.0, dense(Z) / 255.0) if name == "mnist" else standardised(X, Z)
        return Split(X, train.y[:rows], Z, test.y[:TEST_POINTS])

    return load


def widened(X: Any, d: int) -> Any:
    """CSR points with d columns."""
    X = sp.csr_matrix(X)
    X.resize(X.shape[0], d)
    return X


def a9a_sparse(smoke: bool) -> Split:
    """a9a as it comes: 123 binary features, 14 of them set in a row."""
    if smoke:
        part = bundled(False)
        return Split(sp.csr_matrix(part.X), part.y, sp.csr_matrix(part.Z), part.t)
    train, test = benchmark("a9a", "train"), benchmark("a9a", "test")
    return Split(widened(train.X, 123), train.y, widened(test.X, 123)[:TEST_POINTS], test.y[:TEST_POINTS])


def covtype(rows: int) -> Any:
    """Class 2 of covtype against the rest: `rows` random points, standardised, and 10,000 others to test on."""

    def load(smoke: bool) -> Split:
        if smoke:
            part = bundled(False)
            return Split(part.X, np.where(part.y < 4, 1.0, -1.0), part.Z, np.where(part.t < 4, 1.0, -1.0))
        data = benchmark("covtype")
        order = np.random.default_rng(0).permutation(len(data.y))[: rows + TEST_POINTS]
        X, y = data.X[order], np.where(data.y[order] == 2, 1.0, -1.0)
        X, Z = standardised(X[:rows], X[rows:])
        return Split(X, y[:rows], Z, y[rows:])

    return load


def regression(name: str) -> Any:
    """A regression set, inputs and target standardised, a tenth of it to test on."""

    def load(smoke: bool) -> Split:
        if smoke:
            return bundled(True)
        data = benchmark(name)
        order = np.random.default_rng(0).permutation(len(data.y))
        cut = len(order) - len(order) // 10
        X, Z = standardised(data.X[order[:cut]], data.X[order[cut:]])
        y = np.asarray(data.y, dtype=float)[order]
        y = (y - y[:cut].mean()) / y[:cut].std()
        return Split(X, y[:cut], Z, y[cut:])

    return load


def trained(library: str, machine: str) -> Any:
    """Fit and predict with one library."""

    def work(part: Split) -> dict[str, Any]:
        parameters: dict[str, Any] = {"gamma": "scale", "C": 1.0, "tol": 1e-3, "cache_size": CACHE}
        # Uncounted, for every library alike: the code that data of this size need is loaded.
        peers.estimator(library, machine, **parameters).fit(part.X[:WARM_UP], part.y[:WARM_UP])
        return peers.fitted(library, machine, part.X, part.y, part.Z, part.t, **parameters)

    return work


def task(
    name: str, load: Any, machine: str = "SVC", note: str = "", libraries: tuple[str, ...] = LIBRARIES
) -> harness.Task:
    """One data set for all libraries."""
    return harness.Task(name, load, {lib: trained(lib, machine) for lib in libraries}, needs_data=True, note=note)


TASKS = [
    task("a9a", a9a_sparse, note="32,561 x 123, the 0/1 features as they come, CSR"),
    task(
        "a9a (dense)",
        two_parts("a9a"),
        note="standardised, dense; without scikit-learn, which takes minutes on it",
        libraries=("mercer", "scikit-learn-intelex"),
    ),
    task("ijcnn1", two_parts("ijcnn1"), note="49,990 x 22"),
    task("shuttle", two_parts("shuttle"), note="43,500 x 9, 7 classes"),
    task("mnist (12,000)", two_parts("mnist", 12_000), note="first 12,000 rows, 784 features, 10 classes"),
    task("usps", two_parts("usps"), note="7,291 x 256, 10 classes"),
    task("letter", two_parts("letter"), note="16,000 x 16, 26 classes"),
    task("satimage", two_parts("satimage"), note="4,435 x 36, 6 classes"),
    task("covtype (50,000)", covtype(50_000), note="50,000 random rows, class 2 against the rest, 54 features"),
    task("california", regression("california"), "SVR", note="18,576 x 8, regression, epsilon = 0.1"),
    task("kin8nm", regression("kin8nm"), "SVR", note="7,373 x 8, regression"),
    task("bank32nh", regression("bank32nh"), "SVR", note="7,373 x 32, regression"),
]

if __name__ == "__main__":
    harness.main("svm", TASKS)
