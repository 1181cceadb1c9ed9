"""Regularised risk: the sentence that most machines are, for any loss with a quadratic program.

    min over f0, b, beta of   1/2 ||f0||^2 + sum_i C w_i l(y_i, f_i)  (+ 1/2 b^2),     f = f0 + b + sum_k beta_k psi_k

C-SVC is this with `Hinge`, the squared hinge with `SquaredHinge`, eps-SVR with `EpsilonInsensitive`, and so on
(Rifkin 2002, section 2.2; Schoelkopf and Smola 2002, section 10.3).
"""

from numpy.typing import ArrayLike

from mercer.losses import Loss
from mercer.problems.base import Problem
from mercer.problems.program import GramLike
from mercer.problems.statement import (
    Bias,
    Costs,
    basis_columns,
    checked_bias,
    checked_size,
    labels,
    positive,
    stated,
    vector,
)


class RegularisedRisk(Problem):
    """`loss` at targets y (n,), each mistake weighing C w_i, with a bias that is free, absent or penalised.

    weights : (n,), or (n, 2) with separate ones for f too low and f too high.
    basis : (n, q) values of functions outside the norm at the points.
    """

    loss: Loss

    def __init__(
        self,
        gram: GramLike,
        y: ArrayLike,
        loss: Loss,
        C: float = 1.0,
        weights: ArrayLike | None = None,
        bias: Bias = "free",
        basis: ArrayLike | None = None,
    ) -> None:
        n, self.bias = checked_size(gram), checked_bias(bias)
        targets = labels(y, n) if loss.classification else vector("y", y, n)
        psi, costs = basis_columns(basis, n), Costs.of(positive("C", C), weights, n)
        sums, constant = (0.0,) if bias == "free" else (), 1.0 if bias == "penalised" else 0.0
        self.loss, self.C = loss, float(C)
        super().__init__(stated(gram, loss, targets, costs, sums, constant=constant, basis=psi), targets, costs, psi)

    def __repr__(self) -> str:
        return f"RegularisedRisk({self.loss!r}, n={self.n}, C={self.C:g}, bias={self.bias!r})"
