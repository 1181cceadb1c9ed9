"""Support vector ordinal regression: parallel boundaries b_1 <= ... <= b_{q-1} on one latent function.

    P = 1/2 ||f||^2 + C sum_j sum_{i in I_j} w_i l(1 - s_ij (f(x_i) - b_j)),      s_ij = +1 for r_i > j, else -1,

with l the hinge or its square (Chu and Keerthi 2007).  *Implicit* thresholds let every point speak at every boundary,
and the best b are in order by themselves; *explicit* ones hear the two neighbouring ranks only, I_j = {r_i = j, j + 1},
and are kept in order by a constraint.

Given f, the best thresholds are q - 1 problems in one variable, whose slope is a piecewise linear increasing function:
its zero is found between two of its corners.  The order of explicit thresholds is that of isotonic regression with
convex losses: neighbours in the wrong order are pooled, and share one value (Best, Chakravarti and Ubhaya 2000).  The
second derivative of the least over b is, with k_i the curvature of point i at a threshold,

    diag(sum of k) - sum over thresholds of  k k' / (1'k).
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from mercer.arrays import Index, Vector
from mercer.compiled import loop
from mercer.problems.latent import (
    HingeName,
    LatentPoint,
    LatentProblem,
    Piece,
    checked_codes,
    checked_weights,
    refuse_missing_ranks,
)
from mercer.problems.program import GramLike

Constraints = Literal["explicit", "implicit"]

BALANCED = 1e-12  # slopes of thresholds that are this share of their weights are zero


@loop
def _slope(values: Any, signs: Any, weights: Any, width: float, b: float) -> Any:
    """sum_t w_t s_t min(max(1 - s_t (v_t - b), 0), width), which increases with b."""
    total = 0.0
    for t in range(values.shape[0]):
        total += weights[t] * signs[t] * min(max(1.0 - signs[t] * (values[t] - b), 0.0), width)
    return total


@loop
def _zero_of_slope(values: Any, signs: Any, weights: Any, width: float, corners: Any, allowed: float) -> Any:
    """The b at which the slope is zero, found between two of its `corners`, which come in order.

    Where it is `allowed` at most between several of them, the middle is taken.
    """
    m = corners.shape[0]
    low, high = 0, m  # the corners before low have slopes below -allowed, those from high on do not
    while low < high:
        middle = (low + high) // 2
        if _slope(values, signs, weights, width, corners[middle]) < -allowed:
            low = middle + 1
        else:
            high = middle
    first, high = low, m
    while low < high:
        middle = (low + high) // 2
        if _slope(values, signs, weights, width, corners[middle]) <= allowed:
            low = middle + 1
        else:
            high = middle
    if first < low:
        return 0.5 * (corners[first] + corners[low - 1])
    a, b = corners[max(first - 1, 0)], corners[min(first, m - 1)]
    below, above = _slope(values, signs, weights, width, a), _slope(values, signs, weights, width, b)
    return a if above == below else a - below * (b - a) / (above - below)


class RankThresholds(LatentProblem):
    """The problem for `ranks` (n,) from 0 to q - 1, every one of which occurs."""

    def __init__(
        self,
        gram: GramLike,
        ranks: ArrayLike,
        C: float = 1.0,
        weights: ArrayLike | None = None,
        loss: HingeName = "hinge",
        thresholds: Constraints = "implicit",
    ) -> None:
        super().__init__(gram)
        self.ranks, self.C, self.loss = checked_codes(ranks, self.n), C, loss
        self.w = C * checked_weights(C, weights, self.n)
        self.widths = loss == "hinge"
        counts = np.bincount(self.ranks, weights=self.w)
        self.q = len(counts)
        refuse_missing_ranks(counts)
        self.ordered = thresholds == "explicit"
        levels = np.arange(self.q - 1)
        near = (self.ranks[:, None] == levels) | (self.ranks[:, None] == levels + 1)
        self.members: list[Index] = [
            np.flatnonzero(near[:, j]) if self.ordered else np.arange(self.n) for j in range(self.q - 1)
        ]
        self.signs: list[Vector] = [np.where(self.ranks[own] > j, 1.0, -1.0) for j, own in enumerate(self.members)]

    def _blocks(self, f: Vector, piece: Piece) -> list[tuple[int, int, float]]:
        """Thresholds first..last - 1 with their common value; neighbours in the wrong order are pooled."""
        blocks: list[tuple[int, int, float]] = []
        for j in range(self.q - 1):
            first, value = j, self._best(f, j, j + 1, piece)
            while self.ordered and blocks and blocks[-1][2] > value:
                first = blocks.pop()[0]
                value = self._best(f, first, j + 1, piece)
            blocks.append((first, j + 1, value))
        return blocks

    def _terms(self, first: int, last: int) -> tuple[Index, Vector]:
        """Points (p,) of thresholds first..last - 1, one entry for each, and their signs s."""
        if last == first + 1:
            return self.members[first], self.signs[first]
        return np.concatenate(self.members[first:last]), np.concatenate(self.signs[first:last])

    def _best(self, f: Vector, first: int, last: int, piece: Piece) -> float:
        """The common value of some thresholds that minimises their losses; the middle of those where there are many."""
        points, s = self._terms(first, last)
        w, values = self.w[points], f[points]
        corners = [values - s] if np.isinf(piece.width) else [values - s, values - s * (1.0 - piece.width)]
        # The slope of the piece without its factor has the same zero.
        allowed = BALANCED * float(w.sum()) / piece.curvature
        return float(_zero_of_slope(values, s, w, piece.width, np.sort(np.concatenate(corners)), allowed))

    def at(self, f: Vector, width: float) -> LatentPoint:
        """The losses at latent values f (n,), at their best thresholds."""
        piece = Piece.of(self.loss, width)
        loss = smooth = remainder = 0.0
        slope, bent = np.zeros(self.n), np.zeros(self.n)
        thresholds, parts = np.empty(self.q - 1), []
        for first, last, b in self._blocks(f, piece):
            thresholds[first:last] = b
            points, s = self._terms(first, last)
            z, w = 1.0 - s * (f[points] - b), self.w[points]
            smooth += float(w @ piece.value(z))
            loss += float(w @ np.maximum(z, 0.0)) if self.widths else 0.0
            remainder += float(w @ piece.remainder(z))
            slope -= np.bincount(points, weights=w * s * piece.slope(z), minlength=self.n)
            k = np.bincount(points, weights=w * piece.bent(z), minlength=self.n)
            bent += k
            if k.any():
                parts.append(k)
        K = np.array(parts).reshape(-1, self.n)
        sums = K.sum(axis=1)

        def curvature(v: Vector) -> Vector:
            return np.asarray(bent * v - ((K @ v) / sums) @ K)

        return LatentPoint(loss if self.widths else smooth, smooth, slope, remainder, curvature, thresholds)

    def value(self, f: Vector, width: float) -> float:
        """The smooth losses at f (n,), at their best thresholds."""
        piece, total = Piece.of(self.loss, width), 0.0
        for first, last, b in self._blocks(f, piece):
            points, s = self._terms(first, last)
            total += float(self.w[points] @ piece.value(1.0 - s * (f[points] - b)))
        return total
