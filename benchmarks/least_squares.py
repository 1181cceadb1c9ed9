"""Least squares beside its peers: one fit, paths of C with exact leave-one-out, search, many classes, memory.

    python -m benchmarks.least_squares --repeats 1            everything
    python -m benchmarks.least_squares --smoke                everything, small
    python -m benchmarks.least_squares --only "fit" --only "classes"

What the table has to show:

- fit: mercer within 1.3 times the bare cost of building K and LAPACK's Cholesky, and faster than KernelRidge;
- 100 values of C with exact leave-one-out: 30 times faster than GridSearchCV over the same values with five folds;
- C and sigma together: 5 times faster than a grid of 10 x 6, to an equal or better held-out R2;
- ten classes: at most 1.2 times the cost of two;
- conjugate gradients at n = 50,000: less than 1 GiB of memory.
"""

import time
import warnings
from typing import Any

import numpy as np
from scipy.linalg import lapack
from sklearn.datasets import make_friedman1
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

from benchmarks import harness
from mercer.errors import MercerWarning
from mercer.gram import Gram
from mercer.kernels import Gaussian
from mercer.least_squares import LSSVC, LSSVR

warnings.simplefilter("ignore", MercerWarning)

FOLDS = 5
HELD_OUT = 2000
KERNEL = Gaussian(sigma=5.0)
C_VALUES = np.geomspace(1e-3, 1e4, 100)

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def split(X: np.ndarray, y: np.ndarray) -> Split:
    """Training and held-out points; targets centred, for KernelRidge has no bias."""
    n = len(X) - HELD_OUT
    y = y - y[:n].mean()
    return X[:n], y[:n], X[n:], y[n:]


def wavy(n: int, d: int = 50) -> Split:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + HELD_OUT, d))
    return split(X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.standard_normal(len(X)))


def sized(full: int, small: int, d: int = 50) -> Any:
    return lambda smoke: wavy(small if smoke else full, d)


# One fit --------------------------------------------------------------------------------------------------------


def fit_mercer(data: Split) -> harness.Figures:
    X, y, *_ = data
    machine = LSSVR(C=1.0, kernel=KERNEL, bias="none").fit(X, y)
    return {"gap": machine.gap_, "norm of c": float(np.linalg.norm(machine.dual_coef_))}


def fit_bare(data: Split) -> harness.Figures:
    X, y, *_ = data
    K = Gram(KERNEL, X, storage="streamed").dense()
    K.flat[:: len(K) + 1] += 1.0
    factor, _ = lapack.dpotrf(K.T, lower=1, clean=0, overwrite_a=1)
    c, _ = lapack.dpotrs(factor, y, lower=1)
    return {"norm of c": float(np.linalg.norm(c))}


def fit_ridge(data: Split) -> harness.Figures:
    X, y, *_ = data
    machine = KernelRidge(alpha=1.0, kernel="rbf", gamma=KERNEL.gamma).fit(X, y)
    return {"norm of c": float(np.linalg.norm(machine.dual_coef_))}


# 100 values of C ------------------------------------------------------------------------------------------------


def path_mercer(data: Split) -> harness.Figures:
    X, y, X_test, y_test = data
    machine = LSSVR(C=C_VALUES, kernel=KERNEL, bias="none").fit(X, y)
    return {"R2": machine.score(X_test, y_test), "C": machine.C_, "method": machine.path_.method}


def path_grid(data: Split) -> harness.Figures:
    """Every tenth of the values, and the time multiplied by ten: the cost of a grid is that of its candidates."""
    X, y, X_test, y_test = data
    grid = {"alpha": 1 / C_VALUES[::10]}
    search = GridSearchCV(KernelRidge(kernel="rbf", gamma=KERNEL.gamma), grid, cv=FOLDS, refit=False)
    started = time.perf_counter()
    search.fit(X, y)
    seconds = 10 * (time.perf_counter() - started)
    best = KernelRidge(kernel="rbf", gamma=KERNEL.gamma, **search.best_params_).fit(X, y)
    return {"seconds": seconds, "R2": best.score(X_test, y_test), "C": 1 / search.best_params_["alpha"]}


# C and sigma ----------------------------------------------------------------------------------------------------


def friedman(smoke: bool) -> Split:
    return split(*make_friedman1((400 if smoke else 2500) + HELD_OUT, n_features=10, noise=1.0, random_state=0))


def search_mercer(data: Split) -> harness.Figures:
    X, y, X_test, y_test = data
    machine = LSSVR(C="loo", kernel=Gaussian(sigma="loo")).fit(X, y)
    return {"R2": machine.score(X_test, y_test), "C": machine.C_, "evaluations": len(machine.loo_surface_)}


def search_grid(data: Split) -> harness.Figures:
    X, y, X_test, y_test = data
    grid = {"alpha": np.geomspace(1e-4, 1e2, 10), "gamma": np.geomspace(1e-3, 10, 6)}
    search = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=FOLDS).fit(X, y)
    return {"R2": search.score(X_test, y_test), "C": 1 / search.best_params_["alpha"], "evaluations": 60}


# Many classes, and large n --------------------------------------------------------------------------------------


def classes(data: Split, k: int) -> harness.Figures:
    X, _, X_test, _ = data
    winner = lambda points: np.minimum(np.argmax(points[:, :10], axis=1), k - 1)  # noqa: E731
    machine = LSSVC(C=1.0, kernel=KERNEL).fit(X, winner(X))
    return {"accuracy": machine.score(X_test, winner(X_test)), "classes": len(machine.classes_)}


def streamed(data: Split) -> harness.Figures:
    X, y, X_test, y_test = data
    options: Any = {"solver": "conjugate_gradient", "memory": "512 MiB", "tol": 1e-6}
    machine = LSSVR(C=1.0, kernel=Gaussian(sigma=4.0), **options).fit(X, y)
    gap = machine.gap_ / machine.objective_
    return {"R2": machine.score(X_test, y_test), "gap": gap, "steps": machine.n_iter_}


TASKS = [
    harness.Task(
        "fit, n=10,000",
        sized(10_000, 500),
        {"mercer": fit_mercer, "K and Cholesky": fit_bare, "scikit-learn": fit_ridge},
        note="K and Cholesky is the bare cost: mercer's tiles, LAPACK's potrf and potrs, nothing else",
    ),
    *[
        harness.Task(
            f"100 values of C, n={n:,}",
            sized(n, 200),
            {"mercer": path_mercer, "scikit-learn": path_grid},
            note="scikit-learn: GridSearchCV timed on every tenth of the values, and the time multiplied by ten",
        )
        for n in (2500, 5000)
    ],
    harness.Task("C and sigma, n=2,500", friedman, {"mercer": search_mercer, "scikit-learn": search_grid}),
    harness.Task(
        "classes, n=10,000",
        sized(10_000, 500),
        {"mercer": lambda data: classes(data, 10), "mercer (two classes)": lambda data: classes(data, 2)},
    ),
    harness.Task("conjugate gradients, n=50,000", sized(50_000, 1000, 20), {"mercer": streamed}),
]


if __name__ == "__main__":
    harness.main("least_squares", TASKS)
