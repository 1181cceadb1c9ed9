"""The linear systems of the interior point method: (P K P' + diag(D)) X = R with P the map from points to variables.

Where each point carries one variable this is K + diag(D).  Where it carries two (regression) the 2n x 2n matrix
[[K + D1, K], [K, K + D2]] is solved through one n x n factorisation: with u = x1 + x2

    (K + diag(D1 D2 / (D1 + D2))) u = (D2 r1 + D1 r2) / (D1 + D2),
    x1 = (r1 - r2 + D2 u) / (D1 + D2),     x2 = u - x1,

which is the orthogonal transformation of Schoelkopf and Smola 2002, section 10.3.3, followed by its Schur step.  More
variables than two on a point fall back to the expanded matrix.

The factorisation is Cholesky; a matrix that rounding has made indefinite goes to Bunch-Kaufman LDL', and one that is
singular to the pseudo-inverse.  One step of iterative refinement follows every solve.
"""

import numpy as np
from numpy.typing import NDArray

from mercer import dense

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class BarrierSystem:
    """Solves with P K P' + diag(D) for changing D over a fixed K (m, m) and variables that sit on `point` (N,)."""

    def __init__(self, K: Array, point: Index, *, expand: bool = False) -> None:
        count = np.bincount(point, minlength=K.shape[0])
        if expand or count.max(initial=0) > 2:
            K, point = K[np.ix_(point, point)], np.arange(point.size)
            count = np.ones(point.size, dtype=np.intp)
        self.K = K
        self.point = point
        self.method = "none"
        self._parts: tuple[Array, ...] = ()
        self._single = bool(point.size == K.shape[0] and (point == np.arange(point.size)).all())
        order = np.argsort(point, kind="stable")
        # Variables in pairs on one point, and variables alone on theirs.
        paired = count[point[order]] == 2
        self._first, self._second = order[paired][::2], order[paired][1::2]
        self._lone = order[~paired]

    def factor(self, D: Array) -> None:
        """Prepare for the diagonal D (N,), all entries positive."""
        self.D = D
        delta = D if self._single else 1.0 / np.bincount(self.point, weights=1.0 / D, minlength=self.K.shape[0])
        self._delta, self._parts = delta, ()
        self._factor()

    def _shifted(self) -> Array:
        M = self.K.copy(order="F")
        np.einsum("ii->i", M)[...] += self._delta
        return M

    def _factor(self) -> None:
        factor = self._shifted()
        if dense.factorise(factor):
            self._parts, self.method = (factor,), "cholesky"
            return
        factor = self._shifted()
        pivots = dense.factorise_indefinite(factor)
        if pivots is not None:
            self._parts, self.method = (factor, pivots), "ldl"
            return
        vectors = self._shifted()
        values = dense.diagonalise(vectors)
        keep = np.abs(values) > 1e-14 * np.abs(values).max()
        self._parts, self.method = (values[keep], vectors[:, keep]), "pseudo-inverse"

    def _apply_inverse(self, R: Array) -> Array:
        if self.method == "cholesky":
            return dense.solve(self._parts[0], R)
        if self.method == "ldl":
            return dense.solve_indefinite(self._parts[0], self._parts[1], R)
        values, vectors = self._parts
        return np.asarray(vectors @ ((vectors.T @ R) / values[:, None]))

    def solve(self, R: Array) -> Array:
        """X (N, k) for right-hand sides R (N, k)."""
        X = self._solve_once(R)
        return X + self._solve_once(R - self.multiply(X))

    def multiply(self, X: Array) -> Array:
        """(P K P' + diag(D)) X for X (N, k)."""
        out = self.D[:, None] * X
        if self._single:
            return out + self.K @ X
        return out + (self.K @ self._sum(X))[self.point]

    def _sum(self, X: Array) -> Array:
        """P' X: the sum of the variables on each point."""
        out = np.zeros((self.K.shape[0], X.shape[1]))
        out[self.point[self._lone]] = X[self._lone]
        out[self.point[self._first]] = X[self._first] + X[self._second]
        return out

    def _solve_once(self, R: Array) -> Array:
        if self._single:
            return self._apply_inverse(R)
        D = self.D[:, None]
        u = self._apply_inverse(self._delta[:, None] * self._sum(R / D))
        X = u[self.point]
        one, two = self._first, self._second
        X[one] = (R[one] - R[two] + D[two] * X[one]) / (D[one] + D[two])
        X[two] = u[self.point[two]] - X[one]
        return X
