"""Pairs of classes trained from their points: the same machines as decomposition gives, with honest certificates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.gram import Gram, RowsOnDemand
from mercer.kernels import Gaussian, Matern, Polynomial
from mercer.losses import Hinge
from mercer.problems import RegularisedRisk
from mercer.solvers.quadratic import decomposition, interior_point
from mercer.solvers.quadratic.pairs import Values, _at_scale, _best_multiple, best_bias, solve_pairs

KERNELS = [Gaussian(sigma=1.3), Polynomial(degree=2, offset=1.0), Matern(nu=1.5, sigma=2.0)]


def three_classes(n=90, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.sort(rng.integers(0, 3, size=n))
    X = rng.normal(size=(n, 3)) + np.array([[0, 0, 0], [1.5, 0, 0], [0, 1.5, 1.0]])[codes]
    return X, codes


def stretches_of(codes):
    counts = np.bincount(codes)
    starts = np.concatenate([[0], np.cumsum(counts)])
    pairs = [(i, j) for i in range(len(counts)) for j in range(i + 1, len(counts))]
    return pairs, [(int(starts[i]), int(counts[i]), int(starts[j]), int(counts[j])) for i, j in pairs]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_pair_reaches_the_optimum_of_its_own_problem(kernel, dtype):
    X, codes = three_classes()
    shuffled = np.random.default_rng(1).permutation(len(codes))
    X, labels = X[shuffled], codes[shuffled]
    order = np.argsort(labels, kind="stable")
    box = np.random.default_rng(2).uniform(0.5, 3.0, size=len(codes))
    pairs, stretches = stretches_of(codes)
    rows = RowsOnDemand.of(kernel, X, dtype)
    found = solve_pairs(Values.of_points(rows, order, len(order)), stretches, box, 1e-7)
    for (i, j), (a, size, b, other), machine in zip(pairs, stretches, found):
        own = np.r_[order[a : a + size], order[b : b + other]]
        y = np.where(labels[own] == i, 1.0, -1.0)
        weights = np.r_[box[a : a + size], box[b : b + other]]
        problem = RegularisedRisk(Gram(kernel, X[own]), y, Hinge(), 1.0, weights)
        exact = interior_point.solve(problem)
        tolerance = 1e-4 if dtype == np.float32 else 1e-6
        assert machine.certificate.primal == pytest.approx(exact.primal, rel=tolerance)
        assert machine.certificate.primal - machine.certificate.gap == pytest.approx(exact.primal, rel=tolerance)
        certificate = problem.certificate(machine.coefficients)
        assert machine.certificate.primal == pytest.approx(certificate.primal, rel=1e-5)
        assert machine.certificate.bias == pytest.approx(certificate.bias, abs=1e-3)
        assert abs(machine.coefficients.sum()) < 1e-10
        assert set(labels[own]) == {i, j}
        assert machine.violation <= 1e-7


def test_threads_and_order_of_pairs_change_nothing(monkeypatch):
    X, codes = three_classes(2500, seed=3)
    _, stretches = stretches_of(codes)
    rows = RowsOnDemand.of(Gaussian(sigma=1.0), X, np.float32)
    arguments = (Values.of_points(rows, np.arange(len(codes)), len(codes)), stretches, np.ones(len(codes)), 1e-3)
    monkeypatch.setenv("MERCER_NUM_THREADS", "2")
    together = solve_pairs(*arguments)
    monkeypatch.setenv("MERCER_NUM_THREADS", "1")
    for one, other in zip(together, solve_pairs(*arguments)):
        assert np.array_equal(one.coefficients, other.coefficients)


def test_stretches_of_a_stored_matrix_give_the_same_machines():
    X, codes = three_classes(300, seed=7)
    _, stretches = stretches_of(codes)
    kernel, box = Gaussian(sigma=1.0), np.ones(len(codes))
    rows = RowsOnDemand.of(kernel, X, np.float64)
    from_points = solve_pairs(Values.of_points(rows, np.arange(len(codes)), len(codes)), stretches, box, 1e-8)
    from_matrix = solve_pairs(Values.stored(kernel(X)), stretches, box, 1e-8)
    for one, other in zip(from_points, from_matrix):
        assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-8)
        assert one.coefficients == pytest.approx(other.coefficients, abs=1e-5)


def test_step_limit_is_kept():
    X, codes = three_classes()
    _, stretches = stretches_of(codes)
    rows = RowsOnDemand.of(Gaussian(sigma=1.0), X, np.float32)
    values = Values.of_points(rows, np.arange(len(codes)), len(codes))
    found = solve_pairs(values, stretches, np.ones(len(codes)), 1e-9, 7)
    assert [machine.steps for machine in found] == [7, 7, 7]


def test_large_wide_or_sparse_problems_are_left_to_working_sets():
    import scipy.sparse as sp

    def rows(X):
        return RowsOnDemand.of(Gaussian(sigma=1.0), X, np.float32)

    assert rows(np.ones((10, 3))).suit(10, 3)
    assert not rows(np.ones((10, 3))).suit(10_000, 3)
    assert not rows(np.ones((10, 2000))).suit(10, 2000)
    assert rows(sp.random(10, 200, 0.02, format="csr", random_state=0)) is None


def test_rows_on_demand_and_the_stored_matrix_take_the_same_steps():
    X, codes = three_classes(400, seed=5)
    y = np.where(codes == 0, 1.0, -1.0)
    lazy = decomposition.solve(RegularisedRisk(Gram(Gaussian(sigma=1.0), X), y, Hinge(), 1.0), tol=1e-6)
    stored = Gram(Gaussian(sigma=1.0), X, storage="dense")
    whole = decomposition.solve(RegularisedRisk(stored, y, Hinge(), 1.0), tol=1e-6)
    assert lazy.dual == pytest.approx(whole.dual, rel=1e-9)
    assert lazy.details["kernel_values"] <= whole.details["kernel_values"]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(0, 10**6))
def test_best_bias_minimises_the_loss(n, seed):
    rng = np.random.default_rng(seed)
    F, y = np.round(rng.normal(size=n), 1), np.where(rng.random(n) < 0.5, 1.0, -1.0)
    box = rng.integers(1, 4, size=n).astype(float)

    def loss(b):
        return box @ np.maximum(0.0, 1 - y * (F + b))

    b = best_bias(F, y, box, 1.0)
    others = np.concatenate([y - F, rng.normal(size=20)])
    assert loss(b) <= min(loss(other) for other in others) + 1e-12


@pytest.mark.parametrize("C", [1.0, 1e3, 1e5])
@pytest.mark.parametrize("short", [0.5, 0.9, 0.999, 1.0])
def test_the_best_multiple_of_a_pair_is_that_of_its_problem(C, short):
    X, codes = three_classes(200, seed=11)
    y = np.where(codes == 0, 1.0, -1.0)
    problem = RegularisedRisk(Gram(Gaussian(sigma=1.0), X), y, Hinge(), C)
    s = short * decomposition.solve(problem, tol=1e-3).coefficients
    F, box = Gaussian(sigma=1.0)(X) @ s, np.full(200, C)
    primal, gap, bias, slope = _at_scale(F, y, box, s, 1.0)
    found, least = _best_multiple(F, y, box, s, primal, gap, slope)
    expected = problem.certificate(s, F, aim=0.0)
    plain = problem.certificate(s, F)
    assert primal == pytest.approx(plain.primal, rel=1e-9)
    assert gap == pytest.approx(plain.gap, rel=1e-6, abs=1e-9 * primal)
    assert bias == pytest.approx(plain.bias, abs=1e-6)
    assert least <= gap
    assert least == pytest.approx(found - (primal - gap), rel=1e-6, abs=1e-9 * primal)
    # Either search ends when a twentieth of its gap is all that may be left to gain.
    assert least <= 1.06 * expected.gap + 1e-9 * primal
