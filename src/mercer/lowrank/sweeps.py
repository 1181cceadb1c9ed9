"""Passes over all rows: sums of A'R, where A = k(X, S) (n, m) exists only a few rows at a time.

With landmarks S (m, d), coefficients W (m, k), targets Y (n, k) and weights v (n,), one pass gives

    A' R   (m, q),       R_i = body(A_i W, Y_i, v_i)          any function of the row's values,
    A' diag(v) A W       (m, k)                               the product that conjugate gradients ask for.

A tile of about a hundred rows is made in the working precision (float32 by default), widened to float64 in a core's
cache and multiplied twice; all sums run in float64.  The matrix that is summed is therefore one definite matrix, the
kernel matrix with every value rounded, and the sums are exact for it to about 1e-15: what float32 costs is the
rounding of the values, 1e-6 or less, and not the accuracy of the solution for them.

Threads share the rows of a block, each with sums of its own that are added up in order at the end of the pass, so that
a pass does not depend on which thread was faster.  A pass can be stopped after any block and taken up there again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.compiled import loop
from mercer.gram.tiles import Tiles
from mercer.gram.transform import CODES, LINEAR, transform_row
from mercer.kernels import Kernel
from mercer.lowrank.blocks import Ledger

Array = NDArray[np.float64]
# (values F (rows, c) = A_rows W, targets (rows, k), weights (rows,)) -> R (rows, q), totals (t,)
Body = Callable[[Array, Array, Array], tuple[Array, Array]]

TILE_VALUES = 1 << 18


class Stopped(Exception):
    """A pass was told to stop after a block."""


@dataclass
class Progress:
    """Where a pass stands: rows done, their checksum, and each thread's sums (parts, m, q) and totals (parts, t)."""

    rows: int
    checksum: int
    sums: Array
    totals: Array


@loop
def _wide_tile(U: Any, a: Any, V: Any, b: Any, code: Any, parameters: Any, tile: Any, wide: Any) -> None:
    """wide[r] = k(U[r], V) in float64, made in `tile` in the working precision; U (rows, d), V (m, d)."""
    np.dot(U, V.T, tile)
    for r in range(U.shape[0]):
        if code != LINEAR:
            transform_row(code, parameters, tile[r], a[r], b)
        for j in range(V.shape[0]):
            wide[r, j] = tile[r, j]


@loop
def _add_residuals_of_one(
    U: Any, a: Any, V: Any, b: Any, w: Any, y: Any, v: Any, code: Any, parameters: Any, tile: Any, out: Any, totals: Any
) -> None:
    """Add A' diag(v) (y - A w) and A'v to the columns of out (m, 2), sums of v, ve and ve^2 to totals (3,).

    A = k(U, V), as many rows at a time as `tile` has; w (m,), y (rows,).
    """
    m = V.shape[0]
    rows = tile.shape[0]
    first_sum = np.zeros(m)
    second_sum = np.zeros(m)
    for first in range(0, U.shape[0], rows):
        last = min(U.shape[0], first + rows)
        np.dot(U[first:last], V.T, tile[: last - first])
        for r in range(last - first):
            row = tile[r]
            if code != LINEAR:
                transform_row(code, parameters, row, a[first + r], b)
            value = 0.0
            for j in range(m):
                value += np.float64(row[j]) * w[j]
            weight = v[first + r]
            error = y[first + r] - value
            for j in range(m):
                first_sum[j] += weight * error * np.float64(row[j])
                second_sum[j] += weight * np.float64(row[j])
            totals[0] += weight
            totals[1] += weight * error
            totals[2] += weight * error * error
    for j in range(m):
        out[j, 0] += first_sum[j]
        out[j, 1] += second_sum[j]


@loop
def _add_product_of_one(
    U: Any, a: Any, V: Any, b: Any, w: Any, v: Any, code: Any, parameters: Any, tile: Any, out: Any
) -> None:
    """Add A' diag(v) A w to out (m,); A = k(U, V), as many rows at a time as `tile` has."""
    m = V.shape[0]
    rows = tile.shape[0]
    for first in range(0, U.shape[0], rows):
        last = min(U.shape[0], first + rows)
        np.dot(U[first:last], V.T, tile[: last - first])
        for r in range(last - first):
            row = tile[r]
            if code != LINEAR:
                transform_row(code, parameters, row, a[first + r], b)
            value = 0.0
            for j in range(m):
                value += np.float64(row[j]) * w[j]
            value *= v[first + r]
            for j in range(m):
                out[j] += value * np.float64(row[j])


