"""Landmarks made orthonormal: B = k(S, S) = L L', so that Z = A L^-T has Z Z' = A B^-1 A'.

In the coordinates w = L'a the norm of f = sum_j a_j k(., s_j) is |w|, the Gram matrix of the landmarks is the identity,
and neither its conditioning nor dependent landmarks trouble anything further up (Hamers 2004, sections 5.3 and 5.5).

L is found a few hundred landmarks at a time, left to right, with pivoting inside each group.  A landmark whose function
lies within `tol` of the span of those already kept (squared distance, relative to the largest k(s, s)) is left out, so
that duplicates and near-duplicates drop out.  B is never stored: only L is, in m^2 numbers.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import dense
from mercer.arrays import Array, Index
from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.gram import check_points, take
from mercer.kernels import Kernel

GROUP = 512


@dataclass(frozen=True, eq=False)
class Whitening:
    """The kept landmarks (r,) in the order of L, their points (r, d), and L (r, r) lower triangular, Fortran order."""

    kept: Index
    points: Any
    L: Array

    @property
    def rank(self) -> int:
        """Number of landmarks kept."""
        return len(self.kept)

    def forward(self, V: Array) -> Array:
        """L^-1 V for V (r, k): sums A'R become Z'R."""
        return np.ascontiguousarray(dense.solve_triangular(self.L, V))

    def backward(self, W: Array) -> Array:
        """L^-T W for W (r, k): coefficients of the landmarks' functions."""
        return np.ascontiguousarray(dense.solve_triangular(self.L, W, transposed=True))

    def coordinates(self, a: Array) -> Array:
        """L' a for a (r, k), the inverse of `backward`."""
        return np.asarray(self.L.T @ a)


def whiten(kernel: Kernel, points: Any, tol: float) -> Whitening:
    """Factorise k(S, S) for landmarks S (m, d); `tol` is relative to the largest k(s, s)."""
    m = int(points.shape[0])
    if m == 0:
        raise InvalidInput("there are no landmarks")
    diagonal = np.asarray(kernel.diagonal(points), dtype=np.float64)
    largest = float(diagonal.max())
    if not largest > 0:
        raise InvalidInput("k(s, s) is zero at every landmark: no function is left to fit")
    L = np.zeros((m, m), order="F")
    kept = np.empty(0, dtype=np.intp)
    for start in range(0, m, GROUP):
        kept = _extend(kernel, points, np.arange(start, min(m, start + GROUP)), kept, L, tol * largest)
    r = len(kept)
    return Whitening(kept, take(points, kept), L if r == m else np.asfortranarray(L[:r, :r]))


def _extend(kernel: Kernel, points: Any, group: Index, kept: Index, L: Array, tol: float) -> Index:
    """Append the independent landmarks of a group to L; the new list of kept ones."""
    r = len(kept)
    new = take(points, group)
    S = np.array(kernel(new, new), dtype=np.float64)
    rows = np.empty((0, len(group)))
    if r:
        rows = dense.solve_triangular(np.asfortranarray(L[:r, :r]), kernel(take(points, kept), new))
        S -= rows.T @ rows
    if float(S.diagonal().min()) < -1e3 * max(tol, np.finfo(float).eps * float(np.abs(S).max())):
        raise NotPositiveDefinite(
            "k(S, S) has a negative eigenvalue: low-rank machines need a positive definite kernel"
        )
    if float(S.diagonal().max()) <= tol:
        return kept
    factor, chosen = dense.pivoted_cholesky(S, tol)
    end = r + len(chosen)
    L[r:end, :r] = rows[:, chosen].T
    L[r:end, r:end] = factor
    return np.concatenate([kept, group[chosen]]).astype(np.intp)


def as_points(landmarks: Any) -> Any:
    """The points (m, d), float64, of landmarks given as an array, a CSR matrix or an object with `points`."""
    points = check_points(getattr(landmarks, "points", landmarks), "landmarks")
    return points.astype(np.float64, copy=False)
