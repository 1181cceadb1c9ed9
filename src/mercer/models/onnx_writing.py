"""A machine as an ONNX model: from points X (n, d) to what predict, decision_function and predict_proba give.

    classifier     label (n,), decision (n,) or as wide as decision_function, probabilities (n, k) where it has them
    regression     prediction (n,) or (n, k)
    OneClassSVM    label (n,) of +1 and -1, decision (n,)

The graph uses plain operators in double precision.  Probabilities of k classes solve (Q + 11') x = 1, p = x / sum x,
by elimination without pivots, which is safe because the matrix is positive definite (see
`mercer.machine.probability`, whose bordered system has the same p).
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import mercer
from mercer.data.files import replacing
from mercer.errors import InvalidInput
from mercer.least_squares import LSSVC, LSSVR
from mercer.machine.pairwise import blocks_of, pairs_of
from mercer.machine.probability import SMALLEST
from mercer.models.model import Model
from mercer.models.onnx_graph import Graph, kernel_node
from mercer.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from mercer.svm.classification import Classifier
from mercer.tuned.estimators import TunedMachine

Array = NDArray[np.float64]

EXPORTED = (SVC, NuSVC, SVR, NuSVR, OneClassSVM, LSSVC, LSSVR)
OPSET = 18
IR_VERSION = 9
LARGEST = 1 << 31  # bytes, the limit of the format


def write_onnx(machine: Any, path: str | os.PathLike[str], *, dtype: str = "float64") -> None:
    """Write a fitted machine, or a Model with its standardisation, as an ONNX model with the input X (n, d).

    dtype : of the input, "float64" or "float32"; the arithmetic is double precision in both cases.
    Needs the package onnx (pip install 'mercer[onnx]').
    """
    model = machine if isinstance(machine, Model) else Model(machine)
    machine = model.machine.best_estimator_ if isinstance(model.machine, TunedMachine) else model.machine
    if type(machine) not in EXPORTED:
        names = ", ".join(kind.__name__ for kind in EXPORTED)
        raise InvalidInput(f"{type(machine).__name__} cannot be exported; give one of {names}")
    if dtype not in ("float64", "float32"):
        raise InvalidInput(f"dtype={dtype!r} must be 'float64' or 'float32'")
    check_is_fitted(machine)
    if machine._kind != "features" or getattr(machine, "basis", None) is not None:
        raise InvalidInput("only machines on rows of features, with a kernel of mercer and no basis, can be exported")
    graph = Graph()
    x = graph.add("Cast", "X", to=graph.onnx.TensorProto.DOUBLE)
    if model.standardise is not None:
        if model.standardise.mean_ is not None:
            x = graph.add("Sub", x, graph.constant(model.standardise.mean_))
        x = graph.add("Div", x, graph.constant(model.standardise.scale_))
    values = _values(graph, machine, x)
    _store(graph, machine, _outputs(graph, machine, values), dtype, Path(path))


def _values(graph: Graph, machine: Any, x: str) -> str:
    """Decision values (n, machines), the first class of a pair positive."""
    points, kernel = machine._vectors, machine.kernel_
    if machine.approximation_ is not None and points.shape[0] == 0:
        raise InvalidInput("random Fourier features have no form in the ONNX graph of an expansion; use landmarks")
    weights, intercept = _columns(machine), machine._intercept_
    if 16 * (points.shape[0] * (points.shape[1] + weights.shape[1])) > LARGEST:
        raise InvalidInput(
            f"{points.shape[0]} points of {points.shape[1]} features do not fit in an ONNX file of 2 GiB"
        )
    V = points.toarray() if sp.issparse(points) else np.asarray(points)
    if len(V) == 0:
        V, weights = np.zeros((1, V.shape[1])), np.zeros((1, weights.shape[1]))
    products = graph.add("MatMul", kernel_node(graph, kernel, x, V), graph.constant(weights))
    return graph.add("Add", products, graph.constant(intercept))


def _columns(machine: Any) -> Array:
    """Coefficients (n_SV, machines); those of pairs are taken from LIBSVM's layout."""
    terms = machine._trained
    dual = machine._dual_coef_ if terms is None else terms.dual
    if not (isinstance(machine, Classifier) and machine._paired) or machine.approximation_ is not None:
        return np.asarray(dual.T)
    first, second = pairs_of(len(machine.classes_))
    blocks = blocks_of(machine._n_support if terms is None else terms.counts)
    columns = np.zeros((dual.shape[1], len(first)))
    for pair, (i, j) in enumerate(zip(first, second)):
        columns[blocks[i], pair] = dual[j - 1, blocks[i]]
        columns[blocks[j], pair] = dual[i, blocks[j]]
    return columns


# Outputs -----------------------------------------------------------------------------------------------------------


