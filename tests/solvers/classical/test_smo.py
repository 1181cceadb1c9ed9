"""Sequential minimal optimisation in all its forms: two loops, best pairs, two thresholds, and chunks of a queue."""

from functools import partial
from importlib import import_module

import numpy as np
import pytest
from problems.zoo import KINDS, c_svc, case, eps_svr, gaussian, nu_svc, one_class
from sklearn import svm as libsvm

from mercer.errors import BudgetTooSmall, InvalidInput
from mercer.gram import Gram
from mercer.kernels import Gaussian, Linear, Precomputed
from mercer.losses import EpsilonInsensitive, Hinge
from mercer.problems import OneClass, RegularisedRisk
from mercer.solvers import Monitor
from mercer.solvers.classical import keerthi, smo, svmfu
from mercer.solvers.classical.best_pairs import best_single, steepest_partner, worst_pair
from mercer.solvers.classical.signed import Signed, all_offsets
from mercer.solvers.classical.steps import Rows, State, missing
from mercer.solvers.quadratic import interior_point
from mercer.svm import SVC, SVR, NuSVC, OneClassSVM

GROUPED = [kind for kind in KINDS if "semiparametric" not in kind.__name__]
METHODS = {
    "platt": smo.solve,
    "platt, tenth": partial(smo.solve, full_pass_below=0.1),
    "maximal pair": partial(smo.solve, selection="maximal_pair"),
    "second order": partial(smo.solve, selection="second_order"),
    "keerthi 1": partial(keerthi.solve, modification=1),
    "keerthi 2": partial(keerthi.solve, modification=2),
    "svmfu": svmfu.solve,
    "svmfu, small chunks": partial(svmfu.solve, chunk=12),
}
ROWS = [method for name, method in METHODS.items() if "svmfu" not in name]
ALL = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())


def takes(method, problem):
    return bool(import_module(getattr(method, "func", method).__module__).accepts(problem))


def classes(n, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)


@ALL
@pytest.mark.parametrize("kind", GROUPED, ids=[kind.__name__ for kind in GROUPED])
def test_the_optimum_is_that_of_an_independent_interior_point_code(kind, method):
    for seed in range(3):
        stated = case(kind, seed, n=30)
        problem = stated.problem
        if not takes(method, problem):
            continue
        found = method(problem, tol=1e-6)
        optimum = -stated.optimum()
        assert found.converged
        scale = max(1.0, abs(optimum))
        assert found.dual == pytest.approx(optimum, abs=1e-6 * scale)
        assert found.primal == pytest.approx(optimum, abs=1e-5 * scale)
        box, equality = problem.program().violation(found.variables)
        assert box == 0.0
        assert equality <= 1e-12 * max(1.0, float(np.abs(found.variables).sum())), "the sums are kept"


@ALL
@pytest.mark.parametrize("kind", [c_svc, eps_svr, nu_svc, one_class], ids=lambda kind: kind.__name__)
def test_no_step_raises_the_objective(kind, method):
    problem = case(kind, 2, n=25, bias="free").problem
    program = problem.program()
    K = np.asarray(program.gram.dense())
    values = []
    for most in range(0, 60, 3):
        s = method(problem, tol=1e-9, max_iter=most).variables
        c = program.coefficients(s)
        values.append(0.5 * c @ K @ c + program.linear @ s + 0.5 * program.ridge @ s**2)
    assert (np.diff(values) <= 1e-12 * np.abs(values).max()).all()
    assert values[-1] < values[0]


@ALL
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-5])
def test_the_stopping_rule_bounds_every_optimality_condition_by_half_of_tol(method, tol):
    """With b at the middle of the two thresholds, alpha = 0 has y f >= 1 - tol/2, and so on (section 10.5.4)."""
    X, y = classes(60)
    K, C = gaussian(X), 3.0
    found = method(RegularisedRisk(Gram(Precomputed(), K), y, Hinge(), C), tol=tol)
    alpha, f0 = y * found.coefficients, K @ found.coefficients
    E = f0 - y
    rises, falls = np.where(y > 0, alpha < C, alpha > 0), np.where(y > 0, alpha > 0, alpha < C)
    low, high = E[rises].min(), E[falls].max()
    assert high - low <= tol
    margin = y * (f0 - 0.5 * (low + high))
    half = 0.5 * tol * (1 + 1e-9)
    assert (margin[alpha == 0] >= 1 - half).all()
    assert (margin[alpha == C] <= 1 + half).all()
    inside = (alpha > 0) & (alpha < C)
    assert (np.abs(margin[inside] - 1) <= half).all()


