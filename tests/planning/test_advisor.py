"""The advisor: every leaf is reachable, its solver takes the problem, and `solver="auto"` does what it says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer import LSSVR, SVC, Gaussian, Gram, Linear, OnlineSVC, Sigmoid
from mercer.errors import InvalidInput
from mercer.losses import EpsilonInsensitive, Hinge, SquaredHinge
from mercer.planning import advise, quadratic_solver
from mercer.planning.advisor import HUGE, SMALL, Situation
from mercer.problems import HardMargin, NuClassification, OneClass, RegularisedRisk
from mercer.resources import Resources
from mercer.solvers import catalogue

GIB = 1024**3

LEAVES = [
    (Situation(10**6, stream=True, d=20), "online"),
    (Situation(800, basis=True), "interior_point"),
    (Situation(800, hard=True), "interior_point"),
    (Situation(800, cost=10 * HUGE), "interior_point"),
    (Situation(1000, precise=True, cost=100.0, d=10), "interior_point"),
    (Situation(20_000, linear=True, factor=20, d=20), "interior_point"),
    (Situation(200_000, linear=True, factor=5000, d=5000), "linear_dual"),
    (Situation(4000, linear=True, factor=5000, d=5000, entries=20.0), "decomposition"),
    (Situation(4000, d=10), "decomposition"),
    (Situation(800, cost=10 * HUGE, bounded=True), "decomposition"),
    (Situation(800, hard=True, indefinite=True), "decomposition"),
    (Situation(100_000, compact=True, d=10), "low rank"),
    (Situation(100_000, smallest=True, d=10), "keerthi"),
    (Situation(2000, squares=True, d=10), "cholesky"),
    (Situation(100_000, squares=True, linear=True, d=10), "woodbury"),
    (Situation(100_000, squares=True, d=10), "block_conjugate_gradient"),
]


@pytest.mark.parametrize(("task", "method"), LEAVES)
def test_every_leaf_is_reachable_with_time_memory_and_reason(task, method):
    answer = advise(task, memory=GIB)
    assert answer.method == method
    assert answer.seconds > 0.0
    assert 0 < answer.memory <= GIB
    assert all(answer.reasons)
    assert method in str(answer)


@given(
    n=st.integers(1, 10**6), d=st.integers(1, 10**4), cost=st.floats(1e-6, 1e12), equalities=st.integers(0, 4),
    factored=st.booleans(), compact=st.booleans(), precise=st.booleans(), smallest=st.booleans(), hard=st.booleans(),
    squares=st.booleans(), stream=st.booleans(), indefinite=st.booleans(), cores=st.integers(1, 64),
)  # fmt: skip
def test_any_situation_has_an_answer_that_names_a_method_that_is_there(n, d, cost, factored, cores, **wishes):
    task = Situation(n, d=d, cost=cost, factor=d if factored else None, linear=factored, **wishes)
    answer = advise(task, memory=GIB, cores=cores)
    known = {*catalogue.NAMES, "online", "low rank", "cholesky", "woodbury", "block_conjugate_gradient"}
    assert answer.method in known
    assert np.isfinite(answer.seconds)
    assert answer.reasons


def test_twice_the_cores_take_half_the_time():
    task = Situation(5000, d=10)
    assert advise(task, cores=4).seconds == pytest.approx(0.5 * advise(task, cores=2).seconds)


def test_what_cannot_be_is_refused():
    with pytest.raises(InvalidInput, match="d must be"):
        Situation(10, d=0)
    with pytest.raises(InvalidInput, match="n must be"):
        Situation(0)


def points(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).standard_normal((n, 3))
    return X, np.where(X[:, 0] > 0.1, 1.0, -1.0)


X, Y = points()
GRAM = Gram(Gaussian(1.0), X)
FACTORED = Gram(Linear(), X, storage="lowrank")
PROBLEMS = [
    RegularisedRisk(GRAM, Y, Hinge()),
    RegularisedRisk(GRAM, Y, Hinge(), C=1e7),
    RegularisedRisk(GRAM, Y, SquaredHinge(), bias="penalised"),
    RegularisedRisk(GRAM, X[:, 1], EpsilonInsensitive(0.1)),
    RegularisedRisk(GRAM, Y, Hinge(), basis=X[:, :1]),
    RegularisedRisk(FACTORED, Y, Hinge()),
    RegularisedRisk(FACTORED, X[:, 1], EpsilonInsensitive(0.1), bias="none"),
    NuClassification(GRAM, Y, 0.3),
    NuClassification(FACTORED, Y, 0.3),
    OneClass(GRAM, 0.2),
    HardMargin(GRAM, Y),
    RegularisedRisk(Gram(Sigmoid(gamma=0.1), X), Y, Hinge(), C=1e7),
]


@pytest.mark.parametrize("problem", PROBLEMS, ids=repr)
@pytest.mark.parametrize("wish", [{}, {"precise": True}, {"smallest": True}, {"bounded": True}])
def test_the_solver_it_names_accepts_the_problem(problem, wish):
    answer = advise(Situation.of(problem, **wish))
    assert catalogue.by_name(answer.method).accepts(problem), answer


@pytest.mark.parametrize("problem", PROBLEMS, ids=repr)
def test_auto_is_its_choice(problem):
    chosen = quadratic_solver(problem, Resources(None, "float64"))
    assert chosen.name == advise(Situation.of(problem)).method
    assert chosen.reason


@pytest.mark.parametrize("problem", PROBLEMS[:4], ids=repr)
def test_its_choice_reaches_the_objective_of_the_interior_point_method(problem):
    name = advise(Situation.of(problem)).method
    found = catalogue.by_name(name).solve(problem, tol=1e-6)
    exact = catalogue.by_name("interior_point").solve(problem, tol=1e-9)
    assert found.primal == pytest.approx(exact.primal, rel=1e-4)


def test_facts_are_read_off_a_problem():
    dense = Situation.of(RegularisedRisk(GRAM, Y, Hinge(), C=5.0))
    assert (dense.n, dense.d, dense.factor, dense.equalities) == (60, 3, None, 1)
    assert dense.cost == pytest.approx(5.0)
    thin = Situation.of(RegularisedRisk(FACTORED, Y, Hinge()))
    assert thin.factor == 3
    assert Situation.of(HardMargin(GRAM, Y)).hard


def test_the_other_leaves_are_machines():
    """Streams and linear systems are no quadratic programs: their leaves have estimators and solvers of their own."""
    assert hasattr(OnlineSVC, "partial_fit")
    for name in ("cholesky", "woodbury", "block_conjugate_gradient"):
        kernel = "linear" if name == "woodbury" else "rbf"
        assert LSSVR(solver=name, kernel=kernel).fit(X, X[:, 1]).solver_.startswith(name)
    assert SVC(solver="keerthi").fit(X, Y).stopped_ == "converged"


def test_more_points_than_the_interior_point_method_is_quick_on_need_no_weighing(monkeypatch):
    monkeypatch.setattr("mercer.planning.solvers.advise", None)  # it would fail if it were asked
    many = np.zeros((SMALL + 1, 2))
    labels = np.where(np.arange(SMALL + 1) % 2, 1.0, -1.0)
    problem = RegularisedRisk(Gram(Gaussian(1.0), many), labels, Hinge())
    assert quadratic_solver(problem, Resources(None, "float64")).name == "decomposition"
