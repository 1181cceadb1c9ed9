"""Regression problems: epsilon-insensitive, its square, nu-SVR and Huber.

    eps-SVR:      min 1/2 ||f0||^2 + sum_i C_i (|y_i - f_i| - epsilon)_+
    its square:   min 1/2 ||f0||^2 + sum_i C_i (|y_i - f_i| - epsilon)_+^2
    nu-SVR:       min 1/2 ||f0||^2 + nu (sum_i C_i) epsilon + sum_i C_i (|y_i - f_i| - epsilon)_+ ,  epsilon >= 0
    Huber:        min 1/2 ||f0||^2 + sum_i C_i huber((|y_i - f_i| - epsilon)_+),
                  huber(t) = t^2 / (2 threshold) up to the threshold, then t - threshold/2 (slope at most 1)

Two variables sit on each point: s = alpha >= 0 pulls f up to y - epsilon, s = -alpha* <= 0 pulls it down to y + epsilon
(Schoelkopf and Smola 2002, section 10.3.3, with the signs corrected).  Huber without a tube needs only one signed
variable.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mercer.errors import Infeasible
from mercer.losses import EpsilonInsensitive, Huber, SquaredEpsilonInsensitive
from mercer.problems.base import (
    Bias,
    Named,
    Problem,
    Vector,
    _only,
    bias_layout,
    checked_size,
    non_negative,
    positive,
    ridge_of,
    vector,
    weighted,
)
from mercer.problems.program import GramLike, Index, QuadraticProgram


def _twice(n: int) -> Index:
    """Points (0..n-1, 0..n-1)."""
    out = np.empty(2 * n, dtype=np.intp)
    out[:n] = out[n:] = np.arange(n)
    return out


def _two_sided(up: Vector, down: Vector) -> Vector:
    return np.concatenate((up, down))


class SupportVectorRegression(Problem):
    """Epsilon-insensitive loss with box C w_i."""

    name: ClassVar[str] = "eps-SVR"

    def __init__(
        self,
        gram: GramLike,
        y: ArrayLike,
        C: float = 1.0,
        epsilon: float = 0.1,
        weights: ArrayLike | None = None,
        bias: Bias = "free",
    ) -> None:
        n = checked_size(gram)
        self.y = vector("y", y, n)
        C, self.epsilon = positive("C", C), non_negative("epsilon", epsilon)
        self.box = weighted(C, weights, n)
        zero = np.zeros(n)
        groups, d, constant = bias_layout(bias, 2 * n)
        program = QuadraticProgram(
            gram,
            _twice(n),
            _two_sided(zero, -self.box),
            _two_sided(self.box, zero),
            _two_sided(self.epsilon - self.y, -self.epsilon - self.y),
            np.zeros(2 * n),
            groups,
            d,
            None,
            constant,
        )
        super().__init__(gram, C, bias, program)
        self.loss = EpsilonInsensitive(self.epsilon)


class SquaredEpsilonRegression(Problem):
    """Squared epsilon-insensitive loss: no upper bound, and 1/(2 C w_i) on the diagonal."""

    name: ClassVar[str] = "squared eps-SVR"

    def __init__(
        self,
        gram: GramLike,
        y: ArrayLike,
        C: float = 1.0,
        epsilon: float = 0.1,
        weights: ArrayLike | None = None,
        bias: Bias = "free",
    ) -> None:
        n = checked_size(gram)
        self.y = vector("y", y, n)
        C, self.epsilon = positive("C", C), non_negative("epsilon", epsilon)
        self.box = weighted(C, weights, n)
        ridge, used = ridge_of(self.box, 0.5)
        far, zero = np.where(used, np.inf, 0.0), np.zeros(n)
        groups, d, constant = bias_layout(bias, 2 * n)
        program = QuadraticProgram(
            gram,
            _twice(n),
            _two_sided(zero, -far),
            _two_sided(far, zero),
            _two_sided(self.epsilon - self.y, -self.epsilon - self.y),
            _two_sided(ridge, ridge),
            groups,
            d,
            None,
            constant,
        )
        super().__init__(gram, C, bias, program)
        self.loss = SquaredEpsilonInsensitive(self.epsilon)


class HuberRegression(Problem):
    """Huber's loss of slope at most 1, optionally outside a tube: ridge threshold/(C w_i) on the diagonal."""

    name: ClassVar[str] = "Huber"

    def __init__(
        self,
        gram: GramLike,
        y: ArrayLike,
        C: float = 1.0,
        threshold: float = 1.0,
        weights: ArrayLike | None = None,
        bias: Bias = "free",
        epsilon: float = 0.0,
    ) -> None:
        n = checked_size(gram)
        self.y = vector("y", y, n)
        C, self.threshold = positive("C", C), positive("threshold", threshold)
        self.epsilon = non_negative("epsilon", epsilon)
        self.box = weighted(C, weights, n)
        ridge, _ = ridge_of(self.box, self.threshold)
        tube = self.epsilon > 0.0
        groups, d, constant = bias_layout(bias, 2 * n if tube else n)
        if tube:
            zero = np.zeros(n)
            program = QuadraticProgram(
                gram,
                _twice(n),
                _two_sided(zero, -self.box),
                _two_sided(self.box, zero),
                _two_sided(self.epsilon - self.y, -self.epsilon - self.y),
                _two_sided(ridge, ridge),
                groups,
                d,
                None,
                constant,
            )
        else:
            program = QuadraticProgram(
                gram, np.arange(n), -self.box, self.box, -self.y, ridge, groups, d, None, constant
            )
        super().__init__(gram, C, bias, program)
        self.loss = None if tube else Huber(self.threshold)