@loop
def _add_residuals(
    U: Any, a: Any, V: Any, b: Any, W: Any, Y: Any, v: Any, code: Any, parameters: Any, tile: Any, out: Any, totals: Any
) -> None:
    """Add A' diag(v) [Y - A W, 1] to out (m, k + 1), sums of v, of ve and of ve^2 to totals (1 + 2 k,).

    A = k(U, V), as many rows at a time as `tile` has; W (m, k), Y (rows, k).
    """
    m, k = W.shape
    rows = tile.shape[0]
    wide = np.empty((rows, m))
    values = np.empty((rows, k))
    errors = np.empty((rows, k + 1))
    part = np.empty((m, k + 1))
    for first in range(0, U.shape[0], rows):
        last = min(U.shape[0], first + rows)
        count = last - first
        _wide_tile(U[first:last], a[first:last], V, b, code, parameters, tile[:count], wide[:count])
        np.dot(wide[:count], W, values[:count])
        for r in range(count):
            weight = v[first + r]
            totals[0] += weight
            for c in range(k):
                error = Y[first + r, c] - values[r, c]
                errors[r, c] = weight * error
                totals[1 + c] += weight * error
                totals[1 + k + c] += weight * error * error
            errors[r, k] = weight
        np.dot(wide[:count].T, errors[:count], part)
        for j in range(m):
            for c in range(k + 1):
                out[j, c] += part[j, c]


@loop
def _add_products(
    U: Any, a: Any, V: Any, b: Any, W: Any, v: Any, code: Any, parameters: Any, tile: Any, out: Any
) -> None:
    """Add A' diag(v) A W to out (m, k); A = k(U, V), as many rows at a time as `tile` has."""
    m, k = W.shape
    rows = tile.shape[0]
    wide = np.empty((rows, m))
    values = np.empty((rows, k))
    part = np.empty((m, k))
    for first in range(0, U.shape[0], rows):
        last = min(U.shape[0], first + rows)
        count = last - first
        _wide_tile(U[first:last], a[first:last], V, b, code, parameters, tile[:count], wide[:count])
        np.dot(wide[:count], W, values[:count])
        for r in range(count):
            for c in range(k):
                values[r, c] *= v[first + r]
        np.dot(wide[:count].T, values[:count], part)
        for j in range(m):
            for c in range(k):
                out[j, c] += part[j, c]


