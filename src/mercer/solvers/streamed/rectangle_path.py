"""The rectangle problem for many C at once: one pass for the normal matrix, one eigenproblem, one pass to judge.

With square loss and whitened, centred rows z~_i (see `normal_equations`) the normal matrix is the same for every C up
to a multiple of the identity,

    Z~'V Z~ = Q diag(l) Q',      w(C) = Q diag(1 / (l + 1/C)) Q' Z~'Vy,

so all models of a path cost one pass over the rows and one r x r eigenproblem (B^-1 A'A of Hamers 2004, section 5.4, as
a symmetric problem).  Two judges, each one more pass for the whole path:

* hold-out: the errors of every model on rows of their own;
* leave-one-out, exactly and without retraining: with the leverage h_i = v_i (z~_i'(Z~'VZ~ + ridge I)^-1 z~_i + beta_0),
  beta_0 = 1/N for a free bias, the model fitted without row i errs there by e_i / (1 - h_i).  The landmarks stay as
  they are when a row is left out, even the row that is itself a landmark.

A penalised bias is a further feature, constant 1; a free one is removed by centring.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer import dense
from mercer.arrays import Array
from mercer.errors import InvalidInput
from mercer.kernels import Kernel
from mercer.problems.statement import Bias, checked_bias
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.streamed.blocks import BlockSource, CheckedRows, as_source
from mercer.solvers.streamed.landmark_preconditioner import PIECE_BYTES, Accumulated, accumulate
from mercer.solvers.streamed.rectangle_problem import Precision, Setting


@dataclass(frozen=True, eq=False)
class Errors:
    """Mean squared error (q, k) of each C and output, and the share of rows decided wrongly (q,).

    A row is decided by the sign of its one output, or by the largest of several.
    """

    squared: Array
    wrong: Array


@dataclass(frozen=True, eq=False)
class RectanglePath:
    """Models for every C of `costs` (q,): coefficients (q, m, k) on the landmarks, bias (q, k), and their judges."""

    costs: Array
    coefficients: Array
    bias: Array
    holdout: Errors | None
    leave_one_out: Errors | None
    freedom: Array
    """Effective number of parameters (q,): the trace of the map from targets to values, bias included."""

    @property
    def best(self) -> int:
        """Position of the C with the least squared error, held out where there is such a judge."""
        judge = self.holdout or self.leave_one_out
        if judge is None:
            raise InvalidInput("nothing judges this path: pass holdout= or leave_one_out=True")
        return int(np.argmin(judge.squared.sum(axis=1)))


def solve_path(
    source: Any,
    kernel: Kernel,
    landmarks: Any,
    costs: ArrayLike,
    *,
    y: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    bias: Bias = "free",
    holdout: BlockSource | tuple[Any, ArrayLike] | None = None,
    leave_one_out: bool = False,
    monitor: Monitor | None = None,
    memory: int | str | None = None,
    precision: Precision = "auto",
) -> RectanglePath:
    """Fit every C of `costs`; `holdout` is a source or (X, y) of other rows.  Square loss.

    In float32 the models carry the rounding of the normal matrix, about 1e-5 of their values; `rectangle.solve` with
    `start=` refines one of them.
    """
    C = np.atleast_1d(np.asarray(costs, dtype=np.float64))
    if C.ndim != 1 or not len(C) or not ((C > 0) & np.isfinite(C)).all():
        raise InvalidInput("costs must be a list of positive finite values of C")
    checked_bias(bias)
    with listening(monitor) as watch:
        setting = Setting(
            source, kernel, landmarks, y=y, weights=weights, precision=precision, memory=memory, seed=0, monitor=watch
        )
        work = _Path(setting, C, bias)
        left_out = work.left_out() if leave_one_out else None
        other = None if holdout is None else holdout if isinstance(holdout, BlockSource) else as_source(*holdout)
        held = None if other is None else work.held_out(other)
        a, b = work.models()
        return RectanglePath(C, a, b, held, left_out, work.freedom())


class _Path:
    """The eigenproblem of one setting, and the passes that use it."""

    def __init__(self, setting: Setting, C: Array, bias: Bias) -> None:
        self.setting, self.C, self.bias = setting, C, bias
        k, r = setting.outputs(), setting.whitening.rank
        sums = accumulate(
            setting.columns, setting.whitening, setting.everything(0, 0), Accumulated.empty(r, k), self._between
        )
        self.N = sums.N
        self.centre = sums.s / sums.N if bias == "free" else np.zeros(r)
        self.mean = sums.vY / sums.N if bias == "free" else np.zeros(k)
        G, h = sums.G, sums.ZY
        if bias == "free":
            dense.add_outer(G, self.centre, -sums.N)
            h = h - sums.N * np.outer(self.centre, self.mean)
        elif bias == "penalised":
            G = np.asfortranarray(np.block([[G, np.zeros((r, 1))], [sums.s[None, :], np.full((1, 1), sums.N)]]))
            h = np.vstack([h, sums.vY])
        self.values, self.Q = np.maximum(dense.diagonalise(G), 0.0), G
        self.h = self.Q.T @ h
        # (r', q): 1 / (l + ridge) for every C
        self.inverse = 1.0 / (self.values[:, None] + 1.0 / C[None, :])

    def _between(self, sums: Accumulated) -> bool:
        return self.setting.monitor.go_on()

    def freedom(self) -> Array:
        """Trace of the hat matrix (q,)."""
        return np.asarray(self.values @ self.inverse + (self.bias == "free"))

    def rotated(self) -> Array:
        """Whitened (and, for a penalised bias, extended) coordinates (r', q k) of every model."""
        return np.asarray(self.Q @ (self.inverse[:, :, None] * self.h[:, None, :]).reshape(len(self.values), -1))

    def models(self) -> tuple[Array, Array]:
        """Coefficients (q, m, k) on all landmarks and bias (q, k)."""
        q, k, r = len(self.C), self.h.shape[1], self.setting.whitening.rank
        W = self.rotated()
        a = self.setting.full(W[:r]).reshape(self.setting.m, q, k).transpose(1, 0, 2)
        constant = W[r].reshape(q, k) if self.bias == "penalised" else np.zeros((q, k))
        return np.ascontiguousarray(a), self.mean - (self.centre @ W[:r]).reshape(q, k) + constant

    def held_out(self, source: BlockSource) -> Errors:
        """Errors of every model on other rows."""
        a, b = self.models()
        m, k = self.setting.m, self.h.shape[1]
        kept = self.setting.whitening.kept
        flat = a.transpose(1, 0, 2).reshape(m, -1)[kept]
        judge = _Judge(len(self.C), k)
        for _, X, Y, _ in CheckedRows(source).blocks():
            for part, A in self._pieces(X):
                values = (A @ flat.astype(A.dtype)).astype(np.float64).reshape(-1, len(self.C), k) + b
                judge.add(values, Y[part], np.ones(A.shape[0]))
        return judge.errors()

    def left_out(self) -> Errors:
        """Leave-one-out errors of every model at the training rows."""
        setting, q, k = self.setting, len(self.C), self.h.shape[1]
        r = setting.whitening.rank
        dtype = setting.dtype
        T = setting.whitening.backward(self.Q[:r]).astype(dtype)
        offset = self.Q[r] if self.bias == "penalised" else -self.centre @ self.Q[:r]
        flat = (self.inverse[:, :, None] * self.h[:, None, :]).reshape(len(self.values), -1)
        beta = 1.0 / self.N if self.bias == "free" else 0.0
        judge = _Judge(q, k)
        for _, X, Y, v, _ in setting.everything(0, 0):
            for part, A in self._pieces(X):
                features = (A @ T).astype(np.float64) + offset
                values = (features @ flat).reshape(-1, q, k) + self.mean
                leverage = v[part, None] * (features**2 @ self.inverse + beta)
                errors = (Y[part, None, :] - values) / np.maximum(1.0 - leverage, 1e-12)[:, :, None]
                judge.add(Y[part, None, :] - errors, Y[part], v[part])
        return judge.errors()

    def _pieces(self, X: Any) -> Any:
        """Slices of rows and their kernel values at the landmarks."""
        columns = self.setting.columns
        step = max(64, min(8192, PIECE_BYTES // (8 * columns.m)))
        room = np.empty((step, columns.m), columns.dtype)
        for first in range(0, X.shape[0], step):
            part = slice(first, min(X.shape[0], first + step))
            yield part, columns.fill(X[part], room)


class _Judge:
    """Running sums of errors for q values of C and k outputs; a row of weight zero does not count."""

    def __init__(self, q: int, k: int) -> None:
        self.squares, self.wrong, self.weight = np.zeros((q, k)), np.zeros(q), 0.0

    def add(self, values: Array, Y: Array, v: Array) -> None:
        """Take in values (rows, q, k) against Y (rows, k) with weights v (rows,)."""
        self.squares += np.einsum("i,iqk->qk", v, (values - Y[:, None, :]) ** 2)
        if Y.shape[1] == 1:
            mistaken = (values[:, :, 0] > 0) != (Y > 0)
        else:
            mistaken = values.argmax(axis=2) != Y.argmax(axis=1)[:, None]
        self.wrong += v @ mistaken
        self.weight += float(v.sum())

    def errors(self) -> Errors:
        """Means over the rows taken in."""
        return Errors(self.squares / self.weight, self.wrong / self.weight)
