"""LAPACK without the interpreter lock, against dense algebra."""

import threading
import time
from typing import Any

import numpy as np
import pytest

from mercer import threads, unlocked
from mercer.errors import InvalidInput


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
    assert unlocked.factorise(L)
    np.testing.assert_allclose(np.tril(L) @ np.tril(L).T, A, rtol=close, atol=close * n)
    B = np.random.default_rng(1).standard_normal((3, n)).astype(dtype)
    X = B.copy()
    unlocked.solve(L, X)
    np.testing.assert_allclose(X @ A, B, rtol=close, atol=close * 10)
    unlocked.solve_lower(L, B)
    np.testing.assert_allclose(np.sum(B * B, axis=1), np.sum(X * (X @ A), axis=1), rtol=close)  # |L^-1 b|^2 = b'A^-1 b
    below = L.copy(order="K")
    unlocked.invert_lower(below)
    np.testing.assert_allclose(np.tril(below) @ np.tril(L), np.eye(n), atol=close * 10)
    inverse = A.copy(order="K")
    assert unlocked.invert(inverse)
    np.testing.assert_array_equal(inverse, inverse.T)
    np.testing.assert_allclose(inverse @ A, np.eye(n), atol=close * 10)


def test_a_matrix_that_is_not_positive_definite_is_refused() -> None:
    A = np.diag([1.0, -1.0, 2.0])
    assert not unlocked.factorise(A.copy())
    assert not unlocked.invert(A.copy())


@pytest.mark.parametrize("A", [np.eye(3, dtype=np.int64), np.eye(6)[::2, ::2]])
def test_other_types_and_parts_of_matrices_are_refused(A: np.ndarray) -> None:
    with pytest.raises(InvalidInput, match="contiguous"):
        unlocked.factorise(A)


def test_right_hand_sides_are_rows() -> None:
    with pytest.raises(InvalidInput, match="length 3"):
        unlocked.solve(np.eye(3), np.ones((3, 2)))


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
        assert unlocked.factorise(large)
        finished = time.perf_counter()
        done.set()
        counter.join()
    assert any(started < t < finished for t in ticks)
