"""Which points can be leave-one-out errors of a least-squares classifier, from its outputs alone.

Let (K + r I) c = y and f = K c, no free bias.  Leaving point i out moves its own output to a value between f_i and
f_i - c_i K_ii (Rifkin 2002, section 3.3), so a leave-one-out error can only be a point with

    y_i (f_i - c_i K_ii) <= 0      <=>      y_i f_i <= K_ii / (K_ii + r).

Only f is needed, whatever solver found it.  Several classes share the argument through a code matrix M (classes,
machines) with entries +1, -1 and 0 (the class is not used by that machine), decoded by the smallest total square loss
sum_i (1 - M_ri f_i)^2 over the machines (Rifkin 2002, section 4.4).  Where the thesis gives one end of each interval
to all rivals at once, every rival r here gets the end that helps it most, which the bound needs when M has zeros; and
a machine that never used the point keeps its output exactly.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput
from mercer.selection.bordered import Array

Mask = NDArray[np.bool_]


def possible_errors(y: ArrayLike, f: ArrayLike, diagonal: ArrayLike, ridge: ArrayLike) -> Mask:
    """Points (n,) that may be leave-one-out errors of a binary machine: y f <= K/(K + r).

    y (n,) of +-1, f (n,) outputs at the training points, diagonal (n,) of the kernel matrix, ridge: r, or r/w_i (n,).
    """
    K, r = np.asarray(diagonal, dtype=np.float64), np.asarray(ridge, dtype=np.float64)
    threshold = np.divide(K, K + r, out=np.zeros(np.broadcast(K, r).shape), where=np.isfinite(r))
    return np.asarray(np.asarray(y) * np.asarray(f) <= threshold)


def error_bound(y: ArrayLike, f: ArrayLike, diagonal: ArrayLike, ridge: ArrayLike) -> float:
    """Upper bound on the leave-one-out error rate of a binary machine without free bias."""
    return float(np.mean(possible_errors(y, f, diagonal, ridge)))


def interval(f: ArrayLike, c: ArrayLike, diagonal: ArrayLike) -> tuple[Array, Array]:
    """Ends of the interval that holds each leave-one-out output: f and f - c K_ii, both (n, machines)."""
    outputs = np.asarray(f, dtype=np.float64)
    return outputs, outputs - np.asarray(c, dtype=np.float64) * np.asarray(diagonal, dtype=np.float64)[:, None]


def one_versus_all(classes: int) -> Array:
    """Code matrix of one machine for each class: +1 on the diagonal, -1 elsewhere."""
    return 2.0 * np.eye(classes) - 1.0


def decode(code: ArrayLike, outputs: ArrayLike) -> NDArray[np.intp]:
    """Class (n,) of least total square loss sum_i (1 - M_ri f_i)^2 for outputs (n, machines)."""
    M, f = np.asarray(code, dtype=np.float64), np.asarray(outputs, dtype=np.float64)
    # (1 - M f)^2 = 1 - 2 M f + M^2 f^2 : two products instead of an (n, classes, machines) array.
    return np.asarray(np.argmin(f**2 @ (M**2).T - 2.0 * f @ M.T, axis=1), dtype=np.intp)


def possible_class_errors(code: ArrayLike, labels: ArrayLike, f: ArrayLike, c: ArrayLike, diagonal: ArrayLike) -> Mask:
    """Points (n,) that may be leave-one-out errors of the coded classifier.

    code M (classes, machines); labels (n,) row numbers of M; f and c (n, machines) the outputs and coefficients of
    the machines, c zero where a machine does not use the point; diagonal (n,) of the kernel matrix.
    """
    M = np.asarray(code, dtype=np.float64)
    y = np.asarray(labels, dtype=np.intp)
    if not np.all(np.isin(M, (-1.0, 0.0, 1.0))):
        raise InvalidInput("code must hold +1, -1 and 0 only.")
    stays, moves = interval(f, c, diagonal)
    own = M[y]  # (n, machines): m_i, the target of point j in machine i
    moves = np.where(own == 0, stays, moves)
    possible = np.zeros(len(y), dtype=np.bool_)
    for rival in range(M.shape[0]):
        gain = np.sum(np.minimum(_gain(M[rival], own, stays), _gain(M[rival], own, moves)), axis=1)
        possible |= (gain <= 0) & (y != rival)
    return possible


def _gain(rival: Array, own: Array, outputs: Array) -> Array:
    """L(M_ri v) - L(m_i v) for the square loss: negative where the output v favours the rival."""
    return np.asarray((1.0 - rival * outputs) ** 2 - (1.0 - own * outputs) ** 2)
