"""The engine: what computes kernel values, behind every kind of kernel matrix.

An operator decides what is kept and for how long; the values come from an engine, which prepares its points once and
then gives

    fill        K[rows][:, columns] itself
    multiply    K[rows][:, columns] V in the working precision; `multiply_exactly` in float64 from the points on
    sweep       K'R with R a function of K W, the rows seen a few at a time and forgotten
    diagonal    k(x_i, x_i)

`against` keeps the prepared columns and takes other rows: that is how landmarks and support vectors meet new points.
The engines of the processor are in `mercer.gram.cpu_engine`.  One for another device is one more class with these
methods: operators hand it indices and small vectors, and never touch the points it has prepared.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.gram import cost
from mercer.gram.points import Index, Points, features, size
from mercer.gram.rows import RowsOnDemand

Array = NDArray[np.float64]
# (values F = K[rows] W (b, c), the rows) -> R (b, q) and totals (t,) of these rows
Body = Callable[[Array, slice], tuple[Array, Array]]


class Engine(ABC):
    """Values k(x_i, z_j) of type `dtype` for the points X of the rows and Z of the columns.

    `Z is X` where rows and columns are the same points.  `fused` engines work in tiles that stay in cache.
    """

    fused = False

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

    @property
    def compressed(self) -> bool:
        """Whether the points are multiplied in sparse form."""
        return False

    def prepare(self) -> None:  # noqa: B027 - not every kind has something to prepare
        """Prepare the points now; otherwise that happens when values are first asked for."""

    # Values ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def fill(self, rows: Index, columns: Index, out: NDArray[Any]) -> None:
        """Write K[rows][:, columns] to `out` (len(rows), len(columns))."""

    @abstractmethod
    def multiply(self, rows: Index, columns: Index, V: NDArray[Any], out: Array) -> None:
        """Add K[rows][:, columns] V to `out` (len(rows), k) in float64."""

    @abstractmethod
    def multiply_exactly(self, rows: Index, columns: Index, V: NDArray[Any], out: Array) -> None:
        """The same with every value computed in float64, whatever `dtype` is."""

    def multiply_whole(self, V: NDArray[Any], out: Array, spare: int) -> None:
        """Add K V to `out` (n, k) for the whole matrix; `spare` bytes may be taken for sums beside the tiles."""
        del spare
        self.multiply(slice(0, self.shape[0]), slice(0, self.shape[1]), V, out)

    @abstractmethod
    def diagonal(self) -> NDArray[Any]:
        """k(x_i, x_i), shape (n,)."""

    # Sweeps over the rows, all sums in float64 ---------------------------------------------------------------------

    @abstractmethod
    def sweep(self, W: Array, body: Body, sums: Array, totals: Array) -> None:
        """Add K'R to `sums` (m, q) and the totals of the body to `totals` (t,); R = body(K[rows] W, rows)."""

    def sweep_normal(self, v: Array, W: Array, sums: Array) -> None:
        """Add K' diag(v) K W (m, k) to `sums`."""
        self.sweep(W, lambda F, rows: (v[rows, None] * F, np.zeros(0)), sums, np.zeros(0))

    def sweep_residuals(self, Y: Array, v: Array, W: Array, sums: Array, totals: Array) -> None:
        """Add K' diag(v) [E, 1] (m, k + 1) to `sums` and sum v, v'E, v'E^2 (1 + 2 k,) to `totals`, E = Y - K W."""

        def residuals(F: Array, rows: slice) -> tuple[Array, Array]:
            E, weights = Y[rows] - F, v[rows, None]
            VE = weights * E
            counted = np.concatenate([[weights.sum()], VE.sum(axis=0), np.sum(VE * E, axis=0)])
            return np.hstack([VE, weights]), counted

        self.sweep(W, residuals, sums, totals)

    # Other engines on the same points ------------------------------------------------------------------------------

    @abstractmethod
    def against(self, X: Points) -> "Engine":
        """The same columns, as they are prepared, with the rows of other points X."""

    @abstractmethod
    def with_kernel(self, kernel: Any) -> "Engine":
        """Values of another kernel on the same points."""

    @abstractmethod
    def subset(self, index: NDArray[np.intp]) -> "Engine":
        """Values among the points at `index`."""

    @abstractmethod
    def in_double(self) -> "Engine | None":
        """The same values computed in float64; None where they were given and have no more digits."""

    def rows_on_demand(self) -> RowsOnDemand | None:
        """The points for compiled loops that compute rows as they need them, where values come about in that way."""
        return None

    # Memory --------------------------------------------------------------------------------------------------------

    def task(self, budget: int, access: cost.Access = "products", nonzeros: int | None = None) -> cost.MatrixTask:
        """The sizes the cost model needs; those of values that come by calls of the kernel, unless overridden."""
        n, m = self.shape
        return cost.MatrixTask(
            n, m, features(self.X), self.dtype.itemsize, budget, self.symmetric, False, nonzeros=nonzeros, access=access
        )

    def limit(self, plan: cost.Plan) -> None:  # noqa: B027 - not every kind has something to limit
        """Keep the working memory within a plan."""

    def release(self) -> None:  # noqa: B027 - not every kind has something to forget
        """Forget prepared points; they are made again when values are asked for."""
