"""The matrix of a compactly supported kernel: only the values of pairs closer than the support, in CSR form.

Pairs are found by a search of neighbours in a k-d tree, never by looking at all n m of them, and memory goes with the
number z of nonzero values (Hamers 2004, section 4.3.2).  Rows are taken in the order of the tree's leaves, a few
dozen neighbouring points together: one ball around them gives the candidates of all, and exact distances decide.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial import KDTree

from mercer import threads
from mercer.compiled import exact_loop
from mercer.errors import InvalidInput
from mercer.gram import cost
from mercer.gram.engine import Engine
from mercer.gram.operator import GramOperator
from mercer.gram.points import AnyIndex, Index, features, length, pieces, size

GROUP = 32
SAMPLE = 256


def _tree_points(X: Any) -> NDArray[np.float64]:
    """Points as the dense float64 matrix a k-d tree needs."""
    return np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


@exact_loop
def _count(X: Any, rows: Any, Z: Any, candidates: Any, square: Any, counts: Any) -> None:
    """counts[i] = number of candidates z with |x_i - z|^2 < square, for the i in rows."""
    for i in rows:
        found = 0
        for j in candidates:
            total = 0.0
            for p in range(X.shape[1]):
                difference = X[i, p] - Z[j, p]
                total += difference * difference
            if total < square:
                found += 1
        counts[i] = found


@exact_loop
def _collect(
    X: Any, rows: Any, Z: Any, candidates: Any, square: Any, indptr: Any, indices: Any, distances: Any
) -> None:
    """Write columns and distances of the pairs that `_count` counted; candidates are sorted, so columns are too."""
    for i in rows:
        at = indptr[i]
        for j in candidates:
            total = 0.0
            for p in range(X.shape[1]):
                difference = X[i, p] - Z[j, p]
                total += difference * difference
            if total < square:
                indices[at] = j
                distances[at] = np.sqrt(total)
                at += 1


class Neighbours:
    """Pairs of points (x_i, z_j) closer than `radius`."""

    def __init__(self, X: Any, Z: Any, radius: float) -> None:
        self.X = _tree_points(X)
        self.Z = self.X if Z is X else _tree_points(Z)
        self.radius = radius
        self.tree = KDTree(self.Z, leafsize=GROUP)
        order = self.tree.indices if Z is X else KDTree(self.X, leafsize=GROUP).indices
        self.groups = [np.ascontiguousarray(order[i : i + GROUP], dtype=np.intp) for i in range(0, len(order), GROUP)]

    def estimate(self) -> int:
        """Number of pairs, from the neighbours of at most SAMPLE points."""
        n = len(self.X)
        chosen = np.random.default_rng(0).choice(n, min(n, SAMPLE), replace=False)
        found = self.tree.query_ball_point(self.X[chosen], self.radius, return_length=True)
        return int(np.ceil(n * float(np.mean(found))))

    def candidates(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Every z that may be closer than the radius to one of the rows, sorted."""
        points = self.X[rows]
        centre = 0.5 * (points.min(axis=0) + points.max(axis=0))
        reach = float(np.sqrt(((points - centre) ** 2).sum(axis=1).max()))
        found = self.tree.query_ball_point(centre, (self.radius + reach) * (1 + 1e-9))
        return np.sort(np.asarray(found, dtype=np.intp))

    def counts(self) -> NDArray[np.int64]:
        """Number of neighbours of every x, shape (n,)."""
        result = np.zeros(len(self.X), dtype=np.int64)
        square = self.radius**2

        def count(groups: list[NDArray[np.intp]]) -> None:
            for rows in groups:
                _count(self.X, rows, self.Z, self.candidates(rows), square, result)

        parts = threads.split(len(self.groups))
        threads.run(count, [(self.groups[a:b],) for a, b in parts])
        return result

    def collect(self, indptr: NDArray[Any], indices: NDArray[Any], distances: NDArray[Any]) -> None:
        """Columns and distances of all pairs, row by row as `indptr` lays them out."""
        square = self.radius**2

        def fill(groups: list[NDArray[np.intp]]) -> None:
            for rows in groups:
                _collect(self.X, rows, self.Z, self.candidates(rows), square, indptr, indices, distances)

        parts = threads.split(len(self.groups))
        threads.run(fill, [(self.groups[a:b],) for a, b in parts])


def support_of(engine: Engine) -> float | None:
    """Distance from which on the kernel is zero on these points, or None where it reaches everywhere."""
    if isinstance(engine.X, list) or not getattr(engine.kernel, "compact", False):
        return None
    support = engine.kernel.support_in(features(engine.X))
    return None if support is None or not np.isfinite(support) else float(support)


def find_neighbours(engine: Engine, budget: int) -> Neighbours | None:
    """The search structure of a compact kernel, or None where there is none or it would not fit."""
    support = support_of(engine)
    if support is None or search_bytes(engine) > budget // 2:
        return None
    return Neighbours(engine.X, engine.Z, support)