def _outputs(graph: Graph, machine: Any, values: str) -> dict[str, tuple[str, Any, tuple[int, ...]]]:
    """Name -> value, NumPy type and width of what the graph gives."""
    if isinstance(machine, OneClassSVM):
        inside = graph.call("Greater", values, 0.0)
        label = graph.add("Where", inside, graph.constant([[1]], np.int64), graph.constant([[-1]], np.int64))
        return {
            "label": (_flat(graph, label), np.int64, ()),
            "decision": (_flat(graph, values), np.float64, ()),
        }
    if not hasattr(machine, "classes_"):
        outputs = len(machine._intercept_)
        flat = outputs == 1 and getattr(machine, "_single", True)
        found = _flat(graph, values) if flat else values
        return {"prediction": (found, np.float64, () if flat else (outputs,))}
    classes = machine.classes_
    code, decision, width = _decision(graph, machine, values)
    label = graph.add("Gather", _labels(graph, classes), code, axis=0)
    kind = np.str_ if classes.dtype.kind in "UO" else classes.dtype
    found_outputs = {"label": (label, kind, ()), "decision": (decision, np.float64, width)}
    if isinstance(machine, Classifier) and machine.probability and machine._probA.size:
        probabilities = _probabilities(graph, machine, values, code)
        found_outputs["probabilities"] = (probabilities, np.float64, (len(classes),))
    return found_outputs


def _flat(graph: Graph, value: str) -> str:
    return graph.add("Squeeze", value, graph.constant([1], np.int64))


def _labels(graph: Graph, classes: NDArray[Any]) -> str:
    if classes.dtype.kind in "UO":
        name = graph.name("labels")
        texts = [str(label).encode() for label in classes]
        graph.constants.append(graph.onnx.helper.make_tensor(name, graph.onnx.TensorProto.STRING, [len(texts)], texts))
        return name
    return graph.constant(classes, classes.dtype)


