"""Least-squares problems of every kind, and their answer by dense algebra that shares no code with the solvers."""

import numpy as np

from mercer.gram import Gram
from mercer.kernels import Gaussian, Linear, Multiquadric, Polynomial
from mercer.problems.least_squares import LeastSquares


def points(n=60, d=3, k=2, seed=0):
    """X (n, d) and Y (n, k)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, :1]) + 0.3 * rng.normal(size=(n, k))


def dense_answer(problem):
    """c (n, k) and offsets (q, k) by least squares on the whole saddle-point matrix."""
    keep = problem.weights > 0
    K = problem.gram.dense()[np.ix_(keep, keep)] + problem.constant
    Phi, Y = problem.columns[keep], problem.Y[keep]
    m, q = Phi.shape
    A = np.block([[K + np.diag(problem.ridge[keep]), Phi], [Phi.T, np.zeros((q, q))]])
    u = np.linalg.lstsq(A, np.vstack([Y, np.zeros((q, problem.k))]), rcond=None)[0]
    c = np.zeros(problem.Y.shape)
    c[keep] = u[:m]
    return c, u[m:]


def make(kernel=None, n=60, k=2, C=5.0, d=3, seed=0, duplicates=False, **options):
    """A problem; `duplicates` repeats a third of the points with other targets."""
    X, Y = points(n, d, k, seed)
    if duplicates:
        X[: n // 3] = X[n // 3 : 2 * (n // 3)]
    return LeastSquares(Gram(Gaussian(1.0) if kernel is None else kernel, X), Y, C=C, **options)


def weights(n=60, zeros=True):
    """Uneven weights, two of them zero."""
    w = np.random.default_rng(7).uniform(0.3, 3.0, n)
    if zeros:
        w[[4, 17]] = 0
    return w


CASES = {
    "gaussian, free bias": lambda: make(),
    "no bias": lambda: make(bias="none"),
    "penalised bias": lambda: make(bias="penalised"),
    "one output": lambda: make(k=1),
    "many outputs": lambda: make(k=6),
    "weights": lambda: make(weights=weights()),
    "weights, no bias": lambda: make(weights=weights(), bias="none"),
    "linear kernel, singular K": lambda: make(Linear()),
    "polynomial": lambda: make(Polynomial(degree=2, gamma=1.0, offset=1.0), C=0.5),
    "duplicates that disagree": lambda: make(duplicates=True),
    "parallel targets": lambda: LeastSquares(make(k=1).gram, make(k=1).Y @ np.array([[1.0, -2.0, 0.0]]), C=5.0),
}

SEMIPARAMETRIC = {
    "basis beside a free bias": lambda: make(basis=points()[0][:, :2]),
    "basis alone": lambda: make(basis=points()[0][:, :1], bias="none", weights=weights()),
}

CONDITIONAL = {"multiquadric of order one": lambda: make(Multiquadric(sigma=1.0, u=1))}
