"""Random problems of every kind, each with an independent statement of the same problem.

The statement is the textbook's table in unsigned variables a >= 0 (Schoelkopf and Smola 2002, section 10.3, signs
corrected): min 1/2 a'Qa + c'a, A a = d, 0 <= a <= u, and the primal objective written out with its losses.  Neither
uses the code of mercer's quadratic program.
"""

from collections.abc import Callable
from dataclasses import dataclass

import clarabel
import numpy as np
import scipy.sparse as sp

from mercer.gram import Gram
from mercer.kernels import Precomputed
from mercer.losses import (
    EpsilonInsensitive,
    Expectile,
    Hinge,
    Huber,
    Quantile,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from mercer.problems import (
    NuClassification,
    NuRegression,
    OneClass,
    Problem,
    RegularisedRisk,
)


@dataclass
class Case:
    problem: Problem
    Q: np.ndarray
    c: np.ndarray
    A: np.ndarray
    d: np.ndarray
    u: np.ndarray
    penalty: Callable[..., float]
    """Sum of losses given f (n,) and the free parameters."""
    K: np.ndarray

    def primal(self, coefficients, bias, **named):
        """The objective, written out."""
        f0 = self.K @ coefficients
        norm = coefficients @ f0 + (bias**2 if self.problem.bias == "penalised" else 0.0)
        return 0.5 * norm + self.penalty(f0, bias, **named)

    def unsigned(self, s):
        """a (N,) of signed variables."""
        if isinstance(self.problem, OneClass):
            return s
        if self.problem.program().size == 2 * self.problem.n:
            return np.abs(s)
        if self.Q.shape[0] == 2 * s.size:
            return np.concatenate((np.maximum(s, 0), np.maximum(-s, 0)))
        return np.abs(s)

    def optimum(self):
        """Smallest value of the table's program, by an interior point code of its own."""
        return table_optimum(self.Q, self.c, self.A, self.d, self.u)


def table_optimum(Q, c, A, d, u):
    N = c.size
    bounded = np.isfinite(u)
    rows = [sp.csc_matrix(A)] if d.size else []
    rows += [-sp.eye(N, format="csc"), sp.eye(N, format="csc")[bounded]]
    right = np.concatenate((d, np.zeros(N), u[bounded]))
    cones = ([clarabel.ZeroConeT(d.size)] if d.size else []) + [clarabel.NonnegativeConeT(N + int(bounded.sum()))]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solver = clarabel.DefaultSolver(sp.csc_matrix(np.triu(Q)), c, sp.vstack(rows, format="csc"), right, cones, settings)
    return solver.solve().obj_val


def gaussian(X, sigma=1.0):
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / (2 * sigma**2))


def plus(t):
    return np.maximum(t, 0.0)


def _regression_matrices(K, y, epsilon, D):
    Q = np.block([[K, -K], [-K, K]]) + np.diag(np.concatenate((D, D)))
    return Q, np.concatenate((epsilon - y, epsilon + y))


