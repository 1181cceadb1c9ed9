"""The best labelling of a forest, exactly: max-product, the dynamic programme of Viterbi on any graph without cycles.

A labelling y in {0..k-1}^T of T nodes has the score

    s(y) = sum_t u_t(y_t) + sum_e V_e(y_a, y_b),        e = (a, b),

and on a forest its maximum follows from one sweep from the leaves to the roots and one back.  The sweeps cost O(T k^2).
Each edge names one of P tables (k, k), so that edges may share a table.  Of equally good labels the smallest is taken
at every step, which makes answers repeatable.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.compiled import loop
from mercer.errors import InvalidInput

Array = NDArray[np.float64]
Labels = NDArray[np.intp]


class Forest(NamedTuple):
    """A graph without cycles, each node below its parent.

    `order` (T,) has every parent before its children, `parent` (T,) is -1 at a root, `edge` (T,) is the number of the
    edge to the parent (-1 at a root), and `flipped` (T,) says that this edge was given as (child, parent).
    """

    order: Labels
    parent: Labels
    edge: Labels
    flipped: NDArray[np.bool_]

    @property
    def nodes(self) -> int:
        """Number of nodes T."""
        return len(self.order)


class Tree(NamedTuple):
    """The same for compiled loops: `table` (T,) is the table of the edge to the parent, of no meaning at a root."""

    order: Labels
    parent: Labels
    flipped: NDArray[np.bool_]
    table: Labels


def checked_edges(nodes: int, edges: ArrayLike) -> Labels:
    """Edges (E, 2) between nodes 0..T-1, as integers; (0, 2) where there are none."""
    found = np.asarray(edges)
    if found.size == 0:
        return np.zeros((0, 2), dtype=np.intp)
    if found.ndim != 2 or found.shape[1] != 2 or not np.issubdtype(found.dtype, np.integer):
        raise InvalidInput(f"edges must be whole numbers of shape (E, 2), got {found.dtype} of shape {found.shape}")
    if found.min() < 0 or found.max() >= nodes:
        raise InvalidInput(f"edges name nodes {found.min()} to {found.max()}, there are the nodes 0 to {nodes - 1}")
    if (found[:, 0] == found[:, 1]).any():
        raise InvalidInput(f"an edge joins node {found[found[:, 0] == found[:, 1]][0, 0]} with itself; leave it out")
    return found.astype(np.intp)


def forest(nodes: int, edges: ArrayLike) -> Forest:
    """The forest with these edges (E, 2); edges that close a cycle are refused."""
    found = rooted(nodes, edges)
    if found is None:
        raise InvalidInput(
            "the edges close a cycle, and a tree has none: leave out an edge, or use a model for graphs with cycles "
            "such as GridModel"
        )
    return found


def rooted(nodes: int, edges: ArrayLike) -> Forest | None:
    """The same, or None where the edges close a cycle; the smallest node of each tree is its root."""
    pairs = checked_edges(nodes, edges)
    neighbours: list[list[tuple[int, int]]] = [[] for _ in range(nodes)]
    for number, (a, b) in enumerate(pairs.tolist()):
        neighbours[a].append((b, number))
        neighbours[b].append((a, number))
    parent, edge = np.full(nodes, -1, dtype=np.intp), np.full(nodes, -1, dtype=np.intp)
    seen, order = np.zeros(nodes, dtype=bool), []
    for root in range(nodes):
        if seen[root]:
            continue
        seen[root], waiting = True, [root]
        while waiting:
            node = waiting.pop()
            order.append(node)
            for other, number in neighbours[node]:
                if number == edge[node]:
                    continue
                if seen[other]:
                    return None
                seen[other], parent[other], edge[other] = True, node, number
                waiting.append(other)
    flipped = (edge >= 0) & (pairs[edge, 0] == np.arange(nodes)) if len(pairs) else np.zeros(nodes, dtype=bool)
    return Forest(np.array(order, dtype=np.intp), parent, edge, flipped)


def best_labelling(unary: Array, pairwise: Array, tables: Labels, forest: Forest) -> tuple[Labels, float]:
    """Labels (T,) of largest score, and that score.

    `unary` (T, k) scores the labels of nodes, `pairwise` (P, k, k) pairs of labels, and `tables` (E,) says which of the
    P tables an edge has.
    """
    labels = np.empty(forest.nodes, dtype=np.intp)
    value = sweep(unary, pairwise, with_tables(forest, tables), labels)
    return labels, float(value)


def with_tables(forest: Forest, tables: Labels) -> Tree:
    """A forest whose edges have the tables (E,)."""
    table = np.where(forest.edge >= 0, tables[forest.edge], -1) if len(tables) else forest.edge
    return Tree(forest.order, forest.parent, forest.flipped, table)


@loop
def sweep(unary: Array, pairwise: Array, tree: Tree, labels: Labels) -> float:
    """Write the best labels (T,) and return their score.

    Scores of minus infinity forbid labels or pairs; the score is minus infinity where nothing is allowed.
    """
    T, k = unary.shape
    order, parent = tree.order, tree.parent
    score = unary.copy()
    choice = np.empty((T, k), dtype=np.int32)
    for position in range(T - 1, -1, -1):
        node = order[position]
        above = parent[node]
        if above < 0:
            continue
        V, flipped = pairwise[tree.table[node]], tree.flipped[node]
        for upper in range(k):
            best, chosen = -np.inf, 0
            for lower in range(k):
                value = score[node, lower] + (V[lower, upper] if flipped else V[upper, lower])
                if value > best:
                    best, chosen = value, lower
            choice[node, upper] = chosen
            score[above, upper] += best
    total = 0.0
    for position in range(T):
        node = order[position]
        above = parent[node]
        if above >= 0:
            labels[node] = choice[node, labels[above]]
        else:
            labels[node] = np.argmax(score[node])
            total += score[node, labels[node]]
    return total
