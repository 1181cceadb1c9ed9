"""All least-squares solvers on the same systems: each meets the dense answer as closely as its gap promises."""

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import Gaussian
from mercer.problems.least_squares import LeastSquares
from mercer.solvers import Monitor
from mercer.solvers.linear import (
    block_conjugate_gradient,
    cholesky,
    conjugate_gradient,
    least_squares_smo,
    minres,
    multishift,
    saddle,
    spectral,
    stationary,
    symmlq,
)

from .linear_system_cases import CASES, CONDITIONAL, SEMIPARAMETRIC, dense_answer, make

DIRECT = [cholesky, saddle, spectral]
KRYLOV = [conjugate_gradient, block_conjugate_gradient, multishift, minres, symmlq]
SLOW = [stationary, least_squares_smo]


def name(module):
    return module.__name__.rsplit(".", 1)[-1]


def assert_agrees(problem, solution, floor=0.0):
    """|c - c*|^2 in the norm of K + R is at most twice the gap, and the bias follows."""
    c, offsets = dense_answer(problem)
    keep = problem.weights > 0
    H = (problem.gram.dense() + problem.constant)[np.ix_(keep, keep)] + np.diag(problem.ridge[keep])
    difference = (solution.coefficients - c)[keep]
    # lstsq itself is right to about cond x 1e-16 only.
    rounding = 1e-20 * (1 + abs(solution.primal)) * np.linalg.cond(H)
    assert np.sum(difference * (H @ difference)) <= 2.1 * solution.gap + rounding + floor
    assert solution.gap >= 0
    assert solution.primal - solution.dual == pytest.approx(solution.gap, rel=1e-6, abs=1e-9 * (1 + solution.primal))
    if problem.bias == "free":
        np.testing.assert_allclose(solution.coefficients.sum(axis=0), 0, atol=1e-9 * np.abs(c).max())
    if len(offsets):
        # The offsets fit y - Kc, and |K (c - c*)| <= sqrt(|K| 2 gap).
        root = np.sqrt(problem.weights[keep])[:, None]
        reach = np.linalg.norm(np.linalg.pinv(root * problem.columns[keep]), 2) * root.max()
        bound = reach * np.sqrt(np.linalg.norm(H, 2) * (2.1 * solution.gap + rounding))
        assert np.abs(solution.multipliers["offsets"] - offsets).max() <= bound + 1e-9


@pytest.mark.parametrize("case", [*CASES, *SEMIPARAMETRIC])
@pytest.mark.parametrize("solver", DIRECT, ids=name)
def test_direct_solvers_meet_the_dense_answer(solver, case):
    problem = (CASES | SEMIPARAMETRIC)[case]()
    solution = solver.solve(problem)
    assert solution.relative_gap < 1e-18
    assert_agrees(problem, solution)
    c, _ = dense_answer(problem)
    np.testing.assert_allclose(solution.coefficients, c, atol=1e-8 * (1 + np.abs(c).max()))


@pytest.mark.parametrize("case", [*CASES, *SEMIPARAMETRIC])
@pytest.mark.parametrize("solver", KRYLOV, ids=name)
@pytest.mark.parametrize("tol", [1e-6, 1e-12])
def test_krylov_solvers_meet_the_dense_answer(solver, case, tol):
    problem = (CASES | SEMIPARAMETRIC)[case]()
    solution = solver.solve(problem, tol=tol)
    assert solution.stopped == "converged"
    assert solution.relative_gap <= tol
    assert_agrees(problem, solution)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("solver", SLOW, ids=name)
def test_slow_solvers_meet_the_dense_answer(solver, case):
    problem = CASES[case]()
    solution = solver.solve(problem, tol=1e-8)
    assert solution.stopped == "converged"
    assert solution.relative_gap <= 1e-8
    assert_agrees(problem, solution)


@pytest.mark.parametrize("case", CONDITIONAL)
@pytest.mark.parametrize("solver", [*DIRECT, *KRYLOV, *SLOW], ids=name)
def test_conditionally_positive_definite_kernels(solver, case):
    problem = CONDITIONAL[case]()
    assert np.linalg.eigvalsh(problem.gram.dense() + np.diag(problem.ridge))[0] < 0
    solution = solver.solve(problem)
    c, offsets = dense_answer(problem)
    accuracy = 1e-9 if solver in DIRECT else 1e-3
    np.testing.assert_allclose(solution.coefficients, c, atol=accuracy * np.abs(c).max())
    np.testing.assert_allclose(
        solution.bias, offsets[0], atol=accuracy * np.abs(offsets).max() + 1e-3 * (accuracy > 1e-6)
    )
    assert solution.gap == pytest.approx(solution.primal - solution.dual, rel=1e-4, abs=1e-8 * solution.primal)


