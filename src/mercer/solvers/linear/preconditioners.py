"""Preconditioners for H = K + R: maps V -> M^-1 V with M near H and cheap to invert.

A preconditioner is any callable on (n, m) arrays that applies a fixed symmetric positive definite M^-1; `name` says
which one it is.  All are built from a `LinearSystem`, so that weights, penalised bias and left-out points agree with
the system they serve.

* `pivoted_cholesky`: M = F F' + R with F (n, p) the partial Cholesky factor of K that takes the largest remaining
  diagonal first.  Inverted through the p x p core, M^-1 = R^-1 - R^-1 F (I + F'R^-1 F)^-1 F'R^-1.
* `nystrom`: the same with F F' = K_nm K_mm^-1 K_mn for m random landmarks.
* `ssor`: M = (D/w + L) (D/w)^-1 (D/w + L'), H = L + D + L'; needs the matrix.
* `block_jacobi`: M = the diagonal blocks of H.

None is sure to pay (Hamers 2004, section 3.5.2): pivoted Cholesky never needed more steps than plain conjugate
gradients in our tests, SSOR does on badly conditioned matrices.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mercer import dense
from mercer.arrays import Array, Index
from mercer.errors import InvalidInput
from mercer.solvers.linear.system import LinearSystem


class Preconditioner(Protocol):
    """V (n, m) -> M^-1 V."""

    @property
    def name(self) -> str:
        """What M is, in a few words."""

    def __call__(self, V: Array) -> Array:
        """Apply M^-1 to the columns of V."""


class LowRankPlusDiagonal:
    """M = F F' + diag(ridge), F (n, p)."""

    def __init__(self, F: Array, ridge: Array, name: str) -> None:
        if not (ridge > 0).all():
            raise InvalidInput("a low-rank preconditioner needs a positive ridge: choose a finite C")
        self.name, self.F, self.ridge = name, F, ridge[:, None]
        self.core = dense.cholesky(np.eye(F.shape[1]) + F.T @ (F / self.ridge))

    @property
    def rank(self) -> int:
        """Columns of F."""
        return int(self.F.shape[1])

    def __call__(self, V: Array) -> Array:
        """M^-1 V by the Sherman-Morrison-Woodbury formula."""
        scaled = V / self.ridge
        return np.asarray(scaled - (self.F @ dense.solve(self.core, self.F.T @ scaled)) / self.ridge)


def partial_cholesky(system: LinearSystem, rank: int, tolerance: float = 0.0) -> tuple[Array, Index]:
    """F (n, p) and its pivots (p,), p <= rank: K ~ F F', stopping when the trace left is <= tolerance x trace K."""

    def row(i: int, out: Array) -> None:
        out[:] = system.kernel_rows(np.array([i], dtype=np.intp))[0]

    most = min(rank, system.n)
    factor = dense.PartialCholesky(system.diagonal() - system.ridge, row, most)
    trace = float(factor.left.sum())
    factor.grow_largest(most, tolerance * trace, 1e-14 * trace / system.n)
    return np.ascontiguousarray(factor.V.T), np.array(factor.chosen, dtype=np.intp)


def pivoted_cholesky(system: LinearSystem, rank: int = 100, tolerance: float = 0.0) -> LowRankPlusDiagonal:
    """Partial Cholesky of K by largest remaining diagonal, O(n rank^2) time and `rank` rows of K."""
    F, _ = partial_cholesky(system, rank, tolerance)
    return LowRankPlusDiagonal(F, system.ridge, f"pivoted Cholesky of rank {F.shape[1]}")


def nystrom(system: LinearSystem, landmarks: int = 100, seed: int = 0) -> LowRankPlusDiagonal:
    """Nystrom approximation on `landmarks` points drawn without replacement."""
    m = min(landmarks, system.n)
    chosen = np.sort(np.random.default_rng(seed).choice(system.n, m, replace=False)).astype(np.intp)
    rows = system.kernel_rows(chosen)
    values, vectors = dense.eigen(rows[:, chosen])
    keep = values > 1e-12 * values[-1]
    F = rows.T @ (vectors[:, keep] / np.sqrt(values[keep]))
    return LowRankPlusDiagonal(F, system.ridge, f"Nystrom on {m} landmarks")


@dataclass(frozen=True, eq=False)
class SSOR:
    """M = (D/w + L) (D/w)^-1 (D/w + L')."""

    factor: Array
    diagonal: Array
    name: str

    def __call__(self, V: Array) -> Array:
        """Two triangular solves."""
        forward = dense.solve_triangular(self.factor, V)
        return dense.solve_triangular(self.factor, self.diagonal * forward, transposed=True)


def ssor(system: LinearSystem, omega: float = 1.0) -> SSOR:
    """Symmetric successive over-relaxation, 0 < omega < 2."""
    if not 0 < omega < 2:
        raise InvalidInput(f"omega must lie between 0 and 2, got {omega}")
    H = system.matrix()
    diagonal = np.array(H.diagonal())[:, None] / omega
    H.flat[:: system.n + 1] = diagonal[:, 0]
    return SSOR(H, diagonal, f"SSOR with omega {omega}")


@dataclass(frozen=True, eq=False)
class BlockJacobi:
    """M = the diagonal blocks of H, each factored."""

    factors: list[tuple[int, int, Array]]
    name: str

    def __call__(self, V: Array) -> Array:
        """Solve with every block."""
        out = np.empty_like(V)
        for begin, end, factor in self.factors:
            out[begin:end] = dense.solve(factor, V[begin:end])
        return out


def block_jacobi(system: LinearSystem, size: int = 256) -> BlockJacobi:
    """Diagonal blocks of `size` consecutive points."""
    if size < 1:
        raise InvalidInput(f"size must be at least 1, got {size}")
    return BlockJacobi(factored_blocks(system, size), f"block Jacobi, blocks of {size}")


def factored_blocks(system: LinearSystem, size: int) -> list[tuple[int, int, Array]]:
    """(begin, end, Cholesky factor of H[begin:end, begin:end]) for consecutive blocks of `size` points."""
    factors = []
    for begin in range(0, system.n, size):
        index = np.arange(begin, min(begin + size, system.n), dtype=np.intp)
        factors.append((begin, begin + len(index), dense.cholesky(system.rows(index)[:, index])))
    return factors