class LandmarkColumns:
    """The functions k(., s_j) of the landmarks S (m, d), evaluated on blocks of rows in `dtype`."""

    def __init__(self, kernel: Kernel, points: Any, dtype: Any = np.float32) -> None:
        self.kernel, self.points, self.dtype = kernel, points, np.dtype(dtype)
        self.m, self.d = (int(size) for size in points.shape)
        profile = kernel.profile
        self.tiles: Tiles | None = None
        if profile is not None and profile.name in CODES:
            self.tiles = Tiles(profile, points, points, self.dtype)

    @property
    def fused(self) -> bool:
        """Whether values are made in compiled tiles of dense points."""
        return self.tiles is not None and not self.tiles.right.sparse

    def fill(self, X: Any, out: NDArray[Any]) -> NDArray[Any]:
        """k(X, S) (rows, m), written to the first rows of `out`."""
        if self.tiles is not None:
            return self.tiles.against(X).fill(None, None, out[: X.shape[0]])
        out[: X.shape[0]] = self.kernel(X, self.points)
        return out[: X.shape[0]]

    def add_products(self, X: Any, Y: Array, v: Array, W: Array, body: Body, sums: Array, totals: Array) -> None:
        """Add A'R (m, q) to `sums` and the totals of the body to `totals`, a tile of rows at a time."""
        tile = self._tile(1)
        wide = np.empty(tile.shape)
        prepared = self.tiles.against(X).left if self.tiles is not None and self.fused else None
        for first in range(0, X.shape[0], len(tile)):
            part = slice(first, min(X.shape[0], first + len(tile)))
            A = wide[: part.stop - first]
            if prepared is not None and self.tiles is not None:
                V, b, code, parameters = self._right()
                _wide_tile(prepared.U[part], prepared.a[part], V, b, code, parameters, tile[: len(A)], A)
            else:
                A[:] = self.fill(X[part], tile)
            R, more = body(A @ W, Y[part], v[part])
            sums += A.T @ R
            totals += more

    def add_normal(self, X: Any, Y: Array, v: Array, W: Array, sums: Array, totals: Array) -> None:
        """Add A' diag(v) A W (m, k) to `sums`."""
        if self.tiles is None or not self.fused:
            self.add_products(X, Y, v, W, lambda F, _, weights: (weights[:, None] * F, totals * 0.0), sums, totals)
            return
        left, (V, b, code, parameters) = self.tiles.against(X).left, self._right()
        if W.shape[1] == 1:
            w, out = W.reshape(-1), sums.reshape(-1)
            _add_product_of_one(left.U, left.a, V, b, w, v, code, parameters, self._tile(1), out)
        else:
            _add_products(left.U, left.a, V, b, W, v, code, parameters, self._tile(2), sums)

    def add_residuals(self, X: Any, Y: Array, v: Array, W: Array, sums: Array, totals: Array) -> None:
        """Add A' diag(v) [E, 1] (m, k + 1) to `sums` and sum v, v'E, v'E^2 (1 + 2 k,) to `totals`, E = Y - A W."""
        if self.tiles is None or not self.fused:
            self.add_products(X, Y, v, W, _residuals, sums, totals)
            return
        left, (V, b, code, parameters) = self.tiles.against(X).left, self._right()
        if W.shape[1] == 1:
            w, y = W.reshape(-1), np.ascontiguousarray(Y).reshape(-1)
            _add_residuals_of_one(left.U, left.a, V, b, w, y, v, code, parameters, self._tile(1), sums, totals)
        else:
            _add_residuals(left.U, left.a, V, b, W, Y, v, code, parameters, self._tile(2), sums, totals)

    def _right(self) -> tuple[NDArray[Any], NDArray[Any], int, Array]:
        """Prepared landmarks, their half norms, and the transform."""
        assert self.tiles is not None
        return self.tiles.right.U, self.tiles.right.a, self.tiles.code, self.tiles.parameters

    def _tile(self, copies: int) -> NDArray[Any]:
        """Room for some rows of A in a core's cache; `copies` of its size are held beside it in float64."""
        return np.empty((max(16, min(128, TILE_VALUES // copies // self.m)), self.m), self.dtype)


def _residuals(F: Array, Y: Array, v: Array) -> tuple[Array, Array]:
    """Body of a pass that sums weighted residuals."""
    E = Y - F
    VE = v[:, None] * E
    return np.hstack([VE, v[:, None]]), np.concatenate([[v.sum()], VE.sum(axis=0), np.sum(VE * E, axis=0)])


class Sweeps:
    """Passes over the rows of a ledger with given landmark columns and weights (n,) (None: all one).

    `between(progress)` is called after each block; when it answers False the pass raises Stopped.
    """

    def __init__(
        self,
        ledger: Ledger,
        columns: LandmarkColumns,
        weights: Array | None = None,
        between: Callable[[Progress], bool] | None = None,
    ) -> None:
        self.ledger, self.columns, self.weights, self.between = ledger, columns, weights, between
        self.passes = 0

    def normal(self, W: Array, resume: Progress | None = None) -> Array:
        """A' diag(v) A W (m, k)."""
        W = np.ascontiguousarray(W)
        add = self.columns.add_normal
        sums, _ = self._run(lambda X, Y, v, s, t: add(X, Y, v, W, s, t), W.shape[1], 0, resume)
        return sums

    def residuals(self, W: Array, resume: Progress | None = None) -> tuple[Array, Array]:
        """A' diag(v) [Y - A W, 1] (m, k + 1) and sum v, v'E, v'E^2 (1 + 2 k,) with E = Y - A W."""
        W = np.ascontiguousarray(W)
        k = W.shape[1]
        add = self.columns.add_residuals
        return self._run(lambda X, Y, v, s, t: add(X, Y, v, W, s, t), k + 1, 1 + 2 * k, resume)

    def products(
        self, W: Array, body: Body, width: int, totals: int, resume: Progress | None = None
    ) -> tuple[Array, Array]:
        """A'R (m, width) and the sums (totals,) of what the body counts."""
        W = np.ascontiguousarray(W)
        add = self.columns.add_products
        return self._run(lambda X, Y, v, s, t: add(X, Y, v, W, body, s, t), width, totals, resume)

    def weights_of(self, at: int, rows: int) -> Array:
        """Weights of the rows at..at + rows."""
        return np.ones(rows) if self.weights is None else self.weights[at : at + rows]

    def _run(self, add: Callable[..., None], width: int, totals: int, resume: Progress | None) -> tuple[Array, Array]:
        state = resume
        if state is None:
            parts = threads.count()
            state = Progress(0, 0, np.zeros((parts, self.columns.m, width)), np.zeros((parts, totals)))
        with threads.one_blas_thread():
            for at, X, Y, checksum in self.ledger.blocks(state.rows, state.checksum):
                v = self.weights_of(at, X.shape[0])
                pieces = threads.split(X.shape[0], parts=len(state.sums), step=16)
                threads.run(
                    add,
                    [
                        (X[a:b], Y[a:b], v[a:b], state.sums[p], state.totals[p])
                        for p, (a, b) in enumerate(pieces)
                    ],
                )  # fmt: skip
                state.rows, state.checksum = at + X.shape[0], checksum
                if self.between is not None and not self.between(state):
                    raise Stopped
        self.passes += 1
        return state.sums.sum(axis=0), state.totals.sum(axis=0)
