"""Block conjugate gradients, stabilised: every column of H Z = T searches the Krylov space of all of them.

The plain block method (O'Leary 1980; Hamers 2004, section 3.5.4) inverts R'R and P'HP, which become singular as soon
as the residuals of the columns turn dependent; it then wanders.  Dubrulle's form (BCGrQ, 2001) keeps the residual
block factored, R = Q C with orthonormal Q (n, s), and never inverts it:

    Q C = qr(T - H Z),  P = Q;     repeat   W = (P'HP)^-1,     Z += P W C,
                                            Q S = qr(Q - H P W),   C = S C,   P = Q + P S'.

The QR is rank revealing.  Where a column of Q - HPW depends on the others to working precision, its direction is
dropped (*deflation*): s falls by one, C (s, m) keeps mapping to all m columns, and no column is lost, parallel or
Krylov-dependent targets included.  In exact arithmetic the error of each column in the norm of H is at every step at
most that of its own conjugate gradients.

With weights on the points it runs on S H S X = S T, Z = S X, where S makes the ridge the same for all points: weights
that count repeated rows then cost no more steps than the repeated rows themselves.
"""

from typing import Unpack

import numpy as np

from mercer import dense
from mercer.arrays import Array, Index
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.contract import require
from mercer.solvers.linear import conjugate_gradient
from mercer.solvers.linear.krylov import Descent, Limits
from mercer.solvers.solution import Solution

# A direction shorter than this beside the unit vectors it came from is rounding noise.
DEPENDENT = 1e-13


accepts = conjugate_gradient.accepts


def solve(problem: LeastSquares, **limits: Unpack[Limits]) -> Solution:
    """Iterate until the relative duality gap is at most `tol` or every column meets a rule of `StoppingRules`.

    details: "widths" the number s of directions in each step, "residuals" the largest relative residual per step,
    "true_residual" the one computed anew at the end.
    """
    require(accepts(problem))
    return _Block(problem, **limits).solved()


def revealing_qr(A: Array, threshold: float) -> tuple[Array, Array]:
    """Q (n, s) orthonormal and S (s, m) with A = Q S up to `threshold` in every dropped direction."""
    Q, S, order = dense.pivoted_qr(A)
    s = int(np.count_nonzero(np.abs(np.diag(S)) > threshold))
    straight = np.empty((s, A.shape[1]))
    straight[:, order] = S[:s]
    return np.ascontiguousarray(Q[:, :s]), straight


class _Block(Descent):
    """Residual factors Q (n, s) and C (s, m), search block P (n, s)."""

    name = "block_conjugate_gradient"

    def __init__(self, problem: LeastSquares, **limits: Unpack[Limits]) -> None:
        super().__init__(problem, **limits)
        self.widths: list[int] = []

    def restart(self) -> None:
        """Factor the residual; columns are first brought to unit length, lest a short one look dependent."""
        R = self.system.balance * self.R
        norms = np.linalg.norm(R, axis=0)
        self.Q, C = revealing_qr(R / np.where(norms > 0, norms, 1.0), DEPENDENT)
        self.C = C * norms
        self.P = self.Q.copy()

    def exhausted(self) -> bool:
        """Whether all columns are done or the block has no direction left."""
        return self.Q.shape[1] == 0 or super().exhausted()

    def step(self) -> None:
        """One product with the s directions."""
        balance = self.system.balance
        HP = balance * self.system.dot(balance * self.P)
        curvature = self.P.T @ HP
        factor = dense.cholesky(
            0.5 * (curvature + curvature.T),
            "K + ridge has a negative eigenvalue: lower C or use the saddle or spectral solver",
        )
        W = dense.solve(factor, np.eye(len(curvature)))
        self.Z += balance * (self.P @ (W @ self.C))
        self.widths.append(self.P.shape[1])
        Q, S = revealing_qr(self.Q - HP @ W, DEPENDENT)
        self.C = S @ self.C
        self.P = Q + self.P @ S.T
        self.Q = Q
        self.R = (Q @ self.C) / balance

    def details(self) -> dict[str, Array | Index]:
        """Directions searched in each step."""
        return {"widths": np.array(self.widths, dtype=np.intp)}
