"""Rows that come in blocks as they are needed: the optimum of the whole matrix, from part of its values."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import threads
from mercer.gram import Gram, RowsOnDemand, streamed
from mercer.kernels import Gaussian, Linear
from mercer.losses import EpsilonInsensitive, Hinge
from mercer.problems import RegularisedRisk
from mercer.solvers.quadratic import decomposition, interior_point
from mercer.solvers.quadratic.growing_rows import minimise_on_growing_rows
from mercer.solvers.quadratic.pairs import Values, solve_pairs
from mercer.solvers.quadratic.rooms import BlockRows, Rooms


def points(n, d, seed=0, density=None):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    y = np.where(X[:, 0] + 0.3 * random.normal(size=n) > 0, 1.0, -1.0)
    if density is not None:
        X = sp.csr_array(X * (random.random((n, d)) < density))
    return X, y


@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.1)], ids=["one variable a point", "two"])
def test_the_end_is_the_optimum_of_all_points(loss):
    X, y = points(300, 60)
    gram = Gram(Gaussian(sigma=6.0), X, storage="streamed")
    problem = RegularisedRisk(gram, y, loss, 2.0)
    program = problem.program()
    shape = (-1, 300)
    parts = [np.asarray(part).reshape(shape) for part in (program.linear, program.ridge, program.lower, program.upper)]
    group = np.zeros(parts[0].shape, np.intp)
    s, F = np.zeros(parts[0].shape), np.zeros(300)
    rows = BlockRows(gram, 300)
    _, violation = minimise_on_growing_rows(
        rows, (0, 300, 300), np.ones(300), F, s, (*parts, group), 1, 1e-9, 10**9
    )
    assert violation <= 1e-9
    np.testing.assert_allclose(F, Gaussian(sigma=6.0)(X) @ s.sum(axis=0), atol=1e-10)
    exact = interior_point.solve(problem)
    assert problem.certificate(s.ravel()).dual == pytest.approx(exact.primal, rel=1e-6)


@pytest.mark.parametrize("density", [None, 0.05])
def test_the_solver_keeps_the_rows_of_expensive_kernels_and_computes_no_others(density):
    X, y = points(3500, 120, density=density)
    gram = Gram(Gaussian(sigma=9.0), X, access="rows")
    assert gram.worth_keeping()
    problem = RegularisedRisk(gram, y, Hinge(), 0.5)
    found = decomposition.solve(problem, tol=1e-4)
    plain = decomposition.solve(problem, tol=1e-4, gap_tol=1e-6, working_set=600)
    assert found.dual == pytest.approx(plain.dual, rel=1e-5)
    support = np.count_nonzero(found.coefficients)
    assert found.details["kernel_values"] <= 3500 * min(3500, 1.6 * support + 128)


def test_many_steps_end_on_the_whole_matrix(monkeypatch):
    X, y = points(1600, 60, seed=3)
    problem = RegularisedRisk(Gram(Gaussian(sigma=8.0), X, access="rows"), y, Hinge(), 100.0)
    whole = decomposition.solve(problem, tol=1e-5)
    monkeypatch.setattr(decomposition, "GROWN", 1)
    again = decomposition.solve(problem, tol=1e-5)
    assert again.stopped == "converged"
    assert again.dual == pytest.approx(whole.dual, rel=1e-8)


def test_cheap_values_and_held_ones_are_not_kept_again():
    X, _ = points(50, 10)
    assert not Gram(Gaussian(sigma=1.0), X, storage="streamed").worth_keeping()
    wide, _ = points(50, 100)
    assert not Gram(Gaussian(sigma=1.0), wide, storage="dense").worth_keeping()
    assert not Gram(Linear(), wide, storage="lowrank").worth_keeping()
    assert Gram(Gaussian(sigma=1.0), wide, storage="streamed").worth_keeping()


def test_pairs_of_classes_find_the_same_machines_from_blocks_and_from_the_matrix():
    X, _ = points(600, 80, seed=5)
    kernel, box = Gaussian(sigma=8.0), np.full(600, 3.0)
    stretches = [(0, 200, 200, 200), (0, 200, 400, 200), (200, 200, 400, 200)]
    gram = Gram(kernel, X, storage="streamed")
    blocks = solve_pairs(Values.growing(BlockRows(gram, 400)), stretches, box, 1e-8)
    stored = solve_pairs(Values.stored(kernel(X)), stretches, box, 1e-8)
    for one, other in zip(blocks, stored):
        assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-8)
        assert one.coefficients == pytest.approx(other.coefficients, abs=1e-5)


def test_a_room_is_used_again_and_finds_the_rows_of_a_problem_that_is_taken_up_again():
    rooms = Rooms(10, np.float32)
    values, place = rooms.of((0, 4, 4), 8)
    place[3], values[0] = 0, 7.0
    again, same = rooms.of((0, 4, 4), 8)
    assert same is place
    assert np.shares_memory(values, again)
    _, other = rooms.of((0, 4, 6), 8)
    assert (other == -1).all()


def test_an_operator_in_another_order_computes_its_values_each_time():
    X, _ = points(30, 5)
    order = np.random.default_rng(1).permutation(30)
    gram = streamed(Gram(Gaussian(sigma=1.0), X, access="rows"), order)
    np.testing.assert_allclose(gram.dense(), Gaussian(sigma=1.0)(X[order]), atol=1e-12)
    assert gram.held_values() is None


def test_more_features_are_left_to_rows_on_demand_where_threads_are_many(monkeypatch):
    monkeypatch.setattr(threads, "count", lambda: 16)
    assert RowsOnDemand.suit(1500, 256)
    monkeypatch.setattr(threads, "count", lambda: 2)
    assert not RowsOnDemand.suit(1500, 256)
