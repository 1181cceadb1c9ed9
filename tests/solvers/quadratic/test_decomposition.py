"""Decomposition against the interior point and LIBSVM, and whether its answer depends on how it was reached."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems.zoo import KINDS, c_svc, case, eps_svr, gaussian, nu_svc, nu_svr, one_class, squared_hinge
from sklearn.svm import SVC

from mercer.errors import InvalidInput
from mercer.gram import Gram, LowRankGram
from mercer.kernels import Gaussian, Linear, Precomputed
from mercer.losses import EpsilonInsensitive, Hinge
from mercer.problems import OneClass, RegularisedRisk, rescale
from mercer.solvers import Monitor
from mercer.solvers.quadratic import decomposition, interior_point

GROUPED = [kind for kind in KINDS if "semiparametric" not in kind.__name__]
IDS = [kind.__name__ for kind in GROUPED]


def classes(n, d=4, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y


@pytest.mark.parametrize("kind", GROUPED, ids=IDS)
@pytest.mark.parametrize("working_set", [None, 8])
def test_objective_is_that_of_the_interior_point(kind, working_set):
    for seed in range(6):
        problem = case(kind, seed, n=40).problem
        exact = interior_point.solve(problem)
        found = decomposition.solve(problem, tol=1e-6, working_set=working_set)
        assert found.converged
        scale = max(1.0, abs(exact.primal))
        assert found.primal == pytest.approx(exact.primal, abs=1e-5 * scale)
        assert found.dual == pytest.approx(exact.dual, abs=1e-5 * scale)
        box, equality = problem.program().violation(found.variables)
        assert box == 0.0
        assert equality < 1e-10 * max(1.0, float(np.abs(found.variables).sum()))


@pytest.mark.parametrize("kind", GROUPED, ids=IDS)
def test_certificate_brackets_the_optimum_at_any_tolerance(kind):
    problem = case(kind, 3, n=40).problem
    optimum = interior_point.solve(problem).primal
    slack = 1e-7 * max(1.0, abs(optimum))
    for tol in (1.0, 0.1, 1e-2):
        found = decomposition.solve(problem, tol=tol)
        assert found.dual - slack <= optimum <= found.primal + slack
        assert found.gap == pytest.approx(found.primal - found.dual)


def test_support_vectors_and_decision_values_are_those_of_libsvm():
    X, y = classes(1800, seed=1)
    sigma = 1.5
    found = decomposition.solve(RegularisedRisk(Gram(Gaussian(sigma=sigma), X), y, Hinge(), 2.0), tol=1e-3)
    peer = SVC(C=2.0, gamma=0.5 / sigma**2, tol=1e-3).fit(X, y)
    Z, _ = classes(1000, seed=2)
    ours = Gaussian(sigma=sigma)(Z, X) @ found.coefficients + found.bias
    theirs = peer.decision_function(Z)
    assert np.abs(ours - theirs).max() < 5e-3
    clear = np.abs(theirs) > 1e-3
    assert (np.sign(ours) == np.sign(theirs))[clear].all()


def test_solution_does_not_depend_on_the_way_to_it():
    X, y = classes(1700, seed=4)
    kernel = Gaussian(sigma=1.0)
    values = []
    for storage in ("dense", "streamed", "cached"):
        for working_set in (64, 700, None):
            gram = Gram(kernel, X, precision="float32", storage=storage, memory="64 MiB")
            found = decomposition.solve(RegularisedRisk(gram, y, Hinge(), 1.0), tol=1e-4, working_set=working_set)
            assert found.converged
            values.append((found.primal, found.dual))
    values = np.array(values)
    assert np.ptp(values, axis=0).max() < 1e-5 * values.max()


def test_same_seed_and_threads_give_the_same_bits(monkeypatch):
    X, y = classes(1800, seed=5)
    problem = RegularisedRisk(Gram(Gaussian(sigma=1.0), X, precision="float32"), y, Hinge(), 1.0)
    monkeypatch.setenv("MERCER_NUM_THREADS", "2")
    first, second = decomposition.solve(problem), decomposition.solve(problem)
    assert np.array_equal(first.variables, second.variables)
    monkeypatch.setenv("MERCER_NUM_THREADS", "1")
    alone = decomposition.solve(problem)
    assert alone.primal == pytest.approx(first.primal, rel=1e-4)
    assert alone.dual == pytest.approx(first.dual, rel=1e-5)


def test_the_seed_draws_the_working_sets():
    X, y = classes(1800, seed=5)
    ways = [
        decomposition.solve(
            RegularisedRisk(Gram(Gaussian(1.0), X), y, Hinge(), 1.0), tol=1e-3, seed=seed, working_set=300
        )
        for seed in (0, 1)
    ]
    assert not np.array_equal(ways[0].variables, ways[1].variables)
    assert ways[0].primal == pytest.approx(ways[1].primal, rel=1e-3)


def test_it_needs_few_more_kernel_values_than_one_column_for_each_support_vector():
    X, y = classes(3000, seed=6, noise=1.5)
    found = decomposition.solve(RegularisedRisk(Gram(Gaussian(sigma=2.0), X, precision="float32"), y, Hinge(), 1.0))
    support = np.count_nonzero(found.coefficients)
    assert found.details["kernel_values"] < 4 * support * 3000


def test_warm_start_reaches_the_same_value_in_fewer_steps():
    X, y = classes(1600, seed=7)
    gram = Gram(Gaussian(sigma=1.5), X, precision="float32")
    large, small = (RegularisedRisk(gram, y, Hinge(), C) for C in (10.0, 8.0))
    before = decomposition.solve(large)
    cold = decomposition.solve(small)
    warm = decomposition.solve(small, start=rescale(before.variables, large, small))
    assert warm.dual == pytest.approx(cold.dual, rel=1e-5)
    assert warm.iterations < cold.iterations


def test_restart_inequalities_hold_along_a_path_of_C():
    X, y = classes(200, seed=8)
    gram = Gram(Gaussian(sigma=1.0), X)
    path = [decomposition.solve(RegularisedRisk(gram, y, Hinge(), C), tol=1e-8).primal for C in (0.5, 1.0, 3.0)]
    for (C, value), (C2, value2) in zip(zip((0.5, 1.0), path), zip((1.0, 3.0), path[1:])):
        assert C / C2 * value2 <= value * (1 + 1e-9)
        assert value <= value2 * (1 + 1e-9)


def test_gap_tolerance_is_met_when_asked_for():
    X, y = classes(1500, seed=9)
    problem = RegularisedRisk(Gram(Gaussian(sigma=1.0), X), y, Hinge(), 1.0)
    found = decomposition.solve(problem, tol=1e-9, gap_tol=1e-6, working_set=256)
    assert found.converged
    assert found.relative_gap <= 1e-6


def test_f0_is_the_product_of_kernel_and_coefficients():
    X, y = classes(1600, seed=10)
    gram = Gram(Gaussian(sigma=1.0), X)
    for bias in ("free", "penalised"):
        found = decomposition.solve(RegularisedRisk(gram, y, Hinge(), 1.0, bias=bias), working_set=300)
        assert np.abs(found.details["f0"] - gram.dot(found.coefficients)).max() < 1e-10


def test_iteration_limit_and_time_limit_return_the_best_so_far():
    X, y = classes(1600, seed=11)
    problem = RegularisedRisk(Gram(Gaussian(sigma=0.3), X), y, Hinge(), 100.0)
    short = decomposition.solve(problem, max_iter=25)
    assert short.stopped == "iterations"
    assert short.iterations == 25
    assert np.isfinite(short.gap)
    with Monitor(time_limit=0.0) as monitor:
        assert decomposition.solve(problem, working_set=50, monitor=monitor).stopped == "time"


def test_checkpoint_is_taken_up(tmp_path):
    X, y = classes(1600, seed=12)
    problem = RegularisedRisk(Gram(Gaussian(sigma=1.0), X), y, Hinge(), 1.0)
    half = decomposition.solve(problem, max_iter=400)
    half.save(tmp_path / "half.npz")
    with Monitor(checkpoint=tmp_path / "half.npz") as monitor:
        resumed = decomposition.solve(problem, monitor=monitor)
    whole = decomposition.solve(problem)
    assert resumed.dual == pytest.approx(whole.dual, rel=1e-5)
    assert resumed.iterations < whole.iterations


@pytest.mark.parametrize("seed", [0, 1])
def test_an_interrupted_run_on_float32_values_counts_their_errors(seed):
    """At C = 1e5 the sums are far off; no pass in float64 follows an interruption, so that the gap must hold it all."""
    X, y = classes(1600, seed=seed)
    kernel = Gaussian(sigma=2.0)
    problem = RegularisedRisk(Gram(kernel, X, precision="float32"), y, Hinge(), 1e5)
    with Monitor(callback=lambda record: record.iteration >= 60_000) as monitor:
        found = decomposition.solve(problem, monitor=monitor)
    assert found.stopped == "interrupted"
    c = found.coefficients
    f = kernel(X) @ c
    dual = float(y @ c) - 0.5 * float(c @ f)
    assert found.dual <= dual


# Degenerate input ------------------------------------------------------------------------------------------------


def test_duplicates_with_opposite_labels_are_all_bounded():
    X = np.zeros((6, 1))
    y = np.array([1.0, -1.0] * 3)
    found = decomposition.solve(RegularisedRisk(Gram(Gaussian(), X), y, Hinge(), 1.0))
    assert found.primal == pytest.approx(6.0)
    assert found.gap == pytest.approx(0.0, abs=1e-9)


def test_one_class_only_has_the_zero_expansion():
    X, _ = classes(20)
    found = decomposition.solve(RegularisedRisk(Gram(Gaussian(), X), np.ones(20), Hinge(), 1.0))
    assert not found.coefficients.any()
    assert found.primal == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("C", [1e-6, 1e6])
def test_tiny_and_huge_C_agree_with_the_interior_point(C):
    X, y = classes(40, seed=3)
    problem = RegularisedRisk(Gram(Gaussian(sigma=1.0), X), y, Hinge(), C)
    exact = interior_point.solve(problem)
    assert decomposition.solve(problem, tol=1e-7).dual == pytest.approx(exact.dual, rel=1e-5)


def test_singular_linear_kernel():
    X, y = classes(60, d=2)
    problem = RegularisedRisk(Gram(Linear(), X), y, Hinge(), 1.0)
    assert decomposition.solve(problem, tol=1e-6).dual == pytest.approx(interior_point.solve(problem).dual, rel=1e-5)


def test_two_points_have_the_closed_form():
    X = np.array([[0.0], [1.0]])
    found = decomposition.solve(RegularisedRisk(Gram(Linear(), X), [-1.0, 1.0], Hinge(), 10.0), tol=1e-9)
    assert found.coefficients @ X[:, 0] == pytest.approx(2.0)
    assert found.bias == pytest.approx(-1.0)


def test_one_point():
    found = decomposition.solve(OneClass(Gram(Gaussian(), np.zeros((1, 2))), 0.5))
    assert found.coefficients == pytest.approx([0.5])


def test_all_targets_inside_the_tube_need_no_support_vector():
    X, _ = classes(30)
    found = decomposition.solve(RegularisedRisk(Gram(Gaussian(), X), np.full(30, 2.0), EpsilonInsensitive(0.5), 1.0))
    assert not found.coefficients.any()
    assert found.primal == pytest.approx(0.0, abs=1e-12)


def test_zero_epsilon_agrees_with_the_interior_point():
    X, _ = classes(40)
    t = np.sin(X[:, 0])
    problem = RegularisedRisk(Gram(Gaussian(), X), t, EpsilonInsensitive(0.0), 3.0)
    assert decomposition.solve(problem, tol=1e-6).dual == pytest.approx(interior_point.solve(problem).dual, rel=1e-5)


def test_tolerance_below_rounding_ends():
    X, y = classes(300, seed=2)
    problem = RegularisedRisk(Gram(Gaussian(sigma=1.0), X, precision="float32"), y, Hinge(), 1e4)
    for working_set in (None, 60):
        found = decomposition.solve(problem, tol=1e-300, working_set=working_set)
        assert found.stopped in ("stalled", "converged")
        assert found.relative_gap < 1e-4


def test_general_equality_rows_and_foolish_tolerances_are_refused():
    semiparametric = next(kind for kind in KINDS if kind.__name__ == "semiparametric_svc")
    problem = case(semiparametric, 0).problem
    assert not decomposition.accepts(problem)
    with pytest.raises(InvalidInput, match="interior point"):
        decomposition.solve(problem)
    with pytest.raises(InvalidInput, match="tol"):
        decomposition.solve(case(c_svc, 0).problem, tol=0.0)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 25),
    kind=st.sampled_from([c_svc, squared_hinge, eps_svr, nu_svc, nu_svr, one_class]),
    working_set=st.sampled_from([None, 2, 5]),
)
def test_any_small_problem_is_solved(seed, n, kind, working_set):
    problem = case(kind, seed, n=max(n, 4)).problem
    found = decomposition.solve(problem, tol=1e-5, working_set=working_set)
    assert found.converged
    exact = interior_point.solve(problem)
    assert found.dual == pytest.approx(exact.dual, abs=1e-4 * max(1.0, abs(exact.dual)))


def test_duplicated_points_share_their_weight():
    X, y = classes(30, seed=13)
    K = gaussian(np.repeat(X, 2, axis=0))
    twice = decomposition.solve(RegularisedRisk(Gram(Precomputed(), K), np.repeat(y, 2), Hinge(), 1.0), tol=1e-9)
    weighted = RegularisedRisk(Gram(Precomputed(), gaussian(X)), y, Hinge(), 1.0, np.full(30, 2.0))
    assert twice.dual == pytest.approx(decomposition.solve(weighted, tol=1e-9).dual, rel=1e-8)


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("unit", [1e-9, 1e-5, 1e4])
def test_the_unit_of_the_kernel_changes_nothing(bias, unit):
    # K -> u^2 K, C -> C / u^2 has the same decision values.
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 3))
    y = np.sign(X[:, 0] + 0.3 * rng.normal(size=120))
    plain = RegularisedRisk(Gram(Linear(), X), y, Hinge(), 1.0, bias=bias)
    other = RegularisedRisk(Gram(Linear(), unit * X), y, Hinge(), 1.0 / unit**2, bias=bias)
    expected, found = (decomposition.solve(problem, tol=1e-6, max_iter=10**6) for problem in (plain, other))
    assert found.converged
    assert found.iterations <= 3 * expected.iterations
    assert found.primal * unit**2 == pytest.approx(expected.primal, rel=1e-5)
    np.testing.assert_allclose(found.details["f0"], expected.details["f0"], atol=1e-4)


def test_a_matrix_given_in_single_precision_ends_where_it_can_be_improved_no_further():
    X, y = classes(300, seed=2)
    K = Gaussian(sigma=1.0)(X).astype(np.float32)
    factor = np.linalg.cholesky(K.astype(np.float64) + 1e-3 * np.eye(300)).astype(np.float32)
    for gram in (Gram(Precomputed(), K), LowRankGram.from_factors(factor)):
        found = decomposition.solve(RegularisedRisk(gram, y, Hinge(), 1e4), tol=1e-300, working_set=60)
        assert found.stopped == "stalled"
        assert found.relative_gap < 1e-4


def test_values_computed_again_in_float64_keep_the_constant_of_a_penalised_bias():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 4))
    y = np.sign(X[:, 0] + 0.3 * rng.normal(size=400))
    kernel = Gaussian(sigma=0.7)
    problem = RegularisedRisk(Gram(kernel, X, precision="float32"), y, Hinge(), 3e3, None, "penalised")
    found = decomposition.solve(problem, tol=1e-3)
    assert found.details["float64_passes"] > 0
    K = kernel(X)
    np.testing.assert_allclose(found.details["f0"], K @ found.coefficients, atol=1e-3)
    exact = RegularisedRisk(Gram(kernel, X, precision="float64"), y, Hinge(), 3e3, None, "penalised")
    bounds = exact.certificate(found.variables, aim=0.0)
    assert found.dual <= bounds.primal
    assert bounds.dual <= found.primal
    assert bounds.gap <= found.gap


def test_a_matrix_that_is_held_is_read_where_it_lies(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(300, 3)), np.tile([1.0, -1.0], 150)
    gram = Gram(Gaussian(1.0), X, storage="dense")
    problem = RegularisedRisk(gram, y, Hinge(), 1.0)
    before, copied, block = gram.dense(), [], type(gram).block

    def counted(self, rows, columns, out=None):
        found = block(self, rows, columns, out)
        copied.append(found.size)
        return found

    monkeypatch.setattr(type(gram), "block", counted)
    solution = decomposition.solve(problem, tol=1e-6)
    assert solution.stopped == "converged"
    assert max(copied, default=0) < 300 * 300
    np.testing.assert_array_equal(gram.held_values(), before)
    exact = interior_point.solve(problem, tol=1e-10)
    assert solution.primal == pytest.approx(exact.primal, rel=1e-6)


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3])
def test_where_all_points_are_free_violators_of_one_side_have_others_to_move_with(share):
    # With K = I the signed variables are y - mean(y); sets of violators of one side alone took 340 to 1,100 rounds.
    n = 3000
    X, y = 10.0 * np.random.default_rng(0).normal(size=(n, 6)), np.where(np.arange(n) < share * n, 1.0, -1.0)
    gram = Gram(Gaussian(sigma=0.3), X, storage="streamed")
    found = decomposition.solve(RegularisedRisk(gram, y, Hinge(), 10.0), working_set=512)
    s = y - y.mean()
    assert found.converged
    assert found.dual == pytest.approx(y @ s - 0.5 * s @ s, rel=1e-5)
    assert found.details["rounds"] < 200


def test_values_coarser_than_rounding_explains_are_computed_in_float64_at_once():
    # Squared distances of points with |x|^2 = 4e6 are off by 0.2 in float32, a fifth of what matters for sigma = 0.7.
    rng = np.random.default_rng(0)
    n = 2400
    centres = rng.normal(size=(n // 4, 40)) * 300.0
    X = np.repeat(centres, 4, axis=0) + 0.05 * rng.normal(size=(n, 40))
    y = np.where(rng.random(n) < 0.3, 1.0, -1.0)
    problems = [
        RegularisedRisk(Gram(Gaussian(sigma=0.7), X, precision=precision), y, Hinge(), 1.0)
        for precision in ("float32", "float64")
    ]
    single, double = (decomposition.solve(problem) for problem in problems)
    assert single.converged
    assert single.details["float64_passes"] == 1
    assert single.dual <= double.primal
    assert double.dual <= single.primal
    assert single.gap <= 1e-2 * single.primal
