"""Max-margin Markov networks on forests, with a kernel on the nodes (Taskar, Guestrin and Koller 2003).

Example i is a forest of nodes t with points x_t and right labels y_t.  A labelling scores

    s_i(z) = sum_t f_{z_t}(x_t) + sum_e W_e(z_a, z_b),        f_j(x) = sum_v c_vj k(x, x_v),

one function of the kernel's space for each of k labels and a table (k, k) for each of P kinds of edges, and

    P = 1/2 sum_j |f_j|^2 + 1/2 sum_p |W_p|^2 + sum_i C_i max_z [h_i(z) + s_i(z) - s_i(y_i)],    h the Hamming distance.

The dual of this has a distribution over all labellings of each example, but the objective depends on its node
marginals m_t (k,) and edge marginals m_e (k, k) alone, and on a forest every locally consistent set of marginals has a
distribution:

    D = sum_i C_i sum_t (1 - m_t(y_t)) - 1/2 sum_j c_j'K c_j - 1/2 sum_p |W_p|^2
    c_tj = C_i ([y_t = j] - m_t(j)),     W_p = sum of C_i ([labels of e are right] - m_e) over the edges e of kind p
    m >= 0,  sum_j m_t(j) = 1,  sum_j m_e(., j) = m_a,  sum_i m_e(i, .) = m_b.

That is a quadratic programme of nodes k + edges k^2 variables instead of k^T.  The gap is a sum over examples,

    P - D = sum_i C_i (max_z [h_i(z) + s_i(z)] - the mean of h_i + s_i under m)   >= 0.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mercer.arrays import Array, Index
from mercer.compiled import loop
from mercer.errors import InvalidInput
from mercer.problems.certificate import Certificate
from mercer.problems.forests import Tree, checked_edges, forest, sweep, with_tables
from mercer.problems.program import GramLike
from mercer.problems.structured import example_costs

Labels = Index


class Marginals(NamedTuple):
    """A dual point: `nodes` (N, k), and `edges` (N, k, k) where the entry of a node belongs to the edge to its parent.

    Rows and columns of an edge are the labels of its first and second end; roots have zeros.
    """

    nodes: Array
    edges: Array


class MarkovNetworks:
    """n examples with N nodes in all, one after another: `sizes` (n,) says how many each has.

    `gram` (N, N) holds the kernel between the points of the nodes, `y` (N,) their labels 0..k-1, `edges` (E, 2) join
    nodes of one example, and `tables` (E,) gives each edge one of P kinds.  `weights` (n,) multiply C.
    """

    def __init__(
        self,
        gram: GramLike,
        y: ArrayLike,
        sizes: ArrayLike,
        edges: ArrayLike,
        *,
        k: int | None = None,
        tables: ArrayLike | None = None,
        kinds: int = 1,
        C: float = 1.0,
        weights: ArrayLike | None = None,
    ) -> None:
        self.gram, self.y = gram, np.asarray(y, dtype=np.intp)
        counts = np.asarray(sizes, dtype=np.intp)
        self.N, self.n, self.kinds = len(self.y), len(counts), kinds
        if gram.shape != (self.N, self.N) or counts.ndim != 1 or counts.sum() != self.N or (counts < 0).any():
            raise InvalidInput(f"sizes of {self.n} examples and a matrix {gram.shape} do not go with {self.N} labels")
        self.k = int(self.y.max(initial=-1)) + 1 if k is None else k
        if self.N and not 0 <= self.y.min() <= self.y.max() < self.k:
            raise InvalidInput(f"labels must be numbers from 0 to {self.k - 1}")
        self.C, self.costs = float(C), example_costs(C, weights, self.n)
        self.example = np.repeat(np.arange(self.n), counts)
        self.starts = np.concatenate(([0], np.cumsum(counts))).astype(np.intp)
        self.forest = self._forest(checked_edges(self.N, edges), tables)
        self.losses = np.ones((self.N, self.k))
        self.losses[np.arange(self.N), self.y] = 0.0

    def _forest(self, edges: Labels, tables: ArrayLike | None) -> Tree:
        """The rooted forests of all examples (N,), nodes of each numbered from 0."""
        kinds = np.zeros(len(edges), dtype=np.intp) if tables is None else np.asarray(tables, dtype=np.intp)
        if kinds.shape != (len(edges),) or (kinds.size and not 0 <= kinds.min() <= kinds.max() < self.kinds):
            raise InvalidInput(f"tables must name one of {self.kinds} kinds for each of {len(edges)} edges")
        if len(edges) and (self.example[edges[:, 0]] != self.example[edges[:, 1]]).any():
            raise InvalidInput("an edge joins nodes of two examples; edges are counted over all nodes of all examples")
        whole, shift = with_tables(forest(self.N, edges), kinds), self.starts[self.example]
        return whole._replace(order=whole.order - shift, parent=np.where(whole.parent >= 0, whole.parent - shift, -1))

    @property
    def box(self) -> Array:
        """C_i of the example of each node, (N,)."""
        return np.asarray(self.costs[self.example])

    def right(self) -> Marginals:
        """All mass on the right labels: the dual point of w = 0."""
        nodes, edges = 1.0 - self.losses, np.zeros((self.N, self.k, self.k))
        below = np.flatnonzero(self.forest.parent >= 0)
        ends = self.ends(self.y)
        edges[below, ends[0][below], ends[1][below]] = 1.0
        return Marginals(nodes, edges)

    def ends(self, labels: Labels) -> tuple[Labels, Labels]:
        """Labels (N,) of the first and of the second end of the edge above each node; of no meaning at roots."""
        above = labels[np.maximum(self.forest.parent, 0) + self.starts[self.example]]
        flipped = self.forest.flipped
        return np.where(flipped, labels, above), np.where(flipped, above, labels)

    def coefficients(self, m: Marginals) -> Array:
        """C (N, k)."""
        return np.asarray(self.box[:, None] * ((1.0 - self.losses) - m.nodes))

    def tables(self, m: Marginals) -> Array:
        """W (P, k, k)."""
        found = np.zeros((self.kinds, self.k, self.k))
        below = self.forest.table >= 0
        first, second = self.ends(self.y)
        np.add.at(found, (self.forest.table[below], first[below], second[below]), self.box[below])
        for kind in range(self.kinds):
            here = self.forest.table == kind
            found[kind] -= np.tensordot(self.box[here], m.edges[here], axes=1)
        return found

    def values(self, c: Array) -> Array:
        """Values K c (N, k) of the functions at the nodes."""
        return np.asarray(self.gram.dot(c), dtype=np.float64)

    def certificate(self, m: Marginals, f: Array | None = None) -> tuple[Certificate, Array]:
        """Primal, dual and gap at marginals m, and the part (n,) of each example in the gap; `f` = K c if known."""
        c, W = self.coefficients(m), self.tables(m)
        f = self.values(c) if f is None else f
        parts = np.empty(self.n)
        gaps(f + self.losses, W, self.forest, self.starts, m, parts)
        parts = self.costs * np.maximum(parts, 0.0)
        norm = float(np.vdot(c, f) + np.vdot(W, W))
        dual = float(self.box @ (m.nodes * self.losses).sum(axis=1)) - 0.5 * norm
        rounding = np.finfo(np.float64).eps * self.N**0.5 * max(abs(dual), norm)
        gap = float(parts.sum())
        return Certificate(dual + gap, dual, gap, rounding=rounding), parts

    def __repr__(self) -> str:
        return f"MarkovNetworks(n={self.n}, {self.N} nodes, {self.k} labels, {self.kinds} kinds of edges, C={self.C:g})"


@loop
def part_of(i: int, tree: Tree, starts: Labels) -> Tree:
    """The forest of one example."""
    a, b = starts[i], starts[i + 1]
    return Tree(tree.order[a:b], tree.parent[a:b], tree.flipped[a:b], tree.table[a:b])


@loop
def mean_score(scores: Array, W: Array, tree: Tree, m: Marginals) -> float:
    """The mean of h + s under the marginals of one example."""
    total = 0.0
    for t in range(scores.shape[0]):
        total += (m.nodes[t] * scores[t]).sum()
        if tree.parent[t] >= 0:
            total += (m.edges[t] * W[tree.table[t]]).sum()
    return total


@loop
def gaps(scores: Array, W: Array, forest: Tree, starts: Labels, m: Marginals, out: Array) -> None:
    """max_z [h_i(z) + s_i(z)] minus its mean under the marginals, (n,); `scores` (N, k) are losses and values."""
    labels = np.empty(scores.shape[0], dtype=np.intp)
    for i in range(starts.shape[0] - 1):
        a, b = starts[i], starts[i + 1]
        tree = part_of(i, forest, starts)
        best = sweep(scores[a:b], W, tree, labels[a:b])
        out[i] = best - mean_score(scores[a:b], W, tree, Marginals(m.nodes[a:b], m.edges[a:b]))
