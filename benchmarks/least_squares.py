"""Least squares beside its peers, in one run: fits, paths of C with exact leave-one-out, search, classes, memory.

    python benchmarks/least_squares.py                    all lines, full size (about forty minutes on two cores)
    python benchmarks/least_squares.py --smoke            all lines, small (about half a minute)
    python benchmarks/least_squares.py fit path           some of the lines
    python benchmarks/least_squares.py path --share 0.05  time that share of each grid search, and scale it up

Every line states what was measured, the quality reached on both sides, and the target it is held to.  A grid search
costs the same for every value of alpha, so that a share of it (the smallest, the largest and values between) is an
honest estimate; a line measured in that way says so.
"""

import argparse
import json
import platform
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import lapack
from sklearn.datasets import make_friedman1
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, cross_val_score

from mercer.gram import Gram
from mercer.kernels import Gaussian
from mercer.least_squares import LSSVC, LSSVR
from mercer.selection.regularisation_path import road_costs

FOLDS = 5
RESULTS = Path(__file__).parent / "results" / "least_squares.json"


def seconds(function: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """The least of `repeats` times, and the last result."""
    best, result = np.inf, None
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return best, result


def points(n: int, d: int = 50) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)


def warm_up() -> None:
    """Compile and load before anything is timed."""
    X, y = points(300)
    LSSVR(kernel=Gaussian(sigma=5.0)).fit(X, y)
    LSSVR(C="loo", kernel=Gaussian(sigma="loo")).fit(X, y)
    LSSVR(kernel=Gaussian(sigma=5.0), solver="conjugate_gradient").fit(X, y)
    KernelRidge(kernel="rbf").fit(X, y)


def fit(smoke: bool, share: float) -> list[dict[str, Any]]:
    """One fit against the bare cost of building K and LAPACK's Cholesky, and against KernelRidge."""
    n = 1000 if smoke else 10_000
    X, y = points(n)
    kernel = Gaussian(sigma=5.0)

    def bare() -> None:
        K = Gram(kernel, X, storage="streamed").dense()
        K.flat[:: n + 1] += 1.0
        lapack.dpotrf(K.T, lower=1, clean=0, overwrite_a=1)

    lower, _ = seconds(bare, 2)
    ours, machine = seconds(lambda: LSSVR(C=1.0, kernel=kernel, bias="none").fit(X, y), 2)
    theirs, ridge = seconds(lambda: KernelRidge(alpha=1.0, kernel="rbf", gamma=kernel.gamma).fit(X, y))
    difference = float(np.max(np.abs(machine.dual_coef_ - ridge.dual_coef_)))
    facts = {
        "n": n,
        "mercer": ours,
        "bare": lower,
        "KernelRidge": theirs,
        "difference": difference,
        "gap": machine.gap_,
    }
    return [
        {"line": f"fit / (K + Cholesky), n={n}", "value": ours / lower, "target": "<= 1.3", **facts},
        {"line": f"KernelRidge / fit, n={n}", "value": theirs / ours, "target": "> 1", **facts},
    ]


def grid_seconds(X: np.ndarray, y: np.ndarray, grid: dict[str, np.ndarray], share: float) -> tuple[float, Any, bool]:
    """Seconds of GridSearchCV over KernelRidge, its best estimator, and whether the time was scaled up."""
    if share >= 1:
        taken, found = seconds(lambda: GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=FOLDS).fit(X, y))
        return taken, found, False
    total = int(np.prod([len(values) for values in grid.values()]))
    tried = max(1, round(share * total))
    rng = np.random.default_rng(0)
    choices = [{name: rng.choice(values) for name, values in grid.items()} for _ in range(tried)]
    taken, _ = seconds(
        lambda: [cross_val_score(KernelRidge(kernel="rbf", **choice), X, y, cv=FOLDS) for choice in choices]
    )
    return taken * total / tried, None, True


def path(smoke: bool, share: float) -> list[dict[str, Any]]:
    """100 values of C with exact leave-one-out against a grid search over the same values with five folds."""
    lines = []
    for n in (400,) if smoke else (2500, 5000):
        X, y = points(n + 2000)
        X, y, X_test, y_test = X[:n], y[:n], X[n:], y[n:]
        C = np.geomspace(1e-3, 1e4, 100)
        gamma = Gaussian(sigma=5.0).gamma
        ours, machine = seconds(lambda C=C, X=X, y=y: LSSVR(C=C, kernel=Gaussian(sigma=5.0), bias="none").fit(X, y))
        theirs, found, scaled = grid_seconds(X, y, {"alpha": 1 / C, "gamma": np.array([gamma])}, share)
        facts: dict[str, Any] = {"mercer": ours, "GridSearchCV": theirs, "scaled": scaled, "road": machine.path_.road}
        facts |= {"score": machine.score(X_test, y_test), "C": machine.C_, "costs": road_costs(n, 100)}
        if found is not None:
            facts |= {
                "grid_score": found.best_estimator_.score(X_test, y_test),
                "grid_C": 1 / found.best_params_["alpha"],
            }
        lines.append({"line": f"100 values of C, n={n}", "value": theirs / ours, "target": ">= 30", **facts})
    return lines


