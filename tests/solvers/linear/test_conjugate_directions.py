"""The recursion of conjugate gradients against dense solutions."""

from typing import Any

import numpy as np
import pytest

from mercer.solvers.linear.conjugate_directions import ConjugateDirections, over_all, over_columns, over_rows

N = 12
RANDOM = np.random.default_rng(0)
F = RANDOM.standard_normal((N, N))
H = F @ F.T + N * np.eye(N)
T = RANDOM.standard_normal((N, 3))


def run(steps: int = N, **options: Any) -> ConjugateDirections:
    search = ConjugateDirections(lambda P: H @ P, T.copy(), np.zeros_like(T), **options)
    for _ in range(steps):
        search.step()
    return search


def test_as_many_steps_as_unknowns_solve_every_column() -> None:
    search = run()
    np.testing.assert_allclose(search.X, np.linalg.solve(H, T), atol=1e-12)
    np.testing.assert_allclose(search.R, 0.0, atol=1e-10)
    assert (search.curvature >= 0).all()


def test_columns_do_not_disturb_one_another() -> None:
    together = run(4)
    for j in range(3):
        alone = ConjugateDirections(lambda P: H @ P, T[:, j : j + 1].copy(), np.zeros((N, 1)))
        for _ in range(4):
            alone.step()
        np.testing.assert_allclose(together.X[:, j : j + 1], alone.X, rtol=1e-10)


def test_an_exact_preconditioner_needs_one_step() -> None:
    search = run(1, precondition=lambda R: np.linalg.solve(H, R))
    np.testing.assert_allclose(search.X, np.linalg.solve(H, T), rtol=1e-12)


def test_rows_are_right_hand_sides_as_well_as_columns() -> None:
    search = ConjugateDirections(lambda P: P @ H, T.T.copy(), np.zeros((3, N)), inner=over_rows)
    for _ in range(5):
        search.step()
    np.testing.assert_allclose(search.X, run(5).X.T, rtol=1e-10)


def test_columns_can_be_the_unknowns_of_one_system() -> None:
    """X + H X S = T couples the columns of X through a symmetric S."""
    S = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 3.0]])
    search = ConjugateDirections(lambda P: P + H @ P @ S, T.copy(), np.zeros_like(T), inner=over_all)
    for _ in range(3 * N):
        search.step()
    whole = np.eye(3 * N) + np.kron(H, S)
    np.testing.assert_allclose(search.X.ravel(), np.linalg.solve(whole, T.ravel()), atol=1e-10)


def test_columns_that_are_kept_go_on_as_before() -> None:
    search = run(3)
    search.keep([0, 2])
    for _ in range(3):
        search.step()
    np.testing.assert_allclose(search.X, run(6).X[:, [0, 2]], rtol=1e-10)


def test_a_residual_computed_anew_replaces_the_recursion() -> None:
    search = run(2)
    assert search.X is not None
    search.step(lambda: T - H @ search.X)
    np.testing.assert_allclose(search.R, run(3).R, atol=1e-10)


def test_directions_are_conjugate_and_residuals_orthogonal() -> None:
    search, before = run(2), run(1)
    np.testing.assert_allclose(over_columns(search.P, H @ before.P), 0.0, atol=1e-9)
    np.testing.assert_allclose(over_columns(search.R, before.R), 0.0, atol=1e-10)


def test_a_solved_column_stays_where_it_is() -> None:
    R = np.stack([T[:, 0], np.zeros(N)], axis=1)
    search = ConjugateDirections(lambda P: H @ P, R, np.zeros_like(R))
    search.step()
    np.testing.assert_array_equal(search.X[:, 1], 0.0)
    assert np.isfinite(search.P).all()


def test_a_product_that_fails_changes_nothing() -> None:
    def stopped(P: np.ndarray) -> np.ndarray:
        raise KeyboardInterrupt

    search = run(2)
    kept = [search.X.copy(), search.R.copy(), search.P.copy()]
    search.apply = stopped
    with pytest.raises(KeyboardInterrupt):
        search.step()
    for value, before in zip((search.X, search.R, search.P), kept, strict=True):
        np.testing.assert_array_equal(value, before)
