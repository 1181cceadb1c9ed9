"""The interior point method against an independent solver, the optimality conditions, and degenerate input."""

import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import pytest
from problems.zoo import KINDS, c_svc, case, eps_svr, gaussian, huber, nu_svr

from mercer.errors import BudgetTooSmall, Infeasible, InvalidInput, NotConverged, NotPositiveDefinite
from mercer.gram import Gram
from mercer.kernels import Gaussian, Linear, Log, Precomputed, Sigmoid
from mercer.losses import EpsilonInsensitive, Hinge, Huber, SquaredHinge
from mercer.problems import (
    NuClassification,
    NuRegression,
    OneClass,
    QuadraticProgram,
    RegularisedRisk,
    rescale,
)
from mercer.solvers import Monitor, Solution
from mercer.solvers.quadratic.barrier_system import BarrierSystem
from mercer.solvers.quadratic.interior_point import accepts, memory_needed, solve

IDS = [kind.__name__ for kind in KINDS]


def data(n=60, seed=0, noise=0.4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] + noise * rng.normal(size=n) > 0, 1.0, -1.0)
    t = np.sin(2 * X[:, 0]) + noise * rng.normal(size=n)
    return X, gaussian(X), Gram(Precomputed(), gaussian(X)), y, t


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_twenty_problems_of_each_kind_reach_1e8_in_fifty_iterations_and_agree_with_another_solver(kind):
    for seed in range(20):
        example = case(kind, seed)
        solution = solve(example.problem)
        assert solution.converged
        assert solution.relative_gap < 1e-8
        assert solution.iterations < 50
        assert max(example.problem.program().violation(solution.variables)) < 1e-9
        optimum = -example.optimum()
        scale = max(1.0, abs(optimum))
        assert solution.primal == pytest.approx(optimum, abs=1e-7 * scale)
        assert solution.dual == pytest.approx(optimum, abs=1e-7 * scale)
        written_out = example.primal(solution.coefficients, solution.bias, **solution.multipliers)
        assert solution.primal == pytest.approx(written_out, abs=1e-9 * scale)


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_early_elimination_changes_nothing(kind):
    for seed in (0, 1, 2):
        problem = case(kind, seed, n=40).problem
        plain, with_elimination = solve(problem, eliminate=None), solve(problem, eliminate=1e6)
        assert plain.details["eliminated"] == 0
        assert with_elimination.primal == pytest.approx(plain.primal, abs=1e-8 * max(1, abs(plain.primal)))
        np.testing.assert_allclose(with_elimination.coefficients, plain.coefficients, atol=2e-4 * max(1, problem.C))


def test_elimination_takes_variables_out_and_wrong_ones_are_brought_back():
    problem = case(c_svc, 0, n=40).problem
    assert solve(problem).details["eliminated"] > 0
    hasty = solve(problem, eliminate=1e-3)
    assert hasty.converged
    assert hasty.primal == pytest.approx(solve(problem).primal, rel=1e-7)


