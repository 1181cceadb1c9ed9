"""Direct and Krylov solution of the saddle-point form: LDL', MINRES, SYMMLQ."""

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator
from scipy.sparse.linalg import minres as scipy_minres

from mercer.errors import NotPositiveDefinite
from mercer.gram import Gram
from mercer.kernels import Precomputed
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.linear import minres, saddle, symmlq
from mercer.solvers.linear.saddle_form import SaddleForm
from mercer.solvers.linear.system import LinearSystem

from .linear_system_cases import make, points


def saddle_matrix(problem):
    q = problem.columns.shape[1]
    H = problem.gram.dense() + problem.constant + np.diag(problem.ridge)
    return np.block([[H, problem.columns], [problem.columns.T, np.zeros((q, q))]])


def test_the_form_is_the_bordered_matrix():
    problem = make(basis=points()[0][:, :1])
    form = SaddleForm(LinearSystem(problem))
    A = saddle_matrix(problem)
    U = np.random.default_rng(0).normal(size=(len(A), 2))
    np.testing.assert_allclose(form.dot(U), A @ U, atol=1e-12)


def test_ldl_takes_indefinite_kernels_and_gives_the_multipliers():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 30))
    problem = LeastSquares(Gram(Precomputed(), A + A.T), rng.normal(size=(30, 2)), C=0.5)
    expected = np.linalg.solve(saddle_matrix(problem), np.vstack([problem.Y, np.zeros((1, 2))]))
    solution = saddle.solve(problem)
    np.testing.assert_allclose(solution.coefficients, expected[:30], atol=1e-9)
    np.testing.assert_allclose(solution.details["multipliers"], expected[30:], atol=1e-9)


def test_dependent_basis_columns_are_refused_by_ldl():
    with pytest.raises(NotPositiveDefinite, match="dependent basis"):
        saddle.solve(make(basis=np.zeros((60, 1))))


@pytest.mark.parametrize("steps", [1, 2, 5, 12])
def test_minres_has_the_smallest_residual_in_its_krylov_space(steps):
    problem = make(k=1, C=20.0)
    A = saddle_matrix(problem)
    right = np.r_[problem.Y[:, 0], 0.0]
    basis = [right / np.linalg.norm(right)]
    for _ in range(steps - 1):
        v = A @ basis[-1]
        for _ in range(2):
            for b in basis:
                v = v - b * (b @ v)
        basis.append(v / np.linalg.norm(v))
    V = np.array(basis).T
    y = np.linalg.lstsq(A @ V, right, rcond=None)[0]
    smallest = np.linalg.norm(A @ V @ y - right) / np.linalg.norm(right)
    ours = minres.solve(problem, tol=None, residual=1e-30, iterations=steps)
    assert ours.details["residuals"][-1] == pytest.approx(smallest, rel=1e-8)


def test_minres_residuals_never_rise_and_match_scipy():
    problem = make(k=1, C=50.0)
    A = saddle_matrix(problem)
    right = np.r_[problem.Y[:, 0], 0.0]
    ours = minres.solve(problem, tol=None, residual=1e-8).details["residuals"]
    assert (np.diff(ours) <= 1e-15).all()
    seen = []

    def record(x):
        seen.append(np.linalg.norm(A @ x - right) / np.linalg.norm(right))

    operator = LinearOperator(A.shape, matvec=lambda v: A @ v, dtype=np.float64)
    scipy_minres(operator, right, rtol=1e-14, maxiter=20, callback=record)
    np.testing.assert_allclose(ours[1:12], seen[:11], rtol=1e-6)


def test_symmlq_error_falls_monotonically_until_it_is_rounding():
    problem = make(k=1, C=20.0)
    exact = np.linalg.solve(saddle_matrix(problem), np.r_[problem.Y[:, 0], 0.0])
    run = symmlq._Symmlq(problem, tol=None)
    errors = []
    for _ in range(40):
        errors.append(np.linalg.norm(run.U[:, 0] - exact))
        run.step()
    assert (np.diff(errors) <= 1e-9 * errors[0]).all()
    assert errors[-1] < 1e-2 * errors[0]


@pytest.mark.parametrize("solver", [minres, symmlq])
def test_the_residual_reported_is_the_true_one(solver):
    problem = make(k=2, C=10.0)
    run = {"minres": minres._Minres, "symmlq": symmlq._Symmlq}[solver.__name__.rsplit(".", 1)[-1]](problem, tol=None)
    form = run.form
    for _ in range(10):
        run.step()
        true = np.linalg.norm(form.right - form.dot(run.point()), axis=0).max()
        assert run.norm() == pytest.approx(true, rel=1e-7)
