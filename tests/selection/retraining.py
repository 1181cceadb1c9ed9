"""Explicit retraining without one point: what every leave-one-out bound is held against."""

import numpy as np

from mercer.gram import Gram
from mercer.kernels import Precomputed
from mercer.losses import Hinge, SquaredHinge
from mercer.problems import RegularisedRisk
from mercer.solvers.quadratic import interior_point


def gaussian(X):
    return np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / 2)


def noisy(seed, n=14, noise=0.7):
    """Points (n, 2), their Gaussian kernel matrix and labels of +-1, several of each."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    order = np.argsort(X[:, 0] + noise * rng.standard_normal(n))
    y = np.ones(n)
    y[order[: n // 2]] = -1.0
    return X, gaussian(X), y


def train(K, y, C, bias, squared=False):
    """Dual variables alpha (n,) and bias of a support vector machine, by interior point."""
    gram = Gram(Precomputed(), np.ascontiguousarray(K))
    problem = RegularisedRisk(gram, y, SquaredHinge() if squared else Hinge(), C, bias=bias)
    solution = interior_point.solve(problem, tol=1e-9)
    return solution.coefficients * y, float(solution.bias)


def left_out(K, y, C, bias, squared=False):
    """y_i f^(-i)(x_i) (n,), and whether machine i has a free support vector."""
    n = len(y)
    margins, determined = np.zeros(n), np.zeros(n, dtype=bool)
    for i in range(n):
        keep = np.arange(n) != i
        alpha, b = train(K[np.ix_(keep, keep)], y[keep], C, bias, squared)
        margins[i] = y[i] * (K[i, keep] @ (alpha * y[keep]) + b)
        determined[i] = bool(np.any((alpha > 1e-6 * C) & (alpha < (1 - 1e-6) * C)))
    return margins, determined
