"""Errors of coded multiclass machines: leave-one-out and training-error bounds.

A code matrix M (classes, machines) has entries +1, -1 and 0 (the class is not used by that machine).  Machine i has
output f_i(x); the class of x is the row r of least total loss sum_i L(M_ri f_i(x)) (loss-based decoding), or of least
Hamming distance, sum_i (1 - sign(M_ri f_i))/2.

*Leave-one-out* (Rifkin 2002, section 4.4.1).  The output that machine i gives to point j when trained without it lies
between two ends (see `leave_one_out.interval`).  Where the thesis gives one end to all rivals at once, every rival r
here gets, machine by machine, the end that helps it most,

    D_r = sum_i min over both ends v of  L(M_ri v) - L(m_i v),         m_i = M_(y_j) i,

which the bound needs when M has zeros; and a machine that never used the point keeps its output exactly.  Point j can
be a leave-one-out error only if some D_r <= 0.  Two ends suffice for convex losses that fall, and for convex symmetric
ones of residuals: against M_ri = -m_i the difference is monotone in v, against M_ri = 0 it is concave.

*Training errors* (Allwein, Schapire and Singer 2000; Rifkin 2002, section 4.2.2, with the number F of machines where
the thesis prints the number of classes).  With eps the mean loss over points and machines (L(0) where M is 0) and rho
the least distance of two rows, the number of mistakes, ties counted, is at most

    n F eps / (rho L(0))        loss-based decoding, if (L(z) + L(-z))/2 >= L(0) >= 0 (every convex loss),
    2 n F eps / (rho L(0))      Hamming decoding, if L(z) >= L(0) >= 0 for z < 0.
"""

from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput
from mercer.losses import (
    EpsilonInsensitive,
    Huber,
    Loss,
    MarginLoss,
    Square,
    SquaredEpsilonInsensitive,
    ZeroOne,
)
from mercer.selection.bounds.leave_one_out import OPTIMAL, Array, Mask, interval
from mercer.selection.bounds.result import Bound

Decoder = Literal["loss", "hamming"]

# Losses whose difference between two rows has its least value at an end of every interval.
ENDS_SUFFICE = (MarginLoss, Square, EpsilonInsensitive, SquaredEpsilonInsensitive, Huber)


def one_versus_all(classes: int) -> Array:
    """Code matrix of one machine for each class: +1 on the diagonal, -1 elsewhere."""
    return 2.0 * np.eye(classes) - 1.0


def row_distance(code: ArrayLike) -> float:
    """Least distance rho = min over two rows of sum_i (1 - M_ri M_si)/2; a zero counts one half."""
    M = checked_code(code)
    return min((float(np.sum(1.0 - M[r] * M[s])) / 2 for r, s in combinations(range(len(M)), 2)), default=np.inf)


def decode(code: ArrayLike, outputs: ArrayLike) -> NDArray[np.intp]:
    """Class (n,) of least total square loss sum_i (1 - M_ri f_i)^2 for outputs (n, machines)."""
    M, f = np.asarray(code, dtype=np.float64), np.asarray(outputs, dtype=np.float64)
    # (1 - M f)^2 = 1 - 2 M f + M^2 f^2 : two products instead of an (n, classes, machines) array.
    return np.asarray(np.argmin(f**2 @ (M**2).T - 2.0 * f @ M.T, axis=1), dtype=np.intp)


def possible_class_errors(
    code: ArrayLike,
    labels: ArrayLike,
    f: ArrayLike,
    c: ArrayLike,
    diagonal: ArrayLike,
    *,
    loss: Loss | None = None,
) -> Mask:
    """Points (n,) that may be leave-one-out errors of the coded classifier.

    code M (classes, machines); labels (n,) row numbers of M; f and c (n, machines) the outputs and signed coefficients
    of the machines, c zero where a machine does not use the point; diagonal (n,) of the kernel matrix; loss: the one
    that decodes, the square by default.
    """
    M = checked_code(code)
    y = np.asarray(labels, dtype=np.intp)
    decoding = Square() if loss is None else loss
    stays, moves = interval(f, c, diagonal)
    own = M[y]  # (n, machines): m_i, the target of point j in machine i
    moves = np.where(own == 0, stays, moves)
    costs = [decoding.value(1.0, own * ends) for ends in (stays, moves)]
    possible = np.zeros(len(y), dtype=np.bool_)
    for rival in range(M.shape[0]):
        gains = [decoding.value(1.0, M[rival] * ends) - cost for ends, cost in zip((stays, moves), costs, strict=True)]
        possible |= (np.sum(np.minimum(*gains), axis=1) <= 0) & (y != rival)
    return possible


def coded_leave_one_out(
    code: ArrayLike,
    labels: ArrayLike,
    f: ArrayLike,
    c: ArrayLike,
    diagonal: ArrayLike,
    *,
    loss: Loss | None = None,
    free_bias: bool = False,
) -> Bound:
    """Leave-one-out error rate of a coded classifier of least-squares or support vector machines."""
    possible = possible_class_errors(code, labels, f, c, diagonal, loss=loss)
    unknown = loss is not None and not isinstance(loss, ENDS_SUFFICE)
    return Bound.under(
        float(np.mean(possible)),
        ("no machine has a free bias", free_bias),
        ("loss-based decoding with a falling loss or a symmetric one of residuals", unknown),
        "C stays the same when a point is left out",
        OPTIMAL,
        details={"possible": possible},
    )


def training_error(
    code: ArrayLike, labels: ArrayLike, outputs: ArrayLike, *, loss: Loss | None = None, decoder: Decoder = "loss"
) -> Bound:
    """Training error rate of the coded classifier, from the losses of its machines alone.

    code M (classes, machines), labels (n,) row numbers, outputs (n, machines), loss L: the square by default.
    """
    if decoder not in ("loss", "hamming"):
        raise InvalidInput(f"decoder must be 'loss' or 'hamming'; it is {decoder!r}.")
    M = checked_code(code)
    measure = Square() if loss is None else loss
    z = M[np.asarray(labels, dtype=np.intp)] * np.asarray(outputs, dtype=np.float64)
    origin = float(measure.value(1.0, 0.0))
    average = float(np.mean(measure.value(1.0, z)))
    distance = row_distance(M)
    scale = distance * origin / (1.0 if decoder == "loss" else 2.0)
    return Bound.under(
        M.shape[1] * average / scale if scale > 0 else np.inf,
        ("the loss is convex and not negative", decoder == "loss" and isinstance(measure, ZeroOne)),
        ("L(0) is positive", not origin > 0),
        ("no two rows of the code are equal", not distance > 0),
        details={"mean_loss": average, "row_distance": distance},
    )


def checked_code(code: ArrayLike) -> Array:
    """The code as a matrix of +1, -1 and 0."""
    M = np.asarray(code, dtype=np.float64)
    if M.ndim != 2 or not np.all(np.isin(M, (-1.0, 0.0, 1.0))):
        raise InvalidInput("code must be a matrix (classes, machines) that holds +1, -1 and 0 only.")
    return M
