"""Folds of cross-validation, and the order of the points that makes each of them one stretch.

With the points ordered by fold, "all folds but one" is at most two contiguous stretches of the kernel matrix, so that
the machines of all folds are trained on one matrix without a copy.  Inside a fold points are ordered by class and, in
a class, at random.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput

Index = NDArray[np.intp]


def assign(
    n: int, folds: Any, codes: Index | None, seed: int | np.random.Generator, groups: Index | None = None
) -> Index:
    """Fold 0..f-1 of each of n points.

    `folds` is their number, or already the fold of each point.  With classes `codes` (n,) every class is dealt out
    evenly over the folds, starting where the class before it ended; a class with fewer points than folds is absent
    from some of them.  There are at most n folds.  With `groups` (n,) no group is parted: they are dealt out in its
    place, large ones first, each to the fold with the fewest points.
    """
    if np.ndim(folds) == 1:
        given = np.asarray(folds)
        if given.shape != (n,):
            raise InvalidInput(f"folds must be a number or name the fold of each of the {n} points; got {given.shape}")
        names, fold = np.unique(given, return_inverse=True)
        if len(names) < 2:
            raise InvalidInput("folds must name at least two folds")
        if groups is not None and len(np.unique(np.column_stack((groups, fold)), axis=0)) > len(np.unique(groups)):
            raise InvalidInput("folds part a group: give all points of a group, a query, the same fold")
        return fold.astype(np.intp)
    if int(folds) < 2:
        raise InvalidInput(f"folds must be at least 2, got {folds}")
    if n < 2:
        raise InvalidInput(f"cross-validation needs at least two points; got n_samples = {n}")
    if groups is not None:
        return _whole_groups(groups, int(folds), seed)
    count = min(int(folds), n)
    random = np.random.default_rng(seed)
    order = random.permutation(n)
    if codes is not None:
        order = order[np.argsort(codes[order], kind="stable")]
    fold = np.empty(n, dtype=np.intp)
    fold[order] = np.arange(n) % count
    return fold


def _whole_groups(groups: Index, folds: int, seed: int | np.random.Generator) -> Index:
    """The fold of each point where no group is parted."""
    names, place, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if len(names) < 2:
        raise InvalidInput("cross-validation by groups needs at least two of them; got 1 group")
    order = np.random.default_rng(seed).permutation(len(names))
    order = order[np.argsort(-sizes[order], kind="stable")]
    fold, points = np.empty(len(names), dtype=np.intp), np.zeros(min(folds, len(names)))
    for group in order:
        fold[group] = np.argmin(points)
        points[fold[group]] += sizes[group]
    return np.asarray(fold[place])


@dataclass(frozen=True)
class Layout:
    """Points in working order: order (n,) into the given ones, borders (f + 1,) of the folds, codes (n,) in order."""

    order: Index
    borders: Index
    codes: Index

    @classmethod
    def of(cls, fold: Index, codes: Index | None, seed: int) -> "Layout":
        """Sort by fold, then by class, then at random."""
        n = len(fold)
        own = np.zeros(n, dtype=np.intp) if codes is None else codes
        order = np.random.default_rng(seed).permutation(n)
        order = order[np.lexsort((own[order], fold[order]))]
        borders = np.concatenate([[0], np.cumsum(np.bincount(fold))])
        return cls(order.astype(np.intp), borders.astype(np.intp), np.ascontiguousarray(own[order]))

    @property
    def folds(self) -> int:
        """Number of folds."""
        return len(self.borders) - 1

    def rows(self, fold: int) -> slice:
        """The held-out points of a fold."""
        return slice(int(self.borders[fold]), int(self.borders[fold + 1]))

    def outside(self, fold: int) -> Index:
        """The training points of a fold."""
        held = self.rows(fold)
        return np.concatenate([np.arange(held.start), np.arange(held.stop, len(self.order))]).astype(np.intp)
