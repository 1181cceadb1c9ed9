"""Mixtures of experts: a partition of the points, a machine for each part, and a gate that says whom to ask.

    f(x) = sum_j g_j(x) f_j(x),      g_j(x) >= 0,   sum_j g_j(x) = 1

Each round trains the experts on their parts, weighs them at every point and trains the gate on these weights, which is
one step of expectation and maximisation (Jacobs, Jordan, Nowlan and Hinton 1991): with losses L_ij of expert j at
point i and their mean level s^2,

    h_ij = g_j(x_i) exp(-L_ij / 2s^2) / sum_l g_l(x_i) exp(-L_il / 2s^2) .

The gate then deals the points out anew, each to the expert it trusts most that is not yet full (Collobert, Bengio and
Bengio 2002), so that every expert stays small.  A round that makes the mixture worse is taken back and ends the loop.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mercer.arrays import Array, Index
from mercer.solvers.monitor import Monitor, listening

LEAST = 1e-3  # responsibility that every expert keeps for every point, so that the gate knows all of them
STEPS = 3  # of level and responsibilities, given the gate of the last round


class Experts(NamedTuple):
    """Trained experts, and their losses L (n, q) at all points, each as if it had not seen the point."""

    machines: Any
    losses: Array


class Gate(NamedTuple):
    """A trained gate, its answers g (n, q) at all points, and the error of the mixture with it."""

    machine: Any
    weights: Array
    error: float


@dataclass(frozen=True)
class Mixture:
    """The best round: experts, gate and part (n,) of each point; errors of all accepted rounds; why it ended.

    `stopped`: "rounds", "settled" (no point changes its expert), "worse" (the last round was taken back) or
    "interrupted".
    """

    experts: Experts
    gate: Gate
    part: Index
    errors: list[float]
    stopped: str


def alternate(
    train: Callable[[Index], Experts],
    learn: Callable[[Experts, Array], Gate],
    part: Index,
    experts: int,
    capacity: int,
    rounds: int,
    monitor: Monitor | None = None,
) -> Mixture:
    """Alternate between experts and gate, from the parts 0..q-1 (n,) of the points.

    train(part) trains the experts, learn(experts, h) a gate for responsibilities h (n, q).
    """
    monitor = listening(monitor)
    prior = np.full((len(part), experts), 1.0 / experts)
    best: Mixture | None = None
    for number in range(rounds):
        trained = train(part)
        gate = learn(trained, responsibilities(prior, trained.losses))
        if best is not None and not gate.error <= best.gate.error:
            return Mixture(best.experts, best.gate, best.part, best.errors, "worse")
        errors = [*([] if best is None else best.errors), gate.error]
        best = Mixture(trained, gate, part, errors, "rounds")
        if not monitor.watch(number + 1, gate.error, 0.0):
            return Mixture(trained, gate, part, errors, "interrupted")
        prior, before = gate.weights, part
        part = balanced(gate.weights, capacity)
        if np.array_equal(part, before):
            return Mixture(trained, gate, before, errors, "settled")
    assert best is not None
    return best


def responsibilities(prior: Array, losses: Array) -> Array:
    """How much each expert answers for each point, h (n, q), from the gate g (n, q) and the losses L (n, q).

    The level s^2 is the mean loss under h itself, found in a few steps from that of the best expert at each point.
    """
    level = float(np.mean(np.min(losses, axis=1)))
    h = prior
    for _ in range(STEPS):
        exponent = np.log(np.maximum(prior, LEAST)) - losses / (2.0 * max(level, np.finfo(float).tiny))
        h = np.exp(exponent - exponent.max(axis=1, keepdims=True))
        h /= h.sum(axis=1, keepdims=True)
        level = float(np.mean(np.sum(h * losses, axis=1)))
    h = np.maximum(h, LEAST)
    return np.asarray(h / h.sum(axis=1, keepdims=True))


def balanced(weights: Array, capacity: int) -> Index:
    """The expert of each point (n,): that of the largest g (n, q) that has fewer than `capacity` points.

    The points the gate is surest about are dealt out first.
    """
    n, q = weights.shape
    room = np.full(q, capacity)
    part = np.empty(n, dtype=np.intp)
    order = np.argsort(-weights, axis=1, kind="stable")
    for point in np.argsort(-weights.max(axis=1), kind="stable"):
        expert = next(j for j in order[point] if room[j] > 0)
        part[point] = expert
        room[expert] -= 1
    return part
