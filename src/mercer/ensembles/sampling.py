"""What each member of an ensemble sees: some of the points, counted once or more often, and some of the features.

    bootstrap       n draws with replacement; a point that is drawn c times counts with weight c
    subsample       g points without replacement (subbagging)
    disjoint        a partition into q parts, one for each member
    committee       all points but one part of such a partition (cross-validated committees)

Every sampler is a pure function of the sizes and a seed (Hamers 2004, section 6.1.1; Breiman 1996; Parmanto, Munro and
Doyle 1996).  With the classes of the points, `strata`, every member sees every class: partitions deal each class out
evenly, and a draw that misses a class is drawn again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.selection.folds import assign

Vector = NDArray[np.float64]
Index = NDArray[np.intp]
Draw = Callable[[np.random.Generator], Index]

DRAWS = 100  # how often a draw that misses a class is drawn again


@dataclass(frozen=True)
class Sample:
    """What one member sees: distinct `rows` (g,) in ascending order, how often each counts, and which features.

    counts (g,) is None where every row counts once, features (p,) None where all are seen; `noise` is the seed of what
    is added to its points, None where nothing is.
    """

    rows: Index
    counts: Vector | None = None
    features: Index | None = None
    noise: int | None = None

    def weights(self, weights: Vector | None) -> Vector | None:
        """Weights (g,) of its rows: counts times the weights (n,) of all points; None where all are one."""
        own = None if weights is None else weights[self.rows]
        return own if self.counts is None else self.counts if own is None else self.counts * own


def bootstrap(n: int, members: int, size: int | None = None, *, seed: Any = 0, strata: Any = None) -> list[Sample]:
    """Draws of `size` points (default n) with replacement."""
    size = _checked(n, n if size is None else size, most=None)

    def draw(random: np.random.Generator) -> Index:
        return np.asarray(random.integers(0, n, size), dtype=np.intp)

    drawn = [np.unique(rows, return_counts=True) for rows in _draws(draw, members, seed, strata)]
    return [Sample(rows.astype(np.intp), counts.astype(np.float64)) for rows, counts in drawn]


def subsample(n: int, members: int, size: int, *, seed: Any = 0, strata: Any = None) -> list[Sample]:
    """Draws of `size` points without replacement."""
    size = _checked(n, size, most=n)

    def draw(random: np.random.Generator) -> Index:
        return np.sort(random.choice(n, size, replace=False)).astype(np.intp)

    return [Sample(rows) for rows in _draws(draw, members, seed, strata)]


def disjoint(n: int, members: int, *, seed: Any = 0, strata: Any = None) -> list[Sample]:
    """One of `members` near equal parts for each."""
    return [Sample(np.flatnonzero(part)) for part in _parts(n, members, seed, strata)]


def committee(n: int, members: int, *, seed: Any = 0, strata: Any = None) -> list[Sample]:
    """All points but one of `members` near equal parts for each."""
    return [Sample(np.flatnonzero(~part)) for part in _parts(n, members, seed, strata)]


def feature_subsets(d: int, members: int, size: int, *, seed: Any = 0) -> list[Index]:
    """`size` of d features for each member, without replacement."""
    if not 1 <= size <= d:
        raise InvalidInput(f"features: {size} of {d} features cannot be chosen; give 1 to {d}, or a share of them")
    random = np.random.default_rng(seed)
    return [np.sort(random.choice(d, size, replace=False)).astype(np.intp) for _ in range(members)]


def _parts(n: int, members: int, seed: Any, strata: Any) -> list[NDArray[np.bool_]]:
    if not 2 <= members <= n:
        raise InvalidInput(f"members={members}: {n} points make 2 to {n} parts")
    fold = assign(n, members, strata, np.random.default_rng(seed))
    return [fold == part for part in range(members)]


def _draws(draw: Draw, members: int, seed: Any, strata: Any) -> list[Index]:
    """Draws that hold every class, each from a generator of its own."""
    sources = np.random.SeedSequence(_entropy(seed)).spawn(members)
    classes = 0 if strata is None else int(np.max(strata)) + 1
    found = []
    for source in sources:
        random = np.random.default_rng(source)
        rows = draw(random)
        for _ in range(DRAWS):
            if strata is None or len(np.unique(np.asarray(strata)[rows])) == classes:
                break
            rows = draw(random)
        found.append(rows)
    return found


def _entropy(seed: Any) -> int:
    return int(seed.integers(1 << 32)) if isinstance(seed, np.random.Generator) else int(seed)


def _checked(n: int, size: int, most: int | None) -> int:
    if size < 1 or (most is not None and size > most):
        raise InvalidInput(f"size: a member cannot be trained on {size} of {n} points")
    return int(size)


def absolute(size: float | int, n: int) -> int:
    """A size as a number of n things: a whole number is itself, a share from 0 to 1 that share of n."""
    return int(size) if isinstance(size, (int, np.integer)) else max(1, round(float(size) * n))


# What the samples cover --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Coverage:
    """How the members' samples cover n points.

    seen (n,): how many members see each point; size (q,): distinct points of each member; shared (q, q): points that
    two members have in common.
    """

    seen: Index
    size: Index
    shared: Index

    @property
    def unseen(self) -> float:
        """Share of the points that no member sees."""
        return float(np.mean(self.seen == 0))

    @property
    def overlap(self) -> float:
        """Mean over pairs of members of the share of the smaller sample that the other holds too."""
        q = len(self.size)
        if q < 2:
            return 1.0
        first, second = np.triu_indices(q, 1)
        return float(np.mean(self.shared[first, second] / np.minimum(self.size[first], self.size[second])))


def coverage(samples: Sequence[Sample], n: int) -> Coverage:
    """Counts over the samples of n points."""
    inside = np.zeros((len(samples), n), dtype=np.intp)
    for row, sample in zip(inside, samples):
        row[sample.rows] = 1
    shared = inside @ inside.T
    return Coverage(inside.sum(axis=0), np.diagonal(shared).copy(), shared)
