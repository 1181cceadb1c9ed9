"""From decision values to probabilities: Platt's sigmoid, and the coupling of pairs.

A binary machine with decision value f gets P(positive | f) = 1 / (1 + exp(A f + B)).  A and B maximise the likelihood
of targets drawn in from 0 and 1, t+ = (n+ + 1)/(n+ + 2) and t- = 1/(n- + 2) (Platt 1999), by Newton's method with
the formulas that neither overflow nor cancel (Lin, Lin and Weng 2007).

For k classes every pair i < j gives r_ij, an estimate of p_i / (p_i + p_j) (the Bradley-Terry model), and p minimises

    sum over i < j of (r_ji p_i - r_ij p_j)^2     subject to sum p = 1

(Wu, Lin and Weng 2004, second method).  With Q_ii = sum_j r_ji^2 and Q_ij = -r_ji r_ij that is Q p = mu 1, solved
directly.  Where the r_ij come from one p, that p is recovered exactly.

Machines vote, and the vote need not fall where the coupled probability is largest.  `agree` moves a row of
probabilities the least it must, in the sense of least squares, so that the predicted class is the most probable one.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mercer import dense

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

SMALLEST = 1e-7  # pairwise estimates stay this far from 0 and 1, as in LIBSVM
ADVANTAGE = 1e-9  # how much larger the predicted class comes out of a tie


def _likelihood(a: float, b: float, values: Vector, targets: Vector, weights: Vector) -> float:
    """Weighted negative log-likelihood sum_i w_i [t_i z_i + log(1 + exp(-z_i))], z = a f + b, safe for any z."""
    z = a * values + b
    return float(np.dot(weights, np.logaddexp(0.0, -z) + targets * z))


def fit_sigmoid(values: Vector, positive: NDArray[np.bool_], weights: Vector | None = None) -> tuple[float, float]:
    """Return (A, B) of Platt's sigmoid for decision values (n,) and their classes.

    Newton's method with a small ridge on the Hessian and halving of the step; the likelihood is convex, so that the
    answer does not depend on the start.
    """
    w = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64)
    prior1 = float(w[positive].sum())
    prior0 = float(w.sum()) - prior1
    targets = np.where(positive, (prior1 + 1.0) / (prior1 + 2.0), 1.0 / (prior0 + 2.0))
    a, b = 0.0, float(np.log((prior0 + 1.0) / (prior1 + 1.0)))
    value = _likelihood(a, b, values, targets, w)
    for _ in range(100):
        p = sigmoid(values, a, b)
        slope = w * (targets - p)
        g1, g2 = float(np.dot(slope, values)), float(slope.sum())
        if max(abs(g1), abs(g2)) < 1e-7 * max(1.0, float(w.sum())):
            break
        curvature = w * p * (1.0 - p)
        h11 = float(np.dot(curvature, values * values)) + 1e-12
        h22 = float(curvature.sum()) + 1e-12
        h21 = float(np.dot(curvature, values))
        determinant = h11 * h22 - h21 * h21
        if not determinant > 0.0:  # all decision values are the same: they say nothing about the class
            break
        da, db = -(h22 * g1 - h21 * g2) / determinant, -(h11 * g2 - h21 * g1) / determinant
        slope_along = g1 * da + g2 * db
        step = 1.0
        while step >= 1e-10:
            trial = _likelihood(a + step * da, b + step * db, values, targets, w)
            if trial < value + 1e-4 * step * slope_along:
                break
            step /= 2.0
        else:
            break
        a, b, value = a + step * da, b + step * db, trial
    return a, b


def sigmoid(values: NDArray[np.float64], a: float | Vector, b: float | Vector) -> NDArray[np.float64]:
    """1 / (1 + exp(a f + b)), computed so that exp never overflows."""
    z = a * values + b
    small = np.exp(-np.abs(z))
    return np.asarray(np.where(z >= 0.0, small, 1.0) / (1.0 + small))


def couple(pairs: Matrix, classes: int) -> Matrix:
    """Turn r (n, k(k-1)/2), pair (i, j), i < j, in lexical order, into class probabilities p (n, k)."""
    first, second = np.triu_indices(classes, 1)
    r = np.clip(pairs, SMALLEST, 1.0 - SMALLEST)
    if classes == 2:
        return np.column_stack([r[:, 0], 1.0 - r[:, 0]])
    n = len(r)
    wins = np.zeros((n, classes, classes))
    wins[:, first, second] = r
    wins[:, second, first] = 1.0 - r
    bordered = np.zeros((n, classes + 1, classes + 1))
    quadratic = bordered[:, :classes, :classes]
    quadratic[...] = -wins * wins.transpose(0, 2, 1)
    diagonal = np.arange(classes)
    quadratic[:, diagonal, diagonal] = (wins**2).sum(axis=1)
    bordered[:, classes, :classes] = 1.0
    bordered[:, :classes, classes] = 1.0
    right = np.zeros((n, classes + 1, 1))
    right[:, classes] = 1.0
    p = np.maximum(dense.solve_square(bordered, right)[:, :classes, 0], 0.0)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def agree(probabilities: Matrix, predicted: NDArray[np.intp]) -> Matrix:
    """Make `predicted` (n,) the most probable class of every row of p (n, k).

    Rows where it already is are returned as they are.  In the others the predicted class and the classes above it
    share their mass equally, which is the nearest point of the set {p_c >= p_j for all j}; then the predicted class
    is put ahead by one part in 10^9, and the order of the others is kept on the same scale.
    """
    p = probabilities.copy()
    rows = np.flatnonzero(p.argmax(axis=1) != predicted)
    for row in rows:
        chosen = predicted[row]
        values = p[row]
        order = [j for j in np.argsort(-values, kind="stable") if j != chosen]
        pool, mass = [chosen], float(values[chosen])
        for j in order:
            if values[j] < mass / len(pool):
                break
            pool.append(j)
            mass += float(values[j])
        level = mass / len(pool)
        spread = values[pool] - level
        values[pool] = level * (1.0 + ADVANTAGE * spread)
        values[chosen] = level * (1.0 + 2.0 * ADVANTAGE)
        p[row] = values / values.sum()
    return p


def folds(codes: NDArray[np.intp], parts: int, random: np.random.RandomState) -> NDArray[np.intp]:
    """Assign each point (n,) to one of `parts` folds, at random and evenly within each class."""
    fold = np.empty(len(codes), dtype=np.intp)
    offset = 0
    for label in np.unique(codes):
        members = random.permutation(np.flatnonzero(codes == label))
        fold[members] = (offset + np.arange(len(members))) % parts
        offset += len(members)
    return fold


def held_out_values(
    fold: NDArray[np.intp], machines: int, train: Callable[[NDArray[np.intp], NDArray[np.intp]], Matrix]
) -> Matrix:
    """Collect decision values (n, machines), each from machines that did not see the point.

    `train(inside, outside)` trains on the first index set and returns the decision values on the second.
    """
    values = np.zeros((len(fold), machines))
    for part in np.unique(fold):
        outside = np.flatnonzero(fold == part)
        inside = np.flatnonzero(fold != part)
        values[outside] = train(inside, outside)
    return values
