"""Where the values of a kernel matrix come from, before anybody thinks of storing them.

Kernels with a profile run in fused tiles (`mercer.gram.tiles`); all others, and kernels on objects, are evaluated
through their own call k(X[rows], Z[columns]) on blocks small enough for the budget.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import threads
from mercer.errors import InvalidInput
from mercer.gram import cost
from mercer.gram.points import Index, Points, features, length, pieces, size, take
from mercer.gram.tiles import Tiles, worth_densifying
from mercer.gram.transform import CODES


class Entries(ABC):
    """Values k(x_i, z_j) on demand; `Z is X` where rows and columns are the same points."""

    def __init__(self, kernel: Any, X: Points, Z: Points, dtype: Any) -> None:
        self.kernel = kernel
        self.X = X
        self.Z = Z
        self.dtype = np.dtype(dtype)
        self.shape = (size(X), size(Z))

    @property
    def symmetric(self) -> bool:
        """Whether rows and columns are the same points."""
        return self.Z is self.X

    @abstractmethod
    def fill(self, rows: Index, columns: Index, out: NDArray[Any]) -> None:
        """Write K[rows][:, columns] to `out` (len(rows), len(columns))."""

    @abstractmethod
    def multiply(self, rows: Index, columns: Index, V: NDArray[Any], out: NDArray[np.float64]) -> None:
        """Add K[rows][:, columns] V to `out` (len(rows), k) in float64."""

    @abstractmethod
    def task(self, budget: int, access: cost.Access = "products", nonzeros: int | None = None) -> cost.Task:
        """The sizes the cost model needs."""

    def limit(self, plan: cost.Plan) -> None:  # noqa: B027 - not every kind has something to limit
        """Keep the working memory within a plan."""

    def release(self) -> None:  # noqa: B027 - not every kind has something to forget
        """Forget prepared points; they are made again when values are asked for."""

    def diagonal(self) -> NDArray[Any]:
        """k(x_i, x_i), shape (n,)."""
        return np.asarray(self.kernel.diagonal(self.X)).astype(self.dtype, copy=False)

    def with_kernel(self, kernel: Any) -> "Entries":
        """Values of another kernel on the same points."""
        return entries(kernel, self.X, None if self.symmetric else self.Z, self.dtype)

    def subset(self, index: NDArray[np.intp]) -> "Entries":
        """Values among the points at `index`."""
        return entries(self.kernel, take(self.X, index), None, self.dtype)


class FusedEntries(Entries):
    """Values of a kernel with a profile, computed in tiles that stay in cache.

    In float32 a Gaussian value has a relative error below 4e-6 + 3e-7 (|x - c|^2 + |z - c|^2) / (2 sigma^2), c the mean
    of the points: the error of the power, and the rounding of the squared distance.  Functions of the distance itself
    (exponential) lose more where points nearly coincide: sqrt(2e-7) |x - c| / sigma absolute, in float64 sqrt(4e-16).
    """

    def __init__(self, kernel: Any, X: Points, Z: Points, dtype: Any) -> None:
        super().__init__(kernel, X, Z, dtype)
        self._tiles: Tiles | None = None

    @property
    def tiles(self) -> Tiles:
        """The prepared points; made at first use, when the plan has been accepted."""
        if self._tiles is None:
            self._tiles = Tiles(self.kernel.profile, self.X, None if self.symmetric else self.Z, self.dtype)
        return self._tiles

    def release(self) -> None:
        """Forget the prepared points."""
        self._tiles = None

    def fill(self, rows: Index, columns: Index, out: NDArray[Any]) -> None:
        """Write K[rows][:, columns] to `out`."""
        self.tiles.fill(_all_as_none(rows, self.shape[0]), _all_as_none(columns, self.shape[1]), out)

    def multiply(self, rows: Index, columns: Index, V: NDArray[Any], out: NDArray[np.float64]) -> None:
        """Add K[rows][:, columns] V to `out`; scattered column points are copied a few at a time."""
        some_rows = _all_as_none(rows, self.shape[0])
        if isinstance(columns, slice):
            self.tiles.multiply(some_rows, _all_as_none(columns, self.shape[1]), V, out)
            return
        start = 0
        for part in pieces(columns, max(1, cost.COPIED_VALUES // features(self.X))):
            self.tiles.multiply(some_rows, part, V[start : start + length(part)], out)
            start += length(part)

    def task(self, budget: int, access: cost.Access = "products", nonzeros: int | None = None) -> cost.Task:
        """Sizes of a fused kernel; CSR points that the tiles turn dense count as dense."""
        compressed = sp.issparse(self.X) and not worth_densifying(self.X)
        stored = None
        if compressed:
            stored = self.X.nnz + (0 if self.symmetric else _entries_of(self.Z))
        profile = self.kernel.profile
        return cost.Task(
            n=self.shape[0],
            m=self.shape[1],
            d=features(self.X),
            itemsize=self.dtype.itemsize,
            budget=budget,
            symmetric=self.symmetric,
            entries=stored,
            linear=profile.name == "linear",
            nonzeros=nonzeros,
            access=access,
            workers=threads.count(),
            transient=_transient_bytes(self.X, self.Z, compressed),
        )


class CalledEntries(Entries):
    """Values of any kernel, by calling it on blocks of points.

    A block has at most `block` values, so that the call's own temporaries stay within the budget; the operator that
    owns the entries sets it from its plan.
    """

    def __init__(self, kernel: Any, X: Points, Z: Points, dtype: Any) -> None:
        super().__init__(kernel, X, Z, dtype)
        self.block = cost.CALLED_VALUES

    def limit(self, plan: cost.Plan) -> None:
        """Call the kernel on blocks of the size the plan allows."""
        self.block = plan.block[0] * plan.block[1]

    def _blocks(self, rows: Index, columns: Index) -> tuple[int, int]:
        """Rows and columns of one call: near square, so that few points are handed over for many values."""
        side = max(1, int(self.block**0.5))
        width = min(length(columns), max(side, self.block // max(1, length(rows))))
        return max(1, self.block // max(1, width)), width

    def _values(self, rows: Index, columns: Index) -> NDArray[Any]:
        """One call of the kernel, its shape checked; a square block on the diagonal is one set of points."""
        others = None if self.symmetric and rows is columns else take(self.Z, columns)
        values = np.asarray(self.kernel(take(self.X, rows), others))
        expected = (length(rows), length(columns))
        if values.shape != expected:
            raise InvalidInput(
                f"kernel returned shape {values.shape} for points that need {expected}; correct the callable"
            )
        return values

    def _whole(self, rows: Index, columns: Index) -> bool:
        """Whether the whole of a symmetric matrix is asked for."""
        return self.symmetric and _all_as_none(rows, self.shape[0]) is _all_as_none(columns, self.shape[0]) is None

    def _upper_blocks(self) -> Iterator[tuple[slice, slice, NDArray[Any]]]:
        """Square blocks on and above the diagonal: rows, columns (the same object on the diagonal) and values."""
        parts = pieces(slice(0, self.shape[0]), max(1, int(self.block**0.5)))
        for i, here in enumerate(parts):
            for there in parts[i:]:
                values = self._values(here, there).astype(self.dtype, copy=False)
                yield cast(slice, here), cast(slice, there), values

    def fill(self, rows: Index, columns: Index, out: NDArray[Any]) -> None:
        """Write K[rows][:, columns] to `out`, block by block."""
        if self._whole(rows, columns):
            for here, there, values in self._upper_blocks():
                out[here, there] = values
                out[there, here] = values.T
            return
        height, width = self._blocks(rows, columns)
        top = 0
        for some_rows in pieces(rows, height):
            left = 0
            for some_columns in pieces(columns, width):
                values = self._values(some_rows, some_columns)
                out[top : top + values.shape[0], left : left + values.shape[1]] = values
                left += values.shape[1]
            top += length(some_rows)

    def multiply(self, rows: Index, columns: Index, V: NDArray[Any], out: NDArray[np.float64]) -> None:
        """Add K[rows][:, columns] V to `out`, block by block."""
        if self._whole(rows, columns):
            for here, there, values in self._upper_blocks():
                out[here] += values @ V[there]
                if here is not there:
                    out[there] += values.T @ V[here]
            return
        height, width = self._blocks(rows, columns)
        top = 0
        for some_rows in pieces(rows, height):
            left = 0
            for some_columns in pieces(columns, width):
                values = self._values(some_rows, some_columns).astype(self.dtype, copy=False)
                out[top : top + values.shape[0]] += values @ V[left : left + values.shape[1]]
                left += values.shape[1]
            top += length(some_rows)

    def task(self, budget: int, access: cost.Access = "products", nonzeros: int | None = None) -> cost.Task:
        """Sizes of a kernel that is evaluated by calls."""
        return cost.Task(
            n=self.shape[0],
            m=self.shape[1],
            d=features(self.X),
            itemsize=self.dtype.itemsize,
            budget=budget,
            symmetric=self.symmetric,
            fused=False,
            nonzeros=nonzeros,
            access=access,
        )


def _transient_bytes(X: Points, Z: Points, compressed: bool) -> int:
    """Bytes needed only while points are prepared: strips; for CSR the squares or the dense copy."""
    if compressed:
        return 24 * max(_entries_of(P) for P in (X, Z))
    strips = 3 * 8 * min(1 << 16, max(int(np.prod(P.shape)) for P in (X, Z)))
    return strips + max(P.dtype.itemsize * int(np.prod(P.shape)) if sp.issparse(P) else 0 for P in (X, Z))


def _entries_of(Z: Points) -> int:
    """Stored numbers of CSR or dense points."""
    return int(Z.nnz) if sp.issparse(Z) else int(np.prod(Z.shape))


def _all_as_none(index: Index, n: int) -> Any:
    """None in place of a slice over everything, which tiles take as leave to use symmetry."""
    if isinstance(index, slice) and index.start == 0 and index.stop == n and (index.step or 1) == 1:
        return None
    return index


def entries(kernel: Any, X: Points, Z: Points | None, dtype: Any) -> Entries:
    """Values of a kernel on checked points, by the fastest way the kernel allows."""
    profile = getattr(kernel, "profile", None)
    fused = profile is not None and profile.name in CODES and not isinstance(X, list)
    kind = FusedEntries if fused else CalledEntries
    return cast(Entries, kind(kernel, X, X if Z is None else Z, dtype))


class GivenEntries(Entries):
    """The place of a matrix that was given by its values or factors; there are no points to compute more from."""

    def __init__(self, kernel: Any, matrix: Any, shape: tuple[int, int], symmetric: bool, dtype: Any) -> None:
        super().__init__(kernel, matrix, matrix, dtype)
        self.shape = shape
        self._symmetric = symmetric

    @property
    def symmetric(self) -> bool:
        """Whether the matrix equals its transpose."""
        return self._symmetric

    def fill(self, rows: Index, columns: Index, out: NDArray[Any]) -> None:
        """Not reached: the operator that owns the matrix reads it itself."""
        raise InvalidInput("the matrix was given by its values; there are no points to compute others from")

    def multiply(self, rows: Index, columns: Index, V: NDArray[Any], out: NDArray[np.float64]) -> None:
        """Not reached: the operator that owns the matrix reads it itself."""
        raise InvalidInput("the matrix was given by its values; there are no points to compute others from")

    def task(self, budget: int, access: cost.Access = "products", nonzeros: int | None = None) -> cost.Task:
        """Sizes of the matrix."""
        n, m = self.shape
        size = self.dtype.itemsize
        return cost.Task(n, m, 1, size, budget, self.symmetric, fused=False, nonzeros=nonzeros, access=access)

    def diagonal(self) -> NDArray[Any]:
        """Diagonal of the given matrix."""
        return np.array(self.X.diagonal(), dtype=self.dtype)

    def with_kernel(self, kernel: Any) -> Entries:
        """Refused: a given matrix has one kernel."""
        raise InvalidInput("a precomputed matrix has no other kernel; build Gram(kernel, X) on the points")

    def subset(self, index: NDArray[np.intp]) -> Entries:
        """The part of the matrix between the points at `index`."""
        count = len(index)
        square = self.X.shape == self.shape
        part = (
            (self.X[index][:, index] if sp.issparse(self.X) else self.X[np.ix_(index, index)])
            if square
            else self.X[index]
        )
        return GivenEntries(self.kernel, part, (count, count), True, self.dtype)
