"""A preconditioner for the rectangle problem, made from a sample of its rows.

In whitened coordinates the normal matrix is H = Z'VZ - s s'/N + ridge I (see `rectangle`).  With p of the n rows,

    M = t (Zp'Vp Zp - sp sp'/Np) + ridge I,        t = n / p,        M = R R',

costs 2 p m^2 operations instead of 2 n m^2.  Rows drawn at random make M^-1 H close to the identity once p is a few
times the number of directions that the ridge leaves free; the squared error of conjugate gradients then falls about
as m / p with each pass.  With all rows, M = H to rounding and one solve is the answer.  (FALKON, of Rudi, Carratino and
Rosasco 2017, takes the landmarks themselves for a sample, p = m: cheaper to make, and slower to converge.)

`choose_sample` weighs the two costs: a larger sample against more passes.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import dense
from mercer.arrays import Array
from mercer.errors import NotPositiveDefinite
from mercer.gram import KernelColumns
from mercer.solvers.streamed.sweeps import Stopped
from mercer.solvers.streamed.whitening import Whitening

Blocks = Iterable[tuple[int, Any, Array, Array, int]]  # first row, X, Y (rows, k), v (rows,), checksum

PIECE_BYTES = 64 << 20
FLUSH_ROWS = 1 << 16
# One kernel value and its two products cost as much time as this many operations of a matrix product, besides 2 d.
VALUE_COST = 40
TARGET_COST = 8


@dataclass(frozen=True)
class SamplePlan:
    """How many rows the preconditioner is made of, and why."""

    rows: int
    method: str  # "direct": all rows; "sample"
    passes: float
    reason: str


def choose_sample(n: int, m: int, d: int, k: int, tol: float, most: int) -> SamplePlan:
    """Sample size p that makes 2 p m^2 + passes(p) n m (2 d + c) least; `most` bounds p by memory, short of n.

    passes(p) = 2 + log(10 / tol) / log(p / (2.6 m)), the rate seen on real data; 1 when p = n.
    """
    value = 2 * d + VALUE_COST + TARGET_COST * k
    direct = 2.0 * n * m * m + 2.0 * n * m * value
    best = SamplePlan(n, "direct", 1.0, "")
    cost = direct
    p = 4 * m
    while p < min(n, most):
        passes = 2.0 + math.log(max(10.0 / max(tol, 1e-16), 10.0)) / math.log(p / (2.6 * m))
        total = 2.0 * p * m * m + (passes * n + p) * m * value
        if total < cost:
            best, cost = SamplePlan(p, "sample", passes, ""), total
        p = int(1.25 * p)
    if best.method == "direct":
        reason = f"all {n} rows: 2 n m^2 = {2.0 * n * m * m:.2g} operations, no more than passes on a sample would cost"
    else:
        reason = (
            f"{best.rows} of {n} rows: {cost:.2g} operations with about {best.passes:.0f} passes, "
            f"{direct:.2g} with all rows"
        )
    return SamplePlan(best.rows, best.method, best.passes, reason)


@dataclass
class Accumulated:
    """Sums over rows: G (r, r) lower triangle of Z'VZ, Z'VY (r, k), s = Z'v (r,), N = sum v, v'Y (k,), rows seen."""

    G: Array
    ZY: Array
    s: Array
    N: float
    vY: Array
    rows: int = 0
    checksum: int = 0

    @classmethod
    def empty(cls, r: int, k: int) -> "Accumulated":
        """Nothing seen yet."""
        return cls(np.zeros((r, r), order="F"), np.zeros((r, k)), np.zeros(r), 0.0, np.zeros(k))


def accumulate(
    columns: KernelColumns,
    whitening: Whitening,
    blocks: Blocks,
    sums: Accumulated,
    between: Callable[[Accumulated], bool] | None = None,
) -> Accumulated:
    """Add the whitened rows of `blocks` to `sums`.

    Z' = L^-1 A' and Z'Z run in the precision of the columns; float32 sums are moved to float64 every FLUSH_ROWS rows.
    """
    r, dtype = whitening.rank, columns.dtype
    single = dtype == np.float32
    L = np.asfortranarray(whitening.L, dtype=dtype)
    partial = np.zeros((r, r), dtype, order="F") if single else sums.G
    step = max(64, min(8192, PIECE_BYTES // (dtype.itemsize * r)))
    buffer = np.empty((step, r), dtype)
    waiting = 0
    for at, X, Y, v, checksum in blocks:
        for first in range(0, X.shape[0], step):
            part = slice(first, min(X.shape[0], first + step))
            A = columns.fill(X[part], buffer)
            dense.solve_triangular_rows(L, A)
            Z = A.T  # (r, rows), in the buffer
            weights = v[part]
            sums.ZY += Z @ (weights[:, None] * Y[part]).astype(dtype)
            sums.s += Z @ weights.astype(dtype)
            if (weights != 1.0).any():
                Z *= np.sqrt(weights).astype(dtype)
            dense.add_outer(partial, Z)
            waiting += A.shape[0]
            if single and waiting >= FLUSH_ROWS:
                sums.G += partial
                partial[:] = 0
                waiting = 0
        sums.N += float(v.sum())
        sums.vY += v @ Y
        sums.rows, sums.checksum = at + X.shape[0], checksum
        if between is not None:
            if single and waiting:
                sums.G += partial
                partial[:] = 0
                waiting = 0
            if not between(sums):
                raise Stopped
    if single:
        sums.G += partial
    return sums


@dataclass(frozen=True, eq=False)
class Factor:
    """M = R R', R (r, r) in the lower triangle, and the solution `start` (r, k) of the sampled problem."""

    R: Array
    start: Array

    @classmethod
    def of(cls, sums: Accumulated, ridge: float, scale: float, bias_ridge: float | None, rounding: float) -> "Factor":
        """Factorise for a ridge; overwrites sums.G.  `scale` is t = n / p, `bias_ridge` None without a bias.

        `rounding` is the unit round-off of the sums; that share of the largest diagonal entry joins the ridge.
        """
        M = sums.G
        M *= scale
        beta = 0.0
        if bias_ridge is not None:
            beta = 1.0 / (scale * sums.N + bias_ridge)
            dense.add_outer(M, sums.s, -beta * scale**2)
        diagonal = np.diag_indices(len(M))
        M[diagonal] += ridge + rounding * float(M[diagonal].max())
        if not dense.factorise(M):
            raise NotPositiveDefinite(
                'the normal matrix is not positive definite to working precision: lower C, or use precision="float64"'
            )
        factor = cls(M, np.empty((len(M), 0)))
        return cls(M, factor.solve(scale * (sums.ZY - beta * scale * np.outer(sums.s, sums.vY))))

    def solve(self, V: Array) -> Array:
        """M^-1 V (r, k)."""
        return np.ascontiguousarray(dense.solve(self.R, V))
