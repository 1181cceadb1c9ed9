"""The machines with one problem for all classes: primal, dual, certificate, scalings, and the theory around them."""

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from mercer.errors import InvalidInput
from mercer.problems.multiclass import BredensteinerBennett, CrammerSinger, LeeLinWahba, WestonWatkins
from mercer.solvers.multiclass import decomposition
from mercer.svm import SVC
from problems.multiclass_reference import gaussian, given, points, reference

MACHINES = {
    "ww": WestonWatkins,
    "cs": CrammerSinger,
    "llw": LeeLinWahba,
}
KINDS = list(MACHINES)
BIASES = ["none", "penalised", "free"]


def feasible_variables(problem, rng):
    """Random variables inside their bounds; the whole problem relabelled by classes makes sums of zero impossible."""
    return problem.feasible(rng.uniform(0, 1, (problem.n, problem.k)) * problem.box[:, None])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", ["none", "penalised"])
def test_weak_duality_and_the_gap_is_the_difference(kind, bias):
    X, y = points(30, 4)
    rng = np.random.default_rng(1)
    problem = MACHINES[kind](given(gaussian(X)), y, 1.3, rng.uniform(0.5, 2, 30), bias)
    for _ in range(5):
        a = feasible_variables(problem, rng)
        certificate = problem.certificate(a)
        c = problem.coefficients(a)
        assert np.abs(c.sum(axis=1)).max() < 1e-12
        assert certificate.primal == pytest.approx(problem.primal(c))
        assert certificate.dual == pytest.approx(problem.dual(a), abs=1e-9 * certificate.primal)
        assert certificate.gap >= 0
        assert problem.violation(a)[0] < 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_the_bias_of_a_certificate_is_the_best_one(kind):
    X, y = points(20, 3, seed=2)
    rng = np.random.default_rng(0)
    problem = MACHINES[kind](given(gaussian(X)), y, 1.0, bias="free")
    c = problem.coefficients(feasible_variables(problem, rng))
    f = problem.gram.dot(c)
    b = problem.best_bias(f)
    assert abs(b.sum()) < 1e-9
    best = problem.primal(c, b)
    for _ in range(200):
        other = b + rng.normal(size=3) * rng.choice([1e-3, 0.1, 1.0])
        assert problem.primal(c, other - other.mean()) >= best - 1e-9


def test_scalings_of_the_literature_are_the_same_machine():
    X, y = points(20, 3)
    gram = given(gaussian(X))
    C, n = 0.8, 20
    norms = lambda p, c: float(np.vdot(c, p.gram.dot(c)))  # noqa: E731 - sum ||f_m||^2
    for kind, (problem, theirs) in {
        "Rifkin's WW": (WestonWatkins.from_rifkin(gram, y, C), lambda N, loss: N + C * loss),
        "Rifkin's CS": (CrammerSinger.from_rifkin(gram, y, C), lambda N, loss: N + C * loss),
        "slides' CS": (CrammerSinger.from_beta(gram, y, C), lambda N, loss: C / 2 * N + loss),
        "Rifkin's LLW": (LeeLinWahba.from_lambda(gram, y, C), lambda N, loss: loss / n + C * N),
    }.items():
        rng = np.random.default_rng(3)
        ratios = []
        for _ in range(4):
            c = problem.coefficients(feasible_variables(problem, rng))
            loss = float(problem.losses(problem.gram.dot(c)).sum())
            ratios.append(theirs(norms(problem, c), loss) / problem.primal(c))
        assert np.ptp(ratios) < 1e-12 * ratios[0], kind


def test_bredensteiner_bennett_is_weston_watkins_at_the_stated_C():
    X, y = points(21, 3, seed=5)
    K = gaussian(X)
    C, k = 2.0, 3
    bennett = decomposition.solve(BredensteinerBennett(given(K), y, C), tol=1e-9)
    # In Rifkin's scaling, with margin 2: C_WW = 4 C / (2k + 1) and W_WW = 2 W_BB.
    twin = decomposition.solve(WestonWatkins.from_rifkin(given(K), y, 4 * C / (2 * k + 1)), tol=1e-9)
    np.testing.assert_allclose(twin.coefficients, 2 * bennett.coefficients, atol=1e-4)


@pytest.mark.parametrize("bias", ["none", "free"])
@pytest.mark.parametrize(
    ("pairs", "form"), [("ordered", lambda k: (2 * k + 1, -2)), ("unordered", lambda k: (k + 1, -1))]
)
def test_bredensteiner_bennett_solves_its_own_quadratic_program(bias, pairs, form):
    X, y = points(18, 3, seed=6)
    K = gaussian(X)
    k = 3
    own, shared = form(k)
    norm = own * np.eye(k) + shared * np.ones((k, k))  # 1/2 sum ||w_i - w_j||^2 + 1/2 sum ||w_i||^2
    value, f = reference("ww", K, y, 1.5, bias, norm=norm, margin=1.0)
    problem = BredensteinerBennett(given(K), y, 1.5, bias=bias, pairs=pairs)
    found = decomposition.solve(problem, tol=1e-9)
    assert found.primal == pytest.approx(value, rel=1e-7)
    assert problem.primal(found.coefficients, found.bias) == pytest.approx(value, rel=1e-7)
    assert problem.dual(found.variables) == pytest.approx(value, rel=1e-7)
    ours = K @ found.coefficients + found.bias
    np.testing.assert_allclose(ours - ours.mean(axis=1, keepdims=True), f - f.mean(axis=1, keepdims=True), atol=2e-4)


