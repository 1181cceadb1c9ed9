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


def points(sparse: bool) -> tuple[Any, Any, Any]:
    """X (n, d), dense or CSR with one entry in ten, labels of CLASSES classes and targets (n,)."""
    random = np.random.default_rng(0)
    X = random.normal(size=(ROWS, FEATURES))
    t = X[:, 0] + 0.1 * random.normal(size=ROWS)
    y = np.digitize(t, np.quantile(t, np.arange(1, CLASSES) / CLASSES))
    return (sp.csr_array(X * (random.random(X.shape) < 0.1)) if sparse else X), y, t


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
