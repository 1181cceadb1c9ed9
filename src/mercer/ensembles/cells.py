"""Cells of the input space: a binary tree of hyperplanes whose leaves hold at most so many training points each.

A node sends x to its second child where <w, x> > t, and to its first one otherwise, so that a cell is an intersection
of half spaces.  A node with more than `size` points is split by one of two rules:

    "k-means"       w joins the means of two clusters of the node's points, t is the plane halfway between them
    "projections"   w is a random direction, t the median (random projection trees, Dasgupta and Freund 2008)

t is moved where it would leave less than a quarter of the points on one side, so that the depth of the tree is at most
logarithmic.  Points that are all equal cannot be told apart: a cell may hold more than `size` copies of one point.

A machine trained on the points of its cell alone is poor at the border of the cell.  So a cell is handed, beside its
own points, `overlap` times as many from around it.  The distance of a point to a node is bounded from below by the
largest distance to the half spaces it has violated on the way, and every node keeps the nearest points of its parent's
cell and surroundings by that bound (Steinwart and Thomann 2017, liquidSVM, use overlapping cells in the same spirit).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.lowrank.landmarks.centres import moved, nearest_centres, spread_out
from mercer.resources import row_blocks

Array = NDArray[np.float64]
Index = NDArray[np.intp]

RULES = ("k-means", "projections")
SAMPLE = 1000  # points of a node from which its two clusters are found
ROUNDS = 10  # of means; two clusters of a sample are there after a few
LEAST_SHARE = 0.25  # of a node's points on either side of its hyperplane
ROWS_AT_A_TIME = 1 << 16


@dataclass(frozen=True)
class CellTree:
    """Nodes with directions (m, d), thresholds (m,) and children (m, 2): numbers of nodes, or -1 - cell.

    Without a node there is one cell.
    """

    directions: Array
    thresholds: Array
    children: Index

    @property
    def count(self) -> int:
        """Number of cells."""
        return len(self.thresholds) + 1

    def cell_of(self, X: Any) -> Index:
        """The cell (n,) of each point X (n, d), dense or CSR."""
        found = np.zeros(X.shape[0], dtype=np.intp)
        pending = [(0, np.arange(X.shape[0]))] if len(self.thresholds) else []
        while pending:
            node, points = pending.pop()
            beyond = projections(X, points, self.directions[node]) > self.thresholds[node]
            for side, child in zip((~beyond, beyond), self.children[node].tolist()):
                if child < 0:
                    found[points[side]] = -1 - child
                elif side.any():
                    pending.append((child, points[side]))
        return found


@dataclass(frozen=True)
class Cells:
    """A tree with the training points of each cell: its own, and those from around it."""

    tree: CellTree
    own: list[Index]
    around: list[Index]


@dataclass(frozen=True)
class _Node:
    """Points of a node and around it, with the bounds (around,) on the distances of the latter."""

    own: Index
    around: Index
    distances: Array


def grow(X: Any, size: int, overlap: float, rule: str, random: np.random.Generator) -> Cells:
    """Cells of at most `size` points of X (n, d), dense or CSR, each with `overlap` times as many from around it."""
    directions: list[Array] = []
    thresholds: list[float] = []
    children: list[list[int]] = []
    own: list[Index] = []
    around: list[Index] = []
    everything = np.arange(X.shape[0], dtype=np.intp)
    pending = [(-1, 0, _Node(everything, everything[:0], np.empty(0)))]  # with the parent and the side
    while pending:
        parent, side, node = pending.pop()
        halves = _halved(X, node, overlap, rule, random) if len(node.own) > size else None
        if halves is None:
            number = -1 - len(own)
            own.append(node.own)
            around.append(node.around)
        else:
            direction, threshold, first, second = halves
            number = len(directions)
            directions.append(direction)
            thresholds.append(threshold)
            children.append([0, 0])
            pending += [(number, 1, second), (number, 0, first)]
        if parent >= 0:
            children[parent][side] = number
    tree = CellTree(
        np.array(directions).reshape(-1, X.shape[1]),
        np.array(thresholds),
        np.array(children, dtype=np.intp).reshape(-1, 2),
    )
    return Cells(tree, own, around)


def projections(X: Any, points: Index, direction: Array) -> Array:
    """<w, x> (n,) of some points, a block of them at a time."""
    values = np.empty(len(points))
    for here in row_blocks(len(points), 1, ROWS_AT_A_TIME):
        values[here] = X[points[here]] @ direction
    return values


def _halved(
    X: Any, node: _Node, overlap: float, rule: str, random: np.random.Generator
) -> tuple[Array, float, _Node, _Node] | None:
    """Direction, threshold and the two children of a node; None where its points are all equal."""
    direction, wished = _clustered(X, node.own, random) if rule == "k-means" else (None, np.nan)
    if direction is None:
        direction = random.standard_normal(X.shape[1])
        direction /= np.linalg.norm(direction)
    values = projections(X, node.own, direction)
    if values.min() == values.max():
        return None
    threshold = _threshold(values, wished)
    beyond = values > threshold
    outside = projections(X, node.around, direction) - threshold
    excess = values - threshold
    # What is behind the plane is as far from a child as from the plane, at least.
    first = _child(node, ~beyond, beyond, np.maximum(excess, 0.0), np.maximum(outside, 0.0), overlap)
    second = _child(node, beyond, ~beyond, np.maximum(-excess, 0.0), np.maximum(-outside, 0.0), overlap)
    return direction, threshold, first, second


def _child(node: _Node, inside: Any, other: Any, excess: Array, outside: Array, overlap: float) -> _Node:
    """The points of a child, and the nearest of its sibling's and of those around its parent."""
    own = node.own[inside]
    candidates = np.concatenate([node.own[other], node.around])
    distances = np.concatenate([excess[other], np.maximum(node.distances, outside)])
    wanted = int(overlap * len(own))
    if wanted < len(candidates):
        nearest = np.argpartition(distances, wanted)[:wanted] if wanted else np.empty(0, dtype=np.intp)
        candidates, distances = candidates[nearest], distances[nearest]
    return _Node(own, candidates, distances)


def _clustered(X: Any, points: Index, random: np.random.Generator) -> tuple[Array | None, float]:
    """Unit vector from one cluster's mean to the other's and the plane between them; None where a sample has one."""
    sample = points if len(points) <= SAMPLE else random.choice(points, SAMPLE, replace=False)
    U = X[sample].astype(np.float64, copy=False)
    weights = np.ones(len(sample))
    seeds = spread_out(U, weights, 2, random)
    if len(seeds) < 2:
        return None, np.nan
    centres = U[seeds]
    for _ in range(ROUNDS):
        labels, _ = nearest_centres(U, centres)
        centres, _ = moved(U, weights, labels, centres, np.zeros(2))
    a, b = (np.asarray(c).ravel() for c in (centres.toarray() if sp.issparse(centres) else centres))
    length = float(np.linalg.norm(b - a))
    if length == 0.0:
        return None, np.nan
    direction = (b - a) / length
    return direction, float(direction @ (a + b)) / 2.0


def _threshold(values: Array, wished: float) -> float:
    """A number between two values, near the wished one (the median where that is NaN), with points on either side."""
    low, middle, high = np.quantile(values, [LEAST_SHARE, 0.5, 1.0 - LEAST_SHARE])
    at = middle if np.isnan(wished) else min(max(wished, low), high)
    below = float(values[values <= at].max())
    if below == values.max():
        below = float(values[values < below].max())
    # Halfway between two points: rounding of another product cannot carry either across.
    return 0.5 * (below + float(values[values > below].min()))
