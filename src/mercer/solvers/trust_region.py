"""A smooth function of few variables, by steps inside a radius that grows where they keep their promise.

A step minimises a quadratic model of the function within the radius; the model's curvature is learned from the
gradients by symmetric rank-one updates, which may be indefinite, so that the step is found from the eigenvectors
(Nocedal and Wright 2006, chapters 4 and 6).
"""

from collections.abc import Callable

import numpy as np

from mercer import dense
from mercer.arrays import Array
from mercer.solvers.monitor import SILENT, Interrupted, Monitor


def descend(
    function: Callable[[Array], tuple[float, Array]],
    x: Array,
    *,
    curvature: Array | None = None,
    reach: float = np.inf,
    radius: float = 1.0,
    steps: int = 30,
    tolerance: float = 1e-5,
    monitor: Monitor = SILENT,
    last: bool = True,
) -> tuple[Array, Array]:
    """Minimise a smooth function (value, gradient) of few variables from x (p,); returns the best x and the curvature.

    curvature (p, p): of the first model, the identity where it is None; reach: how far each variable may move.
    Stops when the model promises less than `tolerance`, after `steps` evaluations, at a radius below 1e-4, or when the
    monitor says so; an interruption of any descent but the `last` of several is raised.
    """
    origin = x.copy()
    value, gradient = function(x)
    B = np.eye(len(x)) if curvature is None else curvature.copy()
    for _ in range(steps - 1):
        step = _step(B, gradient, radius)
        step = np.clip(x + step, origin - reach, origin + reach) - x
        promised = -float(gradient @ step + 0.5 * step @ B @ step)
        if not promised > tolerance or radius < 1e-4:
            break
        try:
            if not monitor.go_on():
                monitor.poll()
                break
            trial, slope = function(x + step)
        except Interrupted:
            if last:
                break
            raise
        if not np.isfinite(trial):
            radius = 0.25 * float(np.linalg.norm(step))
            continue
        missing = slope - gradient - B @ step
        size = float(missing @ step)
        if abs(size) > 1e-8 * float(np.linalg.norm(step)) * float(np.linalg.norm(missing)):
            B = B + np.outer(missing, missing) / size
        ratio = (value - trial) / promised
        length = float(np.linalg.norm(step))
        if ratio < 0.25:
            radius = 0.3 * length
        elif ratio > 0.7 and length > 0.8 * radius:
            radius = min(2.5 * radius, 4.0)
        if trial < value:
            x, value, gradient = x + step, trial, slope
    return x, B


def _step(B: Array, gradient: Array, radius: float) -> Array:
    """The minimiser of g's + 1/2 s'Bs with |s| <= radius: s = -(B + mu I)^-1 g, mu >= 0 found by bisection."""
    values, vectors = dense.eigen(B)
    g = vectors.T @ gradient
    lowest = max(0.0, -float(values[0])) + 1e-10 * (1.0 + float(np.max(np.abs(values))))

    def at(mu: float) -> Array:
        return np.asarray(-g / (values + mu))

    low, high = lowest, lowest + float(np.linalg.norm(g)) / radius + 1.0
    if np.linalg.norm(at(low)) <= radius:
        return np.asarray(vectors @ at(low))
    while np.linalg.norm(at(high)) > radius:
        high *= 2.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if np.linalg.norm(at(middle)) > radius:
            low = middle
        else:
            high = middle
    return np.asarray(vectors @ at(high))
