"""The rectangular matrix k(X, Z) between any new points X and fixed ones: landmarks, support vectors.

The fixed points Z (m, d) are prepared once, and the functions k(., z_j) then evaluated at the rows of any X (n, d):

    values, fill    k(X, Z) itself
    expand          sum_j k(x, z_j) c_j, the values computed in tiles and forgotten: what a machine predicts
    sweep           k(X, Z)'R with R a function of k(X, Z) W: what passes over many rows add up

A machine with a linear kernel is one weight vector, Z'c, where Z is dense.  What `expand` holds besides the points and
the results follows from a budget: new points are prepared `PREPARED_VALUES` numbers at a time, fewer where the budget
asks for it, and the fixed points in parts where they do not fit as a whole.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.gram import cost
from mercer.gram.cpu_engine import engine_of
from mercer.gram.engine import Array, Body
from mercer.gram.points import Points, features, size, take
from mercer.gram.tiles import TILE_COLUMNS, TILE_ROWS
from mercer.resources import budget as budget_of

PREPARED_VALUES = 1 << 20  # numbers of new points copied at once, unless that is less than FEWEST_ROWS points
FEWEST_ROWS = 4 * TILE_ROWS
# A plan that needs no more is not worth asking the machine how much memory it has.
SMALL_BUDGET = 1 << 28


class KernelColumns:
    """The functions k(., z_j) of the points Z (m, d), or m objects, with values of type `dtype`.

    `memory` bounds what `expand` allocates beside its results; None: a quarter of the memory that is free.
    """

    def __init__(
        self, kernel: Any, Z: Points, dtype: Any = np.float64, *, memory: int | float | str | None = None
    ) -> None:
        self.kernel, self.points, self.dtype, self.memory = kernel, Z, np.dtype(dtype), memory
        self.m, self.d = size(Z), features(Z)
        self._engine = engine_of(kernel, Z, None, dtype)

    def prepare(self) -> None:
        """Prepare the fixed points now, before several threads ask for values."""
        self._engine.prepare()

    def fill(self, X: Points, out: NDArray[Any]) -> NDArray[Any]:
        """k(X, Z) (n, m), written to the first n rows of `out`."""
        self._check(X)
        values = out[: size(X)]
        self._engine.against(X).fill(slice(0, size(X)), slice(0, self.m), values)
        return values

    def values(self, X: Points) -> NDArray[Any]:
        """k(X, Z) (n, m)."""
        return self.fill(X, np.empty((size(X), self.m), self.dtype))

    def _check(self, X: Points) -> None:
        if features(X) != self.d:
            raise InvalidInput(f"X has {features(X)} features, the points it is compared with have {self.d}")

    # Passes over rows -----------------------------------------------------------------------------------------------

    def sweep(self, X: Points, W: Array, body: Body, sums: Array, totals: Array) -> None:
        """Add A'R to `sums` (m, q), A = k(X, Z); body(A[rows] W, rows) gives R and what is added to `totals` (t,)."""
        self._engine.against(X).sweep(W, body, sums, totals)

    def sweep_normal(self, X: Points, v: Array, W: Array, sums: Array) -> None:
        """Add A' diag(v) A W (m, k) to `sums`."""
        self._engine.against(X).sweep_normal(v, W, sums)

    def sweep_residuals(self, X: Points, Y: Array, v: Array, W: Array, sums: Array, totals: Array) -> None:
        """Add A' diag(v) [E, 1] (m, k + 1) to `sums` and sum v, v'E, v'E^2 (1 + 2 k,) to `totals`, E = Y - A W."""
        self._engine.against(X).sweep_residuals(Y, v, W, sums, totals)

    # Expansions -----------------------------------------------------------------------------------------------------

    def expand(self, X: Points, blocks: Sequence[slice], coefficients: Sequence[Array]) -> list[Array]:
        """k(X, Z[block]) c for every block of the points and its coefficients c (size of the block, k): (n, k) each."""
        n = size(X)
        if self._is_weight_vector():
            return [np.asarray(X @ (self.points[block].T @ c)) for block, c in zip(blocks, coefficients)]
        results = [np.zeros((n, c.shape[1])) for c in coefficients]
        if not self.m or not n:
            return results
        if self._at_once(n):
            engine = self._engine.against(X)
            for block, c, result in zip(blocks, coefficients, results):
                engine.multiply(slice(0, n), block, c, result)
            return results
        task = self._task(X)
        for first in range(0, self.m, task.m):
            part = slice(first, min(self.m, first + task.m))
            whole = part == slice(0, self.m)
            engine = self._engine if whole else engine_of(self.kernel, take(self.points, part), None, self.dtype)
            if not task.fused:
                engine.limit(cost.plan("streamed", task))
            inside = list(_inside(part, blocks))
            for start in range(0, n, task.n):
                rows = slice(start, min(n, start + task.n))
                here = engine.against(_part(X, rows))
                for at, columns, own in inside:
                    here.multiply(slice(0, rows.stop - start), columns, coefficients[at][own], results[at][rows])
        return results

    def plan(self, X: Points) -> cost.Plan:
        """How an expansion at the points X is computed, in what memory and why; print it."""
        n, task = size(X), self._task(X)
        plan = replace(cost.plan("streamed", task), shape=(n, self.m))
        if self._is_weight_vector():
            return plan.because("the kernel is linear: the expansion is one weight vector, and no value is computed")
        reason = f"{task.n} of {n} new points are prepared at a time"
        if task.m < self.m:
            reason += f", and {task.m} of the {self.m} they are compared with: no more fit in the budget"
        return plan.because(reason)

    def _is_weight_vector(self) -> bool:
        """Whether an expansion is one weight vector; sparse points hold theirs on the features in use, in tiles."""
        profile = self.kernel.profile
        linear = profile is not None and profile.name == "linear" and profile.scale is None
        return linear and not self._engine.compressed

    def _at_once(self, n: int) -> bool:
        """Whether n new points and all fixed ones are so few that no plan is needed.

        That is without a stated budget, where the points take less than half of `SMALL_BUDGET`, counted twice because
        they may have to be made dense; the other half holds the tiles of 64 threads.
        """
        if self.memory is not None or self._engine.compressed or not self._engine.fused:
            return False
        points = 16 * (n + self.m) * (self.d + 3)
        return self.d <= TILE_COLUMNS and n * self.d <= PREPARED_VALUES and 2 * points <= SMALL_BUDGET

    def _task(self, X: Points) -> cost.MatrixTask:
        """The n new and m fixed points that are prepared at a time.

        As many new points as `PREPARED_VALUES` and the budget allow, and all fixed ones unless they do not fit.
        """
        stored = X.nnz // size(X) if sp.issparse(X) and self._engine.compressed else features(X)
        rows, columns = min(size(X), max(FEWEST_ROWS, PREPARED_VALUES // max(1, stored))), self.m
        task = self._engine.against(_part(X, slice(0, rows))).task(SMALL_BUDGET)
        if self.memory is not None or cost.smallest_budget("streamed", task) > SMALL_BUDGET:
            task = replace(task, budget=budget_of(self.memory))
        while task.budget < cost.smallest_budget("streamed", task) and max(rows, columns) > TILE_ROWS:
            if rows > TILE_ROWS:
                rows = max(TILE_ROWS, rows // 2)
            else:
                columns = max(TILE_ROWS, columns // 2)
            part = engine_of(self.kernel, _part(self.points, slice(0, columns)), None, self.dtype)
            task = part.against(_part(X, slice(0, rows))).task(task.budget)
        if task.budget < cost.smallest_budget("streamed", task):
            cost.plan("streamed", task)  # which says what budget would do
        return task


def _part(X: Points, rows: slice) -> Points:
    """The points of a slice; X itself, uncopied, where that is all of them."""
    return X if rows == slice(0, size(X)) else take(X, rows)


def _inside(part: slice, blocks: Sequence[slice]) -> Iterator[tuple[int, slice, slice]]:
    """For each block that meets `part`: its number, the columns of the part, and the rows of its coefficients."""
    for at, block in enumerate(blocks):
        first, last = max(part.start, block.start), min(part.stop, block.stop)
        if first < last:
            yield at, slice(first - part.start, last - part.start), slice(first - block.start, last - block.start)