class NuRegression(Problem):
    """nu-SVR: the tube's width is found so that at most a share nu of the points lies outside it.

    sum alpha = sum alpha* = C nu (sum w)/2 with boxes C w_i; needs 0 < nu <= 1.
    """

    name: ClassVar[str] = "nu-SVR"

    def __init__(
        self, gram: GramLike, y: ArrayLike, C: float = 1.0, nu: float = 0.5, weights: ArrayLike | None = None
    ) -> None:
        n = checked_size(gram)
        self.y = vector("y", y, n)
        C, self.nu = positive("C", C), float(nu)
        if not 0.0 < self.nu <= 1.0:
            raise Infeasible(
                f"nu = {self.nu:g} is not admissible: it must lie in (0, 1], for a larger nu the tube would be negative"
            )
        self.box = weighted(C, weights, n)
        half, zero = 0.5 * self.nu * float(self.box.sum()), np.zeros(n)
        groups = np.zeros(2 * n, dtype=np.intp)
        groups[n:] = 1
        program = QuadraticProgram(
            gram,
            _twice(n),
            _two_sided(zero, -self.box),
            _two_sided(self.box, zero),
            _two_sided(-self.y, -self.y),
            np.zeros(2 * n),
            groups,
            np.array([half, -half]),
        )
        super().__init__(gram, C, "free", program)

    def equality_multipliers(self, bias: float, **named: Any) -> Vector:
        """(-b - epsilon, -b + epsilon)."""
        _only(named, "epsilon")
        epsilon = float(named.get("epsilon", 0.0))
        return np.array([-bias - epsilon, -bias + epsilon])

    def free_parameters(self, h: Vector, coefficients: Vector) -> tuple[float, Named]:
        """Return b = -(h1 + h2)/2 and epsilon = (h2 - h1)/2."""
        return -0.5 * float(h[0] + h[1]), {"epsilon": 0.5 * float(h[1] - h[0])}

    def _best_multipliers(self, g: Vector, s: Vector) -> Vector:
        """The tube may not be negative; for nu <= 1 closing it costs nothing more than a negative one would."""
        h = super()._best_multipliers(g, s)
        if h[1] >= h[0]:
            return h
        program = self._program
        merged = QuadraticProgram(
            program.gram,
            program.point,
            program.lower,
            program.upper,
            program.linear,
            program.ridge,
            np.zeros_like(program.point),
            np.zeros(1),
        )
        return np.repeat(merged.best_multipliers(g), 2)

    def __repr__(self) -> str:
        return f"NuRegression(n={self.n}, C={self.C:g}, nu={self.nu:g})"
