"""One statement for all support-vector problems: loss, targets, costs and sums become a quadratic program.

    min over f0, b, beta of   1/2 ||f0||^2 + sum_i C_i l(y_i, f_i),       f = f0 + b + sum_k beta_k psi_k

With s_i = -C_i u_i the conjugate of C_i l at u_i is, with the sides (bound, offset, ridge) of `mercer.losses`,

    (offset - y_i) s + ridge/(2 C_i) s^2     on 0 <= s <= C_i bound,         f too low, the side that lets s rise
    (-offset - y_i) s + ridge/(2 C_i) s^2    on -C_i bound <= s <= 0,        f too high, with the other side

which is box, linear term and ridge of the signed variables.  Each direction has a variable of its own where both are
open and differ; otherwise one signed variable serves both, as for the hinge, quantile and Huber losses.  Every function
outside the norm adds an equality: a bias makes all variables sum to zero, a free margin or tube fixes the sums of the
rising and of the falling ones, a basis function psi_k asks for sum_j s_j psi_k(x_j) = 0 (Schoelkopf and Smola 2002,
section 10.3, with the signs corrected).
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mercer.arrays import Vector
from mercer.errors import InvalidInput
from mercer.losses import Loss
from mercer.problems.program import GramLike, QuadraticProgram

Bias = Literal["free", "none", "penalised"]


class Costs(NamedTuple):
    """What mistakes in each direction are multiplied by, C w_i (n,) each: of f too low, and of f too high."""

    rising: Vector
    falling: Vector

    @classmethod
    def of(cls, C: float, weights: ArrayLike | None, n: int) -> "Costs":
        """C times weights (n,), or (n, 2) with one column for each direction; a weight of zero leaves the point out."""
        given = None if weights is None else np.asarray(weights, dtype=np.float64)
        if given is None or given.ndim != 2:
            both = weighted(C, given, n)
            return cls(both, both)
        if given.shape != (n, 2):
            raise InvalidInput(f"weights must have shape ({n},), or ({n}, 2) for each direction, got {given.shape}")
        return cls(*weighted(C, given.T.ravel(), 2 * n).reshape(2, n))


def stated(
    gram: GramLike,
    loss: Loss,
    y: Vector,
    costs: Costs,
    sums: Sequence[float] = (0.0,),
    *,
    constant: float = 0.0,
    basis: Vector | None = None,
) -> QuadraticProgram:
    """The program of `loss` at targets y (n,).

    `sums` are what the variables add up to: () nothing fixed, one number for all together, two for the rising and the
    falling ones; `constant` is added to all kernel values, `basis` (n, q) are functions outside the norm.
    """
    n, (low, high) = y.size, loss.sides
    lower, upper = loss.dual_box(y, costs.rising)
    if costs.falling is not costs.rising:
        lower = loss.dual_box(y, costs.falling)[0]
    ridges = _divided(low.ridge, costs.rising), _divided(high.ridge, costs.falling)
    agree = low.offset == high.offset == 0.0 and np.array_equal(*ridges)
    if loss.classification or (agree and len(sums) < 2):
        point, falls = np.arange(n), y < 0
        linear = np.where(falls, -high.offset - y, low.offset - y)
        ridge = np.where(falls, ridges[1], ridges[0])
    else:
        first, falls, zero = np.arange(n), np.zeros(2 * n, dtype=np.bool_), np.zeros(n)
        point, falls[n:] = np.concatenate((first, first)), True
        linear, ridge = np.concatenate((low.offset - y, -high.offset - y)), np.concatenate(ridges)
        lower, upper = np.concatenate((zero, lower)), np.concatenate((upper, zero))
    d = np.array(sums, dtype=np.float64)
    groups = falls.astype(np.intp) if d.size == 2 else np.full(point.size, d.size - 1, dtype=np.intp)
    program = QuadraticProgram(gram, point, lower, upper, linear, ridge, groups, d, None, constant)
    return program if basis is None else program.with_rows(basis[point].T)


def _divided(ridge: float, costs: Vector) -> Vector:
    """Ridge / cost, 0 for points of weight zero."""
    divided = np.zeros(costs.size)
    return np.divide(ridge, costs, out=divided, where=costs > 0) if ridge else divided


def positive(name: str, value: float) -> float:
    """A finite number > 0."""
    value = float(value)
    if not 0.0 < value < np.inf:
        raise InvalidInput(f"{name} must be positive and finite, got {value}")
    return value


def checked_bias(bias: Bias) -> Bias:
    """A bias outside the norm, none, or one that joins it as 1/2 b^2."""
    if bias not in ("free", "none", "penalised"):
        raise InvalidInput(f"bias must be 'free', 'none' or 'penalised', got {bias!r}")
    return bias


def checked_size(gram: GramLike) -> int:
    """Size n of a square, non-empty Gram matrix."""
    n = int(gram.shape[0])
    if n == 0 or len(gram.shape) != 2 or int(gram.shape[1]) != n:
        raise InvalidInput(f"gram must be square and not empty, got shape {tuple(gram.shape)}")
    return n


def vector(name: str, values: ArrayLike, n: int) -> Vector:
    """A finite float64 vector (n,)."""
    out = np.ascontiguousarray(values, dtype=np.float64)
    if out.shape != (n,):
        raise InvalidInput(f"{name} must have shape ({n},), one entry for each point, got {out.shape}")
    # One sum shows NaN and infinity; only a sum that overflows needs the second look.
    if not np.isfinite(out.sum()) and not np.isfinite(out).all():
        raise InvalidInput(f"{name} contains NaN or infinite values: remove or impute them")
    return out


def labels(y: ArrayLike, n: int) -> Vector:
    """Class labels (n,), each -1 or +1."""
    out = vector("y", y, n)
    if not (np.abs(out) == 1.0).all():
        raise InvalidInput("y must hold the class labels -1 and +1 only: encode other labels first")
    return out


def weighted(C: float, weights: ArrayLike | None, n: int) -> Vector:
    """Costs C w_i (n,)."""
    if weights is None:
        return np.full(n, C)
    w = vector("weights", weights, n)
    if (w < 0).any():
        raise InvalidInput("weights must not be negative")
    if not w.any():
        raise InvalidInput("weights are all zero: no point is left to learn from")
    return C * w


def basis_columns(basis: ArrayLike | None, n: int) -> Vector | None:
    """Values (n, q) of basis functions."""
    if basis is None:
        return None
    psi = np.ascontiguousarray(basis, dtype=np.float64)
    if psi.ndim != 2 or psi.shape[0] != n:
        raise InvalidInput(f"basis must have shape ({n}, q), one row for each point, got {psi.shape}")
    if not np.isfinite(psi).all():
        raise InvalidInput("basis contains NaN or infinite values")
    return psi
