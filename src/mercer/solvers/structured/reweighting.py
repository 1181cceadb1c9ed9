"""Sequential tree-reweighted message passing (Kolmogorov 2006): a dual of the local polytope, node after node.

Nodes are visited in their order and back.  Messages m_st (k,) move scores from edges to nodes and change no labelling's
score.  With h_s = u_s + sum of all messages to s, and n_s the larger of the numbers of earlier and of later neighbours,
a sweep sends to each later neighbour t

    m_st(j) = max_i [h_s(i) / n_s - m_ts(i) + V_st(i, j)] - d_st,        d_st the largest entry.

Edges form chains along which node numbers rise, each node's h_s shared equally by the n_s chains through it.  A message
is the step of the dynamic programme on these chains, so that the maxima of all chains add up to

    sum over edges d_st  +  sum over nodes (1 - later_s / n_s) max h_s   >=   max_y s(y),

which never rises from sweep to sweep.  Labels are decoded in the order of the sweep, given the earlier ones and the
messages of the later ones.  A fixed point is not always the optimum of the relaxation, but the bound always holds.
"""

import numpy as np

from mercer.arrays import Array, Index
from mercer.compiled import loop
from mercer.problems.networks import Inferred, Network

Labels = Index

SWEEPS = 200  # back and forth
STALLED = 1e-7  # a bound that improves by less than this share in a sweep is not worth another


def infer(given: Network, *, sweeps: int = SWEEPS) -> Inferred:
    """Labels, their score and a bound on all scores."""
    around, starts = neighbourhoods(given)
    messages = np.zeros((len(given.edges), 2, given.unary.shape[1]))
    labels, decoded = np.zeros(given.nodes, dtype=np.intp), np.zeros(given.nodes, dtype=np.intp)
    value, bound = -np.inf, np.inf
    for _ in range(sweeps):
        before = bound
        for backward in (False, True):
            reached = sweep(
                given.unary, given.pairwise, given.edges, given.tables, around, starts, messages, decoded, backward
            )
            bound = min(bound, reached)
            score = given.score(decoded)
            if score > value:
                value, labels = score, decoded.copy()
        if given.reached(value, bound) or before - bound <= STALLED * max(1.0, abs(bound)):
            break
    bound = max(bound, value)
    return Inferred(labels, value, bound, exact=given.reached(value, bound))


def neighbourhoods(given: Network) -> tuple[Labels, Labels]:
    """Edges around one node after another, as 2 e + (1 where the node is the second end), and (T + 1,) starts."""
    ends = given.edges.ravel()
    order = np.argsort(ends, kind="stable")
    return order.astype(np.intp), np.searchsorted(ends[order], np.arange(given.nodes + 1)).astype(np.intp)


@loop
def sweep(
    unary: Array, pairwise: Array, edges: Labels, tables: Labels, around: Labels, starts: Labels, messages: Array,
    labels: Labels, backward: bool,
) -> float:  # fmt: skip
    """One sweep in the order of the nodes or back; `messages` (E, 2, k) to the first and second end of each edge."""
    T, k = unary.shape
    bound = 0.0
    held, alone = np.empty(k), np.empty(k)
    for position in range(T):
        node = T - 1 - position if backward else position
        held[:] = unary[node]
        alone[:] = unary[node]
        earlier = later = 0
        for place in range(starts[node], starts[node + 1]):
            e, side = around[place] // 2, around[place] % 2
            held += messages[e, side]
            other = edges[e, 1 - side]
            if (other > node) != backward:
                later += 1
                alone += messages[e, side]
            else:
                earlier += 1
                V = pairwise[tables[e]]
                for i in range(k):
                    alone[i] += V[i, labels[other]] if side == 0 else V[labels[other], i]
        labels[node] = np.argmax(alone)
        chains = max(1, earlier, later)
        bound += (1.0 - later / chains) * held.max()
        for place in range(starts[node], starts[node + 1]):
            e, side = around[place] // 2, around[place] % 2
            if (edges[e, 1 - side] > node) != backward:
                bound += send(held, 1.0 / chains, pairwise[tables[e]], side, messages[e])
    return bound


@loop
def send(held: Array, share: float, V: Array, side: int, messages: Array) -> float:
    """The message from the end `side` of an edge to its other end; returns its largest entry, which it leaves out."""
    k = held.shape[0]
    largest = -np.inf
    for j in range(k):
        best = -np.inf
        for i in range(k):
            value = share * held[i] - messages[side, i] + (V[i, j] if side == 0 else V[j, i])
            best = max(best, value)
        messages[1 - side, j] = best
        largest = max(largest, best)
    for j in range(k):
        messages[1 - side, j] -= largest
    return largest
