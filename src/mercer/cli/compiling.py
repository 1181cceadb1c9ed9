"""Everything a user is likely to run, compiled at once: tiny fits and predictions of each kind of machine and points.

Loops are compiled when they are first called, for the types they are called with, and kept on disk.  A machine that
is to answer at once, an image of a container, or a folder that is shared by many is filled here beforehand.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import mercer

ROWS, FEATURES, CLASSES = 320, 20, 3
PRECISIONS = ("float64", "float32")
# So many points whose targets are mostly noise have working sets, faces, teams of threads and shrinking, in seconds.
MANY_ROWS, SECONDS = 6000, 5.0
WIDE = 300  # features that make values expensive: rows come in blocks
SPARSE = 0.03  # density of CSR points that stay so


def points(
    sparse: bool, n: int = ROWS, d: int = FEATURES, noise: float = 0.1, density: float = 0.1
) -> tuple[Any, Any, Any]:
    """X (n, d), dense or CSR, labels of CLASSES classes and targets (n,)."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d))
    t = X[:, 0] + noise * random.normal(size=n)
    y = np.digitize(t, np.quantile(t, np.arange(1, CLASSES) / CLASSES))
    return (sp.csr_array(X * (random.random(X.shape) < density)) if sparse else X), y, t


def _trained(machine: Any, X: Any, y: Any) -> Callable[[], Any]:
    """A fit of the machine and predictions by it."""

    def work() -> None:
        machine.fit(X, y)
        machine.predict(X)

    return work


def works() -> Iterator[tuple[str, Callable[[], Any]]]:
    """What is done and its doing: machines on dense and CSR points, in both precisions."""
    for sparse in (False, True):
        X, y, t = points(sparse)
        two = y > 0
        form = "CSR points" if sparse else "dense points"
        for precision in PRECISIONS:
            machines = [
                ("SVC, two classes", mercer.SVC(precision=precision), two),
                ("SVC, more classes", mercer.SVC(precision=precision), y),
                ("SVC, decomposition", mercer.SVC(precision=precision, solver="decomposition"), two),
                ("SVC, linear", mercer.SVC(kernel="linear", precision=precision), two),
                ("SVR", mercer.SVR(precision=precision), t),
                ("LSSVC", mercer.LSSVC(precision=precision), two),
                ("LSSVR", mercer.LSSVR(precision=precision), t),
                ("OneClassSVM", mercer.OneClassSVM(precision=precision), None),
            ]
            for name, machine, target in machines:
                yield f"{name}, {form}, {precision}", _trained(machine, X, target)
        yield from _large_works(sparse, form)


def _large_works(sparse: bool, form: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What only fits of many points, or of wide ones, run."""
    X, y, t = points(sparse, MANY_ROWS, WIDE if sparse else FEATURES, 2.0, SPARSE)
    # Noise is not learnt by heart, so that most points are at bounds, and the matrix does not fit.
    smooth: dict[str, Any] = {"C": 10.0, "gamma": "auto", "memory": "32 MiB", "max_time": SECONDS}
    for name, machine, target in (
        ("SVC", mercer.SVC(**smooth), y > 0),
        ("SVR", mercer.SVR(**smooth), t),
        ("SVC, large C", mercer.SVC(C=100.0, max_time=SECONDS), y > 0),
    ):
        yield f"{name}, many {form}", _trained(machine, X, target)
    if sparse:
        yield f"SVC, many {form} of 0 and 1", _trained(mercer.SVC(**smooth), X != 0, y > 0)
    X, y, _ = points(sparse, MANY_ROWS // 2, 2 * WIDE, density=0.2)
    yield f"SVC, wide {form}", _trained(mercer.SVC(), X, y > 0)
    yield f"SVC, more classes, wide {form}", _trained(mercer.SVC(), X[:ROWS], y[:ROWS])
