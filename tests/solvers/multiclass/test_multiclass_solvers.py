"""Decomposition of the machines with one problem for all classes, against a general quadratic program solver."""

import threading

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from problems.multiclass_reference import gaussian, given, points, reference

from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import Gaussian, Linear
from mercer.problems.multiclass import BredensteinerBennett, CrammerSinger, LeeLinWahba, WestonWatkins
from mercer.problems.multinomial import MultinomialLogistic
from mercer.solvers import Monitor
from mercer.solvers.multiclass import decomposition
from mercer.solvers.multiclass.class_balance import balanced
from mercer.solvers.multiclass.steps import balanced_sum, best_variables, threshold_by_fixed_point, threshold_by_sorting

MACHINES = {
    "ww": WestonWatkins,
    "cs": CrammerSinger,
    "llw": LeeLinWahba,
}
KINDS = list(MACHINES)
BIASES = ["none", "penalised", "free"]


def centred(f):
    return f - f.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("working_set", [None, 6])
def test_it_reaches_the_optimum_of_the_quadratic_program(kind, bias, working_set):
    problem = MACHINES[kind]
    for seed, k, C in ((0, 3, 1.0), (1, 4, 10.0), (2, 5, 0.1)):
        X, y = points(24, k, seed=seed)
        K = gaussian(X)
        box = C * np.random.default_rng(seed).uniform(0.5, 2, 24)
        value, f = reference(kind, K, y, box, bias)
        stated = problem(given(K), y, C, box / C, bias)
        found = decomposition.solve(stated, tol=1e-9, working_set=working_set)
        assert found.converged
        assert found.primal == pytest.approx(value, rel=1e-7)
        assert found.dual == pytest.approx(value, rel=1e-7)
        outside, sums = stated.violation(found.variables)
        assert outside < 1e-12 * C
        assert sums < 1e-10
        np.testing.assert_allclose(
            0.5 * np.vdot(found.coefficients, K @ found.coefficients), 0.5 * _norm(K, centred(f), bias), rtol=1e-3
        )
        assert np.abs(found.coefficients.sum(axis=1)).max() < 1e-12 * C * k


def _norm(K, f, bias):
    """sum_m ||f_m||^2 of outputs that include a bias, which is taken out where it makes the norm smallest."""
    if bias == "penalised":
        K = K + 1.0
    if bias != "free":
        value = np.vdot(f, np.linalg.solve(K, f))
        return value if bias == "none" else value - np.sum(np.linalg.solve(K, f).sum(axis=0) ** 2)
    inverse = np.linalg.inv(K)
    one = np.ones(len(K))
    b = (one @ inverse @ f) / (one @ inverse @ one)
    return np.vdot(f - b, inverse @ (f - b))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("storage", ["dense", "streamed"])