def search(smoke: bool, share: float) -> list[dict[str, Any]]:
    """C and sigma by leave-one-out against a 10 x 6 grid search; both judged on held-out points."""
    n = 400 if smoke else 2500
    X, y = make_friedman1(n + 5000, n_features=10, noise=1.0, random_state=0)
    y -= y[:n].mean()
    X, y, X_test, y_test = X[:n], y[:n], X[n:], y[n:]
    ours, machine = seconds(lambda: LSSVR(C="loo", kernel=Gaussian(sigma="loo")).fit(X, y))
    grid = {"alpha": np.geomspace(1e-4, 1e2, 10), "gamma": np.geomspace(1e-3, 10, 6)}
    theirs, found, scaled = grid_seconds(X, y, grid, share)
    facts: dict[str, Any] = {
        "mercer": ours,
        "GridSearchCV": theirs,
        "scaled": scaled,
        "evaluations": len(machine.loo_surface_),
    }
    lines = [{"line": f"C and sigma together, n={n}", "value": theirs / ours, "target": ">= 5", **facts}]
    if found is not None:
        scores = {"mercer": machine.score(X_test, y_test), "grid": found.score(X_test, y_test)}
        difference = scores["mercer"] - scores["grid"]
        lines.append({"line": f"held-out R2, search less grid, n={n}", "value": difference, "target": ">= 0", **scores})
    return lines


def classes(smoke: bool, share: float) -> list[dict[str, Any]]:
    """Ten classes against two."""
    n = 800 if smoke else 10_000
    X, _ = points(n)
    y = np.argmax(X[:, :10], axis=1)
    two, _ = seconds(lambda: LSSVC(kernel=Gaussian(sigma=5.0)).fit(X, y == 0), 2)
    ten, machine = seconds(lambda: LSSVC(kernel=Gaussian(sigma=5.0)).fit(X, y), 2)
    facts = {"two": two, "ten": ten, "classes": len(machine.classes_)}
    return [{"line": f"ten classes / two, n={n}", "value": ten / two, "target": "<= 1.2", **facts}]


def memory(smoke: bool, share: float) -> list[dict[str, Any]]:
    """Conjugate gradients without storing K, in a process of its own whose peak memory is read at the end."""
    n = 3000 if smoke else 50_000
    done = subprocess.run([sys.executable, __file__, "--one-fit", str(n)], check=True, capture_output=True, text=True)
    facts = json.loads(done.stdout)
    line = f"peak GiB of conjugate gradients, n={n}"
    return [{"line": line, "value": facts["peak"] / 2**30, "target": "< 1", **facts}]


def one_fit(n: int) -> None:
    """Fit by conjugate gradients with a budget of half a GiB and print what it took."""
    X, y = points(n, 20)
    machine = LSSVR(C=1.0, kernel=Gaussian(sigma=4.0), solver="conjugate_gradient", memory="512 MiB", tol=1e-6)
    taken, machine = seconds(lambda: machine.fit(X, y))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    gap = machine.gap_ / machine.objective_
    facts = {"seconds": taken, "peak": peak, "gap": gap, "steps": machine.n_iter_, "stopped": machine.stopped_}
    print(json.dumps(facts))


LINES = {"fit": fit, "path": path, "search": search, "classes": classes, "memory": memory}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines", nargs="*", help=f"any of {', '.join(LINES)}; all by default")
    parser.add_argument("--smoke", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--share", type=float, default=1.0, help="share of each grid search that is really run")
    parser.add_argument("--one-fit", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one_fit:
        one_fit(arguments.one_fit)
        return
    warm_up()
    results = []
    for name in arguments.lines or LINES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for line in LINES[name](arguments.smoke, arguments.share):
                results.append(line)
                estimated = " (grid scaled up from a share)" if line.get("scaled") else ""
                print(f"{line['line']:<42} {line['value']:>9.3f}   target {line['target']}{estimated}", flush=True)
    if not arguments.smoke:
        RESULTS.parent.mkdir(exist_ok=True)
        kept = json.loads(RESULTS.read_text())["lines"] if RESULTS.exists() else []
        fresh = {line["line"] for line in results}
        results = [line for line in kept if line["line"] not in fresh] + results
        machine = {"machine": platform.processor() or platform.machine(), "python": platform.python_version()}
        RESULTS.write_text(json.dumps({**machine, "lines": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
