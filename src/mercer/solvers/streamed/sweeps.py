"""Passes over all rows: sums of A'R, where A = k(X, S) (n, m) exists only a few rows at a time.

With landmarks S (m, d), coefficients W (m, k), targets Y (n, k) and weights v (n,), one pass gives

    A' R   (m, q),       R_i = body(A_i W, Y_i, v_i)          any function of the row's values,
    A' diag(v) A W       (m, k)                               the product that conjugate gradients ask for.

A few rows of A are made at a time in the working precision (float32 by default), widened to float64 and multiplied
twice (`mercer.gram.KernelColumns`); all sums run in float64.  The matrix that is summed is therefore one definite
matrix, the kernel matrix with every value rounded, and the sums are exact for it to about 1e-15: what float32 costs is
the rounding of the values, 1e-6 or less, and not the accuracy of the solution for them.

Threads share the rows of a block, each with sums of its own that are added up in order at the end of the pass, so that
a pass does not depend on which thread was faster.  A pass can be stopped after any block and taken up there again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import threads
from mercer.arrays import Array
from mercer.gram import KernelColumns
from mercer.solvers.streamed.blocks import CheckedRows

# (values F (rows, c) = A_rows W, targets (rows, k), weights (rows,)) -> R (rows, q), totals (t,)
Body = Callable[[Array, Array, Array], tuple[Array, Array]]


class Stopped(Exception):
    """A pass was told to stop after a block."""


@dataclass
class Progress:
    """Where a pass stands: rows done, their checksum, and each thread's sums (parts, m, q) and totals (parts, t)."""

    rows: int
    checksum: int
    sums: Array
    totals: Array


class Sweeps:
    """Passes over the rows of a checked with given landmark columns and weights (n,) (None: all one).

    `between(progress)` is called after each block; when it answers False the pass raises Stopped.
    """

    def __init__(
        self,
        checked: CheckedRows,
        columns: KernelColumns,
        weights: Array | None = None,
        between: Callable[[Progress], bool] | None = None,
    ) -> None:
        self.checked, self.columns, self.weights, self.between = checked, columns, weights, between
        self.passes = 0
        columns.prepare()

    def normal(self, W: Array, resume: Progress | None = None) -> Array:
        """A' diag(v) A W (m, k)."""
        W = np.ascontiguousarray(W)
        add = self.columns.sweep_normal
        sums, _ = self._run(lambda X, Y, v, s, t: add(X, v, W, s), W.shape[1], 0, resume)
        return sums

    def residuals(self, W: Array, resume: Progress | None = None) -> tuple[Array, Array]:
        """A' diag(v) [Y - A W, 1] (m, k + 1) and sum v, v'E, v'E^2 (1 + 2 k,) with E = Y - A W."""
        W = np.ascontiguousarray(W)
        k = W.shape[1]
        add = self.columns.sweep_residuals
        return self._run(lambda X, Y, v, s, t: add(X, Y, v, W, s, t), k + 1, 1 + 2 * k, resume)

    def products(
        self, W: Array, body: Body, width: int, totals: int, resume: Progress | None = None
    ) -> tuple[Array, Array]:
        """A'R (m, width) and the sums (totals,) of what the body counts."""
        W = np.ascontiguousarray(W)

        def add(X: Any, Y: Array, v: Array, sums: Array, counted: Array) -> None:
            self.columns.sweep(X, W, lambda F, rows: body(F, Y[rows], v[rows]), sums, counted)

        return self._run(add, width, totals, resume)

    def weights_of(self, at: int, rows: int) -> Array:
        """Weights of the rows at..at + rows."""
        return np.ones(rows) if self.weights is None else self.weights[at : at + rows]

    def _run(self, add: Callable[..., None], width: int, totals: int, resume: Progress | None) -> tuple[Array, Array]:
        state = resume
        if state is None:
            parts = threads.count()
            state = Progress(0, 0, np.zeros((parts, self.columns.m, width)), np.zeros((parts, totals)))
        with threads.one_blas_thread():
            for at, X, Y, checksum in self.checked.blocks(state.rows, state.checksum):
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
