"""What all problems share: checking of input, and certificates from the quadratic program.

A problem is data: it builds its quadratic program once and says how the multipliers of the equalities translate into
the bias and the other free parameters of the machine.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import Infeasible, InvalidInput
from mercer.losses import Loss
from mercer.problems.certificate import Certificate
from mercer.problems.program import GramLike, Index, QuadraticProgram

Vector = NDArray[np.float64]
Bias = Literal["free", "none", "penalised"]
Named = dict[str, float | Vector]


class Problem:
    """Base of the zoo: a Gram matrix (n, n), weights (n,), and the program they give."""

    name: ClassVar[str] = "problem"
    loss: Loss | None = None
    """Cost of one point; None where a free parameter (rho, epsilon) is part of it."""
    box: Vector
    """C w_i (n,): the most a point may weigh."""

    def __init__(self, gram: GramLike, C: float, bias: Bias, program: QuadraticProgram) -> None:
        self.gram = gram
        self.C = C
        self.bias = bias
        self._program = program

    @property
    def n(self) -> int:
        """Number of points."""
        return int(self.gram.shape[0])

    def program(self) -> QuadraticProgram:
        """The quadratic program of this problem in signed variables."""
        return self._program

    def coefficients(self, s: Vector) -> Vector:
        """Expansion coefficients (n,) of the signed variables s (N,)."""
        return self._program.coefficients(s)

    def primal(
        self, coefficients: ArrayLike, bias: float = 0.0, *, f0: Vector | None = None, **multipliers: Any
    ) -> float:
        """Primal objective at any coefficients (n,) and free parameters; `f0` = K @ coefficients if known."""
        c = np.asarray(coefficients, dtype=np.float64)
        return self._program.primal(c, self.equality_multipliers(bias, **multipliers), f0)

    def dual(self, s: Vector, f0: Vector | None = None) -> float:
        """Dual objective at signed variables s (N,)."""
        return -self._program.objective(s, f0)

    def certificate(self, s: Vector, f0: Vector | None = None, h: Vector | None = None) -> Certificate:
        """Primal, dual and gap at dual-feasible s (N,), O(n log n) when f0 = K @ coefficients (n,) is given.

        Slacks are the smallest feasible ones, the bias and its companions make the gap smallest.  `h` (r,) proposes
        multipliers of the equalities; the better of these and the computed ones is kept.
        """
        program = self._program
        c = program.coefficients(s)
        g = program.values(c, f0)
        chosen = self._best_multipliers(g, s)
        primal, gap = program.evaluate(s, g, chosen, c)
        if h is not None:
            other = program.evaluate(s, g, h, c)
            if other[0] < primal:
                (primal, gap), chosen = other, h
        bias, named = self.free_parameters(chosen, c)
        return Certificate(primal, primal - gap, gap, bias, named, chosen)

    def _best_multipliers(self, g: Vector, s: Vector) -> Vector:
        return self._program.best_multipliers(g, s)

    def equality_multipliers(self, bias: float, **named: Any) -> Vector:
        """Multipliers h (r,) of the program's equalities that stand for these free parameters."""
        _only(named)
        return np.array([-bias]) if self.bias == "free" else np.zeros(0)

    def free_parameters(self, h: Vector, coefficients: Vector) -> tuple[float, Named]:
        """Bias and named parameters for multipliers h (r,) and expansion coefficients (n,)."""
        if self.bias == "free":
            return -float(h[0]), {}
        return (float(coefficients.sum()) if self.bias == "penalised" else 0.0), {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n={self.n}, C={self.C:g}, bias={self.bias!r})"


class PlainProgram(Problem):
    """Any quadratic program as a problem; its free parameters are the multipliers "h" (r,) themselves."""

    name: ClassVar[str] = "quadratic program"

    def __init__(self, program: QuadraticProgram) -> None:
        sizes = {v.shape for v in (program.point, program.lower, program.upper, program.linear, program.ridge)}
        if sizes != {(program.size,)} or program.equalities.shape != (program.d.size, program.size):
            raise InvalidInput("the parts of the quadratic program differ in their number of variables or equalities")
        if not (program.lower <= program.upper).all():
            raise Infeasible("a lower bound of the quadratic program lies above its upper bound")
        if (np.isinf(program.upper - program.lower) & (program.ridge <= 0)).any():
            raise InvalidInput(
                "a variable with an infinite bound needs a positive ridge: bound it, or use a squared loss"
            )
        super().__init__(program.gram, 1.0, "none", program)
        span = np.minimum(np.maximum(-program.lower, program.upper), np.finfo(np.float64).max)
        self.box = np.zeros(self.n)
        np.maximum.at(self.box, program.point, span)

    def equality_multipliers(self, bias: float, **named: Any) -> Vector:
        """Multipliers as given under "h"."""
        _only(named, "h")
        return np.asarray(named.get("h", np.zeros(self._program.d.size)), dtype=np.float64)

    def free_parameters(self, h: Vector, coefficients: Vector) -> tuple[float, Named]:
        """No bias; "h" as it is."""
        return 0.0, {"h": h}


def _only(named: Mapping[str, Any], *allowed: str) -> None:
    unknown = set(named) - set(allowed)
    if unknown:
        raise InvalidInput(f"this problem has no free parameter {sorted(unknown)}; it has {['bias', *allowed]}")


def positive(name: str, value: float) -> float:
    """A finite number > 0."""
    value = float(value)
    if not 0.0 < value < np.inf:
        raise InvalidInput(f"{name} must be positive and finite, got {value}")
    return value


def non_negative(name: str, value: float) -> float:
    """A finite number >= 0."""
    value = float(value)
    if not 0.0 <= value < np.inf:
        raise InvalidInput(f"{name} must be non-negative and finite, got {value}")
    return value


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
    """Box sizes C w_i (n,); a weight of zero leaves the point out."""
    if weights is None:
        return np.full(n, C)
    w = vector("weights", weights, n)
    if (w < 0).any():
        raise InvalidInput("weights must not be negative")
    if not w.any():
        raise InvalidInput("weights are all zero: no point is left to learn from")
    return C * w


def bias_layout(bias: Bias, size: int) -> tuple[Index, Vector, float]:
    """(groups (N,), d (r,), constant) for a program whose only equality is the one of the bias."""
    if bias == "free":
        return np.zeros(size, dtype=np.intp), np.zeros(1), 0.0
    if bias == "none" or bias == "penalised":
        return np.full(size, -1, dtype=np.intp), np.zeros(0), 1.0 if bias == "penalised" else 0.0
    raise InvalidInput(f"bias must be 'free', 'none' or 'penalised', got {bias!r}")


def ridge_of(box: Vector, factor: float) -> tuple[Vector, NDArray[np.bool_]]:
    """(factor / box, where box > 0): the ridge of a squared loss, 0 for points of weight zero."""
    used = box > 0
    ridge = np.zeros_like(box)
    np.divide(factor, box, out=ridge, where=used)
    return ridge, used
