"""Learning an equivalence: do two points belong to the same class?

A pair of points is a difference z = phi(x) - phi(x') in the space of a kernel, of which only z z' is seen, so that the
order of its two points does not matter.  A support vector machine on pairs of the same class (t = 1) and of different
classes (t = -1),

    g(x, x') = b + sum_p alpha_p t_p <z_p, z>^2,        <z_p, z> = k(a, x) - k(a, x') - k(b, x) + k(b, x'),  p = (a, b),

says "the same" where g > 0 (Phillips 1998; Herbrich, Graepel and Obermayer 2000, section 2.6, name it beside orders
from pairs).  With u(x) = (k(x_1, x), ..., k(x_n, x)) it is g = b + (u - u')'M (u - u'), M = sum_p alpha_p t_p e_p e_p'
with e_p of entries 1 and -1 at the two points: minus a squared distance that was learnt, plus the square of a radius.
One function serves all classes, and classes that were never seen; a new point belongs to the class whose points it
resembles most in the mean.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import Kernel, Precomputed
from mercer.losses import Hinge
from mercer.problems.risk import RegularisedRisk
from mercer.solvers.quadratic import decomposition
from mercer.solvers.solution import Solution

Array = NDArray[np.float64]
Index = NDArray[np.intp]

PAIRS = 2000
VIOLATION = 0.01  # share of tol that optimality conditions may be off by before the gap is asked for


@dataclass(frozen=True, eq=False)
class Equivalence:
    """g on the kernels of `points` (n, d), those of `labels` (n,): matrix M (n, n) and bias b; the solved problem."""

    kernel: Kernel
    points: Array
    labels: NDArray[Any]
    matrix: Array
    bias: float
    solution: Solution

    def values(self, X: ArrayLike, Z: ArrayLike) -> Array:
        """The function g (n, m) of all pairs of points X (n, d) and Z (m, d): above zero is the same class."""
        U, V = self._kernels(X), self._kernels(Z)
        MV = V @ self.matrix
        own, other = np.einsum("ij,jk,ik->i", U, self.matrix, U, optimize=True), np.einsum("ij,ij->i", MV, V)
        return np.asarray(self.bias + own[:, None] + other - 2.0 * (U @ MV.T))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Labels (n,): the class whose training points have the largest g with a point, in the mean."""
        classes, codes = np.unique(self.labels, return_inverse=True)
        shares = (codes[:, None] == np.arange(len(classes))) / np.bincount(codes)
        return np.asarray(classes[np.argmax(self.values(X, self.points) @ shares, axis=1)])

    def _kernels(self, X: ArrayLike) -> Array:
        return np.asarray(Gram(self.kernel, np.asarray(X, dtype=np.float64), self.points).dense(), dtype=np.float64)


def sampled_pairs(labels: ArrayLike, most: int = PAIRS, seed: int = 0) -> tuple[Index, Array]:
    """Pairs (m, 2) of points and t (m,), 1 for the same class and -1 for different ones.

    All pairs where there are no more than `most`; else half of each kind, or all of the kind that has fewer.
    """
    y = np.asarray(labels)
    pairs = np.column_stack(np.triu_indices(len(y), 1))
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    if same.all() or not same.any():
        raise InvalidInput("an equivalence is learnt from pairs of the same class and of different classes: give both")
    if len(pairs) > most:
        random, kinds = np.random.default_rng(seed), (np.flatnonzero(same), np.flatnonzero(~same))
        fewer = min(most // 2, *(len(kind) for kind in kinds))
        sizes = (min(len(kinds[0]), most - fewer), min(len(kinds[1]), most - fewer))
        drawn = np.concatenate([random.choice(kind, size, replace=False) for kind, size in zip(kinds, sizes)])
        pairs, same = pairs[drawn], same[drawn]
    return pairs, np.where(same, 1.0, -1.0)


def learn_equivalence(
    X: ArrayLike,
    y: ArrayLike,
    kernel: Kernel,
    *,
    C: float = 1.0,
    pairs: int = PAIRS,
    tol: float = 1e-3,
    seed: int = 0,
) -> Equivalence:
    """Learn g from points X (n, d) and their classes y (n,), to a relative gap of `tol`, from at most so many pairs."""
    points, labels = np.asarray(X, dtype=np.float64), np.asarray(y)
    if points.ndim != 2 or labels.shape != (len(points),):
        raise InvalidInput(f"X must be (n, d) and y (n,), got shapes {points.shape} and {labels.shape}")
    chosen, t = sampled_pairs(labels, pairs, seed)
    K = np.asarray(Gram(kernel, points).dense(), dtype=np.float64)
    columns = K[:, chosen[:, 0]] - K[:, chosen[:, 1]]
    products = columns[chosen[:, 0]] - columns[chosen[:, 1]]
    problem = RegularisedRisk(Gram(Precomputed(), products**2), t, Hinge(), C)
    solution = decomposition.solve(problem, tol=VIOLATION * tol, gap_tol=tol)
    M = np.zeros_like(K)
    for (a, b), c in zip(chosen, solution.coefficients):
        M[a, a] += c
        M[b, b] += c
        M[a, b] -= c
        M[b, a] -= c
    return Equivalence(kernel, points, labels, M, float(solution.bias), solution)