@ALL
def test_a_smaller_tolerance_leaves_a_smaller_gap(method):
    problem = case(eps_svr, 4, n=40, bias="free").problem
    gaps = [method(problem, tol=tol).relative_gap for tol in (1e-1, 1e-3, 1e-5, 1e-7)]
    assert gaps[0] > gaps[1] > gaps[2] > gaps[3]
    assert gaps[3] < 1e-6
    assert method(problem, tol=1e-1, gap_tol=1e-5).relative_gap <= 1e-5


@ALL
@pytest.mark.parametrize("kind", [c_svc, eps_svr], ids=lambda kind: kind.__name__)
def test_the_bias_is_that_of_the_interior_point(kind, method):
    problem = case(kind, 5, n=40, bias="free", C=2.0).problem
    exact = interior_point.solve(problem)
    free = (exact.variables > 1e-5) & (exact.variables < problem.program().upper - 1e-5)
    assert free.any(), "the bias is determined"
    assert method(problem, tol=1e-7).bias == pytest.approx(exact.bias, abs=1e-5)


@ALL
def test_decision_values_are_those_of_libsvm(method):
    X, y = classes(150)
    t = np.sin(2 * X[:, 0]) + 0.2 * X[:, 1]
    gram = Gram(Gaussian(sigma=1.0), X)
    K = np.asarray(gram.dense())
    pairs = [
        (RegularisedRisk(gram, y, Hinge(), 2.0), libsvm.SVC(C=2.0, gamma=0.5, tol=1e-6).fit(X, y)),
        (RegularisedRisk(gram, t, EpsilonInsensitive(0.1), 2.0), libsvm.SVR(C=2.0, gamma=0.5, tol=1e-6).fit(X, t)),
        (OneClass(gram, 0.3), libsvm.OneClassSVM(nu=0.3, gamma=0.5, tol=1e-6).fit(X)),
    ]
    for problem, peer in pairs:
        found = method(problem, tol=1e-6)
        theirs = peer.predict(X) if isinstance(peer, libsvm.SVR) else peer.decision_function(X)
        assert K @ found.coefficients + found.bias == pytest.approx(theirs, abs=1e-4)


@pytest.mark.parametrize("method", ROWS)
def test_few_rows_in_the_cache_give_the_same_answer(method):
    X, y = classes(80)
    problem = RegularisedRisk(Gram(Precomputed(), gaussian(X)), y, Hinge(), 1.0)
    many, few = (method(problem, tol=1e-5, memory=8 * 80 * rows) for rows in (80, 8))
    assert np.array_equal(few.variables, many.variables)
    assert few.details["kernel_values"] > many.details["kernel_values"]
    assert few.details["cache_rate"] < many.details["cache_rate"] <= 1.0
    with pytest.raises(BudgetTooSmall, match="row cache"):
        method(problem, memory=8 * 80)


@ALL
def test_an_interruption_ends_with_the_point_it_has_reached(method):
    X, y = classes(900)
    problem = RegularisedRisk(Gram(Gaussian(sigma=0.7), X), y, Hinge(), 1e4)
    seen = []
    with Monitor(callback=lambda record: seen.append(record) or len(seen) > 1) as monitor:
        found = method(problem, tol=1e-8, monitor=monitor)
    assert found.stopped == "interrupted"
    assert found.dual > 0.0
    assert found.gap == pytest.approx(found.primal - found.dual)
    assert problem.program().violation(found.variables)[1] < 1e-8
    assert method(problem, tol=1e-3, max_iter=7).iterations == 7


@ALL
def test_a_warm_start_from_the_optimum_makes_hardly_a_step(method):
    problem = case(c_svc, 6, n=40, bias="free").problem
    cold = method(problem, tol=1e-6)
    warm = method(problem, tol=1e-6, start=cold)
    assert warm.converged
    assert warm.iterations <= 1


