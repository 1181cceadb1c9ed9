"""Dense linear algebra against that of NumPy, and other threads while it runs."""

import threading
import time
from typing import Any

import numpy as np
import pytest

from mercer import dense, threads
from mercer.errors import InvalidInput, NotPositiveDefinite


def positive(n: int, dtype: type, seed: int = 0) -> np.ndarray:
    """A random positive definite matrix."""
    F = np.random.default_rng(seed).standard_normal((n, n))
    return (F @ F.T + n * np.eye(n)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [1, 5, 255, 256, 600])
def test_factors_solutions_and_inverses_are_those_of_dense_algebra(n: int, order: Any, dtype: type) -> None:
    A, close = np.array(positive(n, dtype), order=order), 1e-4 if dtype is np.float32 else 1e-11
    L = A.copy(order="K")
    assert dense.factorise(L)
    np.testing.assert_allclose(np.tril(L) @ np.tril(L).T, A, rtol=close, atol=close * n)
    B = np.random.default_rng(1).standard_normal((3, n)).astype(dtype)
    X = B.copy()
    dense.solve_rows(L, X)
    np.testing.assert_allclose(X @ A, B, rtol=close, atol=close * 10)
    dense.solve_triangular_rows(L, B)
    np.testing.assert_allclose(np.sum(B * B, axis=1), np.sum(X * (X @ A), axis=1), rtol=close)  # |L^-1 b|^2 = b'A^-1 b
    below = L.copy(order="K")
    dense.invert_lower(below)
    np.testing.assert_allclose(np.tril(below) @ np.tril(L), np.eye(n), atol=close * 10)
    inverse = A.copy(order="K")
    assert dense.invert(inverse)
    np.testing.assert_array_equal(inverse, inverse.T)
    np.testing.assert_allclose(inverse @ A, np.eye(n), atol=close * 10)


def test_a_matrix_that_is_not_positive_definite_is_refused() -> None:
    A = np.diag([1.0, -1.0, 2.0])
    assert not dense.factorise(A.copy())
    assert not dense.invert(A.copy())


@pytest.mark.parametrize("A", [np.eye(3, dtype=np.int64), np.eye(6)[::2, ::2]])
def test_other_types_and_parts_of_matrices_are_refused(A: np.ndarray) -> None:
    with pytest.raises(InvalidInput, match="contiguous"):
        dense.factorise(A)


def test_right_hand_sides_are_rows() -> None:
    with pytest.raises(InvalidInput, match="length 3"):
        dense.solve_rows(np.eye(3), np.ones((3, 2)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(30,), (30, 1), (30, 4)])
def test_solutions_of_columns_are_new_arrays(shape: tuple[int, ...], order: Any, dtype: type) -> None:
    A, close = np.array(positive(30, dtype), order=order), 1e-3 if dtype is np.float32 else 1e-11
    R = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    given = R.copy()
    L = A.copy(order="K")
    assert dense.factorise(L)
    np.testing.assert_allclose(A @ dense.solve(L, R), R, atol=close)
    np.testing.assert_allclose(A @ dense.solve_positive(A, R), R, atol=close)
    np.testing.assert_allclose(np.tril(L) @ dense.solve_triangular(L, R), R, atol=close)
    np.testing.assert_allclose(np.tril(L).T @ dense.solve_triangular(L, R, transposed=True), R, atol=close)
    np.testing.assert_allclose(dense.inverse_diagonal(L), np.diag(np.linalg.inv(A)), rtol=10 * close)
    np.testing.assert_array_equal(R, given)
    with pytest.raises(InvalidInput, match="length 30"):
        dense.solve(L, R[1:])


def test_the_condition_of_a_factored_matrix_is_estimated() -> None:
    A = np.asfortranarray(np.diag(np.geomspace(1.0, 1e6, 20)))
    assert dense.condition(dense.cholesky(A), 1e6) == pytest.approx(1e6)


