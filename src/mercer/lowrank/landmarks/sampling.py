"""Landmarks by lot: every point alike, or in proportion to its leverage.

Ridge leverage scores are the diagonal of K (K + lam I)^-1: how much of its own value a point keeps in a ridge fit.
With p pilot points P, Phi'Phi ~ (n/p) Phi_P'Phi_P in the space of the kernel, and so

    l_i ~ ( k_ii - k_iP (K_PP + lam (p/n) I)^-1 k_Pi ) / lam,

which is exact for p = n (Alaoui and Mahoney 2015; Musco and Musco 2017).  The sum of the scores is the number of
dimensions a ridge of lam leaves free.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import dense
from mercer.errors import InvalidInput
from mercer.gram import Gram, take
from mercer.kernels.checks import whole
from mercer.lowrank.landmarks.task import Choice, LandmarkTask, Rows
from mercer.resources import row_blocks

Array = NDArray[np.float64]

PILOT_WORK = 1e11
MOST_PILOT = 1000


def drawn(rng: np.random.Generator, scores: Array, m: int) -> Rows:
    """Draw m positions without replacement, one after the other in proportion to the scores that are left.

    The m smallest of independent exponential times with the scores as rates have that law (Efraimidis and Spirakis
    2006); positions of score zero come last.
    """
    with np.errstate(divide="ignore"):
        times = rng.standard_exponential(len(scores)) / scores
    first = np.argpartition(times, m - 1)[:m] if m < len(times) else np.arange(len(times))
    return first[np.argsort(times[first], kind="stable")].astype(np.intp)


def uniform(task: LandmarkTask) -> Choice:
    """Draw m random rows, in proportion to their weights where they have some."""
    w = task.weights[task.active]
    if (w == w[0]).all():
        picked = task.rng.choice(len(task.active), task.m, replace=False)
    else:
        picked = drawn(task.rng, w, task.m)
    return Choice(task.active[picked], details={"rows": len(task.active)})


def leverage(task: LandmarkTask, ridge: float | None = None, pilot: int | None = None) -> Choice:
    """Draw m rows in proportion to their ridge leverage scores.

    ridge: lam above; None: the one that leaves m / 2 dimensions free, or half the pilots where they are fewer.
    pilot: number of pilot points; more are nearer to the true scores and cost n pilot^2.
    """
    task.need_definite("leverage")
    scores, used, p = leverage_scores(task, ridge, pilot)
    picked = drawn(task.rng, np.maximum(scores, 1e-12 * float(scores.max())), task.m)
    said: dict[str, Any] = {
        "rows": len(task.active),
        "ridge": used,
        "pilot": p,
        "dimensions": float(scores.sum()),
    }
    if p < len(task.active):
        said["note"] = f"scores estimated from {p} pilot points"
    return Choice(task.active[picked], details=said)


def leverage_scores(task: LandmarkTask, ridge: float | None, pilot: int | None) -> tuple[Array, float, int]:
    """Scores (p,) of the active rows, the ridge and the number of pilot points."""
    if ridge is not None and not (np.isfinite(ridge) and ridge > 0):
        raise InvalidInput(f"ridge must be a finite number above zero, got {ridge!r}")
    pilot = None if pilot is None else whole(pilot, "pilot", 1)
    n = len(task.active)
    p = min(n, min(MOST_PILOT, int(np.sqrt(PILOT_WORK / n))) if pilot is None else pilot)
    rows = task.sample(p)
    P, root = take(task.X, rows), np.sqrt(task.weights[rows])
    K = Gram(task.kernel, P, memory=task.memory, storage="streamed").dense()
    values, vectors = dense.eigen(K * root[:, None] * root * (n / p))
    values = np.maximum(values, 0.0)
    lam = _ridge_leaving(values, 0.5 * min(task.m, p)) if ridge is None else float(ridge)
    # (K_PP + lam p/n)^-1 = (n/p) V (values + lam)^-1 V', with the weights of the pilot points on both sides.
    basis = vectors * root[:, None] * np.sqrt((n / p) / (values + lam))
    scores = np.empty(n)
    for part in row_blocks(n, p):
        here = task.active[part]
        points = take(task.X, here)
        A = Gram(task.kernel, points, P, memory=task.memory, storage="streamed").dense() @ basis
        left = np.asarray(task.kernel.diagonal(points), dtype=np.float64) - np.einsum("ij,ij->i", A, A)
        scores[part] = task.weights[here] * np.maximum(left, 0.0) / lam
    return np.minimum(scores, 1.0), lam, p


def _ridge_leaving(values: Array, dimensions: float) -> float:
    """The ridge lam with sum_i v_i / (v_i + lam) = dimensions, by bisection on its logarithm."""
    largest = float(values[-1]) if values[-1] > 0 else 1.0
    low, high = np.log(1e-12 * largest), np.log(1e3 * largest * max(1.0, len(values) / dimensions))
    for _ in range(80):
        middle = 0.5 * (low + high)
        if np.sum(values / (values + np.exp(middle))) > dimensions:
            low = middle
        else:
            high = middle
    return float(np.exp(0.5 * (low + high)))
