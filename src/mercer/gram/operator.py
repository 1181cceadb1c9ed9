"""The kernel matrix as an operator: K (n, m) with K_ij = k(x_i, z_j), whatever way its values are held.

Algorithms ask for products, rows, blocks or the diagonal and never how the matrix is stored.  Every kind of storage
is one subclass that says how it fills a block and how it multiplies; all else is here.
"""

from abc import abstractmethod
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import LinearOperator

from mercer import threads
from mercer.errors import InvalidInput
from mercer.gram import cost
from mercer.gram.engine import Engine
from mercer.gram.points import AnyIndex, Index, Points, check_index, length, pieces
from mercer.gram.rows import RowsOnDemand
from mercer.gram.tile_loops import write_transposed

# Columns of a few rows that are worth a thread of their own.
STRETCH = 512


class GramOperator(LinearOperator):  # type: ignore[misc]  # SciPy is untyped
    """K (n, m) as a SciPy linear operator with rows, blocks and a plan.

    Values have the operator's `dtype`; a product with a float64 vector comes back as float64, with the vector rounded
    to `dtype` and sums carried in float64 from tile to tile.  In float32 the relative error of a Gaussian value is
    below 4e-6 + 3e-7 (|x - c|^2 + |z - c|^2) / (2 sigma^2) with c the mean of the points: the error of the power, and
    the rounding of the squared distance.  A product has the largest of these errors, relative to the product of the
    absolute values.

    Attributes
    ----------
    kernel : the kernel.
    X, Z : the points of rows and columns as they were given, checked; `Z is X` where the operator is symmetric.
    symmetric : whether rows and columns are the same points.

    """

    storage = ""

    def __init__(self, engine: Engine, plan: cost.Plan) -> None:
        super().__init__(engine.dtype, engine.shape)
        self.engine = engine
        self._plan = plan

    @property
    def kernel(self) -> Any:
        """The kernel whose values these are."""
        return self.engine.kernel

    @property
    def X(self) -> Points:
        """Points of the rows, (n, d) or n objects."""
        return self.engine.X

    @property
    def Z(self) -> Points:
        """Points of the columns, (m, d) or m objects."""
        return self.engine.Z

    @property
    def symmetric(self) -> bool:
        """Whether rows and columns are the same points."""
        return self.engine.symmetric

    def plan(self) -> cost.Plan:
        """How the matrix is held, what it costs and why; print it."""
        return self._plan

    # What neighbours may know of the way values are held --------------------------------------------------------

    def held_values(self) -> Any:
        """The matrix (n, m) where all its values are held: an array that must not be written, or CSR; else None."""
        return None

    def factor(self) -> Any:
        """G (n, r), dense or CSR, where the symmetric matrix is held as K = G G'; else None."""
        return None

    def forget(self) -> None:
        """Give back the memory of values that are kept only to be found again."""

    def rows_on_demand(self) -> RowsOnDemand | None:
        """The points for compiled loops that compute rows as they need them; None where that cannot be."""
        return None if self.held_values() is not None else self.engine.rows_on_demand()

    def worth_keeping(self) -> bool:
        """Whether rows in use are better kept than computed again; never where all values are held."""
        if self.held_values() is not None or self.factor() is not None:
            return False
        return cost.worth_keeping(self.engine.task(self._plan.budget))

    # What a kind of storage provides ------------------------------------------------------------------------------

    @abstractmethod
    def _fill(self, rows: Index, columns: Index, out: NDArray[Any]) -> None:
        """Write K[rows][:, columns] to `out`."""

    @abstractmethod
    def _multiply(self, rows: Index, columns: Index, V: NDArray[Any], out: NDArray[Any]) -> None:
        """Add K[rows][:, columns] V to `out` (len(rows), k); V (len(columns), k) has the operator's dtype."""

    def _multiply_transposed(self, V: NDArray[Any], out: NDArray[Any]) -> None:
        """Add K' V to `out` (m, k), by blocks of rows; V (n, k) has the operator's dtype."""
        step = max(1, cost.COPIED_VALUES // self.shape[1])
        tile = np.empty((min(step, self.shape[0]), self.shape[1]), dtype=self.dtype)
        for rows in pieces(slice(0, self.shape[0]), step):
            part = tile[: length(rows)]
            self._fill(rows, slice(0, self.shape[1]), part)
            out += part.T @ V[rows]

    def diagonal(self) -> NDArray[Any]:
        """k(x_i, x_i), shape (n,); the operator must be symmetric."""
        if not self.symmetric:
            raise InvalidInput("diagonal() needs an operator on one set of points; build it without Z")
        return self._diagonal.copy()

    @cached_property
    def _diagonal(self) -> NDArray[Any]:
        """Computed once: a fit asks for it half a dozen times."""
        return self.engine.diagonal()

    def with_kernel(self, kernel: Any) -> "GramOperator":
        """The matrix of another kernel on the same points, held the same way under the same budget."""
        return self._rebuilt(self.engine.with_kernel(kernel))

    def subset(self, index: AnyIndex, share: int = 1) -> "GramOperator":
        """The symmetric operator on the points at `index` alone, held the same way under the same budget.

        One of `share` operators that are held at a time has that part of the budget for the rows it computes.
        """
        return self._rebuilt(self.engine.subset(self._subset_index(index)), share)

    def _rebuilt(self, engine: Engine, share: int = 1) -> Self:
        """The same kind of storage on another engine, under the same budget or one of so many equal shares of it."""
        task = engine.task(self._plan.budget // share)
        return type(self)(engine, cost.plan(self.storage, task).because("asked for by storage"))

    def _subset_index(self, index: AnyIndex) -> NDArray[np.intp]:
        """A checked index of a symmetric operator, as an array."""
        if not self.symmetric:
            raise InvalidInput("subset() needs an operator on one set of points; build it without Z")
        chosen = check_index(index, self.shape[0], "index")
        array = np.arange(self.shape[0], dtype=np.intp)[chosen] if isinstance(chosen, slice) else chosen
        if not len(array):
            raise InvalidInput("subset() of no points is empty; give at least one index")
        return array

    # What all share -----------------------------------------------------------------------------------------------

    def block(self, rows: AnyIndex, columns: AnyIndex, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """K[rows][:, columns]; an index is a slice, a mask, integers, or None for all.

        The values are written to `out` where it is given: an array of the shape of the block.
        """
        chosen_rows = check_index(rows, self.shape[0], "rows")
        # The same index on both sides is kept as one object: a square block of a symmetric matrix costs half.
        chosen_columns = (
            chosen_rows if columns is rows and self.symmetric else check_index(columns, self.shape[1], "columns")
        )
        shape = (length(chosen_rows), length(chosen_columns))
        out = np.empty(shape, dtype=self.dtype) if out is None else out
        if out.shape != shape:
            raise InvalidInput(f"out has shape {out.shape}, the block has {shape}")
        if out.size:
            self._fill(chosen_rows, chosen_columns, out)
        return out

    def stretch_of_rows(self, index: NDArray[np.intp], stretch: slice, out: NDArray[Any]) -> None:
        """Write K[index][:, stretch] of a symmetric operator to `out`: few rows, cut to a long stretch of columns.

        All threads share the stretch.  Few sparse points are laid out in little time as columns, so that their rows are
        computed across; dense ones are multiplied as they are.
        """
        parts = threads.split(length(stretch), step=STRETCH)
        if self.engine.compressed:
            across = self.block(stretch, index)
            threads.run(write_transposed, [(across[a:b], out[:, a:b]) for a, b in parts])
            return

        def fill(a: int, b: int) -> None:
            out[:, a:b] = self.block(index, slice(stretch.start + a, stretch.start + b))

        threads.run(fill, parts)

    def rows(self, index: AnyIndex) -> NDArray[Any]:
        """K[index], shape (len(index), m)."""
        return self.block(index, None)

    def dense(self) -> NDArray[Any]:
        """The whole matrix (n, m), which must be affordable to the caller."""
        return self.block(None, None)

    def dot(self, x: Any) -> Any:
        """K V for V of shape (m,) or (m, k); scalars and linear operators are composed as SciPy does."""
        if isinstance(x, LinearOperator) or np.isscalar(x):
            return super().dot(x)
        return self._product(x, None, None)

    def columns_dot(self, index: AnyIndex, V: ArrayLike, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """K[:, index] V without storing the columns; V is (len(index),) or (len(index), k).

        The product is written to `out` where it is given: an array of the shape of the result.
        """
        return self._product(V, check_index(index, self.shape[1], "index"), out)

    def exact_dot(self, rows: AnyIndex, columns: AnyIndex, V: ArrayLike) -> NDArray[np.float64]:
        """K[rows][:, columns] V with every value computed anew in float64, whatever the precision of the operator.

        V is (len(columns),) or (len(columns), k).  This is what certificates are checked with; nothing is kept.
        """
        some_rows = check_index(rows, self.shape[0], "rows")
        some_columns = check_index(columns, self.shape[1], "columns")
        vectors = np.ascontiguousarray(V, dtype=np.float64)
        out = np.zeros((length(some_rows), *vectors.shape[1:]))
        if out.size and vectors.size:
            flat = vectors.reshape(len(vectors), -1)
            self._multiply_exactly(some_rows, some_columns, flat, out.reshape(len(out), -1))
        return out

    def _multiply_exactly(self, rows: Index, columns: Index, V: NDArray[Any], out: NDArray[Any]) -> None:
        """Add K[rows][:, columns] V to `out`, in float64 from the points on."""
        self.engine.multiply_exactly(rows, columns, V, out)

    def _product(self, V: Any, columns: Index | None, out: NDArray[Any] | None) -> NDArray[Any]:
        """K[:, columns] V with shapes checked, in the wider of the two precisions."""
        chosen = slice(0, self.shape[1]) if columns is None else columns
        vectors = np.asarray(V)
        if vectors.ndim not in (1, 2) or len(vectors) != length(chosen):
            raise InvalidInput(
                f"V of shape {vectors.shape} does not fit {length(chosen)} columns; give ({length(chosen)},) or "
                f"({length(chosen)}, k)"
            )
        if np.iscomplexobj(vectors):
            return np.asarray(
                self._product(vectors.real, columns, None) + 1j * self._product(vectors.imag, columns, None)
            )
        shape = (self.shape[0], *vectors.shape[1:])
        if out is not None and out.shape != shape:
            raise InvalidInput(f"out has shape {out.shape}, the product has {shape}")
        direct = out is not None and out.dtype == np.float64 and out.flags.c_contiguous
        sums = out if out is not None and direct else np.empty(shape)
        sums[...] = 0
        narrow = np.ascontiguousarray(vectors, dtype=self.dtype).reshape(len(vectors), -1)
        if narrow.size:
            self._multiply(slice(0, self.shape[0]), chosen, narrow, sums.reshape(self.shape[0], -1))
        if out is None:
            return sums.astype(np.result_type(self.dtype, vectors.dtype), copy=False)
        if not direct:
            out[...] = sums
        return out

    # SciPy's protocol ---------------------------------------------------------------------------------------------

    def _matvec(self, x: NDArray[Any]) -> NDArray[Any]:
        return self._product(np.asarray(x).reshape(-1), None, None)

    def _matmat(self, X: NDArray[Any]) -> NDArray[Any]:
        return self._product(X, None, None)

    def _rmatvec(self, x: NDArray[Any]) -> NDArray[Any]:
        return self._rmatmat(np.asarray(x).reshape(-1, 1))[:, 0]

    def _rmatmat(self, X: NDArray[Any]) -> NDArray[Any]:
        if self.symmetric:
            return self._product(X, None, None)
        vectors = np.asarray(X)
        if np.iscomplexobj(vectors):
            return np.asarray(self._rmatmat(vectors.real) + 1j * self._rmatmat(vectors.imag))
        out = np.zeros((self.shape[1], vectors.shape[1]))
        self._multiply_transposed(np.ascontiguousarray(vectors, dtype=self.dtype), out)
        return out.astype(np.result_type(self.dtype, vectors.dtype), copy=False)

    def _adjoint(self) -> Any:
        return self if self.symmetric else super()._adjoint()

    def _transpose(self) -> Any:
        return self if self.symmetric else super()._transpose()

    def __repr__(self) -> str:
        n, m = self.shape
        return f"<{self.storage} Gram {n} x {m} of {self.kernel!r}, {np.dtype(self.dtype).name}>"