def test_steps_in_single_precision_bracket_the_optimum_of_the_quadratic_program(kind, storage):
    problem = MACHINES[kind]
    for seed, k, C in ((0, 3, 1.0), (1, 4, 50.0)):
        X, y = points(40, k, seed=seed)
        value, _ = reference(kind, gaussian(X), y, np.full(40, C), "none")
        gram = Gram(Gaussian(sigma=1.0), X, storage=storage, precision="float32")
        np.testing.assert_allclose(gram.dense(), gaussian(X), atol=1e-6)
        found = decomposition.solve(problem(gram, y, C), tol=1e-4, working_set=12)
        assert found.converged
        assert found.dual <= value * (1 + 1e-5)
        assert found.primal >= value * (1 - 1e-5)
        assert found.primal - found.dual <= 1e-4 * value * (1 + 1e-5)
        exact = problem(given(gaussian(X)), y, C).certificate(found.variables)
        assert exact.gap == pytest.approx(found.gap, abs=1e-5 * value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", BIASES)
def test_certificate_brackets_the_optimum_at_any_tolerance(kind, bias):
    problem = MACHINES[kind]
    X, y = points(60, 4, seed=3)
    stated = problem(given(gaussian(X)), y, 2.0, bias=bias)
    optimum = decomposition.solve(stated, tol=1e-9).primal
    for tol in (0.5, 0.05, 1e-3):
        found = decomposition.solve(stated, tol=tol, working_set=16)
        assert found.relative_gap <= tol
        assert found.dual - 1e-7 * optimum <= optimum <= found.primal + 1e-7 * optimum
        certificate = stated.certificate(found.variables, bias=found.bias)
        assert certificate.primal == pytest.approx(found.primal)
        assert certificate.gap == pytest.approx(found.gap, abs=1e-9 * optimum)


@pytest.mark.parametrize("kind", KINDS)
def test_the_dual_never_falls_from_step_to_step(kind):
    problem = MACHINES[kind]
    X, y = points(30, 4, seed=4)
    stated = problem(given(gaussian(X)), y, 3.0)
    values = [decomposition.solve(stated, tol=1e-12, max_iter=steps).dual for steps in range(60)]
    assert (np.diff(values) >= -1e-12 * abs(values[-1])).all()
    assert values[-1] > values[0]


@settings(max_examples=30, deadline=None)
@drawn(st.integers(2, 40), st.integers(0, 2**31), st.floats(-3, 3))
def test_both_thresholds_project_on_the_simplex(k, seed, size):
    rng = np.random.default_rng(seed)
    D = rng.normal(size=k) * 10**size
    D[rng.integers(k)] = D[0]
    total = float(10 ** rng.uniform(-2, 2))
    sort, point = threshold_by_sorting(D.copy(), total), threshold_by_fixed_point(D.copy(), total)
    assert np.maximum(D - sort, 0).sum() == pytest.approx(total, rel=1e-8, abs=1e-12 * 10**size)
    assert point == pytest.approx(sort, rel=1e-8, abs=1e-8)


@settings(max_examples=30, deadline=None)
@drawn(st.integers(2, 30), st.integers(0, 2**31), st.booleans())
def test_the_sum_of_a_step_is_the_root_of_its_equation(k, seed, rising):
    rng = np.random.default_rng(seed)
    v, bound, own = rng.normal(size=k) * 3, float(10 ** rng.uniform(-2, 2)), int(rng.integers(k))
    slope = 1.0 / k if rising else -1.0
    S = balanced_sum(v, own, slope, bound, float(rng.uniform(0, bound)))
    others = np.delete(v, own)
    assert np.clip(others + slope * S, 0, bound).sum() == pytest.approx(S, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_on_one_point_is_its_own_quadratic_program(kind):
    rng = np.random.default_rng(0)
    for k in (2, 3, 7):
        problem = MACHINES[kind]
        y = np.arange(k)
        stated = problem(given(np.eye(k)), y, 0.7)
        new, work = np.empty(k), np.empty(k)
        B, A = rng.normal(size=k), 1.7
        B -= B.mean()
        f = B.copy()
        f[0] -= stated.margin if kind == "cs" else 0.0
        start = np.zeros(k)
        start[0] = 0.7 if kind == "cs" else 0.0
        best_variables(stated.code, A, 0.7, 0, stated.margin, f, start, False, work, new)

        def value(a, stated=stated, A=A, B=B, k=k):
            c = stated.coefficients(np.vstack([a, np.zeros((k - 1, k))]))[0]
            return stated.margin * (a.sum() - a[0]) - 0.5 * A * c @ c - B @ c

        best = value(new)
        for _ in range(300):
            other = stated.feasible(np.vstack([new + rng.normal(size=k) * 0.05, np.zeros((k - 1, k))]))[0]
            assert value(other) <= best + 1e-12


def test_fixed_point_sort_and_greed_reach_the_same_machine():
    X, y = points(80, 5, seed=9)
    stated = CrammerSinger(given(gaussian(X)), y, 4.0)
    found = [
        decomposition.solve(stated, tol=1e-9, threshold=threshold, greed=greed)
        for threshold in ("sort", "fixed point")
        for greed in (1.0, 0.5, 0.1)
    ]
    for other in found[1:]:
        assert other.primal == pytest.approx(found[0].primal, rel=1e-8)


def test_vanishing_beta_is_the_hard_margin():
    X, y = points(24, 3, seed=10, noise=0.1)
    K = gaussian(X)
    found = decomposition.solve(CrammerSinger.from_beta(given(K), y, 1e-7), tol=1e-9)
    f = K @ found.coefficients
    others = np.where(np.arange(3) == y[:, None], -np.inf, f).max(axis=1)
    margins = f[np.arange(24), y] - others
    assert margins.min() == pytest.approx(1.0, abs=1e-4)
    # The norm is compared, not the primal value: with C = 1e7 that is the rounding of the margins times 1e7.
    norm = 0.5 * np.sum(found.coefficients * f)
    assert norm == pytest.approx(reference("cs", K, y, 1e6)[0], rel=1e-4)
    looser = decomposition.solve(CrammerSinger.from_beta(given(K), y, 1e-9), tol=1e-9)
    assert 0.5 * np.sum(looser.coefficients * (K @ looser.coefficients)) == pytest.approx(norm, rel=1e-4)


@settings(max_examples=20, deadline=None)
@drawn(st.sampled_from(KINDS), st.integers(2, 6), st.integers(0, 2**31))
def test_sums_can_always_be_made_zero(kind, k, seed):
    rng = np.random.default_rng(seed)
    n = 5 * k
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    stated = MACHINES[kind](given(np.eye(n)), y, 1.5, rng.uniform(0.2, 2, n), "free")
    a = stated.feasible(rng.uniform(0, 3, (n, k)) * (rng.uniform(size=(n, k)) < 0.4))
    even = balanced(stated, a, rng.normal(size=(n, k)))
    outside, sums = stated.violation(even)
    assert outside < 1e-12
    assert sums < 1e-10


@pytest.mark.parametrize("kind", KINDS)
def test_the_machine_does_not_depend_on_how_the_matrix_is_held(kind):
    problem = MACHINES[kind]
    X, y = points(1600, 4, d=3, seed=11, noise=1.0)
    values = []
    for storage, precision in (("dense", "float64"), ("cached", "float32"), ("streamed", "float32")):
        gram = Gram(Gaussian(sigma=1.0), X, storage=storage, precision=precision, memory="64 MiB")
        found = decomposition.solve(problem(gram, y, 1.0, bias="free"), tol=1e-3)
        assert found.converged
        values.append(found.dual)
    assert np.ptp(values) < 1e-3 * values[0]


@pytest.mark.parametrize("kind", KINDS)
def test_with_a_free_bias_the_origin_does_not_matter(kind):
    problem = MACHINES[kind]
    X, y = points(120, 3, d=4, seed=16)
    near, far = (
        decomposition.solve(problem(Gram(Linear(), X + shift), y, 0.5, bias="free"), tol=1e-6) for shift in (0, 100)
    )
    assert far.converged
    assert far.primal == pytest.approx(near.primal, rel=1e-6)
    assert far.iterations < 2 * near.iterations


@pytest.mark.parametrize("kind", KINDS)
def test_warm_start_takes_fewer_steps_to_the_same_value(kind):
    problem = MACHINES[kind]
    X, y = points(300, 4, seed=12, noise=1.0)
    gram = Gram(Gaussian(sigma=1.0), X)
    before = decomposition.solve(problem(gram, y, 1.0), tol=1e-6)
    cold = decomposition.solve(problem(gram, y, 1.1), tol=1e-6)
    warm = decomposition.solve(problem(gram, y, 1.1), tol=1e-6, start=before)
    assert warm.primal == pytest.approx(cold.primal, rel=1e-5)
    assert warm.iterations < cold.iterations


@pytest.mark.parametrize("bias", ["none", "free"])
def test_interruption_and_time_limit_keep_the_best_so_far(bias):
    X, y = points(1500, 5, seed=13, noise=1.5)
    stated = LeeLinWahba(Gram(Gaussian(sigma=0.5), X), y, 50.0, bias=bias)
    optimum = decomposition.solve(stated, tol=1e-2)
    with Monitor(callback=lambda record: record.iteration > 0) as monitor:
        stopped = decomposition.solve(stated, tol=1e-12, monitor=monitor)
    assert stopped.stopped == "interrupted"
    assert stopped.dual <= optimum.primal
    assert stopped.primal >= optimum.dual
    assert stated.violation(stopped.variables)[1] < 1e-9
    with Monitor(time_limit=0.05) as monitor:
        assert decomposition.solve(stated, tol=1e-13, monitor=monitor).stopped == "time"


def test_a_checkpoint_is_taken_up(tmp_path):
    X, y = points(300, 4, seed=14, noise=1.0)
    stated = WestonWatkins(Gram(Gaussian(sigma=1.0), X), y, 1.0)
    path = tmp_path / "fit.npz"
    with Monitor(checkpoint=path, every=0.0, callback=lambda record: record.iteration > 300) as monitor:
        first = decomposition.solve(stated, tol=1e-9, monitor=monitor)
    assert first.stopped == "interrupted"
    with Monitor(checkpoint=path) as monitor:
        rest = decomposition.solve(stated, tol=1e-9, monitor=monitor)
    whole = decomposition.solve(stated, tol=1e-9)
    assert rest.primal == pytest.approx(whole.primal, rel=1e-8)
    assert rest.iterations < whole.iterations


def test_threads_may_solve_side_by_side():
    X, y = points(200, 3, seed=15)
    stated = CrammerSinger(Gram(Gaussian(sigma=1.0), X), y, 1.0)
    alone = decomposition.solve(stated, tol=1e-6)
    results = []
    workers = [threading.Thread(target=lambda: results.append(decomposition.solve(stated, tol=1e-6))) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(np.array_equal(found.variables, alone.variables) for found in results)


def test_a_problem_of_another_kind_is_refused_by_name():
    X, y = points(20, 3)
    wrong = MultinomialLogistic(given(gaussian(X)), y)
    assert not decomposition.accepts(wrong)
    with pytest.raises(InvalidInput, match="MultinomialLogistic is not a large-margin machine"):
        decomposition.solve(wrong)
    stated = CrammerSinger(given(gaussian(X)), y)
    with pytest.raises(InvalidInput, match="tol must be positive"):
        decomposition.solve(stated, tol=0.0)
    with pytest.raises(InvalidInput, match="shape"):
        decomposition.solve(stated, start=np.zeros((3, 3)))


def test_a_point_that_balancing_moves_again_and_again_is_given_up():
    # The labels are independent of the points: at the optimum all variables are at a bound, and the gap that the steps
    # close to one part in 1e9 is opened again when the sums of the coefficients are made exactly zero.
    X = np.random.RandomState(0).uniform(size=(30, 3))
    gram = Gram(Gaussian(sigma=np.sqrt(1.5 * X.var())), X)
    found = decomposition.solve(BredensteinerBennett(gram, np.arange(30) % 3, bias="free"), tol=1e-9)
    assert found.details["rounds"] < 1000
    assert found.relative_gap < 1e-7