def search_bytes(engine: Engine) -> int:
    """Bytes of the k-d tree and of dense float64 copies of the points."""
    count = engine.shape[0] if engine.symmetric else sum(engine.shape)
    return count * (16 * features(engine.X) + 32)


class SparseGram(GramOperator):
    """K in CSR form; `matrix` is the CSR array, `nonzeros` its number of values."""

    storage = "sparse"

    def __init__(self, engine: Engine, plan: cost.Plan, matrix: Any) -> None:
        super().__init__(engine, plan)
        self.matrix = matrix

    @classmethod
    def build(cls, engine: Engine, budget: int, neighbours: Neighbours | None = None) -> "SparseGram":
        """Search the neighbours, count them, check the budget, and only then compute their values."""
        neighbours = neighbours or find_neighbours(engine, budget)
        if neighbours is None:
            raise InvalidInput(
                f"storage='sparse' needs a compactly supported kernel on vectors, and a budget for the search of "
                f"neighbours ({search_bytes(engine)} bytes); {engine.kernel!r} with storage='streamed' works"
            )
        counts = neighbours.counts()
        nonzeros = int(counts.sum())
        task = engine.task(budget, nonzeros=nonzeros)
        # While it is built, the search structure lies beside the values and one strip of distances.
        building = cost.stored_bytes("sparse", task) + search_bytes(engine) + 8 * cost.COPIED_VALUES
        task = replace(task, transient=max(task.transient, building))
        share = nonzeros / (task.n * task.m)
        plan = cost.plan("sparse", task).because(f"{nonzeros} of {task.n * task.m} values ({share:.2%}) are nonzero")
        kind = np.int32 if max(nonzeros, task.m) < 2**31 else np.int64
        indptr = np.concatenate(([0], np.cumsum(counts))).astype(kind)
        indices = np.empty(nonzeros, dtype=kind)
        values = np.empty(nonzeros, dtype=engine.dtype)
        neighbours.collect(indptr, indices, values)
        _evaluate(engine, indptr, indices, values)
        return cls(engine, plan, sp.csr_array((values, indices, indptr), shape=engine.shape))

    @property
    def nonzeros(self) -> int:
        """Number of stored values."""
        return int(self.matrix.nnz)

    def held_values(self) -> Any:
        """The CSR matrix."""
        return self.matrix

    def _fill(self, rows: Index, columns: Index, out: NDArray[Any]) -> None:
        start = 0
        for part in pieces(rows, max(1, cost.COPIED_VALUES // self.shape[1])):
            block = self.matrix[part]
            out[start : start + length(part)] = block.toarray()[:, columns]
            start += length(part)

    def _multiply(self, rows: Index, columns: Index, V: NDArray[Any], out: NDArray[Any]) -> None:
        if length(columns) < self.shape[1] or not isinstance(columns, slice):
            scattered = np.zeros((self.shape[1], V.shape[1]), dtype=self.dtype)
            np.add.at(scattered, np.arange(self.shape[1])[columns], V)
            V = scattered
        matrix = self.matrix if length(rows) == self.shape[0] and isinstance(rows, slice) else self.matrix[rows]
        out += matrix @ V

    def _multiply_transposed(self, V: NDArray[Any], out: NDArray[Any]) -> None:
        out += self.matrix.T @ V

    def with_kernel(self, kernel: Any) -> GramOperator:
        """The sparse matrix of another compact kernel on the same points."""
        return SparseGram.build(self.engine.with_kernel(kernel), self._plan.budget)

    def subset(self, index: AnyIndex, share: int = 1) -> GramOperator:
        """The operator on the points at `index`: values are copied, not computed again."""
        chosen = self._subset_index(index)
        matrix = sp.csr_array(self.matrix[chosen][:, chosen])
        engine = self.engine.subset(chosen)
        plan = cost.plan("sparse", engine.task(self._plan.budget, nonzeros=matrix.nnz))
        return SparseGram(engine, plan.because("part of a sparse matrix"), matrix)


def _evaluate(engine: Engine, indptr: NDArray[Any], indices: NDArray[Any], values: NDArray[Any]) -> None:
    """Replace distances by kernel values: by the function of the distance, or by a call for the rows' neighbours."""
    kernel = engine.kernel
    if kernel.isotropic:
        d = features(engine.X)
        step = cost.COPIED_VALUES // 8
        for start in range(0, len(values), step):
            here = slice(start, start + step)
            values[here] = kernel.of_distance(values[here], d)
        return
    for i in range(size(engine.X)):
        here = slice(int(indptr[i]), int(indptr[i + 1]))
        row = np.empty((1, here.stop - here.start), dtype=engine.dtype)
        engine.fill(np.array([i]), indices[here].astype(np.intp), row)
        values[here] = row[0]
