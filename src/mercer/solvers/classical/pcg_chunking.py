"""Chunking with projected conjugate gradients (Burges 1998; Platt 1999 compares SMO with it).

The program of a chunk is minimised over the variables strictly inside their bounds, and those that want to leave one,
by conjugate gradients in the space of moves that keep all sums: with P the projection that takes the mean of each group
off and is zero for fixed variables,

    H = K_VV + diag(ridge),     P H P p = -P g,

cut off where a variable reaches its bound, which then is fixed, and started again.  Before that a step along the
gradient, projected onto box and sums and of the best length up to there, takes many variables to their bounds at once.
It ends where no move is left and no fixed variable wants to leave its bound.
"""

from typing import Any, Unpack

import numpy as np

from mercer.arrays import Array, Index, Mask
from mercer.problems.program import onto_sum
from mercer.solvers.classical.chunking import SIZE, Chunks
from mercer.solvers.classical.dual import GROUP_SUMS, Limits, Stated, accepts, descend
from mercer.solvers.linear.conjugate_directions import ConjugateDirections, over_all
from mercer.solvers.quadratic.analytic_step import FLAT, SNAP
from mercer.solvers.solution import Solution

__all__ = ["ACCEPTS", "NAME", "SECTION", "accepts", "solve"]

NAME = "pcg_chunking"
ACCEPTS = GROUP_SUMS + "; the matrix of the support vectors must fit in memory"
SECTION = "Burges 1998; Rifkin 2002, section 2.3"
MOST_STARTS = 20  # of conjugate gradients for each variable of a chunk
INNER = 0.1  # a face is minimised until its gradient has fallen to this share: its variables are not yet the right ones


def solve(problem: Stated, *, size: int = SIZE, order: str = "worst", **limits: Unpack[Limits]) -> Solution:
    """Solve to a violation of at most `tol`, or to a relative gap of `gap_tol`; parameters as in `chunking`."""
    return descend(ProjectedChunks, problem, size=size, order=order, **limits)


class ProjectedChunks(Chunks):
    """Chunks minimised by conjugate gradients."""

    name = NAME

    def minimise(self, V: Index, K: Any, parts: Any, aim: float, most: int) -> tuple[int, Array]:
        """Projected conjugate gradients on the variables V."""
        face = Face(np.asarray(K, dtype=np.float64), parts, self.flat[V].copy(), self.gradient(V), self.groups)
        steps = 0
        for _ in range(MOST_STARTS * V.size):
            if steps >= most or not face.open(aim):
                break
            face.leap()
            steps += 1
            if steps < most:
                steps += face.descend(aim, most - steps)
        return steps, face.s


class Face:
    """Variables s (q,) of a chunk, their gradient g, and the face of the box that they move in."""

    def __init__(self, K: Array, parts: Any, s: Array, g: Array, groups: int) -> None:
        _, self.ridge, self.lower, self.upper, group = parts
        self.K, self.s, self.g = K, s, g
        self.members = [group == k for k in range(groups)] if groups else [np.ones(s.size, dtype=np.bool_)]
        self.sums = groups > 0
        self.flat = FLAT * float(np.abs(np.diagonal(K)).max(initial=0.0))
        finite = (self.upper - self.lower)[np.isfinite(self.upper - self.lower)]
        self.width = s.size * float(finite.max(initial=1.0))
        self.targets = [float(s[own].sum()) for own in self.members]
        self.free: Mask = np.zeros(s.size, dtype=np.bool_)

    def product(self, p: Array) -> Array:
        """H p."""
        return np.asarray(self.K @ p + self.ridge * p)

    def project(self, r: Array) -> Array:
        """P r: zero where variables are fixed, and no sum in any group."""
        out = np.where(self.free, r, 0.0)
        if self.sums:
            for own in self.members:
                inside = own & self.free
                if inside.any():
                    out[inside] -= out[inside].mean()
        return out

    def open(self, aim: float) -> bool:
        """Free the variables that are inside their bounds or want to leave them; whether any violates by `aim`."""
        rise, fall = self.s < self.upper, self.s > self.lower
        violated = False
        self.free = rise & fall
        for own in self.members:
            low = float(np.min(self.g[own & rise], initial=np.inf))
            high = float(np.max(self.g[own & fall], initial=-np.inf))
            gap = high - low if self.sums else max(high, -low)
            if gap <= aim:
                continue
            violated = True
            level = self._level(own, low, high)
            self.free |= own & rise & (self.g < level)
            self.free |= own & fall & (self.g > level)
        return violated

    def _level(self, own: Mask, low: float, high: float) -> float:
        """The present guess of a group's multiplier: midway between its thresholds."""
        return 0.5 * (low + high) if self.sums else 0.0

    def leap(self) -> None:
        """A step along the projected gradient, as long as it is best in the face, cut to the box as a whole."""
        r = self.project(-self.g)
        size, bend = float(r @ r), float(r @ self.product(r))
        if size == 0.0:
            return
        # A flat direction goes all the way to the box, which is bounded there.
        length = size / bend if bend > self.flat * size else self.width / float(np.abs(r).max())
        goal = np.where(self.free, self.s - length * self.g, self.s)
        for own, target in zip(self.members, self.targets):
            low, high = self.lower[own], self.upper[own]
            goal[own] = onto_sum(goal[own], low, high, target) if self.sums else np.clip(goal[own], low, high)
        way = goal - self.s
        bend, fall = float(way @ self.product(way)), -float(self.g @ way)
        if fall > 0.0:
            self._move(way if bend <= fall else (fall / bend) * way)

    def descend(self, aim: float, most: int) -> int:
        """Conjugate gradients in the face until a bound is met or the face is minimised; how many steps."""
        r = self.project(-self.g)
        while True:  # a variable on its bound that the projection would push out of the box is fixed
            out = self.free & (((self.s <= self.lower) & (r < 0)) | ((self.s >= self.upper) & (r > 0)))
            if not out.any():
                break
            self.free &= ~out
            r = self.project(-self.g)
        wanted = max(0.5 * aim, INNER * float(np.abs(r).max(initial=0.0)))
        X = np.zeros_like(self.s)
        directions = ConjugateDirections(lambda p: self.project(self.product(p)), r, X, self.project, over_all)
        for step in range(1, most + 1):
            before = X.copy()
            directions.step()
            reach = self._reach(before, X)
            if reach < 1.0 or directions.curvature <= 0.0:
                X[:] = before + reach * (X - before)
                self._move(X)
                return step
            if float(np.abs(directions.R).max(initial=0.0)) <= wanted:
                self._move(X)
                return step
        self._move(X)
        return most

    def _reach(self, before: Array, after: Array) -> float:
        """The share of the way from s + before to s + after that stays in the box."""
        way = after - before
        room = np.where(way > 0, self.upper - self.s - before, self.lower - self.s - before)
        shares = np.divide(room, way, out=np.full(way.size, np.inf), where=way != 0)
        return float(min(1.0, max(0.0, float(shares.min(initial=np.inf)))))

    def _move(self, X: Array) -> None:
        """Take the step X: variables that reach a bound are put on it."""
        close = SNAP * np.where(np.isfinite(self.upper - self.lower), self.upper - self.lower, 1.0)
        s = self.s + X
        s = np.where(s - self.lower <= close, self.lower, np.where(self.upper - s <= close, self.upper, s))
        change = s - self.s
        self.g = self.g + self.product(change)
        self.s = s
