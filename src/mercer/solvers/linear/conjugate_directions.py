"""The recursion of conjugate gradients on H X = T, H symmetric positive definite, for many right-hand sides at once.

    a = r'y / p'Hp,   x += a p,   r -= a Hp,   y = M^-1 r,   b = r'y / (r'y before),   p = y + b p,

one product with H for each step of them all (Hestenes and Stiefel 1952).  Everybody who iterates so takes this
recursion and says what H and the preconditioner M are, over which numbers the inner products run, and when to stop:
least squares (`conjugate_gradient`), its seed for many C (`multishift`), systems with parts struck out
(`masked_systems`), normal equations over streamed rows (`streamed.rectangle`), the Newton steps of logistic machines
(`streamed.newton`, `multiclass.multinomial`) and chunks of support vector machines (`classical.pcg_chunking`).  The
block method, which replaces a and b by matrices, is a recursion of its own (`block_conjugate_gradient`).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]


def over_columns(A: Values, B: Values) -> Values:
    """Inner products (m,) of the columns of A and B (n, m)."""
    return np.asarray(np.sum(A * B, axis=0))


def over_rows(A: Values, B: Values) -> Values:
    """Inner products (m, 1) of the rows of A and B (m, n)."""
    return np.asarray(np.einsum("ij,ij->i", A, B))[:, None]


def over_all(A: Values, B: Values) -> Values:
    """The inner product () of A and B as two vectors: the columns are unknowns of one system."""
    return np.asarray(np.vdot(A, B))


class ConjugateDirections:
    """Residuals R, directions P and, where they are wanted, iterates X, all of one shape and changed in place.

    apply: H P.  precondition: M^-1 R, which may also take out of R what rounding must not carry on; None: M = 1.
    inner: the inner products, in a shape that multiplies R.  After a step `length` is a, `ratio` b, `energy` r'y and
    `curvature` p'Hp; where that is not positive the step was of length zero.
    """

    def __init__(
        self,
        apply: Callable[[Values], Values],
        R: Values,
        X: Values | None = None,
        precondition: Callable[[Values], Values] | None = None,
        inner: Callable[[Values, Values], Values] = over_columns,
    ) -> None:
        self.apply, self.R, self.X = apply, R, X
        self.precondition, self.inner = precondition, inner
        self.restart()

    def restart(self) -> None:
        """Search along the preconditioned residual."""
        Y = self._preconditioned()
        self.P = Y.copy()
        self.energy = self.inner(self.R, Y)
        self.length = self.ratio = self.curvature = np.zeros_like(self.energy)

    def step(self, residual: Callable[[], Values] | None = None) -> None:
        """One step; `residual` computes the new R in the place of the recursion.

        A product that fails changes nothing.
        """
        HP = self.apply(self.P)
        self.curvature = self.inner(self.P, HP)
        self.length = _quotient(self.energy, self.curvature)
        if self.X is not None:
            self.X += self.length * self.P
        if residual is None:
            self.R -= self.length * HP
        else:
            self.R[:] = residual()
        Y = self._preconditioned()
        before, self.energy = self.energy, self.inner(self.R, Y)
        self.ratio = _quotient(self.energy, before)
        self.P *= self.ratio
        self.P += Y

    def keep(self, columns: Any) -> None:
        """Go on with some of the columns only."""
        self.R, self.P, self.energy = self.R[:, columns], self.P[:, columns], self.energy[columns]
        self.X = None if self.X is None else self.X[:, columns]

    def _preconditioned(self) -> Values:
        return self.R if self.precondition is None else self.precondition(self.R)


def _quotient(above: Values, below: Values) -> Values:
    """Above / below, zero where there is nothing to divide by."""
    return np.asarray(np.divide(above, below, out=np.zeros_like(above), where=below > 0))