def test_two_variables_on_a_point_cost_one_factorisation_and_give_the_dense_solution():
    rng = np.random.default_rng(0)
    K = gaussian(rng.normal(size=(20, 2)))
    for point in (np.tile(np.arange(20), 2), np.concatenate((np.arange(20), np.arange(7))), rng.permutation(20)):
        D, R = 10.0 ** rng.uniform(-3, 3, size=point.size), rng.normal(size=(point.size, 3))
        dense = K[np.ix_(point, point)] + np.diag(D)
        system = BarrierSystem(K, point)
        system.factor(D)
        assert system.K.shape == (20, 20)
        np.testing.assert_allclose(system.solve(R), np.linalg.solve(dense, R), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(system.multiply(R), dense @ R, atol=1e-10)
    many = BarrierSystem(K, np.repeat(np.arange(5), 3))
    D = np.ones(15)
    many.factor(D)
    expected = K[np.ix_(many_points := np.repeat(np.arange(5), 3), many_points)] + np.eye(15)
    np.testing.assert_allclose(many.solve(np.eye(15)), np.linalg.inv(expected), atol=1e-10)


def test_indefinite_and_singular_systems_fall_back():
    K = np.array([[1.0, 2.0], [2.0, 1.0]])
    indefinite = BarrierSystem(K, np.arange(2))
    indefinite.factor(np.full(2, 1e-3))
    assert indefinite.method == "ldl"
    np.testing.assert_allclose(indefinite.solve(np.eye(2)), np.linalg.inv(K + 1e-3 * np.eye(2)), atol=1e-12)
    singular = BarrierSystem(np.zeros((2, 2)), np.arange(2))
    singular.factor(np.array([1.0, 0.0]))
    assert singular.method == "pseudo-inverse"
    np.testing.assert_allclose(singular.solve(np.array([[3.0], [0.0]])), [[3.0], [0.0]], atol=1e-12)


def test_free_support_vectors_lie_on_the_margin_and_bounded_ones_inside():
    for seed in range(5):
        _, K, gram, y, _ = data(seed=seed)
        solution = solve(RegularisedRisk(gram, y, Hinge(), 2.0), tol=1e-10)
        a, margin = np.abs(solution.variables), y * (K @ solution.coefficients + solution.bias)
        free = (a > 1e-6) & (a < 2.0 - 1e-6)
        assert free.any()
        assert np.abs(margin[free] - 1).max() < 1e-8
        assert margin[a == 0].min() > 1 - 1e-8
        assert margin[a == 2.0].max() < 1 + 1e-8
        assert (a == 2.0).sum() >= (margin <= 0).sum()


def test_support_vectors_alone_give_the_same_machine():
    X, K, gram, y, _ = data(seed=3)
    whole = solve(RegularisedRisk(gram, y, Hinge(), 2.0))
    kept = whole.coefficients != 0
    assert 0 < kept.sum() < len(X)
    part = solve(RegularisedRisk(Gram(Precomputed(), K[np.ix_(kept, kept)]), y[kept], Hinge(), 2.0))
    f_part = K[:, kept] @ part.coefficients + part.bias
    np.testing.assert_allclose(f_part, K @ whole.coefficients + whole.bias, atol=1e-6)


def test_nu_bounds_margin_errors_and_support_vectors():
    _, K, gram, y, t = data(n=80)
    for nu in (0.1, 0.3, 0.6):
        solution = solve(NuClassification(gram, y, nu))
        rho, margin = solution.multipliers["rho"], y * (K @ solution.coefficients + solution.bias)
        assert rho >= 0
        assert np.mean(margin < rho - 1e-7) <= nu <= np.mean(np.abs(solution.coefficients) > 1e-9)
        solution = solve(NuRegression(gram, t, 5.0, nu))
        outside = np.abs(t - K @ solution.coefficients - solution.bias) > solution.multipliers["epsilon"] + 1e-7
        assert outside.mean() <= nu <= np.mean(np.abs(solution.variables).reshape(2, -1).sum(axis=0) > 1e-9)


def test_nu_regression_is_epsilon_regression_at_the_epsilon_it_returns():
    for seed in range(5):
        example = case(nu_svr, seed)
        one = solve(example.problem, tol=1e-10)
        p = example.problem
        tube = EpsilonInsensitive(one.multipliers["epsilon"])
        two = solve(RegularisedRisk(p.gram, p.y, tube, p.C, p.box / p.C), tol=1e-10)
        cost = p.nu * p.box.sum() * one.multipliers["epsilon"]
        assert one.primal == pytest.approx(two.primal + cost, rel=1e-7)


def test_nu_classification_is_c_classification_at_one_over_rho():
    _, K, gram, y, _ = data()
    one = solve(NuClassification(gram, y, 0.4), tol=1e-10)
    rho = one.multipliers["rho"]
    two = solve(RegularisedRisk(gram, y, Hinge(), 1 / rho), tol=1e-10)
    f = (K @ one.coefficients + one.bias) / rho
    np.testing.assert_allclose(f, K @ two.coefficients + two.bias, atol=1e-5)


def test_one_class_outliers_and_support_vectors():
    _, K, gram, _, _ = data(n=80)
    for nu in (0.05, 0.2, 0.5):
        solution = solve(OneClass(gram, nu))
        f = K @ solution.coefficients - solution.multipliers["rho"]
        assert (f < -1e-7).sum() <= nu * 80 + 1e-9 <= (solution.coefficients > 1e-9).sum() + 1e-9
        assert solution.bias == -solution.multipliers["rho"]


def test_huber_with_and_without_tube_reaches_the_smooth_minimum():
    from scipy.optimize import minimize

    example = case(huber, 0, n=15, bias="free", weighted=False)
    solution = solve(example.problem)
    best = minimize(lambda x: example.primal(x[:-1], x[-1]), np.zeros(16), method="BFGS", options={"gtol": 1e-9})
    assert solution.primal == pytest.approx(best.fun, rel=1e-6)


def test_squared_hinge_slack_is_coefficient_over_two_C():
    _, K, gram, y, _ = data()
    solution = solve(RegularisedRisk(gram, y, SquaredHinge(), 3.0), tol=1e-11)
    slack = np.maximum(0, 1 - y * (K @ solution.coefficients + solution.bias))
    np.testing.assert_allclose(np.abs(solution.coefficients) / 6.0, slack, atol=1e-7)


def test_semiparametric_coefficients_recover_an_exact_linear_trend():
    X, _, gram, _, _ = data()
    t = 3.0 * X[:, 0] - 2.0 * X[:, 1] + 0.5
    solution = solve(RegularisedRisk(gram, t, EpsilonInsensitive(0.0), 1.0, basis=X))
    assert solution.primal == pytest.approx(0.0, abs=1e-6)
    np.testing.assert_allclose(solution.multipliers["basis"], [3.0, -2.0], atol=1e-6)
    assert solution.bias == pytest.approx(0.5, abs=1e-6)


def test_dependent_equalities_are_harmless():
    X, _, gram, _, t = data()
    basis = np.column_stack((X[:, 0], 2 * X[:, 0], np.ones(len(X))))
    doubled = solve(RegularisedRisk(gram, t, EpsilonInsensitive(), basis=basis))
    single = solve(RegularisedRisk(gram, t, EpsilonInsensitive(), basis=X[:, :1]))
    assert doubled.primal == pytest.approx(single.primal, rel=1e-8)


def test_plain_quadratic_program_is_accepted():
    program = case(c_svc, 0, bias="free").problem.program()
    plain, named = solve(program), solve(case(c_svc, 0, bias="free").problem)
    assert isinstance(program, QuadraticProgram)
    assert plain.primal == pytest.approx(named.primal, rel=1e-9)
    assert plain.multipliers["h"][0] == pytest.approx(-named.bias, abs=1e-6)


@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
@pytest.mark.parametrize("n", [1, 2])
def test_one_and_two_points(n, bias):
    gram = Gram(Precomputed(), gaussian(np.arange(n, dtype=float)[:, None]))
    y = np.array([1.0, -1.0])[:n]
    for problem in (
        RegularisedRisk(gram, y, Hinge(), 1.0, None, bias),
        RegularisedRisk(gram, y, SquaredHinge(), 1.0, None, bias),
        RegularisedRisk(gram, y, EpsilonInsensitive(0.1), 1.0, None, bias),
        RegularisedRisk(gram, y, Huber(0.1), 1.0, None, bias),
    ):
        assert solve(problem).converged
    assert solve(OneClass(gram, 0.5)).converged
    assert solve(NuRegression(gram, y, 1.0, 0.5)).converged


def test_one_class_only_leaves_a_constant():
    _, _, gram, y, _ = data()
    for sign in (1.0, -1.0):
        solution = solve(RegularisedRisk(gram, sign * np.ones_like(y), Hinge()))
        assert solution.converged
        assert not solution.coefficients.any()
        assert sign * solution.bias >= 1.0
        assert solution.primal == 0.0


def test_constant_targets_and_targets_inside_the_tube_need_no_support_vector():
    _, _, gram, _, t = data()
    for targets, epsilon in ((np.full_like(t, 3.0), 0.0), (t, 10.0)):
        solution = solve(RegularisedRisk(gram, targets, EpsilonInsensitive(epsilon), 1.0))
        assert solution.converged
        assert not solution.coefficients.any()
        assert np.abs(targets - solution.bias).max() <= epsilon + 1e-12
        assert solution.primal == solution.gap == 0.0


@pytest.mark.parametrize("C", [1e-8, 1e-4, 1e4])
def test_tiny_and_huge_C(C):
    for kind in (c_svc, eps_svr, huber):
        for seed in (0, 1, 2):
            solution = solve(case(kind, seed, C=C).problem)
            assert solution.converged
            assert solution.iterations < 50


def test_duplicate_points_and_singular_kernels():
    X, _, _, y, t = data(n=20)
    twice = np.vstack((X, X))
    for kernel in (Gaussian(1.0), Linear()):
        gram = Gram(kernel, twice)
        one = solve(RegularisedRisk(gram, np.tile(y, 2), Hinge(), 1.0))
        two = solve(RegularisedRisk(Gram(kernel, X), y, Hinge(), 2.0))
        assert one.converged
        assert one.primal == pytest.approx(two.primal, rel=1e-7)
        assert solve(RegularisedRisk(gram, np.tile(t, 2), EpsilonInsensitive(0.0), 10.0)).converged
        assert solve(RegularisedRisk(gram, np.concatenate((t, -t)), EpsilonInsensitive(0.0), 10.0)).converged


def test_separable_data_reach_the_maximal_margin():
    X = np.array([[0.0, 1.0], [0.0, 2.0], [1.0, 3.0], [0.0, -1.0], [2.0, -3.0]])
    y = np.array([1.0, 1.0, 1.0, -1.0, -1.0])
    solution = solve(RegularisedRisk(Gram(Linear(), X), y, Hinge(), 1e5))
    w = X.T @ solution.coefficients
    np.testing.assert_allclose(w, [0.0, 1.0], atol=1e-6)
    assert (y * (X @ w + solution.bias)).min() == pytest.approx(1.0, abs=1e-6)


def test_nu_at_the_edge_of_feasibility_fixes_a_whole_class():
    _, _, gram, y, t = data(n=40)
    y = np.where(np.arange(40) < 10, 1.0, -1.0)
    solution = solve(NuClassification(gram, y, 0.5))
    assert solution.converged
    np.testing.assert_allclose(solution.variables[:10], 1.0)
    assert solve(OneClass(gram, 1.0)).converged
    assert solve(NuRegression(gram, t, 1.0, 1.0)).converged


def test_malformed_programs_are_refused():
    good = case(c_svc, 0, bias="free").problem.program()
    for error, match, changes in (
        (InvalidInput, "number of variables", {"linear": good.linear[:-1]}),
        (Infeasible, "above its upper", {"lower": good.upper, "upper": good.lower}),
        (InvalidInput, "infinite bound", {"upper": np.full_like(good.upper, np.inf)}),
    ):
        with pytest.raises(error, match=match):
            solve(replace(good, **changes))


def test_memory_stays_within_what_is_announced():
    n = 400
    _, K, _, y, _ = data(n=n)
    problem = RegularisedRisk(Given(K), y, EpsilonInsensitive(), 10.0)
    tracemalloc.start()
    solve(problem)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < memory_needed(n) + 200 * 8 * n


def test_not_positive_definite_kernel_is_refused_by_name():
    X, _, _, y, _ = data(n=20)
    problem = RegularisedRisk(Gram(Sigmoid(1.0, -1.0), X), y, Hinge())
    answer = accepts(problem)
    assert not answer
    assert "Sigmoid" in answer.reason
    with pytest.raises(NotPositiveDefinite, match="Sigmoid"):
        solve(problem)
    matrix = gaussian(X) - 0.9 * np.eye(len(X))
    with pytest.raises(NotPositiveDefinite, match="smallest eigenvalue"):
        solve(RegularisedRisk(Gram(Precomputed(), matrix), y, Hinge()))


def test_kernel_that_need_not_be_positive_definite_is_taken_where_its_matrix_is():
    X = np.array([[1.0], [-1.0], [1.0]])
    problem = RegularisedRisk(Gram(Sigmoid(0.1, 0.0), X), np.array([1.0, -1.0, 1.0]), Hinge())
    answer = accepts(problem)
    assert answer
    assert "Sigmoid" in answer.reason
    assert solve(problem).converged


def test_conditionally_positive_definite_kernel_is_convex_with_a_free_bias_only():
    X, _, _, y, _ = data(n=30)
    K = -np.sqrt(((X[:, None] - X[None]) ** 2).sum(-1))
    gram = Gram(Precomputed(), K)
    solution = solve(RegularisedRisk(gram, y, Hinge(), 1.0))
    assert solution.relative_gap < 1e-8
    lifted = Gram(Precomputed(), K + 50.0)  # the same objective wherever the coefficients sum to zero
    assert solution.primal == pytest.approx(solve(RegularisedRisk(lifted, y, Hinge(), 1.0)).primal, rel=1e-7)
    with pytest.raises(NotPositiveDefinite):
        solve(RegularisedRisk(gram, y, Hinge(), 1.0, bias="none"))
    named = Gram(Log(), X)
    assert accepts(RegularisedRisk(named, y, Hinge()))
    assert solve(RegularisedRisk(named, X[:, 0], EpsilonInsensitive())).converged
    refused = accepts(RegularisedRisk(named, y, Hinge(), bias="none"))
    assert not refused
    assert "Log" in refused.reason


class Given:
    """A matrix with the methods of a Gram operator and none of its checks."""

    def __init__(self, K):
        self.K, self.shape = K, K.shape

    def dot(self, V):
        return self.K @ V

    def dense(self):
        return self.K

    def diagonal(self):
        return np.diagonal(self.K)

    def block(self, rows, columns):
        return self.K[np.ix_(rows, columns)]


def test_nan_and_asymmetric_matrices_are_refused():
    _, K, _, y, _ = data(n=20)
    bad = K.copy()
    bad[3, 4] = np.nan
    with pytest.raises(InvalidInput, match="NaN"):
        solve(RegularisedRisk(Given(bad), y, Hinge()))
    bad[3, 4] = 5.0
    with pytest.raises(InvalidInput, match="symmetric"):
        solve(RegularisedRisk(Given(bad), y, Hinge()))


def test_budget_too_small_is_refused_with_the_need():
    _, _, gram, y, _ = data(n=20)
    problem = RegularisedRisk(gram, y, Hinge())
    assert memory_needed(5000) == 4 * 2 * 10**8
    answer = accepts(problem, memory="1 KiB")
    assert not answer.ok
    assert "decomposition" in answer.reason
    with pytest.raises(BudgetTooSmall, match="needs"):
        solve(problem, memory="1 KiB")
    assert accepts(problem)
    assert not accepts("a string")


def test_warm_start_that_is_optimal_needs_no_iteration_and_any_other_is_used():
    before, after = case(c_svc, 3, C=2.0).problem, case(c_svc, 3, C=3.0).problem
    solution = solve(before)
    again = solve(before, start=solution)
    assert again.iterations == 0
    assert again.primal == pytest.approx(solution.primal, rel=1e-14)  # computed anew, in another order of sums
    warm, cold = solve(after, start=rescale(solution.variables, before, after)), solve(after)
    assert warm.primal == pytest.approx(cold.primal, rel=1e-8)
    with pytest.raises(InvalidInput, match="start"):
        solve(before, start=solution.variables[:-1])
    with pytest.raises(InvalidInput, match="NaN"):
        solve(before, start=np.full_like(solution.variables, np.nan))


def test_monitor_sees_every_iteration_and_can_stop_it():
    problem = case(eps_svr, 0).problem
    monitor = Monitor()
    solution = solve(problem, monitor=monitor)
    assert len(solution.history) == solution.iterations + 1
    assert [record.iteration for record in solution.history] == list(range(solution.iterations + 1))
    primal, dual = solution.history[-1].primal, solution.history[-1].dual
    assert primal - dual <= 1e-8 * abs(primal)
    stopped = solve(problem, monitor=Monitor(callback=lambda record: record.iteration == 3))
    assert stopped.stopped == "interrupted"
    assert stopped.iterations == 3
    assert stopped.dual <= solution.primal <= stopped.primal
    timed = solve(problem, monitor=Monitor(time_limit=0.0))
    assert timed.stopped == "time"


def test_stopping_short_is_said_aloud_with_the_gap():
    problem = case(eps_svr, 0).problem
    with pytest.warns(NotConverged, match="relative gap"):
        solution = solve(problem, max_iter=3)
    assert solution.stopped == "iterations"
    assert solution.gap > 0
    best = solve(problem)
    assert solution.dual - 1e-9 <= best.primal <= solution.primal + 1e-9


def test_checkpoint_is_taken_up(tmp_path):
    problem = case(eps_svr, 0).problem
    file = tmp_path / "fit.npz"
    solve(problem, monitor=Monitor(checkpoint=file, every=0.0, callback=lambda record: record.iteration == 8))
    saved = Solution.load(file)
    assert saved.iterations == 8
    resumed = solve(problem, monitor=Monitor(checkpoint=file))
    assert resumed.converged
    assert resumed.primal == pytest.approx(solve(problem).primal, rel=1e-8)


def test_no_warning_on_ordinary_problems():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in KINDS:
            solve(case(kind, 11).problem)


@pytest.mark.parametrize("most", [0, 1, 2, 4, 8])
@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_a_path_that_ends_early_gives_a_feasible_point_and_bounds_around_the_optimum(kind, most):
    """The path meets its equalities at the end only; before that its dual value is no lower bound."""
    problem = case(kind, 3).problem
    optimum = solve(problem)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        early = solve(problem, max_iter=most)
    outside, unmet = problem.program().violation(early.variables)
    assert outside <= 0.0
    assert unmet <= 1e-9 * (1.0 + np.abs(early.variables).sum())
    slack = 1e-7 * (1.0 + abs(optimum.primal))
    assert early.dual - slack <= optimum.primal
    assert optimum.dual <= early.primal + slack
