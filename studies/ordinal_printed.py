"""Ordinal regression as Herbrich, Graepel and Obermayer 2000 print it, and the machines they compare it with.

The machine of pairs is the dual on explicit pairs, by the interior point method, at C = 10^6 and without the equality
of the source, which depends on how pairs are written down; boundaries are in the middle of the free pairs of
neighbouring ranks, with a fallback where there is none.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer import SVC, SVR, OrdinalSVC, Polynomial, WestonWatkinsSVC
from mercer.gram import Gram, LowRankGram
from mercer.ordinal import free_pair_boundaries
from mercer.problems.program import QuadraticProgram
from mercer.solvers.quadratic import interior_point

Array = NDArray[np.float64]

KERNEL = Polynomial(2)
C = 1e6
EPSILON = 0.5
# The squared hinge at this C has the solution of the hinge at C = 10^6 on separable sets.
C_SQUARED = 1e4
RANK = 1e-12  # eigenvalues below this share of the largest are none
FREE = 1e-6  # a variable is free where it is farther than this share of C from both of its bounds


class Answer(NamedTuple):
    """Ranks and utilities (n,) of new points; boundaries without a free pair, and out of order, of how many."""

    ranks: Array
    utility: Array
    without_pair: int = 0
    out_of_order: int = 0


def ordinal(X: Array, y: Array, new: Array) -> Answer:
    """The machine of the source."""
    classes, codes = np.unique(y, return_inverse=True)
    K = np.asarray(Gram(KERNEL, X).dense(), dtype=np.float64)
    values, vectors = np.linalg.eigh(K)
    used = values > RANK * values.max()
    factor = vectors[:, used] * np.sqrt(values[used])
    higher, lower = np.nonzero(codes[:, None] > codes)
    size = len(higher)
    program = QuadraticProgram(
        LowRankGram.from_factors(factor[higher] - factor[lower]),
        np.arange(size),
        np.zeros(size),
        np.full(size, C),
        -np.ones(size),
        np.zeros(size),
        np.full(size, -1),
        np.zeros(0),
    )
    alpha = interior_point.solve(program, tol=1e-8).variables
    c = np.bincount(higher, alpha, len(y)) - np.bincount(lower, alpha, len(y))
    free = (alpha > FREE * min(C, alpha.max())) & (alpha < (1.0 - FREE) * C)
    found = free_pair_boundaries(K @ c, codes, np.column_stack((higher, lower))[free])
    f = np.asarray(Gram(KERNEL, new, X).dense(), dtype=np.float64) @ c
    return Answer(classes[np.searchsorted(found.thresholds, f)], f, found.without_pair, found.out_of_order)


def least_error(X: Array, y: Array, new: Array) -> Answer:
    """The same function by the squared hinge without forming pairs, with the thresholds of least absolute error."""
    machine = OrdinalSVC(C=C_SQUARED, kernel=KERNEL, thresholds="pairs", loss="squared_hinge").fit(X, y)
    return Answer(machine.predict(new), machine.utility(new))


def regression(X: Array, y: Array, new: Array) -> Answer:
    """Support vector regression on the codes of the ranks, rounded."""
    f = SVR(C=C, epsilon=EPSILON, kernel=KERNEL, solver="interior_point").fit(X, y).predict(new)
    return Answer(np.clip(np.rint(f), y.min(), y.max()), f)


def exponential_regression(X: Array, y: Array, new: Array) -> Answer:
    """The same on the codes exp(i), with thresholds in their middles: another numbering of the same ranks."""
    f = SVR(C=C, epsilon=EPSILON, kernel=KERNEL, solver="interior_point").fit(X, np.exp(y)).predict(new)
    codes = np.exp(np.unique(y))
    return Answer(np.unique(y)[np.searchsorted(0.5 * (codes[1:] + codes[:-1]), f)], f)


def votes(X: Array, y: Array, new: Array) -> Answer:
    """A machine for each pair of ranks."""
    found = SVC(C=C, kernel=KERNEL, solver="interior_point").fit(X, y).predict(new)
    return Answer(found, found)


def weston_watkins(X: Array, y: Array, new: Array) -> Answer:
    """The machine for several classes that the source cites, at a C it converges with."""
    machine: Any = WestonWatkinsSVC(C=C_SQUARED, kernel=KERNEL, max_time=0.05).fit(X, y)
    found = machine.predict(new)
    return Answer(found, found)
