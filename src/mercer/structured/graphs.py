"""Graphs whose nodes are labelled: what trees, grids and other networks of points share.

    w.F(x, y) = sum_t x_t'W e_{y_t} + sum_e A_e[y_a, y_b],        e = (a, b),

with one table A (k, k) for each of P kinds of edges.  The loss is the number of wrong labels.  Inference is exact on
graphs without cycles; on others `inference` names a method of `mercer.solvers.structured.inference`.  A relaxation may
answer with marginals between zero and one, `Fractional`, in which features and loss are linear: the machine is then
that of the relaxed problem (Finley and Joachims 2008).  Its certificate holds, as the primal value is made of bounds.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from mercer.errors import InvalidInput
from mercer.problems.forests import Forest
from mercer.problems.networks import Inferred, network
from mercer.problems.structured import Rescaling, Vector
from mercer.solvers.structured.inference import Method, infer
from mercer.structured.model import Found, StructuredModel, distinct_labels, numbered

Array = NDArray[np.float64]
Codes = NDArray[np.intp]


class Graph(NamedTuple):
    """An input: points (T, d), edges (E, 2), the kind (E,) of each edge, the rooted forest where it is one.

    Labels of its nodes have the `shape` (T,), or (rows, columns) for a grid.
    """

    points: Array
    edges: Codes
    kinds: Codes
    forest: Forest | None
    shape: tuple[int, ...]


class Fractional(NamedTuple):
    """A relaxed structure: marginals (T, k) of nodes and (E, k, k) of edges."""

    nodes: Array
    edges: Array


class GraphModel(StructuredModel):
    """Base of models whose structures are labels of the nodes of a graph; a subclass makes Graphs of its inputs."""

    kinds: int = 1
    """Number P of kinds of edges."""

    def __init__(self, labels: Any = None, *, inference: Method = "exact", features: int | None = None) -> None:
        self.labels, self.inference, self.features = labels, inference, features

    # Data ----------------------------------------------------------------------------------------------------------

    def _graph(self, x: Any) -> Graph:
        """One input of the user as a graph."""
        raise NotImplementedError

    def prepared(self, X: Any, Y: Any) -> Self:
        """The model with the labels and the number of features of these graphs."""
        refuse_inference(self.inference)
        found = distinct_labels(self.labels, Y)
        widths = {graph.points.shape[1] for graph in self._graphs(X) if len(graph.points)}
        if len(widths) != 1:
            raise InvalidInput(
                f"all nodes need the same number of features, and there must be nodes, got {sorted(widths)}"
            )
        return self._with(labels=found, features=widths.pop())

    def _with(self, **changes: Any) -> Self:
        return type(self)(**{**self.state(), **changes})

    def _graphs(self, X: Any) -> list[Graph]:
        found = []
        for i, x in enumerate(X):
            try:
                found.append(self._graph(x))
            except (ValueError, TypeError) as error:
                raise InvalidInput(f"input {i} of X: {error}") from None
        return found

    def check(self, X: Any, Y: Any = None) -> tuple[list[Graph], list[Codes] | None]:
        """Graphs, and the numbers of the labels of their nodes."""
        graphs = self._graphs(X)
        for i, graph in enumerate(graphs):
            if len(graph.points) and graph.points.shape[1] != self.features:
                raise InvalidInput(
                    f"input {i} of X has {graph.points.shape[1]} features, the model is for {self.features}"
                )
        if Y is None:
            return graphs, None
        structures = list(Y)
        if len(structures) != len(graphs):
            raise InvalidInput(f"X has {len(graphs)} inputs and Y {len(structures)} structures; give one for each")
        return graphs, [self._codes(i, y, graph) for i, (y, graph) in enumerate(zip(structures, graphs, strict=True))]

    def _codes(self, i: int, y: Any, graph: Graph) -> Codes:
        """The numbers of labels, in their shape."""
        given = np.asarray(y)
        if given.shape != graph.shape:
            raise InvalidInput(f"Y[{i}] has shape {given.shape}, its input needs labels of shape {graph.shape}")
        codes, strange = numbered(self.labels, given)
        if strange.any():
            raise InvalidInput(f"Y[{i}] has the label {given[strange][0].item()!r}, which the model does not know")
        return codes

    # Structures ----------------------------------------------------------------------------------------------------

    @property
    def k(self) -> int:
        """Number of labels."""
        return len(self.labels)

    def size(self) -> int:
        """The number of entries of W (d, k) and of the tables (P, k, k)."""
        return (int(self.features or 0) + self.kinds * self.k) * self.k

    def weights(self, w: Vector) -> tuple[Array, Array]:
        """W (d, k) and the tables (P, k, k) in w."""
        tables = self.kinds * self.k * self.k
        return w[: len(w) - tables].reshape(-1, self.k), w[len(w) - tables :].reshape(self.kinds, self.k, self.k)

    def joint_features(self, x: Graph, y: Any) -> Vector:
        """Sums of points by label, and of pairs of labels by kind of edge."""
        tables = np.zeros((self.kinds, self.k, self.k))
        if isinstance(y, Fractional):
            nodes = y.nodes
            np.add.at(tables, x.kinds, y.edges)
        else:
            labels = np.ravel(y)
            nodes = np.eye(self.k)[labels]
            np.add.at(tables, (x.kinds, labels[x.edges[:, 0]], labels[x.edges[:, 1]]), 1.0)
        emissions = x.points.T @ nodes if len(x.points) else np.zeros((int(self.features or 0), self.k))
        return np.concatenate((emissions.ravel(), tables.ravel()))

    def loss(self, y: Codes, other: Any) -> float:
        """The number of wrong labels, or their mass."""
        if isinstance(other, Fractional):
            return max(0.0, y.size - float(other.nodes[np.arange(y.size), y.ravel()].sum()))
        return float(np.count_nonzero(y != other))

    def largest_loss(self, y: Codes) -> float:
        """The number of nodes."""
        return float(y.size)

    def infer(self, w: Vector, x: Graph) -> Codes:
        """The labelling of the best score, or a good one where inference is not exact."""
        return self._inferred(w, x).labels.reshape(x.shape)

    def loss_augmented(self, w: Vector, x: Graph, y: Codes, rescaling: Rescaling) -> Found:
        """The highest labelling or relaxed one, and a bound where it may not be the maximum."""
        losses = np.ones((y.size, self.k))
        losses[np.arange(y.size), y.ravel()] = 0.0
        return answered(self._inferred(w, x, losses), x.shape, lambda: self.score_of(w, x, y))

    def _inferred(self, w: Vector, x: Graph, losses: Array | None = None) -> Inferred:
        W, tables = self.weights(w)
        scores = x.points @ W if len(x.points) else np.zeros((0, self.k))
        scores = scores if losses is None else scores + losses
        return infer(network(scores, tables, x.edges, x.kinds), self.inference, graph=x.forest)

    def decoded(self, y: Any) -> Any:
        """Labels of their numbers."""
        return np.asarray(self.labels)[y]

    def state(self) -> Mapping[str, Any]:
        """Labels, the method of inference and the number of features."""
        return {"labels": self.labels, "inference": self.inference, "features": self.features}


def refuse_inference(method: str) -> None:
    """Refuse a method of inference that there is not."""
    if method not in get_args(Method):
        raise InvalidInput(f"inference must be one of {', '.join(get_args(Method))}, got {method!r}")


def answered(found: Inferred, shape: tuple[int, ...], right: Callable[[], float]) -> Found:
    """What was inferred: labels of a shape, or a relaxed structure; with a bound above the score of the right one."""
    labels = found.labels.reshape(shape)
    if found.exact:
        return Found(labels)
    if found.node_marginals is None or found.edge_marginals is None:
        return Found(labels, found.bound - right())
    return Found(Fractional(found.node_marginals, found.edge_marginals), found.bound - right())


def checked_points(points: Any) -> Array:
    """Finite points (T, d); T may be zero."""
    return np.asarray(
        check_array(points, dtype=np.float64, ensure_min_samples=0, ensure_min_features=0, ensure_2d=True)
    )