@pytest.mark.parametrize(("kind", "factor", "scale"), [("ww", 1.0, 0.5), ("cs", 2.0, 1.0), ("llw", 0.5, 0.5)])
@pytest.mark.parametrize("bias", ["none", "free"])
def test_two_classes_are_the_binary_machine(kind, factor, scale, bias):
    X, y = points(40, 2, seed=7)
    K = gaussian(X)
    problem = MACHINES[kind]
    found = decomposition.solve(problem(given(K), y, 1.7, bias=bias), tol=1e-10)
    f = K @ found.coefficients + found.bias
    binary = SVC(C=factor * 1.7, kernel="precomputed", tol=1e-8, bias=bias).fit(K, y)
    np.testing.assert_allclose(scale * (f[:, 1] - f[:, 0]), binary.decision_function(K), atol=2e-4)


def one_place(kind, p, C=200.0):
    """Outputs at a single place where class m has probability p_m."""
    k = len(p)
    problem = MACHINES[kind]
    found = decomposition.solve(problem(given(np.ones((k, k))), np.arange(k), C, p), tol=1e-10)
    return found.coefficients.sum(axis=0)


@pytest.mark.parametrize(
    ("kind", "expected"), [("llw", (1, -0.5, -0.5)), ("ww", (2 / 3, 2 / 3, -4 / 3)), ("cs", (0, 0, 0))]
)
def test_minimisers_where_no_class_has_half_the_probability(kind, expected):
    np.testing.assert_allclose(one_place(kind, np.array([0.4, 0.35, 0.25])), expected, atol=1e-5)


def test_only_lee_lin_wahba_finds_the_most_probable_class_of_a_discrete_distribution():
    probabilities = np.array([[0.45, 0.30, 0.25], [0.25, 0.40, 0.35], [0.33, 0.27, 0.40]])
    places = np.repeat(np.arange(3), 3)
    labels = np.tile(np.arange(3), 3)
    K = (places[:, None] == places[None]).astype(float)
    weights = probabilities.ravel()
    found = decomposition.solve(LeeLinWahba(given(K), labels, 1e4, weights), tol=1e-9)
    f = (K @ found.coefficients)[::3]
    assert (f.argmax(axis=1) == probabilities.argmax(axis=1)).all()
    against_rest = SVC(C=1e4, kernel="precomputed", multiclass="ovr", bias="none", tol=1e-6)
    values = against_rest.fit(K, labels, sample_weight=weights).decision_function(K)[::3]
    np.testing.assert_allclose(values, -1.0, atol=1e-2)


@settings(max_examples=30, deadline=None)
@drawn(st.integers(2, 6), st.integers(0, 2**31))
def test_slacks_of_one_versus_all_are_feasible_for_weston_watkins(k, seed):
    rng = np.random.default_rng(seed)
    y = np.arange(k)
    f = rng.normal(size=(k, k)) * 2
    d = WestonWatkins(given(np.eye(k)), y).arguments(f)
    own = np.maximum(1 - f[y, y], 0)
    rest = np.maximum(1 + f, 0)
    assert (np.maximum(d, 0) <= own[:, None] + rest + 1e-12).all()


def test_outputs_sum_to_zero_at_points_never_seen():
    X, y = points(30, 4, seed=8)
    Z = np.random.default_rng(0).normal(size=(50, 2))
    found = decomposition.solve(LeeLinWahba(given(gaussian(X)), y, 2.0, bias="free"), tol=1e-6)
    f = np.exp(-0.5 * ((Z[:, None] - X[None]) ** 2).sum(axis=2)) @ found.coefficients + found.bias
    assert np.abs(f.sum(axis=1)).max() < 1e-12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": np.zeros(6)}, "two classes"),
        ({"y": np.array([0, 1, 2, 0, 1, 3.5])}, "whole numbers"),
        ({"y": np.array([0, 1, 3, 0, 1, 3])}, "no point"),
        ({"y": np.array([-1, 1, 0, 0, 1, 1])}, "from 0 on"),
        ({"C": 0.0}, "C must be positive"),
        ({"bias": "maybe"}, "bias must be"),
        ({"weights": -np.ones(6)}, "negative"),
    ],
)
def test_a_wrong_problem_is_refused(arguments, message):
    valid = {"y": np.array([0, 1, 2, 0, 1, 2]), "C": 1.0}
    for problem in (WestonWatkins, CrammerSinger, LeeLinWahba):
        with pytest.raises(InvalidInput, match=message):
            problem(given(np.eye(6)), **{**valid, **arguments})