def test_a_banded_factor_solves_as_the_whole_matrix_does() -> None:
    n, width = 40, 3
    A = np.where(np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= width, positive(n, np.float64), 0.0)
    A += 100 * np.eye(n)
    band = np.zeros((width + 1, n), order="F")
    for offset in range(width + 1):
        band[offset, : n - offset] = np.diagonal(A, -offset)
    R = np.random.default_rng(2).standard_normal((n, 2))
    assert dense.factorise_band(band)
    np.testing.assert_allclose(A @ dense.solve_band(band, R), R, atol=1e-11)
    assert not dense.factorise_band(-np.ones((1, 3), order="F"))


def test_a_refused_factor_says_why() -> None:
    with pytest.raises(NotPositiveDefinite, match="to working precision"):
        dense.cholesky(np.diag([1.0, -1.0]))
    with pytest.raises(NotPositiveDefinite, match="lower C"):
        dense.cholesky(np.diag([1.0, -1.0]), "lower C")


def test_eigenvectors_and_pseudo_inverse_of_a_singular_matrix() -> None:
    F = np.random.default_rng(3).standard_normal((30, 4))
    A = F @ F.T - 2.0 * np.outer(F[:, 0], F[:, 0])
    values, vectors = dense.eigen(A)
    np.testing.assert_allclose((vectors * values) @ vectors.T, A, atol=1e-12)
    np.testing.assert_allclose(dense.eigenvalues(A), np.linalg.eigvalsh(A), atol=1e-12)
    np.testing.assert_allclose(dense.pseudo_inverse(A), np.linalg.pinv(A, rcond=1e-12), atol=1e-10)


def test_an_indefinite_system_is_solved_and_a_singular_one_is_refused() -> None:
    A = np.asfortranarray(positive(20, np.float64) - 45.0 * np.eye(20))
    assert np.linalg.eigvalsh(A)[0] < 0 < np.linalg.eigvalsh(A)[-1]
    factor, R = A.copy(order="F"), np.random.default_rng(4).standard_normal((20, 3))
    pivots = dense.factorise_indefinite(factor)
    assert pivots is not None
    np.testing.assert_allclose(A @ dense.solve_indefinite(factor, pivots, R), R, atol=1e-10)
    assert dense.factorise_indefinite(np.zeros((3, 3), order="F")) is None


def test_the_tridiagonal_form_is_a_rotation_of_the_matrix() -> None:
    A = np.asfortranarray(positive(12, np.float64))
    W = np.random.default_rng(5).standard_normal((12, 2))
    work = A.copy(order="F")
    diagonal, beside, factors = dense.tridiagonalise(work)
    T = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    reflections = np.asfortranarray(work[1:, :-1])
    turned = np.vstack([W[:1], dense.rotate(reflections, factors, W[1:])])
    dense.rotation(reflections, factors)
    Q = np.zeros((12, 12))
    Q[0, 0], Q[1:, 1:] = 1.0, reflections
    np.testing.assert_allclose(Q @ T @ Q.T, A, atol=1e-10)
    np.testing.assert_allclose(turned, Q.T @ W, atol=1e-12)
    lowest = dense.lowest_eigenvector(diagonal, beside)
    np.testing.assert_allclose(T @ lowest, np.linalg.eigvalsh(T)[0] * lowest, atol=1e-10)


@pytest.mark.parametrize("shape", [(25,), (25, 1), (25, 3)])
def test_products_read_one_triangle_only(shape: tuple[int, ...]) -> None:
    A, V = positive(25, np.float64), np.random.default_rng(6).standard_normal(shape)
    for triangle, lower in ((np.tril(A), True), (np.triu(A), False)):
        found = dense.symmetric_product(np.asfortranarray(triangle), V, lower)
        np.testing.assert_allclose(found, A @ V, rtol=1e-12)
    total = np.asfortranarray(np.tril(A))
    dense.add_outer(total, V, -2.0)
    dense.add_outer(total, np.asfortranarray(V))
    U = V.reshape(25, -1)
    np.testing.assert_allclose(total, np.tril(A - U @ U.T), atol=1e-12)


