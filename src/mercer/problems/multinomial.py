"""Multinomial kernel logistic regression: k outputs whose softmax is the probability of each class.

    P = 1/2 sum_m ||f_m||^2 + sum_i C_i [log sum_m exp(f_m(x_i) + b_m) - f_y(x_i) - b_y]
    D = sum_i C_i H(p_i) - 1/2 sum_m c_m'K c_m,    c_im = C_i ([y_i = m] - p_im),   H(p) = -sum_m p_m log p_m

over probabilities p_i; a free bias adds sum_i c_im = 0.  At the optimum p is the softmax of the outputs (Zhu and Hastie
2005; lambda = 1/C there).  For any coefficients c, with p the softmax of f = K c + b and c^ = C (Y - p),

    P(c, b) - D(c^) = 1/2 sum_m (c_m - c^_m)'K (c_m - c^_m)   >= 0,

because softmax makes the Fenchel-Young inequality of the loss an equality.  With a free bias b must make sum_i c^_i
zero, which is the condition that it is the best one for these f.  Two classes give binary logistic regression for
f_1 - f_0 with 2 C.
"""

import math
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mercer.arrays import Array
from mercer.errors import InvalidInput
from mercer.problems.certificate import Certificate
from mercer.problems.few_variables import Look, minimiser
from mercer.problems.multiclass import ClassProblem
from mercer.problems.program import GramLike
from mercer.problems.statement import Bias

FLATTEST = 1e-14  # share of the costs that the second derivative in the bias has at least
BIAS_REACHED = 1e-9  # share of the costs that the coefficients of a dual point may sum to


def softmax(f: Array) -> Array:
    """Probabilities (n, k) in proportion to exp(f)."""
    p = np.exp(f - f.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return np.asarray(p)


class MultinomialLogistic(ClassProblem):
    """Multinomial logistic regression on n points; `y` (n,) holds the classes 0..k-1, `weights` (n,) multiply C."""

    name: ClassVar[str] = "multinomial logistic"

    def __init__(
        self,
        gram: GramLike,
        y: ArrayLike,
        C: float = 1.0,
        weights: ArrayLike | None = None,
        bias: Bias = "free",
        *,
        k: int | None = None,
    ) -> None:
        super().__init__(gram, y, C, weights, bias, k=k)
        if bias == "free" and np.bincount(self.y, weights=self.box, minlength=self.k).min() <= 0.0:
            raise InvalidInput("a class without a point of positive weight has no finite free bias: use 'penalised'")

    def losses(self, f: Array) -> Array:
        """-log p_y (n,) at outputs f (n, k) that include the bias."""
        top = f.max(axis=1)
        return np.asarray(np.log(np.exp(f - top[:, None]).sum(axis=1)) + top - f[np.arange(self.n), self.y])

    def stationary(self, f: Array) -> Array:
        """c^ (n, k) = C_i ([y_i = m] - p_im), the coefficients that the outputs f ask for."""
        c = -softmax(f)
        c[np.arange(self.n), self.y] += 1.0
        return np.asarray(self.box[:, None] * c)

    def curvature(self, p: Array, V: Array) -> Array:
        """Second derivative of the losses applied to V (n, k): C_i (p_i V_i - p_i (p_i'V_i))."""
        PV = p * V
        return np.asarray(self.box[:, None] * (PV - p * PV.sum(axis=1, keepdims=True)))

    def dual(self, c: Array, f0: Array | None = None) -> float:
        """Dual objective at coefficients of the form C (Y - p)."""
        used = self.box > 0
        p = -c[used] / self.box[used][:, None]
        p[np.arange(len(p)), self.y[used]] += 1.0
        p = np.clip(p, np.finfo(np.float64).tiny, None)
        entropy = -float(self.box[used] @ (p * np.log(p)).sum(axis=1))
        return entropy - 0.5 * float(np.vdot(c, self.values(c, f0)))

    def best_bias(self, f: Array, start: Array) -> Array:
        """The free bias (k,), of sum zero, that minimises the losses at f (n, k): Newton's method from `start`."""
        scale, points = float(self.box.sum()), np.arange(self.n)
        own = np.bincount(self.y, weights=self.box, minlength=self.k)
        # The losses do not see a multiple of ones, for which `level` makes the second derivative regular.
        level = np.full((self.k, self.k), scale / self.k**2) + FLATTEST * scale * np.eye(self.k)

        def look(b: Array) -> Look:
            g = f + b
            top = g.max(axis=1)
            p = np.exp(g - top[:, None])
            total = p.sum(axis=1)
            p /= total[:, None]
            costs = self.box @ p
            value = float(self.box @ (np.log(total) + top - g[points, self.y]))
            return Look(value, costs - own, np.diag(costs) - (p * self.box[:, None]).T @ p + level)

        b, _ = minimiser(look, start - start.mean(), scale)
        return np.asarray(b - b.mean())

    def certificate(self, c: Array, f0: Array | None = None, bias: ArrayLike | None = None) -> Certificate:
        """Primal at c (n, k), dual at the coefficients its outputs ask for; one product with K, two without `f0`."""
        f = self.values(np.asarray(c, dtype=np.float64), f0)
        if self.bias == "free":
            b = self.best_bias(f, np.zeros(self.k) if bias is None else np.asarray(bias, dtype=np.float64))
        else:
            b = np.zeros(self.k)
        asked = self.stationary(f + b)
        missing = asked - c
        gap = 0.5 * float(np.vdot(missing, self.values(missing)))
        if self.bias == "free" and np.abs(asked.sum(axis=0)).max() > BIAS_REACHED * float(self.box.sum()):
            gap = math.inf  # far from the optimum the best bias may not be found, and then there is no dual point
        primal = self.primal(c, b, f - self.constant * c.sum(axis=0))
        shown = self.constant * c.sum(axis=0) if self.bias == "penalised" else b
        return Certificate(primal, primal - gap, max(gap, 0.0), shown)
