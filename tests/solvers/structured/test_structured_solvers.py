"""Solvers of structured problems reach the optimum of the quadratic program over all structures, and say how near."""

from itertools import product

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp

from mercer import SVC, CrammerSingerSVC
from mercer.errors import InvalidInput
from mercer.problems.structured import StructuredProblem
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution
from mercer.solvers.structured import frank_wolfe, n_slack, one_slack, perceptron, subgradient
from mercer.structured import Chain, Found, Multiclass, StructuredModel
from mercer.structured.looping import LoopedExamples

EXACT = {one_slack: 1e-8, n_slack: 1e-8}
ALL = {**EXACT, frank_wolfe: 1e-3, subgradient: 2e-2}
SHAPES = [("hamming", "margin"), ("hamming", "slack"), ("zero-one", "margin")]


def chains(n=12, k=3, d=3, seed=0, longest=3):
    random = np.random.default_rng(seed)
    X = [random.standard_normal((T, d)) for T in random.integers(0, longest + 1, n)]
    truth = random.standard_normal((d, k))
    return X, [np.argmax(x @ truth + random.standard_normal((len(x), k)), axis=1) for x in X]


def problem_of(X, Y, loss="hamming", rescaling="margin", C=0.3, weights=None, looped=False):
    model = Chain([0, 1, 2], loss=loss).prepared(X, Y)
    checked = model.check(X, Y)
    made = LoopedExamples(model, *checked, rescaling) if looped else model.examples(*checked, rescaling)
    return StructuredProblem(made, C, weights), model, checked


def full_program(model, X, Y, rescaling, costs):
    """The optimal value of the program with one constraint for each labelling of each chain."""
    rows, right, size, n = [], [], model.size(), len(X)
    for i, (x, y) in enumerate(zip(X, Y)):
        for z in product(range(3), repeat=len(y)):
            z, loss, v = np.array(z, dtype=np.intp), None, np.zeros(size)
            model.joint_features(x, y).add_to(v)
            model.joint_features(x, z).add_to(v, -1.0)
            loss = model.loss(y, z)
            v *= loss if rescaling == "slack" else 1.0
            rows.append(np.concatenate((-v, -np.eye(n)[i])))
            right.append(-loss)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    P = sp.diags(np.concatenate((np.ones(size), np.zeros(n)))).tocsc()
    q, A = np.concatenate((np.zeros(size), costs)), sp.csc_matrix(np.array(rows))
    answer = clarabel.DefaultSolver(P, q, A, np.array(right), [clarabel.NonnegativeConeT(len(right))], settings).solve()
    return answer.obj_val


@pytest.mark.parametrize(("loss", "rescaling"), SHAPES)
def test_every_solver_reaches_the_optimum_over_all_labellings(loss, rescaling):
    X, Y = chains()
    problem, model, checked = problem_of(X, Y, loss, rescaling)
    best = full_program(model, *checked, rescaling, problem.costs)
    for solver, tol in ALL.items():
        found = solver.solve(problem, tol=tol)
        assert found.converged, solver.__name__
        assert found.dual <= best * (1 + 1e-8) <= found.primal * (1 + 2e-8), solver.__name__
        assert found.primal - found.dual <= tol * found.primal


@pytest.mark.parametrize("solver", ALL)
def test_planes_from_python_give_the_same_optimum_as_compiled_ones(solver):
    X, Y = chains(seed=3)
    fast, slow = (solver.solve(problem_of(X, Y, looped=looped)[0], tol=ALL[solver]) for looped in (False, True))
    assert abs(fast.primal - slow.primal) <= 2 * ALL[solver] * fast.primal


@pytest.mark.parametrize("solver", ALL)
def test_the_primal_value_is_that_of_the_weights_it_comes_with(solver):
    X, Y = chains(seed=4)
    problem, model, checked = problem_of(X, Y)
    found = solver.solve(problem, tol=0.05)
    w = found.coefficients
    losses = [
        max(model.value(w, x, y, np.array(z, dtype=np.intp), "margin") for z in product(range(3), repeat=len(y)))
        for x, y in zip(*checked)
    ]
    assert found.primal == pytest.approx(0.5 * w @ w + 0.3 * sum(losses), rel=1e-12)


