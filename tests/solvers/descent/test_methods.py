"""What each method of first and second order promises of its own: monotone values, bounds, rates, refusals."""

from itertools import pairwise

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import Gaussian, Precomputed
from mercer.losses import EpsilonInsensitive, Exponential, Hinge, SquaredHinge
from mercer.problems import RegularisedRisk
from mercer.solvers import Monitor
from mercer.solvers.descent import adatron, gradient, irwls, lagrangian, newton, sor
from mercer.solvers.descent.lagrangian import Iteration
from mercer.solvers.quadratic import interior_point
from tests.problems.zoo import case, huber, squared_eps, squared_hinge


def steps_of(solve, problem, **options):
    monitor = Monitor(callback=lambda record: False)
    return solve(problem, monitor=monitor, **options), monitor.history


def wide_problem(loss, n=150, bias="penalised"):
    """Points whose kernel values are all large: variables that are strongly coupled."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    return RegularisedRisk(Gram(Gaussian(sigma=3.0), X), y, loss, 1.0, None, bias)


# Gradient descent --------------------------------------------------------------------------------------------------


def test_the_gradient_is_that_of_finite_differences():
    """K (c - r) is the gradient of P in the coefficients: 10.94 to 10.98 with the lost 1/m, here in units of C."""
    problem = case(huber, 3, n=20, bias="none").problem
    program, rng = problem.program(), np.random.default_rng(1)
    K, c = np.asarray(program.gram.dense()), rng.normal(size=20)
    r = program.coefficients(gradient.response(program, K @ c)[1])
    analytic = K @ (c - r)
    for j in range(20):
        shift = np.zeros(20)
        shift[j] = 1e-6
        slope = (problem.primal(c + shift) - problem.primal(c - shift)) / 2e-6
        assert slope == pytest.approx(analytic[j], abs=1e-5)


@pytest.mark.parametrize("loss", [Exponential(), Hinge(), SquaredHinge(), EpsilonInsensitive(0.1)])
def test_slopes_of_the_losses_are_those_of_table_10_2(loss):
    f = np.array([-1.7, -0.3, 0.2, 0.8, 1.9])
    y = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    numeric = (loss.value(y, f + 1e-7) - loss.value(y, f - 1e-7)) / 2e-7
    np.testing.assert_allclose(loss.slope(y, f), numeric, atol=1e-5)


@pytest.mark.parametrize("space", ["function", "coefficients"])
def test_the_line_search_makes_the_objective_fall_in_every_step(space):
    problem = case(squared_hinge, 1, n=40, bias="free").problem
    _, history = steps_of(gradient.solve, problem, tol=1e-5, space=space, max_iter=200)
    if space == "function":
        values = [record.primal for record in history]
        assert all(after <= before * (1 + 1e-12) for before, after in pairwise(values))
    assert len(history) > 3


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()])
def test_the_corrected_bound_holds_at_every_iterate_and_the_printed_one_does_not(loss):
    """Theorem 10.5 in its own scale: R - min R <= |gradient|^2 / (2 lambda); the source prints 1/2 for 1/(2 lambda)."""
    problem = case(squared_hinge, 4, n=40, C=5.0, bias="none").problem
    problem = RegularisedRisk(problem.gram, problem.y, loss, 5.0, None, "none")
    best = interior_point.solve(problem, tol=1e-10).primal
    _, history = steps_of(gradient.solve, problem, tol=1e-3, max_iter=300)
    assert all(record.facts["bound"] >= record.primal - best - 1e-9 * best for record in history)
    # In the units of the source R = P / (C m), and so is the gradient: its square has that factor twice.
    scale = 1.0 / (problem.C * problem.n)
    printed = [scale**2 * record.facts["bound"] < scale * (record.primal - best) for record in history[:-1]]
    assert any(printed)


def test_losses_with_kinks_lower_the_dual_objective_in_every_step():
    problem = case(squared_hinge, 1, n=40, bias="free").problem
    problem = RegularisedRisk(problem.gram, problem.y, Hinge(), 3.0)
    _, history = steps_of(gradient.solve, problem, tol=1e-3, max_iter=300)
    duals = [record.dual for record in history]
    assert all(after >= before - 1e-12 * abs(before) for before, after in pairwise(duals))


def test_a_step_that_is_too_large_is_found_out():
    problem = case(squared_hinge, 1, n=40, C=10.0, bias="none").problem
    found = gradient.solve(problem, step=3.0, max_iter=10_000)
    assert found.stopped == "diverged"
    assert found.iterations < 200
    assert np.isfinite(found.gap)
    assert gradient.solve(problem, step=1e-3, tol=1e-2, max_iter=20_000).converged


def test_coefficient_space_refuses_kinks_and_options_are_checked():
    problem = case(squared_hinge, 1, bias="none").problem
    hinge = RegularisedRisk(problem.gram, problem.y, Hinge())
    with pytest.raises(InvalidInput, match="smooth"):
        gradient.solve(hinge, space="coefficients")
    with pytest.raises(InvalidInput, match="space"):
        gradient.solve(problem, space="nowhere")
    with pytest.raises(InvalidInput, match="step"):
        gradient.solve(problem, step=0.0)


# Lagrangian support vector machine ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [squared_hinge, squared_eps])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_distance_falls_by_the_rate_in_every_step(kind, weighted):
    """The corrected rate, max |1 - gamma / lambda|; the printed one, |1 - gamma / (lambda m)|, is no bound."""
    instance = case(kind, 3, n=30, bias="penalised", weighted=weighted, C=4.0)
    program = instance.problem.program()
    on = np.flatnonzero(program.upper > program.lower)
    gamma = 1.9 * program.ridge[on].min()
    iteration = Iteration(program, on, gamma)
    K = np.asarray(program.gram.dense()) + program.constant
    Q = np.outer(iteration.sign, iteration.sign) * K[np.ix_(program.point[on], program.point[on])]
    Q += np.diag(program.ridge[on])
    unit = np.sqrt(program.ridge[on])
    rate = np.abs(1.0 - 1.9 / np.linalg.eigvalsh(Q / np.outer(unit, unit))).max()
    assert rate <= iteration.rate < 1.0
    a = iteration.start
    image = iteration.multiply(a)
    np.testing.assert_allclose(image, Q @ a, rtol=1e-9, atol=1e-9)
    points = []
    for _ in range(4000):
        points.append(a)
        a, image = iteration.step(a, image)
    distances = [np.linalg.norm(Q @ (point - a) / unit) for point in points]
    large = [d for d in distances if d > 1e-8 * distances[0]]
    ratios = np.array(large[1:]) / np.array(large[:-1])
    assert ratios.max() <= rate * (1 + 1e-9)


def test_the_printed_rate_is_no_bound():
    problem = case(squared_hinge, 3, n=30, bias="penalised", weighted=False, C=200.0).problem
    program = problem.program()
    gamma = 1.9 * program.ridge[0]
    iteration = Iteration(program, np.arange(30), gamma)
    best = iteration.unsigned(interior_point.solve(problem, tol=1e-11).variables)
    a, distances = iteration.start, []
    image = iteration.multiply(a)
    for _ in range(200):
        distances.append(np.linalg.norm(iteration.multiply(a - best)))
        a, image = iteration.step(a, image)
    ratios = np.array(distances[1:]) / np.array(distances[:-1])
    assert abs(1.0 - gamma / program.ridge[0]) < ratios.max() <= iteration.rate


def test_the_fixed_point_is_complementary_and_slacks_are_lambda_m_times_the_variables():
    instance = case(squared_hinge, 6, n=40, bias="penalised", weighted=False, C=1.0)
    problem = instance.problem
    found = lagrangian.solve(problem, tol=1e-14, max_iter=100_000)
    program = problem.program()
    a = problem.y * found.variables
    K = np.asarray(program.gram.dense()) + 1.0
    Q = np.outer(problem.y, problem.y) * K + np.diag(program.ridge)
    assert np.abs(np.minimum(a, Q @ a - 1.0)).max() < 1e-6
    f = K @ found.coefficients
    xi = np.maximum(1.0 - problem.y * f, 0.0)
    np.testing.assert_allclose(xi, program.ridge * a, atol=1e-6)
    assert found.bias == pytest.approx(float((a * problem.y).sum()))


def test_gamma_at_twice_lambda_m_is_refused():
    problem = case(squared_hinge, 0, bias="none", weighted=False).problem
    ridge = problem.program().ridge[0]
    assert lagrangian.solve(problem, gamma=1.99 * ridge, tol=1e-3).converged
    for gamma in (2.0 * ridge, 4.0 * ridge, 0.0, -1.0):
        with pytest.raises(InvalidInput, match="2 lambda m"):
            lagrangian.solve(problem, gamma=gamma)


def test_small_lambda_takes_more_steps():
    easy, hard = (case(squared_hinge, 2, n=40, bias="none", weighted=False, C=C).problem for C in (1.0, 100.0))
    assert lagrangian.solve(hard, tol=1e-8).iterations > 3 * lagrangian.solve(easy, tol=1e-8).iterations


# Newton and reweighted least squares -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [squared_hinge, squared_eps, huber])
def test_newton_ends_in_few_steps_on_smooth_losses(kind):
    for seed in range(4):
        found = newton.solve(case(kind, seed, n=60).problem, tol=1e-10)
        assert found.converged
        assert found.iterations <= 20


@pytest.mark.parametrize("method", [newton, irwls])
def test_the_first_step_from_zero_is_regularised_least_squares(method):
    """With all points wrong at f = 0 the squared hinge is a square: one step is its optimum."""
    K = np.array([[1.0, 0.1], [0.1, 1.0]])
    problem = RegularisedRisk(Gram(Precomputed(), K), [1, -1], SquaredHinge(), 0.1, None, "none")
    found = method.solve(problem, tol=1e-12)
    expected = np.linalg.solve(K + np.diag(problem.program().ridge), [1.0, -1.0])
    np.testing.assert_allclose(found.coefficients, expected, rtol=1e-10)
    assert found.iterations <= 2


def test_the_step_of_newton_is_the_formula_of_problem_10_17():
    """A step is a <- (diag(c'') K / m + lambda I)^-1 (c'' (K a) - c') / m, in the units of the source."""
    problem = case(huber, 3, n=25, C=2.0, bias="none", weighted=False).problem
    program, rng = problem.program(), np.random.default_rng(0)
    K, y, n = np.asarray(program.gram.dense()), problem.y, 25
    a = 0.05 * rng.normal(size=n)
    f = K @ a
    lam = 1.0 / (problem.C * n)
    slope, curvature = problem.loss.slope(y, f), problem.loss.curvature(y, f)
    expected = np.linalg.solve(curvature[:, None] * K / n + lam * np.eye(n), (curvature * f - slope) / n)
    model = newton.model(program, program.slack_values(f, np.zeros(0)))
    from mercer.solvers.descent.second_order import _Point, _target

    found, _ = _target(program, _Point(program, K, a), model)
    np.testing.assert_allclose(program.coefficients(found), expected, atol=1e-9)


def test_newton_agrees_with_the_lagrangian_machine():
    problem = case(squared_hinge, 8, n=50, bias="penalised").problem
    ours, other = newton.solve(problem, tol=1e-12), lagrangian.solve(problem, tol=1e-10)
    np.testing.assert_allclose(ours.coefficients, other.coefficients, atol=1e-3)
    assert ours.iterations < other.iterations


# Relaxation --------------------------------------------------------------------------------------------------------


def test_random_orders_end_in_few_sweeps_where_variables_are_coupled():
    for loss in (Hinge(), SquaredHinge()):
        found = sor.solve(wide_problem(loss), tol=1e-4)
        assert found.converged
        assert found.iterations <= 100


def test_jacobi_is_found_out_and_not_looped_on():
    found = sor.solve(wide_problem(SquaredHinge()), simultaneous=True, max_iter=100_000)
    assert found.stopped == "diverged"
    assert found.iterations < 100


def test_jacobi_converges_where_variables_are_nearly_unlinked():
    K = np.eye(20) + 0.01
    problem = RegularisedRisk(Gram(Precomputed(), K), np.where(np.arange(20) % 2, 1, -1), Hinge(), 1.0, None, "none")
    assert sor.solve(problem, simultaneous=True, omega=1.0, tol=1e-8).converged


@pytest.mark.parametrize("omega", [0.0, 2.0, -1.0, np.nan])
def test_relaxation_factors_outside_of_zero_and_two_are_refused(omega):
    with pytest.raises(InvalidInput, match="omega"):
        sor.solve(wide_problem(Hinge(), n=10), omega=omega)


def test_a_learning_rate_beyond_the_limit_is_refused():
    problem = wide_problem(SquaredHinge(), n=30)
    limit = 2.0 / (1.0 + 1.0 + 0.5)
    with pytest.raises(InvalidInput, match="rate"):
        adatron.solve(problem, rate=limit)
    assert adatron.solve(problem, rate=0.95 * limit, tol=1e-4).converged


def test_the_objective_never_rises_from_sweep_to_sweep():
    for module in (sor, adatron):
        _, history = steps_of(module.solve, wide_problem(Hinge(), n=80), tol=1e-6)
        duals = [record.dual for record in history]
        assert all(after >= before - 1e-10 * abs(before) for before, after in pairwise(duals))


def test_the_same_seed_gives_the_same_answer():
    problem = wide_problem(Hinge(), n=60)
    one, two = (sor.solve(problem, seed=3).variables for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert sor.solve(problem, seed=4).primal == pytest.approx(sor.solve(problem, seed=3).primal, rel=2e-3)
