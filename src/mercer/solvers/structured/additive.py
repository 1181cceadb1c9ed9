"""Passes that only ever add: the sum of planes of subgradient descent, and the weights of a perceptron.

A pass takes examples in turn, finds a structure at the present w, and adds its v to a sum G (size,).  The present w
is a multiple of G: with pace > 0, at step number s, it is (pace / s) G with every v counted by its cost; else it is G
itself. `U` takes s v, from which the mean of all w follows at the end (`mercer.solvers.structured.perceptron`).
"""

from typing import Any, NamedTuple

import numpy as np

from mercer.compiled import loop
from mercer.problems.chain_inference import PLAIN, SLACK, best_labelling, value_of
from mercer.problems.chains import ChainExamples, add_row, emissions
from mercer.problems.structured import Index, StructuredProblem, Vector


class Added(NamedTuple):
    """What a pass met: the number of examples whose structure was not right, and sum of costs times losses."""

    mistakes: int
    loss: float


@loop
def _chain_pass(
    rows: Any, offsets: Any, z: Any, costs: Any, mode: int, order: Any, step: int, pace: float,
    G: Any, A: Any, U: Any, B: Any, averaged: bool,
) -> tuple[int, float]:  # fmt: skip
    """A pass over chains; G (d, k) with A (k, k), and U with B where the mean is wanted, change in place."""
    k = G.shape[1]
    mistakes, total = 0, 0.0
    D = np.empty(k)
    for i in order:
        step += 1
        first, last = offsets[i], offsets[i + 1]
        T, cost = last - first, costs[i]
        scale = pace / max(step - 1, 1) if pace > 0.0 else 1.0
        S, path = np.empty((T, k)), np.empty(T, np.intp)
        emissions(rows, first, last, G, S)
        S *= scale
        own = z[first:last]
        best_labelling(S, scale * A, own, mode, path)
        loss, _ = value_of(S, A, own, path, mode)
        if loss == 0.0:
            continue
        mistakes += 1
        total += cost * loss
        factor = cost * (loss if mode == SLACK else 1.0)
        for t in range(T):
            if path[t] != own[t]:
                D[:] = 0.0
                D[own[t]] += factor
                D[path[t]] -= factor
                add_row(rows, first + t, D, G)
                if averaged:
                    add_row(rows, first + t, step * D, U)
            if t > 0:
                A[own[t - 1], own[t]] += factor
                A[path[t - 1], path[t]] -= factor
                if averaged:
                    B[own[t - 1], own[t]] += step * factor
                    B[path[t - 1], path[t]] -= step * factor
    return mistakes, total


def add_pass(
    problem: StructuredProblem, order: Index, step: int, G: Vector, U: Vector | None, *, pace: float, augmented: bool
) -> Added:
    """A pass over the examples of `order` after `step` steps; G and U (size,) change in place."""
    examples = problem.examples
    costs = problem.costs if pace > 0.0 else np.ones(problem.n)
    if isinstance(examples, ChainExamples):
        mode = examples.mode if augmented else PLAIN
        W, A = examples.split(G)
        other, B = (W, A) if U is None else examples.split(U)
        fixed = (tuple(examples.rows), examples.offsets, examples.labels, costs, mode, order, step, float(pace))
        return Added(*_chain_pass(*fixed, W, A, other, B, U is not None))
    mistakes, total = 0, 0.0
    for i in order:
        step += 1
        scale = pace / max(step - 1, 1) if pace > 0.0 else 1.0
        found = examples.plane(scale * G, int(i), augmented=augmented)
        if found.loss == 0.0:
            continue
        mistakes, total = mistakes + 1, total + costs[i] * found.loss
        found.v.add_to(G, costs[i])
        if U is not None:
            found.v.add_to(U, step)
    return Added(mistakes, float(total))
