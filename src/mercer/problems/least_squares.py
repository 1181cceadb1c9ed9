"""The least-squares problem: regularised least squares, kernel ridge, LS-SVM, with any number of outputs.

For each column y of Y (n, k), with weights w_i >= 0 and unpenalised functions Phi (n, q),

    primal   P(c, beta) = 1/2 c'Kc + C/2 sum_i w_i e_i^2,    e = y - Kc - Phi beta
    dual     D(c)       = y'c - 1/2 c'(K + R)c,              Phi'c = 0,    R = diag(1 / (C w_i)).

The optimum of both solves the saddle-point system

    (K + R) c + Phi beta = y,     Phi' c = 0.

* ``bias="free"``: the first column of Phi is 1 (LS-SVM; Suykens and Vandewalle 1999; Hamers 2004, section 2.6).
* ``bias="none"``: no such column (regularised least squares; Rifkin 2002, section 3.2).
* ``bias="penalised"``: 1/2 b^2 joins the norm, that is K + 1 1' in place of K and b = 1'c.
* ``basis`` (n, q): further unpenalised functions, the semiparametric part.

A point of weight zero has R_ii infinite, hence c_i = 0: it is left out.  C = inf makes R = 0: interpolation by the
function of least norm.  For any c with Phi'c = 0 and any beta the duality gap is a sum of squares, free of
cancellation: with r = y - (K + R)c - Phi beta,

    P(c, beta) - D(c) = 1/2 r' R^-1 r = C/2 sum_i w_i r_i^2   >= 0,

and it is smallest where beta is the weighted least-squares fit of y - Kc on Phi.  Since D is quadratic with Hessian
K + R, the distance to the optimum obeys |c - c*|^2 in the norm of K + R <= 2 gap.

Classification is regression on labels +-1: H_class = diag(y) H diag(y), so that alpha_class = y * c with the same
bias (Hamers 2004, section 2.6.1).
"""

import numpy as np
from numpy.typing import ArrayLike

from mercer import dense
from mercer.arrays import Array
from mercer.errors import InvalidInput
from mercer.problems.certificate import Certificate
from mercer.problems.program import GramLike
from mercer.problems.statement import Bias, checked_bias


class LeastSquares:
    """Weighted regularised least squares on the n points of a square Gram operator; see the head of this file.

    Y is (n,) or (n, k); all results have the column axis, (n, k) and (k,).  `C` is positive, infinity allowed.
    """

    def __init__(
        self,
        gram: GramLike,
        Y: ArrayLike,
        C: float = 1.0,
        weights: ArrayLike | None = None,
        bias: Bias = "free",
        basis: ArrayLike | None = None,
    ) -> None:
        n = gram.shape[0]
        if gram.shape[0] != gram.shape[1]:
            raise InvalidInput(f"gram must be square, got shape {gram.shape}: build it as Gram(kernel, X)")
        if not C > 0:
            raise InvalidInput(f"C must be positive (infinity means interpolation), got {C}")
        self.gram = gram
        self.C = float(C)
        self.bias: Bias = checked_bias(bias)
        self.Y = _columns(Y, n, "Y")
        self.weights = np.ones(n) if weights is None else _weights(weights, n)
        self.constant = 1.0 if bias == "penalised" else 0.0
        extra = np.empty((n, 0)) if basis is None else _columns(basis, n, "basis")
        self.columns = np.ascontiguousarray(np.hstack([np.ones((n, 1)), extra]) if bias == "free" else extra)

    @property
    def n(self) -> int:
        """Number of points."""
        return int(self.Y.shape[0])

    @property
    def k(self) -> int:
        """Number of outputs."""
        return int(self.Y.shape[1])

    @property
    def ridge(self) -> Array:
        """R_ii = 1 / (C w_i), (n,): zero for C = inf, infinite where the weight is zero."""
        ridge = np.full(len(self.weights), np.inf)
        return np.asarray(np.divide(1.0 / self.C, self.weights, out=ridge, where=self.weights > 0))

    def with_C(self, C: float) -> "LeastSquares":
        """The same problem at another C."""
        twin = object.__new__(LeastSquares)
        twin.__dict__.update(self.__dict__)
        if not C > 0:
            raise InvalidInput(f"C must be positive (infinity means interpolation), got {C}")
        twin.C = float(C)
        return twin

    def values(self, coefficients: Array, f0: Array | None = None) -> Array:
        """(K + constant) c, (n, k); `f0` is K c where it is known already."""
        values: Array = self.gram.dot(coefficients) if f0 is None else f0
        if self.constant:
            values = values + self.constant * coefficients.sum(axis=0)
        return values

    def primal(self, coefficients: Array, offsets: Array, f0: Array | None = None) -> Array:
        """P (k,) at coefficients (n, k) and offsets (q, k), the multipliers of the unpenalised columns."""
        f = self.values(coefficients, f0)
        return _primal(coefficients, f, self.Y - f - self.columns @ offsets, self.weights, self.C)

    def dual(self, coefficients: Array, f0: Array | None = None) -> Array:
        """D (k,) at coefficients (n, k) with columns' c = 0."""
        return _dual(coefficients, self.values(coefficients, f0), self.Y, self.weights, self.C)

    def certificate(self, coefficients: Array, f0: Array | None = None) -> Certificate:
        """Gap-optimal offsets and the certificate of coefficients (n, k) that satisfy columns' c = 0."""
        f = self.values(coefficients, f0)
        return certify(coefficients, f, self.Y, self.columns, self.weights, self.C)

    def split_offsets(self, coefficients: Array, offsets: Array) -> tuple[Array, Array]:
        """The bias (k,) and the coefficients of `basis` (q', k) from the solution's offsets (q, k)."""
        if self.bias == "free":
            return offsets[0].copy(), offsets[1:].copy()
        if self.bias == "penalised":
            return self.constant * coefficients.sum(axis=0), offsets.copy()
        return np.zeros(self.k), offsets.copy()


