"""Gradient descent in the coefficients, for regularisers other than the norm of f.

    R(a, b) = (1/m) sum_i l(y_i, f_i) + lambda Omega(a),      f = K a + b

    Omega                        gradient in a                      (Schoelkopf and Smola 2002, table 10.3, corrected)
    half_squared_norm            1/2 ||f||^2 = a'Ka / 2             K a
    half_norm                    1/2 ||f||                          K a / (2 sqrt(a'Ka))    printed with the root above
    absolute_coefficients        sum_j |a_j|                        sgn(a)
    squared_values               sum_i f0(x_i)^2                    2 K'K a                 printed without the 2

The gradient of the loss is K c' / m, and that of the bias sum c' / m, with the slopes c' of the losses (table 10.2; the
lost 1/m restored).  A step is halved until the objective falls enough.  Only the first regulariser has a dual here: for
the others there is no certificate, and a loss or regulariser with kinks may end the descent before the optimum.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mercer.arrays import Array
from mercer.errors import InvalidInput
from mercer.losses import Loss
from mercer.problems.program import GramLike
from mercer.problems.statement import checked_size, labels, positive, vector
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.solution import Stopped

Regulariser = Literal["half_squared_norm", "half_norm", "absolute_coefficients", "squared_values"]

REGULARISERS: tuple[Regulariser, ...] = ("half_squared_norm", "half_norm", "absolute_coefficients", "squared_values")
FALL = 1e-4  # share of the fall that the gradient promises which a step must bring
LONGER = 2.0  # the next step is tried this much longer than the last one that was taken
SHORTEST = 1e-16


class Descent(NamedTuple):
    """Where the descent has come: coefficients (n,), bias, objective, length of the gradient, steps, why it ended."""

    coefficients: Array
    bias: float
    objective: float
    gradient: float
    iterations: int
    stopped: Stopped


def regulariser(name: Regulariser, K: GramLike, a: Array, f0: Array) -> tuple[float, Array]:
    """Omega and its gradient (n,) at coefficients a (n,) with f0 = K a (n,)."""
    if name == "half_squared_norm":
        return 0.5 * float(a @ f0), f0
    if name == "half_norm":
        length = float(np.sqrt(max(float(a @ f0), 0.0)))
        return 0.5 * length, f0 / (2.0 * length) if length > 0.0 else np.zeros_like(a)
    if name == "absolute_coefficients":
        return float(np.abs(a).sum()), np.sign(a)
    if name == "squared_values":
        return float(f0 @ f0), 2.0 * np.asarray(K.dot(f0), dtype=np.float64)
    raise InvalidInput(f"regulariser must be one of {', '.join(REGULARISERS)}, got {name!r}")


def risk(
    gram: GramLike, y: Array, loss: Loss, lam: float, name: Regulariser, a: Array, b: float
) -> tuple[float, Array, float]:
    """R, its gradient (n,) in a, and its slope in b."""
    f0 = np.asarray(gram.dot(a), dtype=np.float64)
    slopes = loss.slope(y, f0 + b) / y.size
    omega, gradient = regulariser(name, gram, a, f0)
    value = float(loss.value(y, f0 + b).mean()) + lam * omega
    return value, np.asarray(gram.dot(slopes), dtype=np.float64) + lam * gradient, float(slopes.sum())


def minimise(
    gram: GramLike,
    y: ArrayLike,
    loss: Loss,
    *,
    lam: float,
    regulariser: Regulariser = "half_squared_norm",
    tol: float = 1e-6,
    max_iter: int = 10_000,
    monitor: Monitor | None = None,
) -> Descent:
    """Descend from zero until the gradient is no longer than `tol`, or no step lowers the objective ("stalled")."""
    n, lam = checked_size(gram), positive("lam", lam)
    targets = labels(y, n) if loss.classification else vector("y", y, n)
    # Half the norm of f has no gradient at zero: begin a little beside it.
    a, b = (1e-3 * targets if regulariser == "half_norm" else np.zeros(n)), 0.0
    value, slope_a, slope_b = risk(gram, targets, loss, lam, regulariser, a, b)
    step, watch = 1.0, listening(monitor)
    stopped: Stopped = "iterations"
    steps = 0
    with watch:
        while steps < max_iter:
            square = float(slope_a @ slope_a) + slope_b * slope_b
            if square <= tol * tol:
                stopped = "converged"
                break
            if not watch.watch(steps, value, np.nan):
                stopped = watch.stopped or "interrupted"
                break
            after = risk(gram, targets, loss, lam, regulariser, a - step * slope_a, b - step * slope_b)
            while after[0] > value - FALL * step * square and step > SHORTEST:
                step *= 0.5
                after = risk(gram, targets, loss, lam, regulariser, a - step * slope_a, b - step * slope_b)
            if step <= SHORTEST:
                stopped = "stalled"
                break
            a, b = a - step * slope_a, b - step * slope_b
            (value, slope_a, slope_b), step = after, step * LONGER
            steps += 1
    return Descent(a, b, value, float(np.sqrt(slope_a @ slope_a + slope_b * slope_b)), steps, stopped)
