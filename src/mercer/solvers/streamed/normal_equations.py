"""The normal equations of the rectangle problem in whitened coordinates, by passes over the rows.

    P(w, b) = 1/2 |w|^2 [+ 1/2 b^2] + C/2 sum_i v_i (y_i - z_i'w - b)^2,       Z = A L^-T,     ridge = 1/C.

The best bias for given w is b = beta sum_i v_i (y_i - z_i'w) with beta = 1/N for a free bias, 1/(N + ridge) for a
penalised one and 0 without (N = sum v); what remains is H w = h,

    H = Z'VZ - beta s s' + ridge I,        h = Z'Vy - beta s (v'y),        s = Z'v,

the system of Rifkin 2002, equation 3.86, and of Hamers 2004, equation 5.32 as corrected, made well conditioned.  With
the residual r = h - H w the dual point c_i = C v_i (y_i - z_i'w - b) is feasible and

    P(w, b) - D(c) = C^2/2 |r|^2,

so a certificate needs nothing but a true residual.
"""

from dataclasses import dataclass

import numpy as np

from mercer.arrays import Array
from mercer.problems.statement import Bias
from mercer.solvers.streamed.sweeps import Progress, Sweeps
from mercer.solvers.streamed.whitening import Whitening


@dataclass(frozen=True, eq=False)
class Residual:
    """What a pass at w (r, k) found: r = h - H w (r, k), the bias (k,), the primal value (k,) of each output."""

    residual: Array
    bias: Array
    primal: Array


def bias_ridge(bias: Bias, ridge: float) -> float | None:
    """What is added to the sum of the weights under the bias; None without a bias."""
    return None if bias == "none" else ridge if bias == "penalised" else 0.0


class NormalEquations:
    """H and h for one C; `residual` must run before `product`, for it finds s and N."""

    def __init__(self, sweeps: Sweeps, whitening: Whitening, C: float, bias: Bias) -> None:
        self.sweeps, self.whitening = sweeps, whitening
        self.C, self.ridge, self.bias = C, 1.0 / C, bias
        self.bias_ridge = bias_ridge(bias, self.ridge)
        self.s = np.zeros(whitening.rank)
        self.N = 0.0
        self.vY = np.zeros(0)

    @property
    def beta(self) -> float:
        """Factor of the bias."""
        return 0.0 if self.bias_ridge is None else 1.0 / (self.N + self.bias_ridge)

    def best_bias(self, w: Array) -> Array:
        """The bias (k,) that goes with w (r, k)."""
        return np.asarray(self.beta * (self.vY - self.s @ w)) if len(self.vY) else np.zeros(w.shape[1])

    def residual(self, w: Array, resume: Progress | None = None) -> Residual:
        """One pass at w (r, k)."""
        k = w.shape[1]
        sums, totals = self.sweeps.residuals(self.whitening.backward(w), resume)
        Z = self.whitening.forward(sums)
        self.s, self.N = np.ascontiguousarray(Z[:, k]), float(totals[0])
        ve, vee = totals[1 : k + 1], totals[k + 1 :]
        self.vY = ve + self.s @ w
        b = self.beta * ve
        r = Z[:, :k] - np.outer(self.s, b) - self.ridge * w
        primal = 0.5 * np.sum(w * w, axis=0) + 0.5 * self.C * (vee - 2.0 * b * ve + self.N * b * b)
        if self.bias == "penalised":
            primal = primal + 0.5 * b * b
        return Residual(r, b, primal)

    def product(self, p: Array, resume: Progress | None = None) -> Array:
        """H p (r, k), one pass."""
        Zp = self.whitening.forward(self.sweeps.normal(self.whitening.backward(p), resume))
        return np.asarray(Zp - self.beta * np.outer(self.s, self.s @ p) + self.ridge * p)
