"""The best labelling of a graph, or labels and a bound, by the method that is asked for.

On a graph without cycles the answer is exact.  With cycles the maximum is hard to find, and there are three methods:

    "exact"      all labellings where there are few, else a mixed integer programme; may take very long
    "relaxed"    the linear programme over the local polytope, whose solution may be fractional
    "messages"   sequential tree-reweighted message passing, fast, with labels decoded on the way
"""

from itertools import product
from typing import Literal, get_args

import numpy as np

from mercer.errors import InvalidInput
from mercer.problems.forests import Forest, best_labelling, rooted
from mercer.problems.networks import Inferred, Network
from mercer.solvers.structured import relaxation, reweighting

Method = Literal["exact", "relaxed", "messages"]

ENUMERATED = 1 << 12  # labellings that are looked at one by one rather than by an integer programme


def infer(given: Network, method: Method = "exact", *, graph: Forest | None = None) -> Inferred:
    """The best labelling, or labels and a bound; `graph` is the rooted forest where it is known."""
    if method not in get_args(Method):
        raise InvalidInput(f"inference must be one of {', '.join(map(repr, get_args(Method)))}, got {method!r}")
    graph = rooted(given.nodes, given.edges) if graph is None else graph
    if graph is not None:
        labels, value = best_labelling(given.unary, given.pairwise, given.tables, graph)
        return Inferred(labels, value, value, exact=True)
    if method == "exact" and given.unary.shape[1] ** float(given.nodes) <= ENUMERATED:
        return enumerated(given)
    if method == "messages":
        return reweighting.infer(given)
    return relaxation.infer(given, whole=method == "exact")


def enumerated(given: Network) -> Inferred:
    """The best of all labellings, the first of equals in the order of the labels."""
    every = np.array(list(product(range(given.unary.shape[1]), repeat=given.nodes)), dtype=np.intp)
    scores = given.scores(every)
    best = int(np.argmax(scores))
    return Inferred(every[best], float(scores[best]), float(scores[best]), exact=True)
