"""Every registered solver on every kind of problem: those that accept it agree, within their own certificates.

The rows of the matrix are those of Schoelkopf and Smola 2002, chapter 10: C-SVC and eps-SVR, nu machines, one-class,
squared and Huber losses, with all treatments of the bias, and degenerate inputs.  The reference is a conic solver that
is given the statement of the textbook.  A solver that is added to `mercer.solvers.catalogue` is tested here without
another line; what it cannot do must be refused by its `accepts`.
"""

from functools import cache

import numpy as np
import pytest
from problems import zoo

from mercer.errors import InvalidInput
from mercer.gram import Gram, LowRankGram
from mercer.kernels import Precomputed
from mercer.losses import EpsilonInsensitive, Hinge, SquaredHinge
from mercer.problems import NuClassification, NuRegression, OneClass, RegularisedRisk
from mercer.solvers import available, by_name, catalogue, fitting

GAP = 1e-7
# In exact arithmetic every certificate brackets the optimum; the reference itself is known to this share.
REFERENCE = 1e-8
FAR = 1e5
# Methods whose gap falls like 1/iterations, or that stall before the last digits: they may stop here, and say so.
LIMITED = {"gradient": 1000, "irwls": 300}


def reference(problem):
    """The optimum by Clarabel: minus the smallest value of the program, each variable the difference of two parts."""
    program = problem.program()
    K = np.asarray(program.gram.dense(), dtype=np.float64) + program.constant
    Q = K[np.ix_(program.point, program.point)] + np.diag(program.ridge)
    above, below = np.flatnonzero(program.upper > 0), np.flatnonzero(program.lower < 0)
    part, sign = np.concatenate((above, below)), np.repeat([1.0, -1.0], [above.size, below.size])
    Q, A = np.outer(sign, sign) * Q[np.ix_(part, part)], program.equalities[:, part] * sign
    u = np.concatenate((program.upper[above], -program.lower[below]))
    # Bounds that no variable comes near spoil the scaling of the conic solver.
    return -zoo.table_optimum(Q, sign * program.linear[part], A, program.d, np.where(u < FAR, u, np.inf))


def points(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y, np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n)


def kernel_on(X):
    return Gram(Precomputed(), zoo.gaussian(X))


def duplicates():
    X, y, _ = points(10)
    twice = np.vstack((X, X, X[:3]))
    labels = np.concatenate((y, y, -y[:3]))  # the last ones contradict
    return RegularisedRisk(kernel_on(twice), labels, Hinge(), 2.0)


def duplicate_targets():
    X, _, t = points(10)
    return RegularisedRisk(kernel_on(np.vstack((X, X))), np.concatenate((t, t + 0.5)), EpsilonInsensitive(0.1), 2.0)


def one_class_only():
    X, _, _ = points(8)
    return RegularisedRisk(kernel_on(X), np.ones(8), Hinge(), 1.0)


def singular():
    x = np.linspace(-1, 1, 14)[:, None]
    return RegularisedRisk(Gram(Precomputed(), x @ x.T), np.where(x[:, 0] > 0.1, 1.0, -1.0), Hinge(), 1.0)


def constant_kernel():
    _, y, _ = points(9)
    return RegularisedRisk(Gram(Precomputed(), np.ones((9, 9))), y, Hinge(), 1.0)


def tiny_cost():
    X, y, _ = points(12)
    return RegularisedRisk(kernel_on(X), y, Hinge(), 1e-8)


def huge_cost():
    X, y, _ = points(12)
    return RegularisedRisk(kernel_on(X), y, Hinge(), 1e6)


def one_point():
    return RegularisedRisk(Gram(Precomputed(), np.eye(1)), np.array([0.7]), EpsilonInsensitive(0.1), 1.0)


def two_points():
    return RegularisedRisk(Gram(Precomputed(), np.eye(2)), np.array([1.0, -1.0]), Hinge(), 1.0)


def no_tube():
    X, _, t = points(15)
    return RegularisedRisk(kernel_on(X), t, EpsilonInsensitive(0.0), 1.0)


def all_inside_the_tube():
    X, _, t = points(15)
    return RegularisedRisk(kernel_on(X), t, EpsilonInsensitive(100.0), 1.0)


def thin_factor():
    X, y, _ = points(20)
    return RegularisedRisk(LowRankGram.from_factors(X), y, Hinge(), 1.0)


def thin_squares():
    X, y, _ = points(20)
    return RegularisedRisk(LowRankGram.from_factors(X), y, SquaredHinge(), 1.0, bias="penalised")


def many_bounded():
    X, y, _ = points(60, seed=3)
    return RegularisedRisk(kernel_on(X), y, Hinge(), 0.05)


DEGENERATE = [
    duplicates,
    duplicate_targets,
    one_class_only,
    singular,
    constant_kernel,
    tiny_cost,
    huge_cost,
    one_point,
    two_points,
    no_tube,
    all_inside_the_tube,
]
WITHOUT_FREE_BIAS = [zoo.c_svc, zoo.squared_hinge, zoo.eps_svr, zoo.squared_eps, zoo.huber]


