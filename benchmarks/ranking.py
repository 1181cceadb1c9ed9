"""Linear ranking: mercer's RankSVM without pairs, and scikit-learn's LinearSVC on explicit pairs, the same problem.

    min 1/2 |w|^2 + C sum over y_i > y_j of (1 - w'(x_i - x_j))_+^2

Synthetic points with five ranks, one query.  Both are given C = 10 / n^2; LinearSVC has every pair once, in
alternating directions, without an intercept, its primal solver, and the time to form the pairs is counted.  From
10,000 rows on mercer runs alone: the pairs of 100,000 rows would be four billion.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import harness
from mercer import RankSVM

SIZES = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
MOST_FOR_PAIRS = 5_000
TOL = 1e-4


class Ranked(NamedTuple):
    """Points (n, 5), ranks (n,) and C."""

    X: NDArray[np.float64]
    y: NDArray[np.intp]
    C: float


def ranked(rows: int) -> Any:
    """Points whose rank is a noisy linear function of them."""

    def load(smoke: bool) -> Ranked:
        n = 200 if smoke else rows
        random = np.random.default_rng(0)
        X = random.standard_normal((n, 5))
        return Ranked(X, np.digitize(X.sum(axis=1) + random.standard_normal(n), [-2.0, -0.7, 0.7, 2.0]), 10.0 / n**2)

    return load


def by_mercer(part: Ranked) -> dict[str, Any]:
    """RankSVM on the points."""
    machine = RankSVM(C=part.C, kernel="linear", tol=TOL).fit(part.X, part.y)
    return {"objective": machine.objective_, "accuracy": machine.score(part.X, part.y)}


def by_pairs(part: Ranked) -> dict[str, Any]:
    """LinearSVC on the differences."""
    from sklearn.svm import LinearSVC

    upper, lower = np.nonzero(part.y[:, None] > part.y)
    D = part.X[upper] - part.X[lower]
    t = np.where(np.arange(len(D)) % 2, 1, -1)
    D *= t[:, None]
    w = LinearSVC(C=part.C, fit_intercept=False, dual=False, tol=TOL).fit(D, t).coef_[0]
    margins = t * (D @ w)
    objective = 0.5 * float(w @ w) + part.C * float(np.sum(np.maximum(1.0 - margins, 0.0) ** 2))
    return {"objective": objective, "accuracy": float(np.mean(margins > 0.0))}


def measures(rows: int) -> dict[str, Any]:
    """The peer runs where its pairs fit."""
    return {"mercer": by_mercer} | ({"scikit-learn": by_pairs} if rows <= MOST_FOR_PAIRS else {})


TASKS = [harness.Task(f"n = {rows:,}", ranked(rows), measures(rows)) for rows in SIZES]

if __name__ == "__main__":
    harness.main("ranking", TASKS)
