"""Kernels as nodes of an ONNX graph, in double precision and plain operators.

With V the points of the expansion (m, d), moved together with x by their mean where only differences count,

    product   t = x V'                 linear t, polynomial (gamma t + offset)^degree, sigmoid tanh(gamma t + offset)
    distance  q = max(0, |x|^2 + |v|^2 - 2 t)      Gaussian exp(-gamma q), Matern and exponential of sqrt(q), ...

and sums, products, multiples and powers of kernels are sums, products, multiples and powers of nodes.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, MissingDependency
from mercer.kernels import Constant, Exp, Kernel, Laplacian, Product, Profile, Raised, Restricted, Scaled, Sum

Array = NDArray[np.float64]


def import_onnx() -> Any:
    """The package onnx, or an error that says how to get it."""
    try:
        import onnx
    except ImportError:
        raise MissingDependency("writing ONNX needs the package onnx: pip install 'mercer[onnx]'") from None
    return onnx


class Graph:
    """Nodes and constants of a graph that is being built; values are known by their names."""

    def __init__(self) -> None:
        self.onnx = import_onnx()
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._count = 0

    def name(self, kind: str) -> str:
        """A name not used before."""
        self._count += 1
        return f"{kind}_{self._count}"

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output and return the name of that."""
        output = self.name(operator)
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def constant(self, values: Any, dtype: Any = np.float64) -> str:
        """Add a constant array."""
        array = np.ascontiguousarray(values, dtype=dtype).reshape(np.shape(values))
        name = self.name("constant")
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def call(self, operator: str, value: str, number: float) -> str:
        """Combine a value with a number: Add, Mul, Pow, Max, Greater, ..."""
        return self.add(operator, value, self.constant(number))

    def total(self, value: str, axis: int = 1) -> str:
        """Sum over an axis, which stays with size 1."""
        return self.add("ReduceSum", value, self.constant([axis], np.int64), keepdims=1)


def kernel_node(graph: Graph, kernel: Kernel, x: str, V: Array) -> str:
    """The values k(x_i, v_j), (n, m), of points named `x` (n, d) against V (m, d)."""
    if isinstance(kernel, (Sum, Product)):
        left, right = (kernel_node(graph, part, x, V) for part in (kernel.left, kernel.right))
        return graph.add("Add" if isinstance(kernel, Sum) else "Mul", left, right)
    if isinstance(kernel, Scaled):
        return graph.call("Mul", kernel_node(graph, kernel.kernel, x, V), float(kernel.factor))
    if isinstance(kernel, Raised):
        return graph.call("Pow", kernel_node(graph, kernel.kernel, x, V), float(kernel.exponent))
    if isinstance(kernel, Exp):
        return graph.add("Exp", kernel_node(graph, kernel.kernel, x, V))
    if isinstance(kernel, Restricted):
        columns = np.asarray(kernel.columns, dtype=np.int64)
        chosen = graph.add("Gather", x, graph.constant(columns, np.int64), axis=1)
        return kernel_node(graph, kernel.kernel, chosen, V[:, columns])
    if isinstance(kernel, Constant):
        zero = graph.add("MatMul", x, graph.constant(np.zeros(V.T.shape)))
        return graph.call("Add", zero, kernel.value)
    if isinstance(kernel, Laplacian):
        return _laplacian(graph, kernel, x, V)
    profile = kernel.profile
    if profile is None:
        raise InvalidInput(
            f"{kernel!r:.100} has no form in ONNX here; export a machine with a linear, polynomial, sigmoid, Gaussian, "
            "exponential, Laplacian, Matern (nu = 3/2, 5/2) or rational quadratic kernel, or sums and products of them"
        )
    if profile.scale is not None:
        x, V = graph.add("Mul", x, graph.constant(profile.scale)), V * profile.scale
    if profile.base == "product":
        return _of_product(graph, profile, x, V)
    return _of_distance(graph, profile, _squared_distances(graph, x, V))


def _squared_distances(graph: Graph, x: str, V: Array) -> str:
    """|x - v|^2; both are moved by the mean of V first, which leaves more digits to the difference."""
    middle = V.mean(axis=0) if len(V) else np.zeros(V.shape[1])
    x, V = graph.add("Sub", x, graph.constant(middle)), V - middle
    squares = graph.add("Add", graph.total(graph.add("Mul", x, x)), graph.constant(np.einsum("ij,ij->i", V, V)[None]))
    q = graph.add("Sub", squares, graph.add("MatMul", x, graph.constant(2.0 * V.T)))
    return graph.call("Max", q, 0.0)


def _of_product(graph: Graph, profile: Profile, x: str, V: Array) -> str:
    """Gamma goes into the points: a runtime may fuse a product and a factor, and then round the factor to float32."""
    if profile.name == "linear":
        return graph.add("MatMul", x, graph.constant(V.T))
    gamma, offset = profile.parameters[:2]
    inner = graph.call("Add", graph.add("MatMul", x, graph.constant(gamma * V.T)), offset)
    return graph.add("Tanh", inner) if profile.name == "sigmoid" else graph.call("Pow", inner, profile.parameters[2])


def _of_distance(graph: Graph, profile: Profile, q: str) -> str:
    p = profile.parameters
    if profile.name == "gaussian":
        return graph.add("Exp", graph.call("Mul", q, -p[0]))
    if profile.name == "rational_quadratic":
        alpha, sigma = p
        return graph.call("Pow", graph.call("Add", graph.call("Mul", q, 0.5 / (alpha * sigma**2)), 1.0), -alpha)
    factor = {"exponential": 1.0, "matern32": math.sqrt(3.0), "matern52": math.sqrt(5.0)}.get(profile.name)
    if factor is None:
        raise InvalidInput(f"the kernel {profile.name} has no form in ONNX here")
    r = graph.call("Mul", graph.add("Sqrt", q), factor * p[0])
    decay = graph.add("Exp", graph.add("Neg", r))
    if profile.name == "exponential":
        return decay
    polynomial = graph.call("Add", r, 1.0)
    if profile.name == "matern52":
        polynomial = graph.add("Add", polynomial, graph.call("Mul", graph.add("Mul", r, r), 1.0 / 3.0))
    return graph.add("Mul", polynomial, decay)


def _laplacian(graph: Graph, kernel: Laplacian, x: str, V: Array) -> str:
    """exp(-|x - v|_1 / sigma) by differences (n, m, d), which takes memory."""
    widths = np.broadcast_to(np.asarray(kernel.sigma, dtype=np.float64), (V.shape[1],))
    wide = graph.add("Unsqueeze", x, graph.constant([1], np.int64))
    apart = graph.add("Abs", graph.add("Sub", wide, graph.constant(V[None])))
    distance = graph.add("MatMul", apart, graph.constant(1.0 / widths))
    return graph.add("Exp", graph.add("Neg", distance))
