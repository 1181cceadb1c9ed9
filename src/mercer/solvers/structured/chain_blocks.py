"""The dual point of block-coordinate Frank-Wolfe for chains: a sweep over the examples is one compiled call.

Block i is not kept as a vector of features but by what its labellings have in common with the right one: the mean of

    D[t] = e_{z_t} - e_{y_t} (k,)   for every row,      E = transitions of z minus transitions of y (k, k)

(times the loss for slack rescaling), from which  v_i = (sum_t x_t (x) D[t], E).  A step touches the features that occur
in its chain alone.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.compiled import loop
from mercer.problems.chain_inference import SLACK, best_labelling, value_of
from mercer.problems.chains import ChainExamples, add_row, emissions
from mercer.problems.structured import StructuredProblem, Vector
from mercer.solvers.structured.search import Reader


@loop
def moves(z: Any, path: Any, factor: float, D: Any, E: Any, to_D: Any, to_E: Any) -> None:
    """From the mean (D, E) of a block to the labelling `path`: the difference, into to_D (T, k) and to_E (k, k)."""
    for t in range(len(path)):
        for b in range(D.shape[1]):
            to_D[t, b] = -D[t, b]
        to_D[t, z[t]] += factor
        to_D[t, path[t]] -= factor
    for a in range(E.shape[0]):
        for b in range(E.shape[1]):
            to_E[a, b] = -E[a, b]
    for t in range(1, len(path)):
        to_E[z[t - 1], z[t]] += factor
        to_E[path[t - 1], path[t]] -= factor


@loop
def _touch(rows: Any, t: int, marks: Any, touched: Any, count: int) -> int:
    """Add the features of row t to those touched."""
    dense, starts, columns, _ = rows
    if len(starts) == 0:
        for f in range(dense.shape[1]):
            if not marks[f]:
                marks[f] = True
                touched[count] = f
                count += 1
        return count
    for at in range(starts[t], starts[t + 1]):
        f = columns[at]
        if not marks[f]:
            marks[f] = True
            touched[count] = f
            count += 1
    return count


@loop
def _product(S: Any, D: Any, A: Any, E: Any) -> float:
    """Sum of S D and A E: w.v for the v of (D, E)."""
    total = 0.0
    for t in range(S.shape[0]):
        for b in range(S.shape[1]):
            total += S[t, b] * D[t, b]
    for a in range(A.shape[0]):
        for b in range(A.shape[1]):
            total += A[a, b] * E[a, b]
    return total


@loop
def frank_wolfe_sweep(
    rows: Any, offsets: Any, z: Any, costs: Any, mode: int, order: Any, W: Any, A: Any, D: Any, E: Any, loss: Any,
    V: Any, marks: Any, touched: Any, gaps: Any,
) -> None:  # fmt: skip
    """A step for each of `order`; W, A, D, E, loss and gaps change in place, V (d, k) is zero before and after."""
    k = W.shape[1]
    to_E = np.empty((k, k))
    for i in order:
        first, last = offsets[i], offsets[i + 1]
        T, cost = last - first, costs[i]
        gaps[i] = 0.0
        if T == 0 or cost == 0.0:
            continue
        S, path, to_D = np.empty((T, k)), np.empty(T, np.intp), np.empty((T, k))
        emissions(rows, first, last, W, S)
        best_labelling(S, A, z[first:last], mode, path)
        found, value = value_of(S, A, z[first:last], path, mode)
        gap = cost * (value - (loss[i] - _product(S, D[first:last], A, E[i])))
        if not gap > 0.0:
            continue
        gaps[i] = gap
        moves(z[first:last], path, found if mode == SLACK else 1.0, D[first:last], E[i], to_D, to_E)
        count = 0
        for t in range(T):
            if to_D[t].any():
                count = _touch(rows, first + t, marks, touched, count)
                add_row(rows, first + t, to_D[t], V)
        square = 0.0
        for at in range(count):
            for b in range(k):
                square += V[touched[at], b] ** 2
        for a in range(k):
            for b in range(k):
                square += to_E[a, b] ** 2
        square *= cost * cost
        share = 1.0 if square <= gap else gap / square
        for at in range(count):
            f = touched[at]
            marks[f] = False
            for b in range(k):
                W[f, b] += share * cost * V[f, b]
                V[f, b] = 0.0
        for a in range(k):
            for b in range(k):
                A[a, b] += share * cost * to_E[a, b]
                E[i, a, b] += share * to_E[a, b]
        for t in range(T):
            for b in range(k):
                D[first + t, b] += share * to_D[t, b]
        loss[i] += share * (found - loss[i])


class ChainBlocks:
    """Blocks of a problem whose examples are chains."""

    def __init__(self, problem: StructuredProblem, examples: ChainExamples) -> None:
        self.problem, self.examples = problem, examples
        k = examples.k
        self.D, self.E = np.zeros((len(examples.labels), k)), np.zeros((problem.n, k, k))
        self.loss = np.zeros(problem.n)
        self.w = np.zeros(problem.size)

    def sweep(self, order: NDArray[np.intp], gaps: Vector) -> None:
        """A step for each chain of `order`; `gaps` (n,) take what each had left before its step."""
        examples = self.examples
        W, A = examples.split(self.w)
        V, marks = np.zeros_like(W), np.zeros(len(W), dtype=np.bool_)
        frank_wolfe_sweep(
            tuple(examples.rows), examples.offsets, examples.labels, self.problem.costs, examples.mode, order, W, A,
            self.D, self.E, self.loss, V, marks, np.empty(len(W), dtype=np.intp), gaps,
        )  # fmt: skip

    def point(self) -> tuple[Vector, float]:
        """w, made anew from the blocks, and sum_i C_i l_i."""
        costs, offsets = self.problem.costs, self.examples.offsets
        D = self.D * np.repeat(costs, np.diff(offsets))[:, None]
        self.w = self.examples.features(D, np.tensordot(costs, self.E, axes=1))
        return self.w, float(costs @ self.loss)

    def state(self) -> Vector:
        """Losses, mean labels and mean transitions."""
        return np.concatenate((self.loss, self.D.ravel(), self.E.ravel()))

    def resume(self, state: Vector) -> None:
        """Take up what `state` has given."""
        reader = Reader(state)
        self.loss = reader.take(self.problem.n)
        self.D, self.E = reader.take(*self.D.shape), reader.take(*self.E.shape)
        reader.close()
