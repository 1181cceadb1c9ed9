"""Trees: nodes with points, joined by edges without a cycle, each node labelled; inference is exact (max-product).

An input is (points, edges) or (points, edges, kinds): points (T, d), edges (E, 2) as pairs of node numbers, and
optionally the kind (E,) of each edge, a number below `kinds`.  The first end of an edge is the row of its table of
scores, the second the column: give edges of one kind in one direction, such as from parent to child.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mercer.errors import InvalidInput
from mercer.problems.forests import checked_edges, forest
from mercer.structured.graphs import Graph, GraphModel, checked_points


class TreeModel(GraphModel):
    """Trees or forests of labelled nodes; a chain is a tree whose edges join neighbours.

    labels : the k labels, by default those of the training data, sorted.
    kinds : number of kinds of edges, each with scores of its own.
    features : d, by default that of the training data.
    """

    name = "tree"

    def __init__(self, labels: Any = None, *, kinds: int = 1, features: int | None = None) -> None:
        super().__init__(labels, features=features)
        self.kinds = kinds

    def _graph(self, x: Any) -> Graph:
        if not isinstance(x, (tuple, list)) or len(x) not in (2, 3):
            raise InvalidInput("a tree is given as (points, edges) or (points, edges, kinds)")
        points = checked_points(x[0])
        edges = checked_edges(len(points), x[1])
        kinds = np.asarray(x[2]) if len(x) == 3 else np.zeros(len(edges), dtype=np.intp)
        if kinds.shape != (len(edges),) or (kinds.size and not 0 <= kinds.min() <= kinds.max() < self.kinds):
            raise InvalidInput(f"kinds must be {len(edges)} numbers from 0 to {self.kinds - 1}, one for each edge")
        return Graph(points, edges, kinds.astype(np.intp), forest(len(points), edges), (len(points),))

    def points(self, x: Any) -> Any:
        """The points of the nodes."""
        return np.asarray(x[0])

    def with_points(self, x: Any, points: Any) -> Any:
        """The same tree on other points."""
        return (points, *x[1:])

    def state(self) -> Mapping[str, Any]:
        """Labels, the number of kinds of edges and of features."""
        return {"labels": self.labels, "kinds": self.kinds, "features": self.features}
