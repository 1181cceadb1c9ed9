"""Support vector machines on wide sparse rows: documents hashed to 2^20 columns, and sets of text.

Synthetic documents have 60 words each, drawn evenly from all columns or with the frequencies of a language (the r-th
word in proportion to 1 / r), rows of unit length, and labels from a random direction with noise.  C = 1, tol = 1e-3,
gamma = "scale" where the kernel is Gaussian.  Fitting is timed; prediction of the training rows (at most 2,000) is
shown beside it.  20 newsgroups is read as words hashed to 2^20 columns; a9a, with 123 columns, is there to show what
narrow rows cost.
"""

import os
import tarfile
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import harness, peers
from mercer.data import benchmark

WIDE = 2**20
WORDS = 60
VOCABULARY = 200_000
LIBRARIES = ("mercer", "scikit-learn")

Data = tuple[Any, np.ndarray]


def unit_rows(X: Any) -> Any:
    """CSR rows divided by their lengths."""
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags_array(1.0 / np.maximum(lengths, 1e-300)) @ X)


def hashed(rows: int, width: int, language: bool) -> Any:
    """Synthetic documents."""

    def loaded(smoke: bool) -> Data:
        n, rng = (120 if smoke else rows), np.random.default_rng(0)
        if language:
            share = 1.0 / np.arange(1, VOCABULARY + 1)
            words = rng.choice(VOCABULARY, size=(n, WORDS), p=share / share.sum())
            columns = rng.integers(0, width, VOCABULARY)[words]
        else:
            columns = rng.integers(0, width, size=(n, WORDS))
        starts = np.arange(0, columns.size + 1, WORDS)
        X = sp.csr_matrix((np.ones(columns.size), columns.ravel(), starts), shape=(n, width))
        X.sum_duplicates()
        X = unit_rows(X)
        side = X @ rng.normal(size=width)
        return X, side + 0.3 * side.std() * rng.normal(size=n) > 0

    return loaded


def newsgroups(smoke: bool) -> Data:
    """Training articles of 20 newsgroups: counts of words hashed to WIDE columns, rows of unit length."""
    if smoke:
        return hashed(120, WIDE, True)(True)
    texts, labels = [], []
    with tarfile.open(Path(os.environ["MERCER_DATA"]) / "20news-bydate.tar.xz") as archive:
        for member in archive:
            parts = Path(member.name).parts
            if member.isfile() and "train" in member.name:
                file = archive.extractfile(member)
                assert file is not None
                texts.append(file.read().lower().split())
                labels.append(parts[-2])
    columns = [np.array([zlib.crc32(word) % WIDE for word in text], dtype=np.int64) for text in texts]
    starts = np.concatenate([[0], np.cumsum([len(c) for c in columns])])
    X = sp.csr_matrix((np.ones(int(starts[-1])), np.concatenate(columns), starts), shape=(len(texts), WIDE))
    X.sum_duplicates()
    X.data = 1.0 + np.log(X.data)
    return unit_rows(X), np.unique(labels, return_inverse=True)[1]


def zero_one(rows: int, width: int, ones: int) -> Any:
    """Rows of 0 and 1 with so many ones each, on average."""

    def loaded(smoke: bool) -> Data:
        n, rng = (120 if smoke else rows), np.random.default_rng(0)
        X = sp.csr_matrix((rng.random((n, width)) < ones / width).astype(np.float64))
        side = X @ rng.normal(size=width)
        return X, side + 0.3 * side.std() * rng.normal(size=n) > np.median(side)

    return loaded


def stored(name: str) -> Any:
    """A set of the data folder."""

    def loaded(smoke: bool) -> Data:
        if smoke:
            return hashed(120, 500, True)(True)
        data = benchmark(name, "train")
        return sp.csr_matrix(data.X), np.asarray(data.y)

    return loaded


def work(library: str, **options: Any) -> harness.Measure:
    """Fit, then predict training rows."""

    def measured(data: Data) -> dict[str, Any]:
        X, y = data
        machine = peers.estimator(library, "SVC", C=1.0, tol=1e-3, **options)
        started = time.perf_counter()
        machine.fit(X, y)
        fitted = time.perf_counter()
        predicted = machine.predict(X[:2000])
        return {
            "seconds": fitted - started,
            "predict s": time.perf_counter() - fitted,
            "accuracy": float(np.mean(predicted == y[:2000])),
            "support vectors": len(machine.support_),
        }

    return measured


def task(name: str, load: Any, needs_data: bool = False, **options: Any) -> harness.Task:
    """One comparison."""
    measure = {library: work(library, **options) for library in LIBRARIES}
    return harness.Task(name, load, measure, needs_data=needs_data)


TASKS = [
    *(
        task(f"{rows} x 2^20, {words}, {kernel}", hashed(rows, WIDE, words == "language"), kernel=kernel)
        for rows in (1000, 3000, 10_000)
        for words in ("even", "language")
        for kernel in ("linear", "rbf")
    ),
    task("2000 x 200000, even, linear", hashed(2000, 200_000, False), kernel="linear"),
    task("reuters, linear", stored("reuters-lasvm"), needs_data=True, kernel="linear"),
    task("sector, linear", stored("sector-scale"), needs_data=True, kernel="linear"),
    task("20 newsgroups, linear", newsgroups, needs_data=True, kernel="linear"),
    task("10000 x 300 of 0 and 1, 10 ones, rbf", zero_one(10_000, 300, 10), kernel="rbf"),
    task("10000 x 300 of 0 and 1, 30 ones, rbf", zero_one(10_000, 300, 30), kernel="rbf"),
    task("a9a, rbf", stored("a9a"), needs_data=True, kernel="rbf"),
]

if __name__ == "__main__":
    harness.main("sparse", TASKS)