def test_classes_as_structures_are_the_machine_of_crammer_and_singer():
    random = np.random.default_rng(0)
    X, y = random.standard_normal((40, 3)), random.integers(0, 3, 40)
    model = Multiclass().prepared(X, y)
    problem = StructuredProblem(model.examples(*model.check(X, y), "margin"), C=0.2)
    peer = CrammerSingerSVC(kernel="linear", C=0.2, tol=1e-9).fit(X, y)
    for solver, tol in EXACT.items():
        found = solver.solve(problem, tol=tol)
        assert found.primal == pytest.approx(peer.objective_, rel=1e-7)
        scores = X @ found.coefficients.reshape(3, -1).T
        np.testing.assert_allclose(scores, peer.decision_function(X), atol=1e-3)


def test_two_classes_are_a_support_vector_machine_without_bias():
    """w_1 = -w_2 = v / 2 halves the norm: twice the C of SVC, and half its objective."""
    random = np.random.default_rng(1)
    X = random.standard_normal((40, 3))
    y = np.sign(X[:, 0] + 0.7 * random.standard_normal(40))
    model = Multiclass().prepared(X, y)
    problem = StructuredProblem(model.examples(*model.check(X, y), "margin"), C=0.5)
    found = one_slack.solve(problem, tol=1e-9)
    peer = SVC(kernel="linear", C=1.0, bias="none", tol=1e-10).fit(X, y)
    negative, positive = found.coefficients.reshape(2, -1)
    np.testing.assert_allclose(positive - negative, peer.coef_[0], atol=1e-4)
    assert 2.0 * found.primal == pytest.approx(peer.objective_, rel=1e-7)


@pytest.mark.parametrize("solver", EXACT)
def test_weight_two_is_two_copies_and_weight_zero_none(solver):
    X, Y = chains(seed=5)
    weights = np.ones(len(X))
    weights[:3], weights[3:5] = 2.0, 0.0
    weighted = solver.solve(problem_of(X, Y, weights=weights)[0], tol=1e-8)
    copied = solver.solve(problem_of(X[:3] + X[:3] + X[5:], Y[:3] + Y[:3] + Y[5:])[0], tol=1e-8)
    assert weighted.primal == pytest.approx(copied.primal, rel=1e-7)


@pytest.mark.parametrize("solver", ALL)
def test_a_solve_goes_on_from_a_file_where_an_earlier_one_ended(solver, tmp_path):
    X, Y = chains(seed=6)
    problem = problem_of(X, Y)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Monitor, "due", lambda self, reported: True)
        monitor = Monitor(checkpoint=tmp_path / "state.npz", every=0.0)
        first = solver.solve(problem, tol=1e-12, max_iter=4, monitor=monitor)
    saved = Solution.load(tmp_path / "state.npz")
    more = solver.solve(problem, tol=ALL[solver], start=saved)
    assert saved.dual <= more.dual + 1e-12
    assert more.converged
    assert first.iterations == 4
    again = solver.solve(problem, tol=1.01 * ALL[solver] + 1e-9, start=more)
    assert again.iterations <= 1


@pytest.mark.parametrize("solver", ALL)
def test_a_start_from_other_data_or_another_solver_is_refused(solver):
    X, Y = chains(seed=7)
    problem = problem_of(X, Y)[0]
    found = solver.solve(problem, tol=0.5, max_iter=2)
    with pytest.raises(InvalidInput, match="other data"):
        solver.solve(problem_of(X, [*Y[:-1], 2 - Y[-1]])[0], start=found)
    other = frank_wolfe if solver is not frank_wolfe else one_slack
    with pytest.raises(InvalidInput, match="cannot go on"):
        other.solve(problem, start=found)


@pytest.mark.parametrize("solver", ALL)
def test_another_C_begins_where_this_one_ended(solver):
    X, Y = chains(seed=8)
    found = solver.solve(problem_of(X, Y, C=0.3)[0], tol=ALL[solver])
    larger = problem_of(X, Y, C=0.33)[0]
    warm, cold = solver.solve(larger, tol=ALL[solver], start=found), solver.solve(larger, tol=ALL[solver])
    assert abs(warm.primal - cold.primal) <= 2 * ALL[solver] * cold.primal


