"""The minimum over all free variables of a set, against pair steps taken to the end and against its own conditions."""

import numpy as np
import pytest

from mercer import dense, threads
from mercer.gram import Gram
from mercer.kernels import Precomputed
from mercer.losses import EpsilonInsensitive, Hinge
from mercer.problems.risk import RegularisedRisk
from mercer.solvers.quadratic import decomposition
from mercer.solvers.quadratic.faces import Faces, _BoxedSteps
from mercer.solvers.quadratic.pair_steps import minimise_pairs


def kernel_matrix(n, d=3, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))


def machine(n, C, seed=0):
    """K, labels, and the program of a two-class machine that is far from separable."""
    K, random = kernel_matrix(n, seed=seed), np.random.default_rng(seed + 1)
    y = np.where(random.random(n) < 0.5, 1.0, -1.0)
    lower, upper = np.minimum(0.0, C * y), np.maximum(0.0, C * y)
    one = (1, n)
    program = (-y.reshape(one), np.zeros(one), lower.reshape(one), upper.reshape(one), np.zeros(one, dtype=np.intp))
    return K, program


@pytest.mark.parametrize("C", [1.0, 30.0, 1000.0])
@pytest.mark.parametrize("groups", [0, 1, 2])
def test_a_boxed_step_satisfies_the_conditions_of_its_program(C, groups):
    random = np.random.default_rng(int(C) + groups)
    f = 120
    H = kernel_matrix(f) + 1e-3 * np.eye(f)
    g, low, high = random.normal(size=f), -C * random.random(f), C * random.random(f)
    sums = (np.arange(f)[:, None] % groups == np.arange(groups)).astype(float) if groups else np.zeros((f, 0))
    factor = H.copy()
    assert dense.factorise(factor)
    d = _BoxedSteps(factor, sums, f).step(g, low, high)
    assert d is not None
    assert np.all((low <= d) & (d <= high))
    np.testing.assert_allclose(sums.T @ d, 0.0, atol=1e-10 * C)
    slope = H @ d + g
    inside = (low < d) & (d < high)
    for members in sums.T.astype(bool) if groups else [np.ones(f, dtype=bool)]:
        level = np.median(slope[members & inside]) if groups else 0.0
        free = slope[members & inside] - level
        np.testing.assert_allclose(free, 0.0, atol=1e-7 * max(1.0, C))
        assert np.all(slope[members & (d == high)] <= level + 1e-7 * C)
        assert np.all(slope[members & (d == low)] >= level - 1e-7 * C)


def test_too_many_bounds_move_nothing_and_damp_the_next_face_more():
    K, program = machine(200, 0.01)
    faces, s, F = Faces(10_000), np.zeros((1, 200)), np.zeros(200)
    s += 0.5 * (program[2] + program[3])
    F[:] = K @ s[0]
    before, damping = s.copy(), faces.damping
    assert not faces.minimise(K, F, s, program, 1, 1e-3)
    np.testing.assert_array_equal(s, before)
    assert faces.damping > damping


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_face_lowers_the_objective_keeps_the_sum_and_updates_the_outputs(dtype):
    K, program = machine(400, 1000.0)
    K = K.astype(dtype)
    linear = program[0][0]
    s, F = np.zeros((1, 400)), np.zeros(400)
    diagonal = np.ones(400)
    minimise_pairs(K, (0, 400, 400), diagonal, F, s, program, 1, 1e-3, 4000)
    before = 0.5 * s[0] @ F + linear @ s[0]
    faces = Faces(10_000)
    moved = [faces.minimise(K, F, s, program, 1, 1e-3) for _ in range(4)]
    assert any(moved)
    wide = K.astype(np.float64)
    np.testing.assert_allclose(F, wide @ s[0], atol=1e-6 * np.abs(s).sum())
    assert abs(s.sum()) < 1e-8 * np.abs(s).sum()
    assert np.all((program[2] <= s) & (s <= program[3]))
    assert 0.5 * s[0] @ wide @ s[0] + linear @ s[0] < before


def test_faces_wait_longer_where_they_do_not_help_and_a_new_set_forgets_half_of_it():
    faces = Faces(1000)
    assert faces.useful(1.0)
    assert not faces.useful(0.99)
    assert faces.wait == 2.0
    faces.begin()
    assert faces.wait == 1.0
    assert faces.useful(0.5)
    assert faces.useful(0.1)


@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.1)], ids=["hinge", "tube"])
def test_large_C_reaches_the_same_optimum_with_and_without_faces(loss, monkeypatch):
    random = np.random.default_rng(3)
    X = random.normal(size=(2000, 3))
    y = np.sin(X.sum(axis=1)) + 0.3 * random.normal(size=2000)
    y = y if isinstance(loss, EpsilonInsensitive) else np.where(y > 0.0, 1.0, -1.0)
    problem = RegularisedRisk(Gram(Precomputed(), kernel_matrix(2000, seed=3)), y, loss, C=1000.0)
    with_faces = decomposition.solve(problem, tol=1e-3)
    monkeypatch.setattr(Faces, "due_in", lambda self, s, program: float("inf"))
    without = decomposition.solve(problem, tol=1e-3)
    assert with_faces.converged
    assert without.converged
    assert with_faces.details["faces"] > 0 == without.details["faces"]
    assert without.dual <= with_faces.primal
    assert with_faces.dual <= without.primal
    assert with_faces.iterations < without.iterations


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [300, 700, 1300])
def test_a_factor_made_on_several_threads_is_the_factor(order, n):
    A = np.array(kernel_matrix(n) + 1e-2 * np.eye(n), order=order)
    shared = A.copy(order=order)
    with threads.limit(3):
        assert dense.factorise(shared, run=threads.run)
    L = np.tril(shared)
    np.testing.assert_allclose(L @ L.T, A, atol=1e-12 * n)
    np.testing.assert_array_equal(np.triu(shared, 1), np.triu(A, 1))
    indefinite = A - 2.0 * np.eye(n)
    assert not dense.factorise(indefinite, run=threads.run)