def certify(c: Array, f: Array, Y: Array, columns: Array, weights: Array, C: float) -> Certificate:
    """Certificate of c (n, k) whose values f = Kc (n, k) are known: O(n k q), no kernel work.

    Its multipliers hold the best "offsets" (q, k); its outputs the norm of the "residual" r of each column too.
    """
    root = np.sqrt(weights)[:, None]
    offsets: Array = np.zeros((columns.shape[1], c.shape[1]))
    if columns.shape[1]:
        offsets = dense.least_squares(root * columns, root * (Y - f))
    error = Y - f - columns @ offsets
    primal, dual = _primal(c, f, error, weights, C), _dual(c, f, Y, weights, C)
    residual = np.where(weights[:, None] > 0, error - c * _safe_ridge(weights, C), 0.0)
    if np.isinf(C):
        gap = np.where(np.isfinite(primal), np.abs(np.sum(c * error, axis=0)), np.inf)
    else:
        gap = 0.5 * C * np.sum(weights[:, None] * residual**2, axis=0)
    outputs = {"primal": primal, "dual": dual, "gap": gap, "residual": np.linalg.norm(residual, axis=0)}
    return Certificate.of_outputs(outputs, {"offsets": offsets})


def _safe_ridge(weights: Array, C: float) -> Array:
    """R (n, 1) with zero in place of infinity at points of weight zero, where c is zero as well."""
    ridge = np.zeros((weights.shape[0], 1))
    np.divide(1.0 / C, weights[:, None], out=ridge, where=weights[:, None] > 0)
    return ridge


def _primal(c: Array, f: Array, error: Array, weights: Array, C: float) -> Array:
    """1/2 c'Kc + C/2 sum w e^2; at C = inf the second term is zero where the errors are round-off, else infinite."""
    norm = 0.5 * np.sum(c * f, axis=0)
    if np.isfinite(C):
        return np.asarray(norm + 0.5 * C * np.sum(weights[:, None] * error**2, axis=0))
    counted = np.abs(error) * (weights[:, None] > 0)
    size = np.max(np.abs(f) + np.abs(error), axis=0, initial=0.0)
    return np.where(np.max(counted, axis=0, initial=0.0) <= 1e-7 * size, norm, np.inf)


def _dual(c: Array, f: Array, Y: Array, weights: Array, C: float) -> Array:
    """D = y'c - 1/2 c'Kc - 1/2 c'Rc."""
    return np.asarray(np.sum(c * (Y - 0.5 * f - 0.5 * _safe_ridge(weights, C) * c), axis=0))


def _columns(values: ArrayLike, n: int, name: str) -> Array:
    """An (n, k) float64 array without NaN or infinity."""
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    if matrix.ndim != 2 or matrix.shape[0] != n:
        raise InvalidInput(f"{name} must have {n} rows like the Gram operator, got shape {np.shape(values)}")
    if not np.isfinite(matrix).all():
        raise InvalidInput(f"{name} holds NaN or infinite values: remove or impute them")
    return np.ascontiguousarray(matrix)


def _weights(values: ArrayLike, n: int) -> Array:
    """(n,) weights, none negative, not all zero."""
    weights = np.asarray(values, dtype=np.float64)
    if weights.shape != (n,):
        raise InvalidInput(f"weights must have shape ({n},), got {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InvalidInput("weights must be finite and not negative; a weight of zero leaves the point out")
    if not weights.any():
        raise InvalidInput("weights are all zero: no point is left to fit")
    return weights
