"""Other people's regularisation parameters, in mercer's C and back; and nu to C and back.

mercer minimises sum_i C loss_i + 1/2 ||f||^2.  The same minimiser is written elsewhere as

    name               objective                              C
    "C"                C sum loss + 1/2 ||f||^2               C
    "lambda"           1/n sum loss + lambda ||f||^2          1 / (2 lambda n)     (Tikhonov; Rifkin 2002)
    "half lambda"      1/n sum loss + lambda/2 ||f||^2        1 / (lambda n)       (Schoelkopf and Smola 2002, 10.2)
    "sum lambda"       sum loss + lambda ||f||^2              1 / (2 lambda)
    "alpha"            sum loss + alpha/2 ||f||^2             1 / alpha

and for least squares, whose loss in mercer is e^2 / 2 so that the system is (K + I/C) c = y,

    "lambda l"         1/n sum e^2 + lambda ||f||^2           1 / (lambda n)       (RLSC: K + lambda l I; Rifkin 2002)
    "ridge"            sum e^2 + alpha ||f||^2                1 / alpha            (kernel ridge: K + alpha I)
    "noise"            a Gaussian process, noise s^2          1 / s^2              (K + s^2 I)

nu and C (Schoelkopf and Smola 2002, proposition 7.6): with rho > 0 the margin of nu-SVC at weights w, its function over
rho is that of C-SVC at C = 1/rho; the alphas of C-SVC give back nu = sum alpha / (C sum w).  The tube of
nu-SVR is the epsilon at which eps-SVR has the same solution, and the alphas give back nu in the same way.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mercer.errors import InvalidInput


class Convention(NamedTuple):
    """How a parameter and C follow from one another for n points; both directions are the same function."""

    objective: str
    factor: float | None
    """Of 1 / (factor value n), or without n; None where the parameter is C itself."""
    counted: bool
    """Whether the number of points matters."""

    def convert(self, value: float, n: int) -> float:
        """From a value to 1 / (factor value n), which is its own inverse."""
        return value if self.factor is None else 1.0 / (self.factor * value * (n if self.counted else 1))


CONVENTIONS = {
    "C": Convention("C sum loss + 1/2 ||f||^2", None, False),
    "lambda": Convention("1/n sum loss + lambda ||f||^2", 2.0, True),
    "half lambda": Convention("1/n sum loss + lambda/2 ||f||^2", 1.0, True),
    "sum lambda": Convention("sum loss + lambda ||f||^2", 2.0, False),
    "alpha": Convention("sum loss + alpha/2 ||f||^2", 1.0, False),
    "lambda l": Convention("1/n sum e^2 + lambda ||f||^2, mercer's loss e^2/2", 1.0, True),
    "ridge": Convention("sum e^2 + alpha ||f||^2, mercer's loss e^2/2", 1.0, False),
    "noise": Convention("(K + s^2 I) c = y, mercer's loss e^2/2", 1.0, False),
}


def to_C(value: float, convention: str, n: int | None = None) -> float:
    """C of a parameter in another convention, by its name in `CONVENTIONS`, for n points."""
    if convention not in CONVENTIONS:
        raise InvalidInput(f"convention={convention!r} is not known; give one of {', '.join(map(repr, CONVENTIONS))}")
    if not value > 0.0:
        raise InvalidInput(f"a regularisation parameter must be positive, got {value:g}")
    found = CONVENTIONS[convention]
    if found.counted and (n is None or n < 1):
        raise InvalidInput(f"convention={convention!r} averages the loss: give n, the number of points")
    return found.convert(float(value), 1 if n is None else n)


def from_C(C: float, convention: str, n: int | None = None) -> float:
    """The parameter of another convention that means the same as C."""
    return to_C(C, convention, n)


def C_of_nu(rho: float) -> float:
    """The C at which C-SVC has the function f / rho of nu-SVC with margin rho."""
    if not rho > 0.0:
        raise InvalidInput(f"rho = {rho:g} is no margin: nu-SVC without one corresponds to no C; lower nu")
    return 1.0 / rho


def nu_of_C(coefficients: ArrayLike, C: float, weights: ArrayLike | None = None) -> float:
    """The nu at which nu-SVC or nu-SVR has the solution that C-SVC or eps-SVR has at C.

    coefficients (n,) are the signed ones of the machine, weights (n,) those of the points, one where they are None.
    """
    c = np.abs(np.asarray(coefficients, dtype=np.float64))
    total = float(c.size) if weights is None else float(np.sum(np.asarray(weights, dtype=np.float64)))
    if not (C > 0.0 and total > 0.0):
        raise InvalidInput(f"C and the sum of the weights must be positive, got {C:g} and {total:g}")
    return float(c.sum()) / (C * total)
