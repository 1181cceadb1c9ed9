"""Grids: every cell of a picture is labelled, and neighbours across and down score their pairs of labels.

The graph has cycles, so that the best labelling is hard to find in general.  `inference` is "messages" (tree-reweighted
message passing, fast), "relaxed" (a linear programme, fractional) or "exact" (a mixed integer programme, slow on large
grids); see `mercer.solvers.structured.inference`.  All three have bounds, so that certificates hold.
"""

from typing import Any

import numpy as np

from mercer.errors import InvalidInput
from mercer.problems.forests import rooted
from mercer.solvers.structured.inference import Method
from mercer.structured.graphs import Codes, Graph, GraphModel, checked_points


class GridModel(GraphModel):
    """Inputs are arrays (rows, columns, d), structures the labels (rows, columns) of their cells.

    labels : the k labels, by default those of the training data, sorted.
    inference : "messages", "relaxed" or "exact".
    features : d, by default that of the training data.
    """

    name = "grid"
    kinds = 2

    def __init__(self, labels: Any = None, *, inference: Method = "messages", features: int | None = None) -> None:
        super().__init__(labels, inference=inference, features=features)

    def _graph(self, x: Any) -> Graph:
        values = np.asarray(x)
        if values.ndim != 3:
            raise InvalidInput(f"a grid is an array (rows, columns, features), got shape {values.shape}")
        edges, kinds = neighbours(*values.shape[:2])
        points = checked_points(values.reshape(-1, values.shape[2]))
        return Graph(points, edges, kinds, rooted(len(points), edges), values.shape[:2])

    def points(self, x: Any) -> Any:
        """The points of the cells, row by row."""
        values = np.asarray(x)
        return values.reshape(-1, values.shape[-1])

    def with_points(self, x: Any, points: Any) -> Any:
        """The same grid with other points in its cells."""
        return points.reshape(*np.shape(x)[:2], -1)


def neighbours(rows: int, columns: int) -> tuple[Codes, Codes]:
    """Edges (E, 2) between cells numbered row by row, and their kinds (E,): 0 across, 1 down."""
    cells = np.arange(rows * columns, dtype=np.intp).reshape(rows, columns)
    across = np.stack((cells[:, :-1].ravel(), cells[:, 1:].ravel()), axis=1)
    down = np.stack((cells[:-1].ravel(), cells[1:].ravel()), axis=1)
    return np.concatenate((across, down)), np.repeat(np.array([0, 1], dtype=np.intp), [len(across), len(down)])
