"""Stationary methods: convergence for 0 < omega < 2 at the predicted rate, blocks, and Jacobi's divergence."""

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import Gaussian, Precomputed
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.linear import cholesky, stationary
from mercer.solvers.linear.stationary import Sweeps
from mercer.solvers.linear.system import LinearSystem
from mercer.solvers.monitor import Monitor

from .linear_system_cases import make, points, weights


def iteration_matrix(H, omega, method="sor"):
    """(D + wL)^-1 ((1 - w)D - wU), and its backward twin times it for SSOR."""
    D, L, U = np.diag(np.diag(H)), np.tril(H, -1), np.triu(H, 1)
    forward = np.linalg.solve(D + omega * L, (1 - omega) * D - omega * U)
    if method == "sor":
        return forward
    return np.linalg.solve(D + omega * U, (1 - omega) * D - omega * L) @ forward


def radius(matrix):
    return np.abs(np.linalg.eigvals(matrix)).max()


def kernel_system(n=80, C=10.0):
    X, Y = points(n=n, k=1)
    return LeastSquares(Gram(Gaussian(1.0), X), Y, C=C, bias="none")


@pytest.mark.parametrize("omega", [0.1, 0.5, 1.0, 1.5, 1.9])
@pytest.mark.parametrize("method", ["sor", "ssor"])
def test_the_spectral_radius_predicts_the_rate(omega, method):
    problem = kernel_system()
    H = problem.gram.dense() + np.diag(problem.ridge)
    rho = radius(iteration_matrix(H, omega, method))
    assert rho < 1
    sweeps = Sweeps(LinearSystem(problem), method, omega, 1, True)
    exact = np.linalg.solve(H, problem.Y)
    Z = np.zeros_like(problem.Y)
    errors = []
    for _ in range(600):
        Z = sweeps.apply(Z)
        errors.append(np.linalg.norm(Z - exact))
    errors = np.array(errors)
    usable = errors > 1e-9 * errors[0]
    last = np.flatnonzero(usable)[-1]
    observed = (errors[last] / errors[last // 2]) ** (1 / (last - last // 2))
    assert observed == pytest.approx(rho, abs=0.01)


@pytest.mark.parametrize("omega", [2.02, 2.05])
@pytest.mark.parametrize("block", [1, 10, 80])
def test_beyond_two_nothing_converges(omega, block):
    problem = kernel_system()
    H = problem.gram.dense() + np.diag(problem.ridge)
    if block == 1:
        assert radius(iteration_matrix(H, omega)) > 1
    sweeps = Sweeps(LinearSystem(problem), "sor", omega, block, True)
    exact = np.linalg.solve(H, problem.Y)
    Z = exact + 1e-3 * np.random.default_rng(0).normal(size=exact.shape)
    before = np.linalg.norm(Z - exact)
    for _ in range(300):
        Z = sweeps.apply(Z)
    assert np.linalg.norm(Z - exact) > before
    with pytest.raises(InvalidInput, match="omega must lie strictly between 0 and 2"):
        stationary.solve(problem, omega=omega, block=block)


@pytest.mark.parametrize("omega", [0.0, -0.5, 2.0])
def test_omega_outside_its_range_is_refused(omega):
    with pytest.raises(InvalidInput, match="omega"):
        stationary.solve(make(), omega=omega)


def test_ssor_has_a_real_spectrum_below_one():
    H = Gaussian()(points()[0]) + 0.1 * np.eye(60)
    for omega in (0.2, 1.0, 1.8):
        values = np.linalg.eigvals(iteration_matrix(H, omega, "ssor"))
        np.testing.assert_allclose(values.imag, 0, atol=1e-7)
        assert values.real.min() > -1e-7
        assert values.real.max() < 1


@pytest.mark.parametrize("method", ["sor", "ssor"])
def test_block_size_one_is_the_classical_method_and_one_block_a_direct_solve(method):
    problem = make(k=2)
    system = LinearSystem(problem)
    scalar = Sweeps(system, method, 1.3, 1, True)
    blocks = Sweeps(system, method, 1.3, 1, False)
    Z, W = np.zeros_like(system.T), np.zeros_like(system.T)
    for _ in range(5):
        Z, W = scalar.apply(Z), blocks.apply(W)
    np.testing.assert_allclose(Z, W, atol=1e-10)
    one = stationary.solve(problem, method=method, block=60, tol=1e-14)
    assert one.iterations == 1


def test_scalar_sweeps_follow_the_formula():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(6, 6))
    H, t, omega = A @ A.T + np.eye(6), rng.normal(size=(6, 1)), 1.4
    problem = LeastSquares(Gram(Precomputed(), H - 0.5 * np.eye(6)), t, C=2.0, bias="none")
    z = rng.normal(size=6)
    expected = z.copy()
    for order in (range(6), range(5, -1, -1)):
        for i in order:
            others = sum(H[i, j] * expected[j] for j in range(6) if j != i)
            expected[i] = omega / H[i, i] * (t[i, 0] - others) + (1 - omega) * expected[i]
    ours = Sweeps(LinearSystem(problem), "ssor", omega, 1, True).apply(z[:, None].copy())
    np.testing.assert_allclose(ours[:, 0], expected, atol=1e-12)


@pytest.mark.parametrize("block", [7, 20])
@pytest.mark.parametrize("stored", [True, False])
def test_block_methods_reach_the_solution_with_rows_kept_or_computed_anew(block, stored):
    problem = make(weights=weights())
    solution = stationary.solve(problem, block=block, stored=stored, tol=1e-10)
    assert solution.relative_gap <= 1e-10
    assert solution.primal == pytest.approx(cholesky.solve(problem).primal, rel=1e-9)


@pytest.mark.parametrize("method", ["sor", "ssor"])
@pytest.mark.parametrize("acceleration", ["none", "monitor", "restart"])
def test_every_mode_of_acceleration_reaches_the_solution(method, acceleration):
    problem = make(k=1)
    solution = stationary.solve(problem, method=method, acceleration=acceleration, tol=1e-9)
    assert solution.stopped == "converged"
    assert solution.details["sweeps"] == solution.iterations * (2 if method == "ssor" else 1)


def test_jacobi_converges_only_where_its_spectral_radius_is_below_one():
    dominant = make(Gaussian(0.2), C=0.5)
    H = dominant.gram.dense() + np.diag(dominant.ridge)
    assert radius(np.eye(60) - H / np.diag(H)[:, None]) < 1
    assert stationary.solve(dominant, method="jacobi", acceleration="none").stopped == "converged"

    typical = make(Gaussian(2.0), C=10.0)
    H = typical.gram.dense() + np.diag(typical.ridge)
    assert radius(np.eye(60) - H / np.diag(H)[:, None]) > 1
    solution = stationary.solve(typical, method="jacobi", acceleration="none")
    assert solution.stopped == "stalled"
    assert solution.details["diverged"]
    assert np.isfinite(solution.coefficients).all()
    assert np.isfinite(solution.gap)


@pytest.mark.parametrize("looking", [False, True], ids=["alone", "with snapshots"])
def test_a_diverging_iteration_ends_with_the_best_point_it_saw(looking):
    problem = make(Gaussian(2.0), C=10.0, k=1, bias="none")
    H = problem.gram.dense() + np.diag(problem.ridge)
    gaps = []

    def look(record, snapshot):
        gaps.append(record.gap)
        if looking:
            assert snapshot().gap == pytest.approx(record.gap)

    # From near the solution, so that iterates grow worse from the first sweep on.
    exact = np.linalg.solve(H, problem.Y)
    start = exact + 1e-3 * np.random.default_rng(0).normal(size=exact.shape)
    solution = stationary.solve(
        problem, method="jacobi", acceleration="none", start=start, monitor=Monitor(hooks=[look])
    )
    assert solution.details["diverged"]
    # With R = I / C the gap of coefficients c is C/2 |y - H c|^2.
    residual = problem.Y - H @ solution.coefficients
    assert solution.gap == pytest.approx(0.5 * problem.C * (residual**2).sum(), rel=1e-6)
    assert solution.gap == pytest.approx(min(gaps))
    assert solution.gap < 1e-3 * gaps[-1]


def test_block_jacobi_with_one_block_is_direct():
    assert stationary.solve(make(), method="jacobi", block=60, tol=1e-14).iterations == 1


def test_the_increment_rule_claims_too_much_where_the_rate_is_slow():
    problem = make(Gaussian(2.0), C=200.0, k=1)
    solution = stationary.solve(problem, tol=None, increment=1e-3, acceleration="none")
    assert solution.stopped == "converged"
    system = LinearSystem(problem)
    exact = np.linalg.solve(system.matrix(), system.T)
    assert np.abs(solution.variables - exact).max() > 1e-2


def test_larger_blocks_need_fewer_sweeps_here():
    problem = make(n=90, d=5, C=5.0)
    steps = [stationary.solve(problem, block=b, acceleration="none", tol=1e-8).iterations for b in (1, 15, 45)]
    assert steps[0] > steps[1] > steps[2]


def test_nothing_to_stop_on_is_refused():
    with pytest.raises(InvalidInput, match="both None"):
        stationary.solve(make(), tol=None)
    with pytest.raises(InvalidInput, match="method"):
        stationary.solve(make(), method="newton")
    with pytest.raises(InvalidInput, match="block"):
        stationary.solve(make(), block=0)
