"""Decoders that are learnt from outputs of the machines at points they were not trained on.

z_i (F,) are the outputs at point i of machines trained without it: in-sample outputs would make every machine look
right, and the decoder would trust the one that overfits most.

Stacking, with Y_i the indicator of the class of point i, decides for argmax V'z; V = M' is linear decoding by the code:

    min over V (F, k) of  sum_i || Y_i - V'z_i ||^2 + penalty ||V||^2 ,      V = (Z'Z + penalty I)^-1 Z'Y

Continuous codes (Crammer and Singer 2002; Rifkin 2002, section 4.2.2) are a real code matrix M (k, F) with a margin:

    min  penalty ||M||_p + sum_i xi_i      subject to   z_i'(M_{y_i} - M_r) >= 1 - xi_i  for r != y_i,   xi >= 0

Norms are entrywise over all of M.  The best discrete code is NP-hard to find; with real entries

    p = 1     a linear program with M = U - V, U, V >= 0
    p = inf   a linear program with one bound s >= |M_rk|
    p = 2     penalty ||M||^2, a quadratic program: the machine of Crammer and Singer on the features z
"""

from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog

from mercer import dense
from mercer.errors import InvalidInput, MercerError
from mercer.gram import Gram
from mercer.kernels import Linear
from mercer.machine.outcome import warn_if_stopped
from mercer.problems.multiclass import CrammerSinger
from mercer.solvers.multiclass import decomposition

Array = NDArray[np.float64]
Norm = Literal["1", "2", "inf"]

MOST_VISITS = 20_000  # steps on each point of the quadratic program, after which the code is kept as it is


def stack(
    outputs: ArrayLike, labels: ArrayLike, classes: int, penalty: float = 1.0, weights: ArrayLike | None = None
) -> Array:
    """V (F, k) for outputs Z (n, F) and classes 0..k-1 `labels` (n,); weights (n,) of the points."""
    if not penalty > 0:
        raise InvalidInput(f"penalty must be positive, got {penalty!r}")
    Z = np.asarray(outputs, dtype=np.float64)
    Y = np.eye(classes)[np.asarray(labels, dtype=np.intp)]
    if weights is not None:
        root = np.sqrt(np.asarray(weights, dtype=np.float64))[:, None]
        Z, Y = root * Z, root * Y
    n, F = Z.shape
    if n >= F:
        return dense.solve_positive(Z.T @ Z + penalty * np.eye(F), Z.T @ Y)
    # (Z'Z + p I)^-1 Z' = Z' (ZZ' + p I)^-1
    return np.asarray(Z.T @ dense.solve_positive(Z @ Z.T + penalty * np.eye(n), Y))


def continuous_code(
    outputs: ArrayLike,
    labels: ArrayLike,
    classes: int,
    *,
    norm: Norm = "2",
    penalty: float = 1.0,
    weights: ArrayLike | None = None,
) -> Array:
    """M (k, F) for outputs (n, F) and classes 0..k-1 `labels` (n,); weights (n,) multiply the slacks."""
    if not penalty > 0:
        raise InvalidInput(f"penalty must be positive, got {penalty!r}")
    Z, y = np.ascontiguousarray(outputs, dtype=np.float64), np.asarray(labels, dtype=np.intp)
    w = np.ones(len(Z)) if weights is None else np.asarray(weights, dtype=np.float64)
    if norm == "2":
        return _quadratic(Z, y, classes, penalty, w)
    if norm in ("1", "inf"):
        return _linear(Z, y, classes, norm, penalty, w)
    raise InvalidInput(f"norm={norm!r} is not '1', '2' or 'inf'")


def _margins(Z: Array, y: NDArray[np.intp], k: int) -> tuple[sp.csr_matrix, NDArray[np.intp]]:
    """Rows z_i'(M_r - M_{y_i}) over vec(M), r != y_i, and the point of each row."""
    n, F = Z.shape
    point = np.repeat(np.arange(n), k - 1)
    rival = np.concatenate([np.delete(np.arange(k), c) for c in y]) if n else np.empty(0, dtype=np.intp)
    rows = np.repeat(np.arange(n * (k - 1)), 2 * F)
    there = rival[:, None] * F + np.arange(F)
    here = y[point][:, None] * F + np.arange(F)
    columns = np.concatenate([there, here], axis=1).ravel()
    values = np.concatenate([Z[point], -Z[point]], axis=1).ravel()
    return sp.csr_matrix((values, (rows, columns)), shape=(n * (k - 1), k * F)), point


def _linear(Z: Array, y: NDArray[np.intp], k: int, norm: str, penalty: float, w: Array) -> Array:
    """The linear programs, by HiGHS."""
    n, F = Z.shape
    G, point = _margins(Z, y, k)
    slack = sp.csr_matrix((-np.ones(len(point)), (np.arange(len(point)), point)), shape=(len(point), n))
    size = k * F
    if norm == "1":
        A = sp.hstack([G, -G, slack])
        cost = np.concatenate([np.full(2 * size, penalty), w])
        right = np.full(len(point), -1.0)
        bounds: list[tuple[int | None, None]] = [(0, None)] * (2 * size + n)
    else:
        eye, ones = sp.identity(size, format="csr"), -np.ones((size, 1))
        A = sp.vstack(
            [
                sp.hstack([G, slack, sp.csr_matrix((len(point), 1))]),
                sp.hstack([eye, sp.csr_matrix((size, n)), ones]),
                sp.hstack([-eye, sp.csr_matrix((size, n)), ones]),
            ]
        )
        cost = np.concatenate([np.zeros(size), w, [penalty]])
        right = np.concatenate([np.full(len(point), -1.0), np.zeros(2 * size)])
        free: list[tuple[int | None, None]] = [(None, None)] * size
        bounds = free + [(0, None)] * (n + 1)
    found = linprog(cost, A_ub=A.tocsr(), b_ub=right, bounds=bounds, method="highs")
    if found.x is None:
        raise MercerError(f"the linear program of the continuous code was not solved: {found.message}")
    M = found.x[:size] - found.x[size : 2 * size] if norm == "1" else found.x[:size]
    return np.asarray(M.reshape(k, F))


def _quadratic(Z: Array, y: NDArray[np.intp], k: int, penalty: float, w: Array) -> Array:
    """The machine of Crammer and Singer without bias on the features Z, at C = 1/(2 penalty)."""
    problem = CrammerSinger(Gram(Linear(), Z, access="rows"), y, 0.5 / penalty, w, "none", k=k)
    most = MOST_VISITS * len(Z)
    found = decomposition.solve(problem, tol=1e-6, max_iter=most)
    warn_if_stopped([found], most, None)
    return np.asarray(np.asarray(found.coefficients).T @ Z)
