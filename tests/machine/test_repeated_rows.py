"""Repeated rows and weights are the same computation, and coefficients go back to the rows as they were given."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import mercer
from mercer import models
from mercer.kernels import Gaussian
from mercer.machine import repeated_rows
from mercer.machine.repeated_rows import distinct

pytestmark = pytest.mark.filterwarnings("ignore::mercer.errors.MercerWarning")

RANDOM = np.random.default_rng(0)
POINTS = RANDOM.normal(size=(24, 3))
LABELS = np.arange(24) % 3
TARGETS = np.sin(POINTS[:, 0]) + 0.1 * RANDOM.normal(size=24)
NEW = RANDOM.normal(size=(50, 3))

CLASSIFIERS = [
    mercer.SVC(),
    mercer.SVC(multiclass="ovr"),
    mercer.SVC(loss="squared_hinge", bias="penalised"),
    mercer.SVC(probability=True, random_state=0),
    mercer.NuSVC(nu=0.2),
    mercer.CrammerSingerSVC(),
    mercer.KernelLogistic(),
    mercer.KernelPerceptron(),
    mercer.LSSVC(),
    mercer.OrdinalSVC(),
]
REGRESSORS = [mercer.SVR(), mercer.SVR(loss="huber"), mercer.NuSVR(), mercer.LSSVR(), mercer.OneClassSVM()]


def outputs(machine) -> np.ndarray:
    return getattr(machine, "decision_function", machine.predict)(NEW)


def weights_that_differ() -> st.SearchStrategy:
    """How often each point is there: every class remains, and not all are there equally often."""
    times = st.lists(st.integers(0, 3), min_size=24, max_size=24).map(np.array)
    return times.filter(lambda w: len(set(w[w > 0])) > 1 and all((w[c == LABELS] > 0).sum() > 1 for c in range(3)))


def the_same(machine, y, times, seed, kind=np.asarray) -> None:
    order = np.random.default_rng(seed).permutation(24)
    copies = np.random.default_rng(seed + 1).permutation(np.repeat(np.arange(24), times))
    weighted = machine.fit(kind(POINTS[order]), y[order], sample_weight=times[order])
    found, gap, steps = outputs(weighted), weighted.gap_, weighted.n_iter_
    repeated = machine.fit(kind(POINTS[copies]), y[copies])
    np.testing.assert_array_equal(outputs(repeated), found)
    np.testing.assert_array_equal(repeated.gap_, gap)
    np.testing.assert_array_equal(repeated.n_iter_, steps)


@pytest.mark.parametrize("machine", CLASSIFIERS, ids=repr)
@given(times=weights_that_differ(), seed=st.integers(0, 1000))
@settings(max_examples=5)
def test_weights_copies_and_permutations_are_one_computation_for_classes(machine, times, seed) -> None:
    the_same(machine, LABELS, times, seed)


@pytest.mark.parametrize("machine", REGRESSORS, ids=repr)
@given(times=weights_that_differ(), seed=st.integers(0, 1000))
@settings(max_examples=5)
def test_weights_copies_and_permutations_are_one_computation_for_targets(machine, times, seed) -> None:
    the_same(machine, TARGETS, times, seed)


@pytest.mark.parametrize("machine", [mercer.SVC(), mercer.SVR(), mercer.LSSVC()], ids=repr)
def test_sparse_rows_are_merged_like_dense_ones(machine) -> None:
    times = np.arange(24) % 4 + 1
    y = TARGETS if isinstance(machine, mercer.SVR) else LABELS
    the_same(machine, y, times, 3, sp.csr_array)
    sparse = outputs(machine.fit(sp.csr_array(POINTS), y, sample_weight=times))
    np.testing.assert_allclose(outputs(machine.fit(POINTS, y, sample_weight=times)), sparse, rtol=1e-12)


def test_equal_weights_leave_points_in_their_order() -> None:
    """Without repetition, weights of one change nothing, to the last bit."""
    assert distinct(POINTS, LABELS, None) is None
    assert distinct(POINTS, LABELS, np.ones(24)) is None
    twice = distinct(np.vstack([POINTS, POINTS]), np.tile(LABELS, 2), None)
    np.testing.assert_array_equal(twice.first, np.arange(24))
    np.testing.assert_array_equal(twice.weights, np.full(24, 2.0))
    halves = distinct(np.vstack([POINTS, POINTS]), np.tile(LABELS, 2), np.full(48, 0.5))
    assert halves.weights is None


# The optimum of the problem on all rows ------------------------------------------------------------------------------


def test_coefficients_handed_back_solve_the_problem_on_all_rows() -> None:
    """Against the conditions of optimality on all rows, with the dense matrix, and nothing merged."""
    rows = RANDOM.integers(0, 24, 80)
    X, y = POINTS[rows], np.where(LABELS[rows] == 0, 1.0, -1.0)
    v = RANDOM.uniform(0.5, 2.0, 80)
    machine = mercer.SVC(kernel=Gaussian(1.5), C=3.0, tol=1e-9).fit(X, y, sample_weight=v)
    assert np.all(np.diff(machine.support_[: machine.n_support_[0]]) > 0)
    np.testing.assert_array_equal(machine.support_vectors_, X[machine.support_])
    np.testing.assert_array_equal(machine.n_support_, [np.sum(y[machine.support_] == c) for c in (-1.0, 1.0)])
    c = np.zeros(80)
    c[machine.support_] = machine.dual_coef_[0]
    alpha = c * y
    assert np.all(alpha >= 0.0)
    assert np.all(alpha <= 3.0 * v * (1.0 + 1e-12))
    assert abs(c.sum()) < 1e-9
    K = Gaussian(1.5)(X, X)
    margins = 1.0 - y * (K @ c + machine.intercept_[0])
    primal = 0.5 * c @ K @ c + 3.0 * v @ np.maximum(margins, 0.0)
    dual = alpha.sum() - 0.5 * c @ K @ c
    assert primal - dual <= 1e-7 * primal
    assert machine.objective_ == pytest.approx(primal, rel=1e-7)
    for point in np.unique(rows):
        own = rows == point
        assert np.ptp(c[own] / v[own]) <= 1e-12  # copies share in proportion to their weights


@pytest.mark.parametrize("machine", [mercer.SVR(tol=1e-9), mercer.NuSVR(tol=1e-9), mercer.OneClassSVM(tol=1e-9)])
def test_the_objective_is_that_of_rows_that_are_not_merged(machine) -> None:
    """A given matrix is trained on as it is: the same problem without any merging."""
    rows = RANDOM.integers(0, 24, 60)
    X, y, kernel = POINTS[rows], TARGETS[rows], Gaussian(1.5)
    merged = machine.set_params(kernel=kernel).fit(X, y)
    assert merged.solution_.coefficients.shape == (len(np.unique(rows)),)
    found, values = merged.objective_, kernel(NEW, X[merged.support_]) @ merged.dual_coef_[0]
    plain = machine.set_params(kernel="precomputed").fit(kernel(X, X), y)
    assert plain.solution_.coefficients.shape == (60,)
    assert found == pytest.approx(plain.objective_, rel=1e-7)
    others = kernel(NEW, X[plain.support_]) @ plain.dual_coef_[0]
    np.testing.assert_allclose(values, others, atol=1e-5)


def test_leave_one_out_leaves_out_one_row_and_not_its_copies() -> None:
    rows = RANDOM.integers(0, 12, 30)
    X, y = POINTS[rows], TARGETS[rows]
    machine = mercer.LSSVR(kernel=Gaussian(1.5), C=5.0).fit(X, y)
    assert machine.dual_coef_.shape == (30,)
    for i in (0, 7, 29):
        others = np.delete(np.arange(30), i)
        without = mercer.LSSVR(kernel=Gaussian(1.5), C=5.0).fit(X[others], y[others])
        assert machine.loo_predictions_[i] == pytest.approx(without.predict(X[i : i + 1])[0], rel=1e-9)


def test_labels_of_one_point_stay_apart() -> None:
    X = np.repeat(POINTS[:6], 2, axis=0)
    assert distinct(X, np.arange(12), None) is None
    rows = distinct(X, np.repeat(np.arange(6), 2), None)
    assert len(rows.first) == 6
    machine = mercer.SVC().fit(X, np.tile([0, 1], 6))
    assert len(machine.support_) == 12


# Which rows are the same ---------------------------------------------------------------------------------------------


def brute_force(rows, labels) -> list[list[int]]:
    groups: dict = {}
    for i, (row, label) in enumerate(zip(rows, labels)):
        groups.setdefault((tuple(row + 0.0), label), []).append(i)
    return sorted(groups.values())


small = st.sampled_from([0.0, -0.0, 1.0, 1.5, -2.0])


@given(st.lists(st.tuples(small, small, st.integers(0, 1), st.integers(0, 3)), min_size=1, max_size=30))
def test_groups_are_those_of_brute_force_in_every_form(rows) -> None:
    table = np.array(rows)
    X, labels, weights = table[:, :2], table[:, 2], table[:, 3]
    if not weights.any():
        weights = weights + 1.0
    kept = np.flatnonzero(weights)
    expected = [sorted(kept[group].tolist()) for group in brute_force(X[kept], labels[kept])]
    explicit = sp.csr_array((X.ravel(), np.tile([0, 1], len(X)), 2 * np.arange(len(X) + 1)), shape=X.shape)
    turned = sp.csr_array((X[:, ::-1].ravel(), np.tile([1, 0], len(X)), 2 * np.arange(len(X) + 1)), shape=X.shape)
    doubled = sp.csr_array(
        (np.repeat(X.ravel() / 2, 2), np.tile([0, 0, 1, 1], len(X)), 4 * np.arange(len(X) + 1)), shape=X.shape
    )
    orders = []
    for form in (X, sp.csr_array(X), explicit, turned, doubled, [tuple(row) for row in X]):
        found = distinct(form, labels, weights, ordered=True)
        groups = [found.rows[a:b] for a, b in zip(found.starts, found.starts[1:])]
        assert sorted(sorted(group.tolist()) for group in groups) == sorted(expected)
        sums = np.ones(len(groups)) if found.weights is None else found.weights
        np.testing.assert_allclose(sums, [weights[group].sum() for group in groups])
        np.testing.assert_array_equal(found.point(len(X))[kept] >= 0, True)
        orders.append([tuple(X[i] + 0.0) for i in found.first])
    assert all(order == orders[0] for order in orders[:-1])  # things have an order of their own


def test_keys_that_collide_do_not_merge_rows(monkeypatch) -> None:
    monkeypatch.setattr(repeated_rows, "_dense_keys", lambda bits: (np.zeros(len(bits), dtype=np.uint64), True))
    rows = RANDOM.integers(0, 5, 20)
    found = distinct(POINTS[rows], LABELS[rows], None)
    groups = [set(found.rows[a:b].tolist()) for a, b in zip(found.starts, found.starts[1:])]
    expected = [set(np.flatnonzero(rows == i).tolist()) for i in range(5)]
    assert sorted(map(sorted, groups)) == sorted(sorted(group) for group in expected if group)


def test_things_are_the_same_where_they_are_equal() -> None:
    words = ["kernel", "machine", "kernel", "space", "machine", "kernel"]
    found = distinct(words, np.array([0, 1, 0, 1, 1, 1]), None)
    assert [words[i] for i in found.first] == ["kernel", "kernel", "machine", "space"]
    assert found.weights.tolist() == [2.0, 1.0, 2.0, 1.0]
    unhashable = [[1.0], [1.0]]
    assert distinct(unhashable, np.zeros(2), None) is None


def test_a_given_matrix_is_left_as_it_is() -> None:
    K = np.ones((3, 3))
    assert distinct(K, np.zeros(3), None, given=True) is None
    left = distinct(K, np.zeros(3), np.array([2.0, 0.0, 1.0]), given=True)
    assert left.first.tolist() == [0, 2]
    assert left.weights.tolist() == [2.0, 1.0]


# What is made of it --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", [mercer.SVC(), mercer.SVR(), mercer.LSSVC()], ids=repr)
def test_predictions_survive_a_model_file_to_the_bit(machine, tmp_path) -> None:
    y = TARGETS if isinstance(machine, mercer.SVR) else LABELS
    rows = np.repeat(np.arange(24), np.arange(24) % 3 + 1)
    machine.fit(POINTS[rows], y[rows])
    models.save(machine, tmp_path / "model.mercer")
    read = models.load(tmp_path / "model.mercer")
    read = getattr(read, "machine", read)
    np.testing.assert_array_equal(outputs(read), outputs(machine))
    np.testing.assert_array_equal(read.dual_coef_, machine.dual_coef_)


def test_a_row_of_weight_zero_carries_no_coefficient() -> None:
    weights = (np.arange(24) % 4).astype(float)
    machine = mercer.LSSVR().fit(POINTS, TARGETS, sample_weight=weights)
    assert machine.dual_coef_.shape == (24,)
    assert np.all(machine.dual_coef_[weights == 0.0] == 0.0)
    assert np.all(weights[mercer.SVR().fit(POINTS, TARGETS, sample_weight=weights).support_] > 0.0)


def test_queries_keep_equal_documents_apart() -> None:
    X = np.repeat(POINTS[:8], 2, axis=0)
    ranks, queries = np.arange(16) % 3, np.arange(16) // 8
    apart = mercer.RankSVM(tol=1e-8).fit(X, ranks, groups=queries)
    together = mercer.RankSVM(tol=1e-8).fit(np.vstack([X, X]), np.tile(ranks, 2), groups=np.tile(queries, 2))
    weighted = mercer.RankSVM(tol=1e-8).fit(X, ranks, sample_weight=np.full(16, 2.0), groups=queries)
    np.testing.assert_array_equal(together.predict(NEW), weighted.predict(NEW))
    assert len(apart.solution_.coefficients) == 16


@pytest.mark.parametrize("machine", [mercer.SVC, mercer.CrammerSingerSVC, mercer.SVR], ids=lambda kind: kind.__name__)
def test_warm_starts_are_dropped_where_the_order_of_points_changes(machine) -> None:
    y = TARGETS if machine is mercer.SVR else LABELS
    times = np.arange(24) % 3 + 1
    warm = machine(warm_start=True).fit(POINTS, y).fit(POINTS, y, sample_weight=times)
    np.testing.assert_array_equal(outputs(warm), outputs(machine(warm_start=True).fit(POINTS, y, sample_weight=times)))
    again = warm.fit(POINTS, y, sample_weight=times)
    assert np.sum(again.n_iter_) <= np.sum(machine().fit(POINTS, y, sample_weight=times).n_iter_)