@pytest.mark.parametrize("solver", [*KRYLOV[:2], *KRYLOV[3:], *SLOW], ids=name)
def test_a_warm_start_at_the_solution_needs_no_steps_and_a_near_one_fewer(solver):
    problem = make(k=1)
    cold = solver.solve(problem, tol=1e-8)
    again = solver.solve(problem, tol=1.01e-8, start=cold)
    assert again.iterations <= 1
    near = solver.solve(problem.with_C(5.5), tol=1e-8, start=cold)
    assert near.iterations <= cold.iterations
    assert near.relative_gap <= 1e-8


@pytest.mark.parametrize("solver", [*KRYLOV, *SLOW], ids=name)
def test_a_monitor_sees_the_gap_close_and_can_stop_the_run(solver):
    problem = make(n=80, C=100.0)
    seen = []
    with Monitor(callback=lambda record: len(seen) >= 3 or seen.append(record)) as monitor:
        solution = solver.solve(problem, monitor=monitor)
    assert solution.stopped == "interrupted"
    assert len(seen) == 3
    assert solution.gap >= 0
    with Monitor() as monitor:
        solver.solve(problem, tol=1e-7, monitor=monitor)
    gaps = [record.gap for record in monitor.history]
    assert gaps[-1] < gaps[0]
    assert all(record.primal >= record.dual for record in monitor.history)


@pytest.mark.parametrize("solver", [*KRYLOV[:2], *KRYLOV[3:], *SLOW], ids=name)
def test_a_checkpoint_is_written_and_taken_up(solver, tmp_path):
    problem = make(k=1, C=50.0)
    whole = solver.solve(problem, tol=1e-8)
    path = tmp_path / "fit.npz"
    with Monitor(checkpoint=path, callback=lambda record: record.iteration >= whole.iterations // 2) as monitor:
        assert solver.solve(problem, tol=1e-8, monitor=monitor).stopped == "interrupted"
    with Monitor(checkpoint=path) as monitor:
        rest = solver.solve(problem, tol=1e-8, monitor=monitor)
    assert rest.relative_gap <= 1e-8
    assert rest.iterations < whole.iterations


@pytest.mark.parametrize("solver", [*KRYLOV[:2], *KRYLOV[3:]], ids=name)
def test_a_limit_on_iterations_is_kept_and_said(solver):
    solution = solver.solve(make(C=1e4), tol=1e-14, iterations=3)
    assert solution.iterations == 3
    assert solution.stopped == "iterations"


@pytest.mark.parametrize("solver", [*DIRECT, *KRYLOV, *SLOW], ids=name)
def test_other_problems_are_refused_with_the_reason(solver):
    answer = solver.accepts("not a problem")
    assert not answer
    assert "least-squares" in answer.reason


def test_pair_steps_refuse_a_basis():
    problem = make(basis=np.arange(60.0))
    assert not least_squares_smo.accepts(problem)
    with pytest.raises(InvalidInput, match="basis"):
        least_squares_smo.solve(problem)


@pytest.mark.parametrize("solver", [*KRYLOV[:3], *SLOW], ids=name)
def test_iterations_that_need_a_ridge_refuse_interpolation(solver):
    problem = make(C=np.inf)
    with pytest.raises(InvalidInput, match="C = inf"):
        solver.solve(problem)


@pytest.mark.parametrize("solver", [*DIRECT, *KRYLOV, *SLOW], ids=name)
def test_zero_targets_give_zero(solver):
    X = np.random.default_rng(0).normal(size=(20, 2))
    solution = solver.solve(LeastSquares(Gram(Gaussian(), X), np.zeros((20, 2))))
    assert not solution.coefficients.any()
    assert solution.gap == 0
    assert solution.stopped == "converged"


@pytest.mark.parametrize("solver", [*DIRECT, *KRYLOV, *SLOW], ids=name)
def test_one_sample(solver):
    solution = solver.solve(LeastSquares(Gram(Gaussian(), np.zeros((1, 2))), [[4.0, -1.0]]))
    np.testing.assert_allclose(solution.bias, [4.0, -1.0], rtol=1e-12)
    np.testing.assert_allclose(solution.coefficients, 0, atol=1e-12)