def _decision(graph: Graph, machine: Any, values: str) -> tuple[str, str, tuple[int, ...]]:
    """Class 0..k-1 (n,), and the decision function with its width."""
    k = len(machine.classes_)
    least_squares = isinstance(machine, LSSVC)
    if k == 2:
        f = _flat(graph, values)
        decision = f if least_squares else graph.add("Neg", f)
        positive = graph.call("Greater", decision if least_squares else f, 0.0)
        second = positive if least_squares else graph.add("Not", positive)
        return graph.add("Cast", second, to=graph.onnx.TensorProto.INT64), decision, ()
    if least_squares or not machine._paired:
        return graph.add("ArgMax", values, axis=1, keepdims=0), values, (k,)
    together = _votes_and_values(graph, values, k)
    if machine.break_ties:
        code = graph.add("ArgMax", together, axis=1, keepdims=0)
    else:
        code = graph.add("ArgMax", _votes(graph, values, k, ties_to_first=False), axis=1, keepdims=0)
    if machine.decision_function_shape == "ovr":
        return code, together, (k,)
    return code, values, (k * (k - 1) // 2,)


def _sides(k: int) -> tuple[Array, Array]:
    """For every pair (rows) a one at its first class, and one at its second."""
    first, second = pairs_of(k)
    identity = np.eye(k)
    return identity[first], identity[second]


def _votes(graph: Graph, values: str, k: int, ties_to_first: bool) -> str:
    """Wins of each class (n, k); a value of zero counts for the first class of the pair or for the second."""
    first, second = _sides(k)
    won = graph.call("GreaterOrEqual" if ties_to_first else "Greater", values, 0.0)
    sign = graph.add("Cast", won, to=graph.onnx.TensorProto.DOUBLE)
    return graph.add(
        "Add", graph.add("MatMul", sign, graph.constant(first - second)), graph.constant(second.sum(axis=0))
    )


def _votes_and_values(graph: Graph, values: str, k: int) -> str:
    """Votes plus s / (3 (|s| + 1)) with s the summed values of a class, as in scikit-learn."""
    first, second = _sides(k)
    s = graph.add("MatMul", values, graph.constant(first - second))
    share = graph.add("Div", s, graph.call("Mul", graph.call("Add", graph.add("Abs", s), 1.0), 3.0))
    return graph.add("Add", _votes(graph, values, k, ties_to_first=True), share)


# Probabilities -----------------------------------------------------------------------------------------------------


def _probabilities(graph: Graph, machine: Any, values: str, code: str) -> str:
    """Class probabilities (n, k) whose largest is that of the predicted class."""
    k = len(machine.classes_)
    z = graph.add("Add", graph.add("Mul", values, graph.constant(machine._probA)), graph.constant(machine._probB))
    wins = graph.add("Sigmoid", graph.add("Neg", z))
    if k > 2 and not machine._paired:
        total = graph.total(wins)
        even = graph.constant(np.full((1, k), 1.0 / k))
        safe = graph.call("Max", total, 1e-300)
        p = graph.add("Where", graph.call("Greater", total, 0.0), graph.add("Div", wins, safe), even)
    else:
        r = graph.add("Clip", wins, graph.constant(SMALLEST), graph.constant(1.0 - SMALLEST))
        p = _coupled(graph, r, k) if k > 2 else graph.add("Concat", r, graph.add("Sub", graph.constant(1.0), r), axis=1)
    return _agreeing(graph, p, code, k)


def _coupled(graph: Graph, r: str, k: int) -> str:
    """P (n, k) from the pairs r (n, k(k-1)/2): x of (Q + 11') x = 1 over its sum, by Gauss-Jordan elimination."""
    first, second = pairs_of(k)
    place, other = np.zeros((len(first), k * k)), np.zeros((len(first), k * k))
    place[np.arange(len(first)), first * k + second] = 1.0
    other[np.arange(len(first)), second * k + first] = 1.0
    # wins[i, j] = r_ij above the diagonal and 1 - r_ji below it.
    wins = graph.add("Add", graph.add("MatMul", r, graph.constant(place - other)), graph.constant(other.sum(axis=0)))
    square = graph.add("Reshape", wins, graph.constant([-1, k, k], np.int64))
    turned = graph.add("Transpose", square, perm=[0, 2, 1])
    diagonal = graph.add("Mul", graph.total(graph.add("Mul", square, square)), graph.constant(np.eye(k)[None]))
    Q = graph.add("Sub", diagonal, graph.add("Mul", square, turned))
    ones = graph.add("Add", graph.call("Mul", graph.total(Q, 2), 0.0), graph.constant(np.ones((1, k, 1))))
    table = graph.add("Concat", graph.call("Add", Q, 1.0), ones, axis=2)
    for step in range(k):
        chosen = np.zeros((1, k, 1))
        chosen[0, step] = 1.0
        row = graph.add("Gather", table, graph.constant([step], np.int64), axis=1)
        row = graph.add("Div", row, graph.add("Gather", row, graph.constant([step], np.int64), axis=2))
        column = graph.add("Gather", table, graph.constant([step], np.int64), axis=2)
        column = graph.add("Sub", column, graph.constant(chosen))
        table = graph.add("Sub", table, graph.add("Mul", column, row))
    x = graph.add("Gather", table, graph.constant(k, np.int64), axis=2)
    p = graph.call("Max", graph.add("Div", x, graph.total(x)), 0.0)
    return graph.add("Div", p, graph.total(p))


def _agreeing(graph: Graph, p: str, code: str, k: int) -> str:
    """Move p the least it must so that the predicted class c is the most probable.

    The classes above c and c itself share their mass: with the others in falling order q_1, q_2, ... that is the
    largest of the means of p_c, q_1, ..., q_t, and nothing may exceed it.
    """
    column = graph.add("Unsqueeze", code, graph.constant([1], np.int64))
    is_chosen = graph.add("Equal", column, graph.constant(np.arange(k)[None], np.int64))
    chosen = graph.add("Cast", is_chosen, to=graph.onnx.TensorProto.DOUBLE)
    others = graph.add("Sub", p, graph.call("Mul", chosen, 2.0))
    falling = graph.name("falling")
    graph.nodes.append(
        graph.onnx.helper.make_node(
            "TopK", [others, graph.constant([k], np.int64)], [falling, graph.name("order")], axis=1
        )
    )
    # The chosen class is last, at p_c - 2: its mass goes into every mean.
    means = np.triu(np.ones((k, k))) / np.arange(2.0, k + 2.0)
    means[:, k - 1] = 0.0
    means[k - 1] = 1.0 / np.arange(2.0, k + 2.0)
    means[k - 1, k - 1] = 1.0
    lifted = graph.add("Add", falling, graph.constant(2.0 * np.eye(k)[k - 1][None]))
    level = graph.add(
        "ReduceMax",
        graph.add("MatMul", lifted, graph.constant(means)),
        graph.constant([1], np.int64),
        keepdims=1,
    )
    return graph.add("Where", is_chosen, level, graph.add("Min", p, level))


# The file ----------------------------------------------------------------------------------------------------------


def _store(
    graph: Graph, machine: Any, outputs: dict[str, tuple[str, Any, tuple[int, ...]]], dtype: str, path: Path
) -> None:
    """Check the graph and write it beside its target, then rename."""
    onnx = graph.onnx
    helper, types = onnx.helper, onnx.TensorProto
    nodes = list(graph.nodes)
    described = []
    for name, (value, kind, width) in outputs.items():
        nodes.append(helper.make_node("Identity", [value], [name]))
        code = types.STRING if kind is np.str_ else helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        described.append(helper.make_tensor_value_info(name, code, ["n", *width]))
    single = types.FLOAT if dtype == "float32" else types.DOUBLE
    given = helper.make_tensor_value_info("X", single, ["n", int(machine.n_features_in_)])
    body = helper.make_graph(nodes, type(machine).__name__, [given], described, graph.constants)
    model = helper.make_model(
        body,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="mercer",
        producer_version=mercer.__version__,
        doc_string=f"{machine!r}",
    )
    if model.ByteSize() >= LARGEST:
        raise InvalidInput("the machine takes more than the 2 GiB of an ONNX file; prune it or use fewer points")
    onnx.checker.check_model(model, full_check=True)
    with replacing(path) as stream:
        stream.write(model.SerializeToString())
