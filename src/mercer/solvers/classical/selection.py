"""Which variables to work on: three scores of how much a variable violates, and sets that can move.

With the excess e_v = G_v - h of a variable's gradient over the multiplier h of its group (Schoelkopf and Smola 2002,
section 10.4.3, table 10.1):

    gap          (upper - s)(-e)_+  +  (s - lower)(e)_+           the terms of the duality gap
    gradient     [s < upper](-e)_+  +  [s > lower](e)_+           SVMLight and SVMTorch
    multiplier   (upper - s)[e < 0] +  (s - lower)[e > 0]

The largest scores alone may leave no way to move: all of them may lie on one side of h, and then the sum of their group
holds them where they are.  A balanced set takes as many from the variables that want to rise as from those that want to
fall, group by group, with h midway between the two thresholds, so that neither side is empty before the optimum, and
always the two variables at the thresholds.  Without sums every variable can move, h is zero, and the one of largest
gradient is always taken: the other two scores say nothing of how far it is from where it should be.
"""

import numpy as np

from mercer.arrays import Array, Index, Mask
from mercer.errors import InvalidInput
from mercer.solvers.classical.dual import ClassicalDual

SCORES = ("gap", "gradient", "multiplier")


def checked_score(score: str) -> str:
    """One of the three scores."""
    if score not in SCORES:
        raise InvalidInput(f"score must be one of {', '.join(SCORES)}, got {score!r}")
    return score


def violation_scores(excess: Array, up: Array, down: Array, score: str) -> Array:
    """The score of variables with the given excess and distances `up` and `down` to their bounds, all (N,).

    A bound at infinity, as squared losses have, counts as one away.
    """
    if score == "gradient":
        up, down = np.sign(up), np.sign(down)
    else:
        up, down = np.where(np.isfinite(up), up, 1.0), np.where(np.isfinite(down), down, 1.0)
    rising, falling = np.maximum(-excess, 0.0), np.maximum(excess, 0.0)
    if score == "multiplier":
        rising, falling = np.sign(rising), np.sign(falling)
    return np.asarray(up * rising + down * falling)


def balanced(dual: ClassicalDual, size: int, score: str, usable: Mask | None = None) -> Index:
    """About `size` variables, half of which want to rise and half to fall in each group that violates.

    `usable` (N,) leaves variables out, but for the pair at the thresholds.  Gradients are those of the last survey.
    """
    G, group = dual.G.ravel(), dual.group.ravel()
    _, _, lower, upper, _ = (part.ravel() for part in dual._program())
    up, down = upper - dual.flat, dual.flat - lower
    if dual.groups == 0:
        worst = largest(violation_scores(G, up, down, "gradient"), np.ones(G.size, dtype=np.bool_), 1)
        found = violation_scores(G, up, down, score)
        others = largest(found, (found > 0) & (True if usable is None else usable), size)
        return np.concatenate((worst, others[others != worst[0]]))[:size]
    gaps = dual.extremes[:, 2] - dual.extremes[:, 0]
    open_groups = np.flatnonzero(gaps > 0)
    share = max(2, size // max(1, open_groups.size))
    chosen: list[Index] = []
    for g in open_groups:
        low, at_low, high, at_high = dual.extremes[g]
        excess = G - 0.5 * (low + high)
        found = violation_scores(excess, up, down, score)
        own = (group == g) & (found > 0) & (True if usable is None else usable)
        pair = np.array([at_low, at_high], dtype=np.intp)
        sides = _alternating(largest(found, own & (excess < 0), share), largest(found, own & (excess > 0), share))
        chosen.append(np.concatenate((pair, sides[~np.isin(sides, pair)]))[:share])
    return np.concatenate(chosen) if chosen else np.empty(0, dtype=np.intp)


def _alternating(rising: Index, falling: Index) -> Index:
    """The best of both sides in turn, and what is left of the longer one."""
    rank = np.concatenate((np.arange(rising.size), np.arange(falling.size)))
    return np.concatenate((rising, falling))[np.argsort(rank, kind="stable")]


def largest(values: Array, where: Mask, count: int) -> Index:
    """The `count` variables of largest value among those allowed, best first."""
    at = np.flatnonzero(where)
    if at.size > count:
        at = at[np.argpartition(-values[at], count - 1)[:count]]
    return at[np.argsort(-values[at], kind="stable")]