@dataclass
class Data:
    """One random draw that all kinds share."""

    rng: np.random.Generator
    n: int
    C: float
    bias: str
    weighted: bool
    sigma: float = 1.0

    def __post_init__(self):
        rng, n = self.rng, self.n
        self.X = rng.normal(size=(n, 2))
        self.K = gaussian(self.X, self.sigma)
        self.gram = Gram(Precomputed(), self.K)
        self.y = np.where(self.X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
        self.y[:2] = 1.0, -1.0
        self.t = np.sin(2 * self.X[:, 0]) + 0.3 * rng.normal(size=n)
        self.weights = rng.integers(0, 3, size=n) + rng.uniform(size=n) if self.weighted else None
        self.w = np.ones(n) if self.weights is None else self.weights
        self.box = self.C * self.w
        self.kernel = self.K + (1.0 if self.bias == "penalised" else 0.0)

    def rows(self, row):
        return (row[None], np.zeros(1)) if self.bias == "free" else (np.zeros((0, row.size)), np.zeros(0))


def c_svc(r: Data) -> Case:
    Q, (A, d) = np.outer(r.y, r.y) * r.kernel, r.rows(r.y)
    problem = RegularisedRisk(r.gram, r.y, Hinge(), r.C, r.weights, r.bias)
    return Case(problem, Q, -np.ones(r.n), A, d, r.box, lambda f0, b: r.box @ plus(1 - r.y * (f0 + b)), r.K)


def squared_hinge(r: Data) -> Case:
    D = np.divide(0.5, r.box)
    Q, (A, d) = np.outer(r.y, r.y) * r.kernel + np.diag(D), r.rows(r.y)
    problem = RegularisedRisk(r.gram, r.y, SquaredHinge(), r.C, r.weights, r.bias)
    u = np.full(r.n, np.inf)
    return Case(problem, Q, -np.ones(r.n), A, d, u, lambda f0, b: r.box @ plus(1 - r.y * (f0 + b)) ** 2, r.K)


def nu_svc(r: Data) -> Case:
    nu = 0.8 * 2 * min(r.w[r.y > 0].sum(), r.w[r.y < 0].sum()) / r.w.sum()
    A, d = np.vstack((r.y, np.ones(r.n))), np.array([0.0, nu * r.w.sum()])
    problem = NuClassification(r.gram, r.y, nu, r.weights)

    def penalty(f0, b, rho):
        return -nu * r.w.sum() * rho + r.w @ plus(rho - r.y * (f0 + b))

    return Case(problem, np.outer(r.y, r.y) * r.K, np.zeros(r.n), A, d, r.w, penalty, r.K)


def eps_svr(r: Data, epsilon=0.1) -> Case:
    Q, c = _regression_matrices(r.kernel, r.t, epsilon, np.zeros(r.n))
    A, d = r.rows(np.concatenate((np.ones(r.n), -np.ones(r.n))))
    problem = RegularisedRisk(r.gram, r.t, EpsilonInsensitive(epsilon), r.C, r.weights, r.bias)

    def penalty(f0, b):
        return r.box @ plus(np.abs(r.t - f0 - b) - epsilon)

    return Case(problem, Q, c, A, d, np.concatenate((r.box, r.box)), penalty, r.K)


def squared_eps(r: Data, epsilon=0.1) -> Case:
    Q, c = _regression_matrices(r.kernel, r.t, epsilon, 0.5 / r.box)
    A, d = r.rows(np.concatenate((np.ones(r.n), -np.ones(r.n))))
    problem = RegularisedRisk(r.gram, r.t, SquaredEpsilonInsensitive(epsilon), r.C, r.weights, r.bias)

    def penalty(f0, b):
        return r.box @ plus(np.abs(r.t - f0 - b) - epsilon) ** 2

    return Case(problem, Q, c, A, d, np.full(2 * r.n, np.inf), penalty, r.K)


def huber(r: Data, epsilon=0.0, threshold=0.4) -> Case:
    Q, c = _regression_matrices(r.kernel, r.t, epsilon, threshold / r.box)
    A, d = r.rows(np.concatenate((np.ones(r.n), -np.ones(r.n))))
    problem = RegularisedRisk(r.gram, r.t, Huber(threshold, epsilon=epsilon), r.C, r.weights, r.bias)

    def penalty(f0, b):
        e = plus(np.abs(r.t - f0 - b) - epsilon)
        return r.box @ np.where(e <= threshold, e**2 / (2 * threshold), e - threshold / 2)

    return Case(problem, Q, c, A, d, np.concatenate((r.box, r.box)), penalty, r.K)


def huber_with_tube(r: Data) -> Case:
    return huber(r, epsilon=0.15)


def quantile(r: Data, tau=0.2) -> Case:
    Q, c = _regression_matrices(r.kernel, r.t, 0.0, np.zeros(r.n))
    A, d = r.rows(np.concatenate((np.ones(r.n), -np.ones(r.n))))
    problem = RegularisedRisk(r.gram, r.t, Quantile(tau), r.C, r.weights, r.bias)

    def penalty(f0, b):
        e = r.t - f0 - b
        return r.box @ np.where(e > 0, tau * e, (tau - 1) * e)

    return Case(problem, Q, c, A, d, np.concatenate((tau * r.box, (1 - tau) * r.box)), penalty, r.K)


def expectile(r: Data, tau=0.7) -> Case:
    Q, c = _regression_matrices(r.kernel, r.t, 0.0, np.zeros(r.n))
    Q += np.diag(0.5 / np.concatenate((tau * r.box, (1 - tau) * r.box)))
    A, d = r.rows(np.concatenate((np.ones(r.n), -np.ones(r.n))))
    problem = RegularisedRisk(r.gram, r.t, Expectile(tau), r.C, r.weights, r.bias)

    def penalty(f0, b):
        e = r.t - f0 - b
        return r.box @ (np.where(e > 0, tau, 1 - tau) * e**2)

    return Case(problem, Q, c, A, d, np.full(2 * r.n, np.inf), penalty, r.K)


def _two_sided(r: Data, loss, D, epsilon, bounded, value) -> Case:
    """`D` (2,) times 1/cost on the diagonal; `value` of a mistake of some size, times the cost of its direction."""
    both = r.rng.uniform(0.2, 2.0, size=(r.n, 2))
    up, down = r.C * both.T
    Q, c = _regression_matrices(r.kernel, r.t, epsilon, np.zeros(r.n))
    Q += np.diag(np.concatenate((D / up, D / down)))
    A, d = r.rows(np.concatenate((np.ones(r.n), -np.ones(r.n))))
    u = np.concatenate((up, down)) if bounded else np.full(2 * r.n, np.inf)
    problem = RegularisedRisk(r.gram, r.t, loss, r.C, both, r.bias)

    def penalty(f0, b):
        e = r.t - f0 - b
        return up @ value(plus(e - epsilon)) + down @ value(plus(-e - epsilon))

    return Case(problem, Q, c, A, d, u, penalty, r.K)


def two_sided_svr(r: Data) -> Case:
    return _two_sided(r, EpsilonInsensitive(0.1), 0.0, 0.1, True, lambda e: e)


def two_sided_squares(r: Data) -> Case:
    return _two_sided(r, SquaredEpsilonInsensitive(0.1), 0.5, 0.1, False, lambda e: e**2)


def two_sided_huber(r: Data) -> Case:
    return _two_sided(r, Huber(0.4), 0.4, 0.0, True, lambda e: np.where(e <= 0.4, e**2 / 0.8, e - 0.2))


def two_sided_svc(r: Data) -> Case:
    """For labels the two directions are the two classes."""
    both = r.rng.uniform(0.2, 2.0, size=(r.n, 2))
    own = r.C * np.where(r.y > 0, both[:, 0], both[:, 1])
    Q, (A, d) = np.outer(r.y, r.y) * r.kernel, r.rows(r.y)
    problem = RegularisedRisk(r.gram, r.y, Hinge(), r.C, both, r.bias)
    return Case(problem, Q, -np.ones(r.n), A, d, own, lambda f0, b: own @ plus(1 - r.y * (f0 + b)), r.K)


def nu_svr(r: Data, nu=0.4) -> Case:
    Q, c = _regression_matrices(r.K, r.t, 0.0, np.zeros(r.n))
    one = np.ones(r.n)
    A = np.vstack((np.concatenate((one, -one)), np.ones(2 * r.n)))
    problem = NuRegression(r.gram, r.t, r.C, nu, r.weights)
    total = nu * r.box.sum()

    def penalty(f0, b, epsilon):
        return total * epsilon + r.box @ plus(np.abs(r.t - f0 - b) - epsilon)

    return Case(problem, Q, c, A, np.array([0.0, total]), np.concatenate((r.box, r.box)), penalty, r.K)


def one_class(r: Data, nu=0.3) -> Case:
    total = nu * r.w.sum()
    problem = OneClass(r.gram, nu, r.weights)

    def penalty(f0, b, rho):
        return -total * rho + r.w @ plus(rho - f0)

    return Case(problem, r.K, np.zeros(r.n), np.ones((1, r.n)), np.array([total]), r.w, penalty, r.K)


def _semiparametric(r: Data, base: Case, signs: np.ndarray) -> Case:
    psi = np.column_stack((r.X[:, 0], np.cos(r.X[:, 1])))
    p = base.problem
    if isinstance(p, RegularisedRisk):
        problem = RegularisedRisk(r.gram, p.y, p.loss, r.C, r.weights, r.bias, psi)
    else:
        problem = NuRegression(r.gram, p.y, r.C, p.nu, r.weights, psi)
    points = np.tile(psi, (signs.size // r.n, 1))
    A, d = np.vstack((base.A, (signs[:, None] * points).T)), np.concatenate((base.d, np.zeros(2)))

    def penalty(f0, b, basis, **named):
        return base.penalty(f0 + psi @ basis, b, **named)

    return Case(problem, base.Q, base.c, A, d, base.u, penalty, r.K)


def semiparametric_svc(r: Data) -> Case:
    return _semiparametric(r, c_svc(r), r.y)


def semiparametric_svr(r: Data) -> Case:
    return _semiparametric(r, eps_svr(r), np.concatenate((np.ones(r.n), -np.ones(r.n))))


def semiparametric_expectile(r: Data) -> Case:
    return _semiparametric(r, expectile(r), np.concatenate((np.ones(r.n), -np.ones(r.n))))


def semiparametric_nu_svr(r: Data) -> Case:
    return _semiparametric(r, nu_svr(r), np.concatenate((np.ones(r.n), -np.ones(r.n))))


KINDS: list[Callable[[Data], Case]] = [
    c_svc,
    nu_svc,
    squared_hinge,
    eps_svr,
    squared_eps,
    nu_svr,
    huber,
    huber_with_tube,
    quantile,
    expectile,
    two_sided_svc,
    two_sided_svr,
    two_sided_squares,
    two_sided_huber,
    one_class,
    semiparametric_svc,
    semiparametric_svr,
    semiparametric_expectile,
    semiparametric_nu_svr,
]
BIASES = ("free", "none", "penalised")


def case(kind, seed, n=30, C=None, bias=None, weighted=None) -> Case:
    """Draw number `seed` of a kind; bias, weights, C and width vary with the seed unless stated."""
    rng = np.random.default_rng(seed)
    bias = BIASES[seed % 3] if bias is None else bias
    if kind in (nu_svc, nu_svr, one_class, semiparametric_nu_svr):
        bias = "free"
    C = float(10 ** rng.uniform(-1, 1.5)) if C is None else C
    weighted = bool(seed % 2) if weighted is None else weighted
    return kind(Data(rng, n, C, bias, weighted, float(rng.uniform(0.5, 2.0))))


def feasible_point(problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """A random dual-feasible point (N,)."""
    program = problem.program()
    low, high = np.maximum(program.lower, -3.0), np.minimum(program.upper, 3.0)
    s = rng.uniform(low, high)
    if rng.uniform() < 0.5:
        s = np.where(rng.uniform(size=s.size) < 0.5, np.clip(0, low, high), s)
    if program.groups is not None:
        return program.project(s)
    if program.d.any():
        return program.project(s)
    # Move into the null space of the rows, then shrink into the box, which contains zero.
    A = program.equalities
    step = s - np.linalg.pinv(A) @ (A @ s)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(step > 0, program.upper / step, np.where(step < 0, program.lower / step, np.inf))
    return step * min(1.0, float(np.nanmin(room)))
