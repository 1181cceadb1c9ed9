"""Order from pairs: every point should have a higher value than the points of lower rank in its query.

    P = 1/2 ||f||^2 + C sum_{r_i > r_j, one query} w_i w_j l(1 - f(x_i) + f(x_j)),      l(z) = (z)_+ or (z)_+^2

(Herbrich, Graepel and Obermayer 2000, section 2.4, with all pairs, and without their equality constraint: a difference
has no bias, and with the constraint the answer would depend on how the pairs are written down).  The pairs are never
formed: values, slopes and products with the second derivative are sums of `mercer.problems.rank_sweeps`.  With

    A_i, S_i   the sums of w_j and w_j v_j over partners j of lower rank,    B_i, U_i   the same of higher rank,

the Laplacian of the pairs is (H v)_i = w_i ((A_i + B_i) v_i - S_i - U_i).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.arrays import Index, Vector
from mercer.errors import InvalidInput
from mercer.problems.latent import HingeName, LatentPoint, LatentProblem, Piece, checked_codes, checked_weights
from mercer.problems.program import GramLike
from mercer.problems.rank_sweeps import sweep


class _Order(NamedTuple):
    """The points in the order of (query, f), with what the sweeps read of them."""

    rows: Index
    f: Vector
    ranks: Index
    w: Vector


class _Sums(NamedTuple):
    """Slopes (n,) over C w; sums of z and z^2 over the quadratic piece; number of pairs above it and their sum of z."""

    slope: Vector
    total: float
    square: float
    number: float
    above: float


class RankedPairs(LatentProblem):
    """The problem for `ranks` (n,), higher is better, in `queries` (n,); without them all points are one query."""

    def __init__(
        self,
        gram: GramLike,
        ranks: ArrayLike,
        C: float = 1.0,
        weights: ArrayLike | None = None,
        loss: HingeName = "squared_hinge",
        queries: ArrayLike | None = None,
    ) -> None:
        super().__init__(gram)
        self.ranks, self.C, self.loss = checked_codes(ranks, self.n), C, loss
        self.w = checked_weights(C, weights, self.n)
        self.queries = np.zeros(self.n, dtype=np.intp) if queries is None else checked_codes(queries, self.n)
        self.widths = loss == "hinge"
        self.starts = np.concatenate(([0], np.cumsum(np.bincount(self.queries)))).astype(np.intp)
        self.within = ranks_within(self.ranks, self.queries)
        used = self.w > 0.0
        pairs = np.column_stack((self.queries, self.ranks))[used]
        if len(np.unique(pairs, axis=0)) == len(np.unique(pairs[:, 0])):
            raise InvalidInput(
                "no two points of one query have different ranks, so that there is nothing to order: give targets with "
                "at least two ranks, or larger groups"
            )

    def _ordered(self, f: Vector) -> _Order:
        index = np.lexsort((f, self.queries))
        return _Order(index, f[index], self.within[index], self.w[index])

    def _pairs(self, order: _Order, v: Vector, low: float, high: float) -> NDArray[np.float64]:
        """Sums A, S, B, U (4, n) over the pairs with low < z <= high, for v (n,) in the order of `order`."""
        out = np.empty((self.n, 4))
        sweep(order.f, order.ranks, order.w, v, self.starts, 1.0 - low, 1.0 - high, out)
        return out.T

    def _sums(self, order: _Order, piece: Piece) -> _Sums:
        """The sums of the losses; those of z^2 come from those of z, z_ij^2 = z_ij (1 - f_i) + z_ij f_j."""
        f, w = order.f, order.w
        A, S, B, U = self._pairs(order, f, 0.0, piece.width)
        upper, lower = A * (1.0 - f) + S, B * (1.0 + f) - U  # of z over the partners of lower and of higher rank
        total = float(w @ upper)
        square = max(float((w * (1.0 - f)) @ upper + (w * f) @ lower), 0.0)
        slope = piece.curvature * (lower - upper)
        if np.isinf(piece.width):
            return _Sums(slope, total, square, 0.0, 0.0)
        A, S, B, U = self._pairs(order, f, piece.width, np.inf)
        return _Sums(slope + (B - A), total, square, float(w @ A), float(w @ (A * (1.0 - f) + S)))

    def _smooth(self, sums: _Sums, piece: Piece) -> float:
        linear = sums.above - 0.5 * piece.width * sums.number if self.widths else 0.0
        return self.C * (0.5 * piece.curvature * sums.square + linear)

    def at(self, f: Vector, width: float) -> LatentPoint:
        """The losses at latent values f (n,)."""
        piece, order = Piece.of(self.loss, width), self._ordered(f)
        sums = self._sums(order, piece)
        smooth = self._smooth(sums, piece)
        slope = np.empty(self.n)
        slope[order.rows] = self.C * order.w * sums.slope

        def curvature(v: Vector) -> Vector:
            given, out = v[order.rows], np.empty(self.n)
            A, S, B, U = self._pairs(order, given, 0.0, piece.width)
            out[order.rows] = self.C * piece.curvature * order.w * ((A + B) * given - S - U)
            return out

        if not self.widths:
            return LatentPoint(smooth, smooth, slope, 0.0, curvature)
        remainder = self.C * max(sums.total - sums.square / width, 0.0)
        return LatentPoint(self.C * (sums.total + sums.above), smooth, slope, remainder, curvature)

    def tangent(self, f: Vector) -> tuple[float, Vector]:
        """The losses at f (n,) and a slope (n,) of them, for the hinge one of its own and not of a quadratic piece."""
        order = self._ordered(f)
        slope = np.empty(self.n)
        if not self.widths:
            piece = Piece.of(self.loss, np.inf)
            sums = self._sums(order, piece)
            slope[order.rows] = self.C * order.w * sums.slope
            return self._smooth(sums, piece), slope
        A, S, B, _ = self._pairs(order, order.f, 0.0, np.inf)
        slope[order.rows] = self.C * order.w * (B - A)
        return self.C * float(order.w @ (A * (1.0 - order.f) + S)), slope

    def value(self, f: Vector, width: float) -> float:
        """The smooth losses at f (n,)."""
        piece = Piece.of(self.loss, width)
        return self._smooth(self._sums(self._ordered(f), piece), piece)


def ranks_within(ranks: Index, queries: Index) -> Index:
    """Ranks (n,) counted from 0 without holes in every query."""
    order = np.lexsort((ranks, queries))
    r, q = ranks[order], queries[order]
    fresh = np.concatenate(([True], q[1:] != q[:-1]))
    step = np.concatenate(([False], (r[1:] != r[:-1]) & ~fresh[1:]))
    count = np.cumsum(step)
    begin = np.maximum.accumulate(np.where(fresh, np.arange(len(r)), 0))
    out = np.empty(len(r), dtype=np.intp)
    out[order] = count - count[begin]
    return out
