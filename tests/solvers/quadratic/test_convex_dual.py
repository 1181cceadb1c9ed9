"""Duals that are not quadratic: bounds at any point, logistic regression, and quadratic ones as a special case."""

import numpy as np
import pytest
from scipy.optimize import minimize

from mercer.gram import Gram
from mercer.kernels import Precomputed
from mercer.losses import Logistic
from mercer.problems.program import QuadraticProgram
from mercer.solvers.quadratic import interior_point
from mercer.solvers.quadratic.convex_dual import Entropy, dual_value, objective, solve
from tests.problems.zoo import case, gaussian, huber


def logistic(seed=0, n=25, C=2.0):
    """The dual of kernel logistic regression with a free bias, and its primal written out."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    K = gaussian(X)
    lower, upper = np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)
    zero = np.zeros(n)
    program = QuadraticProgram(
        Gram(Precomputed(), K), np.arange(n), lower, upper, zero, zero, np.zeros(n, dtype=np.intp), np.zeros(1)
    )

    def primal(x):
        f = K @ x[:n] + x[n]
        value = 0.5 * x[:n] @ (K @ x[:n]) + C * Logistic().value(y, f).sum()
        slope = C * Logistic().slope(y, f)
        return value, np.append(K @ (x[:n] + slope), slope.sum())

    return program, Entropy(C * y), primal


@pytest.mark.parametrize("seed", range(3))
def test_logistic_regression_has_the_optimum_of_its_primal(seed):
    program, psi, primal = logistic(seed)
    found = solve(program, psi, tol=1e-9)
    assert found.converged
    reference = minimize(primal, np.zeros(program.n + 1), jac=True, method="BFGS", options={"gtol": 1e-7})
    assert found.dual == pytest.approx(reference.fun, rel=1e-6)
    assert found.dual <= reference.fun * (1 + 1e-9)
    assert found.bias == pytest.approx(reference.x[-1], abs=1e-3)
    assert found.iterations < 20


def test_every_point_and_every_multiplier_gives_a_lower_bound():
    program, psi, _ = logistic(1)
    best = objective(program, psi, solve(program, psi, tol=1e-10).variables)
    rng = np.random.default_rng(0)
    for _ in range(50):
        s = rng.uniform(program.lower, program.upper)
        assert dual_value(program, psi, s, rng.normal(size=1)) <= best + 1e-9 * abs(best)


def test_a_quadratic_term_is_the_ridge_of_the_quadratic_program():
    problem = case(huber, 2, bias="free").problem
    program = problem.program()

    class Ridge:
        def value(self, s):
            return 0.5 * s * s

        def slope(self, s):
            return s

        def curvature(self, s):
            return np.ones_like(s)

    from dataclasses import replace

    found = solve(program, Ridge(), tol=1e-8)
    reference = interior_point.solve(replace(program, ridge=program.ridge + 1.0), tol=1e-10)
    assert found.converged
    assert found.dual == pytest.approx(reference.dual, rel=1e-7)


def test_a_limit_on_the_iterations_is_kept_and_the_bound_holds():
    program, psi, _ = logistic(2)
    best = solve(program, psi, tol=1e-10)
    few = solve(program, psi, tol=1e-12, max_iter=1)
    assert few.stopped == "iterations"
    assert few.dual <= best.primal
    assert few.primal >= best.dual