def _problems():
    """Name and maker of every problem of the matrix."""
    for kind in zoo.KINDS:
        yield kind.__name__, lambda kind=kind: zoo.case(kind, 1, n=30, bias="free").problem
    for kind in WITHOUT_FREE_BIAS:
        for bias in ("none", "penalised"):
            yield f"{kind.__name__}, bias {bias}", lambda k=kind, b=bias: zoo.case(k, 2, n=30, bias=b).problem
    for make in (*DEGENERATE, many_bounded, thin_factor, thin_squares):
        yield make.__name__, make


PROBLEMS = dict(_problems())


@cache
def stated(name):
    """A problem of the matrix with its optimum."""
    problem = PROBLEMS[name]()
    return problem, reference(problem)


@cache
def solved(solver, name):
    """What a solver finds, asked for a small gap; None where it does not accept the problem."""
    problem, _ = stated(name)
    module = by_name(solver)
    if not module.accepts(problem):
        return None
    return module.solve(problem, tol=1e-6, gap_tol=GAP, max_iter=LIMITED.get(solver, -1))


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("solver", catalogue.NAMES)
def test_a_solver_reaches_the_optimum_or_refuses_with_a_reason_and_a_remedy(solver, name):
    problem, optimum = stated(name)
    found = solved(solver, name)
    if found is None:
        with pytest.raises(InvalidInput) as refusal:
            catalogue.require(solver, problem)
        assert by_name(solver).accepts(problem).reason in str(refusal.value)
        assert repr(fitting(problem)[0]) in str(refusal.value)
        return
    scale = max(1.0, abs(optimum))
    noise = REFERENCE * scale
    assert found.dual - noise <= optimum <= found.primal + noise
    assert found.gap == pytest.approx(found.primal - found.dual, abs=1e-9 * scale)
    if solver in LIMITED and not found.converged:
        assert found.stopped in ("iterations", "stalled")
    else:
        assert found.gap <= 1e-6 * scale, found
    box, equality = problem.program().violation(np.asarray(found.variables))
    assert box == 0.0
    assert equality <= 1e-9 * max(1.0, float(np.abs(found.variables).sum()))


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_pair_of_solvers_agrees_within_their_certificates(name):
    _, optimum = stated(name)
    found = {solver: solved(solver, name) for solver in catalogue.NAMES}
    found = {solver: solution for solver, solution in found.items() if solution is not None}
    assert found, "no solver takes the problem"
    noise = REFERENCE * max(1.0, abs(optimum))
    for one in found.values():
        for other in found.values():
            assert one.dual <= other.primal + noise
            assert abs(one.primal - other.primal) <= max(one.gap, other.gap) + noise


@pytest.mark.parametrize("solver", catalogue.NAMES)
def test_nu_regression_is_eps_regression_at_the_tube_it_finds(solver):
    X, _, t = points(30, seed=4)
    gram = kernel_on(X)
    problem = NuRegression(gram, t, 2.0, 0.4)
    if not by_name(solver).accepts(problem) or solver in LIMITED:
        pytest.skip("does not take two sums, or not to so many digits")
    found = by_name(solver).solve(problem, tol=1e-7, gap_tol=1e-9)
    epsilon = float(found.multipliers["epsilon"])
    same = RegularisedRisk(gram, t, EpsilonInsensitive(epsilon), 2.0)
    # The two objectives differ by the price of the tube, C nu n epsilon.
    assert found.primal - 2.0 * 0.4 * 30 * epsilon == pytest.approx(reference(same), rel=1e-6)


@pytest.mark.parametrize("solver", catalogue.NAMES)
@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_nu_lies_between_the_shares_of_outliers_and_of_support_vectors(solver, nu):
    X, y, _ = points(40, seed=5)
    gram = kernel_on(X)
    for problem in (OneClass(gram, nu), NuClassification(gram, y, nu)):
        if not by_name(solver).accepts(problem) or solver in LIMITED:
            continue
        found = by_name(solver).solve(problem, tol=1e-7)
        values = np.asarray(gram.dot(found.coefficients)) + float(found.bias)
        margin = values if isinstance(problem, OneClass) else y * values - float(found.multipliers["rho"])
        assert np.mean(margin < -1e-5) <= nu + 1e-12
        assert np.mean(np.abs(found.variables) > 1e-7) >= nu - 1e-12


def test_all_solvers_are_listed_with_what_they_accept_and_where_they_come_from():
    listed = available()
    assert [record.name for record in listed] == list(catalogue.NAMES)
    for record in listed:
        assert record.accepts
        assert any(digit.isdigit() for digit in record.section), record  # a year
        assert record.name in str(record)
        assert record.accepts in str(record)
        assert by_name(record.name).NAME.replace(" ", "_") == record.name


def test_an_unknown_solver_is_refused_with_the_names_there_are():
    with pytest.raises(InvalidInput, match=r"'newton-raphson' is not known; there are decomposition"):
        by_name("newton-raphson")


def test_no_variable_comes_near_a_bound_that_the_reference_leaves_out():
    assert np.abs(solved("interior_point", "huge_cost").variables).max() < 1e-2 * FAR


def test_the_reference_is_right_where_the_textbook_states_the_same_problem():
    for kind in (zoo.c_svc, zoo.nu_svr, zoo.expectile, zoo.one_class):
        case = zoo.case(kind, 1, n=30, bias="free")
        assert reference(case.problem) == pytest.approx(-case.optimum(), rel=1e-8)