def test_planes_that_are_dropped_change_nothing(monkeypatch):
    X, Y = chains(n=20, seed=9)
    problem = problem_of(X, Y)[0]
    for solver in EXACT:
        kept = solver.solve(problem, tol=1e-8)
        monkeypatch.setattr(solver, "IDLE", 2)
        dropped = solver.solve(problem, tol=1e-8)
        assert dropped.primal == pytest.approx(kept.primal, rel=1e-7)
        assert dropped.details["planes"] <= kept.details["planes"]


class Bounded(StructuredModel):
    """Three classes whose inference knows the maximum only up to a half."""

    name = "bounded"

    def size(self):
        return 6

    def joint_features(self, x, y):
        return np.kron(np.eye(3)[y], x)

    def loss(self, y, other):
        return float(y != other)

    def infer(self, w, x):
        return int(np.argmax(w.reshape(3, 2) @ x))

    def loss_augmented(self, w, x, y, rescaling):
        values = [self.value(w, x, y, z, rescaling) for z in range(3)]
        return Found(int(np.argmax(values)), max(values) + 0.5)


@pytest.mark.parametrize("solver", ALL)
def test_with_bounds_for_maxima_the_certificate_holds_and_the_solve_ends(solver):
    random = np.random.default_rng(0)
    X, y = random.standard_normal((10, 2)), random.integers(0, 3, 10)
    exact = Multiclass(labels=[0, 1, 2]).prepared(X, y)
    best = one_slack.solve(StructuredProblem(exact.examples(*exact.check(X, y), "margin")), tol=1e-9)
    found = solver.solve(StructuredProblem(LoopedExamples(Bounded(), X, y, "margin")), tol=1e-3)
    assert found.stopped == "stalled"
    assert found.dual <= best.primal + 1e-9
    assert found.primal >= best.primal - 1e-9
    assert found.gap >= 5.0 - 1e-9  # a half for each of ten examples is never closed


def test_time_limit_and_interruption_keep_what_was_reached():
    X, Y = chains(n=30, seed=1)
    problem = problem_of(X, Y)[0]
    for solver in ALL:
        assert solver.solve(problem, tol=1e-15, monitor=Monitor(time_limit=1e-9)).stopped == "time"
        found = solver.solve(problem, tol=1e-15, monitor=Monitor(callback=lambda record: record.iteration >= 2))
        assert found.stopped == "interrupted"
        assert found.iterations >= 2
        assert found.history[-1].gap >= 0.0


def test_the_mean_of_a_perceptron_is_that_of_all_its_weights():
    X, Y = chains(seed=2)
    problem, model, checked = problem_of(X, Y)
    found = perceptron.solve(problem, max_iter=3, seed=5)
    random, w, total = np.random.default_rng(5), np.zeros(model.size()), np.zeros(model.size())
    for _ in range(3):
        for i in random.permutation(len(X)):
            x, y = checked[0][i], checked[1][i]
            z = model.infer(w, x)
            model.joint_features(x, y).add_to(w)
            model.joint_features(x, z).add_to(w, -1.0)
            total += w
    np.testing.assert_allclose(found.coefficients, total / (3 * len(X)), atol=1e-12)
    looped = perceptron.solve(problem_of(X, Y, looped=True)[0], max_iter=3, seed=5)
    np.testing.assert_allclose(found.coefficients, looped.coefficients, atol=1e-12)


def test_a_perceptron_ends_when_it_separates_and_goes_on_from_a_start():
    random = np.random.default_rng(3)
    X = [random.standard_normal((4, 3)) for _ in range(15)]
    Y = [np.argmax(x, axis=1) for x in X]
    problem, model, checked = problem_of(X, Y)
    found = perceptron.solve(problem, max_iter=1000)
    assert found.stopped == "converged"
    assert all((z == y).all() for z, y in zip(model.predict(found.details["last"], checked[0]), checked[1]))
    start = perceptron.solve(problem, max_iter=1)
    assert perceptron.solve(problem, max_iter=1, start=start).variables[0] == 30
    with pytest.raises(InvalidInput, match="start has 3 numbers"):
        perceptron.solve(problem, start=np.zeros(3))


def test_costs_that_make_no_sense_are_refused():
    X, Y = chains()
    with pytest.raises(InvalidInput, match="C must be a positive number"):
        problem_of(X, Y, C=0.0)
    with pytest.raises(InvalidInput, match="weights must be 12 numbers"):
        problem_of(X, Y, weights=-np.ones(12))