@pytest.mark.parametrize("shape", [(20, 6), (6, 20)])
def test_rectangular_matrices_are_factored_as_numpy_does(shape: tuple[int, int]) -> None:
    A = np.random.default_rng(7).standard_normal(shape)
    Q, R = dense.qr(A)
    np.testing.assert_allclose(Q @ R, A, atol=1e-12)
    np.testing.assert_array_equal(dense.orthonormal(A), Q)
    Q, R, order = dense.pivoted_qr(A)
    np.testing.assert_allclose(Q @ R, A[:, order], atol=1e-12)
    np.testing.assert_allclose(Q.T @ Q, np.eye(6), atol=1e-12)
    assert (np.diff(np.abs(np.diagonal(R))) <= 1e-12).all()
    left, values = dense.left_singular(A)
    np.testing.assert_allclose(np.linalg.norm(left.T @ A, axis=1), values, rtol=1e-12)
    empty = dense.null_space(A)
    assert empty.shape == (shape[1], max(0, shape[1] - 6))
    np.testing.assert_allclose(A @ empty, 0.0, atol=1e-12)


def test_least_squares_gives_the_solution_of_least_norm() -> None:
    random = np.random.default_rng(8)
    A, B = random.standard_normal((10, 3)) @ random.standard_normal((3, 6)), random.standard_normal((10, 2))
    np.testing.assert_allclose(dense.least_squares(A, B), np.linalg.pinv(A, rcond=1e-12) @ B, atol=1e-10)
    many, right = random.standard_normal((4, 5, 5)), random.standard_normal((4, 5, 1))
    np.testing.assert_allclose(many @ dense.solve_square(many, right), right, atol=1e-10)


def test_rows_that_depend_on_others_are_left_out_of_a_pivoted_factor() -> None:
    F = np.random.default_rng(9).standard_normal((40, 5))
    K = F @ F.T
    L, chosen = dense.pivoted_cholesky(K, 1e-10)
    assert len(chosen) == 5
    np.testing.assert_allclose(L @ L.T, K[np.ix_(chosen, chosen)], atol=1e-10)
    np.testing.assert_array_equal(L, np.tril(L))

    def row(i: int, out: np.ndarray) -> None:
        out[:] = K[i]

    factor = dense.PartialCholesky(np.diagonal(K), row, 10)
    factor.grow_largest(10, 1e-10, 1e-10)
    assert factor.chosen == chosen.tolist()
    np.testing.assert_allclose(factor.V.T @ factor.V, K, atol=1e-10)
    np.testing.assert_allclose(factor.left, 0.0, atol=1e-10)


def test_a_partial_factor_takes_any_point_and_knows_what_is_left() -> None:
    K = positive(30, np.float64)

    def row(i: int, out: np.ndarray) -> None:
        out[:] = K[i]

    factor = dense.PartialCholesky(np.diagonal(K), row, 4)
    for j in (7, 3, 20):
        factor.grow(j)
    S = [7, 3, 20]
    best = K[:, S] @ np.linalg.solve(K[np.ix_(S, S)], K[S])
    np.testing.assert_allclose(factor.V.T @ factor.V, best, atol=1e-9)
    np.testing.assert_allclose(factor.left, np.diagonal(K - best), atol=1e-9)


def test_other_threads_run_during_a_factorisation() -> None:
    """A thread that only counts must get on while a large matrix is factorised: with the lock held it stands still."""
    A = positive(64, np.float64)
    large = np.kron(np.eye(40), A)
    ticks: list[float] = []
    done = threading.Event()

    def count() -> None:
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    with threads.one_blas_thread():
        counter.start()
        started = time.perf_counter()
        assert dense.factorise(large)
        finished = time.perf_counter()
        done.set()
        counter.join()
    assert any(started < t < finished for t in ticks)