def test_random_starts_are_repeatable_and_do_not_change_the_optimum():
    problem = case(eps_svr, 7, n=40, bias="free").problem
    one, same, other = (smo.solve(problem, tol=1e-6, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(one.variables, same.variables)
    assert other.dual == pytest.approx(one.dual, rel=1e-7)


def test_the_tube_does_not_hold_the_second_choice_up():
    """Errors of free variables on opposite edges of the tube differ by its width at the optimum: the printed choice of
    the largest |E_i - E_j| creeps; comparing the edges takes a few steps for each point."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40, 2))
        y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=40)
        found = smo.solve(RegularisedRisk(Gram(Precomputed(), gaussian(X)), y, EpsilonInsensitive(0.1), 10.0), tol=2e-3)
        assert found.converged
        assert found.iterations < 40 * 600


# Choices ---------------------------------------------------------------------------------------------------------


def states(n=25, seed=0):
    """A feasible point of C-SVC on the way to the optimum, in compiled form."""
    X, y = classes(n, seed=seed)
    K = gaussian(X)
    problem = RegularisedRisk(Gram(Precomputed(), K), y, Hinge(), 1.0)
    s = smo.solve(problem, tol=1e-9, max_iter=9).variables
    signed = Signed.of(problem.program())
    state = State(s.copy(), K @ s, np.empty(n), np.empty(n), np.zeros(1))
    all_offsets(signed, state.u, state.rise, state.fall)
    rows = Rows(K, np.arange(n), np.zeros(n, dtype=np.int64), np.zeros(1, dtype=np.int64), np.diag(K).copy())
    return signed, state, rows, K, y


@pytest.mark.parametrize("seed", range(6))
def test_the_maximal_violating_pair_is_the_best_of_the_four_pairs(seed):
    """Rifkin 2002, section 2.4.1: per class the largest g below C and the smallest above 0; four ways to pair them."""
    signed, state, _, K, y = states(seed=seed)
    alpha = y * state.u
    g = 1 - y * (K @ state.u)
    up = {c: max((g[k], k) for k in range(y.size) if y[k] == c and alpha[k] < 1) for c in (-1, 1)}
    down = {c: min((g[k], k) for k in range(y.size) if y[k] == c and alpha[k] > 0) for c in (-1, 1)}
    four = [
        (up[1][0] - down[1][0], {up[1][1], down[1][1]}),
        (up[-1][0] - down[-1][0], {up[-1][1], down[-1][1]}),
        (up[1][0] + up[-1][0], {up[1][1], up[-1][1]}),
        (-down[1][0] - down[-1][0], {down[1][1], down[-1][1]}),
    ]
    violation, i, j = worst_pair(signed, state, 1)
    best, pair = max(four, key=lambda choice: choice[0])
    assert violation == pytest.approx(best)
    assert {i, j} == pair


@pytest.mark.parametrize("seed", range(6))
def test_the_second_order_partner_has_the_largest_gain(seed):
    signed, state, rows, K, _ = states(seed=seed)
    _, i, _ = worst_pair(signed, state, 1)
    slope = state.F + state.fall - (state.F + state.rise)[i]
    gains = np.where(slope > 0, np.maximum(slope, 0) ** 2 / np.maximum(K[i, i] + np.diag(K) - 2 * K[i], 1e-12), -1.0)
    assert steepest_partner(signed, state, rows, i) == gains.argmax()


@pytest.mark.parametrize("seed", range(6))
def test_without_a_bias_the_variable_of_largest_gain_moves_alone(seed):
    """Problem 10.14: the gain of an unclipped step is (y f - 1)^2 / (2 K_ii)."""
    signed, state, rows, K, y = states(seed=seed)
    signed = signed._replace(group=np.full(y.size, -1))
    margin, alpha = y * (K @ state.u) - 1, y * state.u
    violates = ((margin < 0) & (alpha < 1)) | ((margin > 0) & (alpha > 0))
    gain = np.where(violates, margin**2 / (2 * np.diag(K)), 0.0)
    violation, k = best_single(signed, state, rows)
    assert violation == pytest.approx(np.abs(margin[violates]).max())
    assert k == gain.argmax()


def test_the_code_of_a_missing_row_names_it():
    assert [missing(missing(point)) for point in (0, 1, 17)] == [0, 1, 17]
    assert all(missing(point) < 0 for point in (0, 1, 17))


# Degenerate inputs -----------------------------------------------------------------------------------------------


def gram_of(X):
    return Gram(Linear(), np.asarray(X, dtype=float).reshape(len(X), -1))


@ALL
def test_copies_of_a_point_with_both_labels_go_to_their_bound_together(method):
    """chi = 0: the objective is linear along the pair, which goes as far as the box."""
    found = method(RegularisedRisk(gram_of([1.0, 1.0, 1.0, 1.0]), [1.0, -1.0, 1.0, -1.0], Hinge(), 2.5), tol=1e-8)
    assert found.converged
    assert np.abs(found.variables) == pytest.approx(np.full(4, 2.5))
    assert found.primal == pytest.approx(10.0)


@ALL
@pytest.mark.parametrize("X", [[1.0], [1.0, 2.0], [1.0, 1.0]])
def test_one_class_alone_leaves_all_variables_at_zero(method, X):
    found = method(RegularisedRisk(gram_of(X), np.ones(len(X)), Hinge(), 1.0))
    assert found.converged
    assert not found.variables.any()
    assert found.bias >= 1.0 - 1e-12


@ALL
def test_two_points_have_their_closed_form(method):
    """alpha = 2 / |x - z|^2 for both, until C cuts it off."""
    for C, alpha in ((10.0, 2.0 / 4.0), (0.1, 0.1)):
        found = method(RegularisedRisk(gram_of([1.0, -1.0]), [1.0, -1.0], Hinge(), C), tol=1e-10)
        assert np.abs(found.variables) == pytest.approx([alpha, alpha])


@ALL
@pytest.mark.parametrize("C", [1e-9, 1e9])
def test_any_C_can_be_solved(method, C):
    X, y = classes(30)
    problem = RegularisedRisk(Gram(Precomputed(), gaussian(X, 0.5)), y, Hinge(), C)
    found = method(problem, tol=1e-6)
    exact = interior_point.solve(problem)
    assert found.dual == pytest.approx(exact.dual, rel=1e-5)


@ALL
def test_targets_inside_the_tube_need_no_function(method):
    found = method(RegularisedRisk(gram_of(np.arange(5.0)), [0.1, -0.1, 0.05, 0.0, 0.1], EpsilonInsensitive(0.2), 1.0))
    assert found.converged
    assert not found.variables.any()
    assert found.primal == pytest.approx(0.0, abs=1e-12)


@ALL
def test_a_tube_of_no_width_is_solved_like_any_other(method):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    stated = RegularisedRisk(Gram(Precomputed(), gaussian(X)), X[:, 0], EpsilonInsensitive(0.0), 1.0)
    assert method(stated, tol=1e-7).primal == pytest.approx(interior_point.solve(stated).primal, rel=1e-6)


# At the edge -----------------------------------------------------------------------------------------------------


def test_problems_without_a_threshold_are_refused_by_two_thresholds_and_the_remedy_is_named():
    problem = case(c_svc, 0, bias="none").problem
    with pytest.raises(InvalidInput, match="'smo'"):
        keerthi.solve(problem)
    assert smo.solve(problem).converged


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"selection": "best"}, "second_order"),
        ({"full_pass_below": 2.0}, "full_pass_below"),
        ({"precision": 0.0}, "precision"),
    ],
)
def test_unknown_options_are_refused(options, text):
    with pytest.raises(InvalidInput, match=text):
        smo.solve(case(c_svc, 0).problem, **options)
    with pytest.raises(InvalidInput, match="modification"):
        keerthi.solve(case(c_svc, 0, bias="free").problem, modification=3)


@pytest.mark.parametrize("solver", ["smo", "keerthi", "svmfu"])
def test_machines_reach_them_by_name(solver):
    X, y = classes(120)
    for machine, peer, target in (
        (SVC(solver=solver, tol=1e-5), SVC(tol=1e-5), y),
        (SVR(solver=solver, tol=1e-5), SVR(tol=1e-5), X[:, 0]),
        (NuSVC(solver=solver, tol=1e-5, nu=0.4), NuSVC(tol=1e-5, nu=0.4), y),
        (OneClassSVM(solver=solver, tol=1e-5), OneClassSVM(tol=1e-5), None),
    ):
        machine.fit(X, target)
        peer.fit(X, target)
        assert machine.stopped_ == "converged"
        assert machine.objective_ == pytest.approx(peer.objective_, rel=1e-4)
