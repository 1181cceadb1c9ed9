"""A graph whose nodes and edges score labels, and what can be known of its best labelling.

    s(y) = sum_t u_t(y_t) + sum_e V_e(y_a, y_b),        e = (a, b),        y in {0..k-1}^T.

Whoever looks for the best labelling (`mercer.solvers.structured.inference`) gives labels, their score, and a number
`bound` >= max_y s(y).  A primal value of a structured machine that is built from bounds is never too small, which keeps
its certificate true where inference is not exact.
"""

from dataclasses import dataclass

import numpy as np

from mercer.arrays import Array, Index
from mercer.errors import InvalidInput
from mercer.problems.forests import checked_edges

Labels = Index

EXACT = 1e-9  # a bound this close to a score, relative to the size of the scores, is reached


@dataclass(frozen=True, eq=False)
class Network:
    """Scores of a graph: unary (T, k), pairwise (P, k, k), edges (E, 2), and the table (E,) of each edge."""

    unary: Array
    pairwise: Array
    edges: Labels
    tables: Labels

    @property
    def nodes(self) -> int:
        """Number of nodes T."""
        return len(self.unary)

    def score(self, labels: Labels) -> float:
        """s(y) of labels y (T,)."""
        a, b = labels[self.edges[:, 0]], labels[self.edges[:, 1]]
        return float(self.unary[np.arange(self.nodes), labels].sum() + self.pairwise[self.tables, a, b].sum())

    def scores(self, labels: Labels) -> Array:
        """s(y) (m,) of labellings (m, T)."""
        a, b = labels[:, self.edges[:, 0]], labels[:, self.edges[:, 1]]
        nodes = self.unary[np.arange(self.nodes), labels].sum(axis=1)
        return np.asarray(nodes + self.pairwise[self.tables, a, b].sum(axis=1))

    def reached(self, value: float, bound: float) -> bool:
        """Whether a labelling of score `value` is best because of the bound, up to rounding of scores of this size."""
        largest = np.abs(self.pairwise).max(axis=(1, 2), initial=0.0)
        size = float(np.abs(self.unary).max(axis=1, initial=0.0).sum() + largest[self.tables].sum())
        return bound - value <= EXACT * max(1.0, size)

    def bound(self, messages: Array) -> float:
        """A bound on all scores from any messages (E, 2, k), which only move scores between edges and nodes:

        max_y s(y) <= sum_t max [u_t + sum of messages to t] + sum_e max [V_e(i, j) - m_e0(i) - m_e1(j)].
        """
        nodes = self.unary.copy()
        np.add.at(nodes, self.edges[:, 0], messages[:, 0])
        np.add.at(nodes, self.edges[:, 1], messages[:, 1])
        rest = self.pairwise[self.tables] - messages[:, 0, :, None] - messages[:, 1, None, :]
        return float(nodes.max(axis=1).sum() + rest.max(axis=(1, 2)).sum()) if self.nodes else 0.0


@dataclass(frozen=True, eq=False)
class Inferred:
    """Labels (T,) with their score, a bound on the score of any labelling, and the marginals of a relaxation.

    `node_marginals` (T, k) and `edge_marginals` (E, k, k) are a point of the local polytope where the linear programme
    was asked, and None otherwise.
    """

    labels: Labels
    value: float
    bound: float
    exact: bool
    """Whether the labels are known to be best, up to rounding."""
    node_marginals: Array | None = None
    edge_marginals: Array | None = None

    @property
    def fractional(self) -> bool:
        """Whether a relaxation gave marginals other than zeros and ones."""
        marginals = self.node_marginals
        return marginals is not None and bool((np.abs(marginals - np.round(marginals)) > 1e-6).any())


def network(unary: Array, pairwise: Array, edges: Labels, tables: Labels | None = None) -> Network:
    """A checked network; without `tables` all edges have the first table where there is one, else each its own."""
    unary, pairwise = np.ascontiguousarray(unary, dtype=np.float64), np.ascontiguousarray(pairwise, dtype=np.float64)
    pairs = checked_edges(len(unary), edges)
    k = unary.shape[1] if unary.ndim == 2 else 0
    if k == 0 or pairwise.ndim != 3 or pairwise.shape[1:] != (k, k):
        raise InvalidInput(
            f"unary must have shape (T, k) and pairwise (P, k, k) with k > 0, got {unary.shape} and {pairwise.shape}"
        )
    if tables is None:
        tables = np.zeros(len(pairs), dtype=np.intp) if len(pairwise) == 1 else np.arange(len(pairs), dtype=np.intp)
    tables = np.asarray(tables, dtype=np.intp)
    if tables.shape != (len(pairs),) or (tables.size and not 0 <= tables.min() <= tables.max() < len(pairwise)):
        raise InvalidInput(f"tables must name one of {len(pairwise)} tables for each of {len(pairs)} edges")
    return Network(unary, pairwise, pairs, tables)
